"""A stable order of the elements of a batch by their numbers (``groups/order.cuh``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import ChunkOrderBatch, TileOrderBatch, ValueLists
from ...runtime.engine import Buffer, Engine
from ...runtime.memory import bytes_at
from ...runtime.source import VALUE_LISTS
from ...settings import get_num_threads
from ..new_memory import filled
from ..scratch import starts_of
from ..selection import to_starts
from .ways import chunks_of

__all__ = ["DIGIT_BITS", "ORDER_TILE", "ordered", "ordered_rows"]

ORDER_TILE = 4096
"""Elements that a block of a GPU orders (``kOrderTile``)."""

DIGIT_BITS = 8
"""Of a digit on a GPU, at most (``kDigitBits``)."""

_MOST_COUNTS = 1 << 22
"""Counts of all digits and chunks of a CPU: 16 MB, half of a third-level cache."""


class _Rows(NamedTuple):
    """Rows to bring in the order of their elements' numbers: addresses, and the bytes of a row, 4 or 8."""

    rows: int
    row_bytes: int
    out_rows: int


def ordered(engine: Engine, numbers: int, n: int, end: int, stream: Any) -> Buffer:
    """The elements of a batch in the order of their numbers, uint32[n]; those of one number in the order of the batch.

    Parameters
    ----------
    numbers
        Address of uint32[n].
    end
        All numbers are less.
    """
    return _order(engine, numbers, n, end, None, stream)


def ordered_rows(
    engine: Engine, numbers: int, n: int, end: int, rows: int, row_bytes: int, out_rows: int, stream: Any
) -> bool:
    """Bring rows of 4 or 8 bytes to ``out_rows`` in the order of their elements' numbers; False for another width."""
    if row_bytes not in (4, 8):
        return False
    _order(engine, numbers, n, end, _Rows(rows, row_bytes, out_rows), stream)
    return True


def _order(engine: Engine, numbers: int, n: int, end: int, rows: _Rows | None, stream: Any) -> Buffer:
    on = _order_on_cpu if engine.lanes == 1 else _order_on_gpu
    return on(engine, numbers, n, end, rows, stream)


def _digits(end: int, passes: int) -> tuple[int, ...]:
    """The bits of each digit, the lowest first, of numbers below ``end``."""
    bits = _bits_of(end)
    return tuple(bits // passes + (number < bits % passes) for number in range(passes))


def _bits_of(end: int) -> int:
    return max(1, (end - 1).bit_length())


def _order_on_gpu(engine: Engine, numbers: int, n: int, end: int, rows: _Rows | None, stream: Any) -> Buffer:
    """As `ordered`, tile by tile. Rows move with the numbers, and the buffer means nothing then.

    A pass reads the copy of the pass before, and writes the other one of two: of payloads, which are rows or elements,
    and of numbers. The last pass writes to the first copy, so an order begins where the memory does; or to the place of
    the rows.
    """
    tiles, width = -(-n // ORDER_TILE), rows.row_bytes if rows else 4
    digits = _digits(end, -(-_bits_of(end) // DIGIT_BITS))
    passes, counters_bytes = len(digits), 4 * (tiles << max(digits)) if tiles > 1 else 0
    first = 0 if rows and passes < 3 else width * n, 4 * n * (passes > 2)
    second = width * n * (passes > 1), 4 * n * (passes > 1)
    *starts, end_bytes = starts_of((*first, *second, counters_bytes))
    memory = engine.allocate(max(1, end_bytes), stream)
    *copies, counters = (memory.ptr + at for at in starts)
    batch = TileOrderBatch(n=n, numbers=numbers, chunks=tiles, payloads=rows.rows if rows else 0)
    batch.counters = counters if tiles > 1 else 0
    for left, bits in zip(reversed(range(passes)), digits, strict=True):  # passes behind this one
        batch.mask = (1 << bits) - 1
        if tiles > 1:
            engine.program(VALUE_LISTS).run_blocks("count_digits", ValueLists(), batch, tiles, stream)
            to_starts(engine, counters, tiles << bits, stream)
        payloads, moved_numbers = copies[2 * (left % 2) :][:2]
        batch.out_numbers = moved_numbers if left else 0
        batch.out_payloads = rows.out_rows if rows and not left else payloads
        engine.program(VALUE_LISTS).run_blocks(f"order_by_digit{width}", ValueLists(), batch, tiles, stream)
        batch.numbers, batch.payloads = batch.out_numbers, batch.out_payloads
        batch.shift += bits
    return memory


def _order_on_cpu(engine: Engine, numbers: int, n: int, end: int, rows: _Rows | None, stream: Any) -> Buffer:
    """As `ordered`, chunk by chunk. Rows go to their places with the last digit; the buffer means nothing then."""
    program, lists = engine.program(VALUE_LISTS), ValueLists()
    bits, passes, chunks = _bits_of(end), 1, chunks_of(n, get_num_threads())
    while chunks << -(-bits // passes) > _MOST_COUNTS:
        passes += 1
    length = -(-n // chunks)
    batch = ChunkOrderBatch(n=n, numbers=numbers, length=length, chunks=-(-n // length))
    if rows:
        batch.rows, batch.row_bytes, batch.out_rows = rows
    digits, held = _digits(end, passes), engine.allocate(1, stream)
    for place, bits in enumerate(digits):
        is_last = place == len(digits) - 1
        counters = filled(engine, 4 * (batch.chunks << bits), stream)
        batch.mask, batch.counters = (1 << bits) - 1, counters.ptr
        program.run("count_digits", lists, batch, n, stream)
        _to_places(bytes_at(counters.ptr, counters.nbytes).view(np.uint32).reshape(batch.chunks, 1 << bits))
        following = engine.allocate(1 if is_last and rows else 4 * n, stream)
        batch.out_order = 0 if is_last and rows else following.ptr
        program.run("order_by_digit", lists, batch, n, stream)
        batch.order, held = batch.out_order, following
        batch.shift += bits
    return held


def _to_places(counts: npt.NDArray[np.uint32]) -> None:
    """Turn the counts of each chunk and digit into places, in host memory."""
    firsts = counts.sum(axis=0, dtype=np.uint32)
    np.subtract(np.cumsum(firsts, dtype=np.uint32), firsts, out=firsts)
    for chunk in counts:
        behind = firsts + chunk
        chunk[:] = firsts
        firsts = behind
