"""The store of slots with a ticket board: when the array is replaced, by what, and how an update is undone.

The walk of each key visits every slot, so a batch fails for one reason only: all slots are booked. A batch that has no
more elements than slots are free cannot fail, and needs no way back. Any other batch has a snapshot. If it fails, a
larger array takes over all pairs, and the unplaced elements are tried again. If the policy, or the memory, does not
allow a larger array, the snapshot is put back, and `TableFull` is raised.

The recovery of an interrupted update (`storage.Recovery`) follows from this. With a snapshot, it is put back, and all
keys of the batch are out. Without one, the keys are counted anew: each element was done, or not.

A mixed batch uses no slot twice (``kernels/tickets/execute.cuh``). Inserts that find no unused slot are launched again
after a rebuild, in which emptied slots become free, or which makes the table larger. Each operation is done at one
moment, so an interrupted batch leaves nothing to undo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import KernelSpec
from .. import policies
from ..batch import COMBINING, Batch, MixedBatch
from ..growth import Growth
from ..listed import Listed, list_unplaced
from ..resize_log import Cause, Resize
from ..scratch import Elements, flags_at, with_flags
from ..shielded import shielded
from ..storage import MemoryUse, Outcome, Recovery, StoreOptions, TableKind
from .array import Images, Saved, TicketArray
from .lanes import collaborating
from .slot_memory import FileMemory, memory_of
from .sweep import sweeping

__all__ = ["TicketStore"]


class _State(NamedTuple):
    """What a commit replaces.

    Attributes
    ----------
    tombstones
        Emptied slots since the array was made (an upper bound: an insert may have booked some again).
    """

    array: TicketArray
    size: int
    tombstones: int


class _Undo(NamedTuple):
    """How to get back to the table before an update.

    Attributes
    ----------
    saved
        None for a table without keys, all of whose slots are free.
    images
        Of slots in a file, those whose values the update may change.
    """

    state: _State
    saved: Saved | None
    images: Sequence[Images]


Launch = Callable[[Listed | None], Outcome]
"""Launches the kernels of a batch for the elements in a list, or for all, and counts the keys that they added."""


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> TicketStore:
    """Make an empty store for ``capacity`` keys, or open the one that a file holds; see `make_storage`."""
    memory = memory_of(options.memory, options.opens)
    if isinstance(memory, FileMemory) and memory.opened:
        found = memory.opened["table"]
        store = TicketStore(TicketArray(*kind, memory, memory.opened["slots"], found["slots_seed"], hash), options)
        store.seed = seed
        store.state = store._committed = _State(store.array, found["size"], found["tombstones"])
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

    def __init__(self, array: TicketArray, options: StoreOptions) -> None:
        self.engine, self.design, self.parameters, self.spec = array.engine, array.design, array.parameters, array.spec
        self.seed = array.seed
        self._options = options
        safe_load_factor = array.design.safe_load_factor(array.parameters)
        self._growth = Growth(options.load_factor, safe_load_factor, options.bounds)
        self._new_share = 1.0  # of the elements of the last update
        self.rebuilds = self.probes = self.inserted = 0
        self.state = _State(array, 0, 0)
        self._committed: _State | None = None
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
        if not self._growth.surely_fits(self, n, self.state.tombstones):
            self._grow_ahead(batch)
        before, changes_values = self.state, batch.op != Op.KEEP
        batch, _own_flags = with_flags(self.engine, batch)
        images = before.array.images(batch.keys, n, stream) if before.array.is_mapped and changes_values else []
        undo = self._undo(n, changes_values, images, stream)
        adds_up = batch.op in COMBINING and undo is None
        if adds_up:
            self.engine.fill(
                batch.flags, Flag.UNPLACED, n, stream
            )  # an interrupt needs the batch.flags of all elements
        counts_probes, launched = self._options.counts_probes, False
        new_share = 1.0 if batch.unique else self._new_share

        def launch(listed: Listed | None) -> Outcome:
            nonlocal launched
            array, size, tombstones = self.state
            outcome = array.update(batch, size=size, new_share=new_share, count_probes=counts_probes, listed=listed)
            launched = True
            self.state = _State(array, size + outcome.changed, tombstones)
            if counts_probes:
                self.probes, self.inserted = self.probes + outcome.probes, self.inserted + outcome.changed
            return outcome

        self.recovery.step = partial(self._put_back, undo) if undo else self._recover
        try:
            self._complete(launch, n, batch.flags, stream)
        except (TableFull, MemoryError) as error:
            if undo is None or not launched:  # a batch that surely fits fails for want of memory alone, before a kernel
                self.recovery.step = None
                raise
            left = self._take_back(undo, batch.flags, n, stream)
            raise TableFull(f"{error}; the table is as it was", left) from error
        except BaseException:
            if adds_up:  # at the next call, the memory of the batch may be gone
                shielded(partial(self._end_addition, launch, n, batch.flags, stream))
            raise
        self.recovery.step = None
        self._new_share = (self.state.size - before.size) / n
        self._keep_in_bounds(stream)

    def _complete(self, launch: Launch, n: int, flags: int, stream: Any, listed: Listed | None = None) -> None:
        """Launch a batch, or some elements of it, and make the table larger until each has a slot.

        Raises
        ------
        TableFull, MemoryError
            If the table cannot be made larger.
        """
        while not launch(listed).complete:
            listed = list_unplaced(self.engine, flags, n, stream)
            slots, load_factor = self.slots, self._options.load_factor
            if self._options.grows:
                slots = policies.slots_after_failure(self.size, listed.n, slots, load_factor)
            elif not self.array.is_mapped or self.size + listed.n > slots:
                raise self._too_full(listed.n)
            self._replace(slots, Cause.NO_SLOT, stream)  # emptied slots of a file, too, become free

    def _too_full(self, missing: int) -> TableFull:
        return TableFull(
            f"{self.size + missing:,} keys do not fit into {self.slots:,} slots of design {self.design.name!r}; "
            "allow on_full='grow', or give a larger capacity"
        )

    def _end_addition(self, launch: Launch, n: int, flags: int, stream: Any) -> None:
        """Finish an interrupted batch that adds to values: all values of a key are added, or none.

        The flags tell which elements the kernels have not come to. If they came to none, the batch is out.
        """
        self.finish(stream)
        listed = list_unplaced(self.engine, flags, n, stream)
        if listed.n < n:
            self.recovery.step = self._recover
            self._complete(launch, n, flags, stream, listed)
            self.recovery.step = None

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        self.check_process()
        self.finish(stream)
        self.recovery.step = self._recover
        try:
            erased = self.state.array.erase(keys, n, flags, only, stream)
        except MemoryError:  # before a kernel was launched
            self.recovery.step = None
            raise
        array, size, tombstones = self.state
        self.state = _State(array, size - erased, tombstones + erased)
        self.recovery.step = None
        self._keep_in_bounds(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        array = self.state.array
        array.check_process()
        if array.is_mapped:  # its slots are those of the last commit
            self.state = _State(array.sibling(array.slots, array.seed, stream), 0, 0)
        else:
            self.recovery.step = self._clear
            self._clear(stream)
        self.recovery.step = None

    def _clear(self, stream: Any) -> None:
        array = self.state.array
        array.clear(stream)
        self.state = _State(array, 0, 0)

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
        self.recovery.step = self._recover
        listed: Listed | None = None
        while True:
            changed, erased, unplaced = self.state.array.execute(batch, listed, stream)
            array, size, tombstones = self.state
            self.state = _State(array, size + changed - erased, tombstones + erased)
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
        array, size, _ = self.state
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
            slots = self._growth.slots_ahead(self, self.state.tombstones, batch, self._new_share)
        else:
            slots = self.slots if 2 * self.state.tombstones > self.slots else None
        if slots is not None:
            with suppress(MemoryError):  # the batch may fit all the same
                cause = Cause.BATCH if self._options.grows else Cause.ERASED
                self._replace(max(slots, self.size), cause, batch.stream)

    def _keep_in_bounds(self, stream: Any, erased: bool = False) -> None:
        """Bring the load factor back within the bounds. Only an erase makes the table smaller."""
        slots = self._growth.slots_after(self, erased)
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
        old, size, _ = self.state
        resize = Resize(self.design.name, old.slots, cause)
        new = old.sibling(slots, old.seed + 1, stream)
        if size or self.pending:
            moved = new.take_over(old, size, stream)
            if not moved.complete:
                raise TableFull(f"{moved.unplaced:,} of {size:,} pairs found no slot among {new.slots:,}")
        self.state = _State(new, size, 0)
        self.rebuilds += 1
        resize.done(size, new.slots)

    # ---- undoing, and recovery
    def _undo(self, n: int, changes_values: bool, images: Sequence[Images], stream: Any) -> _Undo | None:
        """A way back for a batch that has more elements than slots are free."""
        state, array = self.state, self.state.array
        kept = state.tombstones if array.is_mapped else 0
        if state.size + kept + n <= array.slots:
            return None
        return _Undo(state, array.snapshot(changes_values, stream) if state.size or kept else None, images)

    def _put_back(self, undo: _Undo, stream: Any) -> None:
        """Make the table what it was."""
        array = undo.state.array
        if undo.saved is None:
            array.clear(stream)
        else:
            array.restore(undo.saved, undo.images, stream)
        self.state = undo.state

    def _take_back(self, undo: _Undo, flags: int, n: int, stream: Any) -> npt.NDArray[np.int64]:
        """Take a batch back that does not fit: the numbers of its elements that found no slot."""
        done = self.engine.to_host(flags, np.uint8, n, stream)
        self._put_back(undo, stream)
        self.recovery.step = None
        return np.flatnonzero(done == Flag.UNPLACED)

    def _recover(self, stream: Any) -> None:
        """Count the keys in the slots, after an update that has no snapshot."""
        array, before, tombstones = self.state
        size = array.scan(0, 0, 0, stream)
        self.state = _State(array, size, tombstones + max(0, before - size))
