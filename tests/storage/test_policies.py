"""How many nodes lists need, and when they are packed: against closed forms, balls thrown into lists, and searches."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from support.lists import nodes_of_a_list
from warphash.storage.policies import (
    expected_nodes,
    most_tombstones,
    moves_instead_of_packing,
    nodes_for_batch,
    nodes_to_hold,
    pool_nodes,
)

PAIRS = [1, 2, 7, 15, 30]
MEANS = [1e-9, 1e-3, 0.1, 0.7, 3.0, 10.5, 30.0, 99.0, 450.0, 999.0, 1000.0, 1001.0, 5000.0, 1e6]


def thrown(keys: int, lists: int, pairs: int, rng: np.random.Generator) -> int:
    """Nodes of lists that as many keys fell into."""
    lengths = np.bincount(rng.integers(0, lists, keys), minlength=lists)
    return int(np.maximum(1, -(-lengths // pairs)).sum())


# ---- expected_nodes
@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("mean", MEANS)
def test_expected_nodes_in_closed_form(mean: float, pairs: int) -> None:
    """For short lists, which are summed up, and for long ones, where that would take long."""
    lists = 10**9
    keys = round(mean * lists)
    assert expected_nodes(keys, lists, pairs) == pytest.approx(lists * nodes_of_a_list(keys / lists, pairs), rel=1e-9)


@pytest.mark.parametrize(
    ("keys", "lists", "pairs"),
    [(700, 1000, 1), (90_000, 100_000, 15), (40_000, 2000, 15), (40_000, 2000, 30), (200_000, 1000, 7)],
)
def test_expected_nodes_of_balls_in_lists(keys: int, lists: int, pairs: int, rng: np.random.Generator) -> None:
    draws = [thrown(keys, lists, pairs, rng) for _ in range(100)]
    error = 4 * np.std(draws) / len(draws) ** 0.5
    # Of so many keys a list has a binomial number: the share of a list is what that differs by.
    assert expected_nodes(keys, lists, pairs) == pytest.approx(np.mean(draws), abs=error + 0.5)


@pytest.mark.parametrize("pairs", PAIRS)
def test_expected_nodes_grow_with_the_keys(pairs: int) -> None:
    """One at a time, from none, over the number from which lists count as long."""
    assert expected_nodes(0, 77, pairs) == 77
    few, many = ([expected_nodes(keys, 1, pairs) for keys in some] for some in (range(60), range(980, 1030)))
    assert (np.diff(few) > -1e-12).all() and few[-1] > few[0]
    assert all(count > max(1, keys / pairs) - 1e-12 for keys, count in enumerate(few))
    np.testing.assert_allclose(np.diff(many), 1 / pairs, rtol=1e-6)


# ---- pool_nodes
@pytest.mark.parametrize(
    ("keys", "lists", "pairs"),
    [
        *((0, 100, 15), (5, 100, 15), (50, 7, 15), (1000, 1, 15), (1000, 1, 30), (3000, 300, 15)),
        *((70_000, 6_667, 15), (10_000, 10_000, 1), (30, 40, 1), (40_000, 30_000, 7)),
    ],
)
def test_a_pool_is_enough_and_not_much_more(keys: int, lists: int, pairs: int, rng: np.random.Generator) -> None:
    beyond = np.array([thrown(keys, lists, pairs, rng) - lists for _ in range(200)])
    pool = pool_nodes(keys, lists, pairs)
    assert type(pool) is int and pool >= beyond.max()
    assert pool <= 1.1 * beyond.mean() + 6 * np.sqrt(beyond.mean()) + 1


def test_a_pool_for_no_keys_is_empty() -> None:
    assert {pool_nodes(0, lists, pairs) for lists in (1, 3, 10**9) for pairs in PAIRS} == {0}
    assert pool_nodes(10**12, 10**7, 15) == pytest.approx(10**12 / 15 * 1.0625, rel=1e-3)


# ---- nodes_for_batch
@cache
def most_taken(vacant: int, pairs: int, elements: tuple[tuple[int, bool, bool], ...]) -> int:
    """Nodes that elements take, at most, in any order of their steps, at a list whose last node has ``vacant`` slots.

    An element is at a node, counted from the last one backwards; has a spare node or none; and has seen an end, or not.
    """
    most = 0
    for number in range(len(elements)):
        behind, spare, at_end = elements[number]
        if number and elements[number] == elements[number - 1]:
            continue  # they are alike, and come in order
        others, left, taken = [*elements[:number], *elements[number + 1 :]], vacant, 0
        if at_end:  # it needs a node, and links it where that is still the end
            taken = not spare
            if behind:
                others.append((behind - 1, True, False))
            else:
                others = [(back + 1, had, seen) for back, had, seen in others] + [(0, False, False)]
                left = pairs
        elif behind:
            others.append((behind - 1, spare, False))
        elif left:
            left -= 1  # placed; a spare that it has goes back, and was taken all the same
        else:
            others.append((0, spare, True))
        most = max(most, taken + most_taken(left, pairs, tuple(sorted(others))))
    return most


@pytest.mark.parametrize("pairs", [1, 2, 3, 15])
def test_no_batch_takes_more_nodes(pairs: int) -> None:
    """Every order of the steps of a few elements at one list, and every way to share them among lists."""
    at_one = [max(most_taken(vacant, pairs, ((0, False, False),) * n) for vacant in range(pairs + 1)) for n in range(6)]
    at_all = [0]
    for n in range(1, len(at_one)):
        at_all.append(max(at_one[first] + at_all[n - first] for first in range(1, n + 1)))
    bounds = [nodes_for_batch(n, pairs) for n in range(len(at_one))]
    assert all(most <= bound <= most + 1 for most, bound in zip(at_all, bounds, strict=True)), (at_all, bounds)
    assert at_one[5] > 5 or pairs > 4, "not even here an element takes a second node"


# ---- nodes_to_hold
LITTLE = 64 << 20 >> 7
"""Slabs of 64 MiB."""


@pytest.mark.parametrize(
    ("n", "lists", "batches"),
    [
        (0, 10**6, 16),
        (1, 1, 16),
        (1000, 1, 16),
        (LITTLE // 16, 1, 16),
        (LITTLE // 10, 1, 10),
        (LITTLE // 4, 1, 4),
        (LITTLE // 4 + 1, 1, 0),
        (LITTLE // 4 + 1, LITTLE, 4),
        (10**6, 2 * 10**6 - 1, 0),
        (10**6, 2 * 10**6, 4),
        (10**6, 3 * 10**6, 4),
        (10**6, 7 * 10**6, 7),
        (10**6, 10**9, 16),
    ],
)
def test_batches_that_nodes_are_held_for(n: int, lists: int, batches: int) -> None:
    assert nodes_to_hold(n, lists) == pytest.approx(batches * n, abs=n / 1000)


def test_nodes_are_held_for_four_batches_at_least(rng: np.random.Generator) -> None:
    """Or for none; then every smaller batch, or larger table, has them too. They are what a batch cannot fail with."""
    for n, lists in (2 ** rng.uniform(0, 30, (2000, 2))).astype(int).tolist():
        held = nodes_to_hold(n, lists)
        assert held == 0 or nodes_for_batch(n, 1) < 4 * n <= held <= 16 * n
        assert held <= max(LITTLE, 2 * lists), "more than the table is worth"
        assert nodes_to_hold(n, 2 * lists) >= held
        assert not held or nodes_to_hold(n // 2, lists) >= 2 * n - 2


# ---- most_tombstones
def test_flushes_are_paid_for_by_erases(rng: np.random.Generator) -> None:
    """A find never reads more erased slots than keys, or 1024; a flush reads two slots for each that was erased."""
    size = tombstones = erased = read = flushes = 0
    for _ in range(3000):
        size += int(rng.integers(0, 60))
        gone = int(rng.integers(0, min(size, 60) + 1))
        size, tombstones, erased = size - gone, tombstones + gone, erased + gone
        if tombstones > most_tombstones(size):
            read, flushes, tombstones = read + size + tombstones, flushes + 1, 0
        assert tombstones <= max(size, 1024)
        assert read <= 2 * erased
    assert flushes > 10
    assert most_tombstones(0) == most_tombstones(1024) == 1024
    assert most_tombstones(10**6) == 10**6


# ---- moves_instead_of_packing
def test_few_pairs_are_moved_and_many_are_packed() -> None:
    lists, nodes, capacity = 950_000, 1_000_000, 1_200_000
    ways = [moves_instead_of_packing(size, lists, nodes, capacity) for size in range(0, 4_000_000, 100_000)]
    assert ways == sorted(ways, reverse=True), "the more pairs, the dearer is moving them"
    assert ways[0] and not ways[-1]
    assert not moves_instead_of_packing(0, lists, 0, 100 * capacity), "a large pool is not filled for few nodes"
