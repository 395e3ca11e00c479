"""Numbers for keys of any width, on any engine: cells keep the first element of each key (``groups/number.cuh``)."""

from __future__ import annotations

import random
from typing import Any

from ...runtime.abi import FirstsTable, NumberBatch
from ...runtime.engine import Engine
from ...runtime.source import GROUPS
from ..estimate import estimate_distinct
from ..scratch import ReportBuffer
from ..selection import starts_of_flags

__all__ = ["cells_for", "number"]

_FEWEST_CELLS = 1 << 8
_CELLS_OF_KEY = 2
"""At least half of the cells are vacant, so a probe reads 1.5 cells for a key that is there, on average (Knuth, The Art
of Computer Programming, volume 3, section 6.4: linear probing)."""


def cells_for(keys: int) -> int:
    """Cells for so many keys, a power of two."""
    return max(_FEWEST_CELLS, 1 << (_CELLS_OF_KEY * keys - 1).bit_length())


def number(engine: Engine, batch: NumberBatch, stream: Any) -> int:
    """Number the keys of ``batch``, and return how many there are. Waits."""
    n, program = batch.n, engine.program(GROUPS)
    places, flags = engine.allocate(4 * n, stream), engine.allocate(n, stream)
    batch.places, batch.flags = places.ptr, flags.ptr
    report = ReportBuffer(engine, stream)
    most = cells_for(n)
    cells = min(most, cells_for(estimate_distinct(engine, batch.keys, batch.key_bytes, n, stream)))
    while True:
        held = engine.allocate(4 * cells, stream)
        engine.fill(held.ptr, 0xFF, held.nbytes, stream)
        batch.report = report.reset(stream)
        table = FirstsTable(cells=held.ptr, cell_mask=cells - 1, salt=random.getrandbits(64))
        program.run("claim", table, batch, n, stream)
        if not report.read(stream).unplaced:
            break
        # Too few cells; or, with the most there can be, an unlucky salt.
        cells = min(most, 4 * cells) if cells < most else 2 * cells
    program.run("mark_firsts", table, batch, n, stream)
    starts, size = starts_of_flags(engine, flags, n, stream)
    batch.starts = starts.ptr
    program.run("rank_firsts", table, batch, n, stream)
    if batch.counts:
        engine.fill(batch.counts, 0, 4 * size, stream)
    if batch.numbers or batch.counts:
        program.run("spread", table, batch, n, stream)
    return size
