"""What only a `MultiMap` asks: all pairs of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..batch import Batch
from ..rows import AllValues
from ..selection import offsets_of_counts

if TYPE_CHECKING:
    from ..word_rows import WordRows
    from .store import ChainSlots

__all__ = ["RepeatedKeys"]


class RepeatedKeys:
    """Operations on all pairs of a key: packed rows in, packed rows out.

    Parameters
    ----------
    words
        Rows of words, whose store is a `ChainSlots` of keys that repeat.
    """

    def __init__(self, words: WordRows) -> None:
        self._words = words
        store: Any = words.store
        self._chains: ChainSlots = store
        self._engine = store.engine

    def count(self, keys: int, n: int, out: int, stream: Any) -> None:
        """Pairs of each key: uint32[n]."""
        self._words.counts(keys, n, out, stream, "count")

    def insert_runs(self, keys: int, values: int, n: int, stream: Any) -> None:
        """Add every pair. The pairs of elements with one key that follow each other keep the order of the batch."""
        words = self._words
        key_words, value_words = words._keys(keys, n, stream), words._values(values, n, stream)
        self._chains.update(Batch(key_words[0], value_words[0], n, stream=stream), runs=True)

    def erase_all(self, keys: int, n: int, out: int, stream: Any) -> None:
        """Erase every pair of each key: uint32[n], how many each element erased."""
        words = self._words._keys(keys, n, stream)
        self._chains.erase(words[0], n, stream=stream, counts=out, entry="erase_all")

    def find_all(self, keys: int, n: int, offsets: int, stream: Any) -> AllValues:
        """All values of all keys, those of each from its offset on: uint64[n + 1]. Waits."""
        rows, engine = self._words, self._engine
        counts = engine.allocate(4 * max(1, n), stream)
        self.count(keys, n, counts.ptr, stream)
        total = offsets_of_counts(engine, counts.ptr, n, offsets, stream)

        def write(values: int) -> None:
            words = rows._keys(keys, n, stream)
            landing, held = rows._landing(values, total, rows.value_bytes, rows._value_word, stream)
            self._chains.array.find_all(words[0], n, offsets, landing, stream)
            if held is not None:
                rows._narrow(landing, total, values, rows.value_bytes, rows._value_word, stream)

        return AllValues(total, write)
