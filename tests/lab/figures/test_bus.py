"""Tests of what is measured of tables whose slots lie in the memory of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warphash import HashMap
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.figures.bus import measure_bus

STADIUM = Setting("stadium", {})


@pytest.mark.parametrize("access", ["auto", "direct"])
def test_batches_behind_a_bus_are_measured_and_right(access: str) -> None:
    n = 300_000
    made = measure_bus(Lab("cpu", repetitions=1), Setting("stadium", {"access": access}), 0.8, n)
    assert {rate.operation for rate in made} == {"ceiling", "insert", "present", "half", "absent"}
    assert {rate.batch for rate in made if rate.operation != "ceiling"} == {1 << 14, 1 << 16}
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
