"""Tests of what is measured of tables with a ticket board: slices of operations, and slots in the host's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warphash import HashMap
from warphash.lab.bus import measure_bus
from warphash.lab.runner import Lab, Setting
from warphash.lab.slices import measure_slices

STADIUM = Setting("stadium", {})


@pytest.mark.parametrize("setting", [STADIUM, Setting("cuckoo", {})], ids=lambda setting: setting.design)
@pytest.mark.parametrize("slice_operations", [64, 1000, 10_000])
def test_slices_are_measured_and_right(setting: Setting, slice_operations: int) -> None:
    made = measure_slices(Lab("cpu", repetitions=1), setting, 0.8, 8000, slice_operations)
    assert made.mismatches == 0
    assert min(made.present, made.half, made.concurrency) > 0


@pytest.mark.parametrize("verb", ["execute", "find"])
def test_wrong_answers_of_slices_are_counted(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    right = getattr(HashMap, verb)

    def wrong(self: Any, *given: Any) -> Any:
        values, found = right(self, *given)
        values[-1] += 1
        return values, found

    monkeypatch.setattr(HashMap, verb, wrong)
    setting = STADIUM if verb == "execute" else Setting("cuckoo", {})
    assert measure_slices(Lab("cpu", repetitions=1), setting, 0.8, 4000, 2000).mismatches > 0


@pytest.mark.parametrize("access", ["auto", "direct"])
def test_batches_behind_a_bus_are_measured_and_right(access: str) -> None:
    n = 300_000
    made = measure_bus(Lab("cpu", repetitions=1), Setting("stadium", {"access": access}), 0.8, n)
    assert {rate.operation for rate in made} == {"insert", "present", "half", "absent"}
    assert {rate.batch for rate in made} == {1 << 14, 1 << 16}
    assert all(rate.rate_per_s > 0 and rate.mismatches == 0 for rate in made)


def test_wrong_answers_behind_a_bus_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    insert = HashMap.insert

    def lossy(self: Any, keys: np.ndarray, values: np.ndarray) -> Any:
        return insert(self, keys[1:], values[1:])

    monkeypatch.setattr(HashMap, "insert", lossy)
    made = measure_bus(Lab("cpu", repetitions=1), STADIUM, 0.8, 10_000)
    assert sum(rate.mismatches for rate in made if rate.operation == "insert") > 0
    assert sum(rate.mismatches for rate in made if rate.operation == "present") > 0
    assert sum(rate.mismatches for rate in made if rate.operation == "absent") == 0
