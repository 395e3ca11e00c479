"""Which subtable a key goes to first: a share of all draws for each, as ``kernels/subtables/lines.cuh`` reads them."""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.abi import Table
from .. import policies

__all__ = ["Shares"]

_DRAWS = 1 << 32


class Shares:
    """Neighbouring stretches of the draws, one for each subtable, in ``table``.

    A lookup also reads where a key may have gone before shares moved: ``table`` has the furthest ends of each stretch
    since the guests of its subtable were told.
    """

    def __init__(self, table: Table, sizes: Sequence[int]) -> None:
        self._table = table
        self._shares: Sequence[float] = [1 / len(sizes)] * len(sizes)
        self.move(sizes, [0] * len(sizes), 0)
        table.early_exit = 1
        for number in range(len(sizes)):
            self.tell_guests(number)

    def move(self, sizes: Sequence[int], counts: Sequence[int], incoming: int) -> None:
        """New shares for subtables of so many buckets and keys, of which a batch brings more (`policies`)."""
        self._shares = policies.subtable_shares(sizes, counts, incoming, self._shares)
        table, begin, end = self._table, 0, 0.0
        for number, share in enumerate(self._shares):
            end += share
            border = _DRAWS if number == len(sizes) - 1 else round(min(end, 1.0) * _DRAWS)
            table.early_exit &= table.shares[number] == border
            table.shares[number] = border
            table.least_begins[number] = min(table.least_begins[number], begin)
            table.most_ends[number] = max(table.most_ends[number], border)
            begin = border

    def tell_guests(self, number: int) -> None:
        """From now on, the residents of a subtable are the keys in its share; its kernel marks the others."""
        table = self._table
        table.least_begins[number] = table.shares[number - 1] if number else 0
        table.most_ends[number] = table.shares[number]
