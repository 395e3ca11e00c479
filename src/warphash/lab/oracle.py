"""What the right answer is: sorting and binary search over the input, no code shared with a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Oracle"]

Array = npt.NDArray[Any]


class Oracle:
    """Knows the pairs of a workload.

    Parameters
    ----------
    keys, values
        Arrays of one length; of equal keys, any of their values is right. ``values`` may be None.
    """

    def __init__(self, keys: Array, values: Array | None) -> None:
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]
        self._values = values
        self._repeats = bool((self._sorted[1:] == self._sorted[:-1]).any())
        self.distinct = 1 + int((self._sorted[1:] != self._sorted[:-1]).sum()) if len(keys) else 0

    def find_mismatches(self, asked: Array, values: Array | None, found: Array) -> int:
        """How many answers to ``asked`` are wrong."""
        if len(found) != len(asked):
            return abs(len(found) - len(asked))
        at = np.searchsorted(self._sorted, asked)
        at[at == len(self._sorted)] = 0
        there = self._sorted[at] == asked if len(self._sorted) else np.zeros(len(asked), bool)
        wrong = found.astype(bool) != there
        if values is not None and self._values is not None:
            expected = self._values[self._order[at]] if len(self._sorted) else values
            differs = there & (values != expected)
            if self._repeats and differs.any():
                differs[differs] = [not self._has(k, v) for k, v in zip(asked[differs], values[differs], strict=True)]
            wrong |= differs
        return int(wrong.sum())

    def item_mismatches(self, keys: Array, values: Array | None) -> int:
        """How many pairs of a table are lost, doubled or invented."""
        distinct = len(np.unique(keys))
        return (
            (len(keys) - distinct)
            + abs(self.distinct - distinct)
            + self.find_mismatches(keys, values, np.ones(len(keys), bool))
        )

    def _has(self, key: Any, value: Any) -> bool:
        assert self._values is not None
        first, last = np.searchsorted(self._sorted, key, "left"), np.searchsorted(self._sorted, key, "right")
        return bool((self._values[self._order[first:last]] == value).any())
