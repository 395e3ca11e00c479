"""Columns packed into words, beside Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

import warphash
from warphash.runtime.devices import engine_for
from warphash.storage.groups.packing import pack_column
from warphash.storage.groups.spans import Span, span_of

TYPES = ["i1", "u1", "?", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("second", TYPES)
@pytest.mark.parametrize("first", TYPES)
def test_words_tell_all_rows_apart(first: str, second: str, threads: int) -> None:
    """And are less than the product of the spans."""
    engine, random, n = engine_for("cpu"), np.random.default_rng(1), 40_000
    columns = [random.integers(-3, 4, n).astype(dtype) for dtype in (first, second)]
    words, product = np.empty(n, "u8"), 1
    warphash.set_num_threads(threads)
    try:
        for number, column in enumerate(columns):
            span = span_of(engine, column.ctypes.data, column.itemsize, n)
            at = words.ctypes.data, column.ctypes.data
            pack_column(engine, *at, column.itemsize, n, span, is_first=number == 0)
            product *= span.size
    finally:
        warphash.set_num_threads(None)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert words.max() < product
    assert len(set(zip(rows, words.tolist(), strict=True))) == len(set(rows)) == len(set(words.tolist()))


def test_items_outside_of_the_span_are_the_greatest() -> None:
    items, words = np.array([4, 5, 9, 10, 3, -(2**63)]), np.full(6, 2, "u8")
    at = words.ctypes.data, items.ctypes.data
    pack_column(engine_for("cpu"), *at, 8, 6, Span(4, 6), is_first=False)
    assert words.tolist() == [12, 13, 17, 17, 17, 17]
