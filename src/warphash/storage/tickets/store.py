"""The store of slots with a ticket board: when the array is replaced, by what, and how an update is undone.

An update is a `Transaction`. The walk of each key visits every slot, so a batch fails for one reason only: all slots
are booked. A batch that has no more elements than slots are free cannot fail, and needs no way back. Any other batch
has one. If it fails, a larger array takes over all pairs.

A mixed batch uses no slot twice (``kernels/tickets/execute.cuh``). Inserts that find no unused slot are launched again
after a rebuild, in which emptied slots become free, or which makes the table larger. Each operation is done at one
moment, so an interrupted batch leaves nothing to undo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import KernelSpec
from .. import policies
from ..batch import Batch, MixedBatch
from ..estimate import estimate_new_keys
from ..growth import Growth
from ..listed import Listed, list_unplaced
from ..resize_log import Cause, Resize
from ..scratch import Elements, flags_at, with_flags
from ..storage import MemoryUse, Outcome, Recovery, StoreOptions, TableKind
from ..update.transaction import ArrayState, Transaction, Undo, erase
from .array import TicketArray
from .lanes import collaborating
from .slot_memory import FileMemory, memory_of
from .sweep import sweeping

__all__ = ["TicketStore"]


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> TicketStore:
    """Make an empty store for ``capacity`` keys, or open the one that a file holds; see `make_storage`."""
    memory = memory_of(options.memory, options.opens)
    if isinstance(memory, FileMemory) and memory.opened:
        found = memory.opened["table"]
        store = TicketStore(TicketArray(*kind, memory, memory.opened["slots"], found["slots_seed"], hash), options)
        store.seed = seed
        store.state = store._committed = ArrayState(store.array, found["size"], found["tombstones"])
        return store
    slots = policies.slots_for(capacity, options.load_factor)
    return TicketStore(TicketArray(*kind, memory, slots, seed, hash), options)


def more_programs(spec: KernelSpec, parameters: Mapping[str, Any]) -> Iterator[KernelSpec]:
    """The kernels beside its own that a table may launch on a GPU."""
    if parameters["lanes"] != "stash":
        yield collaborating(spec)
    yield sweeping(spec)


class TicketStore:
    """The `storage.Store` of designs with a ticket board.

    Parameters
    ----------
    array
        A new one, or a copy.
    options
        What the store may do.

    Attributes
    ----------
    probes, inserted
        Tickets read by updates that counted them, and the keys that these updates added.
    """

    resizes = None
    peak_nbytes = None
    listed = None  # a batch that may fail has a way back

    def __init__(self, array: TicketArray, options: StoreOptions) -> None:
        self.engine, self.design, self.parameters, self.spec = array.engine, array.design, array.parameters, array.spec
        self.seed = array.seed
        self._options = options
        safe_load_factor = array.design.safe_load_factor(array.parameters)
        self._growth = Growth(options.load_factor, safe_load_factor, options.bounds)
        self._new_share = 1.0  # of the elements of the last update
        self.rebuilds = self.probes = self.inserted = 0
        self.state: ArrayState[TicketArray] = ArrayState(array, 0)
        self._committed: ArrayState[TicketArray] | None = None
        self.recovery = Recovery()

    # ---- what the store is; nothing of it waits or changes anything
    @property
    def array(self) -> TicketArray:
        """The slots and their tickets."""
        return self.state.array

    @property
    def size(self) -> int:
        return self.state.size

    @property
    def slots(self) -> int:
        return self.state.array.slots

    @property
    def capacity(self) -> int:
        return policies.capacity_of(self.state.array.slots, self._options.load_factor)

    @property
    def nbytes(self) -> int:
        return self.state.array.nbytes

    @property
    def insert_probes(self) -> float | None:
        return self.probes / self.inserted if self._options.counts_probes and self.inserted else None

    @property
    def pending(self) -> bool:
        return self.recovery.step is not None

    def memory_use(self) -> MemoryUse:
        return self.state.array.memory_use()

    def finish(self, stream: Any = None) -> None:
        if self.recovery.step is not None:
            self.recovery.run(self.engine, stream)

    # ---- other stores
    def sibling(self, keys: int, stream: Any = None) -> TicketStore:
        array = self.state.array
        return TicketStore(array.beside(self._slots_for(keys), array.seed + 1, stream), self._options)

    def copy(self, stream: Any = None) -> TicketStore:
        state = self.state
        twin = TicketStore(state.array.copy(stream), self._options)
        twin.state = state._replace(array=twin.array)
        twin.rebuilds, twin.probes, twin.inserted = self.rebuilds, self.probes, self.inserted
        return twin

    def _slots_for(self, keys: int) -> int:
        return policies.slots_for(max(1, keys), self._options.load_factor)

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        return self.state.array.scan(room, out_keys, out_values, stream)

    def broken_buckets(self, stream: Any = None) -> int:
        return self.state.array.broken_buckets(stream)

    # ---- updates
    def update(self, batch: Batch) -> None:
        """As `Store.update`; returns when the batch is done."""
        n, stream = batch.n, batch.stream
        if n == 0:
            return
        self.check_process()
        self.finish(stream)
        if not self._growth.surely_fits(self.size + n, self.slots, self.state.tombstones):
            self._grow_ahead(batch)
        size, counts = self.state.size, self._options.counts_probes
        if not batch.flags:
            batch, _own_flags = with_flags(self.engine, batch)
        undo = self._way_back(batch)
        new_share = 1.0 if batch.unique else self._new_share

        def launch(state: ArrayState[TicketArray], listed: Listed | None) -> Outcome:
            return state.array.update(batch, size=state.size, new_share=new_share, count_probes=counts, listed=listed)

        Transaction(self, batch, undo, launch, counts_probes=counts).do()
        self._new_share = (self.state.size - size) / n
        self._keep_in_bounds(stream)

    def make_room(self, update: Transaction[TicketArray], missing: int) -> None:
        """As `ArrayStore.make_room`: a larger array, or one in which the emptied slots of a file are free."""
        slots, load_factor = self.slots, self._options.load_factor
        if self._options.grows:
            slots = policies.slots_after_failure(self.size, missing, slots, load_factor)
        elif not self.array.is_mapped or self.size + missing > slots:
            raise self._too_full(missing)
        self._replace(slots, Cause.NO_SLOT, update.batch.stream)

    def _too_full(self, missing: int) -> TableFull:
        return TableFull(
            f"{self.size + missing:,} keys do not fit into {self.slots:,} slots of design {self.design.name!r}; "
            "allow on_full='grow', or give a larger capacity"
        )

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        self.check_process()
        self.finish(stream)
        erase(self, keys, n, flags, only, stream)
        self._keep_in_bounds(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        array = self.state.array
        array.check_process()
        if array.is_mapped:  # its slots are those of the last commit
            self.state = ArrayState(array.sibling(array.slots, array.seed, stream), 0)
        else:
            self.recovery.step = self._clear
            self._clear(stream)
        self.recovery.step = None

    def _clear(self, stream: Any) -> None:
        array = self.state.array
        array.clear(stream)
        self.state = ArrayState(array, 0)

    def execute(self, batch: MixedBatch, stream: Any = None) -> None:
        """Do a mixed batch. Waits.

        Raises
        ------
        TableFull
            If there is no slot for some keys. All other operations are done; ``keys`` are the numbers of the elements
            that are not.
        MemoryError
            If there is no memory. Nothing is done.
        """
        n = batch.n
        if n == 0:
            return
        self.check_process()
        self.finish(stream)
        flags, _own_flags = flags_at(self.engine, batch.flags, n, stream)
        batch = batch._replace(flags=flags)
        if self.state.array.is_mapped:
            self.state.array.images(batch.keys, n, stream)
        self.state.array.open_access(stream)
        self.recovery.step = self.recover
        listed: Listed | None = None
        while True:
            changed, erased, unplaced = self.state.array.execute(batch, listed, stream)
            state = self.state
            self.state = state._replace(size=state.size + changed - erased, tombstones=state.tombstones + erased)
            if not unplaced:
                break
            try:
                listed = self._with_unused_slots(unplaced, flags, n, stream)
            except (TableFull, MemoryError) as error:
                self.recovery.step = None
                done = self.engine.to_host(flags, np.uint8, n, stream)
                raise TableFull(
                    f"{error}; all other operations are done", np.flatnonzero(done == Flag.UNPLACED)
                ) from error
        self.recovery.step = None
        self._keep_in_bounds(stream, erased=True)

    def _with_unused_slots(self, missing: int, flags: int, n: int, stream: Any) -> Listed:
        """Rebuild the table, with room for the elements of a mixed batch that found no slot; these elements.

        Raises
        ------
        TableFull, MemoryError
            If there is no room, or no memory. The table is as it was.
        """
        array, size, *_ = self.state
        listed = list_unplaced(self.engine, flags, n, stream)
        slots, load_factor = array.slots, self._options.load_factor
        if self._options.grows and size + missing > policies.capacity_of(slots, load_factor):
            slots = policies.slots_after_failure(size, missing, slots, load_factor)
        elif size >= slots:
            raise self._too_full(missing)
        self._replace(slots, Cause.NO_SLOT, stream)
        self.state.array.open_access(stream)
        return listed

    # ---- files
    @property
    def is_inherited(self) -> bool:
        """Whether the slots are in a file that the process which this one was forked from has open."""
        return self.state.array.is_inherited

    @property
    def is_committed(self) -> bool:
        """Whether the file holds the table as it is. Every update has another state, also one that changes values."""
        return not self.pending and self.state is self._committed

    def check_process(self) -> None:
        """Raise `PathError` if the slots are in a file that only another process may change."""
        self.state.array.check_process()

    def commit(self, table: Mapping[str, Any], stream: Any = None) -> None:
        """Have the file hold the table as it is; see `TicketArray.commit`."""
        self.check_process()
        self.finish(stream)
        state = self.state
        state.array.commit({**table, "size": state.size, "tombstones": state.tombstones}, stream)
        self._committed = state

    # ---- size
    def rebuild(self, keys: int, stream: Any = None) -> None:
        self.check_process()
        self.finish(stream)
        self._replace(self._slots_for(max(keys, self.state.size)), Cause.ASKED, stream)

    def _grow_ahead(self, batch: Batch) -> None:
        """Make a table larger that is as full as it should be, or that the new keys of the batch would fill.

        A table of fixed size is rebuilt at its size if searches would have no end among emptied slots.
        """
        slots: int | None
        if self._options.grows:
            estimate = partial(estimate_new_keys, self, batch)
            slots = self._growth.slots_ahead(
                self.size, self.slots, self.state.tombstones, batch.n, self._new_share, estimate
            )
        else:
            slots = self.slots if 2 * self.state.tombstones > self.slots else None
        if slots is not None:
            with suppress(MemoryError):  # the batch may fit all the same
                cause = Cause.BATCH if self._options.grows else Cause.ERASED
                self._replace(max(slots, self.size), cause, batch.stream)

    def _keep_in_bounds(self, stream: Any, erased: bool = False) -> None:
        """Bring the load factor back within the bounds. Only an erase makes the table smaller."""
        if self._options.bounds is None:
            return
        slots = self._growth.slots_after(self.size, self.slots, erased)
        if slots is not None and slots >= self.size:
            with suppress(MemoryError):  # the batch is done, and the table right as it is
                self._replace(slots, Cause.BOUNDS, stream)

    def _replace(self, slots: int, cause: Cause, stream: Any) -> None:
        """Move all pairs into a new array of at least as many slots as there are keys.

        Raises
        ------
        MemoryError
            If there is no room for it. The table is as it was.
        """
        old, size, *_ = self.state
        resize = Resize(self.design.name, old.slots, cause)
        new = old.sibling(slots, old.seed + 1, stream)
        if size or self.pending:
            moved = new.take_over(old, size, stream)
            if not moved.complete:
                raise TableFull(f"{moved.unplaced:,} of {size:,} pairs found no slot among {new.slots:,}")
        self.state = ArrayState(new, size)
        self.rebuilds += 1
        resize.done(size, new.slots)

    # ---- undoing, and recovery
    def _way_back(self, batch: Batch) -> Undo[TicketArray] | None:
        """The way back, for a batch that has more elements than slots are free.

        If a batch changes values in a file, the file's journal needs the images of their slots in any case.
        """
        state, array, stream, changes = self.state, self.state.array, batch.stream, batch.op != Op.KEEP
        images = array.images(batch.keys, batch.n, stream) if array.is_mapped and changes else []
        kept = state.tombstones if array.is_mapped else 0
        if state.size + kept + batch.n <= array.slots:
            return None
        if not (state.size or kept):
            return Undo(state, None)
        return Undo(state, array.snapshot(changes, stream)._replace(images=images))

    def recover(self, stream: Any) -> None:
        """As `ArrayStore.recover`: count the keys in the slots."""
        state = self.state
        size = state.array.scan(0, 0, 0, stream)
        self.state = state._replace(size=size, tombstones=state.tombstones + max(0, state.size - size))
