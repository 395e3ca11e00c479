"""The store of designs whose buckets lie in one array: how an update ends, when the array is replaced, and by what.

An update is a `Transaction`. It may leave elements without a slot, and displaced pairs. The displaced pairs are few:
the first pair without a slot keeps all other elements from displacing more. They are tried again in the same array,
whose evictions then take other ways; a table that is near the limit of its design succeeds so, and is not built anew.
If that does not help, a new array, larger or with other hash constants, takes over all pairs. If a batch is taken back
by erasing its keys, the displaced pairs have room again.

A large batch goes in the order of the parts of the table (`partition`). If the design compares the loads of buckets, it
goes in two rounds: first all keys that have room in their first buckets, then the others (``buckets/insert.cuh``). A
table that counts probes takes each batch as it comes, in one round.

A batch that is a single launch is left, if the table would be half full with it at most, or has no keys yet: its kernel
puts pairs that find no slot with the displaced pairs, and `update` returns. The next call that needs the end of the
batch (`finish`) reads the outcome, and gives displaced pairs slots as after an interrupt. In a fuller table, this could
take more memory than there is, and a later call would fail for it. Only tables that may grow leave batches.

The recovery of an update without a way back reads the displaced pairs from the array's scratch memory and places them,
and counts the keys anew. An array whose layout is open, or that was never cleared, had no keys before, and is cleared.

A build writes all slots of a table without keys. So the memory of a new or cleared table is cleared by the first call
that is no build: until then, to clear the memory is the step of the recovery.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from .. import policies
from ..batch import COMBINING, Batch
from ..estimate import estimate_new_keys, seem_distinct, seem_new
from ..giving_up import not_placed_anew, slots_to_try, why_no_slot
from ..growth import Growth
from ..listed import Listed
from ..partition import in_parts
from ..resize_log import Cause, Resize
from ..scratch import Elements, with_flags
from ..storage import MemoryUse, Outcome, Recovery, StoreOptions, TableKind, resting
from ..update.transaction import LISTED_BYTES, ArrayState, Transaction, erase, may_fail, way_back
from .array import BucketArray, Saved

__all__ = ["BucketStore"]

_TRIES_IN_PLACE = 64
"""Sets of hash constants after which a rebuild in place has failed: keys repeat that should not."""

_TRIES_TO_PLACE = 4
"""How often displaced pairs are tried in one array before the array is replaced."""


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> BucketStore:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    return BucketStore(BucketArray(*kind, slots, seed, hash), options)


class BucketStore:
    """The `storage.Store` of designs whose buckets lie in one array.

    Parameters
    ----------
    array
        Its memory is cleared if it is not.
    options
        What the store may do.

    Attributes
    ----------
    probes, inserted
        Buckets read by updates that counted them, and the keys that these updates added.
    """

    resizes = None
    peak_nbytes = None

    def __init__(self, array: BucketArray, options: StoreOptions, stream: Any = None) -> None:
        self.engine, self.design, self.parameters, self.spec = array.engine, array.design, array.parameters, array.spec
        self._options = options
        self.grows, self.attempts, self.load_factor, self.bounds, self.counts_probes = options[:5]
        self.safe_load_factor = array.design.safe_load_factor(array.parameters)
        self._growth = Growth(self.load_factor, self.safe_load_factor, self.bounds)
        # Without moves, or with bounds or counts, the end of a batch is part of the call.
        at_once = self.counts_probes or self.bounds is not None or not array.design.moves_keys
        self._leaves = options.leaves and self.grows and not at_once
        self.seed = array.seed
        self.rebuilds = self.probes = self.inserted = 0
        self.state: ArrayState[BucketArray] = ArrayState(array, 0)
        self.recovery = Recovery()
        self._clear_later, self._recover_left = resting(BucketStore._clear, self), resting(BucketStore.recover, self)
        if array.builds and not array.cleared:
            self.recovery.step = self._clear_later
        elif not array.cleared:
            array.clear(stream)
        self._new_share = 1.0  # of the elements of the last update
        self.listed = array.engine.allocate_pinned(LISTED_BYTES)

    # ---- what the store is; nothing of it waits or changes anything
    @property
    def array(self) -> BucketArray:
        """The buckets."""
        return self.state.array

    @property
    def size(self) -> int:
        return self.state.size

    @property
    def tombstones(self) -> int:
        return self.state.tombstones

    @property
    def slots(self) -> int:
        return self.state.array.slots

    @property
    def capacity(self) -> int:
        return policies.capacity_of(self.state.array.slots, self.load_factor)

    @property
    def nbytes(self) -> int:
        return self.state.array.nbytes

    @property
    def insert_probes(self) -> float | None:
        return self.probes / self.inserted if self.counts_probes and self.inserted else None

    @property
    def pending(self) -> bool:
        return self.recovery.step is not None

    def memory_use(self) -> MemoryUse:
        return self.state.array.memory_use()

    def finish(self, stream: Any = None) -> None:
        if self.state.awaited:
            self._end(stream)
        if self.recovery.step is not None:
            self.recovery.run(self.engine, stream)

    def _end(self, stream: Any) -> None:
        """Count the keys of the batch that was left. If it has displaced pairs, the recovery stays noted. Waits."""
        state = self.state
        outcome = state.array.outcome(stream)
        self.state = state._replace(size=state.size + outcome.changed, awaited=0)
        self._new_share = outcome.changed / state.awaited
        if outcome.complete:
            self.recovery.step = None

    # ---- other stores
    def sibling(self, keys: int, stream: Any = None) -> Self:
        array = self.state.array
        return type(self)(array.sibling(self._slots_for(keys), array.seed + 1, stream), self._options, stream)

    def copy(self, stream: Any = None) -> Self:
        state = self.state
        twin = type(self)(state.array.copy(stream), self._options)
        twin.state = state._replace(array=twin.array)
        twin.rebuilds, twin.probes, twin.inserted = self.rebuilds, self.probes, self.inserted
        return twin

    def _slots_for(self, keys: int) -> int:
        return policies.slots_for(max(1, keys), self.load_factor)

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        return self.state.array.scan(room, out_keys, out_values, stream)

    def broken_buckets(self, stream: Any = None) -> int:
        return self.state.array.broken_buckets(stream)

    # ---- updates
    def update(self, batch: Batch) -> None:
        """As `Store.update`; returns when the batch is done, or left.

        Elements may go in another order (`partition`), if they are unique or nobody asks what became of each.
        """
        n, op, unique, stream = batch.n, batch.op, batch.unique, batch.stream
        if n == 0:
            return
        fits = self._prepare(batch)
        if fits is None:
            return
        self.finish(stream)
        before = self.state
        may_reorder = op == Op.KEEP and (unique or not batch.flags) and not self.counts_probes
        copies = in_parts(before.array, batch) if may_reorder else None
        if copies:
            batch = copies.batch
        batch, _own_flags = with_flags(self.engine, batch)
        at_once = before.array.is_one_launch(n)
        fits = fits or not (before.size or may_fail(before, batch, self.safe_load_factor))
        if fits and at_once and self._leaves and op not in COMBINING:
            return self._leave(batch)
        undo = way_back(before, batch, self.safe_load_factor)

        def launch(state: ArrayState[BucketArray], listed: Listed | None) -> Outcome:
            outcome = state.array.update(
                batch,
                fresh=not state.size and not state.tombstones,
                count_probes=self.counts_probes,
                past_first=listed is not None and listed.past_first,
                listed=listed,
            )
            if outcome.displaced:
                self._gather_displaced(stream)
            return outcome

        def settle() -> Listed | None:
            """Do the first round of a batch that goes in two; what is left for the second."""
            state = self.state
            if not (copies and state.array.has_two_rounds):
                return None
            self.engine.fill(batch.flags, Flag.UNPLACED, n, stream)
            settled = state.array.settle(batch)
            if settled is None:
                return None
            added, left = settled
            self.state, update.launched = state._replace(size=state.size + added, vouched=state.vouched or unique), True
            return left

        update = Transaction(self, batch, undo, launch, counts_probes=self.counts_probes, at_once=at_once)
        try:
            update.do(settle)
        except TableFull as error:
            if copies and error.keys is not None:
                error.keys = copies.originals(error.keys)
            raise
        if copies:
            copies.flag(batch.flags, self.state.size - before.size)
        self._new_share = (self.state.size - before.size) / n
        self._keep_in_bounds(stream)

    def build(self, batch: Batch) -> bool:
        """Insert a batch by a build, which reads each key once: whether that is done. No keys are added otherwise.

        A sample tells first whether a build is likely to do. Otherwise the batch is copied, and a sample of the copy
        decides again (`update`).
        """
        n = batch.n
        if n < self.size or not self.state.array.builds or self.counts_probes:
            return False
        if self.recovery.step is not self._clear_later:
            self.finish(batch.stream)
        if self.size:
            if self._growth.surely_fits(self.size + n, self.slots, self.tombstones) or not self._seem_new(batch):
                return False
        elif batch.flags and not batch.unique and not seem_distinct(self, batch.keys, n):
            return False
        return self._prepare(batch) is None

    def _seem_new(self, batch: Batch) -> bool:
        """Whether all keys seem to be new; False also if there is no memory for the sample."""
        try:
            return batch.unique or seem_new(self, batch.keys, batch.n, batch.stream)
        except MemoryError:
            return False

    def _prepare(self, batch: Batch) -> bool | None:
        """Make the table as large as a batch needs, and do the batch if a build can: None if it is done.

        Otherwise, whether the batch fits though all of its keys were new.
        """
        stream, keeps = batch.stream, batch.op == Op.KEEP
        if self.recovery.step is not self._clear_later:
            self.finish(stream)
        fits = self._growth.surely_fits(self.size + batch.n, self.slots, self.tombstones)
        slots = None if fits else self._slots_ahead(batch)
        done = keeps and slots is not None and self._grown_with(slots, batch)
        if slots is not None and not done:
            with suppress(MemoryError):  # the batch may fit all the same
                self._replace(slots, Cause.BATCH, stream)
        if done or (keeps and self._build(batch)):
            self._keep_in_bounds(stream)
            return None
        return fits

    def _leave(self, batch: Batch) -> None:
        """Launch a batch, and do not wait for it."""
        array, size, tombstones, vouched, *_ = self.state
        self.recovery.step = self._recover_left
        try:
            array.begin(batch, adopts=True)
        except MemoryError:  # before the kernel was launched
            self.recovery.step = None
            raise
        self.state = ArrayState(array, size, tombstones, vouched or batch.unique, batch.n)

    def _build(self, batch: Batch) -> bool:
        """Do a batch for a table without keys in one build, if all of it can be done so: whether it is done.

        A batch that may not fit is not tried: the work would be done twice. Neither is one whose keys repeat, if their
        flags are asked for: to flag the elements of a build takes longer than to insert them.
        """
        (array, size, *_), n = self.state, batch.n
        if size or self.counts_probes or n > self.safe_load_factor * array.slots or array.parts_to_build(n) is None:
            return False
        if batch.flags and not batch.unique and not seem_distinct(self, batch.keys, n):
            return False
        self.recovery.step = self.recover
        outcome = None
        done = False
        with suppress(MemoryError):
            outcome = array.build(batch)
            done = outcome is not None and outcome.complete and self._flag_built(batch, outcome.changed)
        if outcome is not None and done:
            self.state = ArrayState(array, outcome.changed, vouched=batch.unique)
        elif outcome is not None:
            array.cleared = False
        if array.cleared:
            self.recovery.step = None
        else:
            self.recovery.step = self._clear_later
        return done

    def _flag_built(self, batch: Batch, added: int) -> bool:
        """Flag the elements of a batch whose keys were ``added`` by a build: whether their flags are known.

        Raises
        ------
        MemoryError
            If there is no memory to tell the elements of one key apart.
        """
        if batch.flags and added == batch.n:
            self.engine.fill(batch.flags, Flag.CHANGED, batch.n, batch.stream)
        elif batch.flags and batch.unique:  # keys repeat that should not: the table may have a key twice
            return False
        elif batch.flags:  # fewer flags: somebody has written to the batch since the build
            return self.state.array.flag_added(batch) == added
        return True

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        self.finish(stream)
        erase(self, keys, n, flags, only, stream)
        self._keep_in_bounds(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        self.recovery.step = self._clear_later
        array = self.state.array
        if array.builds:
            array.cleared = False
            self.state = ArrayState(array, 0)
        else:
            self._clear(stream)
            self.recovery.step = None

    def _clear(self, stream: Any) -> None:
        array = self.state.array
        array.clear(stream)
        self.state = ArrayState(array, 0)

    def rebuild(self, keys: int, stream: Any = None) -> None:
        self.finish(stream)
        self._replace(self._slots_for(max(keys, self.state.size)), Cause.ASKED, stream)

    # ---- size
    def _slots_ahead(self, batch: Batch) -> int | None:
        """Slots to move to before a batch: if the table is as full as it should be, or the new keys would fill it.

        A table of fixed size is rebuilt at its size if searches would have no end among its tombstones.
        """
        array, size, tombstones, *_ = self.state
        if not self.grows:
            if self.design.searches_until_unused and 2 * tombstones > array.slots:
                with suppress(MemoryError, TableFull):  # the table is right as it is
                    self._replace(array.slots, Cause.ERASED, batch.stream)
            return None
        estimate = partial(estimate_new_keys, self, batch)
        slots = self._growth.slots_ahead(self.size, self.slots, tombstones, batch.n, self._new_share, estimate)
        return None if slots is None else max(slots, size)

    def _grown_with(self, slots: int, batch: Batch) -> bool:
        """Build a larger array from the table and a batch of new keys, in one: whether it is done.

        Only if each element adds a key, a build says what became of each. So it is tried if a sample of the batch has
        no key twice, and none that is in the table. The table stays as it is until the commit.
        """
        (array, size, _, vouched, *_), n = self.state, batch.n
        if not size or self.counts_probes or not array.builds or size + n > self.safe_load_factor * slots:
            return False
        resize = Resize(self.design.name, array.slots, Cause.BATCH)
        with suppress(MemoryError):
            new = array.sibling(slots, array.seed + 1, batch.stream)
            if new.parts_to_build(size + n) is None or not self._seem_new(batch):
                return False
            outcome = new.build_from_both(array, size, batch)
            if outcome is None or not outcome.complete or outcome.changed != size + n:
                return False
            if batch.flags:
                self.engine.fill(batch.flags, Flag.CHANGED, n, batch.stream)
            self.state = ArrayState(new, size + n, vouched=vouched or batch.unique)
            self.rebuilds, self._new_share = self.rebuilds + 1, 1.0
            resize.done(self.size, new.slots)
            return True
        return False

    def _keep_in_bounds(self, stream: Any, erased: bool = False) -> None:
        """Bring the load factor back within the bounds. Only an erase makes the table smaller."""
        if self.bounds is None:
            return
        slots = self._growth.slots_after(self.size, self.slots, erased)
        if slots is not None:
            with suppress(MemoryError, TableFull):  # the batch is done, and the table right as it is
                self._replace(slots, Cause.BOUNDS, stream)

    def make_room(self, update: Transaction[BucketArray], missing: int) -> None:
        """As `ArrayStore.make_room`: the displaced pairs get slots in the same array, or all pairs in another one."""
        stream, attempt, tried = update.batch.stream, update.attempts, update.tried
        if attempt < self.attempts and update.n_displaced and self._place_displaced(stream):
            return
        array, size, *_ = self.state
        slots = array.slots
        if self.grows and (update.undo is not None or attempt >= self.attempts):
            wanted = policies.slots_after_failure(size, missing, slots, self.load_factor)
            slots = self._slots_to_try(wanted, slots, missing, tried)
        elif tried >= self.attempts or (missing and size >= slots):
            raise TableFull(
                f"{size + missing:,} keys do not fit into {slots:,} slots of design {self.design.name!r} "
                f"(tried {tried} sets of hash constants); allow on_full='grow', or give a larger capacity"
            )
        try:
            self._replace(slots, Cause.NO_SLOT, stream)
        except MemoryError:
            # Displaced pairs have no slot to go back to. Where no key moves, the batch can be taken back.
            if update.undo is not None or not self.design.moves_keys:
                raise
            self._rebuild_in_place(stream)
            update.tried += 1

    def _gather_displaced(self, stream: Any) -> None:
        """Take the pairs that the last update displaced from the array's scratch memory."""
        array = self.state.array
        if array.displaced is not None:
            pairs = array.displaced_pairs(stream)
            if len(pairs.keys):
                self.state = self.state._replace(displaced=pairs.with_others(self.state.displaced))
            array.displaced = None

    def _place_displaced(self, stream: Any) -> bool:
        """Place the displaced pairs in the array that displaced them, by other evictions; whether all have slots."""
        array = self.state.array
        for _ in range(_TRIES_TO_PLACE):
            pairs, flags = self.state.displaced, self._insert_displaced(array, stream)
            if pairs is None or flags is None:
                self.state = self.state._replace(displaced=None)
                return True
            left = pairs.where(flags == Flag.UNPLACED)
            self.state = self.state._replace(displaced=array.displaced_pairs(stream).with_others(left))
            array.displaced = None
        return False

    def _insert_displaced(self, array: BucketArray, stream: Any) -> npt.NDArray[np.uint8] | None:
        """Add the displaced pairs: the flag of each; None if all have slots.

        After an interruption, some may have slots already. Of the copies of a key that ``unique`` brought in, each is
        added: otherwise the count of keys would be wrong.
        """
        pairs, engine = self.state.displaced, self.engine
        if pairs is None or not len(pairs.keys):
            return None
        keys, flags = engine.from_host(pairs.keys, stream), engine.allocate(len(pairs.keys), stream)
        values = None if pairs.values is None else engine.from_host(pairs.values, stream)
        batch = Batch(keys.ptr, values.ptr if values else 0, len(pairs.keys), flags=flags.ptr, stream=stream)
        outcome = array.update(batch._replace(unique=self.state.vouched))
        return None if outcome.complete else engine.to_host(flags.ptr, np.uint8, len(pairs.keys), stream)

    def _replace(self, slots: int, cause: Cause, stream: Any) -> None:
        """Move all pairs, the displaced ones, too, into a new array.

        Raises
        ------
        MemoryError, TableFull
            The array is the old one, with the pairs that it had.
        """
        resize, seed = Resize(self.design.name, self.slots, cause), self.state.array.seed
        for attempt in count(1):
            new = self._moved(slots, seed + attempt, stream)
            if new is not None:
                self.state = self.state._replace(array=new, tombstones=0, displaced=None)
                self.rebuilds += 1
                resize.done(self.size, new.slots)
                return
            if attempt % self.attempts == 0:
                if not self.grows:
                    raise not_placed_anew(self.size, slots, attempt)
                slots = self._slots_to_try(2 * slots, slots, 0, attempt)

    def _moved(self, slots: int, seed: int, stream: Any) -> BucketArray | None:
        """A new array with all pairs, the displaced ones, too; None if some have no slot there."""
        old = self.state.array
        new = old.sibling(slots, seed, stream)
        if not old.cleared:  # no pair was ever there
            return new
        if not self.size and not self.pending:  # nothing to move
            new.clear(stream)
            return new
        if not self._built_from(old, new, stream):
            new.clear(stream)
            if not new.take_over(old, stream).complete:
                return None
        complete = self._insert_displaced(new, stream) is None
        return new if complete else None

    def _built_from(self, old: BucketArray, new: BucketArray, stream: Any) -> bool:
        """Build a new array from the pairs of the old one, if the engine can: whether all are there."""
        outcome = None
        if self.size <= self.safe_load_factor * new.slots:
            with suppress(MemoryError):
                outcome = new.build_from(old, self.size, stream)
        # After an interruption, nobody knows how many pairs the old array has.
        return outcome is not None and outcome.complete and outcome.changed == self.size

    def _slots_to_try(self, wanted: int, slots: int, missing: int, tried: int) -> int:
        """As `giving_up.slots_to_try`, with ``missing`` elements beside the keys."""
        keys, limits = self.size + missing, {"tried": tried, "attempts": self.attempts}
        return slots_to_try(wanted, slots, keys, self.design.name, vouched=self.state.vouched, **limits)

    def _rebuild_in_place(self, stream: Any) -> None:
        """Place all pairs anew in the memory of the present array, by way of the host.

        Raises
        ------
        MemoryError
            If there is no memory for a piece of the slots. Nothing has changed.
        TableFull
            If no set of hash constants has a slot for each pair. The slots are as they were.
        """
        array, engine = self.state.array, self.engine
        resize = Resize(self.design.name, array.slots, Cause.NO_SLOT)
        slot_bytes, per_bucket = array.spec.slot_bytes, array.spec.slots_per_bucket
        piece = min(array.total_slots, 1 << 16)
        held = engine.allocate(piece * slot_bytes, stream)
        slots = engine.to_host(array.table.slots, np.uint8, array.nbytes, stream)
        saved = Saved(array.table, slots)
        self.recovery.step = partial(self._put_slots_back, array, saved)
        for _ in range(_TRIES_IN_PLACE):
            array.rehash(stream)
            complete = True
            for at in range(0, array.total_slots, piece):
                some = slots[at * slot_bytes : (at + piece) * slot_bytes]
                engine.upload(held.ptr, some, stream)
                rest = max(0, array.buckets - at // per_bucket)
                complete = complete and array.migrate(held.ptr, len(some) // slot_bytes, rest, stream).complete
            if complete and self._insert_displaced(array, stream) is None:
                self.recovery.step = self.recover
                self.state = self.state._replace(displaced=None)
                self.rebuilds += 1
                resize.done(self.size, array.slots)
                return
        array.restore(saved, stream)
        self.recovery.step = self.recover
        raise TableFull(
            f"{self.size:,} keys could not be placed anew in {array.slots:,} slots, "
            f"{why_no_slot(_TRIES_IN_PLACE, vouched=self.state.vouched)}"
        )

    # ---- recovery
    def recover(self, stream: Any) -> None:
        """As `ArrayStore.recover`: give slots to displaced pairs, and count all keys.

        Raises
        ------
        MemoryError, TableFull
            If displaced pairs have no slot. They stay, and the next call tries again.
        """
        if self.state.array.layout_is_open or not self.state.array.cleared:
            return self._clear(stream)
        vouched = self.state.vouched
        self.state = self.state._replace(vouched=False)  # displaced pairs that have slots again are to be found there
        self._gather_displaced(stream)
        if not self._place_displaced(stream):
            slots = self.slots
            if self.grows:
                slots = self._slots_to_try(2 * slots, slots, 0, 0)
            self._replace(slots, Cause.INTERRUPT, stream)
        state, size = self.state, self.state.array.scan(0, 0, 0, stream)
        tombstones = state.tombstones + max(0, state.size - size)
        self.state = state._replace(size=size, tombstones=tombstones, vouched=vouched, awaited=0)

    def _put_slots_back(self, array: BucketArray, saved: Saved, stream: Any) -> None:
        """Undo a rebuild in place."""
        array.restore(saved, stream)
        self.recovery.step = self.recover
        self.recover(stream)
