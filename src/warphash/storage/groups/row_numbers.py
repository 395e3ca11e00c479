"""Numbers for keys of any width, on any engine: cells keep the first element of each key (``groups/number.cuh``)."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from ...runtime.abi import FirstsTable, NumberBatch
from ...runtime.engine import Engine
from ...runtime.source import GROUPS
from ..batch_tiles import over_tiles
from .cells import ROW_CELLS, WORD_CELLS
from .first_elements import claimed, expected_keys, listed
from .word_parts import moved
from .words import LONGEST_WORD, widen

__all__ = ["number"]


def number(engine: Engine, batch: NumberBatch, stream: Any) -> int:
    """Number the keys of ``batch``, and return how many there are. Waits."""
    n: int = batch.n
    kind, widened = ROW_CELLS, None
    if engine.lanes > 1 and batch.key_bytes <= LONGEST_WORD:
        widened = widen(engine, batch, stream)
        kind = WORD_CELLS[batch.key_bytes]
    keys = expected_keys(engine, batch, kind, stream)
    salt = random.getrandbits(64)
    way_back = None if kind is ROW_CELLS else moved(engine, batch, salt, kind.nbytes(keys), stream)
    places = engine.allocate(4 * n, stream) if batch.numbers or batch.counts else None
    batch.places = 0 if places is None else places.ptr

    cells, distinct = claimed(engine, batch, kind, keys, salt, stream)
    del widened  # behind the last launch that reads keys
    launch = partial(over_tiles, engine, GROUPS)
    if distinct == n:
        launch("number_all", FirstsTable(), batch, n, stream)
        return n
    firsts = listed(engine, batch, kind, cells, n, stream)
    if places is None:
        return firsts.size
    ranked, held = kind.ranked(engine, cells, stream)
    launch(kind.rank, cells.table, batch, cells.size, stream)
    if batch.counts:
        engine.fill(batch.counts, 0, 4 * firsts.size, stream)
    if way_back:
        way_back.catch(batch)
    launch("spread", ranked, batch, n, stream)
    del held  # not before the launch
    if way_back:
        way_back.restore(stream)
    return firsts.size
