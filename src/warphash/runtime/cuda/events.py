"""Places in the streams of a GPU that the host can wait for, or look whether they are passed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from .device import Device
from .driver import check, error

__all__ = ["CudaAnswer", "CudaMark"]


class CudaAnswer:
    """Words on their way to pinned memory; see `engine.Answer`."""

    def __init__(self, engine: Device, words: int) -> None:
        self._engine = engine
        self._pinned = engine.allocate_pinned(8 * words)
        self.ptr = self._pinned.ptr
        self._mark = CudaMark(engine)

    def ask(self, ptr: int, stream: Any = None) -> None:
        self._engine.copy(self._pinned.ptr, ptr, self._pinned.nbytes, stream, mark=self._mark)

    def follow(self, stream: Any = None) -> None:
        self._mark.record(stream)

    @property
    def ready(self) -> bool:
        return self._mark.passed

    def wait(self) -> None:
        self._mark.wait()

    @property
    def words(self) -> npt.NDArray[np.uint64]:
        return self._pinned.array.view(np.uint64)


class CudaMark:
    """A place in a stream that the host can wait for; an event of the driver's."""

    def __init__(self, engine: Device) -> None:
        self._engine = engine
        self._driver = engine._driver
        flags = self._driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self.event = check(engine.call(self._driver.cuEventCreate, flags), "making an event")
        self.handle = int(self.event)

    def record(self, stream: Any = None) -> None:
        self._engine.join(stream)  # an event may be recorded without a wait
        (status,) = self._engine.order(stream, self._driver.cuEventRecord, self.event)
        if status:
            raise error(status, "recording an event")

    @property
    def passed(self) -> bool:
        """Whether the device has passed the mark."""
        return not self._driver.cuEventQuery(self.event)[0]

    def wait(self) -> None:
        """Return when the device has passed the mark. Errors of earlier kernels come out here."""
        status = self._engine.wait_for(self.handle)
        if status:
            raise error(status, f"running kernels on {self._engine.device}")

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._engine.discard(self._driver.cuEventDestroy, self.event)
