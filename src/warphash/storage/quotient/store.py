"""The remedy of quotient tables: what a larger table keeps, and what becomes of adopted pairs.

The elements of an update have no slot if the ranges of their keys are full. Then a new array with more slots, or with
other hash constants if the table may not grow, takes over all pairs. With the same hash constants, pairs lie in the new
ranges in the order in which they lie in the old ones.

No pair of the table is ever displaced (``kernels/quotient/range.cuh``). So the recovery of an update without a way back
resets the counters of the ranges, and counts the keys anew.

The table adopts pairs of a left batch that find no slot (``kernels/quotient/gpu/few.cuh``): they are its displaced
pairs. Several batches may be left, one behind another: their outcomes are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...runtime.engine import KernelSpec
from .. import policies
from ..batch import Batch
from ..slots import StoreOptions, TableKind
from ..update.array_slots import ArraySlots, Remedy
from ..update.left import LeftBuild
from ..update.transaction import ArrayState, Transaction, way_back
from .array import QuotientArray

__all__ = ["make_store", "more_programs"]


class QuotientSlots(ArraySlots[QuotientArray]):
    """The store of quotient designs."""

    def build(self, batch: Batch) -> bool:
        """Insert a batch that others may write to meanwhile: whether that is done. No keys are added otherwise."""
        if self.size or self.options.counts_probes or not self.array.may_build(batch.n):
            return False
        self.end_updates(batch.stream)
        return self.prepare(batch._replace(shared=True)) is None


Store = ArraySlots[QuotientArray]


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> Store:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    return QuotientSlots(QuotientArray(kind, slots, seed, hash), options, QuotientRemedy())


def more_programs(spec: KernelSpec, parameters: Mapping[str, Any]) -> Iterator[KernelSpec]:
    """The kernels of smaller tables, whose buckets have fewer store."""
    layout: Any = spec.layout
    for slots_per_bucket, _ in layout.forms(spec.key_bytes, spec.value_bytes)[1:]:
        yield replace(spec, slots_per_bucket=slots_per_bucket)


class QuotientRemedy(Remedy[QuotientArray]):
    """The `Remedy` of quotient designs."""

    keeps_constants = True
    leaves_tombstones = False
    leaves_up_to = 0.9  # then a range of 512 buckets has 19 standard deviations of its keys to go until it is full
    way_back = staticmethod(way_back)

    def build(self, store: Store, batch: Batch, more_slots: int | None) -> tuple[QuotientArray, int] | None:
        """As `Remedy.build`. On a GPU, elements with flags are built in passes alone, and if they surely fit.

        Passes write all lines, which need not be cleared then. Of a batch that does not fit, the work is done twice.
        """
        array, size, *_ = store.state
        if more_slots is not None:
            grown = array.grown_with(more_slots, batch)
            if grown is None or not grown[1].complete:
                return None
            return grown[0], size + grown[1].changed
        fits = batch.n <= store.safe_load_factor * array.slots
        if batch.flags and array.engine.window_bytes and not (fits and array.goes_in_passes(batch.n)):
            return None
        if batch.shared and not array.may_build(batch.n):
            return None
        outcome = array.build(batch) if batch.shared else array.update(batch)
        if outcome.complete:
            return array, outcome.changed
        array.clear(batch.stream)
        return None

    def leave_build(self, store: Store, batch: Batch) -> LeftBuild | None:
        """As `Remedy.leave_build`, of elements that need no flags and come in passes, on a GPU."""
        return None if batch.flags else store.array.leave_build(batch)

    def move(self, store: Store, new: QuotientArray, stream: Any) -> ArrayState[QuotientArray] | None:
        """As `Remedy.move`. Adopted pairs stay the table's until its recovery has placed them."""
        state = store.state
        if not state.size:
            new.clear(stream)
        elif not new.take_over(state.array, state.size, stream).complete:
            return None
        return state._replace(array=new)

    def recover(self, store: Store, stream: Any) -> None:
        """As `Remedy.recover`: drop what was brought to ranges, count the keys, and place adopted pairs."""
        array = store.array
        if store.state.displaced is None:
            store.state = store.state._replace(displaced=array.adopted(stream))
        array.forget_elements(stream)
        store.count_keys(stream)
        adopted = store.state.displaced
        if adopted is not None and len(adopted.keys):  # some may have slots already
            update, _memory = adopted.batch(store.engine, stream)
            Transaction(store, update, None).complete()
        store.state = store.state._replace(displaced=None)
