"""Rows with columns of each type that keys have, in each library, against dicts of tuples.

The other side of a verb may be of another library: its dictionary, its unit or its zone is another one.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import warphash
from support.columns import KINDS, canonical
from support.relational import items_of

SIDES = [(name, one, other) for name, kind in KINDS.items() for one in kind.makers for other in kind.makers]

Row = tuple[Any, int]


class Side:
    """Rows of a column of a kind, and of a column of numbers.

    Parameters
    ----------
    seed
        Of the items, which repeat.
    has_nulls
        Some are nulls, if the library has nulls.
    """

    def __init__(self, name: str, library: str, seed: int, *, has_nulls: bool = False) -> None:
        kind, random = KINDS[name], np.random.default_rng(seed)
        pool = [item for item in kind.items if item == item]  # NaN has rules of its own (test_composites.py)
        pool += [None] * (has_nulls and kind.has_nulls_in(library))
        items = [pool[number] for number in random.integers(0, len(pool), 20)]
        numbers = random.integers(0, 3, 20)
        self.columns = (kind.makers[library](items), numbers)
        self.rows = [(canonical(item), number) for item, number in zip(items, numbers.tolist(), strict=True)]
        self.firsts = list(dict.fromkeys(self.rows))
        self.codes = [self.firsts.index(row) for row in self.rows]

    def rows_of(self, made: Any) -> list[Row]:
        """The rows of columns that a verb gave."""
        return [(canonical(item), int(number)) for item, number in zip(*map(items_of, made), strict=True)]


def given(name: str, one: str, other: str) -> tuple[Side, Side]:
    pytest.importorskip(one), pytest.importorskip(other)
    return Side(name, one, 1, has_nulls=True), Side(name, other, 2, has_nulls=True)


@pytest.mark.parametrize(("name", "library"), [(name, one) for name, one, other in SIDES if one == other])
def test_verbs_of_one_side(name: str, library: str) -> None:
    side, _ = given(name, library, library)
    values, inverse, counts = warphash.unique(side.columns, return_inverse=True, return_counts=True)
    assert side.rows_of(values) == side.firsts and np.asarray(inverse).tolist() == side.codes
    assert np.asarray(counts).tolist() == [side.codes.count(code) for code in range(len(side.firsts))]
    codes, values = warphash.factorize(side.columns, nulls="key")
    assert np.asarray(codes).tolist() == side.codes and side.rows_of(values) == side.firsts
    made = warphash.group_by(side.columns, nulls="key").agg(sum=(np.arange(20), "sum"))
    sums = [sum(at for at, code in enumerate(side.codes) if code == group) for group in range(len(side.firsts))]
    assert side.rows_of(made.keys) == side.firsts and np.asarray(made["sum"]).tolist() == sums


@pytest.mark.parametrize(("name", "one", "other"), SIDES)
def test_verbs_of_two_sides(name: str, one: str, other: str) -> None:
    left, right = given(name, one, other)
    flags = warphash.isin(left.columns, right.columns, nulls="equal")
    assert np.asarray(flags).tolist() == [row in right.rows for row in left.rows]
    index = warphash.Index(tuple(warphash.unique(left.columns)))
    expected = [left.firsts.index(row) if row in left.firsts else -1 for row in right.rows]
    assert np.asarray(index.get_indexer(right.columns)).tolist() == expected
    positions = warphash.join(left.columns, right.columns, nulls="equal")
    pairs = zip(*(np.asarray(each).tolist() for each in positions), strict=True)
    equal = [(at, to) for at, row in enumerate(left.rows) for to, wanted in enumerate(right.rows) if row == wanted]
    assert sorted(pairs) == equal


@pytest.mark.parametrize("is_pair", [False, True])
def test_decimal_numbers_of_other_scales_are_compared_by_their_numbers(is_pair: bool) -> None:
    pa = pytest.importorskip("pyarrow")
    texts = [["1.50", "2.25", "-7", "9.99"], ["1.500", "2.255", "-7.000", None, "12345678901234567.890"]]
    columns: list[Any] = [
        pa.array([text and Decimal(text) for text in each], pa.decimal128(20, scale))
        for each, scale in zip(texts, (2, 3), strict=True)
    ]
    if is_pair:
        columns = [(column, np.zeros(len(column), np.int64)) for column in columns]
    one, other = columns
    assert np.asarray(warphash.isin(one, other)).tolist() == [True, False, True, False]
    assert np.asarray(warphash.isin(other, one)).tolist() == [True, False, True, False, False]
    assert np.asarray(warphash.Index(one).get_indexer(other)).tolist() == [0, -1, 2, -1, -1]
    left, right = warphash.join(one, other)
    assert list(zip(np.asarray(left).tolist(), np.asarray(right).tolist(), strict=True)) == [(0, 0), (2, 2)]


@pytest.mark.parametrize("name", KINDS)
def test_frames(name: str) -> None:
    pd = pytest.importorskip("pandas")
    if "pandas" not in KINDS[name].makers:
        pytest.skip("no column of pandas")
    left, right = given(name, "pandas", "pandas")
    frames = [
        pd.DataFrame({"a": side.columns[0].reset_index(drop=True), "b": side.columns[1], at: range(20)})
        for side, at in ((left, "l"), (right, "r"))
    ]
    merged = warphash.merge(*frames, on=["a", "b"], nulls="equal")
    equal = [(at, to) for at, row in enumerate(left.rows) for to, wanted in enumerate(right.rows) if row == wanted]
    assert sorted(zip(merged["l"].tolist(), merged["r"].tolist(), strict=True)) == equal
    kept = warphash.drop_duplicates(frames[0], subset=["a", "b"])
    assert kept["l"].tolist() == [left.rows.index(row) for row in left.firsts]
