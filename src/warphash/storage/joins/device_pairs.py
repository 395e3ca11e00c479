"""The pairs of a join on a GPU: counted first, and then written (``joins/gpu/pairs.cuh``)."""

from __future__ import annotations

from typing import Any

from ...runtime.abi import OWNER_TILE, RowLists, TilePairBatch
from ...runtime.engine import Engine
from ...runtime.source import JOINS
from ..batch_tiles import over_tiles
from ..selection import offsets_of_counts

__all__ = ["DevicePairs"]


class DevicePairs:
    """As `pairs.Pairs`, on a GPU. Making it waits.

    Parameters
    ----------
    engine
        Of the GPU.
    lists
        The rows of each key, as integers of 4 bytes.
    codes, n
        Address of the codes of ``n`` elements, of 4 bytes each.
    keeps_all
        An element without a row has a pair, too.

    Attributes
    ----------
    total
        How many pairs there are.

    Raises
    ------
    MemoryError
        If there is no memory for the counts.
    """

    def __init__(self, engine: Engine, lists: RowLists, codes: int, n: int, *, keeps_all: bool, stream: Any) -> None:
        self._engine, self._lists, self._stream = engine, lists, stream
        self._program = engine.program(JOINS)
        counts, self._starts = engine.allocate(max(1, 4 * n), stream), engine.allocate(8 * (n + 1), stream)
        self._batch = TilePairBatch(
            n=n, elements=n, codes=codes, keeps_all=int(keeps_all), counts=counts.ptr, starts=self._starts.ptr
        )
        if n:
            over_tiles(engine, JOINS, "count_pairs", lists, self._batch, n, stream)
        self.total = offsets_of_counts(engine, counts.ptr, n, self._starts.ptr, stream)

    def write(self, left: int, right: int, out_bytes: int) -> None:
        """Write the pairs to arrays of integers of 4 or 8 bytes, whose addresses are given. Waits."""
        batch, run, total = self._batch, self._program.run, self.total
        tiles = -(-total // OWNER_TILE)
        firsts = self._engine.allocate(max(1, 8 * tiles), self._stream)
        batch.firsts, batch.out_left, batch.out_right = firsts.ptr, left, right
        if total:
            batch.n = tiles
            run("tiles", self._lists, batch, tiles, self._stream)
            batch.n = total
            run(f"emit_pairs{out_bytes}", self._lists, batch, total, self._stream)
        self._engine.synchronize(self._stream)  # the engine's memory must live until then
