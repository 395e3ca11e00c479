"""Time a batch on its way into the order of the ranks that own its keys, and back.

A figure is the median of several calls, by events of a GPU. Each result is compared with NumPy's stable sort. Bytes are
those that a kernel must touch: keys and their owners, a byte each, to count; owners, and rows read and written, to move
a column of keys or of both keys and values, and to restore answers: values and flags of a byte.

Usage: python scripts/time_owners.py [--device cpu] [--n 50000000] [--ranks 2,4,8] [--types int32 int64]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warphash.lab.bench.runner import Lab
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import Buffer
from warphash.storage.owners.owner_order import SHARDS, OwnerOrder

Array = npt.NDArray[Any]

OWNER_BYTES, FLAG_BYTES = 1, 1


class Row(NamedTuple):
    """What is timed: its name, the bytes that it touches for each key, the call, and its wrong results."""

    name: str
    key_bytes: int
    run: Callable[[], Any]
    wrong: Callable[[], int]


def owners_of(keys: Array, ranks: int) -> Array:
    """The owners of keys of 4 or 8 bytes (``owners/owner.cuh``), by NumPy."""
    hashed = keys.view(f"u{keys.itemsize}").astype(np.uint64) ^ np.uint64(0x9E3779B97F4A7C15)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashed = (hashed ^ hashed >> np.uint64(33)) * np.uint64(factor)
    shards = (hashed >> np.uint64(52)).astype(np.uint32)
    return (shards * np.uint32(ranks) // np.uint32(SHARDS)).astype(np.uint8)


class Batch:
    """Random keys with values on a device, and their ways into another order."""

    def __init__(self, device: str, dtype: str, n: int, ranks: int) -> None:
        self._engine, self._n, self._ranks = engine_for(device), n, ranks
        bound = np.iinfo(dtype)
        self._keys = np.random.default_rng(1).integers(bound.min, bound.max, n, dtype)
        self._values, self._flags = np.arange(n, dtype=dtype), (np.arange(n) % 3 == 0).astype(np.uint8)
        self._owners = owners_of(self._keys, ranks)
        self._order = np.argsort(self._owners, kind="stable")
        self._width = self._keys.itemsize
        self._given = [self._engine.from_host(column) for column in (self._keys, self._values, self._flags)]
        self._made = [self._engine.from_host(np.zeros_like(column)) for column in (self._keys, self._values)]
        self._counts = self._engine.allocate(8 * ranks)
        self._owner_order = self._counted()

    def rows(self) -> Iterator[Row]:
        keys, values, _ = self._given
        made_keys, made_values = self._made
        width, to_move = self._width, [(self._keys, made_keys)]
        yield Row("count", width + OWNER_BYTES, self._count, self._wrong_counts)
        columns = [(keys.ptr, made_keys.ptr, width)]
        yield Row("move keys", OWNER_BYTES + 2 * width, self._moves(columns), self._unlike_moved(to_move))
        columns, to_move = [*columns, (values.ptr, made_values.ptr, width)], [*to_move, (self._values, made_values)]
        yield Row("move both", 2 * OWNER_BYTES + 4 * width, self._moves(columns), self._unlike_moved(to_move))
        held = [self._engine.from_host(column[self._order]) for column in (self._values, self._flags)]
        back = [self._engine.from_host(np.zeros_like(column)) for column in (self._values, self._flags)]
        answers = [(held[0].ptr, back[0].ptr, width), (held[1].ptr, back[1].ptr, FLAG_BYTES)]
        right = [(self._values, back[0]), (self._flags, back[1])]
        restore = self._owner_order.restore
        yield Row(
            "restore values",
            OWNER_BYTES + 2 * width,
            lambda: restore(answers[:1], None),
            lambda: self._unlike(right[:1]),
        )
        yield Row(
            "restore both",
            2 * OWNER_BYTES + 2 * width + 2 * FLAG_BYTES,
            lambda: restore(answers, None),
            lambda: self._unlike(right),
        )

    def _counted(self) -> OwnerOrder:
        keys, *_ = self._given
        return OwnerOrder(self._engine, keys.ptr, self._width, self._n, self._ranks, self._counts.ptr, None)

    def _count(self) -> None:
        self._owner_order = self._counted()

    def _moves(self, columns: list[tuple[int, int, int]]) -> Callable[[], None]:
        return lambda: self._owner_order.move(columns, None)

    def _wrong_counts(self) -> int:
        counts = self._engine.to_host(self._counts.ptr, np.int64, self._ranks)
        return int((counts != np.bincount(self._owners, minlength=self._ranks)).sum())

    def _unlike_moved(self, columns: list[tuple[Array, Buffer]]) -> Callable[[], int]:
        return lambda: self._unlike([(column[self._order], made) for column, made in columns])

    def _unlike(self, columns: list[tuple[Array, Buffer]]) -> int:
        """Rows of the device that differ from those of the host, of all columns."""
        held = ((right, self._engine.to_host(made.ptr, right.dtype, len(right))) for right, made in columns)
        return sum(int((right != there).sum()) for right, there in held)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a batch on its way into the order of its owners, and back.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--n", type=int, default=50_000_000, help="keys of a batch")
    parser.add_argument("--ranks", default="2,4,8", help="numbers of owners, with commas between")
    parser.add_argument("--types", nargs="+", choices=("int32", "int64"), default=["int32", "int64"])
    parser.add_argument("--repetitions", type=int, default=9)
    given = parser.parse_args()
    lab = Lab(given.device, given.repetitions)
    print(f"{lab.machine}; {given.n:,} keys; medians (of the fastest)")
    for dtype in given.types:
        for ranks in map(int, given.ranks.split(",")):
            for row in Batch(given.device, dtype, given.n, ranks).rows():
                seconds = lab.timed(row.run)
                wrong = row.wrong()
                median, best = statistics.median(seconds), min(seconds)
                rate, moved = given.n / median / 1e9, given.n * row.key_bytes / median / 1e9
                print(
                    f"{dtype}, {ranks} ranks, {row.name}: {1e3 * median:.3f} ms ({1e3 * best:.3f}), {rate:.3f} G/s, "
                    f"{moved:,.0f} GB/s of {len(seconds)}, {wrong} wrong",
                    flush=True,
                )
                if wrong:
                    raise SystemExit(f"{row.name}: a rate with {wrong:,} wrong results is not a rate")


if __name__ == "__main__":
    main()
