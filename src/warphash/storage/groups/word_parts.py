"""Words of a batch in the order of the parts of their cells, on a GPU (``groups/gpu/word_parts.cuh``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...runtime.abi import LookupPartitionBatch, NumberBatch, PartitionBatch, WordCells
from ...runtime.engine import Buffer, Engine
from ...runtime.source import GROUPS
from ...settings import batch_order
from ..batch_order.lookups import FEWEST_PARTITIONED
from ..batch_order.ordering import tile_threads, tiles_of
from ..scratch import starts_of

__all__ = ["MovedWords", "moved"]

_PART_BITS = 8
_PARTS = 1 << _PART_BITS
_HASH_BITS = 64
_WINDOWS = 20
"""Of cells in as many windows of the cache or more, words are numbered faster part by part."""


@dataclass(frozen=True)
class MovedWords:
    """What brings the numbers of moved words back.

    Attributes
    ----------
    numbers
        Address of uint32[n] for the numbers in the order of the parts. Until these are written, `NumberBatch.rows` is
        there.
    out, number_bytes
        Where they go in the order of the elements; 0 if numbers are not asked for.
    """

    numbers: int
    out: int
    number_bytes: int
    _engine: Engine
    _batch: LookupPartitionBatch
    _table: WordCells
    _key_bytes: int
    _memory: Buffer

    def catch(self, batch: NumberBatch) -> None:
        """Make `spread` write the numbers in the order of the parts, if they are asked for: over the rows."""
        if self.out:
            batch.numbers, batch.number_bytes = self.numbers, 4

    def restore(self, stream: Any) -> None:
        """Bring the numbers to the order of the elements, if they are asked for."""
        if self.out:
            self._batch.values, self._batch.out_values = self.numbers, self.out
            entry = f"restore_numbers{self._key_bytes}{self.number_bytes}"
            _over_tiles(self._engine, entry, self._table, self._batch, self._key_bytes, stream)


def moved(engine: Engine, batch: NumberBatch, salt: int, cell_bytes: int, stream: Any) -> MovedWords | None:
    """Replace the words of a batch by copies in the order of the parts of their cells.

    None, and the batch as it was, where that would not help, or where there is no memory for it.

    Parameters
    ----------
    salt, cell_bytes
        Of the cells to come.
    """
    n, width, order = batch.n, batch.key_bytes, batch_order()
    if order == "given" or (
        order == "auto" and (n < FEWEST_PARTITIONED or cell_bytes < _WINDOWS * max(1, engine.window_bytes))
    ):
        return None
    returns = bool(batch.numbers)
    tiles = tiles_of(n, width)
    *starts, end = starts_of((width * n, 4 * n, 2 * n * returns, 8 * _PARTS * tiles * returns, 16 * _PARTS))
    try:
        memory = engine.allocate(end, stream)
    except MemoryError:
        return None
    copies, rows, places, runs, sizes = (memory.ptr + at for at in starts)
    engine.fill(sizes, 0, 16 * _PARTS, stream)
    table = WordCells(salt=salt)
    moving = LookupPartitionBatch(n=n, keys=batch.keys, out_keys=copies, out_rows=rows)
    moving.part_sizes, moving.parts, moving.part_shift = sizes, _PARTS, _HASH_BITS - _PART_BITS
    if returns:
        moving.places, moving.runs = places, runs
    _over_tiles(engine, "count_words" + str(width), table, PartitionBatch.from_buffer_copy(moving), width, stream)
    _over_tiles(engine, "move_words" + str(width), table, moving, width, stream)
    batch.keys, batch.rows = copies, rows
    return MovedWords(rows, batch.numbers, batch.number_bytes, engine, moving, table, width, memory)


def _over_tiles(engine: Engine, entry: str, table: WordCells, batch: PartitionBatch, width: int, stream: Any) -> None:
    """Launch a kernel over whole tiles of words of so many bytes."""
    engine.program(GROUPS).run(entry, table, batch, tile_threads(batch.n, width), stream)
