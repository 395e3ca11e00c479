"""The remedy of the toy family: more slots, or other hash constants."""

from __future__ import annotations

from typing import Any

from warphash.storage import policies
from warphash.storage.slots import StoreOptions, TableKind
from warphash.storage.update.array_slots import ArraySlots, Remedy
from warphash.storage.update.transaction import ArrayState, way_back

from .array import ToyArray


def make_store(
    kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool
) -> ArraySlots[ToyArray]:
    """Make an empty store for ``capacity`` keys."""
    slots = policies.slots_for(capacity, options.load_factor)
    return ArraySlots(ToyArray(kind, slots, seed, hash), options, ToyRemedy())


class ToyRemedy(Remedy[ToyArray]):
    """Builds no batch, and displaces no pair."""

    way_back = staticmethod(way_back)

    def move(self, store: ArraySlots[ToyArray], new: ToyArray, stream: Any) -> ArrayState[ToyArray] | None:
        new.clear(stream)
        complete = new.take_over(store.array, stream).complete
        return store.state._replace(array=new, tombstones=0) if complete else None
