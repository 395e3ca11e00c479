"""An `ElasticStore` of subtables whose last batch may be under way when the next call comes.

Where all keys of a batch fit though each were new, and the table may grow, nobody waits for its kernels: pairs whose
evictions find no slot become the table's own at once, and whoever looks at the `UnawaitedStore.store` next houses them
first. Nor for an erase, after which that one may halve a subtable. What comes behind such a batch is launched
before its end is waited for, so that the device is not idle: an insert settles, an erase is done, unless pairs were
left without a home; and a find, which is told where these are, waits for nobody. (Of 390 us for a million inserts, a
million finds and 0.4 million erases the device had been idle for 90: docs/performance/subtables.md.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..buckets.growth import ElasticStore
from ..buckets.store import Store
from .store import SubtableStore

__all__ = ["Begun", "UnawaitedStore"]


class Begun(NamedTuple):
    """A batch that nobody has waited for.

    Attributes
    ----------
    end
        Waits, counts its keys, and houses those without a home; whether there were any.
    homeless
        Where a find learns of them (`Insert.homeless`); None if it cannot, and has to end the batch.
    ends_first
        Updates end the batch before they launch a kernel: a subtable may have to be halved.
    """

    end: Callable[[], bool]
    homeless: dict[str, int] | None
    ends_first: bool


class UnawaitedStore(ElasticStore):
    """What waits for the last batch, and what does not. A subclass says how a batch ends, and what it may leave."""

    def __init__(self, store: SubtableStore, **policy: Any) -> None:
        self._begun: Begun | None = None
        self._ends = False
        super().__init__(store, **policy)

    @property
    def store(self) -> SubtableStore:
        """The subtables, when the last batch is done. Waits."""
        self._end()
        return self._store

    @store.setter
    def store(self, store: Store) -> None:
        assert isinstance(store, SubtableStore)
        self._store = store

    @property
    def size(self) -> int:
        """Keys held. Waits for the last batch."""
        self._end()
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        self._size = size

    @property
    def under_way(self) -> bool:
        """Whether a batch was begun and not yet ended. Only who holds the table's lock alone may end it."""
        return self._begun is not None

    @property
    def lookups_end_first(self) -> bool:
        begun = self._begun
        return begun is not None and begun.homeless is None

    def _end(self) -> bool:
        """Wait for the batch that was begun, and end it; whether it left pairs without a home.

        If the end raises, what it left to do is begun again: the next call tries it once more.
        """
        if self._begun is None or self._ends:
            return False
        self._ends = True
        try:
            return self._begun.end()
        finally:
            self._begun, self._ends = self._unfinished(), False

    def _unfinished(self) -> Begun | None:
        """What a batch that ended with an error has left to do."""
        return None

    def _end_before_updates(self) -> None:
        """Nothing that counts keys may be launched between an erase and the halving that it makes due."""
        if self._begun is not None and self._begun.ends_first:
            self._end()

    def find(self, keys: int, n: int, values: int, flags: int, default: int, stream: Any = None, **more: Any) -> None:
        """As `Store.find`; of an insert that is under way it sees the pairs without a home, too."""
        if self.lookups_end_first or more:
            self._end()
        homeless = (self._begun.homeless if self._begun is not None else None) or {}
        self._store.find(keys, n, values, flags, default, stream, fields=homeless, **more)
