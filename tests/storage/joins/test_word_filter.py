"""Words that may be among others, beside NumPy's `isin`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.refusals import refusing
from warphash.runtime.devices import engine_for
from warphash.storage.joins.word_filter import WordFilter


def likely(words: Any, others: Any) -> tuple[Any, Any]:
    made = WordFilter(engine_for("cpu"), others.ctypes.data, others.itemsize, len(others))
    return made.likely(words.ctypes.data, len(words))


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("n", "count"), [(1, 1), (63, 5), (50_000, 1), (200_000, 3_000)])
def test_all_members_are_likely_and_few_others(width: int, threads: int, n: int, count: int) -> None:
    random = np.random.default_rng(n + count)
    greatest = np.iinfo(f"u{width}").max
    others = random.integers(0, greatest, count, f"u{width}", True)
    others[0] = greatest  # no word is special
    words = np.where(
        random.random(n) < 0.1, others[random.integers(0, count, n)], random.integers(0, greatest, n, f"u{width}", True)
    )
    warphash.set_num_threads(threads)
    try:
        elements, found = likely(words, others)
    finally:
        warphash.set_num_threads(None)
    are_members = np.isin(words, others)
    assert np.array_equal(found, words[elements])
    assert np.all(np.diff(elements.astype(np.int64)) > 0)
    assert np.all(np.isin(np.flatnonzero(are_members), elements))
    wrong = len(elements) - np.count_nonzero(are_members)
    assert wrong <= 5 + 0.06 * n  # three times what is expected


def test_refused_memory_is_an_error() -> None:
    words = np.arange(1000, dtype="u8")
    for first in (1, 2, 3):
        with refusing(engine_for("cpu"), first), pytest.raises(MemoryError):
            likely(words, words)
