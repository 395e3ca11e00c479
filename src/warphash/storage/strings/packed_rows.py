"""Rows of several columns as strings of bytes, which are equal exactly if the rows are.

Layout of a row
    1 byte     for each column, if columns may have nulls: 1 for a value, 0 for a null
    8 bytes    for each string but the last: its length
    items      of fixed widths, one behind the other; zeros for a null
    strings    one behind the other

Two rows with equal bytes have equal flags, so they have equal lengths, and each string begins where its like does. The
length of the last string follows from that of the row. Everything but the strings is the head of the row, which has one
width in all rows of a table. So a row without strings is its head.

The heads are made by NumPy, a column at a time. Heads and strings are brought together, and apart, by the kernel that
copies strings one behind the other (`string_table.packed`): the pieces of all rows are strings to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.engine import Engine
from .string_table import NULL_LENGTH, packed

__all__ = ["Fixed", "RowLayout", "Strings"]

_LENGTH_BYTES = 8

_TOGETHER = 1 << 14
"""Rows that are made together: their pieces stay in a cache."""

Bytes = npt.NDArray[np.uint8]
Valid = npt.NDArray[np.bool_] | None
Rows = npt.NDArray[np.uint64]


class Fixed(NamedTuple):
    """A column of a fixed width: the bytes of its items, uint8[n, width], zeros for nulls; and which are no nulls."""

    items: Bytes
    valid: Valid


class Strings(NamedTuple):
    """A column of strings: the address and the length of each, uint64[n, 2]; which are no nulls; their memory."""

    rows: Rows
    valid: Valid
    owner: object


class RowLayout:
    """Where the columns of a row lie.

    Parameters
    ----------
    widths
        Bytes of an item of each column; 0 for strings.
    has_nulls
        Rows say which of their items are nulls.
    """

    def __init__(self, widths: Sequence[int], *, has_nulls: bool) -> None:
        self._widths, self._flags = widths, len(widths) if has_nulls else 0
        texts = sum(not width for width in widths)
        self._strings = texts
        self._measured = max(0, texts - 1)  # strings whose length is in the head
        first = self._flags + _LENGTH_BYTES * self._measured
        *starts, end = accumulate(widths, initial=first)
        self._starts: list[int] = starts
        self.head_bytes: int = end
        """Bytes of a row without its strings."""

    # ---- rows of columns
    def heads(self, columns: Sequence[Fixed | Strings], n: int) -> Bytes:
        """The heads of ``n`` rows, uint8[n, head_bytes]."""
        heads = np.empty((n, self.head_bytes), np.uint8)
        for number, column in enumerate(columns[: self._flags]):
            heads[:, number] = 1 if column.valid is None else column.valid
        strings = [column for column in columns if isinstance(column, Strings)]
        for number, column in enumerate(strings[: self._measured]):
            first = self._flags + _LENGTH_BYTES * number
            lengths = _lengths(column)
            heads[:, first : first + _LENGTH_BYTES] = lengths.view(np.uint8).reshape(n, _LENGTH_BYTES)
        for start, width, column in zip(self._starts, self._widths, columns, strict=True):
            if isinstance(column, Fixed):
                heads[:, start : start + width] = column.items
        return heads

    def join(
        self, engine: Engine, columns: Sequence[Fixed | Strings], n: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """The rows, one behind the other: ``offsets[n + 1]``, and their bytes."""
        offsets, parts, at = np.zeros(n + 1, np.int64), [], 0
        for first in range(0, n, _TOGETHER):
            some = [_some(column, slice(first, first + _TOGETHER)) for column in columns]
            ends, data = self._join_some(engine, some, min(_TOGETHER, n - first))
            np.add(ends[1:], at, out=offsets[first + 1 : first + _TOGETHER + 1])
            parts.append(data)
            at += len(data)
        return offsets, np.concatenate(parts) if parts else np.empty(0, np.uint8)

    def _join_some(
        self, engine: Engine, columns: Sequence[Fixed | Strings], n: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """As `join`, of rows whose pieces stay in a cache."""
        heads, strings = self.heads(columns, n), [column for column in columns if isinstance(column, Strings)]
        pieces = np.empty((n, 1 + len(strings), 2), np.uint64)
        pieces[:, 0, 0] = _addresses(heads)
        pieces[:, 0, 1] = self.head_bytes
        for number, column in enumerate(strings, 1):
            pieces[:, number, 0] = column.rows[:, 0]
            pieces[:, number, 1] = _lengths(column)
        offsets, data, _ = packed(engine, pieces.ctypes.data, n * (1 + len(strings)))
        return offsets[:: 1 + len(strings)], data

    def one(self, items: Sequence[bytes]) -> bytes:
        """One row without nulls, of the bytes of its items."""
        pairs = list(zip(items, self._widths, strict=True))
        strings = [item for item, width in pairs if not width]
        lengths = [len(item).to_bytes(_LENGTH_BYTES, "little") for item in strings[: self._measured]]
        return b"".join((b"\1" * self._flags, *lengths, *(item for item, width in pairs if width), *strings))

    # ---- columns of rows
    def fixed(self, heads: Bytes) -> list[Fixed | None]:
        """The columns of fixed widths in the heads of rows, and None for strings."""
        return [
            Fixed(np.ascontiguousarray(heads[:, start : start + width]), self._valid(heads, number)) if width else None
            for number, (start, width) in enumerate(zip(self._starts, self._widths, strict=True))
        ]

    def split(self, engine: Engine, offsets: npt.NDArray[np.int64], data: Bytes) -> list[Fixed | Strings]:
        """The columns of rows that `join` made. The strings lie in ``data``."""
        n = len(offsets) - 1
        starts = offsets[:-1].astype(np.uint64) + np.uint64(data.ctypes.data)
        at = np.empty((n, 2), np.uint64)
        at[:, 0], at[:, 1] = starts, self.head_bytes
        heads = packed(engine, at.ctypes.data, n)[1].reshape(n, self.head_bytes)
        made: list[Fixed | Strings] = []
        begin, number = starts + np.uint64(self.head_bytes), 0
        ends = offsets[1:].astype(np.uint64) + np.uint64(data.ctypes.data)
        for column, fixed in enumerate(self.fixed(heads)):
            if fixed is not None:
                made.append(fixed)
                continue
            rows = np.empty((n, 2), np.uint64)
            rows[:, 0] = begin
            if number < self._measured:
                first = self._flags + _LENGTH_BYTES * number
                measured = np.ascontiguousarray(heads[:, first : first + _LENGTH_BYTES])
                rows[:, 1] = measured.view(np.uint64).reshape(n)
            else:
                rows[:, 1] = ends - begin
            begin = begin + rows[:, 1]
            number += 1
            valid = self._valid(heads, column)
            if valid is not None:
                rows[~valid, 1] = NULL_LENGTH
            made.append(Strings(rows, valid, data))
        return made

    def _valid(self, heads: Bytes, column: int) -> Valid:
        if not self._flags:
            return None
        valid: npt.NDArray[np.bool_] = heads[:, column] != 0
        return None if valid.all() else valid


def _some(column: Fixed | Strings, rows: slice) -> Fixed | Strings:
    valid = None if column.valid is None else column.valid[rows]
    if isinstance(column, Strings):
        return column._replace(rows=column.rows[rows], valid=valid)
    return Fixed(column.items[rows], valid)


def _lengths(column: Strings) -> npt.NDArray[np.uint64]:
    """The length of each string, 0 of a null."""
    lengths = np.ascontiguousarray(column.rows[:, 1])
    return lengths if column.valid is None else np.where(column.valid, lengths, np.uint64(0))


def _addresses(heads: Bytes) -> npt.NDArray[np.uint64]:
    made = np.arange(len(heads), dtype=np.uint64) * np.uint64(heads.shape[1])
    return made + np.uint64(heads.ctypes.data)
