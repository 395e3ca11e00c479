"""Make one measurement: build a table, time an operation, verify its answers, and record all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import HashMap, HashSet, Stats
from ...designs import registry
from ...errors import EngineUnavailable
from ...runtime import program_log
from ..data.random_words import mixed
from ..data.workloads import Workload, queries
from . import turns
from .ceilings import Ceiling, Ceilings, reads_of
from .clocks import HostClock, clock_of
from .oracle import Answers, Oracle

__all__ = ["Lab", "Measurement", "Setting"]

Array = npt.NDArray[Any]

_ENOUGH_S = 0.2
"""Seconds after which no further run of an operation begins."""
_COUNTED = 1 << 20
"""Most keys whose probes are counted. So many give four digits of the mean."""
_PIECE = 1 << 14
"""Pairs that are summed at once. So many fit in a cache."""


@dataclass(frozen=True)
class Setting:
    """A design and its parameters, in the form that a table takes."""

    design: str
    parameters: dict[str, Any]

    @property
    def keywords(self) -> dict[str, Any]:
        """The design and its parameters as keyword arguments of a table."""
        return {"design": self.design, **self.parameters}

    @property
    def label(self) -> str:
        """``"bucketed_cuckoo b=16"``."""
        short = {"slots_per_bucket": "b", "threshold": "t", "hashes": "h"}
        parts = [f"{short.get(name, name)}={value}" for name, value in self.parameters.items()]
        return " ".join([self.design, *parts])


@dataclass(frozen=True)
class Measurement:
    """One rate, with the figures that are needed to judge it.

    Attributes
    ----------
    data, n, key_dtype, value_dtype
        The workload. ``value_dtype`` is None for a set.
    design, parameters, load_factor, bytes_per_pair
        The table. ``load_factor`` is the load factor that the table reached.
    operation
        ``"build"``; ``"build unique"`` (with ``assume_unique``); ``"insert"`` or ``"insert unique"`` into an empty
        table; ``"find 100"``: lookups, with the per cent of present keys; or ``"mix 20 20 30 30"``: the per cents of
        inserts of new keys, erases, finds of present keys and finds of absent keys, all at once (`lab.figures.mixes`).
    rate_per_s, seconds, repetitions
        Keys (or operations of a mix) per second in the median run, seconds of that run, and number of runs.
    probes_per_key
        Buckets read for each key. None if they were not counted.
    mismatches
        Wrong answers in the same run. A rate with a mismatch is void.
    ceiling_ratio
        Share of the memory's ceiling (`ceilings`), measured in the same run. The ceiling of a find is the rate of
        random reads of a bucket, and of a value if values lie apart. The ceiling of other operations is the rate of
        reads with a swap. If no probes were counted, as in a build without ``count_probes=True``, each key counts as
        one probe, and the ratio is a lower bound. None if no ceiling was measured: nobody wanted one, or there was no
        memory for it, or no compiler for its kernels.
    utilisation
        Bytes of pairs over bytes of the buckets and nodes in use: `Stats.memory_utilisation`.
    table_bytes
        Memory of the table: `Stats.nbytes`.
    words_per_key
        Words of guests read for each key of a find. None if they were not counted.
    least_seconds, most_seconds
        Seconds of the fastest run and of the slowest. None in files from before these were kept.
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
    table_bytes: int = 0
    words_per_key: float | None = None
    least_seconds: float | None = None
    most_seconds: float | None = None

    @property
    def rates_per_s(self) -> tuple[float, float]:
        """The rates of the slowest run and of the fastest; twice that of the median run if the others are not known."""
        seconds = (self.most_seconds or self.seconds, self.least_seconds or self.seconds)
        slowest, fastest = (self.rate_per_s * (self.seconds / each) for each in seconds)
        return slowest, fastest

    @property
    def batch(self) -> int:
        """Keys of one call."""
        return round(self.rate_per_s * self.seconds)


class Lab:
    """Runs measurements on one device.

    Parameters
    ----------
    device
        ``"cpu"`` or ``"cuda"``. On a GPU, all arrays are CuPy's or PyTorch's, and events of the GPU measure the times.
    repetitions
        Most timed runs of each operation. After a fifth of a second, no further run begins.
    with_ceilings
        Whether to measure each rate's share of its ceiling, too.
    warms_up
        Whether each operation runs once untimed on a CPU, too.

    Attributes
    ----------
    memory
        Measures what the memory of the device allows.
    most_warming
        Elements of an untimed run that loads kernels. A whole one takes seconds where slots are in the host's memory.
    """

    most_warming = 1 << 16

    def __init__(
        self, device: str, repetitions: int = 3, *, with_ceilings: bool = False, warms_up: bool = False
    ) -> None:
        self.device, self.repetitions, self._warms_up = device, repetitions, warms_up
        self.memory = Ceilings(device)
        self._clock, self._with_ceilings = clock_of(device), with_ceilings
        self._subject: _Subject | None = None

    @property
    def machine(self) -> str:
        """Name of the processor or the GPU."""
        return self._clock.machine

    @property
    def ceilings(self) -> list[Ceiling]:
        """The ceilings that were measured so far."""
        return self.memory.measured

    def here(self, array: Any) -> Any:
        """Copy an array of the host or of `arrays` to the device, unless it is there."""
        return self._clock.here(array)

    def columns(self, workload: Workload) -> list[Any]:
        """The keys of a workload, and its values if it has values, on the device."""
        return [self.here(column) for column in (workload.keys, workload.values) if column is not None]

    @property
    def arrays(self) -> Any:
        """The array module of the device: NumPy, or CuPy on a GPU that has CuPy."""
        return self._clock.arrays

    def back(self, array: Any) -> Array:
        """Copy an array of the device to the host, as a NumPy array."""
        return self._clock.back(array)

    @staticmethod
    def address_of(array: Any) -> int:
        """Where an array of `arrays` begins."""
        address: int = array.ctypes.data if hasattr(array, "ctypes") else array.data.ptr
        return address

    def wrong_pairs(self, table: Any, columns: Sequence[Any]) -> int:
        """Look up all keys of a table that was built from distinct keys: how many pairs are lost, changed or invented.

        Parameters
        ----------
        columns
            The keys on the device, and their values unless the table is a set.
        """
        keys, *values = columns
        answers = table.find(keys) if values else (table.contains(keys),)
        if self.arrays is np:
            answers, values = map(self.back, answers), list(map(self.back, values))
        *found_values, found = answers
        wrong = ~found
        for ours, right in zip(found_values, values, strict=True):
            wrong |= ours != right
        return int(wrong.sum()) + abs(len(table) - len(keys))

    def release(self) -> None:
        """Give memory back that the array library keeps for arrays to come, so that a table can have it."""
        self._clock.release()

    def argsort(self, array: Any) -> Any:
        """The indices that sort an array of integers. Both are of `arrays`."""
        return self._clock.argsort(array)

    def collected(self, columns: Iterable[Any]) -> tuple[Any, ...]:
        """Arrays of the device, where `arrays` are."""
        return tuple(map(self.back, columns) if self.arrays is np else columns)

    def items(self, table: Any) -> tuple[Any, Any]:
        """The keys of a table and their values, None of a set, where `arrays` are."""
        like = str(self.arrays.__name__)
        return (table.keys(like=like), None) if isinstance(table, HashSet) else table.to_arrays(like=like)

    def oracle(self, keys: Any, values: Any) -> Oracle:
        """An oracle that works where `arrays` are."""
        return Oracle(keys, values, self.argsort, self.arrays)

    @property
    def warms_up(self) -> bool:
        """Whether each operation runs once untimed. On a GPU the first run loads the kernels."""
        return self._warms_up or self.device != "cpu"

    def time(self, run: Callable[[], Any]) -> float:
        """Seconds of one run."""
        return self._clock.time(run)

    def mark(self) -> Any:
        """A moment of the device, after all that it was asked for so far."""
        return self._clock.mark()

    def seconds_between(self, first: Any, last: Any) -> float:
        """Seconds between two moments that are over."""
        return self._clock.seconds_between(first, last)

    def laps(self, runs: Iterable[Callable[[], Any]]) -> list[float]:
        """Seconds from the start of the first run to the end of each run."""
        return self._clock.laps(runs)

    def timed(
        self,
        run: Callable[[], None],
        before: Callable[[], None] = lambda: None,
        warm: Callable[[], None] | None = None,
    ) -> list[float]:
        """Seconds of each run but those that loaded kernels (`program_log`).

        Parameters
        ----------
        before
            Called before each run, and not timed.
        warm
            Loads the kernels in less time than a whole run, which does so by default.
        """

        def timed_once(run: Callable[[], None]) -> float:
            before()
            return self.time(run)

        return self.repeated(partial(timed_once, run), partial(timed_once, warm or run))

    def repeated(self, run: Callable[[], float], warm: Callable[[], object] | None = None) -> list[float]:
        """As `timed`, of runs that time themselves: ``run`` returns its seconds."""
        seconds: list[float] = []
        if self.warms_up:
            (warm or run)()
        while not seconds or (len(seconds) < self.repetitions and sum(seconds) < _ENOUGH_S):
            loads = program_log.loads()
            run_s = run()
            if program_log.loads() == loads:
                seconds.append(run_s)
        return seconds

    def empty(self, workload: Workload, setting: Setting, load_factor: float | None, **options: Any) -> Any:
        """An empty table for the keys of a workload.

        ``load_factor`` is None if the parameters of the setting determine the size.
        """
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
        """Build a table from columns on the device: keys, or keys and values."""
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
        """Measure ``operations`` of one design on one workload. The finds use the table that was built last."""
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
        """Build a table of all keys of a workload, and measure how fast. Return the table and the measurement."""
        subject = self._subject_of(workload)
        unique = operation.endswith("unique")
        if unique and subject.oracle.distinct < len(workload.keys):
            unique = False  # keys repeat, so assume_unique would be wrong
        options = {"capacity": subject.oracle.distinct, **options}
        made: list[Any] = []
        if operation.startswith("insert"):
            made.append(self.empty(workload, setting, load_factor, **options))
            seconds = self.timed(
                lambda: made[0].insert(*subject.arrays, assume_unique=unique), before=lambda: made[0].clear()
            )
        else:
            # A CPU compiles the kernels of rare tables when it makes the first of them: no run has to.
            self.empty(workload, setting, None, capacity=1)
            seconds = self.timed(
                lambda: made.append(self.built(subject.arrays, setting, load_factor, unique=unique, **options)),
                before=made.clear,
            )
        table = made[0]
        wrong = subject.wrong_items(*self.items(table))
        return table, self.record(
            workload, table, operation, len(workload.keys), seconds, table.stats().insert_probes, wrong
        )

    def measure_find(
        self, table: Any, workload: Workload, present_share: float, n: int | None = None, exponent: float = 0.0
    ) -> Measurement:
        """Measure ``n`` lookups in a table, or as many as it has keys. A share of them asks for present keys.

        The present keys are drawn by Zipf's law with ``exponent`` (`workloads.queries`).
        """
        subject = self._subject_of(workload)
        asked, answers = subject.questions(present_share, n or len(workload.keys), exponent)

        def wrong(*got: Any) -> int:
            *values, found = self.collected(got)
            return answers.mismatches(values[0] if values else None, found)

        return self.measure_asked(workload, table, f"find {100 * present_share:g}", asked, wrong)

    def measure_asked(
        self, workload: Workload, table: Any, operation: str, asked: Any, wrong: Callable[..., int]
    ) -> Measurement:
        """Measure lookups of keys on the device. ``wrong`` counts the wrong answers, given those of the last run."""
        got: list[Any] = []
        is_set = workload.values is None
        find = table.contains if is_set else table.find
        in_a_row = self._clock.in_a_row

        def run() -> None:
            got[:] = [find(asked) for _ in range(in_a_row)]

        seconds = [run_s / in_a_row for run_s in self.timed(run, got.clear)]
        mismatches = wrong(got[-1]) if is_set else wrong(*got[-1])
        probes, words = self.read_per_key(table, asked)
        return self.record(workload, table, operation, len(asked), seconds, probes, mismatches, words)

    def read_per_key(self, table: Any, asked: Any) -> tuple[float, float]:
        """Mean buckets and mean words of guests that a find reads for a key, over the first `_COUNTED` keys."""
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
        """Make the measurement of an operation on a table, from the seconds of its ``runs`` of ``n`` keys each.

        ``probes`` and ``words`` are the results of `read_per_key`.
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
            least_seconds=min(runs),
            most_seconds=max(runs),
            probes_per_key=probes,
            bytes_per_pair=stats.bytes_per_pair,
            mismatches=wrong,
            ceiling_ratio=self._ceiling_ratio(workload, stats, operation, n / seconds, probes, words),
            utilisation=stats.memory_utilisation,
            table_bytes=stats.nbytes,
            words_per_key=words if operation.startswith("find") else None,
        )

    def _ceiling_ratio(
        self, workload: Workload, stats: Stats, operation: str, rate_per_s: float, probes: float | None, words: float
    ) -> float | None:
        if not self._with_ceilings:
            return None
        value_bytes = 0 if workload.values is None else workload.values.itemsize
        reads = reads_of(workload.keys.itemsize, value_bytes, stats.design, stats.parameters)
        try:
            return self.memory.ratio(reads, stats.nbytes, operation, rate_per_s, probes, words)
        except (MemoryError, EngineUnavailable):
            # There is no room for the ceiling's region beside the table, or no compiler for the kernels that read it.
            # The rate is still worth reporting.
            return None


class _Subject:
    """A workload on the device, with the right answers that all designs must give."""

    def __init__(self, workload: Workload, clock: HostClock) -> None:
        self.workload, self._clock = workload, clock
        columns = [workload.keys] if workload.values is None else [workload.keys, workload.values]
        self.arrays = [clock.here(column) for column in columns]
        self.oracle = Oracle(workload.keys, workload.values, clock.argsort, clock.arrays)
        self._sum = self._sum_of(workload.keys, workload.values)
        self._questions: dict[tuple[float, int, float], tuple[Any, Answers]] = {}

    def wrong_items(self, keys: Array, values: Array | None) -> int:
        """Number of lost, doubled or invented pairs of a table.

        If the keys are distinct, the number of pairs and a sum over the pairs show that all are right, in a tenth of
        the time that the oracle needs to sort. If keys repeat, any of a key's values is right, and only the oracle can
        decide.
        """
        has_all = self.oracle.distinct == len(self.workload.keys) == len(keys)
        if has_all and self._sum_of(keys, values) == self._sum:
            return 0
        return self.oracle.check_items(keys, values)

    def _sum_of(self, keys: Any, values: Any) -> int:
        arrays = self._clock.arrays
        here = arrays.asarray(keys), None if values is None else arrays.asarray(values)
        with turns.away_with(arrays):
            return _sum_of(*here, _PIECE if arrays is np else len(keys))

    def questions(self, share: float, n: int, exponent: float) -> tuple[Any, Answers]:
        key = share, n, exponent
        if key not in self._questions:
            with turns.away():
                asked, _ = queries(self.workload, share, n, seed=1, exponent=exponent)
            self._questions[key] = self._clock.here(asked), self.oracle.answers(asked)
        return self._questions[key]


def _sum_of(keys: Any, values: Any, piece: int) -> int:
    """Sum of a 64-bit hash of each pair, in any order. Wrong pairs have the same sum with probability 2^-64.

    ``piece`` pairs are in work at a time.
    """
    total = 0
    for at in range(0, len(keys), max(1, piece)):
        x = mixed(_bits(keys[at : at + piece]))
        if values is not None:
            x = mixed(x + _bits(values[at : at + piece]))
        total += int(x.sum())
    return total % (1 << 64)


def _bits(items: Any) -> Any:
    return items.view(f"u{items.itemsize}").astype(np.uint64)
