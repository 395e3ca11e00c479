"""Which rows of one side of a join may have a partner, by bits of the words of the other side."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.adapters.numpy import address_of
from ..runtime.devices import engine_for
from ..storage.joins.word_filter import WordFilter
from .key_hash import Words

__all__ = ["LikelyRows"]

_FEWEST_ROWS = 1 << 12
"""Of a table that tells whether the bits are worth their time."""

_WORD_BYTES = 8


class LikelyRows:
    """Bits of the words of one side: all rows of the other side with a partner pass, and one in 50 without.

    Words are added before any row is asked for. If most rows pass, or there are too many words, all rows pass from then
    on.

    Parameters
    ----------
    most_bytes
        Of the words.
    """

    def __init__(self, most_bytes: int) -> None:
        self._words: list[Words] = []
        self._left = most_bytes // _WORD_BYTES
        self._filter: WordFilter | None = None
        self._is_used = True

    def add(self, words: Words) -> None:
        """Add words."""
        self._left -= len(words)
        if self._left < 0:
            self._is_used, self._words = False, []
        elif self._is_used:
            self._words.append(words)

    @property
    def is_used(self) -> bool:
        """Whether some rows may be left out."""
        return self._is_used

    def places(self, words: Words) -> Any:
        """The places of rows that may have a partner, ascending; None: all places."""
        if not (self._is_used and len(words)):
            return None
        if self._filter is None:
            if not self._words:
                return np.empty(0, np.uint32)
            whole = np.concatenate(self._words)
            self._words = []
            self._filter = WordFilter(engine_for("cpu"), address_of(whole), _WORD_BYTES, len(whole))
        found = self._filter.likely(address_of(words), len(words)).elements
        if len(words) >= _FEWEST_ROWS and 2 * len(found) > len(words):
            self._is_used, self._filter = False, None
        return found
