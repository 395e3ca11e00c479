"""Numbers for keys of up to 8 bytes on a CPU (``groups/cpu/number.cuh``, ``groups/cpu/parts.cuh``)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from ...runtime.abi import (
    REPORT_WORDS,
    UNPLACED_ELEMENTS,
    Chunks,
    GroupBatch,
    NumberBatch,
    PartBatch,
)
from ...runtime.engine import Buffer, Engine, KernelSpec
from ...runtime.source import GROUPS
from ...settings import get_num_threads
from ..batch_order.sample import sample_rows
from ..estimate import distinct_of_sample
from .spans import Span, cut, small_span
from .ways import FEWEST_SAMPLED, Way, expected_in_part, may_be_places, sampled_words, way_of
from .words import widen

__all__ = ["GroupRows", "Words", "number"]

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
    words = Words(engine, PartBatch(), batch)
    way = words.way()
    chunks = cut(batch.n, way.chunks)
    words.place_keys(way, chunks)
    if not way.part_bits:
        return words.number_chunks(chunks), None
    size = words.number_parts(chunks, way.part_bits)
    return size, partial(words.group_rows, chunks) if batch.counts else None


class Words:
    """The words of one call, in chunks or in parts, and the memory that its kernels work in.

    Parameters
    ----------
    batch
        What kernels are given. It becomes the same as ``given``, with words for narrower keys.
    """

    def __init__(self, engine: Engine, batch: PartBatch, given: NumberBatch) -> None:
        self.engine, self.n, self.batch = engine, given.n, batch
        self._held: list[Buffer] = []
        ctypes.memmove(ctypes.addressof(batch), ctypes.addressof(given), ctypes.sizeof(NumberBatch))
        self._span: Span | None = None  # of the keys, if it is small
        if words := widen(engine, batch, None):
            self._held.append(words)
        self._width = given.key_bytes if given.key_bytes <= 2 else batch.key_bytes
        batch.report = self.memory(8 * REPORT_WORDS)
        self._given_up = ctypes.c_uint64.from_address(batch.report + UNPLACED_ELEMENTS)
        self._given_up.value = 0

    # ---- what the batch is like
    def way(self, record_bytes: int = 0) -> Way:
        """How to number the words, if so much is kept for each. Notes the span of the keys if it is small."""
        n, threads = self.n, get_num_threads()
        if n < FEWEST_SAMPLED:
            self.batch.expected = n
            return Way(1)
        batch, width = self.batch, self._width
        sample = sample_rows(self.engine, batch.keys, batch.key_bytes, n, sampled_words(n))
        may = partial(may_be_places, n)
        self._span = small_span(self.engine, batch.keys, width, n, may, sample if width > 2 else None)
        size = None if self._span is None else self._span.size
        batch.expected = min(distinct_of_sample(sample, n), size or n)
        return way_of(n, batch.expected, size, threads, record_bytes)

    def place_keys(self, way: Way, chunks: Chunks) -> None:
        """Make a place for each word that can be, in each chunk, if that is the way."""
        if way.by_place and self._span:
            batch = self.batch
            batch.low, batch.range = self._span
            places_bytes = 4 * chunks.count * (batch.range + 1)
            batch.key_places = self.memory(places_bytes)
            self.engine.fill(batch.key_places, 0, places_bytes)

    # ---- launches
    def memory(self, nbytes: int) -> int:
        """Address of memory that lives as long as this call."""
        self._held.append(self.engine.allocate(max(1, nbytes)))
        return self._held[-1].ptr

    def launch(
        self, entry: str, chunks: Chunks, skipped: int = 0, batch: PartBatch | None = None, spec: KernelSpec = GROUPS
    ) -> None:
        """Run a kernel over all elements but some at the front; of another batch than the words, if one is given.

        Raises
        ------
        MemoryError
            If a thread has found no memory for its table.
        """
        self.engine.program(spec).run(entry, chunks, self.batch if batch is None else batch, self.n - skipped, None)
        if self._given_up.value:
            raise MemoryError("the system refused the memory for a table of the distinct keys of a batch")

    # ---- in chunks
    def number_chunks(self, chunks: Chunks) -> int:
        """Number each chunk by a table of its own, and merge the tables. How many words there are."""
        batch, count = self.batch, chunks.count
        batch.sizes = self.memory(4 * (count + 1))
        self.launch("number", chunks)
        size = self.merge_chunks(chunks)
        if count > 1 and batch.numbers:
            batch.renumbered_from = chunks.length
            self.launch("renumber", chunks, chunks.length)
        return size

    def chunk_sizes(self, chunks: Chunks) -> npt.NDArray[np.uint32]:
        """How many words each chunk has, and behind these, room for how many there are."""
        count = chunks.count + 1
        return np.frombuffer((ctypes.c_uint32 * count).from_address(self.batch.sizes), np.uint32)

    def merge_chunks(self, chunks: Chunks) -> int:
        """Give the words of all chunks their numbers, once each chunk is numbered. How many words there are."""
        batch, count, sizes = self.batch, chunks.count, self.chunk_sizes(chunks)
        if count == 1:
            return int(sizes[0])
        batch.map, batch.bases = self.memory(4 * int(sizes[:count].sum(dtype=np.int64))), self.memory(4 * count)
        self.launch("merge", chunks)
        return int(sizes[count])

    # ---- in parts
    def to_parts(self, chunks: Chunks, part_bits: int) -> None:
        """Bring the words to parts, and make memory for what is found out about these."""
        engine, batch, n = self.engine, self.batch, self.n
        count, parts = chunks.count, 1 << part_bits
        batch.part_bits, batch.expected = part_bits, expected_in_part(batch.expected, part_bits)
        batch.parts = self.memory(2 * n)
        batch.places_of = self.memory(4 * count * parts)
        self.launch("count_parts", chunks)
        elements = engine.to_host(batch.places_of, np.uint32, count * parts).reshape(count, parts)
        ends = np.cumsum(elements.T.ravel(), dtype=np.uint32).reshape(parts, count)
        places = np.ascontiguousarray((ends - elements.T).T)
        engine.upload(batch.places_of, places)
        batch.begins = self.memory(4 * (parts + 1))
        engine.upload(batch.begins, np.append(places[0], np.uint32(n)))

        batch.brought = self.memory(batch.key_bytes * n)
        self.launch("bring_to_parts", chunks)
        batch.seen, batch.distinct = self.memory(4 * count * parts), self.memory(4 * parts)
        engine.fill(batch.seen, 0, 4 * count * parts)
        engine.fill(batch.distinct, 0, 4 * parts)  # empty parts at the end are nobody's

    def set_bases(self, chunks: Chunks) -> int:
        """Sum up how many words were new in each chunk of each part. How many there are in all."""
        engine, batch = self.engine, self.batch
        count, parts = chunks.count, 1 << batch.part_bits
        batch.bases = self.memory(4 * count)
        seen = engine.to_host(batch.seen, np.uint32, count * parts).reshape(count, parts)
        engine.upload(batch.bases, seen.sum(axis=1, dtype=np.uint32))
        return int(engine.to_host(batch.distinct, np.uint32, parts).sum(dtype=np.int64))

    def number_parts(self, chunks: Chunks, part_bits: int) -> int:
        """Number each part, and put the numbers in the order of the batch. How many words there are."""
        engine, batch, n = self.engine, self.batch, self.n
        count, parts = chunks.count, 1 << part_bits
        self.to_parts(chunks, part_bits)
        batch.tallies = self.memory(4 * n) if batch.counts else 0
        self.launch("number_parts", chunks)

        size = self.set_bases(chunks)
        distinct = engine.to_host(batch.distinct, np.uint32, parts)
        batch.firsts_of = self.memory(4 * parts)
        engine.upload(batch.firsts_of, np.cumsum(distinct, dtype=np.uint32) - distinct)
        batch.map = self.memory(4 * size)
        self.launch("replay", chunks)
        engine.fill(batch.bases, 0, 4 * count)
        if batch.counts:
            self.launch("count_keys", chunks)
        if batch.numbers and count > 1:
            self.launch("renumber", chunks)
        return size

    def group_rows(self, chunks: Chunks, rows: int, row_bytes: int, out_rows: int, offsets: int) -> None:
        """As `Numbered.group_rows`."""
        batch, n = self.batch, self.n
        brought = PartBatch()
        ctypes.memmove(ctypes.addressof(brought), ctypes.addressof(batch), ctypes.sizeof(PartBatch))
        brought.keys, brought.key_bytes, brought.brought = rows, row_bytes, self.memory(row_bytes * n)
        self.launch("bring_to_parts", chunks, batch=brought)
        grouped = GroupBatch(rows_brought=brought.brought, row_bytes=row_bytes, out_rows=out_rows, offsets=offsets)
        ctypes.memmove(ctypes.addressof(grouped), ctypes.addressof(batch), ctypes.sizeof(PartBatch))
        self.launch("group_parts", chunks, batch=grouped)
