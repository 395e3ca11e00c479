"""From the name of a device to its engine."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Any

from ..arrays import gpu_memory
from ..errors import EXTENSION_MEND, DeviceError, EngineUnavailable
from .engine import Engine

__all__ = ["engine_for"]

_gpus: dict[str, Engine] = {}
"""The engines of GPUs that were asked for, by the names that they were asked for by. An engine lasts for ever."""

os.register_at_fork(after_in_child=_gpus.clear)  # CUDA does not survive a fork


def engine_for(device: str | None) -> Engine:
    """The engine of ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"emulated"``; of None, a GPU if one is usable.

    Raises
    ------
    DeviceError
        For a name that is none of these.
    EngineUnavailable
        For a device that cannot be used here; the message says what mends it.
    """
    if isinstance(device, str) and (known := _gpus.get(device)):
        return known
    if device is None:
        from .cuda import engine as cuda

        device = "cuda" if cuda.available() else "cpu"
    if device == "cpu":
        try:
            from . import cpu
        except ImportError as error:
            raise EngineUnavailable(
                f"device 'cpu' cannot be used: the compiled extension is missing ({error}): {EXTENSION_MEND}"
            ) from None
        return cpu.engine()
    if device == "emulated":
        from .emulated import engine as emulated

        emulation: Any = emulated.engine()
        return emulation  # type: ignore[no-any-return]
    if match := re.fullmatch(r"cuda(?::(\d+))?", device) if isinstance(device, str) else None:
        from .cuda import engine as cuda

        _gpus[device] = made = cuda.engine(int(match[1] or 0))
        return made
    mend = "" if isinstance(device, str) else f": give {str(device)!r}"
    raise DeviceError(f"device must be 'cpu', 'cuda', 'cuda:N' or None, got {device!r}{mend}")


def _gpu_of(address: int) -> int | None:
    """The index of the GPU that an address is on; None for memory of no GPU."""
    from .cuda import engine as cuda

    return cuda.gpu_of(address)


gpu_memory.answer_with(_gpu_of)

with suppress(ImportError):  # `engine_for` names the mend
    # Verbs of tables on a GPU use it, too, and a verb imports nothing: there may be too little memory.
    from . import cpu as cpu
