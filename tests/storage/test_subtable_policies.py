"""Sizes of subtables, which of them is resized, and which a key goes to first: numbers alone, no table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from warphash.storage import policies


def conflicts(sizes: list[int], counts: list[float]) -> float:
    return sum(m * (m - 1) / 2 / n for n, m in zip(sizes, counts, strict=True))


SIZES = [[64, 64, 64], [128, 64, 64], [128, 128, 64], [64, 128], [256, 256, 128, 128, 128]]


@pytest.mark.parametrize("sizes", SIZES)
def test_shares_of_the_theorem_make_its_terms_equal(sizes: list[int]) -> None:
    """C(m, 2) / n equal: the larger subtable is the emptier one (docs/fidelity.md#dyhash-erratum-larger-tables)."""
    counts = [0.0] * len(sizes)
    shares = [1 / len(sizes)] * len(sizes)
    for _ in range(400):  # small batches into a table that loses as many at random
        shares = policies.subtable_shares("theorem", sizes, [round(m) for m in counts])
        assert abs(sum(shares) - 1) < 1e-9
        counts = [0.98 * (m + 200 * p) for m, p in zip(counts, shares, strict=True)]
    weights = [n / (m * (m - 1) / 2) for n, m in zip(sizes, counts, strict=True)]
    drawn = [w / sum(weights) for w in weights]
    assert np.allclose(shares, drawn, rtol=0.03)
    if max(sizes) > min(sizes):
        loads = [m / n for n, m in zip(sizes, counts, strict=True)]
        assert loads[sizes.index(max(sizes))] < loads[sizes.index(min(sizes))]


def test_shares_of_the_theorem_are_sought_where_conflicts_were_uneven() -> None:
    sizes, counts = [128, 64, 64], [1000, 900, 300]
    shares = policies.subtable_shares("theorem", sizes, counts)
    even = conflicts(sizes, [m + 100 / 3 for m in counts])
    assert conflicts(sizes, [m + 100 * p for m, p in zip(counts, shares, strict=True)]) < even
    assert shares[2] > shares[0] > shares[1]


@pytest.mark.parametrize("sizes", SIZES)
def test_conflicts_are_fewest_at_equal_load_factors(sizes: list[int]) -> None:
    """Not where Theorem 1 has them (docs/fidelity.md#dyhash-erratum-theorem), which is worse by the factor below."""
    keys, rng = 100_000, np.random.default_rng(1)
    shares = policies.subtable_shares("equal_loads", sizes, [0] * len(sizes))
    least = conflicts(sizes, [keys * share for share in shares])
    assert len({share / n for n, share in zip(sizes, shares, strict=True)}) == 1
    for _ in range(200):
        others = rng.dirichlet(rng.uniform(1, 1e4) * np.array(shares))
        assert conflicts(sizes, (keys * others).tolist()) >= least
    roots = [math.sqrt(n) for n in sizes]  # C(m, 2) / n is equal where m is in proportion to the root of n
    theorem = conflicts(sizes, [keys * root / sum(roots) for root in roots])
    assert theorem / least == pytest.approx(len(sizes) * sum(sizes) / sum(roots) ** 2, rel=1e-3)


@pytest.mark.parametrize(("sizes", "more"), [([2, 1, 1], 0.029), ([2, 2, 1], 0.023)])
def test_the_theorem_asks_for_more_conflicts_and_overfills_the_smallest(sizes: list[int], more: float) -> None:
    roots = [math.sqrt(n) for n in sizes]
    assert len(sizes) * sum(sizes) / sum(roots) ** 2 - 1 == pytest.approx(more, abs=0.001)
    if sizes == [2, 2, 1]:
        assert 0.8 * sum(sizes) * roots[-1] / sum(roots) / sizes[-1] == pytest.approx(1.045, abs=0.001)


def test_even_shares_never_move() -> None:
    for sizes, counts in (([64, 64, 64], [0, 0, 0]), ([128, 64, 64], [9, 1000, 3])):
        assert policies.subtable_shares("even", sizes, counts) == [1 / 3] * 3


def test_sizes_leave_room_for_halvings() -> None:
    for buckets in (1, 2, 3, 100, 12_345, 1_953_125):
        for subtables in (2, 3, 8):
            sizes = policies.subtable_sizes(buckets, subtables)
            assert len(set(sizes)) == 1 and buckets <= sum(sizes) <= 1.016 * buckets + subtables
    assert policies.subtable_to_enlarge([8, 4, 4]) == 1 and policies.subtable_to_halve([4, 8, 4]) == 1
    assert policies.subtable_to_halve([3, 3]) is None


def test_a_halving_that_failed_is_not_repeated_before_many_keys_are_gone() -> None:
    failed = (1000, 480)  # slots and keys
    assert not policies.may_halve(480, 1000, failed) and not policies.may_halve(451, 750, failed)
    assert policies.may_halve(450, 1000, failed) and policies.may_halve(450, 500, failed)
    assert policies.may_halve(900, 1500, failed) and policies.may_halve(7, 8, (0, 0))


def test_two_slots_for_a_key_are_never_surely_enough() -> None:
    load = policies.load_surely_placed
    assert load(1, 2) == 0 and load(1, 3) == load(2, 2) == 0.75
    assert load(2, 3) == load(1, 8) == load(32, 2) == 1


@pytest.mark.parametrize("subtables", [2, 3, 8])
def test_new_subtables_are_between_two_resizes(subtables: int) -> None:
    grown = 10_000 / policies.slots_between_enlargements(10_000, subtables, 0.9)
    assert 0.9 * subtables / (subtables + 1) < grown < 0.9
    shrunk = 10_000 / policies.slots_between_halvings(10_000, subtables, 0.4)
    assert 0.4 * 1.016 < shrunk < 0.4 * 2 * subtables / (2 * subtables - 1)  # sizes are rounded up
    assert policies.slots_between_halvings(0, subtables, 0.4) == 0
