"""Tests of fill: the number of buckets for a utilisation, and measures that a design does not have."""

from __future__ import annotations

import math

import pytest

from warphash import ParameterError
from warphash.lab.bench.runner import Setting
from warphash.lab.figures.fill import Fill, buckets_for

N = 1 << 22
SLAB = Setting("slab", {"rebucket": False})


def expected_utilisation(slab_count: float, pairs: int, pair_bytes: int) -> float:
    """Utilisation of Figure 4c, computed differently than in the library: from the mean number of slabs of a list."""
    mean = pairs * slab_count
    at_most, term = [], math.exp(-mean)
    for c in range(int(mean + 20 * math.sqrt(mean)) + 2 * pairs):
        at_most.append((at_most[-1] if at_most else 0.0) + term)
        term *= mean / (c + 1)
    slabs = 1 + sum(1 - at_most[full] for full in range(pairs, len(at_most), pairs))
    return pair_bytes * mean / (128 * slabs)


@pytest.mark.parametrize(
    ("slot_bytes", "pairs", "slab_count", "utilisation"),
    [(8, 15, 0.2, 0.188), (8, 15, 0.7, 0.614), (8, 15, 2.0, 0.764), (8, 15, 10.0, 0.896), (4, 30, 0.7, 0.641)],
)
def test_buckets_reach_the_utilisation_of_the_paper(
    slot_bytes: int, pairs: int, slab_count: float, utilisation: float
) -> None:
    assert expected_utilisation(slab_count, pairs, slot_bytes) == pytest.approx(utilisation, abs=0.0006)
    wanted = expected_utilisation(slab_count, pairs, slot_bytes)
    assert N / (pairs * buckets_for(wanted, N, slot_bytes)) == pytest.approx(slab_count, rel=0.002)


def test_the_shortest_lists_that_reach_it_are_taken() -> None:
    """The curve has a dip, so it reaches 0.655 before the dip, in the dip and after the dip."""
    slab_count = N / (15 * buckets_for(0.655, N, 8))
    assert 0.8 < slab_count < 0.9
    assert expected_utilisation(slab_count, 15, 8) == pytest.approx(0.655, abs=1e-4)
    assert N / (15 * buckets_for(0.66, N, 8)) > 1.2  # beyond the peak before the dip


@pytest.mark.parametrize("n", [1, 14, 1000])
def test_few_keys(n: int) -> None:
    assert buckets_for(0.01, n, 8) >= 1
    with pytest.raises(ParameterError, match=r"never use 94\.0% of their slabs"):
        buckets_for(0.94, n, 8)  # docs/fidelity.md#slabhash-utilisation-limit


def test_a_fill_becomes_parameters() -> None:
    assert Fill("utilisation", 0.6).applied(Setting("cuckoo", {"hashes": 3}), N, 8)[1] == 0.6
    assert Fill("load_factor", 0.6).applied(SLAB, N, 8) == (SLAB, 0.6)
    setting, load_factor = Fill("slab_count", 2.0).applied(SLAB, 300, 8)
    assert (setting.parameters, load_factor) == ({"rebucket": False, "buckets": 10}, None)
    assert Fill("slab_count", 2.0).applied(SLAB, 300, 4)[0].parameters["buckets"] == 5
    assert Fill("buckets", 77.0).applied(SLAB, 300, 8)[0].parameters["buckets"] == 77
    chained = Fill("buckets", 77.0).applied(Setting("misra", {}), 300, 8)[0]
    assert chained.parameters == {"buckets": 77}
    assert "buckets" not in SLAB.parameters


@pytest.mark.parametrize(
    ("measure", "design"),
    [("slab_count", "cuckoo"), ("buckets", "iceberg"), ("utilisation", "misra"), ("slab_count", "misra")],
)
def test_a_measure_that_a_design_does_not_have(measure: str, design: str) -> None:
    with pytest.raises(ParameterError, match=f"{measure} to set"):
        Fill(measure, 0.5).applied(Setting(design, {}), N, 8)
