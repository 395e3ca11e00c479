"""Numbers for keys of any width, on any engine: cells keep the first element of each key (``groups/number.cuh``)."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from ...runtime.abi import FirstsTable, NumberBatch, WordCells
from ...runtime.engine import Engine
from ...runtime.source import GROUPS
from ..estimate import FEWEST_SKETCHED, estimate_distinct
from ..new_memory import filled
from ..scratch import ReportBuffer
from ..selection import starts_of_bits
from .cells import ROW_CELLS, WORD_CELLS, Cells, Kind
from .word_parts import moved
from .words import LONGEST_WORD, widen

__all__ = ["number"]

_ROUND_THREADS, _ROUND_TILE = 512, 8192
"""Of a block of a GPU: its threads, and its elements (``kernels/groups/gpu/rounds.cuh``)."""

_IN_ROUNDS = frozenset(("mark_firsts", "mark_words", "rank_words", "list_firsts", "number_all", "spread"))
"""Kernels of a GPU that go through tiles, a block each."""


def number(engine: Engine, batch: NumberBatch, stream: Any) -> int:
    """Number the keys of ``batch``, and return how many there are. Waits."""
    n: int = batch.n
    kind, widened = ROW_CELLS, None
    if engine.lanes > 1 and batch.key_bytes <= LONGEST_WORD:
        widened = widen(engine, batch, stream)
        kind = WORD_CELLS[batch.key_bytes]
    few = n <= FEWEST_SKETCHED or kind.nbytes(n) <= engine.window_bytes  # to clear more cells is cheaper than to wait
    keys = n if few else estimate_distinct(engine, batch.keys, batch.key_bytes, n, stream)
    salt = random.getrandbits(64)
    way_back = None if kind is ROW_CELLS else moved(engine, batch, salt, kind.nbytes(keys), stream)
    places = engine.allocate(4 * n, stream) if batch.numbers or batch.counts else None
    batch.places = 0 if places is None else places.ptr

    launch = partial(_launch, engine, batch, stream)
    cells, claimed = _claim(engine, batch, kind, keys, salt, stream)
    del widened  # behind the last launch that reads keys
    if claimed == n:
        launch("number_all", FirstsTable(), n)
        return n
    words = -(-n // 32)
    bits = filled(engine, 4 * words, stream)
    batch.bits = bits.ptr
    launch(kind.mark, cells.table, cells.size)
    starts, size = starts_of_bits(engine, bits, words, stream)
    batch.starts = starts.ptr
    launch("list_firsts", FirstsTable(), words)
    if places is None:
        return size
    ranked, held = kind.ranked(engine, cells, stream)
    launch(kind.rank, cells.table, cells.size)
    if batch.counts:
        engine.fill(batch.counts, 0, 4 * size, stream)
    if way_back:
        way_back.catch(batch)
    launch("spread", ranked, n)
    del held  # not before the launch
    if way_back:
        way_back.restore(stream)
    return size


def _claim(engine: Engine, batch: NumberBatch, kind: Kind, keys: int, salt: int, stream: Any) -> tuple[Cells, int]:
    """Claim a cell for each key, of which so many are expected. Waits.

    Returns
    -------
    cells, claimed
        How many cells were claimed, but for that of the word ~0.
    """
    n: int = batch.n
    report = ReportBuffer(engine, stream)
    while True:
        cells = kind.make(engine, keys, salt, stream)
        batch.report = report.reset(stream)
        _launch(engine, batch, stream, kind.claim, cells.table, n)
        said = report.read(stream)
        if not said.unplaced:
            return cells, said.changed
        if keys < n:
            keys = min(n, 4 * keys)
        else:  # the most there can be
            keys, salt = 2 * keys, random.getrandbits(64)


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
