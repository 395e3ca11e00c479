"""Compare warphash with its rivals: same keys, same lookups, same threads, same run, every answer verified.

All get the same knowledge: nobody is told that the keys differ. The rivals are what people use today for this work on a
CPU (`rivals`). Libraries that make their table in every lookup have no rate of builds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ... import HashMap, get_num_threads
from ..bench.oracle import Answers, Oracle
from ..data.workloads import Array, Workload, make, queries
from . import Rival, available, missing

__all__ = ["SHARES", "Contest", "contest_of", "hold", "not_measured", "timed", "workloads_of"]

_RANDOM_TYPES = ("int32", "int64")

SHARES = (1.0, 0.5, 0.0)
"""Of present keys among the keys that are looked up."""

_RUNS = 3


@dataclass(frozen=True)
class Contest:
    """Rates of the median run of one contestant in keys per second, and the wrong answers of all lookups.

    Attributes
    ----------
    build_per_s
        None for a library that builds its table in each lookup.
    present_per_s, half_per_s, absent_per_s
        Lookups of keys of which all, half and none are present.
    threads
        Most threads that each contestant may use.
    spreads
        By operation, the rates of the slowest run and of the fastest. Empty in files from before these were kept.
    """

    data: str
    name: str
    n: int
    build_per_s: float | None
    present_per_s: float
    half_per_s: float
    absent_per_s: float
    mismatches: int
    threads: int
    spreads: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def rates(self) -> dict[str, float]:
        """The rates by the names of operations (`runner.Measurement`)."""
        finds = {"find 100": self.present_per_s, "find 50": self.half_per_s, "find 0": self.absent_per_s}
        return finds if self.build_per_s is None else {"build": self.build_per_s, **finds}

    @property
    def threads_told(self) -> str:
        """``"2 threads"``."""
        return f"{self.threads} thread{'s' if self.threads > 1 else ''}"


def workloads_of(measured: Sequence[Workload], seed: int) -> list[Workload]:
    """What the contest is held on: data as they are; random keys as int32 and as int64, which libraries treat apart.

    The values of random keys are as wide as the keys.
    """
    found = []
    for workload in measured:
        kinds = _RANDOM_TYPES if workload.name == "random" else ()
        drawn = [replace(make(len(workload.keys), kind, f"u{kind}", seed), name=f"random {kind}") for kind in kinds]
        found += drawn or [workload]
    return found


def hold(workload: Workload, load_factor: float, note: Callable[[str], None] = lambda _: None) -> Iterator[Contest]:
    """Measure warphash by default and for lookups alone, then every installed rival that can take so many keys."""
    lookups = lookups_of(workload)
    ours = _warphash("warphash", load_factor), _warphash("warphash for queries", load_factor, priorities=("query",))
    for contestant in (*ours, *available()):
        if len(workload.keys) <= contestant.most_keys:
            note(f"{workload.name}: {contestant.name}")
            yield contest_of(contestant, workload, lookups)


def not_measured(n: int) -> dict[str, str]:
    """The rivals that a contest of ``n`` keys leaves out, by rival or library, and why."""
    slow = {r.name: f"takes {r.most_keys:,} keys at most" for r in available() if r.most_keys < n}
    return {**slow, **dict.fromkeys(missing(), "not installed")}


def lookups_of(workload: Workload) -> list[tuple[Array, Answers]]:
    """The keys that are looked up for each of `SHARES`, as many as there are pairs, and the right answers."""
    oracle = Oracle(workload.keys, None)
    asked = [queries(workload, share, len(workload.keys), seed=1)[0] for share in SHARES]
    return [(keys, oracle.answers(keys)) for keys in asked]


def contest_of(
    contestant: Rival, workload: Workload, lookups: Sequence[tuple[Array, Answers]] | None = None
) -> Contest:
    """Measure one contestant with all pairs of a workload. ``lookups`` are `lookups_of` that workload."""
    n = len(workload.keys)
    seconds, table = timed(contestant.build, workload.keys, workload.values)
    runs, wrong = {"build": seconds} if contestant.builds else {}, 0
    for share, (keys, answers) in zip(SHARES, lookups or lookups_of(workload), strict=True):
        runs[f"find {share:.0%}".removesuffix("%")], found = timed(contestant.find, table, keys)
        wrong += answers.mismatches(None, np.asarray(found))
    medians = {operation: n / statistics.median(seconds) for operation, seconds in runs.items()}
    return Contest(
        data=workload.name,
        name=contestant.name,
        n=n,
        build_per_s=medians.get("build"),
        present_per_s=medians["find 100"],
        half_per_s=medians["find 50"],
        absent_per_s=medians["find 0"],
        mismatches=wrong,
        threads=get_num_threads(),
        spreads={operation: (n / max(seconds), n / min(seconds)) for operation, seconds in runs.items()},
    )


def _warphash(name: str, load_factor: float, **options: Any) -> Rival:
    def build(keys: Any, values: Any) -> Any:
        return HashMap.from_arrays(keys, values, device="cpu", load_factor=load_factor, **options)

    return Rival(name, build, lambda table, keys: table.find(keys)[1])


def timed(run: Callable[..., Any], *arguments: Any) -> tuple[list[float], Any]:
    """Run a few times: the seconds of each run, and what the last one has made."""
    seconds = []
    for _ in range(_RUNS):
        made = None  # free a result before the next one is made
        start = time.perf_counter()
        made = run(*arguments)
        seconds.append(time.perf_counter() - start)
    return seconds, made
