"""Rows that flags select, packed, in the engine's memory: nothing that grows with their number goes to the host.

Arguments are buffers and not addresses, since their memory must live until the work on it is launched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.abi import CountBatch, Flag, RowBatch, StoredRows, WordBatch
from ..runtime.engine import Buffer, Engine
from ..runtime.memory import bytes_at
from ..runtime.source import ROWS

__all__ = ["count", "inverted", "numbers_of", "offsets_of_counts", "select", "starts_of_counts", "starts_of_flags"]

CHUNK = 256
"""Counts, or flags, that one element of a kernel sums up or lists (``kernels/rows/rows.cuh``, kChunk)."""


def count(engine: Engine, flags: Buffer, n: int, stream: Any = None) -> int:
    """How many of ``n`` flags, bytes of 0 or 1, are set. Waits."""
    if n == 0:
        return 0
    if engine.lanes == 1:
        return int(np.count_nonzero(bytes_at(flags.ptr, n)))
    counts = _widened(engine, flags, n, stream)
    while n > 1:
        sums = _chunk_sums(engine, counts, n, stream)
        n = -(-n // CHUNK)
        counts = _narrowed(engine, sums, n, stream)
    return int(engine.to_host(counts.ptr, np.uint32, 1, stream)[0])


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
    engine.program(ROWS).run("flag_sums", StoredRows(), batch, chunks, stream)
    begins, total = _starts_of_sums(engine, sums, chunks, stream)
    numbers = engine.allocate(4 * max(1, total), stream)
    batch.starts, batch.list = begins.ptr, numbers.ptr
    engine.program(ROWS).run("list_chunks", StoredRows(), batch, chunks if total else 0, stream)
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
    return starts_of_counts(engine, _widened(engine, flags, n, stream), n, stream)


def _starts_on_host(engine: Engine, flags: Buffer, n: int) -> tuple[Buffer, int]:
    """As `starts_of_flags`, by NumPy: 1 M flags take 0.9 ms, and the kernels 3.0 with one thread."""
    starts = engine.allocate(8 * max(1, n))
    words, given = bytes_at(starts.ptr, 8 * n).view(np.uint64), bytes_at(flags.ptr, n)
    np.cumsum(given, out=words)
    total = int(words[-1]) if n else 0
    words -= given
    return starts, total


def starts_of_counts(engine: Engine, counts: Buffer, n: int, stream: Any) -> tuple[Buffer, int]:
    """The sum of the counts before each of them, uint64[n]; and the sum of all."""
    chunks = -(-n // CHUNK)
    begins, total = _starts_of_sums(engine, _chunk_sums(engine, counts, n, stream), chunks, stream)
    starts = engine.allocate(8 * n, stream)
    batch = CountBatch(n=chunks, counts=counts.ptr, length=n, starts=begins.ptr, offsets=starts.ptr)
    engine.program(ROWS).run("offsets", StoredRows(), batch, chunks, stream)
    return starts, total


def _starts_of_sums(engine: Engine, sums: Buffer, chunks: int, stream: Any) -> tuple[Buffer, int]:
    """The sum of the chunks before each of them, uint64, perhaps in place of ``sums``; and the sum of all."""
    if chunks > 1:
        return starts_of_counts(engine, _narrowed(engine, sums, chunks, stream), chunks, stream)
    total = int(engine.to_host(sums.ptr, np.uint64, 1, stream)[0])
    engine.fill(sums.ptr, 0, 8, stream)
    return sums, total


def offsets_of_counts(engine: Engine, counts: int, n: int, out: int, stream: Any) -> int:
    """The sum of the counts before each of ``n``, and of all: uint64[n + 1] at ``out``; the latter. Waits.

    Counts are uint32, and their sum may be larger.
    """
    rows = engine.program(ROWS)
    chunks = -(-n // CHUNK)
    sums = engine.allocate(8 * max(1, chunks), stream)
    batch = CountBatch(n=chunks, counts=counts, length=n, sums=sums.ptr)
    rows.run("chunk_sums", StoredRows(), batch, chunks, stream)
    starts = np.zeros(chunks + 1, np.uint64)
    np.cumsum(engine.to_host(sums.ptr, np.uint64, chunks, stream), out=starts[1:])
    held = engine.from_host(starts, stream)
    batch = CountBatch(n=chunks, counts=counts, length=n, starts=held.ptr, offsets=out)
    rows.run("offsets", StoredRows(), batch, chunks, stream)
    engine.copy(out + 8 * n, held.ptr + 8 * chunks, 8, stream)
    return int(starts[-1])


def _chunk_sums(engine: Engine, counts: Buffer, n: int, stream: Any) -> Buffer:
    """The sums of `CHUNK` counts each, uint64."""
    chunks = -(-n // CHUNK)
    sums = engine.allocate(8 * chunks, stream)
    batch = CountBatch(n=chunks, counts=counts.ptr, length=n, sums=sums.ptr)
    engine.program(ROWS).run("chunk_sums", StoredRows(), batch, chunks, stream)
    return sums


def _narrowed(engine: Engine, words: Buffer, n: int, stream: Any) -> Buffer:
    """Words of 64 bits as words of 32 bits."""
    narrow = engine.allocate(4 * n, stream)
    batch = WordBatch(n=n, rows=narrow.ptr, row_bytes=4, words=words.ptr, word_bytes=8)
    engine.program(ROWS).run("narrow", StoredRows(), batch, n, stream)
    return narrow


def _widened(engine: Engine, flags: Buffer, n: int, stream: Any) -> Buffer:
    """Bytes as words of 32 bits."""
    counts = engine.allocate(4 * n, stream)
    batch = WordBatch(n=n, rows=flags.ptr, row_bytes=1, words=counts.ptr, word_bytes=4)
    engine.program(ROWS).run("widen", StoredRows(), batch, n, stream)
    return counts
