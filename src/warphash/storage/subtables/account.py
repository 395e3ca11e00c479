"""Counts the device memory that a table's resizes hold."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

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
    held_bytes, peak_bytes
        Bytes of all buffers that live, and the most that lived at one time.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.held_bytes = self.peak_bytes = 0

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer:
        """As `Engine.allocate`."""
        return _Counted(self._engine.allocate(nbytes, stream), self)

    def from_host(self, array: npt.NDArray[Any], stream: Any = None) -> Buffer:
        """As `Engine.from_host`."""
        return _Counted(self._engine.from_host(array, stream), self)

    def add(self, nbytes: int) -> None:
        """Count bytes that are held from now on; fewer than none are given back."""
        self.held_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)


class _Counted:
    """A buffer of an account."""

    __slots__ = ("_account", "_buffer", "nbytes", "ptr")

    def __init__(self, buffer: Buffer, account: Account) -> None:
        self._buffer, self._account = buffer, account
        self.ptr, self.nbytes = buffer.ptr, buffer.nbytes
        account.add(self.nbytes)

    def __del__(self) -> None:
        self._account.add(-self.nbytes)
