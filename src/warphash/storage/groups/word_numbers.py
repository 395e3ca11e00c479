"""Numbers for keys of up to 8 bytes on a CPU (``groups/cpu/number.cuh``, ``groups/cpu/parts.cuh``)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

import numpy as np

from ...runtime.abi import (
    REPORT_WORDS,
    UNPLACED_ELEMENTS,
    Chunks,
    GroupBatch,
    NumberBatch,
    PartBatch,
)
from ...runtime.engine import Buffer, Engine
from ...runtime.source import GROUPS
from ...settings import get_num_threads
from ..batch_order.sample import sample_rows
from ..estimate import distinct_of_sample
from .spans import Span, cut, small_span
from .ways import FEWEST_SAMPLED, Way, expected_in_part, may_be_places, sampled_words, way_of
from .words import widen

__all__ = ["GroupRows", "number"]

GroupRows = Callable[[int, int, int, int], None]
"""Brings rows of the elements of a batch to their keys: from an address, of so many bytes, 4 or 8, to another address.

Those of each key lie together, in the order of the batch. Where they begin, counted in rows, goes to uint64[size] at
the last address. To be called once, while the batch that was numbered has its memory. May raise `MemoryError`.
"""


def number(engine: Engine, batch: NumberBatch) -> tuple[int, GroupRows | None]:
    """Number the words of ``batch``.

    Returns
    -------
    size
        How many distinct words there are.
    group_rows
        As `Numbered.group_rows`; None if the words were numbered otherwise than in parts.
    """
    return _Numbering(engine, batch).run()


class _Numbering:
    """One call: the batch in chunks, and the memory that its kernels work in."""

    def __init__(self, engine: Engine, given: NumberBatch) -> None:
        self._engine, self._n = engine, given.n
        self._program = engine.program(GROUPS)
        self._held: list[Buffer] = []
        self._batch = batch = PartBatch()
        ctypes.memmove(ctypes.addressof(batch), ctypes.addressof(given), ctypes.sizeof(NumberBatch))
        self._span: Span | None = None  # of the keys, if it is small
        if words := widen(engine, batch, None):
            self._held.append(words)
        self._width = given.key_bytes if given.key_bytes <= 2 else batch.key_bytes
        batch.report = self._memory(8 * REPORT_WORDS)
        self._given_up = ctypes.c_uint64.from_address(batch.report + UNPLACED_ELEMENTS)
        self._given_up.value = 0

    def run(self) -> tuple[int, GroupRows | None]:
        """Number the words. Results are those of `number`."""
        way = self._way()
        batch = self._batch
        chunks = cut(self._n, way.chunks)
        if way.by_place and self._span:
            batch.low, batch.range = self._span
            places_bytes = 4 * chunks.count * (batch.range + 1)
            batch.key_places = self._memory(places_bytes)
            self._engine.fill(batch.key_places, 0, places_bytes)
        if not way.part_bits:
            return self._in_chunks(chunks), None
        size = self._in_parts(chunks, way.part_bits)
        return size, partial(self._group_rows, chunks) if batch.counts else None

    # ---- what the batch is like
    def _way(self) -> Way:
        """How to number the words. Notes the span of the keys if it is small."""
        n, threads = self._n, get_num_threads()
        if n < FEWEST_SAMPLED:
            self._batch.expected = n
            return Way(1)
        batch, width = self._batch, self._width
        sample = sample_rows(self._engine, batch.keys, batch.key_bytes, n, sampled_words(n))
        may = partial(may_be_places, n)
        self._span = small_span(self._engine, batch.keys, width, n, may, sample if width > 2 else None)
        size = None if self._span is None else self._span.size
        batch.expected = min(distinct_of_sample(sample, n), size or n)
        return way_of(n, batch.expected, size, threads)

    # ---- launches
    def _memory(self, nbytes: int) -> int:
        """Address of memory that lives as long as this call."""
        self._held.append(self._engine.allocate(max(1, nbytes)))
        return self._held[-1].ptr

    def _launch(self, entry: str, chunks: Chunks, skipped: int = 0, batch: PartBatch | None = None) -> None:
        """Run a kernel over all elements but some at the front; of another batch than the words, if one is given.

        Raises
        ------
        MemoryError
            If a thread has found no memory for its table.
        """
        self._program.run(entry, chunks, self._batch if batch is None else batch, self._n - skipped, None)
        if self._given_up.value:
            raise MemoryError("the system refused the memory for a table of the distinct keys of a batch")

    # ---- in chunks
    def _in_chunks(self, chunks: Chunks) -> int:
        """Number each chunk by a table of its own, and merge the tables."""
        batch, count = self._batch, chunks.count
        batch.sizes = self._memory(4 * (count + 1))
        self._launch("number", chunks)
        sizes = np.frombuffer((ctypes.c_uint32 * (count + 1)).from_address(batch.sizes), np.uint32)
        if count == 1:
            return int(sizes[0])
        batch.map, batch.bases = self._memory(4 * int(sizes[:count].sum(dtype=np.int64))), self._memory(4 * count)
        self._launch("merge", chunks)
        if batch.numbers:
            batch.renumbered_from = chunks.length
            self._launch("renumber", chunks, chunks.length)
        return int(sizes[count])

    # ---- in parts
    def _in_parts(self, chunks: Chunks, part_bits: int) -> int:
        """Bring the words to parts, number each part, and put the numbers in the order of the batch."""
        engine, batch, n = self._engine, self._batch, self._n
        count, parts = chunks.count, 1 << part_bits
        batch.part_bits, batch.expected = part_bits, expected_in_part(batch.expected, part_bits)
        batch.parts = self._memory(2 * n)
        batch.places_of = self._memory(4 * count * parts)
        self._launch("count_parts", chunks)
        elements = engine.to_host(batch.places_of, np.uint32, count * parts).reshape(count, parts)
        ends = np.cumsum(elements.T.ravel(), dtype=np.uint32).reshape(parts, count)
        places = np.ascontiguousarray((ends - elements.T).T)
        engine.upload(batch.places_of, places)
        batch.begins = self._memory(4 * (parts + 1))
        engine.upload(batch.begins, np.append(places[0], np.uint32(n)))

        batch.brought = self._memory(batch.key_bytes * n)
        self._launch("bring_to_parts", chunks)
        batch.seen, batch.distinct = self._memory(4 * count * parts), self._memory(4 * parts)
        engine.fill(batch.seen, 0, 4 * count * parts)
        engine.fill(batch.distinct, 0, 4 * parts)  # empty parts at the end are nobody's
        batch.tallies = self._memory(4 * n) if batch.counts else 0
        self._launch("number_parts", chunks)

        distinct = engine.to_host(batch.distinct, np.uint32, parts)
        size = int(distinct.sum(dtype=np.int64))
        batch.firsts_of = self._memory(4 * parts)
        engine.upload(batch.firsts_of, np.cumsum(distinct, dtype=np.uint32) - distinct)
        batch.bases = self._memory(4 * count)
        seen = engine.to_host(batch.seen, np.uint32, count * parts).reshape(count, parts)
        engine.upload(batch.bases, seen.sum(axis=1, dtype=np.uint32))
        batch.map = self._memory(4 * size)
        self._launch("replay", chunks)
        engine.fill(batch.bases, 0, 4 * count)
        if batch.counts:
            self._launch("count_keys", chunks)
        if batch.numbers and count > 1:
            self._launch("renumber", chunks)
        return size

    def _group_rows(self, chunks: Chunks, rows: int, row_bytes: int, out_rows: int, offsets: int) -> None:
        """As `Numbered.group_rows`."""
        batch, n = self._batch, self._n
        brought = PartBatch()
        ctypes.memmove(ctypes.addressof(brought), ctypes.addressof(batch), ctypes.sizeof(PartBatch))
        brought.keys, brought.key_bytes, brought.brought = rows, row_bytes, self._memory(row_bytes * n)
        self._launch("bring_to_parts", chunks, batch=brought)
        grouped = GroupBatch(rows_brought=brought.brought, row_bytes=row_bytes, out_rows=out_rows, offsets=offsets)
        ctypes.memmove(ctypes.addressof(grouped), ctypes.addressof(batch), ctypes.sizeof(PartBatch))
        self._launch("group_parts", chunks, batch=grouped)
