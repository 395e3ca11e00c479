"""Compare warphash with its rivals: same keys, same lookups, same threads, same run, every answer verified.

All get the same knowledge: nobody is told that the keys differ. The rivals are what people use today for this work on a
CPU (`rivals`). Libraries that make their table in every lookup have no rate of builds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import HashMap, get_num_threads
from .oracle import Oracle
from .rivals import Rival, available
from .workloads import Workload, make, queries

__all__ = ["SHARES", "Contest", "contest_of", "faster_of_two", "hold", "workloads_of"]

_RANDOM_TYPES = ("int32", "int64")

SHARES = (1.0, 0.5, 0.0)
"""Of present keys among the keys that are looked up."""


@dataclass(frozen=True)
class Contest:
    """Rates of one contestant in keys per second, and the wrong answers of all lookups.

    Attributes
    ----------
    build_per_s
        None for a library that builds its table in each lookup.
    present_per_s, half_per_s, absent_per_s
        Lookups of keys of which all, half and none are present.
    threads
        Most threads that each contestant may use.
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

    @property
    def rates(self) -> dict[str, float]:
        """The rates by the names of operations (`runner.Measurement`)."""
        finds = {"find 100": self.present_per_s, "find 50": self.half_per_s, "find 0": self.absent_per_s}
        return finds if self.build_per_s is None else {"build": self.build_per_s, **finds}

    @property
    def threads_told(self) -> str:
        """``"2 threads"``."""
        return f"{self.threads} thread{'s' if self.threads > 1 else ''}"


def workloads_of(measured: Sequence[Workload], values: str, seed: int) -> list[Workload]:
    """What the contest is held on: data as they are; random keys as int32 and as int64, which libraries treat apart."""
    found = []
    for workload in measured:
        kinds = _RANDOM_TYPES if workload.name == "random" else ()
        drawn = [replace(make(len(workload.keys), kind, values, seed), name=f"random {kind}") for kind in kinds]
        found += drawn or [workload]
    return found


def hold(workload: Workload, load_factor: float, note: Callable[[str], None] = lambda _: None) -> Iterator[Contest]:
    """Measure warphash, then every installed rival that can take so many keys."""
    for contestant in (_warphash(load_factor), *available()):
        if len(workload.keys) <= contestant.most_keys:
            note(f"{workload.name}: {contestant.name}")
            yield contest_of(contestant, workload)


def contest_of(contestant: Rival, workload: Workload) -> Contest:
    """Measure one contestant with all pairs of a workload."""
    n = len(workload.keys)
    oracle = Oracle(workload.keys, None)
    build_seconds, table = faster_of_two(contestant.build, workload.keys, workload.values)
    rates, wrong = [], 0
    for share in SHARES:
        keys = queries(workload, share, n, seed=1)[0]
        seconds, found = faster_of_two(contestant.find, table, keys)
        rates.append(n / seconds)
        wrong += oracle.answers(keys).mismatches(None, np.asarray(found))
    build = n / build_seconds if contestant.builds else None
    present, half, absent = rates
    return Contest(workload.name, contestant.name, n, build, present, half, absent, wrong, get_num_threads())


def _warphash(load_factor: float) -> Rival:
    def build(keys: Any, values: Any) -> Any:
        return HashMap.from_arrays(keys, values, device="cpu", load_factor=load_factor)

    return Rival("warphash", build, lambda table, keys: table.find(keys)[1])


def faster_of_two(run: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Run twice: seconds of the faster run, and what the second run has made."""
    best = float("inf")
    for _ in range(2):
        made = None  # free the first result before the second is made
        start = time.perf_counter()
        made = run(*arguments)
        best = min(best, time.perf_counter() - start)
    return best, made
