"""Numbers for keys of any width, on any engine: cells keep the first element of each key (``groups/number.cuh``).

A GPU has other cells for words, which keep the keys, too (``groups/gpu/word_cells.cuh``).
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any, NamedTuple

from ...runtime.abi import FirstsTable, NumberBatch, StoredRows, WordBatch, WordCells
from ...runtime.engine import Buffer, Engine
from ...runtime.source import GROUPS, ROWS
from ..estimate import FEWEST_SKETCHED, estimate_distinct
from ..scratch import ReportBuffer
from ..selection import starts_of_bits
from .word_parts import moved

__all__ = ["cells_for", "number", "word_cells_for"]

_FEWEST_CELLS = 1 << 8
_CELLS_OF_KEY = 2
"""At least half of the cells are vacant, so a probe reads 1.5 cells for a key that is there, on average (Knuth, The Art
of Computer Programming, volume 3, section 6.4: linear probing)."""

_WORD_CELL_BYTES, _CELLS_OF_LINE = 16, 4
_KEYS_OF_8_CELLS = 5
"""Of cells for words: with fewer cells, more of them stay in the cache; with more, fewer words leave their line."""


_ROUND_THREADS, _ROUND_TILE = 512, 8192
"""Of a block of a GPU: its threads, and its elements (``kernels/groups/gpu/rounds.cuh``)."""

_LONGEST_WORD = 8
"""Bytes of a word."""


class _Entries(NamedTuple):
    """Kernels for one kind of cells."""

    claim: str
    mark: str
    rank: str


_ROW_ENTRIES = _Entries("claim", "mark_firsts", "rank_firsts")
_WORD_ENTRIES = {width: _Entries(f"claim_words{width}", "mark_words", "rank_words") for width in (4, 8)}
_IN_ROUNDS = frozenset(("mark_firsts", "mark_words", "rank_words", "list_firsts", "number_all", "spread"))
"""Kernels of a GPU that go through tiles, a block each."""


class _Cells(NamedTuple):
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


def cells_for(keys: int) -> int:
    """Cells for so many keys of any width, a power of two."""
    return max(_FEWEST_CELLS, 1 << (_CELLS_OF_KEY * keys - 1).bit_length())


def word_cells_for(keys: int) -> int:
    """Cells for so many words, in whole lines."""
    cells = max(_FEWEST_CELLS, -(-8 * keys // _KEYS_OF_8_CELLS))
    return -(-cells // _CELLS_OF_LINE) * _CELLS_OF_LINE


def number(engine: Engine, batch: NumberBatch, stream: Any) -> int:
    """Number the keys of ``batch``, and return how many there are. Waits."""
    n: int = batch.n
    held = []
    are_words = engine.lanes > 1 and batch.key_bytes <= _LONGEST_WORD
    if are_words and batch.key_bytes not in _WORD_ENTRIES:
        held.append(_widen(engine, batch, stream))
    entries = _WORD_ENTRIES[batch.key_bytes] if are_words else _ROW_ENTRIES
    few = n <= FEWEST_SKETCHED
    keys = n if few else estimate_distinct(engine, batch.keys, batch.key_bytes, n, stream)
    salt, numbers, number_bytes = random.getrandbits(64), batch.numbers, batch.number_bytes
    way_back = None
    if are_words:
        way_back = moved(engine, batch, WordCells(salt=salt), _WORD_CELL_BYTES * word_cells_for(keys), stream)
    if batch.numbers or batch.counts:
        held.append(engine.allocate(4 * n, stream))
        batch.places = held[-1].ptr

    report = ReportBuffer(engine, stream)
    launch = partial(_launch, engine, batch, stream)
    make_cells = _word_cells if are_words else _row_cells
    while True:
        cells = make_cells(engine, keys, salt, stream)
        batch.report = report.reset(stream)
        launch(entries.claim, cells.table, n)
        said = report.read(stream)
        if not said.unplaced:
            break
        if keys < n:
            keys = min(n, 4 * keys)
        else:  # the most there can be
            keys, salt = 2 * keys, random.getrandbits(64)
    if said.changed == n:
        launch("number_all", FirstsTable(), n)
        return n

    words = -(-n // 32)
    bits = engine.allocate(4 * words, stream)
    engine.fill(bits.ptr, 0, bits.nbytes, stream)
    batch.bits = bits.ptr
    launch(entries.mark, cells.table, cells.size)
    starts, size = starts_of_bits(engine, bits, words, stream)
    batch.starts = starts.ptr
    launch("list_firsts", FirstsTable(), words)
    if not batch.places:
        return size
    spread_from = cells.table
    if isinstance(cells.table, WordCells):
        held.append(engine.allocate(4 * cells.size, stream))
        cells.table.numbers = held[-1].ptr
        spread_from = FirstsTable(cells=held[-1].ptr)
    launch(entries.rank, cells.table, cells.size)
    if batch.counts:
        engine.fill(batch.counts, 0, 4 * size, stream)
    if way_back and numbers:
        batch.numbers, batch.number_bytes = way_back.numbers, 4
    launch("spread", spread_from, n)
    if way_back and numbers:
        way_back.restore(numbers, number_bytes, stream)
    return size


def _launch(
    engine: Engine, batch: NumberBatch, stream: Any, entry: str, table: FirstsTable | WordCells, n: int
) -> None:
    """Run a kernel over ``n`` elements, cells or words of bits."""
    batch.n = n
    program = engine.program(GROUPS)
    if engine.lanes == 1 or entry not in _IN_ROUNDS:
        return program.run(entry, table, batch, n, stream)
    most = max(1, engine.lanes // _ROUND_THREADS) if entry == "spread" else n  # each block has counts of its own
    program.run_blocks(entry, table, batch, min(-(-n // _ROUND_TILE), most), stream)


def _widen(engine: Engine, batch: NumberBatch, stream: Any) -> Buffer:
    """Replace the keys of a batch by words of 4 or 8 bytes, whose memory is returned."""
    word_bytes = 4 if batch.key_bytes <= 4 else 8
    words = engine.allocate(word_bytes * batch.n, stream)
    widened = WordBatch(n=batch.n, rows=batch.keys, row_bytes=batch.key_bytes, words=words.ptr, word_bytes=word_bytes)
    engine.program(ROWS).run("widen", StoredRows(), widened, batch.n, stream)
    batch.keys, batch.key_bytes = words.ptr, word_bytes
    return words


def _row_cells(engine: Engine, keys: int, salt: int, stream: Any) -> _Cells:
    count = cells_for(keys)
    held = _vacant(engine, 4 * count, stream)
    return _Cells(FirstsTable(cells=held.ptr, cell_mask=count - 1, salt=salt), count, held)


def _word_cells(engine: Engine, keys: int, salt: int, stream: Any) -> _Cells:
    count = word_cells_for(keys)
    held = _vacant(engine, _WORD_CELL_BYTES * (count + 1), stream)
    return _Cells(WordCells(cells=held.ptr, cell_count=count, salt=salt), count + 1, held)


def _vacant(engine: Engine, nbytes: int, stream: Any) -> Buffer:
    held = engine.allocate(nbytes, stream)
    engine.fill(held.ptr, 0xFF, nbytes, stream)
    return held
