"""Note the pairs that resizes of subtables move, and the conflicts behind each resize."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from math import comb
from typing import Any, NamedTuple
from unittest import mock

from warphash.storage.subtables.array import SubtableArray


class Move(NamedTuple):
    """One resize of a subtable.

    Attributes
    ----------
    pairs, slots
        Pairs that it moves, and the slots that they lie in.
    size, table_slots
        Pairs and slots of all subtables before.
    enlarges
        Whether the subtable is doubled, not halved.
    smallest, largest
        Whether no subtable is smaller, and whether none is larger.
    """

    pairs: int
    slots: int
    size: int
    table_slots: int
    enlarges: bool
    smallest: bool
    largest: bool


@contextlib.contextmanager
def counted_moves() -> Iterator[list[Move]]:
    """A list to which each resize of a subtable appends itself."""
    moves: list[Move] = []
    enlarge, begin_halving = SubtableArray.enlarge, SubtableArray.begin_halving

    def note(array: SubtableArray, number: int, enlarges: bool) -> None:
        slots, mine = array.spec.slots_per_bucket, array.sizes[number]
        least, most = min(array.sizes), max(array.sizes)
        moves.append(
            Move(array.keys[number], mine * slots, sum(array.keys), array.slots, enlarges, mine == least, mine == most)
        )

    def enlarging(self: SubtableArray, number: int, *given: Any) -> None:
        note(self, number, True)
        enlarge(self, number, *given)

    def halving(self: SubtableArray, number: int, stream: Any = None) -> Any:
        note(self, number, False)
        return begin_halving(self, number, stream)

    with mock.patch.multiple(SubtableArray, enlarge=enlarging, begin_halving=halving):
        yield moves


def conflicts(array: SubtableArray) -> float:
    """The sum of C(m, 2) / n over the subtables of m keys and n buckets, over C(m, 2) / n of the whole table."""
    found = sum(comb(keys, 2) / buckets for keys, buckets in zip(array.keys, array.sizes, strict=True))
    return found * sum(array.sizes) / comb(sum(array.keys), 2)
