"""The oracle: right answers by sorting and binary search over the input, without any code of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.workloads import first_of_each
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
        Sorts integers of ``arrays``, if not with the function of that name. A GPU sorts faster than NumPy.
    arrays
        The array module that works: NumPy, or CuPy, with which a check of 50 million pairs takes milliseconds. Arrays
        may come from the host and from the device.
    """

    def __init__(self, keys: Any, values: Any, argsort: Callable[[Any], Any] | None = None, arrays: Any = np) -> None:
        self._arrays, self._argsort = arrays, argsort or arrays.argsort
        keys, values = self._here(keys), self._here(values)
        order = self._argsort(keys)
        with turns.away_with(self._arrays):
            self._number(keys, values, order)

    def _here(self, array: Any) -> Any:
        return None if array is None else self._arrays.asarray(array)

    def _number(self, keys: Any, values: Any, order: Any) -> None:
        """Find the distinct keys and their values, by the order of the keys."""
        ordered = keys[order]
        first = first_of_each(ordered, self._arrays)
        self._distinct = ordered[first]
        self._values = None if values is None else values[order[first]]
        self._others = None
        if values is not None and len(self._distinct) < len(keys):
            self._others = _Pairs(self._arrays.cumsum(first) - 1, values[order], self._arrays)

    @property
    def distinct(self) -> int:
        """Number of distinct keys."""
        return len(self._distinct)

    def answers(self, asked: Any) -> Answers:
        """The right answers to a batch of lookups, in O(n log n) time."""
        asked = self._here(asked)
        order = self._argsort(asked)  # sorted needles keep the binary search in cache
        with turns.away_with(self._arrays):
            return self._answers(asked, order)

    def _answers(self, asked: Any, order: Any) -> Answers:
        arrays = self._arrays
        at = arrays.zeros(len(asked), np.int64)
        at[order] = arrays.searchsorted(self._distinct, asked[order])
        at[at == self.distinct] = 0
        found = self._distinct[at] == asked if self.distinct else arrays.zeros(len(asked), bool)
        values = None if self._values is None else arrays.where(found, self._values[at], 0) if self.distinct else None
        return Answers(found, values, at, self._others, arrays)

    def check_find(self, asked: Any, values: Any, found: Any) -> int:
        """Number of wrong answers to a lookup of ``asked``."""
        return self.answers(asked).mismatches(values, found)

    def check_items(self, keys: Any, values: Any) -> int:
        """Number of lost, doubled or invented pairs of a table."""
        keys, values = self._here(keys), self._here(values)
        order = self._argsort(keys)
        with turns.away_with(self._arrays):
            return self._wrong_items(keys, values, order)

    def _wrong_items(self, keys: Any, values: Any, order: Any) -> int:
        arrays, ordered = self._arrays, keys[order]
        if len(ordered) != self.distinct or not bool((ordered == self._distinct).all()):
            common = len(arrays.intersect1d(keys, self._distinct))
            return max(len(keys), self.distinct) - common
        if values is None or self._values is None:
            return 0
        wrong = values[order] != self._values
        if self._others is not None:
            wrong[wrong] = ~self._others.has(arrays.flatnonzero(wrong), values[order][wrong])
        return int(wrong.sum())


class Answers:
    """Right answers to one batch of lookups, to compare with the answers of many tables."""

    def __init__(self, found: Any, values: Any, at: Any, others: _Pairs | None, arrays: Any) -> None:
        self.found, self.values = found, values
        self._at, self._others, self._arrays = at, others, arrays

    def mismatches(self, values: Any, found: Any) -> int:
        """Number of wrong answers. The value of an absent key does not matter."""
        arrays = self._arrays
        with turns.away_with(arrays):
            return self._mismatches(None if values is None else arrays.asarray(values), arrays.asarray(found))

    def _mismatches(self, values: Any, found: Any) -> int:
        if len(found) != len(self.found):
            return max(len(found), len(self.found))
        wrong = found.astype(bool) != self.found
        if values is not None and self.values is not None:
            differs = self.found & (values != self.values)
            if self._others is not None and bool(differs.any()):
                differs[differs] = ~self._others.has(self._at[differs], values[differs])
            wrong |= differs
        return int(wrong.sum())


class _Pairs:
    """All right values of the keys that occur more than once."""

    def __init__(self, place: Any, values: Any, arrays: Any) -> None:
        self._arrays = arrays
        self._values, rank = arrays.unique(values, return_inverse=True)
        self._codes = arrays.unique(place * len(self._values) + rank)

    def has(self, place: Any, values: Any) -> Any:
        """Whether each pair of the number of a distinct key and a value is right."""
        rank = self._arrays.searchsorted(self._values, values)
        rank[rank == len(self._values)] = 0
        codes = place * len(self._values) + rank
        at = self._arrays.searchsorted(self._codes, codes)
        at[at == len(self._codes)] = 0
        return (self._values[rank] == values) & (self._codes[at] == codes)
