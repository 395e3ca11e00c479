"""The remedy of two-level tables: when buckets get larger ranges, and how a table is built.

The elements of an update have no slot if no seeds were found for some buckets. These buckets get ranges of twice their
slots, if they are few; otherwise a new array with more buckets, or with other hash constants, takes over all pairs. If
the table may not grow, a new array has as many buckets, and larger ranges add an eighth to the slots at most.

No pair is ever displaced: a block publishes its bucket whole (``kernels/two_level/place.cuh``). So the recovery of an
update without a way back forgets the lists of the buckets, and counts the keys anew.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from ...runtime.abi import Flag
from .. import policies
from ..batch import Batch
from ..batch_order import hot_keys
from ..scratch import Outcome
from ..slots import StoreOptions, TableKind
from ..update.array_slots import ArraySlots, Remedy
from ..update.transaction import ArrayState, Transaction, way_back
from .array import TwoLevelArray

__all__ = ["make_store"]

Store = ArraySlots[TwoLevelArray]

_MOST_ENLARGED = 8
"""Of so many buckets, one may get a larger range; of more, the table is rebuilt."""


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> Store:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    return ArraySlots(TwoLevelArray(kind, slots, seed, hash), options, TwoLevelRemedy())


class TwoLevelRemedy(Remedy[TwoLevelArray]):
    """The `Remedy` of two-level designs."""

    way_back = staticmethod(way_back)

    def build(self, store: Store, batch: Batch, more_slots: int | None) -> tuple[TwoLevelArray, int] | None:
        """As `Remedy.build`, of a table without keys, if the elements are unique or nobody asks what became of each.

        A batch that may not fit is not tried: the work would be done twice. Nor is a batch whose keys repeat often, on
        a GPU: the elements of a key go to one bucket, one after another.
        """
        array, n, stream = store.array, batch.n, batch.stream
        if more_slots is not None or n > store.safe_load_factor * array.slots or (batch.flags and not batch.unique):
            return None
        if not batch.unique and n >= hot_keys.FEWEST_AGGREGATED and store.engine.lanes > 1:
            with suppress(MemoryError):
                if array.samples.repeat_often(store, batch.keys, n, stream):
                    return None
        outcome = self._mended(store, array, array.build(batch), stream)
        # Keys may repeat that should not. Then nobody knows which element was added.
        if not outcome.complete or (batch.flags and outcome.changed < n):
            return None
        if batch.flags:
            store.engine.fill(batch.flags, Flag.CHANGED, n, stream)
        array.cleared = True
        return array, outcome.changed

    def make_room(self, store: Store, update: Transaction[TwoLevelArray], missing: int) -> None:
        """As `Remedy.make_room`: larger ranges for the buckets of the missing elements, or another array."""
        array, size, *_ = store.state
        failed = array.failed_buckets(update.batch.stream)
        if size + missing <= store.safe_load_factor * array.slots:
            moved = self._enlarged(store, array, failed, update.batch.stream)
            if moved is not None and moved.complete:
                return
        store.move_for(update, missing, array.regular_slots)

    def move(self, store: Store, new: TwoLevelArray, stream: Any) -> ArrayState[TwoLevelArray] | None:
        """As `Remedy.move`. Copies of a key, which only a batch with ``unique`` can have brought, become one pair."""
        outcome = self._mended(store, new, new.take_over(store.array, stream), stream)
        new.cleared = outcome.complete
        return store.state._replace(array=new, size=outcome.changed, tombstones=0) if new.cleared else None

    def recover(self, store: Store, stream: Any) -> None:
        """As `Remedy.recover`: forget the lists of the update, and count the slots and the keys in them."""
        array = store.array
        array.forget_lists(stream)
        array.count_slots(stream)
        store.count_keys(stream)

    def _mended(self, store: Store, array: TwoLevelArray, filled: Outcome, stream: Any) -> Outcome:
        """The outcome of a build after its failed buckets, if they are few, have larger ranges."""
        outcome = filled
        while not outcome.complete:
            failed = array.failed_buckets(stream)
            lacking = outcome.unplaced
            moved = self._enlarged(store, array, failed, stream)
            if moved is None or moved.changed + moved.unplaced != lacking:  # some pairs were lost on their way
                return outcome
            outcome = Outcome(outcome.changed + moved.changed, 0, moved.unplaced, 0)
        return outcome

    def _enlarged(
        self, store: Store, array: TwoLevelArray, failed: npt.NDArray[np.uint32], stream: Any
    ) -> Outcome | None:
        """Give a few buckets larger ranges. None if they are many, or there is no memory, or the table may not grow."""
        if not 0 < len(failed) <= max(1, array.buckets // _MOST_ENLARGED):
            return None
        most_slots = inf if store.options.grows else array.regular_slots * (1 + 1 / _MOST_ENLARGED)
        with suppress(MemoryError):
            return array.enlarge(failed, most_slots, stream)
        return None
