"""Batches in the order of the owners of their keys, beside a Python implementation and NumPy's stable sort."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from support.refusals import refusing
from warphash.runtime.engine import Engine
from warphash.storage.owners.owner_order import SHARDS, OwnerOrder, run_starts, shards_of

__all__ = ["Held", "Rows", "check_order", "random_rows", "room", "shard_of", "shards"]

Rows = npt.NDArray[np.uint8]
"""Rows of bytes: uint8[n, width]."""

GUARD = 64
"""Bytes ahead of rows, and behind them, that nobody may write."""


def shard_of(key: bytes) -> int:
    """The shard of a key, in Python's integers."""
    hashed = 0x9E3779B97F4A7C15
    for first in range(0, len(key), 8):
        hashed ^= int.from_bytes(key[first : first + 8], "little")
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            hashed = (hashed ^ hashed >> 33) * factor % 2**64
        hashed ^= hashed >> 33
    return hashed >> 52


def random_rows(n: int, width: int) -> Rows:
    return np.random.default_rng(n + 1000 * width).integers(0, 256, (n, width), np.uint8)


class Held:
    """Rows in the memory of an engine, between guards, so many bytes behind an aligned address."""

    def __init__(self, engine: Engine, rows: Rows, skew: int = 0) -> None:
        self._engine, self._shape, self._ahead = engine, rows.shape, GUARD + skew
        whole = np.full(rows.size + self._ahead + GUARD, 0xA5, np.uint8)
        whole[self._ahead : self._ahead + rows.size] = rows.ravel()
        self._memory = engine.from_host(whole)
        self.ptr = self._memory.ptr + self._ahead

    def read(self) -> Rows:
        whole = self._engine.to_host(self._memory.ptr, np.uint8, self._memory.nbytes)
        behind = len(whole) - GUARD
        assert (whole[: self._ahead] == 0xA5).all() and (whole[behind:] == 0xA5).all(), "a guard is overwritten"
        return whole[self._ahead : behind].reshape(self._shape)


def room(engine: Engine, n: int, width: int, skew: int = 0) -> Held:
    return Held(engine, np.zeros((n, width), np.uint8), skew)


def shards(engine: Engine, keys: Rows, skew: int = 0) -> npt.NDArray[np.uint16]:
    held, out = Held(engine, keys, skew), room(engine, len(keys), 2)
    shards_of(engine, held.ptr, keys.shape[1], len(keys), out.ptr, None)
    return out.read().reshape(-1).view(np.uint16)


def check_order(
    engine: Engine,
    keys: Rows,
    ranks: int,
    columns: list[Rows],
    skew: int = 0,
    run_rows: int = 1,
    apart: Rows | None = None,
) -> None:
    """Bring keys and columns into the order of owners, and back, and compare with a stable sort.

    ``apart``: rows of keys apart.
    """
    n, width = keys.shape
    given = [Held(engine, column, skew) for column in (keys, *columns)]
    moved = [room(engine, n + ranks * run_rows, column.shape[1], skew) for column in (keys, *columns)]
    restored, first = ([room(engine, n, column.shape[1], skew) for column in (keys, *columns)] for _ in range(2))
    counts = room(engine, ranks, 8)
    words = None if apart is None else np.pad(apart, ((0, 0), (0, 8 - width))).view(np.uint64)[:, 0]
    order = OwnerOrder(engine, given[0].ptr, width, n, ranks, counts.ptr, None, run_rows=run_rows, apart=words)
    owners = shards(engine, keys).astype(np.int64) * ranks // SHARDS
    numbers = np.full(n, -1)
    for number, key in enumerate([] if apart is None else apart):
        numbers[(keys == key).all(axis=1)] = number
    # Rows: the first element of each key apart, ahead of the others of its rank, and all elements of no such key.
    is_first = np.zeros(n, bool)
    is_first[[np.flatnonzero(numbers == number)[0] for number in set(numbers) - {-1}]] = True
    has_row = is_first | (numbers < 0)
    rows = np.flatnonzero(has_row)
    rows = rows[np.lexsort((rows, np.where(numbers[rows] < 0, n, numbers[rows]), owners[rows]))]
    sizes = np.bincount(owners[rows], minlength=ranks)
    assert counts.read().reshape(-1).view(np.int64).tolist() == sizes.tolist()
    begins = np.array(run_starts(sizes.tolist(), run_rows)[:-1], np.int64)
    assert not (begins % run_rows).any()
    widths = [column.shape[1] for column in (keys, *columns)]
    with refusing(engine, 1, once=False) as refusals:
        order.move([(a.ptr, b.ptr, width) for a, b, width in zip(given, moved, widths, strict=True)], None)
        for targets, once in ((restored, False), (first, True)):
            triples = [(a.ptr, b.ptr, width) for a, b, width in zip(moved, targets, widths, strict=True)]
            order.restore(triples, None, [once] * len(widths))
    assert not refusals.asked
    places = np.arange(len(rows)) + np.repeat(begins - (sizes.cumsum() - sizes), sizes)
    source = np.arange(n)  # the element whose row each one gets
    for number in set(numbers) - {-1}:
        source[numbers == number] = np.flatnonzero(numbers == number)[0]
    for column, there, back, once_back in zip((keys, *columns), moved, restored, first, strict=True):
        assert (there.read()[places] == column[rows]).all()
        assert (back.read() == column[source]).all()
        assert (once_back.read() == column * has_row[:, None]).all()
