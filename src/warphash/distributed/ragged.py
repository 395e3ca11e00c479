"""Rows of any length in memory for messages: strings, bytes, and keys of several columns with strings among them.

In a table, such a row says where a string is (`arrays.strings.ROW`). An address means nothing to another rank. So a
column of such rows travels as two: the length of each row, of a fixed width, and the bytes of all rows, one behind the
other. Where the bytes of a span of rows lie follows from the lengths. Nothing is padded.

Owners of rows of any length, part of the format of checkpoints: a hash of the bytes, of 64 bits, with the constants
below (``hash_of`` in ``kernels/strings/cpu/strings.cuh``), is the key whose shard ``kernels/owners/owner.cuh`` names.
So the owner of a row depends on its bytes alone.

Tables with such rows are on a CPU, and so are the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.strings import NULL_LENGTH, ROW, StringArray
from ..runtime.engine import Engine
from ..storage.strings.string_table import (
    NUMBER_BYTES,
    ROW_BYTES,
    StringTable,
    bytes_at,
    copy_strings,
    hashes_of,
    string_offsets,
)
from .channel import Channel
from .route import Column, Span

__all__ = [
    "HASH_BYTES",
    "LENGTH_BYTES",
    "Ragged",
    "hashed_rows",
    "numbered_rows",
    "ragged_of",
    "received_offsets",
    "write_hashes",
    "write_rows",
]

LENGTH_BYTES = HASH_BYTES = 8

_SECRETS = (
    0x6A09E667F3BCC908,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
    0xA54FF53A5F1D36F1,
    0x510E527FADE682D1,
    0x9B05688C2B3E6C1F,
)
"""The first 64 bits behind the points of the square roots of 2, 3, 5, 7, 11 and 13."""

Offsets = npt.NDArray[np.int64]


class Ragged(NamedTuple):
    """Rows of any length.

    Attributes
    ----------
    lengths
        Of each row, as in a `ROW`.
    data
        Their bytes, one row behind the other.
    offsets
        int64[n + 1]: where each begins, and where the last one ends.
    """

    lengths: Column
    data: Column
    offsets: Offsets

    def strings(self, text: bool) -> StringArray:
        """The rows as strings, or as bytes, in this memory."""
        n = len(self.offsets) - 1
        valid = _as_words(self.lengths, n) != np.uint64(NULL_LENGTH)
        data = self.data.rows(0, int(self.offsets[-1])).numpy()
        return StringArray(self.offsets, data, text, None if valid.all() else valid)

    def spans(self, spans: Sequence[Span]) -> list[Span]:
        """Where the bytes of spans of rows lie."""
        return [(int(self.offsets[begin]), int(self.offsets[end])) for begin, end in spans]


def ragged_of(channel: Channel, engine: Engine, rows: int, n: int) -> Ragged:
    """The ``n`` rows at an address, in memory for messages."""
    lengths = Column(channel.memory(n * LENGTH_BYTES), LENGTH_BYTES)
    _as_words(lengths, n)[:] = _rows_at(rows, n)["length"]
    offsets = string_offsets(rows, n)
    data = Column(channel.memory(int(offsets[-1])), 1)
    copy_strings(engine, rows, offsets, data.at)
    return Ragged(lengths, data, offsets)


def received_offsets(lengths: Column, n: int) -> Offsets:
    """The offsets of ``n`` rows whose lengths were received."""
    sizes, offsets = _as_words(lengths, n), np.zeros(n + 1, np.int64)
    np.cumsum(np.where(sizes == np.uint64(NULL_LENGTH), np.uint64(0), sizes), out=offsets[1:].view(np.uint64))
    return offsets


def write_rows(lengths: Column, data: Column, n: int, out: int) -> None:
    """Write ``n`` rows that lead to bytes which were received: what `ragged_of` had at its address."""
    rows = _rows_at(out, n)
    rows["length"] = _as_words(lengths, n)
    rows["address"] = received_offsets(lengths, n)[:-1].view(np.uint64) + np.uint64(data.at)


def hashed_rows(channel: Channel, engine: Engine, rows: int, n: int) -> Column:
    """The hashes of ``n`` rows at an address, by which their owners are named."""
    made = Column(channel.memory(n * HASH_BYTES), HASH_BYTES)
    write_hashes(engine, rows, n, made.at)
    return made


def write_hashes(engine: Engine, rows: int, n: int, out: int) -> None:
    """Write the hashes of ``n`` rows at an address, uint64."""
    hashes_of(engine, rows, n, _SECRETS, out)


def numbered_rows(channel: Channel, engine: Engine, rows: int, n: int) -> Column:
    """A number of four bytes for each of ``n`` rows at an address: equal rows have one number, and others have others.

    Raises
    ------
    MemoryError, TableFull
        If there is no room for the numbers, or there are more rows than numbers.
    """
    made = Column(channel.memory(n * NUMBER_BYTES), NUMBER_BYTES)
    StringTable(engine, 0, borrows=True).intern(rows, n, made.at)
    return made


def _rows_at(address: int, n: int) -> npt.NDArray[Any]:
    return bytes_at(address, n, ROW_BYTES).view(ROW).reshape(n)


def _as_words(lengths: Column, n: int) -> npt.NDArray[np.uint64]:
    words: npt.NDArray[np.uint64] = lengths.rows(0, n).numpy().view(np.uint64)
    return words
