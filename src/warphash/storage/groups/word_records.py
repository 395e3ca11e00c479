"""Records of the groups of words, in the pass that numbers the words, on a CPU (``group_records/cpu/records.cuh``)."""

from __future__ import annotations

from typing import NamedTuple

from ...runtime.abi import Chunks, NumberBatch, PartBatch, RecordBatch
from ...runtime.engine import Buffer, Engine
from ...runtime.source import GROUP_RECORDS
from .records import WORD_BYTES, Record, RecordMemory
from .spans import cut
from .ways import Way, room_of
from .word_numbers import Words

__all__ = ["Recorded", "record"]


class Recorded(NamedTuple):
    """How many distinct words there are, and what their groups keep: 64 bits for each word of a record and group."""

    size: int
    words: tuple[Buffer, ...]


def record(engine: Engine, batch: NumberBatch, kept: Record) -> Recorded | None:
    """Number the words of ``batch``, which asks for no numbers, and accumulate values.

    None if the values have to be accumulated by numbers (`records.accumulated`): because the sums of so many elements
    and groups are made in an order that is none of the one pass, or because there are more words than a sample told.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    return _Recording(engine, batch, kept).run()


class _Recording:
    """One call."""

    def __init__(self, engine: Engine, given: NumberBatch, kept: Record) -> None:
        self._batch = batch = RecordBatch()
        self._words, self._kept = Words(engine, batch, given), kept
        self._memory = RecordMemory(kept, batch)

    def run(self) -> Recorded | None:
        """As `record`."""
        way = self._words.way(WORD_BYTES * self._batch.width)
        return self._in_parts(way) if way.part_bits else self._in_chunks(way)

    def _launch(self, entry: str, chunks: Chunks) -> None:
        self._words.launch(entry, chunks, spec=GROUP_RECORDS)

    def _answers(self, size: int) -> tuple[Buffer, ...]:
        return self._memory.answers(self._words.engine, size)

    def _in_chunks(self, way: Way) -> Recorded | None:
        """Number each chunk by a table of its own, whose stretches have records of their own."""
        words, batch, n = self._words, self._batch, self._words.n
        stretches = self._kept.stretches(n, batch.expected, way.chunks)
        if stretches < way.chunks:
            return None
        cuts = cut(n, stretches)
        chunks = Chunks(length=cuts.length * -(-cuts.count // way.chunks), salt=cuts.salt)
        chunks.count = -(-n // chunks.length)
        words.place_keys(way, chunks)
        batch.stretch_length, batch.stretches, batch.room = cuts.length, cuts.count, room_of(n, batch.expected)
        batch.stretch_sizes = words.memory(4 * cuts.count)
        batch.cells = words.memory(WORD_BYTES * cuts.count * batch.room * batch.width)
        batch.sizes = words.memory(4 * (chunks.count + 1))
        self._launch("record_chunks", chunks)
        if words.chunk_sizes(chunks)[: chunks.count].max() > batch.room:
            return None
        size = words.merge_chunks(chunks)
        if self._kept.stretches(n, size, stretches) != stretches:
            return None
        answers, batch.expected = self._answers(size), size
        self._launch("merge_records", chunks)
        return Recorded(size, answers)

    def _in_parts(self, way: Way) -> Recorded | None:
        """Bring words and values to parts, number each part, and bring its records in the order of the words."""
        words, batch, n = self._words, self._batch, self._words.n
        if self._kept.stretches(n, batch.expected, 1) > 1:
            return None
        chunks = cut(n, way.chunks)
        words.to_parts(chunks, way.part_bits)
        for column, brought in zip(self._kept.columns, self._memory.columns, strict=False):
            brought.brought = self._bring(chunks, column.values, column.width)
            brought.brought_valid = self._bring(chunks, column.valid, 1) if column.valid else 0
        batch.cells, batch.room = words.memory(WORD_BYTES * n * batch.width), n
        batch.records_of, batch.filled = words.memory(4 << way.part_bits), words.memory(8)
        words.engine.fill(batch.filled, 0, 8)
        bits_bytes = 4 * (n // 32 + 1 + (1 << way.part_bits))
        batch.is_first = words.memory(bits_bytes)
        words.engine.fill(batch.is_first, 0, bits_bytes)
        self._launch("record_parts", chunks)
        size = words.set_bases(chunks)
        if self._kept.stretches(n, size, 1) > 1:
            return None
        answers = self._answers(size)
        self._launch("replay_firsts", chunks)
        return Recorded(size, answers)

    def _bring(self, chunks: Chunks, values: int, width: int) -> int:
        """Address of values in the order of parts."""
        words, brought = self._words, PartBatch.from_buffer_copy(self._batch)
        memory = words.memory(width * words.n)
        brought.keys, brought.key_bytes, brought.brought = values, width, memory
        words.launch("bring_values", chunks, batch=brought, spec=GROUP_RECORDS)
        return memory
