"""The first elements of keys: cells are claimed for them, and then they are listed (``kernels/groups/number.cuh``)."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from ...runtime.abi import FirstsTable, NumberBatch
from ...runtime.engine import Buffer, Engine
from ...runtime.source import GROUPS
from ..batch_tiles import over_tiles
from ..estimate import FEWEST_SKETCHED, estimate_distinct
from ..new_memory import filled
from ..scratch import ReportBuffer
from ..selection import starts_of_bits
from .cells import Cells, Kind

__all__ = ["FirstElements", "claimed", "expected_keys", "listed"]


class FirstElements(NamedTuple):
    """How many keys there are, and memory that must live as long as `NumberBatch.bits` and ``starts`` are read."""

    size: int
    held: tuple[Buffer, Buffer]


def expected_keys(engine: Engine, batch: NumberBatch, kind: Kind, stream: Any) -> int:
    """For how many keys to make cells. May wait."""
    n: int = batch.n
    if n <= FEWEST_SKETCHED or kind.nbytes(n) <= engine.window_bytes:  # to clear more cells is cheaper than to wait
        return n
    return estimate_distinct(engine, batch.keys, batch.key_bytes, n, stream)


def claimed(engine: Engine, batch: NumberBatch, kind: Kind, keys: int, salt: int, stream: Any) -> tuple[Cells, int]:
    """Claim a cell for each key, of which so many are expected. Waits.

    Returns
    -------
    cells, claimed
        How many cells `Kind.claim` counted: all that were claimed, but for that of the word ~0.
    """
    n: int = batch.n
    report = ReportBuffer(engine, stream)
    while True:
        cells = kind.make(engine, keys, salt, stream)
        batch.report = report.reset(stream)
        over_tiles(engine, GROUPS, kind.claim, cells.table, batch, n, stream)
        said = report.read(stream)
        if not said.unplaced:
            return cells, said.changed
        if keys < n:
            keys = min(n, 4 * keys)
        else:  # the most there can be
            keys, salt = 2 * keys, random.getrandbits(64)


def listed(engine: Engine, batch: NumberBatch, kind: Kind, cells: Cells, n: int, stream: Any) -> FirstElements:
    """Write the first elements of ``n`` to `NumberBatch.firsts`, ascending. Waits.

    Then `NumberBatch.bits` and ``starts`` tell the number of the key that first appears in an element.
    """
    words = -(-n // 32)
    bits = filled(engine, 4 * words, stream)
    batch.bits = bits.ptr
    over_tiles(engine, GROUPS, kind.mark, cells.table, batch, cells.size, stream)
    starts, size = starts_of_bits(engine, bits, words, stream)
    batch.starts = starts.ptr
    over_tiles(engine, GROUPS, "list_firsts", FirstsTable(), batch, words, stream)
    return FirstElements(size, (bits, starts))
