"""The store of two-level tables: when there are more or fewer buckets, or larger ones, and how an update is undone.

An update is a `Transaction`. Its elements have no slot if no seeds were found for some buckets. These buckets get
ranges of twice their slots, if they are few; otherwise a new array with more buckets, or with other hash constants,
takes over all pairs. Each such step takes more slots, and at some number of slots the store gives up (`giving_up`). If
the table may not grow, a new array has as many buckets, and larger ranges add an eighth to the slots at most.

No pair is ever displaced: a block publishes its bucket whole (``kernels/two_level/place.cuh``). So the recovery of an
update without a way back forgets the lists of the buckets, and counts the keys anew.

A build writes all slots of a table without keys. So the memory of a new or cleared table is cleared by the first call
that is no build: until then, to clear the memory is the step of the recovery.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag
from .. import aggregate, policies
from ..batch import COMBINING, Batch
from ..estimate import estimate_new_keys
from ..giving_up import not_placed_anew, slots_to_try
from ..growth import Growth
from ..listed import Listed
from ..resize_log import Cause, Resize
from ..scratch import Elements, with_flags
from ..storage import MemoryUse, Outcome, Recovery, StoreOptions, TableKind, resting
from ..update.transaction import LISTED_BYTES, ArrayState, Transaction, erase, way_back
from .array import TwoLevelArray

__all__ = ["TwoLevelStore"]

_MOST_ENLARGED = 8
"""Of so many buckets, one may get a larger range; of more, the table is rebuilt."""


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
        self.state: ArrayState[TwoLevelArray] = ArrayState(array, 0)
        self.recovery = Recovery()
        self._clear_later = resting(TwoLevelStore._clear, self)
        if not array.cleared:
            self.recovery.step = self._clear_later
        self.listed = array.engine.allocate_pinned(LISTED_BYTES)

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
        if self.recovery.step is not None:
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
        if not self._growth.surely_fits(self.size + n, self.slots, self.state.tombstones):
            self._grow_ahead(batch)
        if batch.op not in COMBINING and (batch.unique or not batch.flags) and self._build(batch):
            return self._keep_in_bounds(stream)
        self.finish(stream)
        size, counts = self.state.size, self._options.counts_probes
        if not batch.flags:
            batch, _own_flags = with_flags(self.engine, batch)
        undo = way_back(self.state, batch, self._safe_load_factor)

        def launch(state: ArrayState[TwoLevelArray], listed: Listed | None) -> Outcome:
            return state.array.update(batch, count_probes=counts, listed=listed)

        Transaction(self, batch, undo, launch, counts_probes=counts).do()
        self._new_share = (self.state.size - size) / n
        self._keep_in_bounds(stream)

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
        self.state = ArrayState(array, outcome.changed, vouched=batch.unique)
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
        erase(self, keys, n, flags, only, stream)
        self._keep_in_bounds(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        self.recovery.step = self._clear_later
        array = self.state.array
        array.cleared = False
        self.state = ArrayState(array, 0)

    def _clear(self, stream: Any) -> None:
        array = self.state.array
        array.clear(stream)
        self.state = ArrayState(array, 0)

    # ---- size
    def rebuild(self, keys: int, stream: Any = None) -> None:
        self.finish(stream)
        self._replace(self._slots_for(max(keys, self.state.size)), Cause.ASKED, stream)

    def _grow_ahead(self, batch: Batch) -> None:
        """Make a table larger that is as full as it should be, or that the new keys of the batch would fill."""
        if not self._options.grows:
            return
        estimate = partial(estimate_new_keys, self, batch)
        slots = self._growth.slots_ahead(
            self.size, self.slots, self.state.tombstones, batch.n, self._new_share, estimate
        )
        if slots is not None:
            with suppress(MemoryError):  # the batch may fit all the same
                self._replace(max(slots, self.size), Cause.BATCH, batch.stream)

    def _keep_in_bounds(self, stream: Any, erased: bool = False) -> None:
        """Bring the load factor back within the bounds. Only an erase makes the table smaller."""
        if self._options.bounds is None:
            return
        slots = self._growth.slots_after(self.size, self.slots, erased)
        if slots is not None:
            with suppress(MemoryError, TableFull):  # the batch is done, and the table right as it is
                self._replace(slots, Cause.BOUNDS, stream)

    def make_room(self, update: Transaction[TwoLevelArray], missing: int) -> None:
        """As `ArrayStore.make_room`: larger ranges for the buckets of the missing elements, or another array."""
        stream, tried = update.batch.stream, update.tried
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

    # ---- recovery
    def recover(self, stream: Any) -> None:
        """Forget the lists of an update that has no snapshot, and count the slots and the keys in them.

        Allocates a report alone, as a scan does.
        """
        state, array = self.state, self.state.array
        array.forget_lists(stream)
        array.count_slots(stream)
        size = array.scan(0, 0, 0, stream)
        self.state = state._replace(size=size, tombstones=state.tombstones + max(0, state.size - size))
