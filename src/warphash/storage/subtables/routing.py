"""Which subtable a key goes to first: each subtable has a share of all draws (``kernels/subtables/lines.cuh``)."""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.abi import SubtableTable
from .. import policies

__all__ = ["Routing"]

_DRAWS = 1 << 32


class Routing:
    """The shares of the subtables: neighbouring stretches of the draws. It does not change; a resize makes another.

    A lookup also reads where a key may have gone before the shares moved. So a `SubtableTable` keeps the furthest ends
    that each stretch has had since the overflow filter of its subtable was written anew.

    Parameters
    ----------
    shares
        Of each subtable; they sum to 1.
    """

    def __init__(self, shares: Sequence[float]) -> None:
        self._shares = shares

    @classmethod
    def of_empty(cls, table: SubtableTable, sizes: Sequence[int]) -> Routing:
        """Route the keys of an empty table whose subtables have so many buckets: write the stretches to ``table``."""
        counts = [0] * len(sizes)
        routing = cls(policies.subtable_shares(sizes, counts, 0, [1 / len(sizes)] * len(sizes)))
        routing._write(table)
        table.early_exit = 1
        for number in range(len(sizes)):
            _forget_former_ends(table, number)
        return routing

    def resized(
        self, table: SubtableTable, number: int, sizes: Sequence[int], counts: Sequence[int], incoming: int
    ) -> Routing:
        """Move the shares after one subtable was resized, and write them to ``table``.

        Parameters
        ----------
        number
            The subtable whose kernel writes its overflow filter anew: its residents are the keys in its share.
        sizes, counts, incoming
            Buckets and keys of each subtable, and the keys that a batch brings (`policies.subtable_shares`).
        """
        routing = Routing(policies.subtable_shares(sizes, counts, incoming, self._shares))
        routing._write(table)
        _forget_former_ends(table, number)
        return routing

    def _write(self, table: SubtableTable) -> None:
        begin, end = 0, 0.0
        for number, share in enumerate(self._shares):
            end += share
            border = _DRAWS if number == len(self._shares) - 1 else round(min(end, 1.0) * _DRAWS)
            table.early_exit &= table.route_ends[number] == border
            table.route_ends[number] = border
            table.least_begins[number] = min(table.least_begins[number], begin)
            table.most_ends[number] = max(table.most_ends[number], border)
            begin = border


def _forget_former_ends(table: SubtableTable, number: int) -> None:
    table.least_begins[number] = table.route_ends[number - 1] if number else 0
    table.most_ends[number] = table.route_ends[number]
