"""Words of keys: equal for equal rows, wherever they lie in a column, and different for others."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stream import plain
from stream.plain import KEYS
from warphash.stream.key_hash import forms_of, words_of

NAMELESS = [kind for kind in KEYS if kind not in ("null", "string_view", "struct")]


def words(column: Any, other: Any = None) -> list[int]:
    forms = forms_of([column.type], None if other is None else [other])
    return words_of([column], forms).tolist()


def column_of(kind: str) -> pa.Array:
    type_, items = KEYS[kind]
    return pa.array([*items, *items], type_)


@pytest.mark.parametrize("kind", NAMELESS)
def test_words_are_equal_exactly_if_items_are(kind: str) -> None:
    column = column_of(kind)
    by_item: dict[Any, set[int]] = {}
    for item, word in zip(map(plain.plain, column.to_pylist()), words(column), strict=True):
        by_item.setdefault(item, set()).add(word)
    assert all(len(found) == 1 for found in by_item.values())
    assert len({word for found in by_item.values() for word in found}) == len(by_item)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("begin", [1, 7, 64, 131])
def test_words_of_a_slice(kind: str, begin: int) -> None:
    type_, items = KEYS[kind]
    column = pa.array((list(items) * 200)[:200], pa.string() if kind == "string_view" else type_)
    if kind == "string_view":
        column = column.cast(pa.large_string())
    assert words(column.slice(begin, 60)) == words(column)[begin : begin + 60]
    assert words(pa.chunked_array([column.slice(0, begin), column.slice(begin)])) == words(column)


def test_all_patterns_of_nan_have_one_word() -> None:
    patterns = [
        struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF << 52) + 5)
    ]
    assert len(set(words(pa.array(np.array(patterns))))) == 1
    assert len(set(words(pa.array(np.array([0.0, -0.0]))))) == 1


def test_items_under_nulls_are_of_no_matter() -> None:
    column = pa.array(np.arange(100), mask=np.ones(100, np.bool_))
    assert len(set(words(column))) == 1


def test_the_order_of_columns_matters() -> None:
    first, second = pa.array(range(100)), pa.array(range(100, 200))
    forms = forms_of([pa.int64()] * 2)
    assert not set(words_of([first, second], forms).tolist()) & set(words_of([second, first], forms).tolist())


@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 40, 1 << 59, 1000003])
def test_parts_are_of_like_sizes(step: int) -> None:
    """Also of keys that differ in few bits."""
    numbers = np.arange(3200, dtype=np.uint64) * np.uint64(step)
    distinct = len(np.unique(numbers))
    counts = np.bincount(np.array(words(pa.array(numbers)), np.uint64) >> np.uint64(59), minlength=32)
    assert counts.max() <= max(4 * 3200 / min(32, distinct), 200)
