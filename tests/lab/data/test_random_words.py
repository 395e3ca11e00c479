"""Tests of the random words that a workload is drawn from."""

from __future__ import annotations

import numpy as np
import pytest

from support.elsewhere import ELSEWHERE, bare
from warphash.lab.data.random_words import RandomWords


def test_words_are_those_of_splitmix64() -> None:
    """The seed that `RandomWords` makes of 1, stepped and mixed by the published generator in Python's integers."""

    def finalized(x: int) -> int:
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    first = finalized(1)
    right = [finalized((first + i) * 0x9E3779B97F4A7C15 % 2**64) for i in range(20)]
    random = RandomWords(1)
    assert [*random.words(7).tolist(), *random.words(13).tolist()] == right


@pytest.mark.parametrize("bound", [1, 7, 1000, 1 << 32])
def test_integers_are_below_their_bound_and_even(bound: int) -> None:
    drawn, elsewhere = RandomWords(3).below(bound, 70_000), RandomWords(3, ELSEWHERE).below(bound, 70_000)
    assert drawn.dtype == np.int64 and 0 <= drawn.min() <= drawn.max() < bound
    assert (bare(elsewhere) == drawn).all()
    counts = np.bincount(drawn * min(bound, 7) // bound)
    assert abs(counts / 70_000 * len(counts) - 1).max() < 0.03


def test_distinct_integers_come_in_random_order() -> None:
    random, ids = RandomWords(5), np.repeat(np.arange(10_000, dtype=np.int32), 3)
    once, again = random.shuffled(ids), random.shuffled(ids)
    assert once.dtype == np.int32 and (np.sort(once) == np.arange(10_000)).all()
    for order in (once, again, np.argsort(once)[again]):
        assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.04
    assert (bare(RandomWords(5, ELSEWHERE).shuffled(ELSEWHERE.asarray(ids))) == once).all()
