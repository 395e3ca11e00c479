"""The cache: pairs of the home that are on the device, who joins them, and who leaves.

A lookup that finds a key at home alone leaves the key with the candidates. The candidates are admitted together, by a
caller that has the table alone: so lookups change nothing but a queue, and the counts of accesses. The values are asked
for then, so an update meanwhile makes no candidate wrong.

Who stays. A sketch estimates how often each key was accessed, whatever tier it is on (`bounded.sketch`). Of a full
cache and its candidates, those that were accessed most often stay, and the others leave: this is the admission of
TinyLFU (Einziger, Friedman, Manes, 2017), in batches. A candidate that comes below those who left last is not even
asked for at home, so where the accesses do not change, hardly anything moves. No more are admitted at once than the
cache has room for, so a lookup of any length needs memory that follows from this room. Of more candidates a sample is
taken; the others are proposed again by the next lookup.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np

from ...errors import TableFull
from ...runtime.abi import Comparison, Flag, kind_of
from ...runtime.engine import Buffer, Engine
from ..batch import Batch
from ..bounded.bounded_rows import BoundedRows
from ..bounded.least import Numbers, keys_that_compare
from ..bounded.policies import Frequent
from ..chosen_elements import Part, flagged
from ..random_words import random_words
from ..rows import Rows
from .home import Home

__all__ = ["Cache"]

_QUEUE_SHARE = 16
"""Candidates are admitted when they are a sixteenth as many as the cache has room for."""

_NOTED_SHARE = 8
"""A long lookup notes candidates until they fill the cache, or are an eighth as many as a full cache holds.

An admission asks for each at home once more. With a sixteenth, and no more for a cache that is still empty, twelve
lookups of a quarter of the keys each by Zipf 0.99 did not fill a cache for a tenth of the keys, in pieces of a tenth of
its room: 0.905 of the hits of an oracle; with an eighth 0.971, with a quarter 0.975 (400,000 keys).
"""

_FEWEST_CANDIDATES = 512

_RANK = np.dtype(np.uint64)


class Cache:
    """Pairs in an engine's memory, each of which is at home, too.

    Parameters
    ----------
    bounded
        On the engine; empty. Its bound is what the cache has room for, and its policy is `Frequent`.

    Attributes
    ----------
    hits, misses
        Keys that lookups have met, and the others.
    admitted
        Pairs taken up.
    """

    def __init__(self, bounded: BoundedRows) -> None:
        self._bounded = bounded
        self._engine: Engine = bounded.store.engine
        self.hits = self.misses = self.admitted = 0
        self._queue: list[tuple[Buffer, int]] = []  # keys, and how many
        self._queued = 0
        self._least_rank, self._ages = 0, 0  # of those who left last no one has a greater rank; and when that was
        self._lock = threading.Lock()
        self._seed = bounded.store.seed  # of the next choice of candidates

    @property
    def storage(self) -> Rows:
        """Where the pairs are."""
        return self._bounded.inner

    @property
    def capacity(self) -> int:
        """Most pairs between two verbs."""
        return self._bounded.max_size

    @property
    def evicted(self) -> int:
        """Pairs that left to make room."""
        return self._bounded.evicted

    @property
    def size(self) -> int:
        """Pairs held."""
        return self.storage.store.size

    @property
    def nbytes(self) -> int:
        """Bytes of the pairs, and of the counts of accesses; the candidates are working memory."""
        return self._bounded.nbytes

    @property
    def due(self) -> bool:
        """Whether there are so many candidates that they should be admitted."""
        return self._queued >= max(self._least_due, self.capacity // _QUEUE_SHARE)

    @property
    def _least_due(self) -> int:
        return min(_FEWEST_CANDIDATES, self.capacity)

    @property
    def _is_sated(self) -> bool:
        """Whether no more candidates are noted: they have room, or those of the next lookups will do."""
        return self._queued >= max(self._least_due, self.capacity // _NOTED_SHARE, self.capacity - self.size)

    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        """As `Rows.find`. Every key counts as accessed, also one that is not here."""
        self.storage.find(keys, n, values, flags, default, stream)
        self.note_accesses(keys, n, stream)

    def note_accesses(self, keys: int, n: int, stream: Any) -> None:
        """Count an access of each key. Allocates nothing; several threads may count at once."""
        self._bounded.policy.record(keys, n, stream)

    def count(self, n: int, misses: int) -> None:
        """Count a lookup of ``n`` keys. Several threads may look up at once."""
        with self._lock:
            self.hits += n - misses
            self.misses += misses

    def propose(self, keys: Buffer, flags: Buffer, n: int, stream: Any) -> None:
        """Note those of ``n`` keys that were found at home, as far as the cache may want them.

        If there is no memory for the note, do nothing.
        """
        if self._is_sated:
            return
        with suppress(MemoryError):
            found = flagged(self._engine, flags.ptr, n, Flag.CHANGED, stream)
            if found.n < n:
                keys, n = found.packed(keys.ptr, self._bounded.key_bytes, stream), found.n
            keys, n = self._some(*self._wanted(keys, n, stream), stream)
            if n:
                with self._lock:
                    self._queue.append((keys, n))
                    self._queued += n

    def _some(self, keys: Buffer, n: int, stream: Any) -> tuple[Buffer, int]:
        """As many of ``n`` candidates as may be admitted together, from all over the batch, which may be sorted."""
        most = max(_FEWEST_CANDIDATES, self.capacity)
        if n <= most:
            return keys, n
        self._seed += most
        places = (np.arange(most) + random_words(most, self._seed) * 2.0**-64) * (n / most)
        numbers = np.minimum(places, n - 1).astype(np.uint64)
        some = Part(self._engine, most, self._engine.from_host(numbers, stream))
        return some.packed(keys.ptr, self._bounded.key_bytes, stream), most

    def _wanted(self, keys: Buffer, n: int, stream: Any) -> tuple[Buffer, int]:
        """Those of ``n`` keys that a full cache has a place for: of a greater rank than those who left last."""
        if n == 0 or self.size < self.capacity or not self._least_rank:
            return keys, n
        policy = self._bounded.policy
        assert isinstance(policy, Frequent)
        ranks = self._engine.allocate(_RANK.itemsize * n, stream)
        policy.rank(keys.ptr, n, ranks.ptr, stream)
        least = self._least_rank >> policy.sketch.ages - self._ages  # counts are halved with age
        numbers = Numbers(ranks.ptr, _RANK.itemsize, kind_of(_RANK), True, Comparison.GREATER, least)
        chosen, count = keys_that_compare(self._engine, keys, self._bounded.key_bytes, numbers, n, stream)
        return (keys, 0) if chosen is None else (chosen, count)

    def admit(self, home: Home, stream: Any) -> None:
        """Take candidates up; then those of least rank leave. The caller has the table alone.

        If there is no memory, the cache takes up fewer, or none.
        """
        queue = self._queue
        self.forget_candidates()
        with suppress(MemoryError, TableFull):
            for keys, n in queue:
                self._take(home, keys.ptr, n, stream)
        self._make_room(stream)

    def _take(self, home: Home, keys: int, n: int, stream: Any) -> None:
        """Add pairs of the home."""
        key_bytes, value_bytes = self._bounded.key_bytes, self._bounded.value_bytes
        values, flags = home.find(keys, n, bytes(value_bytes), stream)
        found = flagged(self._engine, flags.ptr, n, Flag.CHANGED, stream)
        if found.n == 0:
            return
        before = self.size
        there, values = found.packed(keys, key_bytes, stream), found.packed(values.ptr, value_bytes, stream)
        self.storage.update(Batch(there.ptr, values.ptr if value_bytes else 0, found.n, stream=stream))
        self.storage.store.finish(stream)
        self.admitted += self.size - before

    def _make_room(self, stream: Any) -> None:
        """Have those of least rank leave until there are no more than there is room for."""
        excess = self.size - self.capacity
        if excess <= 0:
            return
        policy = self._bounded.policy
        assert isinstance(policy, Frequent)
        try:
            least = self._bounded.least(excess, stream)
            self._bounded.drop(least.keys, least.n, stream)
            self._least_rank, self._ages = least.rank, policy.sketch.ages
        except MemoryError:  # an empty cache needs no memory
            self.clear(stream)

    def forget_candidates(self) -> None:
        """Forget all candidates."""
        with self._lock:
            self._queue, self._queued = [], 0

    def clear(self, stream: Any) -> None:
        """Forget all pairs, and all candidates, but no access. Allocates nothing."""
        self.forget_candidates()
        self.storage.clear(stream)
        self.storage.store.finish(stream)

    def copy(self, stream: Any) -> Cache:
        """A cache with the same pairs, of which none was asked for."""
        return Cache(self._bounded.copy(stream))
