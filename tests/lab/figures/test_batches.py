"""Tests of keys in batches: times add up, the table is right after each batch, and a lost key is counted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from warphash import HashMap
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data import workloads
from warphash.lab.figures.batches import add_in_batches
from warphash.lab.figures.fill import Fill

KEYS = workloads.make(3001, "uint32", "uint32", seed=4)


@pytest.mark.parametrize(("design", "rebuilds"), [("slab", False), ("slab", True), ("cuckoo", False), ("cuckoo", True)])
@pytest.mark.parametrize("batches", [1, 7, 5000])
def test_steps_add_up(design: str, rebuilds: bool, batches: int) -> None:
    parameters = {"rebucket": False} if design == "slab" else {}
    setting, load_factor = Fill("utilisation", 0.65).applied(Setting(design, parameters), 3001, 8)
    workload = workloads.make(40, "uint32", "uint32", seed=4) if batches > 3001 else KEYS
    steps = add_in_batches(Lab("cpu", repetitions=2), workload, setting, load_factor, batches, rebuilds=rebuilds)
    assert len(steps) == min(batches, len(workload.keys))
    assert steps[-1].keys == len(workload.keys)
    assert all(0 < a.seconds < b.seconds and a.keys < b.keys for a, b in pairwise(steps))
    assert not any(step.mismatches for step in steps)


def test_a_key_that_is_lost_is_wrong_where_it_came_and_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    insert, lost = HashMap.insert, KEYS.keys[1000]

    def forget_one(self: Any, keys: Any, values: Any, **options: Any) -> Any:
        kept = keys != lost
        return insert(self, keys[kept], values[kept], **options)

    monkeypatch.setattr(HashMap, "insert", forget_one)
    steps = add_in_batches(Lab("cpu", repetitions=1), KEYS, Setting("cuckoo", {}), 0.5, 4, rebuilds=False)
    passes = steps[1].mismatches
    assert 1 <= passes <= 5
    assert [step.mismatches for step in steps] == [0, passes, 0, passes + 1]  # each pass: a wrong size; end: a pair
