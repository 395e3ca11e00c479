"""The remedy of designs whose buckets lie in one array: what becomes of displaced pairs, and how a table is built.

An update may leave elements without a slot, and displaced pairs. The displaced pairs are few: the first pair without a
slot keeps all other elements from displacing more. They are tried again in the same array, whose evictions then take
other ways; a table that is near the limit of its design succeeds so, and is not built anew. If that does not help, a
new array, larger or with other hash constants, takes over all pairs. Where there is no memory for it, the pairs are
placed anew in the memory of the present array. If a batch is taken back by erasing its keys, the displaced pairs have
room again.

The recovery of an update without a way back reads the displaced pairs from the array's scratch memory and places them,
and counts the keys anew.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from .. import policies
from ..batch import Batch
from ..batch_order.sample import seem_distinct, seem_new
from ..giving_up import why_no_slot
from ..listed import Listed
from ..resize_log import Cause, Resize
from ..storage import Outcome, StoreOptions, TableKind
from ..update.array_slots import ArraySlots
from ..update.transaction import ArrayState, Transaction, way_back
from .array import BucketArray, Saved

__all__ = ["BucketStore"]

Slots = ArraySlots[BucketArray]

_TRIES_IN_PLACE = 64
"""Sets of hash constants after which a rebuild in place has failed: keys repeat that should not."""

_TRIES_TO_PLACE = 4
"""How often displaced pairs are tried in one array before the array is replaced."""


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> BucketStore:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    return BucketStore(BucketArray(*kind, slots, seed, hash), options, BucketRemedy())


class BucketStore(ArraySlots[BucketArray]):
    """The `storage.Store` of designs whose buckets lie in one array: it may build a table from a caller's batch."""

    def build(self, batch: Batch) -> bool:
        """Insert a batch by a build, which reads each key once: whether that is done. No keys are added otherwise.

        A sample tells first whether a build is likely to do. Otherwise the batch is copied, and a sample of the copy
        decides again (`BucketRemedy.build`).
        """
        n, size = batch.n, self.size
        if n < size or not self.array.builds or self.options.counts_probes:
            return False
        self.end_updates(batch.stream)
        if self.size:
            if self.surely_fit(n) or not _seem_new(self, batch):
                return False
        elif batch.flags and not batch.unique and not seem_distinct(self, batch.keys, n):
            return False
        return self.prepare(batch) is None


def _seem_new(slots: Slots, batch: Batch) -> bool:
    """Whether all keys seem to be new; False also if there is no memory for the sample."""
    try:
        return batch.unique or seem_new(slots, batch.keys, batch.n, batch.stream)
    except MemoryError:
        return False


class BucketRemedy:
    """The `Remedy` of designs whose buckets lie in one array."""

    keeps_constants = False
    leaves_tombstones = True
    goes_by_parts = True
    way_back = staticmethod(way_back)

    # ---- batches
    def build(self, slots: Slots, batch: Batch, more_slots: int | None) -> tuple[BucketArray, int] | None:
        """As `Remedy.build`, of a batch that changes no value of a key that is there.

        A batch that may not fit is not tried: the work would be done twice. Neither is one whose keys repeat, if their
        flags are asked for: to flag the elements of a build takes longer than to insert them.
        """
        array, n = slots.array, batch.n
        if batch.op != Op.KEEP or not array.builds:
            return None
        if more_slots is not None:
            return self._built_from_both(slots, batch, more_slots)
        if n > slots.safe_load_factor * array.slots or array.parts_to_build(n) is None:
            return None
        if batch.flags and not batch.unique and not seem_distinct(slots, batch.keys, n):
            return None
        outcome = array.build(batch)
        if outcome is None:
            return None
        try:
            done = outcome.complete and self._is_flagged(array, batch, outcome.changed)
        except MemoryError:
            done = False
        if not done:
            array.cleared = False
        return (array, outcome.changed) if done else None

    def _built_from_both(self, slots: Slots, batch: Batch, more_slots: int) -> tuple[BucketArray, int] | None:
        """A larger array, built from the table and a batch of new keys, and the keys in it.

        Only if each element adds a key, a build says what became of each. So it is tried if a sample of the batch has
        no key twice, and none that is in the table.
        """
        array, size, n = slots.array, slots.size, batch.n
        if size + n > slots.safe_load_factor * more_slots:
            return None
        new = array.sibling(more_slots, array.seed + 1, batch.stream)
        if new.parts_to_build(size + n) is None or not _seem_new(slots, batch):
            return None
        outcome = new.build_from_both(array, size, batch)
        if outcome is None or not outcome.complete or outcome.changed != size + n:
            return None
        if batch.flags:
            slots.engine.fill(batch.flags, Flag.CHANGED, n, batch.stream)
        return new, size + n

    def _is_flagged(self, array: BucketArray, batch: Batch, added: int) -> bool:
        """Flag the elements of a batch whose keys were ``added`` by a build: whether their flags are known.

        Raises
        ------
        MemoryError
            If there is no memory to tell the elements of one key apart.
        """
        if batch.flags and added == batch.n:
            array.engine.fill(batch.flags, Flag.CHANGED, batch.n, batch.stream)
        elif batch.flags and batch.unique:  # keys repeat that should not: the table may have a key twice
            return False
        elif batch.flags:  # fewer flags: somebody has written to the batch since the build
            return array.flag_added(batch) == added
        return True

    def leave(self, slots: Slots, batch: Batch) -> bool:
        if slots.state.awaited or not slots.design.moves_keys:  # which alone keeps pairs without a slot
            return False
        slots.array.begin(batch, adopts=True)
        return True

    def launch(self, slots: Slots, batch: Batch, listed: Listed | None) -> Outcome:
        outcome = slots.state.array.update(
            batch,
            fresh=not (slots.state.size or slots.state.tombstones),
            count_probes=slots.options.counts_probes,
            past_first=listed is not None and listed.past_first,
            listed=listed,
        )
        if outcome.displaced:
            self._gather_displaced(slots, batch.stream)
        return outcome

    # ---- keys without a slot
    def make_room(self, slots: Slots, update: Transaction[BucketArray], missing: int) -> None:
        """As `Remedy.make_room`: the displaced pairs get slots in the same array, or all pairs in another one."""
        stream = update.batch.stream
        if update.attempts < slots.options.attempts and update.n_displaced and self._place_displaced(slots, stream):
            return
        try:
            slots.move_for(update, missing, slots.slots)
        except MemoryError:
            # Displaced pairs have no slot to go back to. Where no key moves, the batch can be taken back.
            if update.undo is not None or not slots.design.moves_keys:
                raise
            self._rebuild_in_place(slots, stream)
            update.tried += 1

    def _gather_displaced(self, slots: Slots, stream: Any) -> None:
        """Take the pairs that the last update displaced from the array's scratch memory."""
        array = slots.state.array
        if array.displaced is not None:
            pairs = array.displaced_pairs(stream)
            if len(pairs.keys):
                slots.state = slots.state._replace(displaced=pairs.with_others(slots.state.displaced))
            array.displaced = None

    def _place_displaced(self, slots: Slots, stream: Any) -> bool:
        """Place the displaced pairs in the array that displaced them, by other evictions; whether all have slots."""
        array = slots.state.array
        for _ in range(_TRIES_TO_PLACE):
            pairs, flags = slots.state.displaced, self._insert_displaced(slots, array, stream)
            if pairs is None or flags is None:
                slots.state = slots.state._replace(displaced=None)
                return True
            left = pairs.where(flags == Flag.UNPLACED)
            slots.state = slots.state._replace(displaced=array.displaced_pairs(stream).with_others(left))
            array.displaced = None
        return False

    def _insert_displaced(self, slots: Slots, array: BucketArray, stream: Any) -> npt.NDArray[np.uint8] | None:
        """Add the displaced pairs: the flag of each; None if all have slots.

        After an interruption, some may have slots already. Of the copies of a key that ``unique`` brought in, each is
        added: otherwise the count of keys would be wrong.
        """
        pairs, engine = slots.state.displaced, slots.engine
        if pairs is None or not len(pairs.keys):
            return None
        batch, _memory = pairs.batch(engine, stream)
        outcome = array.update(batch._replace(unique=slots.state.vouched))
        return None if outcome.complete else engine.to_host(batch.flags, np.uint8, batch.n, stream)

    def move(self, slots: Slots, new: BucketArray, stream: Any) -> ArrayState[BucketArray] | None:
        """As `Remedy.move`, of the displaced pairs, too."""
        old = slots.array
        if not self._is_built_from(slots, old, new, stream):
            new.clear(stream)
            if not new.take_over(old, stream).complete:
                return None
        if self._insert_displaced(slots, new, stream) is not None:
            return None
        return slots.state._replace(array=new, tombstones=0, displaced=None)

    def _is_built_from(self, slots: Slots, old: BucketArray, new: BucketArray, stream: Any) -> bool:
        """Build a new array from the pairs of the old one, if the engine can: whether all are there."""
        outcome, size = None, slots.size
        if size <= slots.safe_load_factor * new.slots:
            with suppress(MemoryError):
                outcome = new.build_from(old, size, stream)
        # After an interruption, nobody knows how many pairs the old array has.
        return outcome is not None and outcome.complete and outcome.changed == size

    def _rebuild_in_place(self, slots: Slots, stream: Any) -> None:
        """Place all pairs anew in the memory of the present array, by way of the host.

        Raises
        ------
        MemoryError
            If there is no memory for a piece of the slots. Nothing has changed.
        TableFull
            If no set of hash constants has a slot for each pair. The slots are as they were.
        """
        array, engine = slots.array, slots.engine
        resize = Resize(slots.design.name, array.slots, Cause.NO_SLOT)
        slot_bytes, per_bucket = array.spec.slot_bytes, array.spec.slots_per_bucket
        piece = min(array.total_slots, 1 << 16)
        held = engine.allocate(piece * slot_bytes, stream)
        words = engine.to_host(array.table.slots, np.uint8, array.nbytes, stream)
        saved = Saved(array.table, words)
        slots.recovery.step = partial(self._put_slots_back, slots, array, saved)
        for _ in range(_TRIES_IN_PLACE):
            array.rehash(stream)
            complete = True
            for at in range(0, array.total_slots, piece):
                some = words[at * slot_bytes : (at + piece) * slot_bytes]
                engine.upload(held.ptr, some, stream)
                rest = max(0, array.buckets - at // per_bucket)
                complete = complete and array.migrate(held.ptr, len(some) // slot_bytes, rest, stream).complete
            if complete and self._insert_displaced(slots, array, stream) is None:
                slots.recovery.step = slots.recover
                slots.state = slots.state._replace(displaced=None)
                slots.rebuilds += 1
                resize.done(slots.size, array.slots)
                return
        array.restore(saved, stream)
        slots.recovery.step = slots.recover
        raise TableFull(
            f"{slots.size:,} keys could not be placed anew in {array.slots:,} slots, "
            f"{why_no_slot(_TRIES_IN_PLACE, vouched=slots.state.vouched)}"
        )

    # ---- recovery
    def recover(self, slots: Slots, stream: Any) -> None:
        """As `Remedy.recover`: give slots to displaced pairs, and count all keys."""
        vouched = slots.state.vouched
        slots.state = slots.state._replace(vouched=False)  # displaced pairs that have slots again are to be found there
        self._gather_displaced(slots, stream)
        if not self._place_displaced(slots, stream):
            wanted = slots.slots
            if slots.options.grows:
                wanted = slots.slots_to_try(2 * wanted, wanted, 0, 0)
            slots.replace(wanted, Cause.INTERRUPT, stream)
        slots.count_keys(stream)
        slots.state = slots.state._replace(vouched=vouched)

    def _put_slots_back(self, slots: Slots, array: BucketArray, saved: Saved, stream: Any) -> None:
        """Undo a rebuild in place."""
        array.restore(saved, stream)
        slots.recovery.step = slots.recover
        slots.recover(stream)
