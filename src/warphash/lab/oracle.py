"""What the right answer is: sorting and binary search over the input, no code shared with a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Answers", "Oracle"]

Array = npt.NDArray[Any]


class Oracle:
    """Knows the pairs that went into a table.

    Parameters
    ----------
    keys, values
        Arrays of one length; of equal keys, the value of any is right. ``values`` is None for a set.
    argsort
        Of integers; a machine with a GPU has a faster one than NumPy's.
    """

    def __init__(self, keys: Array, values: Array | None, argsort: Callable[[Array], Array] = np.argsort) -> None:
        self._argsort = argsort
        order = argsort(keys)
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
        """How many keys differ."""
        return len(self._distinct)

    def answers(self, asked: Array) -> Answers:
        """The right answers to a batch of lookups; O(n log n)."""
        at = np.zeros(len(asked), np.int64)
        order = self._argsort(asked)  # needles in order keep the binary search in cache
        at[order] = np.searchsorted(self._distinct, asked[order])
        at[at == self.distinct] = 0
        found = self._distinct[at] == asked if self.distinct else np.zeros(len(asked), bool)
        values = None if self._values is None else np.where(found, self._values[at], 0) if self.distinct else None
        return Answers(found, values, at, self._others)

    def check_find(self, asked: Array, values: Array | None, found: Array) -> int:
        """How many answers to ``asked`` are wrong."""
        return self.answers(asked).mismatches(values, found)

    def check_items(self, keys: Array, values: Array | None) -> int:
        """How many pairs of a table are lost, doubled or invented."""
        order = self._argsort(keys)
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
    """Right answers to one batch, to hold many tables' answers against."""

    def __init__(self, found: Array, values: Array | None, at: Array, others: _Pairs | None) -> None:
        self.found, self.values = found, values
        self._at, self._others = at, others

    def mismatches(self, values: Array | None, found: Array) -> int:
        """How many answers are wrong; where a key is absent, its value is free."""
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
    """Which values came with a key that came more than once."""

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
