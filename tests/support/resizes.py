"""Resizes of subtables, counted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from warphash.storage.subtables.store import SubtableStore


@contextlib.contextmanager
def counted_moves() -> Iterator[list[int]]:
    """A list that gets the pairs of each subtable that is resized."""
    moves: list[int] = []
    enlarge, halve = SubtableStore.enlarge, SubtableStore.halve

    def enlarging(self: SubtableStore, number: int, *given: Any) -> None:
        moves.append(self.hashed[number].keys)
        enlarge(self, number, *given)

    def halving(self: SubtableStore, number: int, stream: Any = None) -> Any:
        moves.append(self.hashed[number].keys)
        return halve(self, number, stream)

    with mock.patch.multiple(SubtableStore, enlarge=enlarging, halve=halving):
        yield moves
