"""Cells that keep the first element of each key: of rows on any engine, and of words on a GPU.

``groups/number.cuh`` and ``groups/gpu/word_cells.cuh`` have their layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...runtime.abi import FirstsTable, WordCells
from ...runtime.engine import Buffer, Engine
from ..new_memory import filled

__all__ = [
    "ROW_CELLS",
    "WORD_CELLS",
    "WORD_CELL_BYTES",
    "Cells",
    "Kind",
    "row_cells_for",
    "word_cells_for",
]

WORD_CELL_BYTES = 16
"""Of a cell for a word."""

_FEWEST_CELLS = 1 << 8
_CELLS_OF_KEY = 2
"""At least half of the cells are vacant, so a probe reads 1.5 cells for a key that is there, on average (Knuth, The Art
of Computer Programming, volume 3, section 6.4: linear probing)."""

_VACANT = 0xFF
"""Every byte of a cell that no key has."""

_ROW_CELL_BYTES, _NUMBER_BYTES = 4, 4
_WORD_CELLS_OF_LINE = 4
_WORD_CELLS_OF_KEY = 2
"""With fewer cells, more of them stay in the cache; with more, fewer words leave their line: one in 27 so."""


class Cells(NamedTuple):
    """Cells for the keys of a batch.

    Attributes
    ----------
    table
        What kernels are given.
    size
        How many there are.
    held
        Their memory.
    """

    table: FirstsTable | WordCells
    size: int
    held: Buffer


class Kind(NamedTuple):
    """One kind of cells.

    Attributes
    ----------
    claim, mark, rank
        Kernels.
    nbytes
        Bytes of cells for so many keys.
    make
        Makes vacant cells for so many keys, under a salt.
    ranked
        Where ``rank`` writes the number of each cell, for ``spread``; and the memory, which must live as long. To be
        called before ``rank``.
    """

    claim: str
    mark: str
    rank: str
    nbytes: Callable[[int], int]
    make: Callable[[Engine, int, int, Any], Cells]
    ranked: Callable[[Engine, Cells, Any], tuple[FirstsTable, Buffer]]


def row_cells_for(keys: int) -> int:
    """Cells for so many keys of any width, a power of two."""
    return max(_FEWEST_CELLS, 1 << (_CELLS_OF_KEY * keys - 1).bit_length())


def word_cells_for(keys: int) -> int:
    """Cells for so many words, in whole lines."""
    cells = max(_FEWEST_CELLS, _WORD_CELLS_OF_KEY * keys)
    return -(-cells // _WORD_CELLS_OF_LINE) * _WORD_CELLS_OF_LINE


def _make_row_cells(engine: Engine, keys: int, salt: int, stream: Any) -> Cells:
    count = row_cells_for(keys)
    held = filled(engine, _ROW_CELL_BYTES * count, stream, _VACANT)
    return Cells(FirstsTable(cells=held.ptr, cell_mask=count - 1, salt=salt), count, held)


def _in_the_cells(_engine: Engine, cells: Cells, _stream: Any) -> tuple[FirstsTable, Buffer]:
    return FirstsTable(cells=cells.held.ptr), cells.held


def _make_word_cells(engine: Engine, keys: int, salt: int, stream: Any) -> Cells:
    count = word_cells_for(keys)
    held = filled(engine, WORD_CELL_BYTES * (count + _WORD_CELLS_OF_LINE), stream, _VACANT)
    return Cells(WordCells(cells=held.ptr, cell_count=count, salt=salt), count + 1, held)


def _beside_the_cells(engine: Engine, cells: Cells, stream: Any) -> tuple[FirstsTable, Buffer]:
    numbers = engine.allocate(_NUMBER_BYTES * cells.size, stream)
    assert isinstance(cells.table, WordCells)
    cells.table.numbers = numbers.ptr
    return FirstsTable(cells=numbers.ptr), numbers


ROW_CELLS = Kind(
    "claim",
    "mark_firsts",
    "rank_firsts",
    lambda keys: _ROW_CELL_BYTES * row_cells_for(keys),
    _make_row_cells,
    _in_the_cells,
)
"""Cells for rows of any width."""

WORD_CELLS = {
    width: Kind(
        f"claim_words{width}",
        "mark_words",
        "rank_words",
        lambda keys: WORD_CELL_BYTES * word_cells_for(keys),
        _make_word_cells,
        _beside_the_cells,
    )
    for width in (4, 8)
}
"""Cells for words of so many bytes, on a GPU."""
