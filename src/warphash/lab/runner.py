"""One measurement: build a table, time an operation, verify what it gave, and say all of it in one record."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..table import HashMap, HashSet
from .oracle import Oracle
from .workloads import Workload, queries

__all__ = ["Lab", "Measurement", "Setting"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Setting:
    """A design with its parameters, as a table takes them."""

    design: str
    parameters: dict[str, Any]

    @property
    def label(self) -> str:
        """``"bucketed_cuckoo b=16"``."""
        short = {"slots_per_bucket": "b", "threshold": "t", "hashes": "h"}
        parts = [f"{short.get(name, name)}={value}" for name, value in self.parameters.items()]
        return " ".join([self.design, *parts])


@dataclass(frozen=True)
class Measurement:
    """One rate with what it takes to judge it.

    Attributes
    ----------
    operation
        ``"build"``, ``"build unique"`` (``assume_unique``), ``"insert unique"``, ``"find 100"`` (per cent present), …
    rate_per_s
        Keys per second: the median over ``repetitions``.
    probes_per_key
        Buckets read for each key, where they were counted.
    mismatches
        Wrong answers, in the same run. A rate with a mismatch is not a rate.
    """

    data: str
    design: str
    parameters: dict[str, Any]
    device: str
    n: int
    load_factor: float
    key: str
    value: str | None
    operation: str
    rate_per_s: float
    repetitions: int
    probes_per_key: float | None
    bytes_per_pair: float
    mismatches: int


class Lab:
    """Runs measurements on one device.

    Parameters
    ----------
    device
        ``"cpu"`` or ``"cuda"``. On a GPU all arrays are on it, by CuPy or PyTorch, and times are the device's events.
    repetitions
        Timed runs of each operation, after one that is not counted.
    """

    def __init__(self, device: str, repetitions: int = 3) -> None:
        self.device, self.repetitions = device, repetitions
        self._clock: _HostClock = _HostClock() if device == "cpu" else _CupyClock()

    @property
    def machine(self) -> str:
        """Name of the processor or the GPU."""
        return self._clock.machine

    def here(self, array: Array) -> Any:
        """An array on the device."""
        return self._clock.here(array)

    def measure(
        self,
        workload: Workload,
        setting: Setting,
        load_factor: float,
        operations: tuple[str, ...],
        *,
        seed: int = 1,
        hash: str = "mixer",
        note: Callable[[str], None] = lambda _: None,
    ) -> list[Measurement]:
        """Measure ``operations`` of one design on one workload, each verified."""
        oracle = Oracle(workload.keys, workload.values)
        keys = self.here(workload.keys)
        values = None if workload.values is None else self.here(workload.values)
        options: dict[str, Any] = {
            "design": setting.design,
            "device": self.device,
            "load_factor": load_factor,
            "capacity": oracle.distinct,
            "seed": seed,
            "hash": hash,
            **setting.parameters,
        }
        done = []
        table: Any = None
        for operation in operations:
            note(f"{workload.name}: {setting.label}, {operation}")
            if operation.startswith("find"):
                rate, probes, wrong = self._find(table, workload, oracle, int(operation.split()[1]) / 100, seed)
            else:
                del table
                unique = operation.endswith("unique") and oracle.distinct == len(workload.keys)
                table, rate = self._build(operation.startswith("insert"), unique, keys, values, options)
                probes, wrong = None, self._verify_items(table, oracle)
            done.append(
                Measurement(
                    data=workload.name,
                    design=setting.design,
                    parameters=table.stats().parameters,
                    device=self.machine,
                    n=len(workload.keys),
                    load_factor=table.load_factor,
                    key=str(workload.keys.dtype),
                    value=None if workload.values is None else str(workload.values.dtype),
                    operation=operation,
                    rate_per_s=rate,
                    repetitions=self.repetitions,
                    probes_per_key=probes,
                    bytes_per_pair=table.stats().bytes_per_pair,
                    mismatches=wrong,
                )
            )
        return done

    def _build(
        self, in_place: bool, unique: bool, keys: Any, values: Any, options: dict[str, Any]
    ) -> tuple[Any, float]:
        made: list[Any] = []
        arrays = (keys,) if values is None else (keys, values)
        kind: Any = HashSet if values is None else HashMap
        if in_place:
            names = ("key",) if values is None else ("key", "value")
            types = [np.dtype(str(a.dtype).removeprefix("torch.")) for a in arrays]
            made.append(kind(**dict(zip(names, types, strict=True)), **options))

            def run() -> None:
                made[0].insert(*arrays, assume_unique=unique)

            seconds = self._timed(run, lambda: made[0].clear())
        else:

            def run() -> None:
                made.append(kind.from_arrays(*arrays, assume_unique=unique, **options))

            seconds = self._timed(run, made.clear)
        return made[0], len(keys) / seconds

    def _find(
        self, table: Any, workload: Workload, oracle: Oracle, share: float, seed: int
    ) -> tuple[float, float, int]:
        n = len(workload.keys)
        asked, _ = queries(workload, share, n, seed)
        there = self.here(asked)
        answers: list[Any] = []

        def run() -> None:
            answers.append(table.contains(there) if workload.values is None else table.find(there))

        seconds = self._timed(run, answers.clear)
        values, found = (None, answers[0]) if workload.values is None else answers[0]
        got = None if values is None else self._clock.back(values)
        wrong = oracle.find_mismatches(asked, got, self._clock.back(found))
        probes = float(self._clock.back(table.probe_counts(there[: 1 << 20])).mean())
        return n / seconds, probes, wrong

    def _verify_items(self, table: Any, oracle: Oracle) -> int:
        if isinstance(table, HashSet):
            return oracle.item_mismatches(table.keys(), None)
        return oracle.item_mismatches(*table.items())

    def _timed(self, run: Callable[[], None], before: Callable[[], None]) -> float:
        seconds = []
        for _ in range(self.repetitions + 1):
            before()
            seconds.append(self._clock.time(run))
        return float(np.median(seconds[1:]))


class _HostClock:
    """NumPy arrays and the wall clock."""

    @property
    def machine(self) -> str:
        import platform
        from pathlib import Path

        info = Path("/proc/cpuinfo")
        names = (
            [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
            if info.exists()
            else []
        )
        return f"{names[0] if names else platform.processor() or platform.machine()}, {_threads()} threads"

    def here(self, array: Array) -> Any:
        return array

    def back(self, array: Any) -> Array:
        return np.asarray(array)

    def time(self, run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start


class _CupyClock(_HostClock):
    """CuPy arrays and events on the device; PyTorch's where there is no CuPy."""

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError:
            cupy = None
        if cupy is None and "torch" not in sys.modules:
            __import__("torch")
        self._cupy = cupy

    @property
    def machine(self) -> str:
        if self._cupy is not None:
            return str(self._cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
        return str(sys.modules["torch"].cuda.get_device_name())

    def here(self, array: Array) -> Any:
        if self._cupy is not None:
            return self._cupy.asarray(array)
        return sys.modules["torch"].from_numpy(array).cuda()

    def back(self, array: Any) -> Array:
        return np.asarray(array.get() if self._cupy is not None else array.cpu().numpy())

    def time(self, run: Callable[[], None]) -> float:
        if self._cupy is None:
            torch = sys.modules["torch"]
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            first.record()
            run()
            last.record()
            last.synchronize()
            return float(first.elapsed_time(last)) / 1e3
        first, last = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        self._cupy.cuda.Device().synchronize()
        first.record()
        run()
        last.record()
        last.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(first, last)) / 1e3


def _threads() -> int:
    from ..runtime.cpu import thread_count

    return thread_count()
