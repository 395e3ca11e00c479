"""Counts the device memory that a table's resizes hold."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from ...runtime.engine import Buffer, Engine

__all__ = ["Account"]


class Account:
    """Allocate device memory, and count the bytes that are held until the last reference to a buffer goes.

    Parameters
    ----------
    engine
        Which the memory comes from.

    Attributes
    ----------
    peak_bytes
        The most bytes that were held at one time.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._held: WeakSet[_Counted] = WeakSet()
        self.peak_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of all buffers that live."""
        return sum(buffer.nbytes for buffer in self._held)

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer:
        """As `Engine.allocate`."""
        buffer = _Counted(self._engine.allocate(nbytes, stream))
        self._held.add(buffer)
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)
        return buffer


class _Counted:
    """A buffer of an account."""

    __slots__ = ("__weakref__", "_buffer", "nbytes", "ptr")

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self.ptr, self.nbytes = buffer.ptr, buffer.nbytes
