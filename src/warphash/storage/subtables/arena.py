"""The memory in which displaced pairs find slots again when the device has none left."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...runtime.engine import Buffer

__all__ = ["Arena"]

_ALIGNMENT_BYTES = 256


class Arena:
    """Hands out one piece of memory part by part."""

    def __init__(self, memory: Buffer) -> None:
        self._memory, self._used = memory, 0

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer:
        """As `Engine.allocate`."""
        at, self._used = self._used, self._used + -(-nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        if self._used > self._memory.nbytes:
            raise MemoryError(f"an arena of {self._memory.nbytes:,} bytes has no {nbytes:,} left")
        return _Part(self._memory.ptr + at, nbytes, self._memory)


class _Part(NamedTuple):
    """A part of a piece of memory, which it keeps."""

    ptr: int
    nbytes: int
    memory: Buffer
