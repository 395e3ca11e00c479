"""Tests of counting what the routing of keys to subtables costs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from warphash import HashMap
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data import workloads
from warphash.lab.figures import routing
from warphash.lab.figures.routing import measure_routing
from warphash.storage.slots import SubtableFigures

LAB = Lab("cpu")
KEYS = workloads.make(6_000, "uint32", "uint32", seed=4)
EVEN = Setting("dynamic_cuckoo", {"routing": "even"})


def test_a_table_grows_is_renewed_and_shrinks() -> None:
    steps = measure_routing(LAB, KEYS, EVEN, 30)
    assert len(steps) == 30 + 15 + 29 and not any(step.mismatches for step in steps)
    assert [step.added is None for step in steps] == [False] * 45 + [True] * 29
    assert all(1 <= step.found <= 3 and 1 <= step.missed <= 3 for step in steps)
    assert all(step.added >= 1 for step in steps[:45])
    assert steps[29].resizes == steps[44].resizes > 5 and steps[-1].resizes > steps[44].resizes
    assert all(0 <= step.conflicts < 12 for step in steps[10:45])
    assert {step.words for step in steps} == {0.0}, "a CPU reads no filters"


@pytest.mark.parametrize(
    ("subtables", "per_cent"),
    [
        ([(640, 300)] * 3, 0),
        ([(1280, 600), (640, 300), (640, 300)], 0),  # equal load factors
        ([(1280, 300), (640, 300), (640, 300)], 11.1),  # right behind a doubling
    ],
)
def test_conflicts_are_those_beyond_the_least(subtables: list[tuple[int, int]], per_cent: float) -> None:
    stats = SimpleNamespace(subtables=[SubtableFigures(*figures) for figures in subtables])
    assert routing._conflicts(stats) == pytest.approx(per_cent, abs=0.1)


def test_a_key_that_is_lost_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    erase = HashMap.erase
    monkeypatch.setattr(HashMap, "erase", lambda self, keys: erase(self, np.append(keys, KEYS.keys[7]))[:-1])
    assert sum(step.mismatches for step in measure_routing(LAB, KEYS, EVEN, 30)) > 0
