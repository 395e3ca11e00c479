"""Right answers by NumPy's sort and binary search. No code of a hash table, and none of the product's, takes part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..bench.oracle import Oracle
from ..data.workloads import distinct, first_of_each
from .base import Array, Table

__all__ = [
    "Distinct",
    "distinct_rows",
    "four_summaries",
    "joined",
    "membership",
    "pairs",
    "pairs_found",
    "sums",
]


class Distinct:
    """The distinct keys of a column, and how often each appears.

    Each method counts wrong answers. The distinct keys may come in any order.
    """

    def __init__(self, table: Table) -> None:
        self._keys = _comparable(table["key"])
        self._distinct = distinct(self._keys)
        ordered = np.sort(self._keys)
        self._counts = np.diff(np.flatnonzero(first_of_each(ordered)), append=len(ordered))

    def values(self, values: Array) -> int:
        """Of the distinct keys."""
        return _differing((np.sort(_comparable(values)),), (self._distinct,))

    def codes(self, values: Array, codes: Array) -> int:
        """Of the distinct keys, and of the number of each key among them."""
        return self.values(values) + self._wrong_codes(_comparable(values), codes.reshape(-1))

    def counts(self, values: Array, counts: Array) -> int:
        """Of the distinct keys, and of how often each appears."""
        if len(values) != len(counts):
            return max(len(values), len(counts))
        order = np.argsort(_comparable(values))
        return _differing((_comparable(values)[order], counts[order]), (self._distinct, self._counts))

    def codes_and_counts(self, values: Array, codes: Array, counts: Array) -> int:
        """Of all three."""
        return self.counts(values, counts) + self._wrong_codes(_comparable(values), codes.reshape(-1))

    def _wrong_codes(self, values: Array, codes: Array) -> int:
        if len(codes) != len(self._keys):
            return max(len(codes), len(self._keys))
        inside = (codes >= 0) & (codes < len(values))
        return int((~inside).sum()) + int((values[codes[inside]] != self._keys[inside]).sum())


def distinct_rows(table: Table) -> Callable[[Array, Array], int]:
    """The distinct pairs of two columns."""
    ordered = _ordered(*table.values())
    first = np.logical_or.reduce([first_of_each(column) for column in ordered])
    right = tuple(column[first] for column in ordered)
    return lambda *columns: _differing(_ordered(*columns), right)


def membership(asked: Table, held: Table) -> Callable[[Array], int]:
    """Whether each key of one table is in the other."""
    answers = Oracle(held["key"], None).answers(asked["key"])
    return lambda flags: answers.mismatches(None, flags)


def pairs(table: Table) -> Callable[[Array, Array], int]:
    """All pairs of a table, in any order. No value repeats."""
    right = _by_value(table["key"], table["value"])
    return lambda keys, values: _differing(_by_value(keys, values), right)


def pairs_found(table: Table, asked: Table) -> Callable[[Array, Array], int]:
    """For each key that is looked up, the pairs of that key; all in any order. No value repeats in the table."""
    keys, values = _by_key(table, "value")
    wanted = np.sort(asked["key"])
    places, at = _equal(wanted, keys)
    right = _by_value(wanted[places], values[at])
    return lambda keys, values: _differing(_by_value(keys, values), right)


def joined(left: Table, right: Table) -> Callable[[Array, Array], int]:
    """The rows of two sides whose keys are equal, in any order.

    An answer is right if each of its pairs has equal keys, no pair repeats, and there are as many pairs as there must
    be. These three take a fifth of the time of the pairs themselves.
    """
    keys = np.sort(right["key"])
    begins, ends = (np.searchsorted(keys, np.sort(left["key"]), side) for side in ("left", "right"))
    expected = int((ends - begins).sum())

    def wrong(left_rows: Array, right_rows: Array) -> int:
        if len(left_rows) != len(right_rows):
            return max(len(left_rows), len(right_rows), expected)
        inside = (left_rows >= 0) & (left_rows < len(left["key"])) & (right_rows >= 0) & (right_rows < len(keys))
        left_rows, right_rows = left_rows[inside].astype(np.int64), right_rows[inside]
        equal = left["key"][left_rows] == right["key"][right_rows]
        words = np.sort(left_rows[equal] * len(keys) + right_rows[equal])
        found = int(first_of_each(words).sum())
        return len(inside) - found + expected - found

    return wrong


def sums(table: Table) -> Callable[[Array, Array], int]:
    """The sum of the values of each key; keys in any order."""
    return _summaries(table, np.add.reduceat)


def four_summaries(table: Table) -> Callable[..., int]:
    """Sum, minimum, maximum and count of the values of each key; keys in any order."""
    return _summaries(table, np.add.reduceat, np.minimum.reduceat, np.maximum.reduceat, _lengths)


def _lengths(values: Array, begins: Array) -> Array:
    return np.diff(begins, append=len(values))


def _summaries(table: Table, *made: Callable[[Array, Array], Array]) -> Callable[..., int]:
    keys, values = _by_key(table, "value")
    begins = np.flatnonzero(first_of_each(keys))
    expected = (keys[begins], *(one(values, begins) for one in made))

    def wrong(*columns: Array) -> int:
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            return max(lengths)
        order = np.argsort(columns[0])
        return _differing(tuple(column[order] for column in columns), expected)

    return wrong


def _by_key(table: Table, other: str) -> tuple[Array, Array]:
    """The keys of a table in ascending order, and another column in that order."""
    order = np.argsort(table["key"])
    return table["key"][order], table[other][order]


def _equal(asked: Array, keys: Array) -> tuple[Array, Array]:
    """The pairs of equal keys: places in ``asked``, and places in ``keys``, which ascend."""
    begins, ends = (np.searchsorted(keys, asked, side) for side in ("left", "right"))
    counts = ends - begins
    places = np.repeat(np.arange(len(asked)), counts)
    return places, np.repeat(ends - np.cumsum(counts), counts) + np.arange(len(places))


def _comparable(array: Array) -> Array:
    """Strings as bytes, which NumPy sorts faster. All are of ASCII characters."""
    return array if array.dtype.kind in "iu" else array.astype(str).astype("S")


def _by_value(keys: Array, values: Array) -> tuple[Array, ...]:
    """Pairs in the order of their values, each of which has one key: a quarter of the time of `_ordered`."""
    if len(keys) != len(values):
        return keys, values
    order = np.argsort(values)
    return keys[order], values[order]


def _ordered(*columns: Array) -> tuple[Array, ...]:
    """Rows in ascending order."""
    if len({len(column) for column in columns}) > 1:
        return columns
    order = np.lexsort(columns[::-1])
    return tuple(column[order] for column in columns)


def _differing(columns: tuple[Array, ...], right: tuple[Array, ...]) -> int:
    """The number of rows that differ."""
    lengths = {len(column) for column in (*columns, *right)}
    if len(columns) != len(right) or len(lengths) > 1:
        return max(lengths)
    return int(np.logical_or.reduce([ours != its for ours, its in zip(columns, right, strict=True)]).sum())
