"""Memory that is given back when the last reference to it goes.

The engine that allocated it passes the way to release it, so nothing here knows a driver.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .engine import Buffer, Engine, WindowBody

__all__ = ["DeviceBuffer", "HostAnswer", "PinnedBuffer", "bytes_at", "sweep_in_turn"]


def bytes_at(ptr: int, nbytes: int) -> npt.NDArray[np.uint8]:
    """Memory of the process as an array, which must not outlive it."""
    memory: Any = (ctypes.c_uint8 * nbytes).from_address(ptr)
    return np.frombuffer(memory, dtype=np.uint8)


def sweep_in_turn(engine: Engine, memory: int, nbytes: int, window_bytes: int, body: WindowBody, writes: bool) -> None:
    """`Engine.sweep` where nothing overlaps."""
    window = engine.allocate(min(nbytes, window_bytes))
    for at in range(0, nbytes, window_bytes):
        size = min(window_bytes, nbytes - at)
        engine.copy(window.ptr, memory + at, size)
        body(window.ptr, at, size)
        if writes:
            engine.copy(memory + at, window.ptr, size)


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


class HostAnswer:
    """An `engine.Answer` where nothing is ever under way.

    Parameters
    ----------
    memory
        Of the words.
    copy
        The engine's.
    """

    ready = True

    def __init__(self, memory: Buffer, copy: Callable[[int, int, int], None]) -> None:
        self._memory, self._copy = memory, copy
        words: Any = (ctypes.c_uint64 * (memory.nbytes // 8)).from_address(memory.ptr)
        self.words: npt.NDArray[np.uint64] = np.frombuffer(words, np.uint64)
        self.ptr = memory.ptr

    def wait(self) -> None:
        """They are here."""

    def ask(self, ptr: int, stream: Any = None) -> None:
        self._copy(self.ptr, ptr, self.words.nbytes)

    def follow(self, stream: Any = None) -> None:
        """They are here."""
