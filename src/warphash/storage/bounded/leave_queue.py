"""The keys that leave a bounded table next, in order: chosen once, for several batches.

To choose the keys of least rank takes a pass over all keys. Under "lru" and "fifo" a key that comes or is used gets a
rank above all others. So the keys of least rank stay so until they are used. A choice therefore takes more keys than
have to leave, and queues the others with the ranks that they have. The next keys to leave are those at the head of the
queue that still have these ranks. A key that was used, has left or was erased is passed over: it has another rank, or
none. A key that came again has a new rank.

The queue is a hint that nobody has to keep up to date. Only ranks that a caller gives end it (`BoundedRows.update`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import RowBatch, StoredRows
from ...runtime.engine import Buffer, Engine
from ...runtime.source import ROWS
from ..wide_rows import WideRows
from .least import keys_of_least_rank

__all__ = ["LeaveQueue", "first_of", "queue_of"]

_LEAST_SHARE, _MOST_SHARE, _BATCHES = 4, 2, 4
"""A quarter of the keys is queued, or what four such batches need; half of the keys at most."""

_NO_RANK = (1 << 64) - 1
"""What is read for a key that is not there. No clock gets so far."""


class LeaveQueue(NamedTuple):
    """Keys in the order in which they leave.

    Attributes
    ----------
    keys
        Packed keys.
    ranks
        The rank of each when it was queued, in ascending order, uint64.
    at
        The first one that may still leave.
    """

    keys: Buffer
    ranks: npt.NDArray[np.uint64]
    at: int = 0


def queue_of(engine: Engine, rows: WideRows, wanted: int, stream: Any) -> LeaveQueue:
    """Queue the keys of least rank of a table: ``wanted`` of them, 0 < wanted < size, or more. Waits.

    Raises
    ------
    MemoryError
        If there is no memory for the number and the rank of each row. Nothing has changed.
    """
    size = rows.store.size
    n = max(wanted, size // _LEAST_SHARE, min(_BATCHES * wanted, size // _MOST_SHARE))
    ranks, numbers = engine.allocate(8 * size, stream), engine.allocate(8 * size, stream)
    rows.scan_numbers(size, numbers.ptr, stream, ranks.ptr)
    least, _ = keys_of_least_rank(engine, numbers, 8, ranks, size, n, stream)
    rows.ranks_at(least.ptr, n, ranks.ptr, stream)
    ranks_there = engine.to_host(ranks.ptr, np.uint64, n, stream)
    order = np.argsort(ranks_there)
    ascending = engine.from_host(engine.to_host(least.ptr, np.uint64, n, stream)[order], stream)
    keys = engine.allocate(n * rows.key_bytes, stream)
    rows.keys_at(ascending.ptr, n, keys.ptr, stream)
    return LeaveQueue(keys, ranks_there[order])


def first_of(
    engine: Engine, rows: WideRows, queue: LeaveQueue, wanted: int, stream: Any
) -> tuple[Buffer, int, LeaveQueue] | None:
    """Copies of the next ``wanted`` keys, the greatest of their ranks, and the queue that begins with them. Waits.

    None if the queue has fewer. The keys stay in the queue, which passes over them once they have left.

    Raises
    ------
    MemoryError
        If there is no memory for the copies. Nothing has changed.
    """
    width, left = rows.key_bytes, len(queue.ranks) - queue.at
    if left < wanted:
        return None
    for n in (min(2 * wanted, left), left):  # behind the keys that left last are those that leave now
        held = rows.ranks_of(queue.keys.ptr + queue.at * width, n, _NO_RANK, stream)
        (places,) = np.nonzero(held == queue.ranks[queue.at : queue.at + n])
        if len(places) >= wanted:
            break
    else:
        return None
    places = places[:wanted] + queue.at
    numbers = engine.from_host(places.astype(np.uint64), stream)
    made = engine.allocate(wanted * width, stream)
    gather = RowBatch(n=wanted, row_bytes=width, numbers=numbers.ptr, out_rows=made.ptr)
    engine.program(ROWS).run("gather", StoredRows(rows=queue.keys.ptr, stored_bytes=width), gather, wanted, stream)
    return made, int(queue.ranks[places[-1]]), queue._replace(at=int(places[0]))
