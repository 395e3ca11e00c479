"""Tests of the variants that the authors of HH Hash gave up; the reasons do not depend on the device."""

from __future__ import annotations

import pytest

from support.engines import one_of_each
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.figures.rejected import measure_orders, measure_sorted

HH = Setting("two_level_cuckoo", {})


def test_a_random_order_of_functions_stalls() -> None:
    """docs/fidelity.md#hh-random-order"""
    shares = {rounds: measure_orders(Lab("cpu"), HH, 0.35, 1 << 20, rounds) for rounds in (8, 16, 32, 64)}
    assert not any(made.mismatches for made in shares.values())
    assert shares[16].in_rounds > 0.98 and shares[32].in_rounds > 0.99
    assert shares[8].random < 0.01 and shares[16].random < 0.2 and shares[32].random < 0.7 and shares[64].random < 0.95


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("parameters", [{}, {"hashes": 3}, {"range_slots": 64}])
def test_layouts_are_counted(device: str, parameters: dict[str, int]) -> None:
    made = measure_orders(Lab(device), Setting("two_level_cuckoo", parameters), 0.2, 2000, 64)
    assert made.mismatches == 0 and made.in_rounds >= made.random > 0.9


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
def test_a_sort_by_buckets_is_measured_and_right(device: str) -> None:
    made = measure_sorted(Lab(device, repetitions=1), HH, 0.35, 3000)
    assert made.mismatches == 0 and 0 < made.sort_share < 1 and made.with_sort > 0 and made.without_sort > 0
