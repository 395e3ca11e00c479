"""Clocks: move arrays to a device and take times there, by the host's wall clock or by the events of a GPU."""

from __future__ import annotations

import gc
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EngineUnavailable
from ...settings import get_num_threads
from . import turns

__all__ = ["HostClock", "clock_of", "processor"]

Array = npt.NDArray[Any]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause Python's garbage collector, whose cost depends on everything that the process has imported."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class HostClock:
    """NumPy arrays and the wall clock.

    Attributes
    ----------
    in_a_row
        Number of read-only calls that are timed together. On a GPU, the host launches a call while the previous call
        still runs.
    """

    in_a_row = 1

    @property
    def arrays(self) -> Any:
        """The array module of the device: NumPy, or CuPy on a GPU that has CuPy."""
        return np

    @property
    def machine(self) -> str:
        """Name of the processor, and the number of threads in use."""
        threads = get_num_threads()
        return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}"

    def here(self, array: Any) -> Any:
        """Copy an array of the host or of `arrays` to the table's device, unless it is there."""
        return array

    def back(self, array: Any) -> Array:
        """Copy an array of the table's device to the host, as a NumPy array. An array of the host stays as it is."""
        return np.asarray(array)

    def argsort(self, array: Any) -> Any:
        """The indices that sort an array of integers. Both are of `arrays`."""
        return np.argsort(array)

    def release(self) -> None:
        """Give memory back that the array library keeps for arrays to come, so that a table can have it."""

    def mark(self) -> Any:
        """A moment, after all that the device was asked for so far."""
        return time.perf_counter()

    def seconds_between(self, first: Any, last: Any) -> float:
        """Seconds between two moments that are over."""
        return float(last - first)

    def time(self, run: Callable[[], None]) -> float:
        """Seconds that ``run`` takes."""
        return self.laps([run])[0]

    def laps(self, runs: Iterable[Callable[[], Any]]) -> list[float]:
        """Seconds from the start of the first run to the end of each run. The host does not wait between runs."""
        with _no_collection():
            marks = [time.perf_counter()]
            for run in runs:
                run()
                marks.append(time.perf_counter())
        return [mark - marks[0] for mark in marks[1:]]


class _EventClock(HostClock, ABC):
    """Arrays on a GPU, timed by events of the GPU."""

    in_a_row = 8

    def __init__(self) -> None:
        turns.take(self._synchronize)

    @abstractmethod
    def _event(self) -> Any:
        """A new event that can record a time."""

    @abstractmethod
    def _synchronize(self) -> None:
        """Wait for the device."""

    @abstractmethod
    def _milliseconds(self, first: Any, last: Any) -> float:
        """Milliseconds between two completed events."""

    def mark(self) -> Any:
        event = self._event()
        event.record()
        return event

    def seconds_between(self, first: Any, last: Any) -> float:
        return self._milliseconds(first, last) / 1e3

    def laps(self, runs: Iterable[Callable[[], Any]]) -> list[float]:
        runs = list(runs)
        marks = [self._event() for _ in range(len(runs) + 1)]
        self._synchronize()
        with _no_collection():
            marks[0].record()
            for run, mark in zip(runs, marks[1:], strict=True):
                run()
                mark.record()
            marks[-1].synchronize()
        return [self.seconds_between(marks[0], mark) for mark in marks[1:]]


class _CupyClock(_EventClock):
    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        super().__init__()

    @property
    def arrays(self) -> Any:
        return self._cupy

    @property
    def machine(self) -> str:
        return str(self._cupy.cuda.runtime.getDeviceProperties(self._cupy.cuda.Device().id)["name"].decode())

    def here(self, array: Any) -> Any:
        return self._cupy.asarray(array)

    def back(self, array: Any) -> Array:
        return np.asarray(self._cupy.asnumpy(array))

    def argsort(self, array: Any) -> Any:
        return self._cupy.argsort(array)

    def release(self) -> None:
        self._cupy.get_default_memory_pool().free_all_blocks()

    def _event(self) -> Any:
        return self._cupy.cuda.Event()

    def _synchronize(self) -> None:
        self._cupy.cuda.Device().synchronize()

    def _milliseconds(self, first: Any, last: Any) -> float:
        return float(self._cupy.cuda.get_elapsed_time(first, last))


class _TorchClock(_EventClock):
    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        super().__init__()

    @property
    def machine(self) -> str:
        return str(self._torch.cuda.get_device_name())

    def here(self, array: Array) -> Any:
        return self._torch.from_numpy(array).cuda()

    def back(self, array: Any) -> Array:
        return array if isinstance(array, np.ndarray) else np.asarray(array.cpu().numpy())

    def argsort(self, array: Array) -> Array:
        signed = array.view(f"i{array.itemsize}")
        if array.dtype.kind == "u":  # PyTorch sorts signed integers only; the flipped sign bit keeps the order
            signed = signed ^ np.iinfo(signed.dtype).min
        return self.back(self._torch.argsort(self.here(signed)))

    def release(self) -> None:
        self._torch.cuda.empty_cache()

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def _synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def _milliseconds(self, first: Any, last: Any) -> float:
        return float(first.elapsed_time(last))


def clock_of(device: str) -> HostClock:
    """The clock of a device.

    Raises
    ------
    EngineUnavailable
        If neither CuPy nor PyTorch is installed, so that no array can be on the GPU.
    """
    if not device.startswith("cuda"):
        return HostClock()
    if find_spec("cupy"):
        return _CupyClock()
    if find_spec("torch"):
        return _TorchClock()
    raise EngineUnavailable("measuring on a GPU needs arrays on it: pip install cupy-cuda13x, or torch")


def processor() -> str:
    """Name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
