"""Copies of the memory of a table, to undo an update with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..runtime.engine import Buffer, Engine
from .new_memory import copied

__all__ = ["Snapshot", "put_back", "take"]

Snapshot = Buffer | npt.NDArray[np.uint8]
"""A copy on the device or, where the device had no memory for one, on the host."""


def take(engine: Engine, memory: Buffer, stream: Any = None) -> Snapshot:
    """Copy all of ``memory``."""
    try:
        return copied(engine, memory, stream)
    except MemoryError:
        return engine.to_host(memory.ptr, np.uint8, memory.nbytes, stream)


def put_back(engine: Engine, memory: Buffer, snapshot: Snapshot, stream: Any = None) -> None:
    """Copy a snapshot back. Allocates nothing on the device."""
    if isinstance(snapshot, np.ndarray):
        engine.upload(memory.ptr, snapshot, stream)
    else:
        engine.copy(memory.ptr, snapshot.ptr, memory.nbytes, stream)
