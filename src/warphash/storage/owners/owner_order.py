"""A batch in the order of the ranks that own its keys, and answers back (``owners/owner.cuh``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError, ShapeError
from ...runtime.abi import (
    FEW_OWNERS,
    MOST_APART,
    MOST_OWNERS,
    OWNER_ROUND,
    SHARD_BITS,
    OwnerBatch,
    OwnerMoveBatch,
    OwnerSegments,
)
from ...runtime.engine import Engine
from ...runtime.source import OWNERS
from ...settings import get_num_threads
from ..elements import all_pieces
from ..groups.spans import cut
from ..groups.ways import chunks_of
from ..scratch import starts_of

__all__ = ["MOST_APART", "SHARDS", "OwnerOrder", "run_starts", "shards_of"]

SHARDS = 1 << SHARD_BITS
"""Shards that keys fall into. Rank r of R owns the shards s with ``s * R // SHARDS == r``."""

_MOST_ELEMENTS = (1 << 32) - 1
_LAUNCH_ELEMENTS = 1 << 30
_MOST_SEGMENTS = 1 << 14
"""Of a batch on a GPU: a block sums up the counts of a rank."""

_FEWEST_ROUNDS, _RANKS_OF_ROUND = 2, 16
"""Of a segment on a GPU: its rounds, and the most ranks for each of them. So the counts of all ranks, 4 bytes each, are
at most a quarter of a byte for each element."""

_LANES = 32
"""Of a warp, which has a segment."""

_KEY_WORDS = (4, 8)
"""Bytes of keys that kernels read whole."""

_LONGEST_ROW_WORD = 16
"""Bytes that a kernel copies at once."""

Column = tuple[int, int, int]
"""Addresses of packed rows and of room for them, and the bytes of a row."""


def shards_of(engine: Engine, keys: int, width: int, n: int, out: int, stream: Any) -> None:
    """Write the shards of keys. Does not wait on a GPU.

    Parameters
    ----------
    keys, width, n
        Address of ``n`` packed keys of ``width`` bytes.
    out
        Address of uint16[n].
    """
    program = engine.program(OWNERS)
    for first, count, _, _ in all_pieces(n, _LAUNCH_ELEMENTS):
        if count:
            batch = _batch_of(keys + first * width, width, count)
            batch.shards = out + 2 * first
            program.run("shards", OwnerSegments(), batch, count, stream)


def run_starts(counts: Sequence[int], run_rows: int) -> list[int]:
    """Where the runs of ranks begin in the order of owners, of so many elements each; and where the last one ends."""
    return [0, *accumulate(count + -count % run_rows for count in counts)]


class OwnerOrder:
    """The elements of a batch in the order of their owners: first those of rank 0, then those of rank 1, and so on.

    Elements of one rank keep the order that they have in the batch.

    Parameters
    ----------
    engine
        Where the keys are.
    keys, width, n
        Address of ``n`` packed keys of ``width`` bytes, at least one byte. Less than 2**32 keys.
    ranks
        How many ranks there are, 1 to 256.
    counts
        Address of int64[ranks] in the engine's memory. It gets the number of keys of each rank. The kernels that write
        it are launched here, and the call does not wait for them on a GPU.
    stream
        As of `Engine.allocate`.
    run_rows
        The run of each rank begins at a multiple of so many rows (`run_starts`), behind rows of no element.
    apart
        uint64[k], at most 16 and with the ranks 256: keys of at most 8 bytes, filled up with zeros, that many elements
        have. All elements of such a key have one row, ahead of the other rows of its rank. The counts are of rows.

    Raises
    ------
    ParameterError
        If there are too many ranks, or none; or too many keys apart.
    ShapeError
        If there are too many keys, or keys without bytes.
    MemoryError
        If there is no memory for the order: a byte for each element, and a few for each rank and part of the batch.
        `move` and `restore` allocate nothing.
    """

    def __init__(
        self,
        engine: Engine,
        keys: int,
        width: int,
        n: int,
        ranks: int,
        counts: int,
        stream: Any,
        *,
        run_rows: int = 1,
        apart: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        if not 1 <= ranks <= MOST_OWNERS:
            raise ParameterError(f"keys have 1 to {MOST_OWNERS} owners, not {ranks}: use fewer ranks")
        keys_apart = 0 if apart is None else len(apart)
        if keys_apart > MOST_APART or ranks + keys_apart > MOST_OWNERS:
            raise ParameterError(
                f"a batch has at most {MOST_APART} keys apart, and {MOST_OWNERS} with the ranks, not {keys_apart} and "
                f"{ranks} ranks: give fewer keys"
            )
        if not 0 <= n <= _MOST_ELEMENTS - ranks * run_rows:
            most = _MOST_ELEMENTS - ranks * run_rows
            raise ShapeError(f"a batch has 0 to {most:,} keys, not {n:,}: cut it into several")
        if width < 1:
            raise ShapeError(f"a key has at least one byte, not {width}")
        self._engine, self._n = engine, n
        if n == 0:
            return engine.fill(counts, 0, 8 * ranks, stream)
        length = _rounds(n, ranks) * OWNER_ROUND if engine.lanes > 1 else _elements_of_thread(n)
        segments = -(-n // length)
        counters = ranks + keys_apart
        sizes, places, owners, end = starts_of(
            (4 * counters * segments, 4 * counters, 4 * keys_apart, n + -n % OWNER_ROUND)
        )[1:]
        self._memory = engine.allocate(end, stream)
        starts = self._memory.ptr
        self._owners = starts + owners
        self._segments = OwnerSegments(elements=n, ranks=ranks, length=length, segments=segments, run_rows=run_rows)
        self._segments.starts, self._segments.sizes = starts, starts + sizes
        if apart is not None and keys_apart:
            self._keys_apart = engine.from_host(apart, stream)
            self._segments.apart, self._segments.keys = keys_apart, self._keys_apart.ptr
            self._segments.places = starts + places
        batch = _batch_of(keys, width, n)
        batch.owners, batch.counts = self._owners, counts
        count = self._entry("count", width if width in _KEY_WORDS and batch.key_word == width else 0)
        sums = {"sum_apart": keys_apart, "sum_owners": ranks}
        engine.program(OWNERS).expect([count, *sums])
        self._run(count, batch, stream)
        over_owners = engine.program(OWNERS).run_blocks if engine.lanes > 1 else engine.program(OWNERS).run
        for entry, owners_of_entry in sums.items():
            batch.n = owners_of_entry
            if owners_of_entry:
                over_owners(entry, self._segments, batch, owners_of_entry, stream)

    def move(self, columns: Sequence[Column], stream: Any) -> None:
        """Bring columns into the order of owners. Does not wait on a GPU.

        Parameters
        ----------
        columns
            Of each, the address of its rows in the order of the batch, the address of room for them, and the bytes of
            a row. The rows of a column and its room do not overlap.
        """
        self._over("move", columns, stream)

    def restore(self, columns: Sequence[Column], stream: Any, once: Sequence[bool] | None = None) -> None:
        """Bring columns from the order of owners into that of the batch. Does not wait on a GPU.

        Parameters
        ----------
        columns
            As of `move`, with the rows in the order of owners.
        once
            For each column, whether only the first element of a key apart gets the row of the key, and its other
            elements get zeros. None: all elements get it.
        """
        self._over("restore", columns, stream, once)

    def _over(self, verb: str, columns: Sequence[Column], stream: Any, once: Sequence[bool] | None = None) -> None:
        if self._n == 0:
            return
        batches = [
            OwnerMoveBatch(n=self._n, owners=self._owners, source=source, target=target, row_bytes=width, once=is_once)
            for (source, target, width), is_once in zip(columns, once or [False] * len(columns), strict=True)
            if width
        ]
        entries = [self._entry(verb, _fill_row_word(batch)) for batch in batches]
        if entries:
            self._engine.program(OWNERS).expect(entries)
        for entry, batch in zip(entries, batches, strict=True):
            self._run(entry, batch, stream)

    def _entry(self, verb: str, word: int) -> str:
        """The kernel for rows that are words of so many bytes, or of any width for 0. A CPU has one for all rows."""
        if self._engine.lanes == 1:
            return verb
        counters = "few" if self._segments.ranks + self._segments.apart <= FEW_OWNERS else "many"
        return f"{verb}_{counters}{word or '_rows'}"

    def _run(self, entry: str, batch: OwnerBatch | OwnerMoveBatch, stream: Any) -> None:
        threads = self._n if self._engine.lanes == 1 else _LANES * self._segments.segments
        self._engine.program(OWNERS).run(entry, self._segments, batch, threads, stream)


def _elements_of_thread(n: int) -> int:
    """Elements of a segment on a CPU."""
    return int(cut(n, chunks_of(n, get_num_threads())).length)


def _rounds(n: int, ranks: int) -> int:
    """Rounds of a segment on a GPU."""
    return max(_FEWEST_ROUNDS, -(-ranks // _RANKS_OF_ROUND), -(-n // (OWNER_ROUND * _MOST_SEGMENTS)))


def _batch_of(keys: int, width: int, n: int) -> OwnerBatch:
    return OwnerBatch(n=n, keys=keys, key_bytes=width, key_word=_word_of(keys | width, max(_KEY_WORDS)))


def _fill_row_word(batch: OwnerMoveBatch) -> int:
    """Note the words by which rows are copied. The bytes of a row that is one such word; 0 for others."""
    batch.row_word = _word_of(batch.source | batch.target | batch.row_bytes, _LONGEST_ROW_WORD)
    return batch.row_bytes if batch.row_word == batch.row_bytes else 0


def _word_of(bits: int, most: int) -> int:
    """Bytes of the widest word, at most ``most``, that divides addresses and widths whose bits are ``bits``."""
    return (bits | most) & -(bits | most)
