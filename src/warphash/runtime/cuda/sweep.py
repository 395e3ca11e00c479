"""Pinned memory of the host on its way through a GPU, window by window, with copies and kernels that overlap.

There are three windows of device memory. One stream copies a window in. Kernels run over it on the caller's stream. A
third stream copies it out. Meanwhile, the next window is copied in. Events order what must not overlap:

  copied in    behind the copy out of the window that was there before, or behind its kernels
  kernels      behind the copy in
  copied out   behind the kernels

The first copy waits for all that the engine was given before. What comes on the caller's stream afterwards waits for
the last copy.
"""

from __future__ import annotations

import threading
from typing import Any

from ..engine import WindowBody
from .device import Device
from .driver import check
from .events import CudaMark

__all__ = ["Sweeper"]

_WINDOWS = 3
"""One is copied in, one is worked on, one is copied out."""


class Sweeper:
    """The streams of an engine's sweeps."""

    def __init__(self, engine: Device) -> None:
        self._engine = engine
        self._driver = driver = engine._driver
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        self._inward, self._outward = (
            check(engine.call(driver.cuStreamCreate, flags), "making a stream") for _ in range(2)
        )
        self._lock = threading.Lock()

    def run(self, memory: int, nbytes: int, window_bytes: int, body: WindowBody, writes: bool, stream: Any) -> None:
        """As `Engine.sweep`."""
        engine = self._engine
        starts = range(0, nbytes, window_bytes)
        count = min(_WINDOWS, len(starts))
        windows = [engine.allocate(min(nbytes, window_bytes), stream) for _ in range(count)]
        arrived, worked, left = ([CudaMark(engine) for _ in range(count)] for _ in range(3))
        begun = CudaMark(engine)
        with self._lock:
            begun.record(stream)
            self._wait(self._inward, begun)
            for number, at in enumerate(starts):
                k, size = number % count, min(window_bytes, nbytes - at)
                if number >= count:
                    self._wait(self._inward, left[k] if writes else worked[k])
                self._copy(windows[k].ptr, memory + at, size, self._inward, arrived[k])
                self._follow(stream, arrived[k])
                body(windows[k].ptr, at, size)
                worked[k].record(stream)
                if writes:
                    self._wait(self._outward, worked[k])
                    self._copy(memory + at, windows[k].ptr, size, self._outward, left[k])
            if writes:
                for mark in left:
                    self._follow(stream, mark)

    def _copy(self, target: int, source: int, nbytes: int, handle: Any, behind: CudaMark) -> None:
        what = f"copying {nbytes:,} bytes through the bus"
        check(self._engine.call(self._driver.cuMemcpyAsync, target, source, nbytes, handle), what)
        check(self._engine.call(self._driver.cuEventRecord, behind.event, handle), what)

    def _wait(self, handle: Any, mark: CudaMark) -> None:
        """Have a stream of ours wait for a mark."""
        check(self._engine.call(self._driver.cuStreamWaitEvent, handle, mark.event, 0), "ordering streams")

    def _follow(self, stream: Any, mark: CudaMark) -> None:
        """Have the caller's stream wait for a mark."""
        wait = self._driver.cuStreamWaitEvent
        check(self._engine.order(stream, lambda handle: wait(handle, mark.event, 0)), "ordering streams")
