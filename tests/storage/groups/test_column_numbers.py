"""Rows of columns numbered as words, beside a dict of tuples of Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warphash
from support.changing import changed_meanwhile
from warphash.runtime.devices import engine_for
from warphash.storage.groups import column_numbers
from warphash.storage.groups.column_numbers import key_column, number_columns, number_matrix
from warphash.storage.groups.spans import spans_of

Array = npt.NDArray[Any]
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """That many threads."""
    warphash.set_num_threads(request.param)
    yield request.param
    warphash.set_num_threads(None)


def walked(rows: list[tuple[Any, ...]]) -> tuple[list[int], list[int], list[int]]:
    """First rows, numbers and counts, by a walk from the front."""
    number_of: dict[tuple[Any, ...], int] = {}
    firsts: list[int] = []
    counts: list[int] = []
    numbers = []
    for position, row in enumerate(rows):
        number = number_of.setdefault(row, len(number_of))
        if number == len(firsts):
            firsts.append(position)
            counts.append(0)
        numbers.append(number)
        counts[number] += 1
    return firsts, numbers, counts


def check(columns: list[Array]) -> None:
    """Columns, and as a matrix if they are of one type of integers."""
    n = len(columns[0])
    expected = walked(list(zip(*(column.tolist() for column in columns), strict=True)))
    keys = [key_column(column.ctypes.data, column.itemsize) for column in columns]
    assert numbered(n, lambda at: number_columns(engine_for("cpu"), keys, n, numbers=at, counts=True)) == expected
    if len({column.dtype for column in columns}) == 1 and columns[0].dtype.kind in "iu":
        rows = np.stack(columns, 1)
        at, width = rows.ctypes.data, rows.itemsize
        made = numbered(
            n, lambda to: number_matrix(engine_for("cpu"), at, width, (n, len(columns)), numbers=to, counts=True)
        )
        assert made == expected


def numbered(n: int, number: Any) -> tuple[list[int], list[int], list[int]]:
    engine, numbers = engine_for("cpu"), np.empty(n, "i8")
    made = number(numbers.ctypes.data)
    firsts, counts = (engine.to_host(part.ptr, np.uint32, made.size).tolist() for part in (made.firsts, made.counts))
    return firsts, numbers.tolist(), counts


@pytest.mark.parametrize("second", INTEGERS)
@pytest.mark.parametrize("first", INTEGERS)
def test_pairs_of_integers(threads: int, first: str, second: str) -> None:
    """At the least, around zero and at the greatest values of each type."""
    random = np.random.default_rng(1)
    for n, place in ((1, "zero"), (70, "least"), (40_000, "zero"), (3_000, "greatest")):
        columns = []
        for dtype in (first, second):
            least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
            low = {"least": least, "zero": max(least, -50), "greatest": greatest - 99}[place]
            columns.append(np.array([low + int(step) for step in random.integers(0, 100, n)], dtype))
        check(columns)


@pytest.mark.parametrize("many_rows", [0, 1 << 40])
@pytest.mark.parametrize("distinct", [3, 2_000])
@pytest.mark.parametrize("bits", [(64, 64), (64, 1), (40, 40, 40), (8, 64, 8, 64), (31, 32), (32, 32), (21,) * 6])
def test_spans_that_no_word_has_room_for(
    monkeypatch: pytest.MonkeyPatch, bits: tuple[int, ...], distinct: int, many_rows: int
) -> None:
    """Columns are numbered first, or as many from the front as a word has room for. A matrix may stay as it is."""
    monkeypatch.setattr(column_numbers, "_MANY_ROWS", many_rows)
    random, n = np.random.default_rng(2), 5_000
    places = random.integers(0, distinct, n)
    columns = []
    for width in bits:
        pool = random.integers(0, 1 << width, distinct, np.uint64, endpoint=False) if width < 64 else None
        pool = random.integers(0, 2**64 - 1, distinct, np.uint64, endpoint=True) if pool is None else pool
        pool[:2] = 0, (1 << width) - 1
        columns.append(pool[(places + random.integers(0, 2, n)) % distinct])
    check(columns)


def test_numbers_of_many_columns_are_numbered_again() -> None:
    """Each span is less than the number of rows, and all of them together are more than a word holds."""
    random = np.random.default_rng(3)
    check([random.integers(0, 4_000, 5_000) for _ in range(7)])
    check([np.arange(5_000)] * 9)


@pytest.mark.parametrize("width", [3, 9, 16])
def test_keys_that_are_no_integers(width: int) -> None:
    random = np.random.default_rng(4)
    keys = random.integers(0, 20, 3_000).astype(f"S{width}")
    check([keys, random.integers(0, 5, 3_000).astype("u1"), keys[::-1].copy()])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_spans_of_columns_with_gaps(threads: int, dtype: str) -> None:
    random, n = np.random.default_rng(5), 40_000
    limits = np.iinfo(dtype)
    rows = random.integers(limits.min, limits.max, (n, 3), dtype, endpoint=True)
    rows[:, 1] = random.integers(-20, 20, n).astype(dtype)
    width = rows.itemsize
    columns = [key_column(rows.ctypes.data + width * place, width, 3 * width) for place in range(3)]
    made = spans_of(engine_for("cpu"), columns, n)
    for span, column in zip(made, rows.T, strict=True):
        spans = [(int(seen.min()), int(seen.max())) for seen in (column.copy().view(f"{kind}{width}") for kind in "iu")]
        low, high = min(spans, key=lambda bounds: bounds[1] - bounds[0])
        assert span == (low % 2**64, high - low + 1)


def test_columns_that_change_meanwhile_break_no_memory() -> None:
    """Numbers stay below the number of rows, by direct addressing, too."""
    n = 200_000
    columns = [np.random.default_rng(6).integers(0, 50, n) for _ in range(2)]
    keys = [key_column(column.ctypes.data, 8) for column in columns]
    numbers = np.empty(n, "i8")

    def change(random: np.random.Generator) -> None:
        columns[0][random.integers(0, n, 500)] = random.integers(-(2**62), 2**62, 500)
        columns[0][random.integers(0, n, 5_000)] = 1

    with changed_meanwhile(change):
        for _ in range(20):
            made = number_columns(engine_for("cpu"), keys, n, numbers=numbers.ctypes.data)
            assert 0 < made.size <= n and numbers.min() >= 0 and numbers.max() < n
            columns[0][:] = 7
