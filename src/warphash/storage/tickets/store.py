"""The remedy of slots with a ticket board, and the verbs of a store that may lie in a file.

The walk of each key visits every slot, so a batch fails for one reason only: all slots
are booked. A batch that has no more elements than slots are free cannot fail, and needs no way back. Any other batch
has one. If it fails, a larger array takes over all pairs.

A mixed batch uses no slot twice (``kernels/tickets/execute.cuh``). Inserts that find no unused slot are launched again
after a rebuild, in which emptied slots become free, or which makes the table larger. Each operation is done at one
moment, so an interrupted batch leaves nothing to undo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import KernelSpec
from .. import policies
from ..batch import Batch, MixedBatch
from ..elements import flags_at
from ..giving_up import does_not_fit
from ..listed import Listed, list_unplaced
from ..resize_log import Cause
from ..scratch import Outcome
from ..slots import StoreOptions, TableKind
from ..update.array_slots import ArraySlots, Remedy
from ..update.transaction import ArrayState, Transaction, Undo
from .array import TicketArray
from .lanes import collaborating
from .slot_memory import FileMemory, memory_of
from .sweep import sweeping

__all__ = ["TicketSlots"]


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> TicketSlots:
    """Make an empty store for ``capacity`` keys, or open the one that a file holds; see `make_storage`."""
    memory = memory_of(options.memory, options.opens, options.log)
    if isinstance(memory, FileMemory) and memory.opened:
        found = memory.opened["table"]
        store = TicketSlots(
            TicketArray(kind, memory, memory.opened["slots"], found["slots_seed"], hash), options, TicketRemedy()
        )
        store.seed = seed
        store.state = store._committed = ArrayState(store.array, found["size"], found["tombstones"])
        return store
    slots = policies.slots_for(capacity, options.load_factor)
    return TicketSlots(TicketArray(kind, memory, slots, seed, hash), options, TicketRemedy())


def more_programs(spec: KernelSpec, parameters: Mapping[str, Any]) -> Iterator[KernelSpec]:
    """The kernels beside its own that a table may launch on a GPU."""
    if parameters["lanes"] != "stash":
        yield collaborating(spec)
    yield sweeping(spec)


class TicketRemedy(Remedy[TicketArray]):
    """The `Remedy` of designs with a ticket board. No build: every insert looks for its key."""

    def way_back(self, store: ArraySlots[TicketArray], batch: Batch) -> Undo[TicketArray] | None:
        """The way back, for a batch that has more elements than slots are free.

        If a batch changes values in a file, the file's journal needs the images of their slots in any case.
        """
        state, array, stream, changes = store.state, store.array, batch.stream, batch.op != Op.KEEP
        images = array.images(batch.keys, batch.n, stream) if array.is_mapped and changes else []
        kept = state.tombstones if array.is_mapped else 0
        if state.size + kept + batch.n <= array.slots:
            return None
        if not (state.size or kept):
            return Undo(state, None)
        return Undo(state, array.snapshot(changes, stream)._replace(images=images))

    def make_room(self, store: ArraySlots[TicketArray], update: Transaction[TicketArray], missing: int) -> None:
        """As `Remedy.make_room`: a larger array, or one in which the emptied slots of a file are free."""
        assert update.undo is not None, "a batch for which there were free slots has failed"
        store.move_for(update, missing, store.slots)

    def move(self, store: ArraySlots[TicketArray], new: TicketArray, stream: Any) -> ArrayState[TicketArray] | None:
        """As `Remedy.move`: all pairs have slots, if there are as many slots as keys."""
        state = store.state
        complete = new.take_over(state.array, state.size, stream).complete
        return state._replace(array=new, tombstones=0) if complete else None


class TicketSlots(ArraySlots[TicketArray]):
    """The `slots.Slots` of designs with a ticket board: it does mixed batches, and may lie in a file."""

    def __init__(
        self, array: TicketArray, options: StoreOptions, remedy: Remedy[TicketArray], stream: Any = None
    ) -> None:
        super().__init__(array, options, remedy, stream)
        self._committed: ArrayState[TicketArray] | None = None

    def launch(self, batch: Batch, listed: Listed | None) -> Outcome:
        """As `UpdatedSlots.launch`; the array also learns how full the batch is likely to make the table."""
        state, new_share, counts = self.state, 1.0 if batch.unique else self.new_share, self.options.counts_probes
        return state.array.update(batch, size=state.size, new_share=new_share, count_probes=counts, listed=listed)

    def clear(self, stream: Any = None) -> None:
        self.check_process()
        array = self.array
        if not array.is_mapped:
            return super().clear(stream)
        # The slots are those of the last commit.
        self.state = ArrayState(array.sibling(array.slots, array.seed, stream), 0)
        self.recovery.step = None

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
        slots, load_factor = array.slots, self.options.load_factor
        if self.options.grows and size + missing > policies.capacity_of(slots, load_factor):
            slots = policies.slots_after_failure(size, missing, slots, load_factor)
        elif size >= slots:
            raise does_not_fit(size + missing, slots, self.design.name, 1)
        self.replace(slots, Cause.NO_SLOT, stream)
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
