"""Compare warphash with its rivals: same keys, same lookups, same threads, same run, every answer verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import HashMap
from .oracle import Oracle
from .rivals import Rival, available
from .workloads import Workload, queries

__all__ = ["Contest", "contest_of", "faster_of_two", "hold"]


@dataclass(frozen=True)
class Contest:
    """Rates of one contestant in keys per second, and the wrong answers of both lookups.

    ``build_per_s`` is None for a library that builds its table in each lookup.
    """

    data: str
    name: str
    n: int
    build_per_s: float | None
    present_per_s: float
    absent_per_s: float
    mismatches: int


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
    asked = [queries(workload, share, n, seed=1)[0] for share in (1, 0)]
    build_seconds, table = faster_of_two(contestant.build, workload.keys, workload.values)
    rates, wrong = [], 0
    for keys in asked:
        seconds, found = faster_of_two(contestant.find, table, keys)
        rates.append(n / seconds)
        wrong += oracle.answers(keys).mismatches(None, np.asarray(found))
    present, absent = rates
    build = n / build_seconds if contestant.builds else None
    return Contest(workload.name, contestant.name, n, build, present, absent, wrong)


def _warphash(load_factor: float) -> Rival:
    def build(keys: Any, values: Any) -> Any:
        return HashMap.from_arrays(keys, values, device="cpu", assume_unique=True, load_factor=load_factor)

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
