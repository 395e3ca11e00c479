"""Decimal numbers beside integers, and bytes of a fixed width beside bytes of any length, are compared by values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import warphash

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

MOST = 2**64 - 1
TYPES = (pyarrow.decimal128(30, 2), pyarrow.decimal128(30, 0), pyarrow.decimal256(60, 3), pyarrow.decimal128(30, -1))


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("integers", ["int8", "int64", "uint64", "uint8"])
@pytest.mark.parametrize("large", [10**22, 990], ids=["large", "words"])
def test_decimals_equal_the_integers_of_their_values(type_: Any, integers: str, large: int) -> None:
    bounds = np.iinfo(integers)
    numbers = [0, 10, 110, -(-int(bounds.min) // 10 * 10), int(bounds.max) // 10 * 10]
    decimals = pyarrow.array([Decimal(number) for number in [*numbers, large]] + [None], type_)
    ints = np.array([*numbers, 7], integers)
    assert warphash.isin(decimals, ints).to_pylist() == [True] * len(numbers) + [False, False]
    assert warphash.isin(ints, decimals).tolist() == [True] * len(numbers) + [False]
    assert warphash.Index(ints[1:3]).get_indexer(decimals).to_pylist() == [-1, 0, 1] + [-1] * (len(decimals) - 3)
    assert warphash.Index(decimals[1:3]).get_indexer(ints).tolist() == [-1, 0, 1] + [-1] * (len(ints) - 3)


def test_fractions_and_truth_values() -> None:
    decimals = pyarrow.array([Decimal("1.00"), Decimal("1.50"), Decimal("-1.00"), Decimal("0.00")])
    assert warphash.isin(decimals, np.array([1, -1])).to_pylist() == [True, False, True, False]
    assert warphash.isin(decimals, np.array([MOST, 1], np.uint64)).to_pylist() == [True, False, False, False]
    assert warphash.isin(decimals, np.array([True])).to_pylist() == [True, False, False, False]
    assert warphash.isin(np.array([True, False]), decimals[:3]).tolist() == [True, False]


def test_frames_of_decimals_and_integers() -> None:
    left = pandas.DataFrame({"k": [Decimal("2.00"), Decimal("2.50")]})
    right = pandas.DataFrame({"k": [2], "v": [9]})
    assert warphash.merge(left, right)["v"].tolist() == [9]
    assert warphash.isin(polars.Series([Decimal("2.00")]), [2]).to_list() == [True]
    rows = (pyarrow.array([Decimal("2.00"), Decimal("2.00")]), np.array([1, 2]))
    assert warphash.isin(rows, (np.array([2]), np.array([2]))).to_pylist() == [False, True]


def test_decimals_beside_floats_are_refused() -> None:
    decimals = pyarrow.array([Decimal("2.50")])
    calls = (
        lambda: warphash.isin(decimals, np.array([2.5])),
        lambda: warphash.isin(np.array([2.5]), decimals),
        lambda: warphash.Index(np.array([2.5])).contains(decimals),
        lambda: warphash.join(decimals, np.array([2.5])),
        lambda: warphash.merge(pyarrow.table({"k": decimals}), pyarrow.table({"k": [2.5]})),
    )
    for call in calls:
        with pytest.raises(warphash.DtypeError, match=r"not compared with floating-point .* float64 .*cast"):
            call()
    assert warphash.isin(decimals, []).to_pylist() == [False]  # an empty list has a type that says nothing
    assert warphash.isin([], decimals).tolist() == []
    assert warphash.Index([]).contains(decimals).to_pylist() == [False]
    assert warphash.isin(decimals, decimals.cast(pyarrow.decimal128(9, 4))).to_pylist() == [True]


@pytest.mark.parametrize("turned", [False, True])
def test_bytes_of_a_fixed_width_equal_bytes_of_any_length(turned: bool) -> None:
    fixed = pyarrow.array([b"abc", b"ab\0", None, b"abd"], pyarrow.binary(3))
    free = pyarrow.array([b"ab\0", None, b"abc", b"ab", b"abcd"])
    if turned:
        assert warphash.isin(free, fixed).to_pylist() == [True, True, True, False, False]
        assert warphash.Index(fixed).get_indexer(free).to_pylist() == [1, 2, 0, -1, -1]
    else:
        assert warphash.isin(fixed, free).to_pylist() == [True, True, True, False]
        assert warphash.Index(free).get_indexer(fixed).to_pylist() == [2, 0, 1, -1]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_empty_columns(type_: Any) -> None:
    none, some = pyarrow.array([], type_), pyarrow.array([Decimal(10), None], type_)
    assert warphash.isin(none, np.array([10])).to_pylist() == []
    assert warphash.isin(np.array([10]), none).tolist() == [False]
    assert warphash.isin(some, np.empty(0, np.int64)).to_pylist() == [False, False]
    assert warphash.Index(np.array([10])).get_indexer(none).to_pylist() == []
    assert warphash.Index(none).contains(np.array([10])).tolist() == [False]
    assert warphash.isin(none, some.cast(pyarrow.decimal256(50, 7))).to_pylist() == []
    assert warphash.isin(some, some.cast(pyarrow.decimal256(50, 7))).to_pylist() == [True, True]
