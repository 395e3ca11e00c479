"""Right answers by NumPy's sort and binary search. No code of a hash table, and none of the product's, takes part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..bench.oracle import Oracle
from ..data.workloads import distinct, first_of_each
from .base import Array, Table

__all__ = ["Distinct", "distinct_rows", "membership", "pairs", "pairs_found"]


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
    order = np.argsort(table["key"], kind="stable")
    keys, values = table["key"][order], table["value"][order]
    wanted = np.sort(asked["key"])
    begins, ends = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    counts = ends - begins
    at = np.repeat(ends - np.cumsum(counts), counts) + np.arange(counts.sum())
    right = _by_value(np.repeat(wanted, counts), values[at])
    return lambda keys, values: _differing(_by_value(keys, values), right)


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
