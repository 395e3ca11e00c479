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

__all__ = ["DeviceBuffer", "HostAnswer", "PinnedBuffer"]


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

    __slots__ = ("array",)

    def __init__(self, ptr: int, nbytes: int, release: Callable[[int], None]) -> None:
        super().__init__(ptr, nbytes, release)
        memory: Any = (ctypes.c_uint8 * nbytes).from_address(ptr)
        self.array: npt.NDArray[np.uint8] = np.frombuffer(memory, dtype=np.uint8)


class HostAnswer:
    """An `engine.Answer` where nothing is ever under way.

    Parameters
    ----------
    to_host
        The engine's.
    words
        Of 64 bits.
    """

    ready = True

    def __init__(self, to_host: Callable[..., npt.NDArray[np.uint64]], words: int) -> None:
        self._to_host = to_host
        self.words = np.zeros(words, np.uint64)

    def wait(self) -> None:
        """They are here."""

    def ask(self, ptr: int, stream: Any = None) -> None:
        self.words = self._to_host(ptr, np.uint64, len(self.words), stream)
