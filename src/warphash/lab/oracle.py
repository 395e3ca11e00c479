"""The oracle: right answers by sorting and binary search over the input, without any code of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from . import turns

__all__ = ["Answers", "Oracle"]

Array = npt.NDArray[Any]


class Oracle:
    """Gives the right answers about the pairs that were inserted into a table.

    Parameters
    ----------
    keys, values
        Arrays of one length. If a key occurs several times, any of its values is right. ``values`` is None for a set.
    argsort
        Sorts integers. A GPU sorts faster than NumPy.
    """

    def __init__(self, keys: Array, values: Array | None, argsort: Callable[[Array], Array] = np.argsort) -> None:
        self._argsort = argsort
        order = argsort(keys)
        with turns.away():
            self._number(keys, values, order)

    def _number(self, keys: Array, values: Array | None, order: Array) -> None:
        """Find the distinct keys and their values, by the order of the keys."""
        ordered = keys[order]
        first = np.ones(len(keys), bool)
        first[1:] = ordered[1:] != ordered[:-1]
        self._distinct = ordered[first]
        self._values = None if values is None else values[order[first]]
        self._others = None
        if values is not None and len(self._distinct) < len(keys):
            self._others = _Pairs(np.cumsum(first) - 1, values[order])

    @property
    def distinct(self) -> int:
        """Number of distinct keys."""
        return len(self._distinct)

    def answers(self, asked: Array) -> Answers:
        """The right answers to a batch of lookups, in O(n log n) time."""
        order = self._argsort(asked)  # sorted needles keep the binary search in cache
        with turns.away():
            return self._answers(asked, order)

    def _answers(self, asked: Array, order: Array) -> Answers:
        at = np.zeros(len(asked), np.int64)
        at[order] = np.searchsorted(self._distinct, asked[order])
        at[at == self.distinct] = 0
        found = self._distinct[at] == asked if self.distinct else np.zeros(len(asked), bool)
        values = None if self._values is None else np.where(found, self._values[at], 0) if self.distinct else None
        return Answers(found, values, at, self._others)

    def check_find(self, asked: Array, values: Array | None, found: Array) -> int:
        """Number of wrong answers to a lookup of ``asked``."""
        return self.answers(asked).mismatches(values, found)

    def check_items(self, keys: Array, values: Array | None) -> int:
        """Number of lost, doubled or invented pairs of a table."""
        order = self._argsort(keys)
        with turns.away():
            return self._wrong_items(keys, values, order)

    def _wrong_items(self, keys: Array, values: Array | None, order: Array) -> int:
        ordered = keys[order]
        if len(ordered) != self.distinct or not np.array_equal(ordered, self._distinct):
            common = len(np.intersect1d(keys, self._distinct))
            return max(len(keys), self.distinct) - common
        if values is None or self._values is None:
            return 0
        wrong = values[order] != self._values
        if self._others is not None:
            wrong[wrong] = ~self._others.has(np.flatnonzero(wrong), values[order][wrong])
        return int(wrong.sum())


class Answers:
    """Right answers to one batch of lookups, to compare with the answers of many tables."""

    def __init__(self, found: Array, values: Array | None, at: Array, others: _Pairs | None) -> None:
        self.found, self.values = found, values
        self._at, self._others = at, others

    def mismatches(self, values: Array | None, found: Array) -> int:
        """Number of wrong answers, given as arrays of the host. The value of an absent key does not matter."""
        with turns.away():
            return self._mismatches(values, found)

    def _mismatches(self, values: Array | None, found: Array) -> int:
        if len(found) != len(self.found):
            return max(len(found), len(self.found))
        wrong = found.astype(bool) != self.found
        if values is not None and self.values is not None:
            differs = self.found & (values != self.values)
            if self._others is not None and differs.any():
                differs[differs] = ~self._others.has(self._at[differs], values[differs])
            wrong |= differs
        return int(wrong.sum())


class _Pairs:
    """All right values of the keys that occur more than once."""

    def __init__(self, place: Array, values: Array) -> None:
        self._values, rank = np.unique(values, return_inverse=True)
        self._codes = np.unique(place * len(self._values) + rank)

    def has(self, place: Array, values: Array) -> npt.NDArray[np.bool_]:
        rank = np.searchsorted(self._values, values)
        rank[rank == len(self._values)] = 0
        codes = place * len(self._values) + rank
        at = np.searchsorted(self._codes, codes)
        at[at == len(self._codes)] = 0
        return np.asarray((self._values[rank] == values) & (self._codes[at] == codes))
