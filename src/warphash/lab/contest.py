"""Our table against the rivals: same keys, same questions, same run, every answer verified."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..table import HashMap
from .oracle import Oracle
from .rivals import Rival, available
from .workloads import Workload, queries

__all__ = ["Contest", "hold"]


@dataclass(frozen=True)
class Contest:
    """Rates of one contestant, keys per second; ``mismatches`` over both lookups."""

    name: str
    n: int
    build_per_s: float
    present_per_s: float
    absent_per_s: float
    mismatches: int


def hold(workload: Workload, seed: int, note: Callable[[str], None] = lambda _: None) -> list[Contest]:
    """Measure warphash, then every rival that is installed."""
    assert workload.values is not None
    contestants = [_warphash(), *(r for r in available() if len(workload.keys) <= r.most_keys)]
    oracle = Oracle(workload.keys, None)
    asked = {share: queries(workload, share, len(workload.keys), seed)[0] for share in (1, 0)}
    results = []
    for contestant in contestants:
        note(f"{workload.name}: {contestant.name}")
        seconds, table = _timed(lambda c=contestant: c.build(workload.keys, workload.values))  # type: ignore[misc]
        rates, wrong = [], 0
        for share in (1, 0):
            took, found = _timed(lambda c=contestant, t=table, s=share: c.find(t, asked[s]))  # type: ignore[misc]
            rates.append(len(asked[share]) / took)
            wrong += oracle.find_mismatches(asked[share], None, np.asarray(found))
        results.append(Contest(contestant.name, len(workload.keys), len(workload.keys) / seconds, *rates, wrong))
    return results


def _warphash() -> Rival:
    def build(keys: Any, values: Any) -> Any:
        return HashMap.from_arrays(keys, values, device="cpu", assume_unique=True, load_factor=0.8)

    return Rival("warphash", build, lambda table, keys: table.find(keys)[1])


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """The faster of two runs, and what it gave."""
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        made = run()
        best = min(best, time.perf_counter() - start)
    return best, made
