"""How many slots a table should have before a batch, and after it: the rules of families whose slots lie in one array.

The numbers come from `policies`. A batch that could be too large is measured first, by its caller (`estimate`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .. import policies

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

    def slots_ahead(
        self, size: int, slots: int, tombstones: int, n: int, new_share: float, estimate: Callable[[int], int]
    ) -> int | None:
        """Slots to rebuild into before a batch of ``n`` elements; None to leave the table as it is.

        The table grows if it is as full as it should be, or if the new keys of the batch would fill it.

        Parameters
        ----------
        new_share
            Of the elements of the last batch, how many brought new keys.
        estimate
            Estimates how many new keys the batch has. If there are no more than it is given, it need not be near.
        """
        if not tombstones and self.bounds is None and size + n <= policies.easy_keys(slots, self.safe_load_factor):
            return None  # most batches: what follows would say the same, in four times the time
        wanted = policies.slots_before_insert(size, tombstones, slots, self.safe_load_factor)
        most = policies.most_keys(slots, self.load_factor, self.safe_load_factor, self.bounds)
        if size + n > most and size + 4 * new_share * n > most:
            try:
                new = estimate(most - size)
            except MemoryError:  # the batch may fit all the same
                return None
            if size + new > most:
                wanted = max(wanted or 0, policies.slots_ahead(size + new, slots, self.load_factor, self.bounds))
        return wanted

    def slots_after(self, size: int, slots: int, erased: bool) -> int | None:
        """Slots that bring the load factor back within the bounds; None to leave the table as it is.

        Only a batch that ``erased`` makes the table smaller.
        """
        if self.bounds is None:
            return None
        least, most = self.bounds
        wanted = policies.slots_in_bounds(size, slots, (least if erased else 0, most))
        return wanted if wanted is None or wanted >= size else None
