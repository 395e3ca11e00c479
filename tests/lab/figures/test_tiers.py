"""Tests of the measurement of tiered tables."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import one_of_each
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data.workloads import ranks
from warphash.lab.figures.tiers import frequent_share, measure_tiers


@pytest.mark.parametrize("exponent", [0.0, 0.5, 0.99, 1.0, 1.5])
def test_ranks_follow_the_law(exponent: float) -> None:
    n = 10_000
    drawn = ranks(np.random.default_rng(2).random(1 << 20), exponent, n)
    assert drawn.dtype == np.uint64 and drawn.min() == 0 and n - 100 < drawn.max() < n
    for most in (1, 10, 1000):
        assert (drawn < most).mean() == pytest.approx(frequent_share(most, exponent, n), abs=3e-3)
    assert frequent_share(n, exponent, n) == 1
    assert ranks(np.array([0.0, 1 - 1e-16]), exponent, n).tolist() == [0, n - 1]


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
def test_tiers_are_measured_and_right(device: str) -> None:
    n = 40_000 if device == "cpu" else 800
    tiered = measure_tiers(Lab(device), Setting("tiered", {}), 0.99, n)
    alone = measure_tiers(Lab(device), Setting("bucketed_cuckoo", {}), 0.99, n)
    assert tiered.mismatches == alone.mismatches == 0
    assert tiered.find > 0 and alone.find > 0 and alone.share == 0
    assert 0.8 < tiered.share <= 1.05, "a sample of the law may be luckier than its mean"
