"""Count the pairs that resizes of subtables move."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from warphash.storage.subtables.array import SubtableArray


@contextlib.contextmanager
def counted_moves() -> Iterator[list[int]]:
    """A list to which each resize of a subtable appends its number of pairs."""
    moves: list[int] = []
    enlarge, begin_halving = SubtableArray.enlarge, SubtableArray.begin_halving

    def enlarging(self: SubtableArray, number: int, *given: Any) -> None:
        moves.append(self.keys[number])
        enlarge(self, number, *given)

    def halving(self: SubtableArray, number: int, stream: Any = None) -> Any:
        moves.append(self.keys[number])
        return begin_halving(self, number, stream)

    with mock.patch.multiple(SubtableArray, enlarge=enlarging, begin_halving=halving):
        yield moves
