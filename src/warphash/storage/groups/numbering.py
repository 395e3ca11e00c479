"""Dense numbers for the distinct keys of a batch: 0, 1, 2, … in the order in which the keys first appear.

The numbers are those of a sequential walk, on every engine and for any number of threads. No table is left behind.
A CPU numbers keys of up to 8 bytes in chunks and parts (`word_numbers`). Wider keys, and all keys of a GPU, go to cells
that keep the first element of each key (`row_numbers`; `cells` has those of words and of rows).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...runtime.abi import NumberBatch
from ...runtime.engine import Buffer, Engine
from . import row_numbers, word_numbers, word_records
from .records import Record, accumulated
from .word_numbers import GroupRows
from .words import LONGEST_WORD

__all__ = ["Numbered", "Recorded", "number", "record"]

_NUMBER_BYTES = 4


class Numbered(NamedTuple):
    """The distinct keys of a batch, by their numbers.

    Attributes
    ----------
    size
        How many keys there are.
    firsts
        The element in which each key first appears, uint32[size], ascending. The buffer may be longer.
    counts
        How many elements each key has, uint32[size], if asked for. The buffer may be longer.
    group_rows
        Groups rows by the work that numbered the keys, whose memory it keeps. None if not asked for, or if that
        would not pay.
    """

    size: int
    firsts: Buffer
    counts: Buffer | None
    group_rows: GroupRows | None = None


def number(
    engine: Engine,
    keys: int,
    width: int,
    n: int,
    *,
    numbers: int = 0,
    number_bytes: int = 8,
    counts: bool = False,
    grouped: bool = False,
    stream: Any = None,
) -> Numbered:
    """Number the distinct keys of a batch densely, in the order of first appearance. Waits.

    Takes time in proportion to ``n``. On a CPU, other threads may write to the keys meanwhile: the numbers are then of
    no use, but all memory stays whole.

    Parameters
    ----------
    keys, width, n
        Address of ``n`` packed rows of ``width`` bytes, at most 2**31. Two keys are equal if all of their bytes are.
    numbers, number_bytes
        Address of room for an integer of 4 or 8 bytes for each element: the number of its key. 0 if not asked for.
    counts
        Whether to count the elements of each key.
    grouped
        Whether rows of the elements are to be brought to their keys (`Numbered.group_rows`). Asks for counts, too.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    firsts = engine.allocate(max(1, 4 * n), stream)
    counted = engine.allocate(max(1, 4 * n), stream) if counts else None
    if n == 0:
        return Numbered(0, firsts, counted)
    batch = NumberBatch(
        n=n,
        keys=keys,
        key_bytes=width,
        numbers=numbers,
        number_bytes=number_bytes,
        firsts=firsts.ptr,
        counts=0 if counted is None else counted.ptr,
    )
    if engine.lanes > 1 or width > LONGEST_WORD:
        return Numbered(row_numbers.number(engine, batch, stream), firsts, counted)
    size, group_rows = word_numbers.number(engine, batch)
    return Numbered(size, firsts, counted, group_rows if grouped else None)


class Recorded(NamedTuple):
    """The distinct keys of a batch, by their numbers, and what their groups keep.

    Attributes
    ----------
    size, firsts
        As of `Numbered`.
    words
        For each word of the record, 64 bits for each key.
    """

    size: int
    firsts: Buffer
    words: tuple[Buffer, ...]


def record(engine: Engine, keys: int, width: int, n: int, kept: Record) -> Recorded:
    """Number the distinct keys of a batch, and accumulate the values of each.

    Parameters
    ----------
    engine
        Of the CPU.
    keys, width, n
        As of `number`; at least one row.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    if width <= LONGEST_WORD:
        firsts = engine.allocate(4 * n)
        batch = NumberBatch(n=n, keys=keys, key_bytes=width, firsts=firsts.ptr)
        if made := word_records.record(engine, batch, kept):
            return Recorded(made.size, firsts, made.words)
    numbers = engine.allocate(_NUMBER_BYTES * n)
    numbered = number(engine, keys, width, n, numbers=numbers.ptr, number_bytes=_NUMBER_BYTES)
    words = accumulated(engine, numbers.ptr, _NUMBER_BYTES, (n, numbered.size), kept)
    return Recorded(numbered.size, numbered.firsts, words)
