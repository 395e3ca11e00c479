"""Words on a GPU that others are looked up in: cells lead from each to the first element that has it.

``groups/gpu/word_cells.cuh`` has their layout.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ...runtime.abi import NumberBatch
from ...runtime.engine import Engine
from ...runtime.source import GROUPS
from ..batch_tiles import over_tiles
from .cells import WORD_CELL_BYTES, WORD_CELLS, Cells
from .first_elements import claimed, expected_keys
from .word_parts import moved
from .words import widen

__all__ = ["DevicePlaces"]

_FIRST_AT, _NO_ELEMENT = 8, 2**32 - 1
"""Of a cell: where its element is, and what is there in a vacant one."""

_LEAST_UNIQUE_SHARE = 0.9
"""If a smaller share of the words differ by the estimate, some words repeat: its standard error is 1 percent."""


class DevicePlaces:
    """Words of up to 8 bytes, and the first element of each. Making it waits.

    Parameters
    ----------
    engine
        Of a GPU.
    words, width, n
        Address of ``n`` packed words of ``width`` bytes, at most 2**31.
    if_unique
        If the estimate shows that words repeat, keep no word.

    Attributes
    ----------
    is_unique
        Whether no word repeats.

    Raises
    ------
    MemoryError
        If there is no room.
    """

    def __init__(self, engine: Engine, words: int, width: int, n: int, stream: Any, *, if_unique: bool = False) -> None:
        self._engine, self._width = engine, width
        self._cells: Cells | None = None
        self.is_unique = True
        if not n:
            return
        batch = NumberBatch(n=n, keys=words, key_bytes=width)
        widened = widen(engine, batch, stream)
        kind, salt = WORD_CELLS[batch.key_bytes], random.getrandbits(64)
        keys = expected_keys(engine, batch, kind, stream)
        if if_unique and keys < _LEAST_UNIQUE_SHARE * n:
            self.is_unique = False
            return
        in_parts = moved(engine, batch, salt, kind.nbytes(keys), stream)
        self._cells, distinct = claimed(engine, batch, kind, keys, salt, stream)
        del widened, in_parts  # behind the last launch that reads words
        self.is_unique = distinct == n or (distinct == n - 1 and self._has_last_word(self._cells, stream))

    def _has_last_word(self, cells: Cells, stream: Any) -> bool:
        """Whether the word ~0 is there, whose cell is not counted."""
        at = cells.held.ptr + WORD_CELL_BYTES * (cells.size - 1) + _FIRST_AT
        return int(self._engine.to_host(at, np.uint32, 1, stream)[0]) != _NO_ELEMENT

    def find(self, words: int, n: int, out: int, out_bytes: int, stream: Any) -> None:
        """Write the first element of each word, or -1, to integers of 4 or 8 bytes. Does not wait.

        Parameters
        ----------
        words, n
            Address of ``n`` packed words of the same width.
        """
        if not n:
            return
        if self._cells is None:
            self._engine.fill(out, 0xFF, out_bytes * n, stream)
            return
        batch = NumberBatch(n=n, keys=words, key_bytes=self._width, numbers=out, number_bytes=out_bytes)
        widened = widen(self._engine, batch, stream)
        over_tiles(self._engine, GROUPS, f"find_words{batch.key_bytes}", self._cells.table, batch, n, stream)
        del widened  # not before the launch
