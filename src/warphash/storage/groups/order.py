"""A stable order of the elements of a batch by their numbers (``groups/order.cuh``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import OrderBatch, StoredRows, ValueLists, WordBatch
from ...runtime.engine import Buffer, Engine
from ...runtime.memory import bytes_at
from ...runtime.source import ROWS, VALUE_LISTS
from ...settings import get_num_threads
from ..selection import starts_of_counts
from .ways import chunks_of

__all__ = ["Digits", "digits_of", "ordered", "ordered_rows"]

_CHUNK_ON_GPU = 1 << 8
"""Elements of a chunk, which a lane of a GPU orders by itself."""

_DIGIT_BITS_ON_GPU = 8
_MOST_COUNTS = 1 << 22
"""Counts of all digits and chunks of a CPU: 16 MB, half of a third-level cache."""


class Digits(NamedTuple):
    """How a batch is ordered: chunks of so many elements, and the bits of a digit, the lowest first."""

    length: int
    bits: tuple[int, ...]


def digits_of(n: int, numbers: int, lanes: int, threads: int) -> Digits:
    """Choose chunks and digits for ``n`` elements with numbers below ``numbers``."""
    bits = max(1, (numbers - 1).bit_length())
    if lanes > 1:
        passes = -(-bits // _DIGIT_BITS_ON_GPU)
        return Digits(_CHUNK_ON_GPU, _shared(bits, passes))
    chunks = chunks_of(n, threads)
    passes = 1
    while chunks << -(-bits // passes) > _MOST_COUNTS:
        passes += 1
    return Digits(-(-n // chunks), _shared(bits, passes))


def _shared(bits: int, passes: int) -> tuple[int, ...]:
    return tuple(bits // passes + (number < bits % passes) for number in range(passes))


def ordered(engine: Engine, numbers: int, n: int, end: int, stream: Any) -> Buffer:
    """The elements of a batch in the order of their numbers, uint32[n]; those of one number in the order of the batch.

    Parameters
    ----------
    numbers
        Address of uint32[n].
    end
        All numbers are less.
    """
    return _order(engine, OrderBatch(numbers=numbers, elements=n), end, stream)


def ordered_rows(
    engine: Engine, numbers: int, n: int, end: int, rows: int, row_bytes: int, out_rows: int, stream: Any
) -> bool:
    """Bring rows of 4 or 8 bytes to ``out_rows`` in the order of their elements' numbers; False for another width."""
    if row_bytes not in (4, 8):
        return False
    batch = OrderBatch(numbers=numbers, elements=n, rows=rows, row_bytes=row_bytes, out_rows=out_rows)
    _order(engine, batch, end, stream)
    return True


def _order(engine: Engine, batch: OrderBatch, end: int, stream: Any) -> Buffer:
    n, program = batch.elements, engine.program(VALUE_LISTS)
    digits = digits_of(n, end, engine.lanes, get_num_threads())
    chunks = -(-n // digits.length)
    batch.length, batch.chunks, batch.n = digits.length, chunks, n if engine.lanes == 1 else chunks
    lists, shift, held = ValueLists(), 0, engine.allocate(1, stream)
    for place, bits in enumerate(digits.bits):
        is_last = place == len(digits.bits) - 1
        counters = engine.allocate(4 * (chunks << bits), stream)
        engine.fill(counters.ptr, 0, counters.nbytes, stream)
        batch.shift, batch.mask, batch.counters = shift, (1 << bits) - 1, counters.ptr
        batch.digit_stride, batch.chunk_stride = (1, 1 << bits) if engine.lanes == 1 else (chunks, 1)
        program.run("count_digits", lists, batch, batch.n, stream)
        if engine.lanes == 1:
            _to_places(bytes_at(counters.ptr, counters.nbytes).view(np.uint32).reshape(chunks, 1 << bits))
        else:
            starts, _ = starts_of_counts(engine, counters, chunks << bits, stream)
            narrow = WordBatch(n=chunks << bits, rows=counters.ptr, row_bytes=4, words=starts.ptr, word_bytes=8)
            engine.program(ROWS).run("narrow", StoredRows(), narrow, narrow.n, stream)
        following = engine.allocate(1 if is_last and batch.rows else 4 * n, stream)
        batch.out_order = 0 if is_last and batch.rows else following.ptr
        program.run("order_by_digit", lists, batch, batch.n, stream)
        batch.order, held = batch.out_order, following
        shift += bits
    return held


def _to_places(counts: npt.NDArray[np.uint32]) -> None:
    """Turn the counts of each chunk and digit into places, in host memory."""
    firsts = counts.sum(axis=0, dtype=np.uint32)
    np.subtract(np.cumsum(firsts, dtype=np.uint32), firsts, out=firsts)
    for chunk in counts:
        behind = firsts + chunk
        chunk[:] = firsts
        firsts = behind
