"""Rows that flags select, packed, in the engine's memory: nothing that grows with their number goes to the host.

Arguments are buffers and not addresses, since their memory must live until the work on it is launched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..runtime.abi import CountBatch, Flag, RowBatch, StoredRows, WordBatch
from ..runtime.engine import Buffer, Engine
from ..runtime.memory import bytes_at
from ..runtime.source import ROWS, SCANS

__all__ = [
    "count",
    "inverted",
    "numbers_of",
    "offsets_of_counts",
    "select",
    "starts_of_bits",
    "starts_of_counts",
    "starts_of_flags",
    "to_starts",
    "words_to_starts",
]

Needed = Callable[[int], bool]
"""Whether sums are needed, if so much is the sum of all."""

CHUNK = 256
"""Counts, or flags, that one element of a kernel sums up or lists (``kernels/rows/rows.cuh``, kChunk)."""

_CHUNK_LANES = 32
"""Of a GPU that sum up or list a chunk (``kernels/rows/gpu/scans.cuh``)."""


def count(engine: Engine, flags: Buffer, n: int, stream: Any = None) -> int:
    """How many of ``n`` flags, bytes of 0 or 1, are set. Waits."""
    if n == 0:
        return 0
    if engine.lanes == 1:
        return int(np.count_nonzero(bytes_at(flags.ptr, n)))
    chunks = -(-n // CHUNK)
    sums = engine.allocate(8 * chunks, stream)
    batch = CountBatch(n=chunks, length=n, sums=sums.ptr, flags=flags.ptr, listed_flag=Flag.CHANGED)
    _over_chunks(engine, "flag_sums", batch, stream)
    while chunks > 1:
        sums = _chunk_sums(engine, CountBatch(counts=sums.ptr, count_bytes=8, length=chunks), stream)
        chunks = -(-chunks // CHUNK)
    return int(engine.to_host(sums.ptr, np.uint64, 1, stream)[0])


def inverted(engine: Engine, flags: Buffer, n: int) -> Buffer:
    """The opposite of ``n`` flags: 1 where there is 0, and 0 where there is 1."""
    opposite, zeros = engine.allocate(max(1, n)), engine.allocate(8 * max(1, n))
    engine.fill(opposite.ptr, Flag.CHANGED, n)
    engine.fill(zeros.ptr, 0, 8 * max(1, n))
    # The kernel clears the flag of a row that differs from its stored row: here a flag, and the byte 0.
    batch = RowBatch(n=n, rows=flags.ptr, row_bytes=1, numbers=zeros.ptr, flags=opposite.ptr)
    if n:
        engine.program(ROWS).run("match", StoredRows(rows=zeros.ptr, stored_bytes=1), batch, n, None)
    return opposite


def select(engine: Engine, rows: Buffer, width: int, n: int, flags: Buffer, stream: Any = None) -> tuple[Buffer, int]:
    """Copies of those of ``n`` rows whose flag is set, in their order; and how many they are. Waits."""
    if n == 0:
        return engine.allocate(1, stream), 0
    places, selected = starts_of_flags(engine, flags, n, stream)
    packed = engine.allocate(max(1, selected * width), stream)
    batch = RowBatch(n=n, rows=rows.ptr, row_bytes=width, numbers=places.ptr, flags=flags.ptr)
    engine.program(ROWS).run("scatter", StoredRows(rows=packed.ptr, stored_bytes=width), batch, n, stream)
    return packed, selected


def numbers_of(engine: Engine, flags: int, n: int, flag: Flag, stream: Any = None) -> tuple[Buffer, int]:
    """Numbers of those of ``n`` elements that have a flag, ascending: uint32; and how many they are. Waits.

    Parameters
    ----------
    flags
        Address of the elements' flags, a byte each.
    n
        Elements, at least one.
    """
    if engine.lanes == 1:
        return _numbers_on_host(engine, flags, n, flag)
    chunks = -(-n // CHUNK)
    sums = engine.allocate(8 * chunks, stream)
    batch = CountBatch(n=chunks, length=n, sums=sums.ptr, flags=flags, listed_flag=flag)
    _over_chunks(engine, "flag_sums", batch, stream)
    total = words_to_starts(engine, sums, chunks, stream)
    numbers = engine.allocate(4 * max(1, total), stream)
    batch.starts, batch.list = sums.ptr, numbers.ptr
    if total:
        _over_chunks(engine, "list_chunks", batch, stream)
    return numbers, total


def _numbers_on_host(engine: Engine, flags: int, n: int, flag: Flag) -> tuple[Buffer, int]:
    """As `numbers_of`, by NumPy: of 2 M flags, of which 0.6 M are listed, it takes 1.7 ms, and the kernels 6.2."""
    places = np.flatnonzero(bytes_at(flags, n) == flag)
    numbers = engine.allocate(4 * max(1, len(places)))
    bytes_at(numbers.ptr, 4 * len(places)).view(np.uint32)[:] = places
    return numbers, len(places)


def starts_of_flags(engine: Engine, flags: Buffer, n: int, stream: Any = None) -> tuple[Buffer, int]:
    """How many of ``n`` flags before each of them are set, uint64[n]; and how many of all. Waits."""
    if engine.lanes == 1:
        return _starts_on_host(engine, flags, n)
    starts, counts = engine.allocate(8 * n, stream), _widened(engine, flags, n, stream)
    return starts, _starts(engine, _given(counts.ptr, n), starts.ptr, stream)


def _starts_on_host(engine: Engine, flags: Buffer, n: int) -> tuple[Buffer, int]:
    """As `starts_of_flags`, by NumPy: 1 M flags take 0.9 ms, and the kernels 3.0 with one thread."""
    starts = engine.allocate(8 * max(1, n))
    words, given = bytes_at(starts.ptr, 8 * n).view(np.uint64), bytes_at(flags.ptr, n)
    np.cumsum(given, out=words)
    total = int(words[-1]) if n else 0
    words -= given
    return starts, total


def starts_of_bits(engine: Engine, bits: Buffer, words: int, stream: Any) -> tuple[Buffer, int]:
    """The ones in the words of 32 bits before each word, uint32[words]; and the ones in all. Waits."""
    starts = engine.allocate(4 * words, stream)
    counts = CountBatch(counts=bits.ptr, count_bytes=4, of_bits=1, length=words, offset_bytes=4)
    return starts, _starts(engine, counts, starts.ptr, stream)


def to_starts(engine: Engine, counts: int, n: int, stream: Any) -> None:
    """Replace the counts at an address by the sum of those before each, uint32[n]. The sum of all is below 2**32."""
    given = CountBatch(counts=counts, count_bytes=4, length=n, offset_bytes=4)
    _starts(engine, given, counts, stream, waits=False)


def words_to_starts(
    engine: Engine, words: Buffer, n: int, stream: Any, *, waits: bool = True, needed: Needed | None = None
) -> int:
    """Replace ``n`` words by the sum of the words before each of them, uint64[n].

    Parameters
    ----------
    waits
        Whether to wait for the sum of all.
    needed
        Whether the caller needs the sums if this is the sum of all: otherwise the words have any content then.

    Returns
    -------
    int
        The sum of all; 0 if the caller does not wait.
    """
    if n > 1:
        given = CountBatch(counts=words.ptr, count_bytes=8, length=n, offset_bytes=8)
        return _starts(engine, given, words.ptr, stream, waits=waits, needed=needed)
    total = int(engine.to_host(words.ptr, np.uint64, 1, stream)[0]) if waits else 0
    engine.fill(words.ptr, 0, 8, stream)
    return total


def offsets_of_counts(engine: Engine, counts: int, n: int, out: int, stream: Any) -> int:
    """The sum of the counts before each of ``n``, and of all: uint64[n + 1] at ``out``; the latter. Waits.

    Counts are uint32, and their sum may be larger.
    """
    total = _starts(engine, _given(counts, n), out, stream) if n else 0
    engine.upload(out + 8 * n, np.array([total], np.uint64), stream)
    return total


def starts_of_counts(engine: Engine, counts: Buffer, n: int, stream: Any) -> Buffer:
    """The sum of the counts before each of ``n``, uint64[n]. Counts are uint32, and their sum may be larger."""
    starts = engine.allocate(8 * n, stream)
    _starts(engine, _given(counts.ptr, n), starts.ptr, stream, waits=False)
    return starts


def _given(counts: int, n: int) -> CountBatch:
    """Counts of 4 bytes, whose sums have 8."""
    return CountBatch(counts=counts, count_bytes=4, length=n, offset_bytes=8)


def _starts(
    engine: Engine, counts: CountBatch, out: int, stream: Any, *, waits: bool = True, needed: Needed | None = None
) -> int:
    """Write the sum of the counts before each of them to ``out``. The sum of all, as `words_to_starts`."""
    chunks = -(-counts.length // CHUNK)
    sums = _chunk_sums(engine, counts, stream)
    total = words_to_starts(engine, sums, chunks, stream, waits=waits, needed=needed)
    if needed and not needed(total):
        return total
    counts.n, counts.starts, counts.offsets = chunks, sums.ptr, out
    _over_chunks(engine, "offsets", counts, stream)
    return total


def _chunk_sums(engine: Engine, counts: CountBatch, stream: Any) -> Buffer:
    """The sums of `CHUNK` counts each, uint64."""
    counts.n = -(-counts.length // CHUNK)
    sums = engine.allocate(8 * counts.n, stream)
    counts.sums = sums.ptr
    _over_chunks(engine, "chunk_sums", counts, stream)
    return sums


def _over_chunks(engine: Engine, entry: str, batch: CountBatch, stream: Any) -> None:
    """Launch a kernel over ``batch.n`` chunks."""
    if engine.lanes == 1:
        engine.program(ROWS).run(entry, StoredRows(), batch, batch.n, stream)
    else:
        engine.program(SCANS).run(entry, StoredRows(), batch, batch.n * _CHUNK_LANES, stream)


def _widened(engine: Engine, flags: Buffer, n: int, stream: Any) -> Buffer:
    """Bytes as words of 32 bits."""
    counts = engine.allocate(4 * n, stream)
    batch = WordBatch(n=n, rows=flags.ptr, row_bytes=1, words=counts.ptr, word_bytes=4)
    engine.program(ROWS).run("widen", StoredRows(), batch, n, stream)
    return counts
