"""What the tiers have in common with other stores: the figures are those of the home, which has every key."""

from __future__ import annotations

from typing import Any

from ...designs.base import Design
from ..slots import MemoryUse, Recovery, Slots, TierFigures
from .writing import Tiers, Writing

__all__ = ["TieredSlots"]


class TieredSlots:
    """The part of `slots.Slots` that a table asks for, of two tiers.

    Parameters
    ----------
    writing
        What an update does to the tiers.
    """

    def __init__(self, design: Design, tiers: Tiers, writing: Writing) -> None:
        self.design, self._tiers, self._writing = design, tiers, writing
        self.engine = tiers.engine
        self.seed = self._home.seed

    @property
    def _home(self) -> Slots:
        return self._tiers.home.storage.store

    @property
    def recovery(self) -> Recovery:
        """The first that has a step: a tier, too, may have put off its clearing."""
        tiers = self._tiers
        each = (tiers.recovery, tiers.cache.storage.store.recovery, self._home.recovery)
        return next((recovery for recovery in each if recovery.step is not None), tiers.recovery)

    @property
    def size(self) -> int:
        return self._home.size

    @property
    def slots(self) -> int:
        return self._home.slots

    @property
    def capacity(self) -> int:
        return self._home.capacity

    @property
    def rebuilds(self) -> int:
        return self._home.rebuilds

    @property
    def resizes(self) -> int | None:
        return self._home.resizes

    @property
    def peak_nbytes(self) -> int | None:
        return self._home.peak_nbytes

    @property
    def insert_probes(self) -> float | None:
        return self._home.insert_probes

    @property
    def pending(self) -> bool:
        tiers = self._tiers
        return self.recovery.step is not None or self._home.pending or tiers.cache.storage.store.pending

    def finish(self, stream: Any = None) -> None:
        self._tiers.recovery.run(self.engine, stream)
        self._tiers.finish(stream)

    def memory_use(self) -> MemoryUse:
        """Both tiers."""
        cache, home = self._tiers.cache, self._tiers.home
        uses = home.storage.memory_use(), cache.storage.memory_use()
        figures = TierFigures(
            cache.size,
            cache.capacity,
            cache.nbytes,
            home.storage.nbytes,
            cache.hits,
            cache.misses,
            cache.admitted,
            cache.evicted,
            home.traffic.to_home,
            home.traffic.from_home,
        )
        return MemoryUse(sum(use.in_use for use in uses), sum(use.reserve for use in uses), tiers=figures)

    def broken_buckets(self, stream: Any = None) -> int:
        """Broken buckets of both tiers, and keys of the cache that are not at home."""
        cache, home = self._tiers.cache, self._tiers.home
        broken = self._home.broken_buckets() + cache.storage.store.broken_buckets(stream)
        n = cache.size
        keys = self.engine.allocate(max(1, n * self._tiers.key_bytes), stream)
        cache.storage.scan(n, keys.ptr, 0, stream)
        flags = self.engine.allocate(max(1, n), stream)
        home.present(keys.ptr, n, flags.ptr, stream)
        return broken + int((self.engine.to_host(flags.ptr, "u1", n, stream) == 0).sum())

    @property
    def is_inherited(self) -> bool:
        """Whether the home is in a file that the process which this one was forked from has open."""
        return self._tiers.home.is_inherited

    @property
    def is_committed(self) -> bool:
        """Whether the file of the home holds the table as it is."""
        home: Any = self._home
        return self._writing.is_written_back and bool(home.is_committed)

    def write_back(self, stream: Any = None) -> None:
        """Have the home hold all values."""
        self._tiers.home.check_process()
        self._writing.write_back(self._tiers, stream)

    def commit(self, description: dict[str, Any]) -> None:
        """Have the home hold all values, and its file hold the home."""
        self.write_back()
        home: Any = self._home
        home.commit(description)
