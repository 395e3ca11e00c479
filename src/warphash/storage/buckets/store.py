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
from ..resize_log import Cause, Resize
from ..slots import StoreOptions, TableKind
from ..update.array_slots import ArraySlots, Remedy
from ..update.transaction import ArrayState, Transaction, way_back
from .array import BucketArray, Saved

__all__ = ["BucketSlots"]

Store = ArraySlots[BucketArray]

_TRIES_IN_PLACE = 64
"""Sets of hash constants after which a rebuild in place has failed: keys repeat that should not."""

_TRIES_TO_PLACE = 4
"""How often displaced pairs are tried in one array before the array is replaced."""


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> BucketSlots:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    return BucketSlots(BucketArray(kind, slots, seed, hash), options, BucketRemedy())


class BucketSlots(ArraySlots[BucketArray]):
    """The `slots.Slots` of designs whose buckets lie in one array: it may build a table from a caller's batch."""

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


def _seem_new(store: Store, batch: Batch) -> bool:
    """Whether all keys seem to be new; False also if there is no memory for the sample."""
    try:
        return batch.unique or seem_new(store, batch.keys, batch.n, batch.stream)
    except MemoryError:
        return False


class BucketRemedy(Remedy[BucketArray]):
    """The `Remedy` of designs whose buckets lie in one array."""

    goes_by_parts = True
    way_back = staticmethod(way_back)

    # ---- batches
    def build(self, store: Store, batch: Batch, more_slots: int | None) -> tuple[BucketArray, int] | None:
        """As `Remedy.build`, of a batch that changes no value of a key that is there.

        A batch that may not fit is not tried: the work would be done twice. Neither is one whose keys repeat, if their
        flags are asked for: to flag the elements of a build takes longer than to insert them.
        """
        array, n = store.array, batch.n
        if batch.op != Op.KEEP or not array.builds:
            return None
        if more_slots is not None:
            return self._built_from_both(store, batch, more_slots)
        if n > store.safe_load_factor * array.slots or array.parts_to_build(n) is None:
            return None
        if batch.flags and not batch.unique and not seem_distinct(store, batch.keys, n):
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

    def _built_from_both(self, store: Store, batch: Batch, more_slots: int) -> tuple[BucketArray, int] | None:
        """A larger array, built from the table and a batch of new keys, and the keys in it.

        Only if each element adds a key, a build says what became of each. So it is tried if a sample of the batch has
        no key twice, and none that is in the table.
        """
        array, size, n = store.array, store.size, batch.n
        if size + n > store.safe_load_factor * more_slots:
            return None
        new = array.sibling(more_slots, array.seed + 1, batch.stream)
        if new.parts_to_build(size + n) is None or not _seem_new(store, batch):
            return None
        outcome = new.build_from_both(array, size, batch)
        if outcome is None or not outcome.complete or outcome.changed != size + n:
            return None
        if batch.flags:
            store.engine.fill(batch.flags, Flag.CHANGED, n, batch.stream)
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

    # ---- keys without a slot
    def make_room(self, store: Store, update: Transaction[BucketArray], missing: int) -> None:
        """As `Remedy.make_room`: the displaced pairs get slots in the same array, or all pairs in another one."""
        stream = update.batch.stream
        if update.attempts < store.options.attempts and update.n_displaced and self._place_displaced(store, stream):
            return
        try:
            store.move_for(update, missing, store.slots)
        except MemoryError:
            # Displaced pairs have no slot to go back to. Where no key moves, the batch can be taken back.
            if update.undo is not None or not store.design.moves_keys:
                raise
            self._rebuild_in_place(store, stream)
            update.tried += 1

    def _place_displaced(self, store: Store, stream: Any) -> bool:
        """Place the displaced pairs in the array that displaced them, by other evictions; whether all have store."""
        array = store.state.array
        for _ in range(_TRIES_TO_PLACE):
            pairs, flags = store.state.displaced, self._insert_displaced(store, array, stream)
            if pairs is None or flags is None:
                store.state = store.state._replace(displaced=None)
                return True
            left = pairs.where(flags == Flag.UNPLACED)
            store.state = store.state._replace(displaced=array.displaced_pairs(stream).with_others(left))
            array.forget_displaced()
        return False

    def _insert_displaced(self, store: Store, array: BucketArray, stream: Any) -> npt.NDArray[np.uint8] | None:
        """Add the displaced pairs: the flag of each; None if all have store.

        After an interruption, some may have slots already. Of the copies of a key that ``unique`` brought in, each is
        added: otherwise the count of keys would be wrong.
        """
        pairs, engine = store.state.displaced, store.engine
        if pairs is None or not len(pairs.keys):
            return None
        batch, _memory = pairs.batch(engine, stream)
        outcome = array.update(batch._replace(unique=store.state.vouched))
        return None if outcome.complete else engine.to_host(batch.flags, np.uint8, batch.n, stream)

    def move(self, store: Store, new: BucketArray, stream: Any) -> ArrayState[BucketArray] | None:
        """As `Remedy.move`, of the displaced pairs, too."""
        old = store.array
        if not self._is_built_from(store, old, new, stream):
            new.clear(stream)
            if not new.take_over(old, stream).complete:
                return None
        if self._insert_displaced(store, new, stream) is not None:
            return None
        return store.state._replace(array=new, tombstones=0, displaced=None)

    def _is_built_from(self, store: Store, old: BucketArray, new: BucketArray, stream: Any) -> bool:
        """Build a new array from the pairs of the old one, if the engine can: whether all are there."""
        outcome, size = None, store.size
        if size <= store.safe_load_factor * new.slots:
            with suppress(MemoryError):
                outcome = new.build_from(old, size, stream)
        # After an interruption, nobody knows how many pairs the old array has.
        return outcome is not None and outcome.complete and outcome.changed == size

    def _rebuild_in_place(self, store: Store, stream: Any) -> None:
        """Place all pairs anew in the memory of the present array, by way of the host.

        Raises
        ------
        MemoryError
            If there is no memory for a piece of the store. Nothing has changed.
        TableFull
            If no set of hash constants has a slot for each pair. The slots are as they were.
        """
        array, engine = store.array, store.engine
        resize = Resize(store.design.name, array.slots, Cause.NO_SLOT)
        slot_bytes, per_bucket = array.spec.slot_bytes, array.spec.slots_per_bucket
        piece = min(array.total_slots, 1 << 16)
        held = engine.allocate(piece * slot_bytes, stream)
        words = engine.to_host(array.table.slots, np.uint8, array.nbytes, stream)
        saved = Saved(array.table, words)
        store.recovery.step = partial(self._put_slots_back, store, array, saved)
        for _ in range(_TRIES_IN_PLACE):
            array.rehash(stream)
            complete = True
            for at in range(0, array.total_slots, piece):
                some = words[at * slot_bytes : (at + piece) * slot_bytes]
                engine.upload(held.ptr, some, stream)
                rest = max(0, array.buckets - at // per_bucket)
                complete = complete and array.migrate(held.ptr, len(some) // slot_bytes, rest, stream).complete
            if complete and self._insert_displaced(store, array, stream) is None:
                store.recovery.step = store.recover
                store.state = store.state._replace(displaced=None)
                store.rebuilds += 1
                resize.done(store.size, array.slots)
                return
        array.restore(saved, stream)
        store.recovery.step = store.recover
        raise TableFull(
            f"{store.size:,} keys could not be placed anew in {array.slots:,} slots, "
            f"{why_no_slot(_TRIES_IN_PLACE, vouched=store.state.vouched)}"
        )

    # ---- recovery
    def recover(self, store: Store, stream: Any) -> None:
        """As `Remedy.recover`: give slots to displaced pairs, and count all keys."""
        vouched = store.state.vouched
        store.state = store.state._replace(vouched=False)  # displaced pairs that have slots again are to be found there
        store.keep_displaced(stream)
        if not self._place_displaced(store, stream):
            wanted = store.slots
            if store.options.grows:
                wanted = store.slots_to_try(2 * wanted, wanted, 0, 0)
            store.replace(wanted, Cause.INTERRUPT, stream)
        store.count_keys(stream)
        store.state = store.state._replace(vouched=vouched)

    def _put_slots_back(self, store: Store, array: BucketArray, saved: Saved, stream: Any) -> None:
        """Undo a rebuild in place."""
        array.restore(saved, stream)
        store.recovery.step = store.recover
        store.recover(stream)
