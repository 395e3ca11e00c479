"""New memory of an engine with known content."""

from __future__ import annotations

from typing import Any

from ..runtime.engine import Buffer, Engine

__all__ = ["copied", "filled"]


def filled(engine: Engine, nbytes: int, stream: Any = None, byte: int = 0) -> Buffer:
    """New memory, all of whose bytes are ``byte``."""
    made = engine.allocate(nbytes, stream)
    engine.fill(made.ptr, byte, nbytes, stream)
    return made


def copied(engine: Engine, memory: Buffer, stream: Any = None, nbytes: int = 0) -> Buffer:
    """A copy of ``memory``, in new memory of as many bytes, or of ``nbytes`` if these are more."""
    made = engine.allocate(max(nbytes, memory.nbytes), stream)
    engine.copy(made.ptr, memory.ptr, memory.nbytes, stream)
    return made
