"""Sweeps: vary one thing of a table or of its batches, and measure each point beside its limits.

``size``
    Pairs of a table, from 1,000 on. A batch has as many keys as the table, up to `numbered.PIECE`.
``load``
    Load factor, up to the highest that a design is safe at.
``hits``
    Per cent of the looked-up keys that are present.
``skew``
    Exponent of Zipf's law, by which keys are looked up, or drawn for an upsert that adds to their values. All are
    present. With 0, all are equally likely.
``batch``
    Keys of one call over keys of the table: lookups, inserts of new keys and erases.

All answers are checked in the same run: by the oracle (`oracle`), or in a sweep of sizes by the numbers of the
pairs (`numbered`), because the host has no room for the oracle of the largest tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import HashMap, HashSet
from ...errors import ParameterError, WarphashError
from ..data import workloads
from ..data.workloads import Workload, queries
from . import turns
from .ceilings import Ceilings
from .limits import Limit, Limits
from .numbered import PIECE, Numbered, measure_numbered
from .runner import Lab, Measurement, Setting
from .standard import OPERATIONS, check_type, load_factor_of

__all__ = ["SWEEPS", "Sweep", "SweepConfig", "SweepPoint", "automatic", "config_for", "most_keys", "run"]

_FEWEST_KEYS = 1_000

_KEYS = {"cpu": 1_000_000, "cuda": 50_000_000}
"""Keys of a table in a sweep of anything but its size, if the memory takes so many."""

_MOST_4_BYTE_KEYS = 1 << 31
"""Half of all keys of 4 bytes. The others are absent ones."""

_USED_SHARE = 0.9
"""Share of the free memory that a sweep of sizes takes."""

_COPIED_FROM = 0.8
"""Load factor above which an insert may fail by its size, so the table is copied before it."""

_MAKING_BYTES = 16
"""Memory for each pair of a build while the pairs are made."""

_PIECE_BYTES = 200
"""Memory for each key of a batch: its column and its answers, those of eight lookups in a row, and scratch memory."""


@dataclass(frozen=True)
class SweepConfig:
    """What all points of a sweep share.

    Attributes
    ----------
    n
        Keys of a table; in a sweep of sizes, those of the largest.
    load_factor
        Of the tables, unless it is swept. A design that cannot reach it takes less.
    key, value
        NumPy types of keys and values. ``value`` is None for a set.
    seed
        Of keys and hash constants.
    """

    n: int
    load_factor: float
    key: str
    value: str | None
    seed: int


@dataclass(frozen=True)
class SweepPoint:
    """One rate of a sweep.

    Attributes
    ----------
    panel
        The panel of the picture: the operation, or ``"find"`` where the sweep varies what finds ask for.
    x
        What was varied.
    measurement
        The rate, and what it was measured on.
    limit
        Its limits. None if the memory had no room to measure them.
    """

    panel: str
    x: float
    measurement: Measurement
    limit: Limit | None


Note = Callable[[str], None]
Points = Iterator[SweepPoint]


@dataclass(frozen=True)
class Sweep:
    """One kind of sweep.

    Attributes
    ----------
    title, axis
        Of its picture, and of the horizontal axis there.
    is_logarithmic
        Whether that axis is.
    points
        Measures all points, given a laboratory, limits, a configuration, settings, and a function that is
        told what is measured.
    """

    title: str
    axis: str
    is_logarithmic: bool
    points: Callable[[Lab, Limits, SweepConfig, Sequence[Setting], Note], Points]


def run(name: str, lab: Lab, config: SweepConfig, settings: Sequence[Setting], limits: Limits, note: Note) -> Points:
    """Measure a sweep, and yield each point when it is measured.

    Raises
    ------
    MemoryError
        If a table has no room. The points before it were yielded.
    """
    return SWEEPS[name].points(lab, limits, config, settings, note)


def config_for(
    name: str, memory: Ceilings, n: int | None, load_factor: float, key: str, value: str | None, seed: int
) -> SweepConfig:
    """Configure a sweep. Without ``n``, a table of a sweep of sizes has as many keys as the memory takes.

    Raises
    ------
    ParameterError, DtypeError
        If there is no such sweep, or no such type.
    """
    if name not in SWEEPS:
        raise ParameterError(f"--sweep must be one of {', '.join(SWEEPS)}, got {name!r}")
    for given in (key, value):
        check_type(given)
    config = SweepConfig(n or _FEWEST_KEYS, load_factor, key, value, seed)
    if n is None:
        most = most_keys(memory, config)
        config = replace(config, n=most if name == "size" else min(most, _KEYS["cuda" if memory.on_gpu else "cpu"]))
    return config


def automatic(config: SweepConfig, device: str) -> Setting:
    """The design and the parameters that ``design="auto"`` chooses for the tables of a sweep."""
    options: dict[str, Any] = {"capacity": 1, "load_factor": config.load_factor, "device": device}
    made: Any = HashSet(config.key, **options) if config.value is None else HashMap(config.key, config.value, **options)
    return Setting(made.design, dict(made.stats().parameters))


def most_keys(memory: Ceilings, config: SweepConfig) -> int:
    """About as many keys as a table in a sweep of sizes can have in the free memory of the device."""
    copies = 1 if config.load_factor <= _COPIED_FROM else 2
    free, slot = memory.free_bytes() * _USED_SHARE, copies * _pair_bytes(config) / config.load_factor
    most = int(max(min(PIECE, free / (slot + _PIECE_BYTES)), (free - PIECE * _PIECE_BYTES) / slot))
    return max(_FEWEST_KEYS, most if np.dtype(config.key).itemsize > 4 else min(most, _MOST_4_BYTE_KEYS))


def _builds(memory: Ceilings, config: SweepConfig) -> bool:
    """Whether the device has room for a build: the table, and the pairs with two copies of them in another order."""
    whole = config.n * (_pair_bytes(config) * (1 / config.load_factor + 3) + _MAKING_BYTES)
    return whole + min(config.n, PIECE) * _PIECE_BYTES < memory.free_bytes() * _USED_SHARE


def _pair_bytes(config: SweepConfig) -> int:
    return np.dtype(config.key).itemsize + (0 if config.value is None else np.dtype(config.value).itemsize)


def sizes_up_to(n: int) -> list[int]:
    """Sizes of tables: 1,000, 3,000, 10,000 and so on, and ``n`` as the last."""
    steps = (factor * 10**power for power in range(3, 16) for factor in (1, 3))
    return [*(size for size in steps if size < n), n]


def _sizes(lab: Lab, limits: Limits, config: SweepConfig, settings: Sequence[Setting], note: Note) -> Points:
    for n in sizes_up_to(config.n):
        for setting in settings:
            of_size = replace(config, n=n, load_factor=load_factor_of(setting, config.load_factor))
            pairs = Numbered(lab, config.key, config.value, n, config.seed)
            lab.release()
            builds = _builds(lab.memory, of_size)
            found = list(
                measure_numbered(lab, setting, of_size.load_factor, pairs, builds=builds, note=note, seed=config.seed)
            )
            yield from (SweepPoint(m.operation, n, m, limits.of(m)) for m in found)


def _loads(lab: Lab, limits: Limits, config: SweepConfig, settings: Sequence[Setting], note: Note) -> Points:
    workload = _workload(config)
    for setting in settings:
        for load in _LOADS:
            if load <= load_factor_of(setting, 1.0):
                for m in lab.measure(workload, setting, load, OPERATIONS, note=note, seed=config.seed):
                    yield SweepPoint(m.operation, load, m, limits.of(m))


def _hits(lab: Lab, limits: Limits, config: SweepConfig, settings: Sequence[Setting], note: Note) -> Points:
    for setting, workload, table in _tables(lab, config, settings):
        for per_cent in _HITS:
            note(f"{setting.label}, {per_cent} % present")
            m = lab.measure_find(table, workload, per_cent / 100)
            yield SweepPoint("find", per_cent, m, limits.of(m))


def _skew(lab: Lab, limits: Limits, config: SweepConfig, settings: Sequence[Setting], note: Note) -> Points:
    for setting, workload, table in _tables(lab, config, settings):
        for exponent in _EXPONENTS:
            note(f"{setting.label}, Zipf {exponent}")
            m = lab.measure_find(table, workload, 1.0, exponent=exponent)
            yield SweepPoint(m.operation, exponent, m, limits.of(m))
            if workload.values is not None:
                m = _measure_upsert(lab, config, workload, setting, exponent)
                yield SweepPoint(m.operation, exponent, m, limits.of(m))


def _batches(lab: Lab, limits: Limits, config: SweepConfig, settings: Sequence[Setting], note: Note) -> Points:
    for setting, workload, table in _tables(lab, config, settings):
        for share in _BATCHES:
            n = max(1, round(share * config.n))
            note(f"{setting.label}, batches of {n:,}")
            for present in (1.0, 0.0):
                m = lab.measure_find(table, workload, present, n)
                yield SweepPoint(m.operation, share, m, limits.of(m))
            if n <= config.n:
                for measure in (_measure_insert, _measure_erase):
                    m = measure(lab, config, workload, setting, n)
                    yield SweepPoint(m.operation, share, m, limits.of(m))


def _tables(lab: Lab, config: SweepConfig, settings: Sequence[Setting]) -> Iterator[tuple[Setting, Workload, Any]]:
    """A table of all keys for each setting, which was checked."""
    workload = _workload(config)
    for setting in settings:
        table, built = lab.measure_build(
            workload, setting, load_factor_of(setting, config.load_factor), seed=config.seed
        )
        if built.mismatches:
            raise WarphashError(
                f"{built.mismatches:,} pairs of a table of {setting.label} are wrong: nothing was measured"
            )
        yield setting, workload, table
        del table


def _measure_insert(lab: Lab, config: SweepConfig, workload: Workload, setting: Setting, n: int) -> Measurement:
    """Insert the last ``n`` keys, which are new, into a table of the others."""
    columns = lab.columns(workload)
    others = len(workload.keys) - n
    load = load_factor_of(setting, config.load_factor)
    made: list[Any] = []
    added: list[Any] = []

    def begin() -> None:
        made.clear()
        made.append(lab.empty(workload, setting, load, seed=config.seed))
        if others:
            made[0].insert(*(column[:others] for column in columns), assume_unique=True)

    def insert() -> None:
        added[:] = [made[0].insert(*(column[others:] for column in columns))]

    seconds = lab.timed(insert, begin)
    wrong = int((~lab.back(added[0])).sum())
    wrong += _wrong_pairs(lab, made[0], workload.keys, workload.values)
    return lab.record(workload, made[0], "insert", n, seconds, None, wrong)


def _measure_erase(lab: Lab, config: SweepConfig, workload: Workload, setting: Setting, n: int) -> Measurement:
    """Erase the first ``n`` keys from a table of all keys."""
    columns = lab.columns(workload)
    load = load_factor_of(setting, config.load_factor)
    made: list[Any] = []
    erased: list[Any] = []

    def begin() -> None:
        made.clear()
        made.append(lab.built(columns, setting, load, capacity=len(workload.keys), seed=config.seed))

    def erase() -> None:
        erased[:] = [made[0].erase(columns[0][:n])]

    seconds = lab.timed(erase, begin)
    wrong = int((~lab.back(erased[0])).sum())
    left = None if workload.values is None else workload.values[n:]
    wrong += _wrong_pairs(lab, made[0], workload.keys[n:], left)
    return lab.record(workload, made[0], "erase", n, seconds, None, wrong)


def _measure_upsert(
    lab: Lab, config: SweepConfig, workload: Workload, setting: Setting, exponent: float
) -> Measurement:
    """Add one to the values of as many keys as a table has. The keys are present, and drawn by Zipf's law."""
    assert workload.values is not None
    columns, n = lab.columns(workload), len(workload.keys)
    load = load_factor_of(setting, config.load_factor)
    with turns.away():
        drawn, _ = queries(workload, 1.0, n, config.seed, exponent)
        order = np.argsort(workload.keys)
        times = np.empty(n, np.int64)
        times[order] = np.bincount(np.searchsorted(workload.keys, drawn, sorter=order), minlength=n)
        right = workload.values + times.astype(workload.values.dtype)
    asked, ones = lab.here(drawn), lab.here(np.ones(n, workload.values.dtype))
    made: list[Any] = []
    added: list[Any] = []

    def begin() -> None:
        made.clear()
        made.append(lab.built(columns, setting, load, capacity=n, seed=config.seed))

    def upsert() -> None:
        added[:] = [made[0].upsert(asked, ones, "add")]

    seconds = lab.timed(upsert, begin)
    wrong = int(lab.back(added[0]).sum()) + _wrong_pairs(lab, made[0], workload.keys, right)
    return lab.record(workload, made[0], "upsert add", n, seconds, None, wrong)


def _wrong_pairs(lab: Lab, table: Any, keys: Any, values: Any) -> int:
    return lab.oracle(keys, values).check_items(*lab.items(table))


def _workload(config: SweepConfig) -> Workload:
    with turns.away():
        return workloads.make(config.n, config.key, config.value, config.seed)


_LOADS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)
_HITS = (0, 10, 25, 50, 75, 90, 100)
_EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
_BATCHES = (1 / 1024, 1 / 256, 1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)

SWEEPS = {
    "size": Sweep("Size of the table", "pairs in the table", True, _sizes),
    "load": Sweep("Load factor", "load factor", False, _loads),
    "hits": Sweep("Share of present keys", "per cent of looked-up keys that are present", False, _hits),
    "skew": Sweep("Skew of the keys of a batch", "exponent of Zipf's law", False, _skew),
    "batch": Sweep("Size of the batch", "keys of a call over keys of the table", True, _batches),
}
"""All sweeps by their names."""
