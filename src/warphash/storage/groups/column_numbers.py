"""Dense numbers for the distinct rows of columns on a CPU: rows become words, and `numbering` numbers the words.

A word has a digit for each column (``groups/cpu/pack.cuh``): the distance from the least integer of the column. That
takes columns of integers whose spans multiply to 2^63 at most. Of other columns, some are numbered first, and their
numbers are the digits:

1. Each column whose keys are no integers.
2. While the spans multiply to more than 2^63: the column with the largest span, if that is more than the number of
   rows; else as many columns from the front as fit into a word, which become one column.

The span of numbers is at most the number of rows, and so at most 2^31. Two such columns always fit into a word.

Why. Rows of more than 8 bytes are compared in memory, behind a table of fingerprints (`row_numbers`). 10 M pairs of
8 + 8 bytes, 1 M of them distinct, are numbered at 8 to 14 M a second; if they are packed, at 140 M; and at 30 M if both
columns are numbered first (two threads of an AMD EPYC, Zen 4).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import NamedTuple

from ...runtime.abi import Chunks, KeyColumn, PackBatch
from ...runtime.engine import Buffer, Engine
from ...runtime.source import GROUPS
from .numbering import Numbered, number
from .spans import Span, spans_of

__all__ = ["PackedWords", "key_column", "number_columns", "number_matrix", "pack_columns"]

_INTEGER_WIDTHS = (1, 2, 4, 8)
_MOST_WORDS = 1 << 63
_NUMBER_BYTES = 4

_WORD_BYTES = 8
"""Rows of up to so many bytes are words already."""

_MOST_PACKED = 16
"""Columns of a matrix that are packed where their spans allow that."""

_MOST_NUMBERED = 4
"""Columns of a matrix with many rows that are numbered one by one."""

_MANY_ROWS = 2 << 20
"""Rows from which on the table of fingerprints is larger than a cache."""


def key_column(address: int, width: int, stride: int | None = None) -> KeyColumn:
    """A column of keys of ``width`` bytes, of which one begins ``stride`` bytes behind the other; None: they adjoin."""
    return KeyColumn(integers=address, width=width, stride=width if stride is None else stride)


def number_columns(
    engine: Engine,
    columns: Sequence[KeyColumn],
    n: int,
    *,
    numbers: int = 0,
    number_bytes: int = 8,
    counts: bool = False,
) -> Numbered:
    """Number the distinct rows of columns densely, in the order of first appearance.

    Takes time in proportion to ``n`` and to the number of columns. Other threads may write to the columns meanwhile:
    the numbers are then of no use, but all memory stays whole.

    Parameters
    ----------
    engine
        Of the CPU.
    columns
        At least two, each of ``n`` keys that adjoin. Two keys are equal if all of their bytes are.
    n
        At least 1.
    numbers, number_bytes
        Address of room for an integer of 4 or 8 bytes for each row: the number of the row. 0 if not asked for.
    counts
        Whether to count the rows that are equal to each distinct one.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    asked = _Asked(numbers, number_bytes, counts)
    return _number(engine, _digits_of(engine, columns, n), n, asked)


def number_matrix(
    engine: Engine,
    items: int,
    width: int,
    shape: tuple[int, int],
    *,
    numbers: int = 0,
    number_bytes: int = 8,
    counts: bool = False,
) -> Numbered:
    """Number the distinct rows of a contiguous matrix of integers: as columns, or as they are if that takes less time.

    Parameters
    ----------
    items, width
        Address of the integers, of 1, 2, 4 or 8 bytes.
    shape
        At least one row.
    engine, numbers, number_bytes, counts
        As of `number_columns`.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    n, arity = shape
    row_bytes, asked = width * arity, _Asked(numbers, number_bytes, counts)
    if row_bytes > _WORD_BYTES and arity <= _MOST_PACKED:
        columns = [key_column(items + width * place, width, row_bytes) for place in range(arity)]
        digits = _digits_of(engine, columns, n)
        if _words_of(digits) <= _MOST_WORDS or (arity <= _MOST_NUMBERED and n >= _MANY_ROWS):
            return _number(engine, digits, n, asked)
    return number(engine, items, row_bytes, n, **asked._asdict())


def pack_columns(engine: Engine, columns: Sequence[KeyColumn], n: int) -> PackedWords:
    """Words that are equal exactly if the rows of columns are.

    Parameters and exceptions are those of `number_columns`.
    """
    return _pack(engine, _digits_of(engine, columns, n), n)


class _Asked(NamedTuple):
    """What a caller wants to know beside first positions: keywords of `numbering.number`."""

    numbers: int
    number_bytes: int
    counts: bool


class _Digits(NamedTuple):
    """A column of integers.

    Attributes
    ----------
    column
        Where they are.
    span
        Of the integers.
    memory
        What they lie in, if it is the engine's.
    """

    column: KeyColumn
    span: Span
    memory: Buffer | None = None


def _number(engine: Engine, digits: list[_Digits], n: int, asked: _Asked) -> Numbered:
    """Number rows of digits."""
    words = _pack(engine, digits, n)
    return number(engine, words.ptr, words.width, n, **asked._asdict())


def _pack(engine: Engine, digits: list[_Digits], n: int) -> PackedWords:
    """A word for each row of digits. Some columns of these are numbered first if they do not fit into a word."""
    while _words_of(digits) > _MOST_WORDS:
        at = max(range(len(digits)), key=lambda place: digits[place].span.size)
        behind = at + 1
        if digits[at].span.size <= n:
            at, behind = 0, max(k for k in range(1, len(digits)) if _words_of(digits[:k]) <= _MOST_WORDS)
        digits[at:behind] = [_numbered(engine, _packed(engine, digits[at:behind], n), n)]
    return _packed(engine, digits, n)


class PackedWords(NamedTuple):
    """Keys that adjoin, each of ``width`` bytes, and what they lie in, if it is the engine's."""

    ptr: int
    width: int
    memory: Buffer | None = None


def _words_of(digits: Sequence[_Digits]) -> int:
    """How many words there can be with these digits."""
    return math.prod(digit.span.size for digit in digits)


def _digits_of(engine: Engine, columns: Sequence[KeyColumn], n: int) -> list[_Digits]:
    """Columns as columns of integers: the numbers of their keys, where these are no integers."""
    integers = [column for column in columns if column.width in _INTEGER_WIDTHS]
    spans = iter(spans_of(engine, integers, n) if integers else ())
    return [
        _Digits(column, next(spans))
        if column.width in _INTEGER_WIDTHS
        else _numbered(engine, PackedWords(column.integers, column.width), n)
        for column in columns
    ]


def _numbered(engine: Engine, words: PackedWords, n: int) -> _Digits:
    """The numbers of words."""
    memory = engine.allocate(_NUMBER_BYTES * n)
    made = number(engine, words.ptr, words.width, n, numbers=memory.ptr, number_bytes=_NUMBER_BYTES)
    return _Digits(key_column(memory.ptr, _NUMBER_BYTES), Span(0, made.size), memory)


def _packed(engine: Engine, digits: Sequence[_Digits], n: int) -> PackedWords:
    """A word for each row."""
    first, *others = digits
    if not others and first.column.stride == first.column.width:
        return PackedWords(first.column.integers, first.column.width, first.memory)
    columns = (KeyColumn * len(digits))(*(digit.column for digit in digits))
    for column, digit in zip(columns, digits, strict=True):
        column.low, column.range = digit.span  # a range of 2^64, which is 0 here, is that of the first digit
    width = 4 if _words_of(digits) <= 1 << 32 else 8
    memory = engine.allocate(width * n)
    batch = PackBatch(n=n, columns=ctypes.addressof(columns), arity=len(columns), words=memory.ptr, word_bytes=width)
    engine.program(GROUPS).run("pack", Chunks(), batch, n, None)
    return PackedWords(memory.ptr, width, memory)
