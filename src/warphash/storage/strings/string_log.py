"""The strings of a table in a file: each with its number, in the log of the file (`FileLog`).

A record:
    4 bytes   CRC-32 of the rest
    4 bytes   which `StringTable` the strings are of
    8, 8      how many strings there are, n, and their bytes
    4n bytes  their numbers
    8n bytes  their lengths; -1 of a null
    ...       the strings, one behind the other

A commit adds the strings that got a number since the last one. Where strings were forgotten meanwhile, their numbers
may be those of others: then the log is written anew, with all strings (`StringTable.mark`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...errors import CorruptFile
from ...runtime.engine import Engine
from ..file_log import Bytes, LogPart
from .string_table import ROW_BYTES, Mark, StringTable, packed

__all__ = ["StringLog"]

_HEAD = struct.Struct("<IIQQ")
_CRC_BYTES = 4


class StringLog:
    """The `FileLog` of a table with strings.

    Parameters
    ----------
    engine
        Of the CPU.
    tables
        Of keys, of values, or of both, in this order.
    """

    def __init__(self, engine: Engine, tables: Sequence[StringTable]) -> None:
        self._engine, self._tables = engine, tables
        self._due: tuple[str, list[Mark]] | None = None
        self._confirmed: tuple[str, list[Mark]] | None = None

    def due(self, identity: str) -> LogPart:
        """As `FileLog.due`. A commit that was interrupted may have confirmed some of it: it is written again."""
        marks, known = [table.mark for table in self._tables], self._confirmed
        replaces = known is None or known[0] != identity or not all(map(_same_epoch, known[1], marks))
        self._due = identity, marks
        pieces: list[Bytes] = []
        for which, table in enumerate(self._tables):
            new = table.numbers_since(None if known is None or replaces else known[1][which])
            if len(new):
                pieces += self._record(which, table, new)
        return LogPart(pieces, replaces)

    def confirmed(self) -> None:
        self._confirmed = self._due

    def load(self, content: Bytes, identity: str) -> None:
        parts: list[list[tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], Bytes]]] = [[] for _ in self._tables]
        at = 0
        while at < len(content):
            rest = content[at:]
            if len(rest) < _HEAD.size:
                raise _damaged("ends within a record")
            crc, which, n, nbytes = _HEAD.unpack_from(rest.data)
            size = _HEAD.size + 12 * n + nbytes
            if which >= len(parts) or size > len(rest) or zlib.crc32(rest.data[_CRC_BYTES:size]) != crc:
                raise _damaged("has a record that does not match its checksum")
            numbers = rest[_HEAD.size :][: 4 * n].copy().view("<u4").astype(np.uint32)
            lengths = rest[_HEAD.size + 4 * n :][: 8 * n].copy().view("<i8").astype(np.int64)
            parts[which].append((numbers, lengths, rest[size - nbytes : size]))
            at += size
        for table, found in zip(self._tables, parts, strict=True):
            numbers, lengths, data = (
                np.concatenate([part[column] for part in found] or [np.empty(0, dtype)])
                for column, dtype in enumerate((np.uint32, np.int64, np.uint8))
            )
            table.restore(numbers, lengths, data)
        self._due = self._confirmed = identity, [table.mark for table in self._tables]

    def _record(self, which: int, table: StringTable, numbers: npt.NDArray[np.uint32]) -> list[Bytes]:
        n = len(numbers)
        rows = np.empty(n * ROW_BYTES, np.uint8)
        table.rows_of(numbers.ctypes.data, n, rows.ctypes.data)
        offsets, data, valid = packed(self._engine, rows.ctypes.data, n)
        lengths = np.diff(offsets)
        if valid is not None:
            lengths[~valid] = -1
        columns = (numbers.astype("<u4").view(np.uint8), lengths.astype("<i8").view(np.uint8), data)
        crc = zlib.crc32(_HEAD.pack(0, which, n, data.nbytes)[_CRC_BYTES:])
        for column in columns:
            crc = zlib.crc32(column.data, crc)
        return [np.frombuffer(_HEAD.pack(crc, which, n, data.nbytes), np.uint8), *columns]


def _same_epoch(mark: Mark, other: Mark) -> bool:
    return mark.epoch == other.epoch


def _damaged(how: str) -> CorruptFile:
    return CorruptFile(f"the log of strings {how}: the file of the table is damaged")
