"""Memory that is given back when the last reference to it goes.

The engine that allocated it passes the way to release it, so nothing here knows a driver.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .engine import Buffer

__all__ = ["DeviceBuffer", "PinnedBuffer", "bytes_at", "bytes_of"]


def bytes_at(ptr: int, nbytes: int) -> npt.NDArray[np.uint8]:
    """Memory of the process as an array, which must not outlive it."""
    memory: Any = (ctypes.c_uint8 * nbytes).from_address(ptr)
    return np.frombuffer(memory, dtype=np.uint8)


def bytes_of(buffer: Buffer) -> npt.NDArray[np.uint8]:
    """A buffer in memory of the process as an array, which keeps the buffer."""
    memory: Any = (ctypes.c_uint8 * buffer.nbytes).from_address(buffer.ptr)
    memory.held = buffer
    return np.frombuffer(memory, dtype=np.uint8)


class DeviceBuffer:
    """A range of device memory.

    Parameters
    ----------
    ptr
        Its address.
    nbytes
        The size asked for.
    release
        Called once with the address. It frees in stream order: after all work that the engine was given before.
    """

    __slots__ = ("_release", "nbytes", "ptr")

    def __init__(self, ptr: int, nbytes: int, release: Callable[[int], None]) -> None:
        self.ptr = ptr
        self.nbytes = nbytes
        self._release = release

    def __del__(self) -> None:
        # At exit the driver takes everything back, and may be gone before this object.
        if not sys.is_finalizing():
            self._release(self.ptr)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.nbytes:,} bytes at {self.ptr:#x}>"


class PinnedBuffer(DeviceBuffer):
    """Page-locked host memory, which the device reads and writes at the full rate of the bus.

    Attributes
    ----------
    array
        The memory as ``uint8``; it must not outlive the buffer.
    """

    __slots__ = ("_array",)

    def __init__(self, ptr: int, nbytes: int, release: Callable[[int], None]) -> None:
        self.ptr, self.nbytes, self._release = ptr, nbytes, release
        self._array: npt.NDArray[np.uint8] | None = None  # until it is asked for, which it mostly is not

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        if self._array is None:
            self._array = bytes_at(self.ptr, self.nbytes)
        return self._array
