"""Records: what groups of elements keep of values.

A record has a word of 64 bits for each accumulator. On a CPU (``group_records/cpu/records.cuh``), `accumulated` makes
the records of elements whose numbers are known, and `word_records` numbers keys and makes their records in one pass.
`device_records` is for a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...runtime.abi import Accumulation, Accumulator, RecordBatch, ValueColumn, ValueType
from ...runtime.engine import Buffer, Engine
from ...runtime.source import GROUP_RECORDS
from ...settings import get_num_threads
from .spans import cut
from .ways import stretches_of

__all__ = ["WORD_BYTES", "Column", "Record", "Word", "accumulated"]

WORD_BYTES = 8
"""Of a record's word."""

_IN_ORDER = frozenset(
    (Accumulation.FLOAT_SUM, Accumulation.FLOAT_PRODUCT, Accumulation.SQUARES, Accumulation.DISTANCES)
)
"""What depends on the order in which values come."""


class Column(NamedTuple):
    """Values, one for each element.

    Attributes
    ----------
    values, type
        Address of packed values, and their type.
    valid
        Address of a byte for each value, 0 for a null; 0 if there are no nulls.
    """

    values: int
    type: ValueType
    valid: int = 0

    @property
    def width(self) -> int:
        """Bytes of a value."""
        return _WIDTHS[self.type]


_WIDTHS = dict(zip(ValueType, (1, 2, 4, 8, 1, 2, 4, 8, 4, 8), strict=True))


class Word(NamedTuple):
    """A word of a record.

    Attributes
    ----------
    operation
        Minima and maxima are float64 of floating-point values, else integers of 64 bits; so are sums and products.
    column
        The place of its column in `Record.columns`; None for a count of all elements.
    centers
        Of `Accumulation.SQUARES` and `DISTANCES`: address of what is subtracted of the values of each group, float64.
    """

    operation: Accumulation
    column: int | None
    centers: int = 0


class Record(NamedTuple):
    """What groups keep."""

    columns: tuple[Column, ...]
    words: tuple[Word, ...]

    @property
    def is_in_order(self) -> bool:
        """Whether a word depends on the order in which values come."""
        return any(word.operation in _IN_ORDER for word in self.words)

    def centered(self, centers: int) -> Record:
        """The same, with `Word.centers` at an address."""
        return self._replace(words=tuple(word._replace(centers=centers) for word in self.words))

    def stretches(self, n: int, groups: int, chunks: int) -> int:
        """In how many stretches to accumulate ``n`` elements of so many groups, if threads work on so many chunks.

        The number of chunks counts for words alone that do not depend on the order of values.
        """
        return stretches_of(n, groups) if self.is_in_order else chunks


class RecordMemory:
    """The descriptions that kernels read, and the words that they answer.

    Parameters
    ----------
    batch
        Is given the addresses.
    """

    def __init__(self, record: Record, batch: RecordBatch) -> None:
        self.columns = (ValueColumn * max(1, len(record.columns)))(
            *(ValueColumn(values=column.values, type=column.type, valid=column.valid) for column in record.columns)
        )
        self.accumulators = (Accumulator * max(1, len(record.words)))(
            *(Accumulator(word.operation, word.column or 0, word.column is None, word.centers) for word in record.words)
        )
        batch.columns, batch.accumulators = ctypes.addressof(self.columns), ctypes.addressof(self.accumulators)
        batch.width = len(record.words)

    def answers(self, engine: Engine, groups: int) -> tuple[Buffer, ...]:
        """Memory for a word of each group, for all accumulators."""
        made = tuple(engine.allocate(max(1, WORD_BYTES * groups)) for _ in range(len(self.accumulators)))
        self.write_to([buffer.ptr for buffer in made])
        return made

    def write_to(self, outs: Sequence[int]) -> None:
        """Have the words of each accumulator written to an address."""
        for accumulator, out in zip(self.accumulators, outs, strict=True):
            accumulator.out = out

    def sent(self, engine: Engine, batch: RecordBatch, stream: Any) -> tuple[Buffer, ...]:
        """Copies of the descriptions on a GPU, of which ``batch`` is given the addresses."""
        columns, accumulators = (
            engine.from_host(np.frombuffer(memoryview(described), np.uint8), stream)
            for described in (self.columns, self.accumulators)
        )
        batch.columns, batch.accumulators = columns.ptr, accumulators.ptr
        return columns, accumulators


def accumulated(
    engine: Engine, numbers: int, number_bytes: int, shape: tuple[int, int], record: Record
) -> tuple[Buffer, ...]:
    """Accumulate values by the numbers of their elements.

    Parameters
    ----------
    engine
        Of the CPU.
    numbers, number_bytes
        Address of a number of 4 or 8 bytes for each element. Elements with a number that no group has, such as -1, are
        left out.
    shape
        How many elements and groups there are, at least one element.

    Returns
    -------
    words
        For each word of the record, 64 bits for each group.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    n, groups = shape
    most = get_num_threads() if stretches_of(n, groups) > 1 else 1
    stretches = cut(n, record.stretches(n, groups, most))
    batch = RecordBatch(n=n, numbers=numbers, number_bytes=number_bytes, room=groups + 1, expected=groups)
    batch.stretch_length, batch.stretches = stretches.length, stretches.count
    memory = RecordMemory(record, batch)
    cells = engine.allocate(WORD_BYTES * stretches.count * batch.room * batch.width)
    batch.cells = cells.ptr
    answers = memory.answers(engine, groups)
    program = engine.program(GROUP_RECORDS)
    program.run("accumulate", stretches, batch, n, None)
    program.run("merge_records", stretches, batch, n, None)
    return answers
