"""Which subtable a key goes to first: each subtable has a share of all draws (``kernels/subtables/lines.cuh``).

The shares are neighbouring stretches of the draws. A lookup also reads where a key may have gone before the shares
moved. So a `SubtableTable` keeps the furthest ends that each stretch has had since the overflow filter of its subtable
was written anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ...runtime.abi import SubtableTable
from .. import policies

__all__ = ["fullest_load", "route_empty", "route_resized"]

_DRAWS = 1 << 32


def route_empty(table: SubtableTable, routing: str, sizes: Sequence[int]) -> None:
    """Write to ``table`` how the keys of an empty table are routed.

    Parameters
    ----------
    routing
        As of `policies.subtable_shares`.
    sizes
        Buckets of each subtable.
    """
    _write(table, policies.subtable_shares(routing, sizes, [0] * len(sizes)))
    table.early_exit = 1
    for number in range(len(sizes)):
        _forget_former_ends(table, number)


def route_resized(table: SubtableTable, routing: str, number: int, sizes: Sequence[int], counts: Sequence[int]) -> None:
    """Write to ``table`` how keys are routed after one subtable was resized.

    No find stops early from here on. A doubled subtable has a tombstone for each pair that went to the other half, so
    most of its buckets say that they were once full. An insert that expects so asks for the overflow filters at once.

    Parameters
    ----------
    routing
        As of `policies.subtable_shares`.
    number
        The subtable whose kernel writes its overflow filter anew: its residents are the keys in its share.
    sizes, counts
        Buckets and keys of each subtable.
    """
    _write(table, policies.subtable_shares(routing, sizes, counts))
    table.early_exit = 0
    _forget_former_ends(table, number)


def fullest_load(table: SubtableTable, sizes: Sequence[int], slots_per_bucket: int, keys: int) -> float:
    """Expected load factor of the fullest subtable, if all of so many keys were in their first subtables.

    Parameters
    ----------
    sizes
        Buckets of each subtable.
    """
    ends: list[int] = [0, *table.route_ends[: len(sizes)]]
    return max(
        (end - begin) / _DRAWS * keys / (size * slots_per_bucket)
        for (begin, end), size in zip(pairwise(ends), sizes, strict=True)
    )


def _write(table: SubtableTable, shares: Sequence[float]) -> None:
    begin, end = 0, 0.0
    for number, share in enumerate(shares):
        end += share
        border = _DRAWS if number == len(shares) - 1 else round(min(end, 1.0) * _DRAWS)
        table.route_ends[number] = border
        table.least_begins[number] = min(table.least_begins[number], begin)
        table.most_ends[number] = max(table.most_ends[number], border)
        begin = border


def _forget_former_ends(table: SubtableTable, number: int) -> None:
    table.least_begins[number] = table.route_ends[number - 1] if number else 0
    table.most_ends[number] = table.route_ends[number]
