"""An `ElasticStore` of lists: what a list does where another table evicts, and rebuilds.

A batch that finds no node waits for more of them: those of erased keys (flush), then a larger pool, then a new store. A
list never fails otherwise. So a batch for which there are surely nodes enough is launched and left to itself, and what
it added and erased is read when somebody asks (`ledger.Ledger`). Where kernels do not run beside the caller anyhow, no
nodes are held ready for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op, Report
from .. import policies
from ..buckets.growth import ElasticStore, _Undo
from ..scratch import Elements, flags_at
from .store import ListStore

__all__ = ["ElasticLists", "ElasticMultiLists"]


class ElasticLists(ElasticStore):
    """Lists in which each key stands once."""

    store: ListStore
    _inserting = "place"

    def __init__(self, store: ListStore, **policy: Any) -> None:
        self._before = {"size": 0, "tombstones": 0, "probes": 0, "inserted": 0}  # when the ledger was opened
        super().__init__(store, **policy)
        self._settle()

    # ---- counts
    def _counted(name: str, of: Callable[[Report], int]) -> Any:  # type: ignore[misc]
        def get(self: ElasticLists) -> int:
            return self._before[name] + of(self.store.ledger.read())

        def put(self: ElasticLists, value: int) -> None:
            self._before[name] = value - of(self.store.ledger.read())

        return property(get, put)

    size = _counted("size", lambda counts: counts.changed - counts.erased)
    tombstones = _counted("tombstones", lambda counts: counts.erased)
    probes = _counted("probes", lambda counts: counts.probes)
    inserted = _counted("inserted", lambda counts: counts.changed)

    def clear(self, stream: Any = None) -> None:
        """Forget all keys; keep the memory."""
        probes, inserted = (self.probes, self.inserted) if self.counts_probes else (0, 0)
        self.store.clear(stream)
        self._before = {"size": 0, "tombstones": 0, "probes": probes, "inserted": inserted}
        self._settle()

    # ---- sizes
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
        self.tombstones = self.tombstones - reclaimed if lists < self.store.lists else 0
        return freed

    def _replace(self, slots: int, homeless: int, stream: Any, keys: int = 0, nodes: int = 0) -> None:
        """As `ElasticStore._replace`, with a pool of at least ``nodes`` nodes."""
        old, size = self.store, self.size
        wanted = sized_for = max(keys, size)
        probes, inserted = self.probes, self.inserted
        new = old.sibling(slots, old.seed + 1, wanted, stream)
        # Twice until it is enough: keys may share lists more than chance has it.
        while new.pool.capacity < nodes or not new.take_over(old, homeless, stream).complete:
            sized_for *= 2
            new = old.sibling(slots, old.seed + 1, sized_for, stream)
        new.keys = wanted
        self.store = new
        self._before = {"size": size, "tombstones": 0, "probes": probes, "inserted": inserted}
        self.rebuilds += 1

    # ---- batches
    def update(
        self,
        keys: int,
        values: int,
        n: int,
        *,
        op: Op = Op.KEEP,
        kind: int = 0,
        flags: int = 0,
        unique: bool = False,
        stream: Any = None,
    ) -> None:
        """As `ElasticStore.update`; returns before it is done, where it surely will be."""
        flags, _own_flags = flags_at(self.store.engine, flags, n, stream)

        def launch(only: npt.NDArray[np.int64] | None = None) -> None:
            self.store.launch(
                self._inserting,
                n,
                keys=keys,
                values=values,
                flags=flags,
                op=op,
                kind=kind,
                count_probes=self.counts_probes,
                only=only,
                stream=stream,
            )

        if self._holds(n, stream):
            launch()
            self._lent(n, stream)
            return self._note(n, 0, stream)
        undo = self._undo(n, op, stream)
        try:
            self._complete(n, launch, flags, stream)
        except TableFull as error:
            if undo is None:
                done = self.store.engine.to_host(flags, np.uint8, n, stream)
                self._take_back(keys, values, n, np.flatnonzero(done == Flag.CHANGED), stream)
            else:
                self._put_back(undo, stream)
            raise TableFull(f"{error}; the table is as it was", error.keys) from error
        self._look_after(False, stream)

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
    ) -> None:
        """A mixed batch, to the end or, where it surely comes to one, only begun.

        Raises
        ------
        TableFull
            If there is no node for some keys, whose elements its ``keys`` then are; all others are done.
        """

        def launch(only: npt.NDArray[np.int64] | None = None) -> None:
            self.store.launch(
                "execute",
                n,
                keys=keys,
                values=values,
                operations=operations,
                out_values=out_values,
                flags=flags,
                default=default,
                only=only,
                stream=stream,
            )

        if self._holds(n, stream):
            launch()
            self._lent(n, stream)
            return self._note(n, n, stream)
        try:
            self._complete(n, launch, flags, stream)
        except TableFull as error:
            raise TableFull(f"{error}; all other operations are done", error.keys) from error
        self._look_after(True, stream)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        """As `ElasticStore.erase`; returns before it is done."""
        if n and not (isinstance(only, np.ndarray) and not len(only)):
            self.store.launch("erase", n, keys=keys, flags=flags, only=only, stream=stream)
            self._note(0, n, stream)

    def _complete(
        self, n: int, launch: Callable[[npt.NDArray[np.int64] | None], None], flags: int, stream: Any
    ) -> None:
        """Launch a batch until all its elements have found room."""
        only: npt.NDArray[np.int64] | None = None
        while n:
            ledger = self.store.ledger
            before = ledger.read(stream)
            try:
                launch(only)
            except MemoryError as error:  # for the list of elements that are launched again
                raise TableFull(str(error), only) from error
            self._lent(n, stream)
            after = ledger.read(stream)
            if after.unplaced == before.unplaced:
                self._settle()
                return
            only = np.flatnonzero(self.store.engine.to_host(flags, np.uint8, n, stream) == Flag.UNPLACED)
            try:
                self._find_nodes(only, after.changed > before.changed, stream)
            except (TableFull, MemoryError) as error:
                with suppress(MemoryError):
                    self.store.reopen_pool(stream)  # some kept a node that others looked for in vain
                raise TableFull(str(error), only) from error

    def _find_nodes(self, missing: npt.NDArray[np.int64], progress: bool, stream: Any) -> None:
        """Nodes for elements that found none."""
        store = self.store
        if self.tombstones > (self.size // 4 if self.grows else 0):
            self.flush(0, store.lists, stream)
            store.reopen_pool(stream)
        elif not self.grows:
            # A lane that comes second at the end of a list keeps a node of its own until its kernel ends: as long as
            # keys are added, there may be room for the others too.
            store.reopen_pool(stream)
            if not progress:
                raise TableFull(f"{len(missing):,} keys found no node; allow on_full='grow', or give a larger capacity")
        elif store.pool.can_grow:
            store.grow_pool(max(store.pool.capacity, len(missing)), stream)
        else:
            keys = 2 * (self.size + len(missing))
            self._replace(self.slots_for(keys), 0, stream, keys, nodes=2 * store.pool.capacity)

    def _holds(self, n: int, stream: Any) -> bool:
        """Whether there are surely nodes for any batch of ``n`` elements, perhaps after a wait for earlier ones.

        So that the device does not run out of work meanwhile, a pool that may grow has nodes for several batches.
        """
        store, pool, most = self.store, self.store.pool, self.store.nodes_for_batch(n)
        if pool.surely_free >= most:
            return True
        if not store.engine.asynchronous:
            return False
        pool.learn()
        wanted = policies.nodes_to_hold(n, store.lists) if self.grows and pool.can_grow else 0
        if wanted and pool.counted_free < 4 * n:
            with suppress(MemoryError):  # by much, so that it is seldom
                store.grow_pool(max(wanted - pool.counted_free, pool.capacity // 2), stream)
        while pool.surely_free < most and pool.learn(wait=True):
            pass
        return pool.surely_free >= most

    def _lent(self, n: int, stream: Any) -> None:
        """Note that a kernel takes up to ``n`` nodes, and ask what it took if too little is left for many more."""
        pool = self.store.pool
        pool.lend(n)
        if pool.surely_free < 3 * n and self.store.engine.asynchronous:
            pool.learn()
            if pool.surely_free < (2 * n if pool.asked else 3 * n):
                pool.ask(stream)

    def _note(self, inserts: int, erases: int, stream: Any) -> None:
        """Count a batch that nobody waited for, and look after the lists if it may be time for it."""
        self._adds_left -= inserts
        self._erases_left -= erases
        self._look_after(erases > 0, stream)

    def _look_after(self, erased: bool, stream: Any) -> None:
        if self._adds_left < 0 or (erased and self._erases_left < 0):
            self._tidy(stream, erased)

    def _tidy(self, stream: Any, erased: bool = False) -> None:
        """Drop the erased slots once they are many; more lists once these are long, if there is memory for them."""
        if self.tombstones > policies.most_tombstones(self.size):
            self.flush(0, self.store.lists, stream)
        if self.size > self._most_keys:
            with suppress(MemoryError):
                self.rebuild(max(self.size, self.capacity), stream)  # few lists were asked for, and room for many keys
        super()._tidy(stream, erased)
        self._settle()

    @property
    def _most_keys(self) -> float:
        return self.safe_load_factor * self.store.slots if self.grows else math.inf

    def _settle(self) -> None:
        """Find out how many keys can be added, and erased, before the lists want looking after."""
        slots, (least, most) = self.store.slots, self.bounds or (0, math.inf)
        self._adds_left = min(self._most_keys, most * slots) - self.size
        self._erases_left = min(policies.most_tombstones(self.size) - self.tombstones, self.size - least * slots)

    # ---- undoing
    def _undo(self, n: int, op: Op, stream: Any) -> _Undo | None:
        # What a plain insert added can be taken back.
        pool, most = self.store.pool, self.store.nodes_for_batch(n)
        return (
            None if op == Op.KEEP or pool.surely_free >= most or pool.free(stream) >= most else self._snapshot(stream)
        )

    def _put_back(self, undo: _Undo, stream: Any) -> None:
        probes, inserted = self.probes, self.inserted
        super()._put_back(undo, stream)  # perhaps with another ledger
        self.probes, self.inserted = probes, inserted

    def _take_back(self, keys: int, values: int, n: int, added: npt.NDArray[np.int64], stream: Any) -> None:
        self.erase(keys, n, 0, added, stream)


class ElasticMultiLists(ElasticLists):
    """Lists in which a key stands as often as it was inserted."""

    _inserting = "append"

    def _take_back(self, keys: int, values: int, n: int, added: npt.NDArray[np.int64], stream: Any) -> None:
        if len(added):
            self.store.launch("retract", n, keys=keys, values=values, only=added, stream=stream)

    def count(self, keys: int, n: int, counts: int, stream: Any = None) -> None:
        """Pairs of each key, uint32."""
        self.store.find(keys, n, 0, 0, 0, stream, counts=counts, entry="count")

    def erase_all(self, keys: int, n: int, counts: int, stream: Any = None) -> None:
        """Erase every pair of each key; ``counts``, uint32, says how many for each element."""
        self.store.launch("erase_all", n, keys=keys, out_counts=counts, stream=stream)
        self._note(0, n, stream)
