"""The cache: pairs of the home that are on the device, and who is to join them.

A lookup that finds a key at home alone leaves the key with the candidates. The candidates are admitted together, by a
caller that has the table alone: so lookups change nothing but a queue. Their values are asked for then, so an update
meanwhile makes no candidate wrong.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import Buffer, Engine
from ..storage import Storage
from .home import Home
from .parts import flagged

__all__ = ["Cache"]

_QUEUE_SHARE = 16
"""Candidates are admitted when they are a sixteenth as many as the cache has room for."""

_FEWEST_CANDIDATES = 1024


class Cache:
    """Pairs in an engine's memory, each of which is at home, too.

    Parameters
    ----------
    storage
        On the engine; empty.
    capacity
        Most pairs that it is to hold.
    key_bytes, value_bytes
        Width of a row; ``value_bytes`` may be 0.

    Attributes
    ----------
    hits, misses
        Keys that lookups have met, and the others.
    admitted, evicted
        Pairs taken up, and pairs that left to make room.
    """

    def __init__(self, engine: Engine, storage: Storage, capacity: int, key_bytes: int, value_bytes: int) -> None:
        self.storage, self.capacity = storage, capacity
        self.hits = self.misses = self.admitted = self.evicted = 0
        self._engine, self._key_bytes, self._value_bytes = engine, key_bytes, value_bytes
        self._queue: list[tuple[Buffer, int]] = []  # keys, and how many
        self._queued = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Pairs held."""
        return self.storage.store.size

    @property
    def nbytes(self) -> int:
        """Bytes of the pairs, and of the candidates."""
        return self.storage.nbytes + sum(keys.nbytes for keys, _ in list(self._queue))

    @property
    def due(self) -> bool:
        """Whether there are so many candidates that they should be admitted."""
        return self._queued >= max(min(_FEWEST_CANDIDATES, self.capacity), self.capacity // _QUEUE_SHARE)

    def count(self, n: int, misses: int) -> None:
        """Count a lookup of ``n`` keys. Several threads may look up at once."""
        with self._lock:
            self.hits += n - misses
            self.misses += misses

    def propose(self, keys: Buffer, flags: Buffer, n: int, stream: Any) -> None:
        """Note those of ``n`` keys that were found at home. If there is no memory for the note, do nothing."""
        if self.due:
            return
        with suppress(MemoryError):
            found = flagged(self._engine, flags.ptr, n, Flag.CHANGED, stream)
            if found.n == 0:
                return
            if found.n < n:
                keys = found.packed(keys.ptr, self._key_bytes, stream)
            with self._lock:
                self._queue.append((keys, found.n))
                self._queued += found.n

    def admit(self, home: Home, stream: Any) -> None:
        """Take candidates up while there is room. The caller has the table alone."""
        queue = self._queue
        self.forget_candidates()
        for keys, n in queue:
            room = min(n, self.capacity - self.size)
            if room <= 0:
                return
            with suppress(MemoryError, TableFull):  # a cache need not have anybody
                self._take(home, keys.ptr, room, stream)

    def _take(self, home: Home, keys: int, n: int, stream: Any) -> None:
        """Add pairs of the home."""
        values, flags = home.find(keys, n, bytes(self._value_bytes), stream)
        found = flagged(self._engine, flags.ptr, n, Flag.CHANGED, stream)
        if found.n:
            before = self.size
            there = found.packed(keys, self._key_bytes, stream)
            values = found.packed(values.ptr, self._value_bytes, stream)
            self.storage.update(
                there.ptr,
                values.ptr if self._value_bytes else 0,
                found.n,
                op=Op.KEEP,
                kind=0,
                flags=0,
                held=0,
                unique=False,
                stream=stream,
            )
            self.storage.store.finish(stream)
            self.admitted += self.size - before

    def forget_candidates(self) -> None:
        """Forget all candidates."""
        with self._lock:
            self._queue, self._queued = [], 0

    def clear(self, stream: Any) -> None:
        """Forget all pairs, and all candidates. Allocates nothing."""
        self.forget_candidates()
        self.storage.clear(stream)
        self.storage.store.finish(stream)
