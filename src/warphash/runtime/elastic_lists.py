"""An `ElasticStore` of lists: what a list does where another table evicts, and rebuilds.

A batch that finds no node waits for more of them: those of erased keys (flush), then a larger pool, then a new store. A
list never fails otherwise, and what a batch added can be told and taken back, so most batches need no snapshot.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import policies
from ..errors import TableFull
from .abi import Flag, Op
from .elastic import ElasticStore, _Undo
from .lists import ListStore
from .store import Outcome

__all__ = ["ElasticLists", "ElasticMultiLists"]


class ElasticLists(ElasticStore):
    """Lists in which each key stands once."""

    store: ListStore

    def slots_for(self, keys: int) -> int:
        """Slots of a store for ``keys`` keys: those of now, if the number of lists is to stay."""
        return super().slots_for(keys) if self.store.parameters["rebucket"] else self.store.slots

    @property
    def capacity(self) -> int:
        """Keys that the present memory is meant for."""
        return self.store.keys if self.store.parameters["buckets"] else super().capacity

    def flush(self, first: int, lists: int, stream: Any = None) -> int:
        """As `ListStore.flush`; how many nodes are free now."""
        freed, reclaimed = self.store.flush(first, lists, stream)
        self.tombstones -= reclaimed
        return freed

    def execute(
        self,
        operations: int,
        keys: int,
        values: int,
        n: int,
        out_values: int,
        flags: int,
        default: int,
        stream: Any = None,
    ) -> int:
        """A mixed batch, to the end; how many elements have an operation that is none.

        Raises
        ------
        TableFull
            If there is no node for some keys, whose elements its ``keys`` then are; all others are done.
        """
        if n == 0:
            return 0
        only: npt.NDArray[np.int64] | None = None
        while True:
            outcome, erased, unknown = self.store.execute(
                operations, keys, values, n, out_values, flags, default, only, stream
            )
            self.size += outcome.changed - erased
            self.tombstones += erased
            if outcome.complete:
                self._tidy(stream)
                return unknown
            only = np.flatnonzero(self.store.engine.to_host(flags, np.uint8, n, stream) == Flag.UNPLACED)
            try:
                self._make_room(outcome, len(only), 0, False, stream)
            except (TableFull, MemoryError) as error:
                raise TableFull(f"{error}; all other operations are done", only) from error

    def _prepare(self, stream: Any) -> None:
        """Lists take a batch as they are."""

    def _undo(self, n: int, op: Op, stream: Any) -> _Undo | None:
        # What a plain insert added can be erased again; and no batch takes more nodes than it has elements.
        return None if op == Op.KEEP or self.store.pool.has_free(n, stream) else self._snapshot(stream)

    def _take_back(self, keys: int, values: int, n: int, added: npt.NDArray[np.int64], stream: Any) -> None:
        self.erase(keys, n, 0, added, stream)

    def _tidy(self, stream: Any) -> None:
        """Drop the erased slots once they are many; more lists once these are long, if there is memory for them."""
        store = self.store
        if policies.should_flush(self.tombstones, self.size):
            self.flush(0, store.lists, stream)
        if self.grows and self.size > self.safe_load_factor * store.slots:
            with suppress(MemoryError):
                self.rebuild(self.size, stream)

    def _make_room(self, outcome: Outcome, missing: int, attempt: int, risky: bool, stream: Any) -> None:
        """Nodes for elements that found none."""
        if self.tombstones > (self.size // 4 if self.grows else 0):
            self.flush(0, self.store.lists, stream)
        elif self.grows and not self.store.pool.can_grow:
            keys = 2 * (self.size + missing)
            self._replace(self.slots_for(keys), 0, stream, keys)
        elif not self.store.more_nodes(outcome, stream):
            raise TableFull(f"{missing:,} keys found no slab; allow on_full='grow', or give a larger capacity")

    def _replace(self, slots: int, homeless: int, stream: Any, keys: int = 0) -> None:
        old, wanted = self.store, max(keys, self.size)
        new, sized_for = old.sibling(slots, old.seed + 1, wanted, stream), wanted
        while not new.take_over(old, homeless, stream).complete:  # keys that share lists more than chance has it
            sized_for *= 2
            new = old.sibling(slots, old.seed + 1, sized_for, stream)
        new.keys = wanted
        self.store = new
        self.tombstones = 0
        self.rebuilds += 1


class ElasticMultiLists(ElasticLists):
    """Lists in which a key stands as often as it was inserted."""

    def _once(self, keys: int, values: int, n: int, **options: Any) -> Outcome:
        return self.store.append(
            keys, values, n, flags=options["flags"], only=options["only"], stream=options["stream"]
        )

    def _take_back(self, keys: int, values: int, n: int, added: npt.NDArray[np.int64], stream: Any) -> None:
        if len(added):
            self.store.retract(keys, values, n, added, stream)
            self.size -= len(added)
            self.tombstones += len(added)

    def count(self, keys: int, n: int, counts: int, stream: Any = None) -> None:
        """As `ListStore.count`."""
        self.store.count(keys, n, counts, stream)

    def erase_all(self, keys: int, n: int, counts: int, stream: Any = None) -> None:
        """As `ListStore.erase_all`."""
        erased = self.store.erase_all(keys, n, counts, stream)
        self.size -= erased
        self.tombstones += erased
