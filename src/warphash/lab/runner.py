"""One measurement: build a table, time an operation, verify what it gave, and say all of it in one record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import HashMap, HashSet, Stats
from ..designs import registry
from .ceilings import Ceiling, Ceilings, reads_of
from .clocks import HostClock, clock_of
from .oracle import Answers, Oracle
from .workloads import Workload, queries

__all__ = ["Lab", "Measurement", "Setting"]

Array = npt.NDArray[Any]

_ENOUGH_S = 0.2
_COUNTED = 1 << 20
"""Keys whose probes are counted: enough for four digits of the mean."""
_PIECE = 1 << 14
"""Pairs summed at once: they stay in a cache."""


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
    data, n, key_dtype, value_dtype
        The workload; ``value_dtype`` is None for a set.
    design, parameters, load_factor, bytes_per_pair
        The table. The load factor is the one reached.
    operation
        ``"build"``, ``"build unique"`` (``assume_unique``), ``"insert"``, ``"insert unique"`` (into an empty table),
        ``"find 100"``: lookups of which so many per cent are present, or ``"mix 20 20 30 30"``: per cents of new keys
        inserted, keys erased, present keys found and absent ones looked for, all at once (`lab.mixes`).
    rate_per_s, seconds, repetitions
        Keys, or operations of a mix, per second of the median run, its seconds, and how many runs there were.
    probes_per_key
        Buckets read for each key, where they were counted.
    mismatches
        Wrong answers, in the same run. A rate with a mismatch is not a rate.
    ceiling_ratio
        Share of what the memory of the device allows (`lab.ceilings`), measured in the same run: of random reads of a
        bucket for a find, and of a value that lies apart; of reads with a swap for the others. Where no probes were
        counted, as in a build without ``count_probes=True``, each key counts as one: then it is a lower bound. None
        where no ceiling was measured.
    utilisation
        Bytes of pairs over those of buckets and nodes in use: `Stats.memory_utilisation`.
    """

    data: str
    design: str
    parameters: dict[str, Any]
    device: str
    n: int
    load_factor: float
    key_dtype: str
    value_dtype: str | None
    operation: str
    rate_per_s: float
    seconds: float
    repetitions: int
    probes_per_key: float | None
    bytes_per_pair: float
    mismatches: int
    ceiling_ratio: float | None = None
    utilisation: float | None = None


class Lab:
    """Runs measurements on one device.

    Parameters
    ----------
    device
        ``"cpu"`` or ``"cuda"``. On a GPU all arrays are on it, by CuPy or PyTorch, and times are the device's events.
    repetitions
        Timed runs of each operation, at most: once a fifth of a second was spent on one, no more follow.
    with_ceilings
        Measure what the memory allows, too, and set each rate beside it.
    """

    def __init__(self, device: str, repetitions: int = 3, *, with_ceilings: bool = False) -> None:
        self.device, self.repetitions = device, repetitions
        self._clock = clock_of(device)
        self._ceilings = Ceilings(device) if with_ceilings else None
        self._subject: _Subject | None = None

    @property
    def machine(self) -> str:
        """Name of the processor or the GPU."""
        return self._clock.machine

    @property
    def ceilings(self) -> list[Ceiling]:
        """What the memory allows, as far as it was measured."""
        return self._ceilings.measured if self._ceilings else []

    def here(self, array: Array) -> Any:
        """An array on the device."""
        return self._clock.here(array)

    def columns(self, workload: Workload) -> list[Any]:
        """Keys, and values if there are any, on the device."""
        return [self.here(column) for column in (workload.keys, workload.values) if column is not None]

    @property
    def arrays(self) -> Any:
        """NumPy, or what speaks it on the device."""
        return self._clock.arrays

    def back(self, array: Any) -> Array:
        """An array of the device as a NumPy array."""
        return self._clock.back(array)

    def argsort(self, array: Array) -> Array:
        """Order of an array of integers on the host."""
        return self._clock.argsort(array)

    @property
    def warms_up(self) -> bool:
        """Whether the first run of anything is not counted, because it loads the kernels."""
        return self.device != "cpu"

    def time(self, run: Callable[[], Any]) -> float:
        """Seconds of one run."""
        return self._clock.time(run)

    def laps(self, runs: Iterable[Callable[[], Any]]) -> list[float]:
        """Seconds to the end of each run, one behind the other."""
        return self._clock.laps(runs)

    def timed(self, run: Callable[[], None], before: Callable[[], None] = lambda: None) -> list[float]:
        """Seconds of each run; ``before`` precedes each run and is not counted."""
        seconds: list[float] = []
        if self.warms_up:
            before()
            self.time(run)
        while not seconds or (len(seconds) < self.repetitions and sum(seconds) < _ENOUGH_S):
            before()
            seconds.append(self.time(run))
        return seconds

    def empty(self, workload: Workload, setting: Setting, load_factor: float | None, **options: Any) -> Any:
        """A table with room for the keys of a workload; ``load_factor`` None for a setting that tells the size."""
        options = self._options(setting, load_factor, {"capacity": len(workload.keys), **options})
        if workload.values is None:
            return HashSet(workload.keys.dtype, **options)
        return HashMap(workload.keys.dtype, workload.values.dtype, **options)

    def built(
        self,
        columns: Sequence[Any],
        setting: Setting,
        load_factor: float | None,
        *,
        unique: bool = True,
        **options: Any,
    ) -> Any:
        """A table of keys, or of keys and values, that are on the device."""
        kind: Any = HashSet if len(columns) == 1 else HashMap
        return kind.from_arrays(*columns, assume_unique=unique, **self._options(setting, load_factor, options))

    def _options(self, setting: Setting, load_factor: float | None, options: dict[str, Any]) -> dict[str, Any]:
        fixed = {"design": setting.design, "device": self.device, "load_factor": load_factor, "seed": 1}
        return {**fixed, **setting.parameters, **options}

    def measure(
        self,
        workload: Workload,
        setting: Setting,
        load_factor: float | None,
        operations: tuple[str, ...],
        *,
        note: Callable[[str], None] = lambda _: None,
        **options: Any,
    ) -> list[Measurement]:
        """Measure ``operations`` of one design on one workload; the finds are of the table built last."""
        done = []
        table: Any = None
        for operation in operations:
            note(f"{workload.name}: {setting.label}, {operation}")
            if operation.startswith("find"):
                done.append(self.measure_find(table, workload, int(operation.split()[1]) / 100))
            else:
                table = None
                table, measured = self.measure_build(workload, setting, load_factor, operation, **options)
                done.append(measured)
        return done

    def measure_build(
        self,
        workload: Workload,
        setting: Setting,
        load_factor: float | None,
        operation: str = "build unique",
        **options: Any,
    ) -> tuple[Any, Measurement]:
        """A table of all keys of a workload, and how fast it was built."""
        subject = self._subject_of(workload)
        unique = operation.endswith("unique")
        if unique and subject.oracle.distinct < len(workload.keys):
            unique = False  # the word would be a lie
        options = {"capacity": subject.oracle.distinct, **options}
        made: list[Any] = []
        if operation.startswith("insert"):
            made.append(self.empty(workload, setting, load_factor, **options))
            seconds = self.timed(
                lambda: made[0].insert(*subject.arrays, assume_unique=unique), before=lambda: made[0].clear()
            )
        else:
            seconds = self.timed(
                lambda: made.append(self.built(subject.arrays, setting, load_factor, unique=unique, **options)),
                before=made.clear,
            )
        table = made[0]
        items = (table.keys(like="numpy"), None) if workload.values is None else table.to_arrays(like="numpy")
        wrong = subject.wrong_items(*items)
        return table, self.record(
            workload, table, operation, len(workload.keys), seconds, table.stats().insert_probes, wrong
        )

    def measure_find(self, table: Any, workload: Workload, present_share: float) -> Measurement:
        """How fast the keys of a table are found, and absent ones are not."""
        subject = self._subject_of(workload)
        asked, answers = subject.questions(present_share)
        got: list[Any] = []
        is_set = workload.values is None
        find = table.contains if is_set else table.find
        in_a_row = self._clock.in_a_row

        def run() -> None:
            got[:] = [find(asked) for _ in range(in_a_row)]

        seconds = [run_s / in_a_row for run_s in self.timed(run, got.clear)]
        values, found = (None, got[-1]) if is_set else got[-1]
        wrong = answers.mismatches(None if values is None else self._clock.back(values), self._clock.back(found))
        probes, words = self.read_per_key(table, asked)
        operation = f"find {100 * present_share:g}"
        return self.record(workload, table, operation, len(asked), seconds, probes, wrong, words)

    def read_per_key(self, table: Any, asked: Any) -> tuple[float, float]:
        """Buckets, and words of guests, that a find reads for a key: means over the first of these."""
        some = asked[:_COUNTED]
        probes = self._clock.back(table.probe_counts(some)).mean()
        has_guests = "guest_counts" in registry.get(table.design).capabilities
        return float(probes), float(self._clock.back(table.guest_counts(some)).mean()) if has_guests else 0.0

    def _subject_of(self, workload: Workload) -> _Subject:
        if self._subject is None or self._subject.workload is not workload:
            self._subject = _Subject(workload, self._clock)
        return self._subject

    def record(
        self,
        workload: Workload,
        table: Any,
        operation: str,
        n: int,
        runs: list[float],
        probes: float | None,
        wrong: int,
        words: float = 0.0,
    ) -> Measurement:
        """What ``runs`` seconds for ``n`` keys each say of an operation on a table.

        ``probes``, ``words``: of `read_per_key`.
        """
        stats, seconds = table.stats(), float(np.median(runs))
        return Measurement(
            data=workload.name,
            design=stats.design,
            parameters=stats.parameters,
            device=table.device,
            n=len(workload.keys),
            load_factor=stats.load_factor,
            key_dtype=str(workload.keys.dtype),
            value_dtype=None if workload.values is None else str(workload.values.dtype),
            operation=operation,
            rate_per_s=n / seconds,
            seconds=seconds,
            repetitions=len(runs),
            probes_per_key=probes,
            bytes_per_pair=stats.bytes_per_pair,
            mismatches=wrong,
            ceiling_ratio=self._ceiling_ratio(workload, stats, operation, n / seconds, probes, words),
            utilisation=stats.memory_utilisation,
        )

    def _ceiling_ratio(
        self, workload: Workload, stats: Stats, operation: str, rate_per_s: float, probes: float | None, words: float
    ) -> float | None:
        if self._ceilings is None:
            return None
        value_bytes = 0 if workload.values is None else workload.values.itemsize
        reads = reads_of(workload.keys.itemsize, value_bytes, stats.design, stats.parameters)
        try:
            return self._ceilings.ratio(reads, stats.nbytes, operation, rate_per_s, probes, words)
        except MemoryError:  # the table was worth measuring without a second one beside it
            return None


class _Subject:
    """A workload on the device with its right answers, which all designs are held against."""

    def __init__(self, workload: Workload, clock: HostClock) -> None:
        self.workload, self._clock = workload, clock
        self.oracle = Oracle(workload.keys, workload.values, clock.argsort)
        columns = [workload.keys] if workload.values is None else [workload.keys, workload.values]
        self.arrays = [clock.here(column) for column in columns]
        self._sum = _sum_of(workload.keys, workload.values)
        self._questions: dict[float, tuple[Any, Answers]] = {}

    def wrong_items(self, keys: Array, values: Array | None) -> int:
        """How many pairs of a table are lost, doubled or invented.

        Right ones are known by their number and their sum, in a tenth of the time that the oracle needs to sort them.
        Of repeated keys any value is right, which only the oracle can tell.
        """
        all_differ = self.oracle.distinct == len(self.workload.keys)
        if all_differ and len(keys) == self.oracle.distinct and _sum_of(keys, values) == self._sum:
            return 0
        return self.oracle.check_items(keys, values)

    def questions(self, share: float) -> tuple[Any, Answers]:
        if share not in self._questions:
            asked, _ = queries(self.workload, share, len(self.workload.keys), seed=1)
            self._questions[share] = self._clock.here(asked), self.oracle.answers(asked)
        return self._questions[share]


def _sum_of(keys: Array, values: Array | None) -> int:
    """The sum of 64 mixed bits of each pair: the same in any order, and for other pairs by a chance of 2^-64."""
    total = 0
    for at in range(0, len(keys), _PIECE):
        x = _mixed(_bits(keys[at : at + _PIECE]))
        if values is not None:
            x = _mixed(x + _bits(values[at : at + _PIECE]))
        total += int(x.sum())
    return total % (1 << 64)


def _bits(items: Array) -> npt.NDArray[np.uint64]:
    return items.view(f"u{items.itemsize}").astype(np.uint64)


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of SplitMix64, in place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return x
