"""The store of two-level tables: when there are more or fewer buckets, or larger ones, and how an update is undone.

What an update may leave undone, and what follows:

1. All is placed: done.
2. For some buckets no seeds were found. These buckets get ranges of twice their slots, if they are few; otherwise a new
   array with more buckets, or with other hash constants, takes over all pairs. Then the unplaced elements are tried
   again. Each such step takes more slots, and at some number of slots the store gives up (`giving_up`). If the table
   may not grow, a new array has as many buckets, and larger ranges add an eighth to the slots at most.
3. The policy, or the memory, allows no more: the table becomes what it was, and `TableFull` is raised. Where the batch
   could fail by its size, a snapshot was taken before it, and is put back. The same is done where the batch changes
   values and the table has so few slots that a part of it can be full by chance (`policies.is_risky`). Any other batch
   fails only with a freak of the hash constants. Then its keys are erased, and the values that it has changed stay
   changed.

No pair is ever displaced: a block publishes its bucket whole (``kernels/two_level/place.cuh``). So the recovery of an
interrupted update (`storage.Recovery`) puts the snapshot back or, without one, forgets the lists of the buckets and
counts the keys anew.

A build writes all slots of a table without keys. So the memory of a new or cleared table is cleared by the first call
that is no build: until then, to clear the memory is the step of the recovery.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from math import inf
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from .. import aggregate, policies
from ..batch import COMBINING, Batch
from ..giving_up import not_placed_anew, slots_to_try
from ..growth import Growth
from ..listed import Listed, list_unplaced
from ..resize_log import Cause, Resize
from ..scratch import Elements, with_flags
from ..shielded import shielded
from ..storage import MemoryUse, Outcome, Recovery, StoreOptions, TableKind, resting
from .array import Saved, TwoLevelArray

__all__ = ["TwoLevelStore"]

_LISTED_BYTES = 1 << 12
"""Of host memory for a list of elements: to undo a batch where the device has no memory left."""

_MOST_ENLARGED = 8
"""Of so many buckets, one may get a larger range; of more, the table is rebuilt."""


class _State(NamedTuple):
    """What a commit replaces.

    Attributes
    ----------
    tombstones
        Erased slots since the array was made (an upper bound: an insert may have taken some again).
    vouched
        Whether the table holds keys of a batch with ``unique``, which nobody has compared.
    """

    array: TwoLevelArray
    size: int
    tombstones: int
    vouched: bool


class _Undo(NamedTuple):
    """How to get back to the table before an update. ``saved`` is None for a table without keys."""

    state: _State
    saved: Saved | None


Launch = Callable[[Listed | None], Outcome]
"""Launches the kernels of a batch for the elements in a list, or for all, and counts the keys that they added."""


def make_store(
    kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool
) -> TwoLevelStore:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    return TwoLevelStore(TwoLevelArray(*kind, slots, seed, hash), options)


class TwoLevelStore:
    """The `storage.Store` of two-level designs.

    Parameters
    ----------
    array
        Its memory is cleared when that is needed.
    options
        What the store may do.

    Attributes
    ----------
    probes, inserted
        Slots read or written by updates that counted them, and the keys that these updates added.
    """

    resizes = None
    peak_nbytes = None

    def __init__(self, array: TwoLevelArray, options: StoreOptions) -> None:
        self.engine, self.design, self.parameters, self.spec = array.engine, array.design, array.parameters, array.spec
        self.seed = array.seed
        self._options = options
        self._safe_load_factor = array.design.safe_load_factor(array.parameters)
        self._growth = Growth(options.load_factor, self._safe_load_factor, options.bounds)
        self._new_share = 1.0  # of the elements of the last update
        self.rebuilds = self.probes = self.inserted = 0
        self._samples = aggregate.Samples()
        self.state = _State(array, 0, 0, False)
        self.recovery = Recovery()
        self._clear_later = resting(TwoLevelStore._clear, self)
        if not array.cleared:
            self.recovery.step = self._clear_later
        self._listed = array.engine.allocate_pinned(_LISTED_BYTES)

    # ---- what the store is; nothing of it waits or changes anything
    @property
    def array(self) -> TwoLevelArray:
        """The directory and the ranges."""
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
    def sibling(self, keys: int, stream: Any = None) -> TwoLevelStore:
        array = self.state.array
        return TwoLevelStore(array.sibling(self._slots_for(keys), array.seed + 1, stream), self._options)

    def copy(self, stream: Any = None) -> TwoLevelStore:
        state = self.state
        twin = TwoLevelStore(state.array.copy(stream), self._options)
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
        """As `Store.update`; returns when the batch is done.

        The first batch of a table is a build, if its elements are unique or nobody asks what became of each.
        """
        n, stream = batch.n, batch.stream
        if n == 0:
            return
        if self.recovery.step is not self._clear_later:
            self.finish(stream)
        if not self._growth.surely_fits(self, n, self.state.tombstones):
            self._grow_ahead(batch)
        if batch.op not in COMBINING and (batch.unique or not batch.flags) and self._build(batch):
            return self._keep_in_bounds(stream)
        self.finish(stream)
        before = self.state
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
            array, size, tombstones, vouched = self.state
            outcome = array.update(batch, count_probes=counts_probes, listed=listed)
            launched = True
            self.state = _State(array, size + outcome.changed, tombstones, vouched or batch.unique)
            if counts_probes:
                self.probes, self.inserted = self.probes + outcome.probes, self.inserted + outcome.changed
            return outcome

        self.recovery.step = partial(self._put_back, undo) if undo else self._recover
        try:
            self._complete(launch, n, batch.flags, stream)
        except (TableFull, MemoryError) as error:
            if not launched:
                self.recovery.step = None
                raise
            left = self._taken_back(batch, undo, before)
            raise TableFull(f"{error}; the table is as it was", left) from error
        except BaseException:
            if adds_up:  # at the next call, the memory of the batch may be gone
                shielded(partial(self._end_addition, launch, n, batch.flags, stream))
            raise
        self.recovery.step = None
        self._new_share = (self.state.size - before.size) / n
        self._keep_in_bounds(stream)

    def _complete(self, launch: Launch, n: int, flags: int, stream: Any, listed: Listed | None = None) -> None:
        """Launch a batch, or some elements of it, until each has a slot.

        Raises
        ------
        TableFull, MemoryError
            If the table cannot be made larger.
        """
        first_seed = self.state.array.seed
        while not launch(listed).complete:
            listed = list_unplaced(self.engine, flags, n, stream)
            self._make_room(listed.n, 1 + self.state.array.seed - first_seed, stream)

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

    def _build(self, batch: Batch) -> bool:
        """Do a batch for a table without keys in one build, if all of it can be done so: whether it is done.

        A batch that may not fit is not tried: the work would be done twice. Nor is a batch whose keys repeat often, on
        a GPU: the elements of a key go to one bucket, one after another.
        """
        (array, size, *_), n, stream = self.state, batch.n, batch.stream
        if size or self._options.counts_probes or n > self._safe_load_factor * array.slots:
            return False
        if not batch.unique and n >= aggregate.FEWEST_AGGREGATED and self.engine.lanes > 1:
            with suppress(MemoryError):
                if self._samples.repeat_often(self, batch.keys, n, stream):
                    return False
        self.recovery.step = self._clear_later
        outcome = self._mended(array, array.build(batch), stream)
        # Keys may repeat that should not. Then nobody knows which element was added.
        if not outcome.complete or (batch.flags and outcome.changed < n):
            return False
        if batch.flags:
            self.engine.fill(batch.flags, Flag.CHANGED, n, stream)
        array.cleared = True
        self.state = _State(array, outcome.changed, 0, batch.unique)
        self.recovery.step = None
        return True

    def _mended(self, array: TwoLevelArray, filled: Outcome, stream: Any) -> Outcome:
        """The outcome of a build after its failed buckets, if they are few, have larger ranges."""
        outcome = filled
        while not outcome.complete:
            failed = array.failed_buckets(stream)
            lacking = outcome.unplaced
            moved = self._enlarged(array, failed, stream)
            if moved is None or moved.changed + moved.unplaced != lacking:  # some pairs were lost on their way
                return outcome
            outcome = Outcome(outcome.changed + moved.changed, 0, moved.unplaced, 0)
        return outcome

    def _enlarged(self, array: TwoLevelArray, failed: npt.NDArray[np.uint32], stream: Any) -> Outcome | None:
        """Give a few buckets larger ranges. None if they are many, or there is no memory, or the table may not grow."""
        if not 0 < len(failed) <= max(1, array.buckets // _MOST_ENLARGED):
            return None
        most_slots = inf if self._options.grows else array.regular_slots * (1 + 1 / _MOST_ENLARGED)
        with suppress(MemoryError):
            return array.enlarge(failed, most_slots, stream)
        return None

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        self.finish(stream)
        self.recovery.step = self._recover
        try:
            erased = self.state.array.erase(keys, n, flags, only, stream)
        except MemoryError:  # before a kernel was launched
            self.recovery.step = None
            raise
        state = self.state
        self.state = state._replace(size=state.size - erased, tombstones=state.tombstones + erased)
        self.recovery.step = None
        self._keep_in_bounds(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        self.recovery.step = self._clear_later
        array = self.state.array
        array.cleared = False
        self.state = _State(array, 0, 0, False)

    def _clear(self, stream: Any) -> None:
        array = self.state.array
        array.clear(stream)
        self.state = _State(array, 0, 0, False)

    # ---- size
    def rebuild(self, keys: int, stream: Any = None) -> None:
        self.finish(stream)
        self._replace(self._slots_for(max(keys, self.state.size)), Cause.ASKED, stream)

    def _grow_ahead(self, batch: Batch) -> None:
        """Make a table larger that is as full as it should be, or that the new keys of the batch would fill."""
        if not self._options.grows:
            return
        slots = self._growth.slots_ahead(self, self.state.tombstones, batch, self._new_share)
        if slots is not None:
            with suppress(MemoryError):  # the batch may fit all the same
                self._replace(max(slots, self.size), Cause.BATCH, batch.stream)

    def _keep_in_bounds(self, stream: Any, erased: bool = False) -> None:
        """Bring the load factor back within the bounds. Only an erase makes the table smaller."""
        slots = self._growth.slots_after(self, erased)
        if slots is not None:
            with suppress(MemoryError, TableFull):  # the batch is done, and the table right as it is
                self._replace(slots, Cause.BOUNDS, stream)

    def _make_room(self, missing: int, tried: int, stream: Any) -> None:
        """Give the missing elements of a batch a better chance: larger ranges for their buckets, or another array.

        Parameters
        ----------
        tried
            Sets of hash constants under which the batch has failed.

        Raises
        ------
        TableFull, MemoryError
            If neither is allowed.
        """
        array, size, *_ = self.state
        failed = array.failed_buckets(stream)
        if size + missing <= self._safe_load_factor * array.slots:
            moved = self._enlarged(array, failed, stream)
            if moved is not None and moved.complete:
                return
        slots = array.regular_slots
        if self._options.grows:
            wanted = policies.slots_after_failure(size, missing, array.slots, self._options.load_factor)
            slots = self._slots_to_try(wanted, slots, missing, tried)
        elif tried >= self._options.attempts or size + missing > slots:
            raise TableFull(
                f"{size + missing:,} keys do not fit into {slots:,} slots of design {self.design.name!r} "
                f"(tried {tried} sets of hash constants); allow on_full='grow', or give a larger capacity"
            )
        self._replace(slots, Cause.NO_SLOT, stream)

    def _replace(self, slots: int, cause: Cause, stream: Any) -> None:
        """Move all pairs into a new array.

        Raises
        ------
        MemoryError, TableFull
            The array is the old one, with the pairs that it had.
        """
        resize, seed = Resize(self.design.name, self.slots, cause), self.state.array.seed
        for attempt in count(1):
            moved = self._moved(slots, seed + attempt, stream)
            if moved is not None:
                cleared = self.recovery.step is self._clear_later
                array, size = moved
                self.state = self.state._replace(array=array, size=size, tombstones=0)
                self.rebuilds += not cleared
                resize.done(size, array.slots)
                return
            if attempt % self._options.attempts == 0:
                if not self._options.grows:
                    raise not_placed_anew(self.size, slots, attempt)
                slots = self._slots_to_try(2 * slots, slots, 0, attempt)

    def _moved(self, slots: int, seed: int, stream: Any) -> tuple[TwoLevelArray, int] | None:
        """A new array with all pairs, and their number; None if some have no slot there.

        Copies of a key, which only a batch with ``unique`` can have brought, become one pair.
        """
        old = self.state.array
        new = old.sibling(slots, seed, stream)
        if not old.cleared:  # no pair was ever there
            return new, 0
        outcome = self._mended(new, new.take_over(old, stream), stream)
        new.cleared = outcome.complete
        return (new, outcome.changed) if new.cleared else None

    def _slots_to_try(self, wanted: int, slots: int, missing: int, tried: int) -> int:
        """As `giving_up.slots_to_try`, with ``missing`` elements beside the keys."""
        keys, limits = self.size + missing, {"tried": tried, "attempts": self._options.attempts}
        return slots_to_try(wanted, slots, keys, self.design.name, vouched=self.state.vouched, **limits)

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

    def _taken_back(self, batch: Batch, undo: _Undo | None, before: _State) -> npt.NDArray[np.int64]:
        """Take a batch back that does not fit: the numbers of its elements that found no slot."""
        stream = batch.stream
        done = self.engine.to_host(batch.flags, np.uint8, batch.n, stream)
        if undo is not None:
            self._put_back(undo, stream)
        else:
            self._erase_added(batch.keys, np.flatnonzero(done == Flag.CHANGED), stream)
            self.finish(stream)
            self.state = self.state._replace(vouched=before.vouched)
        self.recovery.step = None
        return np.flatnonzero(done == Flag.UNPLACED)

    def _erase_added(self, keys: int, added: npt.NDArray[np.int64], stream: Any) -> None:
        """Erase the keys of some elements. Allocates no device memory."""
        memory: Any = (ctypes.c_uint32 * (_LISTED_BYTES // 4)).from_address(self._listed.ptr)
        words = np.frombuffer(memory, np.uint32)
        for at in range(0, len(added), len(words)):
            some = added[at : at + len(words)]
            words[: len(some)] = some
            left = len(some)  # more than one launch takes only copies of a key, which ``unique`` brought in
            while left > 0 and (erased := self.state.array.erase_listed(keys, self._listed.ptr, len(some), stream)):
                left -= erased

    def _recover(self, stream: Any) -> None:
        """Forget the lists of an update that has no snapshot, and count the slots and the keys in them.

        Allocates a report alone, as a scan does.
        """
        array, before, tombstones, vouched = self.state
        array.forget_lists(stream)
        array.count_slots(stream)
        size = array.scan(0, 0, 0, stream)
        self.state = _State(array, size, tombstones + max(0, before - size), vouched)
