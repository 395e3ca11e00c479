"""Rows of several columns, against dicts of tuples."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.refusals import refusing
from warphash import ParameterError, ShapeError
from warphash.runtime.devices import engine_for

WIDE = st.sampled_from([0, 1, -1, 2**62, -(2**63), 2**63 - 1])
COLUMNS: dict[str, tuple[Any, Any]] = {
    "int64": (lambda items: np.array(items, "i8"), st.integers(-3, 3) | WIDE),
    "uint64": (lambda items: np.array(items, "u8"), st.sampled_from([0, 1, 5, 2**64 - 1])),
    "int8": (lambda items: np.array(items, "i1"), st.integers(-128, 127)),
    "bool": (lambda items: np.array(items, bool), st.booleans()),
    "float64": (lambda items: np.array(items, "f8"), st.sampled_from([0.5, 1.5, -2.0])),
    "text": (lambda items: np.array(items, "U3"), st.sampled_from(["", "a", "bcd"])),
    "times": (lambda items: np.array(items, "M8[s]"), st.integers(0, 3)),
}
"""Makes a column of a list, and what its items are drawn from."""

few = settings(max_examples=40)


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    """Columns, and their rows."""
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=5))
    n = draw(st.integers(0, 40))
    lists = [draw(st.lists(COLUMNS[kind][1], min_size=n, max_size=n)) for kind in kinds]
    columns = tuple(COLUMNS[kind][0](items) for kind, items in zip(kinds, lists, strict=True))
    return columns, list(zip(*(column.tolist() for column in columns), strict=True))


def walked(rows: list[tuple[Any, ...]]) -> tuple[list[int], list[int], list[int]]:
    """First positions, codes and counts."""
    number_of: dict[tuple[Any, ...], int] = {}
    firsts, codes, counts = [], [], []
    for position, row in enumerate(rows):
        if row not in number_of:
            number_of[row] = len(number_of)
            firsts.append(position)
            counts.append(0)
        codes.append(number_of[row])
        counts[codes[-1]] += 1
    return firsts, codes, counts


def rows_of(columns: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


@few
@given(table=tables())
def test_unique_rows(table: Any) -> None:
    columns, rows = table
    firsts, codes, counts = walked(rows)
    values, indices, inverse, times = warphash.unique(columns, True, True, True)
    assert isinstance(values, tuple) and [each.dtype for each in values] == [each.dtype for each in columns]
    assert rows_of(values) == [rows[first] for first in firsts]
    assert (indices.tolist(), inverse.tolist(), times.tolist()) == (firsts, codes, counts)
    assert rows_of(warphash.unique(columns)) == rows_of(values)


@few
@given(table=tables())
def test_rows_in_ascending_order(table: Any) -> None:
    columns, rows = table
    values, inverse = warphash.unique(columns, return_inverse=True, sorted=True)
    assert rows_of(values) == sorted(set(rows))
    assert [rows_of(values)[code] for code in inverse.tolist()] == rows


@few
@given(table=tables())
def test_other_verbs_of_rows(table: Any) -> None:
    columns, rows = table
    firsts, codes, counts = walked(rows)
    made, uniques = warphash.factorize(columns)
    assert made.tolist() == codes and rows_of(uniques) == [rows[first] for first in firsts]
    assert warphash.nunique(columns) == len(firsts)
    assert warphash.duplicated(columns).tolist() == [position not in firsts for position in range(len(rows))]
    values, times = warphash.value_counts(columns)
    assert dict(zip(rows_of(values), times.tolist(), strict=True)) == {
        rows[first]: count for first, count in zip(firsts, counts, strict=True)
    }


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_other_libraries_and_nulls(library: str) -> None:
    module = pytest.importorskip(library)
    column = getattr(module, "array" if library == "pyarrow" else "Series")(["p", None, "p", "q", None])
    numbers = np.array([1, 2, 1, 1, 2])
    values, inverse = warphash.unique((column, numbers), return_inverse=True)
    assert type(values[0]) is type(column) and values[1].tolist() == [1, 2, 1]
    assert np.asarray(inverse).tolist() == [0, 1, 0, 2, 1]
    codes, uniques = warphash.factorize((numbers, column))
    assert codes.tolist() == [0, -1, 0, 1, -1] and uniques[0].tolist() == [1, 1]
    assert warphash.factorize((numbers, column), nulls="key")[0].tolist() == [0, 1, 0, 2, 1]


def test_ranges_that_have_no_room_together() -> None:
    """Rows so far are numbered, and so is a column of a wide range."""
    random = np.random.default_rng(1)
    wide = [random.integers(-(2**62), 2**62, 30)[random.integers(0, 30, 2000)] for _ in range(4)]
    columns = (*wide, random.integers(0, 3, 2000), wide[0].view("u8"))
    firsts, codes, _ = walked(rows_of(columns))
    values, inverse = warphash.unique(columns, return_inverse=True)
    assert inverse.tolist() == codes and len(values) == 6 and len(values[0]) == len(firsts)


def test_columns_of_several_lengths() -> None:
    with pytest.raises(ShapeError, match="of one length, got 2, 3"):
        warphash.unique((np.arange(2), np.arange(3)))


def test_a_tuple_of_numbers_is_a_list() -> None:
    assert warphash.unique((3, 1, 3)).tolist() == [3, 1]


def test_refused_memory_is_an_error() -> None:
    columns = np.arange(100) // 2, np.array(["a", "b"] * 50)
    for first in range(1, 100):
        with refusing(engine_for("cpu"), first) as refusals:
            try:
                warphash.unique(columns, return_counts=True)
            except MemoryError:
                assert refusals.refused
                continue
        assert not refusals.refused and first > 1
        return
    raise AssertionError("the call still asks for memory")


def test_columns_that_change_meanwhile_break_no_memory() -> None:
    n, ended = 100_000, threading.Event()
    columns = tuple(np.random.default_rng(2).integers(0, 50, n) for _ in range(2))

    def write() -> None:
        random = np.random.default_rng(3)
        while not ended.is_set():
            columns[0][random.integers(0, n, 500)] = random.integers(-(2**60), 2**60, 500)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            _, inverse = warphash.unique(columns, return_inverse=True)
            assert inverse.min() >= 0 and inverse.max() < n
    finally:
        ended.set()
        writer.join()


def test_truth_values_of_any_byte() -> None:
    odd = np.array([0, 1, 2, 255], "u1").view(bool)
    values = warphash.unique((odd, np.zeros(4, "i8")))
    assert values[0].tolist() == [False, True]


def test_an_axis_that_rows_do_not_have() -> None:
    with pytest.raises(ParameterError, match="one axis, got axis=1"):
        warphash.unique((np.arange(2), np.arange(2)), axis=1)


def test_scalars_of_a_library_are_no_columns() -> None:
    pandas = pytest.importorskip("pandas")
    assert len(warphash.unique((pandas.Timestamp(0), pandas.Timestamp(1)))) == 2
