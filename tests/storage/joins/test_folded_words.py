"""Words that columns are folded into, beside Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

import warphash
from warphash.runtime.devices import engine_for
from warphash.storage.joins.folded_words import fold_words


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 65, 40_000])
def test_columns_are_folded_in_by_a_factor_each(n: int, threads: int) -> None:
    random = np.random.default_rng(n)
    columns = [random.integers(-(2**63), 2**63 - 1, n) for _ in range(2)]
    words, engine = np.zeros(n, np.uint64), engine_for("cpu")
    warphash.set_num_threads(threads)
    try:
        for column in columns:
            fold_words(engine, words.ctypes.data, column.ctypes.data, n, 0x9E3779B97F4A7C15)
        fold_words(engine, words.ctypes.data, 0, n, 2**64 - 1)
    finally:
        warphash.set_num_threads(None)
    assert words.tolist() == [_folded(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _folded(row: tuple[int, ...]) -> int:
    word = 0
    for item, factor in [(item, 0x9E3779B97F4A7C15) for item in row] + [(0, 2**64 - 1)]:
        word = (word ^ item % 2**64) * factor % 2**64
        word ^= word >> 32
    return word
