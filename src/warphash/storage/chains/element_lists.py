"""Launches over the elements of a batch: all of them, those that the host lists, or those that have a flag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import Flag
from ...runtime.engine import Buffer, Engine
from ..elements import Elements, Piece, all_pieces
from ..lookup import LAUNCH_ELEMENTS
from ..selection import numbers_of

__all__ = ["Chosen", "ElementLists", "FlaggedElements", "flagged_elements"]

_KEPT_BYTES = 64 << 10
"""A list of 16,000 elements: long enough that its launch takes longer than the copy of the list."""

_LENGTH_WORDS = 2
"""The length of a list, of 64 bits, lies in front of its numbers of 32 bits."""


class FlaggedElements(NamedTuple):
    """Elements of a batch that were listed on the device by their flags: their launches, and the lists."""

    pieces: list[Piece]
    lists: list[Buffer]


Chosen = Elements | FlaggedElements
"""Elements of a batch to take part; all of them if None."""


def flagged_elements(engine: Engine, flags: int, n: int, flag: Flag, stream: Any = None) -> FlaggedElements:
    """List those of ``n`` elements that have a flag, ascending; ``flags`` is the address of their bytes. Waits.

    Raises
    ------
    MemoryError
        If there is no memory for the lists: 4 bytes for each listed element.
    """
    chosen = FlaggedElements([], [])
    for at, elements, *_ in all_pieces(n, LAUNCH_ELEMENTS):
        numbers, count = numbers_of(engine, flags + at, elements, flag, stream)
        if count:
            chosen.pieces.append((at, count, numbers.ptr, 0))
            chosen.lists.append(numbers)
    return chosen


class ElementLists:
    """Device memory for one list at a time of elements that the host lists.

    The memory is there before a batch begins, so that an undo cannot fail.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: Buffer | None = None

    def reserve(self, stream: Any = None) -> Buffer:
        """Make sure that `pieces` needs no memory.

        Raises
        ------
        MemoryError
            If there is none.
        """
        if self._kept is None:
            self._kept = self._engine.allocate(_KEPT_BYTES, stream)
        return self._kept

    def pieces(self, which: npt.NDArray[np.int64], stream: Any = None) -> Iterator[Piece]:
        """Launches over the elements ``which``, ascending: one if there is memory for the whole list.

        Each list is overwritten, in the order of ``stream``, by the next one.
        """
        memory = self.reserve(stream)
        if 4 * (_LENGTH_WORDS + len(which)) > memory.nbytes:
            with suppress(MemoryError):
                memory = self._engine.allocate(4 * (_LENGTH_WORDS + min(len(which), LAUNCH_ELEMENTS)), stream)
        most = memory.nbytes // 4 - _LENGTH_WORDS
        for at in range(0, len(which), most):
            some = which[at : at + most]
            first = int(some[0])
            words = np.empty(_LENGTH_WORDS + len(some), np.uint32)
            words[:_LENGTH_WORDS] = np.array([len(some)], np.uint64).view(np.uint32)
            words[_LENGTH_WORDS:] = some - first
            self._engine.upload(memory.ptr, words, stream)
            yield first, len(some), memory.ptr + 4 * _LENGTH_WORDS, memory.ptr
