"""The store of quotient tables: when there are more or fewer buckets, and how an update is undone.

What an update may leave undone, and what follows:

1. Every element has a slot: done.
2. Some keys found no slot in their range. A new array with more slots, or with other hash constants if the table may
   not grow, takes over all pairs, and the elements without a slot are tried again.
3. The policy, or the memory, allows no more: the table becomes what it was, and `TableFull` is raised. Where the batch
   could fail by its size, a snapshot was taken before it, and is put back. The same is done where the batch changes
   values and the table has so few slots that a part of it can be full by chance (`policies.is_risky`). Any other batch
   fails only with a freak of the hash constants. Then its keys are erased, and the values that it has changed stay
   changed.

No pair of the table is ever displaced (``kernels/quotient/range.cuh``). So the recovery of an interrupted update
(`storage.Recovery`) puts the snapshot back or, without one, resets the counters of the ranges and counts the keys anew.

A batch of few elements is left, if the table would be half full with it at most: `update` returns when the launch is
made. The table adopts pairs of the batch that find no slot (``kernels/quotient/gpu/few.cuh``), and the next call that
needs the end of the batch (`finish`) reads the outcome. If there are adopted pairs, the recovery gives them slots. In a
fuller table, this could take more memory than there is, and a later call would fail for it. Only tables that may grow
leave batches. Several batches may be left, one behind another: their outcomes are read together.

A build in passes writes all lines of a new table. So these are cleared by the first call that is no build: until then,
to clear them is the step of the recovery.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import KernelSpec
from .. import policies
from ..batch import COMBINING, Batch
from ..giving_up import not_placed_anew, slots_to_try
from ..growth import Growth
from ..listed import Listed, list_unplaced
from ..resize_log import Cause, Resize
from ..scratch import Elements, with_flags
from ..shielded import shielded
from ..snapshots import Snapshot
from ..storage import MemoryUse, Outcome, Recovery, StoreOptions, TableKind, resting
from .array import MOST_AWAITED, SPARE_ELEMENTS, QuotientArray
from .few import Adopted

__all__ = ["QuotientStore", "make_store", "more_programs"]


class _State(NamedTuple):
    """What a commit replaces.

    Attributes
    ----------
    awaited
        Elements of the batches that were left; 0 if there are none. The keys that they added are not counted yet.
    """

    array: QuotientArray
    size: int
    awaited: int = 0


class _Undo(NamedTuple):
    """How to get back to the table before an update. ``saved`` is None for a table without keys."""

    state: _State
    saved: Snapshot | None


Launch = Callable[[Listed | None], Outcome]
"""Launches the kernels of a batch for the elements in a list, or for all, and counts the keys that they added."""


def make_store(
    kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool
) -> QuotientStore:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    return QuotientStore(QuotientArray(*kind, slots, seed, hash), options)


def more_programs(spec: KernelSpec, parameters: Mapping[str, Any]) -> Iterator[KernelSpec]:
    """The kernels of smaller tables, whose buckets have fewer slots."""
    layout: Any = spec.layout
    for slots_per_bucket, _ in layout.forms(spec.key_bytes, spec.value_bytes)[1:]:
        yield replace(spec, slots_per_bucket=slots_per_bucket)


class QuotientStore:
    """The `storage.Store` of quotient designs.

    Parameters
    ----------
    array
        Without pairs. Its lines are cleared when that is needed.
    options
        What the store may do.

    Attributes
    ----------
    probes, inserted
        Lines read by updates that counted them, and the keys that these updates added.
    """

    resizes = None
    peak_nbytes = None

    def __init__(self, array: QuotientArray, options: StoreOptions) -> None:
        self.engine, self.design, self.parameters = array.engine, array.design, array.parameters
        self.seed = array.seed
        self._options = options
        self._safe_load_factor = array.design.safe_load_factor(array.parameters)
        self._growth = Growth(options.load_factor, self._safe_load_factor, options.bounds)
        self._leaves = options.leaves and options.grows and options.bounds is None and not options.counts_probes
        self._adopted: Adopted | None = None  # pairs that a recovery has taken from the array
        self._new_share = 1.0  # of the elements of the last update
        self.rebuilds = self.probes = self.inserted = 0
        self.state = _State(array, 0)
        self.recovery = Recovery()
        self._recover_left = resting(QuotientStore._recover, self)
        self._clear_new = resting(QuotientStore._clear, self)  # no batch began, so a build need not wait for it
        if not array.cleared:
            self.recovery.step = self._clear_new
        self._listed = array.engine.allocate_pinned(4 * SPARE_ELEMENTS)

    # ---- what the store is; nothing of it waits or changes anything
    @property
    def array(self) -> QuotientArray:
        """The lines."""
        return self.state.array

    @property
    def spec(self) -> KernelSpec:
        """The kernels of the table at its size."""
        return self.state.array.spec

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
        if self.state.awaited:
            self._end(stream)
        self.recovery.run(self.engine, stream)

    def _end(self, stream: Any) -> None:
        """Count the keys of batches that were left. If there are adopted pairs, the recovery stays noted. Waits."""
        array, size, awaited = self.state
        outcome = array.outcome(stream)
        self.state = _State(array, size + outcome.changed)
        self._new_share = outcome.changed / awaited
        if outcome.complete:
            self.recovery.step = None

    # ---- other stores
    def sibling(self, keys: int, stream: Any = None) -> QuotientStore:
        array = self.state.array
        return QuotientStore(array.sibling(self._slots_for(keys), array.seed + 1, stream), self._options)

    def copy(self, stream: Any = None) -> QuotientStore:
        state = self.state
        twin = QuotientStore(state.array.copy(stream), self._options)
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
        """As `Store.update`; returns when the batch is done, or left. Only a build makes use of ``unique`` keys."""
        n, stream = batch.n, batch.stream
        if n == 0:
            return
        awaited, rewrites = self.state.awaited, batch.op not in COMBINING
        few = rewrites and self._leaves and self.state.array.is_few(n)
        if few and awaited and awaited + n <= MOST_AWAITED and self._growth.surely_fits(self, awaited + n, 0):
            return self._leave(batch)
        if self.recovery.step is not self._clear_new:
            self.finish(stream)
        fits = self._growth.surely_fits(self, n, 0)
        if not fits:
            self._grow_ahead(batch)
        builds = rewrites and not (self.size or batch.flags or self._options.counts_probes)
        if builds and self._build(batch):
            return self._keep_in_bounds(stream)
        if fits and few:
            return self._leave(batch)
        self._do(batch)

    def _leave(self, batch: Batch) -> None:
        """Launch a batch, behind those that are awaited, and do not wait for it."""
        (array, size, awaited), resting = self.state, self.recovery.step
        batch, _own_flags = with_flags(self.engine, batch)
        self.recovery.step = self._recover_left
        try:
            array.begin(batch, adopts=True, goes_on=awaited > 0)
        except MemoryError:  # before the kernel was launched
            self.recovery.step = resting
            raise
        self.state = _State(array, size, awaited + batch.n)

    def _do(self, batch: Batch) -> None:
        """Do a batch, or take it back."""
        before, resting, n, stream = self.state, self.recovery.step, batch.n, batch.stream
        batch, _own_flags = with_flags(self.engine, batch)
        undo = self._undo(n, batch.op, stream)
        adds_up = batch.op in COMBINING and undo is None
        if adds_up:
            self.engine.fill(
                batch.flags, Flag.UNPLACED, n, stream
            )  # an interrupt needs the batch.flags of all elements
        counts_probes, launched = self._options.counts_probes, False

        def launch(listed: Listed | None) -> Outcome:
            nonlocal launched
            array, size, _ = self.state
            outcome = array.update(batch, count_probes=counts_probes, listed=listed)
            launched = True
            self.state = _State(array, size + outcome.changed)
            if counts_probes:
                self.probes, self.inserted = self.probes + outcome.probes, self.inserted + outcome.changed
            return outcome

        self.recovery.step = partial(self._put_back, undo) if undo else self._recover
        try:
            self._complete(launch, n, batch.flags, stream)
        except (TableFull, MemoryError) as error:
            if not launched:
                self.recovery.step = resting
                raise
            left = self._taken_back(batch, undo)
            raise TableFull(f"{error}; the table is as it was", left) from error
        except BaseException:
            if adds_up:  # at the next call, the memory of the batch may be gone
                shielded(partial(self._end_addition, launch, n, batch.flags, stream))
            raise
        self.recovery.step = None
        self._new_share = (self.state.size - before.size) / n
        self._keep_in_bounds(stream)

    def _build(self, batch: Batch) -> bool:
        """Do a batch for a table without keys, whose elements need no flags: whether it is done.

        If some keys find no slot, the table is cleared, and the batch has to be done with flags.
        """
        before, self.recovery.step = self.recovery.step, self._clear
        try:
            outcome = self.state.array.update(batch)
        except MemoryError:  # before a kernel was launched
            self.recovery.step = before
            raise
        if not outcome.complete:
            self.finish(batch.stream)
            return False
        self.state = _State(self.state.array, outcome.changed)
        self.recovery.step = None
        self._new_share = outcome.changed / batch.n
        return True

    def _complete(self, launch: Launch, n: int, flags: int, stream: Any, listed: Listed | None = None) -> None:
        """Launch a batch, or some elements of it, until each has a slot.

        Raises
        ------
        TableFull, MemoryError
            If the table cannot be made larger.
        """
        first_seed = self.state.array.seed
        for attempt in count(1):
            if launch(listed).complete:
                return
            listed = list_unplaced(self.engine, flags, n, stream)
            self._make_room(listed.n, 1 + self.state.array.seed - first_seed, attempt > 1, stream)

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
        self.finish(stream)
        if n == 0 or (isinstance(only, np.ndarray) and not len(only)):
            return
        self.recovery.step = self._recover
        try:
            erased = self.state.array.erase(keys, n, flags, only, stream)
        except MemoryError:  # before a kernel was launched
            self.recovery.step = None
            raise
        self.state = self.state._replace(size=self.state.size - erased)
        self.recovery.step = None
        self._keep_in_bounds(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        self.state = self.state._replace(awaited=0)
        self.recovery.step = self._clear
        self.finish(stream)

    def _clear(self, stream: Any) -> None:
        array = self.state.array
        array.clear(stream)
        self.state, self._adopted = _State(array, 0), None

    # ---- size
    def rebuild(self, keys: int, stream: Any = None) -> None:
        self.finish(stream)
        self._replace(self._slots_for(max(keys, self.state.size)), Cause.ASKED, stream)

    def _grow_ahead(self, batch: Batch) -> None:
        """Make a table larger that is as full as it should be, or that the new keys of the batch would fill."""
        if not self._options.grows:
            return
        slots = self._growth.slots_ahead(self, 0, batch, self._new_share)
        if slots is not None:
            with suppress(MemoryError):  # the batch may fit all the same
                self._replace(max(slots, self.size), Cause.BATCH, batch.stream)

    def _keep_in_bounds(self, stream: Any, erased: bool = False) -> None:
        """Bring the load factor back within the bounds. Only an erase makes the table smaller."""
        slots = self._growth.slots_after(self, erased)
        if slots is not None:
            with suppress(MemoryError, TableFull):  # the batch is done, and the table right as it is
                self._replace(slots, Cause.BOUNDS, stream)

    def _make_room(self, missing: int, tried: int, rehashes: bool, stream: Any) -> None:
        """Give the missing elements of a batch a better chance in another array.

        Parameters
        ----------
        tried
            Sets of hash constants under which the batch has failed.
        rehashes
            The new array has other hash constants.

        Raises
        ------
        TableFull, MemoryError
            If none is allowed.
        """
        array, size, _ = self.state
        slots = array.slots
        if self._options.grows:
            wanted = policies.slots_after_failure(size, missing, slots, self._options.load_factor)
            slots = self._slots_to_try(wanted, slots, missing, tried)
        elif tried >= self._options.attempts or size + missing > slots:
            raise TableFull(
                f"{size + missing:,} keys do not fit into {slots:,} slots of design {self.design.name!r} "
                f"(tried {tried} sets of hash constants); allow on_full='grow', or give a larger capacity"
            )
        self._replace(slots, Cause.NO_SLOT, stream, rehashes=rehashes)

    def _replace(self, slots: int, cause: Cause, stream: Any, *, rehashes: bool = False) -> None:
        """Move all pairs into a new array, with the same hash constants if they are not to be others.

        Raises
        ------
        MemoryError, TableFull
            The array is the old one, with the pairs that it had.
        """
        old, size, _ = self.state
        resize = Resize(self.design.name, self.slots, cause)
        # With the same hash constants, pairs lie in the new ranges in the order in which they lie in the old ones.
        first_seed = old.seed + (rehashes or slots == old.slots)
        for attempt in count():
            new = old.sibling(slots, first_seed + attempt, stream)
            if size == 0 and self.recovery.step is not self._clear_new:
                new.clear(stream)
            if size == 0 or new.take_over(old, size, stream).complete:
                self.state = _State(new, size)
                self.rebuilds += 1
                resize.done(size, new.slots)
                return
            if (attempt + 1) % self._options.attempts == 0:
                if not self._options.grows:
                    raise not_placed_anew(size, slots, attempt + 1)
                slots = self._slots_to_try(2 * slots, slots, 0, attempt + 1)

    def _slots_to_try(self, wanted: int, slots: int, missing: int, tried: int) -> int:
        """As `giving_up.slots_to_try`, with ``missing`` elements beside the keys."""
        keys, limits = self.size + missing, {"tried": tried, "attempts": self._options.attempts}
        return slots_to_try(wanted, slots, keys, self.design.name, vouched=False, **limits)

    # ---- undoing, and recovery
    def _undo(self, n: int, op: Op, stream: Any) -> _Undo | None:
        """A way back for a batch that may not fit."""
        state = self.state
        if not policies.is_risky(state.size, n, state.array.slots, self._safe_load_factor, op != Op.KEEP):
            return None
        return _Undo(state, state.array.snapshot(stream) if state.size else None)

    def _put_back(self, undo: _Undo, stream: Any) -> None:
        """Make the table what it was."""
        array = undo.state.array
        if undo.saved is None:
            array.clear(stream)
        else:
            array.restore(undo.saved, stream)
        self.state = undo.state

    def _taken_back(self, batch: Batch, undo: _Undo | None) -> npt.NDArray[np.int64]:
        """Take a batch back that does not fit: the numbers of its elements that found no slot."""
        stream = batch.stream
        done = self.engine.to_host(batch.flags, np.uint8, batch.n, stream)
        if undo is not None:
            self._put_back(undo, stream)
        else:
            self._erase_added(batch.keys, np.flatnonzero(done == Flag.CHANGED), stream)
            self.finish(stream)
        self.recovery.step = None
        return np.flatnonzero(done == Flag.UNPLACED)

    def _erase_added(self, keys: int, added: npt.NDArray[np.int64], stream: Any) -> None:
        """Erase the keys of some elements. Allocates no device memory."""
        memory: Any = (ctypes.c_uint32 * SPARE_ELEMENTS).from_address(self._listed.ptr)
        words = np.frombuffer(memory, np.uint32)
        for at in range(0, len(added), len(words)):
            some = added[at : at + len(words)]
            words[: len(some)] = some
            self.state.array.erase_listed(keys, self._listed.ptr, len(some), stream)

    def _recover(self, stream: Any) -> None:
        """Drop what an update without a snapshot has brought to ranges, count the keys, and place adopted pairs.

        Without adopted pairs, this allocates a report alone, as a scan does.

        Raises
        ------
        MemoryError, TableFull
            If adopted pairs have no slot. They stay, and the next call tries again.
        """
        array = self.state.array
        if not array.cleared:  # its first build has not been launched
            return self._clear(stream)
        if self._adopted is None:
            self._adopted = array.adopted(stream)
        array.forget_elements(stream)
        self.state = _State(array, array.scan(0, 0, 0, stream))
        if self._adopted is not None and len(self._adopted[0]):
            self._place(*self._adopted, stream)
        self._adopted = None

    def _place(self, keys: npt.NDArray[Any], values: npt.NDArray[Any] | None, stream: Any) -> None:
        """Add pairs, of which some may be there already."""
        engine, n = self.engine, len(keys)
        at_keys, flags = engine.from_host(keys, stream), engine.allocate(n, stream)
        at_values = None if values is None else engine.from_host(values, stream)

        batch = Batch(at_keys.ptr, at_values.ptr if at_values else 0, n, flags=flags.ptr, stream=stream)

        def launch(listed: Listed | None) -> Outcome:
            array, size, _ = self.state
            outcome = array.update(batch, listed=listed)
            self.state = _State(array, size + outcome.changed)
            return outcome

        self._complete(launch, n, flags.ptr, stream)
