"""The store of quotient tables: when there are more or fewer buckets, and how an update is undone.

An update is a `Transaction`. Its elements have no slot if the ranges of their keys are full. Then a new array with more
slots, or with other hash constants if the table may not grow, takes over all pairs.

No pair of the table is ever displaced (``kernels/quotient/range.cuh``). So the recovery of an update without a way back
resets the counters of the ranges, and counts the keys anew.

A batch of few elements is left, if the table would be half full with it at most: `update` returns when the launch is
made. The table adopts pairs of the batch that find no slot (``kernels/quotient/gpu/few.cuh``), and the next call that
needs the end of the batch (`finish`) reads the outcome. If there are adopted pairs, the recovery gives them slots. In a
fuller table, this could take more memory than there is, and a later call would fail for it. Only tables that may grow
leave batches. Several batches may be left, one behind another: their outcomes are read together.

A build in passes writes all lines of a new table. So these are cleared by the first call that is no build: until then,
to clear them is the step of the recovery.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ...errors import TableFull
from ...runtime.engine import KernelSpec
from .. import policies
from ..batch import COMBINING, Batch
from ..estimate import estimate_new_keys
from ..giving_up import not_placed_anew, slots_to_try
from ..growth import Growth
from ..listed import Listed
from ..resize_log import Cause, Resize
from ..scratch import Elements, with_flags
from ..storage import MemoryUse, Outcome, Recovery, StoreOptions, TableKind, resting
from ..update.pairs import Pairs
from ..update.transaction import LISTED_BYTES, ArrayState, Transaction, erase, way_back
from .array import MOST_AWAITED, QuotientArray

__all__ = ["QuotientStore", "make_store", "more_programs"]


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
        on_gpu, at_once = array.engine.window_bytes > 0, options.bounds is not None or options.counts_probes
        self._leaves = on_gpu and options.leaves and options.grows and not at_once
        self._new_share = 1.0  # of the elements of the last update
        self.rebuilds = self.probes = self.inserted = 0
        self.state: ArrayState[QuotientArray] = ArrayState(array, 0)
        self.recovery = Recovery()
        self._recover_left = resting(QuotientStore.recover, self)
        self._clear_new = resting(QuotientStore._clear, self)  # no batch began, so a build need not wait for it
        if not array.cleared:
            self.recovery.step = self._clear_new
        self.listed = array.engine.allocate_pinned(LISTED_BYTES)

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
        if self.recovery.step is not None:
            self.recovery.run(self.engine, stream)

    def _end(self, stream: Any) -> None:
        """Count the keys of batches that were left. If there are adopted pairs, the recovery stays noted. Waits."""
        state = self.state
        outcome = state.array.outcome(stream)
        self.state = state._replace(size=state.size + outcome.changed, awaited=0)
        self._new_share = outcome.changed / state.awaited
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
        state, rewrites = self.state, batch.op not in COMBINING
        few, together = rewrites and self._leaves and state.array.is_few(n), state.awaited + n
        if few and n < together <= MOST_AWAITED and self._growth.surely_fits(state.size + together, self.slots):
            return self._leave(batch)
        if self.recovery.step is not self._clear_new:
            self.finish(stream)
        fits = self._growth.surely_fits(self.size + n, self.slots)
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
        state, resting = self.state, self.recovery.step
        if not batch.flags:
            batch, _own_flags = with_flags(self.engine, batch)
        self.recovery.step = self._recover_left
        try:
            state.array.begin(batch, adopts=True, goes_on=state.awaited > 0)
        except MemoryError:  # before the kernel was launched
            self.recovery.step = resting
            raise
        self.state = state._replace(awaited=state.awaited + batch.n)

    def _do(self, batch: Batch) -> None:
        """Do a batch, or take it back."""
        size, counts = self.state.size, self._options.counts_probes
        if not batch.flags:
            batch, _own_flags = with_flags(self.engine, batch)
        undo = way_back(self.state, batch, self._safe_load_factor)

        def launch(state: ArrayState[QuotientArray], listed: Listed | None) -> Outcome:
            return state.array.update(batch, count_probes=counts, listed=listed)

        Transaction(self, batch, undo, launch, counts_probes=counts).do()
        self._new_share = (self.state.size - size) / batch.n
        self._keep_in_bounds(batch.stream)

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
        self.state = ArrayState(self.state.array, outcome.changed)
        self.recovery.step = None
        self._new_share = outcome.changed / batch.n
        return True

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        self.finish(stream)
        if n == 0 or (isinstance(only, np.ndarray) and not len(only)):
            return
        erase(self, keys, n, flags, only, stream, leaves_tombstones=False)
        self._keep_in_bounds(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        self.state = self.state._replace(awaited=0)
        self.recovery.step = self._clear
        self.finish(stream)

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
        slots = self._growth.slots_ahead(self.size, self.slots, 0, batch.n, self._new_share, estimate)
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

    def make_room(self, update: Transaction[QuotientArray], missing: int) -> None:
        """As `ArrayStore.make_room`: another array, with other hash constants if the batch has failed before."""
        tried, stream = update.tried, update.batch.stream
        array, size, *_ = self.state
        slots = array.slots
        if self._options.grows:
            wanted = policies.slots_after_failure(size, missing, slots, self._options.load_factor)
            slots = self._slots_to_try(wanted, slots, missing, tried)
        elif tried >= self._options.attempts or size + missing > slots:
            raise TableFull(
                f"{size + missing:,} keys do not fit into {slots:,} slots of design {self.design.name!r} "
                f"(tried {tried} sets of hash constants); allow on_full='grow', or give a larger capacity"
            )
        self._replace(slots, Cause.NO_SLOT, stream, rehashes=update.attempts > 1)

    def _replace(self, slots: int, cause: Cause, stream: Any, *, rehashes: bool = False) -> None:
        """Move all pairs into a new array, with the same hash constants if they are not to be others.

        Raises
        ------
        MemoryError, TableFull
            The array is the old one, with the pairs that it had.
        """
        old, size, *_ = self.state
        resize = Resize(self.design.name, self.slots, cause)
        # With the same hash constants, pairs lie in the new ranges in the order in which they lie in the old ones.
        first_seed = old.seed + (rehashes or slots == old.slots)
        for attempt in count():
            new = old.sibling(slots, first_seed + attempt, stream)
            if size == 0 and self.recovery.step is not self._clear_new:
                new.clear(stream)
            if size == 0 or new.take_over(old, size, stream).complete:
                self.state = self.state._replace(array=new)
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

    # ---- recovery
    def recover(self, stream: Any) -> None:
        """As `ArrayStore.recover`: drop what was brought to ranges, count the keys, and place adopted pairs.

        Without adopted pairs, this allocates a report alone, as a scan does.

        Raises
        ------
        MemoryError, TableFull
            If adopted pairs have no slot. They stay, and the next call tries again.
        """
        array = self.state.array
        if not array.cleared:  # its first build has not been launched
            return self._clear(stream)
        if self.state.displaced is None:
            self.state = self.state._replace(displaced=array.adopted(stream))
        array.forget_elements(stream)
        self.state = self.state._replace(size=array.scan(0, 0, 0, stream), awaited=0)
        if self.state.displaced is not None and len(self.state.displaced.keys):
            self._place(self.state.displaced, stream)
        self.state = self.state._replace(displaced=None)

    def _place(self, pairs: Pairs, stream: Any) -> None:
        """Add pairs, of which some may be there already."""
        (keys, values), engine, n = pairs, self.engine, len(pairs.keys)
        at_keys, flags = engine.from_host(keys, stream), engine.allocate(n, stream)
        at_values = None if values is None else engine.from_host(values, stream)
        batch = Batch(at_keys.ptr, at_values.ptr if at_values else 0, n, flags=flags.ptr, stream=stream)

        def launch(state: ArrayState[QuotientArray], listed: Listed | None) -> Outcome:
            return state.array.update(batch, listed=listed)

        Transaction(self, batch, None, launch).complete()
