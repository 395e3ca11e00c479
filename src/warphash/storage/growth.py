"""How many slots a table should have before a batch, and after it: the rules of families whose slots lie in one array.

The numbers come from `policies`; a batch that could be too large is measured first (`estimate`).
"""

from __future__ import annotations

from typing import NamedTuple

from . import policies
from .batch import Batch
from .estimate import estimate_new_keys
from .storage import Store

__all__ = ["Growth"]


class Growth(NamedTuple):
    """The limits of a table's load factor.

    Attributes
    ----------
    load_factor
        Keys for each slot that a capacity is meant for.
    safe_load_factor
        At which the design still places all keys.
    bounds
        As of `StoreOptions`.
    """

    load_factor: float
    safe_load_factor: float
    bounds: tuple[float, float] | None

    def surely_fits(self, store: Store, n: int, tombstones: int) -> bool:
        """Whether ``n`` more keys fit, and the table needs no rebuild before them."""
        return 2 * (store.size + n) <= self.safe_load_factor * store.slots and 2 * tombstones <= store.slots

    def slots_ahead(self, store: Store, tombstones: int, batch: Batch, new_share: float) -> int | None:
        """Slots to rebuild into before a batch; None to leave the table as it is. Waits.

        The table grows if it is as full as it should be, or if the new keys of the batch would fill it.

        Parameters
        ----------
        new_share
            Of the elements of the last batch, how many brought new keys.
        """
        size, slots, n = store.size, store.slots, batch.n
        if not tombstones and self.bounds is None and size + n <= policies.easy_keys(slots, self.safe_load_factor):
            return None  # most batches: what follows would say the same, in four times the time
        wanted = policies.slots_before_insert(size, tombstones, slots, self.safe_load_factor)
        most = policies.most_keys(slots, self.load_factor, self.safe_load_factor, self.bounds)
        if size + n > most and size + 4 * new_share * n > most:
            try:
                new = n if batch.unique else estimate_new_keys(store, batch.keys, n, most - size, batch.stream)
            except MemoryError:  # the batch may fit all the same
                return None
            if size + new > most:
                wanted = max(wanted or 0, policies.slots_ahead(size + new, slots, self.load_factor, self.bounds))
        return wanted

    def slots_after(self, store: Store, erased: bool) -> int | None:
        """Slots that bring the load factor back within the bounds; None to leave the table as it is.

        Only a batch that ``erased`` makes the table smaller.
        """
        if self.bounds is None:
            return None
        least, most = self.bounds
        return policies.slots_in_bounds(store.size, store.slots, (least if erased else 0, most))
