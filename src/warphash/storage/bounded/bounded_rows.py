"""A storage of at most so many keys: it has a storage of any kind, and a policy that says which keys leave.

An update, piece by piece. A piece has at most a quarter of the bound's number of elements, or `LEAST_PIECE`, so a batch
of any length needs memory that follows from the bound.

1. If the table holds more keys than the bound, the keys of least rank leave (`_make_room`).
2. The policy notes the accesses, and the storage updates the piece. This is one transaction of the storage.
3. Go on with the next piece. Behind the last piece the table makes room again.

Failures. Each piece is a transaction. A refused allocation in step 1 or 2 leaves out this piece and all behind it; the
table has the pieces before it, and what these drove out is gone. So a batch of one piece is in or out as a whole. If
the room behind the last piece cannot be made for want of memory, the batch is in, and the table holds more keys than
the bound: the next update makes room before it begins. An interruption leaves the table so, too. The table never holds
more keys than the bound and one piece.

To make room, the keys are scanned, their ranks read or computed, and the ranks are selected (`least.py`): this costs a
pass over all keys for each piece, and memory for a copy of the keys, with 8 bytes for each rank. Where ranks rise, one
pass serves several pieces (`leave_queue.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ...errors import TableFull, UnsupportedVerb
from ...runtime.abi import Ranks, ScoreBatch
from ...runtime.engine import Buffer, Engine
from ...runtime.source import BOUNDED
from ..batch import Batch, MixedBatch
from ..elements import flags_at
from ..rows import Rows
from ..slots import MemoryUse, Slots
from ..wide_rows import WideRows
from .least import keys_of_least_rank
from .leave_queue import LeaveQueue, first_of, queue_of
from .policies import Policy

__all__ = ["LEAST_PIECE", "BoundedRows", "Least"]

LEAST_PIECE = 1 << 16
"""Elements of a piece, if a quarter of the bound is fewer."""


MOST_RANK = (1 << 64) - 1


class Least(NamedTuple):
    """Keys of least rank.

    Attributes
    ----------
    keys, n
        Copies of the keys, and how many they are.
    rank
        None of them has a greater one.
    """

    keys: Buffer
    n: int
    rank: int


class BoundedRows:
    """A storage of at most ``max_size`` keys.

    Parameters
    ----------
    inner
        Holds the pairs: a `WideRows` with ranks, if the policy keeps ranks.
    max_size
        Most keys behind an update.
    policy
        Says which keys leave. A bounded storage has a policy of its own.
    key_bytes, value_bytes
        Width of a row; ``value_bytes`` may be 0.
    grows
        Whether ``inner`` may take more memory. Otherwise a piece has no more elements than there is room.

    Attributes
    ----------
    evicted
        How many keys have left, by updates and by `drop`.
    """

    def __init__(
        self, inner: Rows, max_size: int, policy: Policy, key_bytes: int, value_bytes: int, *, grows: bool
    ) -> None:
        self.inner, self.max_size, self.policy = inner, max_size, policy
        self.key_bytes, self.value_bytes = key_bytes, value_bytes
        self.evicted = 0
        self._grows = grows
        self._engine: Engine = inner.store.engine
        self.rereads = inner.rereads  # what the policy notes may be of other keys
        self._size_at_most = inner.store.size  # nothing is waited for while this is within the bound
        self._queue: LeaveQueue | None = None

    @property
    def store(self) -> Slots:
        return self.inner.store

    @property
    def nbytes(self) -> int:
        queue = self._queue
        return self.inner.nbytes + self.policy.nbytes + (0 if queue is None else queue.keys.nbytes)

    def memory_use(self) -> MemoryUse:
        return self.inner.memory_use()

    @property
    def unused(self) -> Rows:
        """The storage inside: a find there is no use of the keys."""
        return self.inner

    @property
    def piece(self) -> int:
        """Most elements of a piece."""
        piece = max(self.max_size // 4, LEAST_PIECE)
        room = self.store.capacity - self.max_size
        return piece if self._grows or room <= 0 else min(piece, room)

    # ---- the operations of a storage
    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        if self.policy.keeps_ranks:
            self._rows.find(keys, n, values, flags, default, stream, self.policy.touch(0, stream))
            return
        flags, _own_flags = flags_at(self._engine, flags, n, stream)
        self.inner.find(keys, n, values, flags, default, stream)
        self.policy.record(keys, n, stream, flags)

    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        self.inner.present(keys, n, flags, stream)

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        self.inner.counts(keys, n, out, stream, entry)

    def update(self, batch: Batch, *, scores: int = 0, score_kind: int = 0, ranks: int = 0) -> None:
        """As `Rows.update`, with the ranks of the elements' keys.

        Parameters
        ----------
        scores, score_kind
            Address of a number for each element, and how its bits are read (`abi.kind_of`).
        ranks
            Address of a rank for each element, uint64, in place of scores.
        """
        score_bytes, stream = (score_kind >> 8) // 8, batch.stream
        for at, count in self.pieces(batch.n):
            self._make_room(stream)
            given = ranks and ranks + 8 * at
            if given:
                self._queue = None
            if scores:
                ordered = self._ranks_of(scores + at * score_bytes, score_kind, count, stream)
                given = ordered.ptr
            piece = batch.piece(at, count, self.key_bytes, self.value_bytes)
            self.policy.record(piece.keys, count, stream)
            self._size_at_most += count
            try:
                if self.policy.keeps_ranks:
                    self._rows.update(piece, self.policy.touch(given, stream))
                else:
                    self.inner.update(piece)
            except TableFull as error:
                if at and error.keys is not None:
                    raise TableFull(str(error), error.keys + at) from error
                raise
        with suppress(MemoryError, TableFull):
            self._make_room(stream)

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        self.inner.erase(keys, n, flags, stream)

    def execute(self, batch: MixedBatch, default: bytes, stream: Any) -> None:
        """Raise: which keys leave is decided between batches."""
        raise UnsupportedVerb("a bounded table has no execute: call insert, assign, find and erase")

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any, out_ranks: int = 0) -> int:
        """As `Rows.scan`; with the rank of each key, if the policy keeps ranks."""
        if out_ranks:
            return self._rows.scan(room, out_keys, out_values, stream, out_ranks)
        return self.inner.scan(room, out_keys, out_values, stream)

    def clear(self, stream: Any) -> None:
        self._queue = None
        self.inner.clear(stream)
        self.policy.clear(stream)

    def rebuild(self, keys: int, stream: Any) -> None:
        self.inner.rebuild(keys, stream)

    def copy(self, stream: Any) -> BoundedRows:
        """As `Rows.copy`, with the ranks."""
        inner, policy = self.inner.copy(stream), self.policy.copy(stream)
        twin = BoundedRows(inner, self.max_size, policy, self.key_bytes, self.value_bytes, grows=self._grows)
        twin._size_at_most, twin.evicted = self._size_at_most, self.evicted
        return twin

    # ---- keys that leave
    def least(self, n: int, stream: Any) -> Least:
        """Copies of the ``n`` keys of least rank, or of all keys if there are fewer. Waits.

        Raises
        ------
        MemoryError
            If there is no memory for a copy of all keys and their ranks. Nothing has changed.
        """
        self.store.finish(stream)
        engine, size = self._engine, self.store.size
        wanted = min(n, size)
        if wanted in (0, size):
            keys = engine.allocate(max(1, wanted * self.key_bytes), stream)
            if wanted:
                self.inner.scan(size, keys.ptr, 0, stream)
            return Least(keys, wanted, MOST_RANK if wanted else 0)
        if self.policy.ranks_rise:
            return self._queued(wanted, stream)
        ranks = engine.allocate(8 * size, stream)
        if not self.policy.keeps_ranks:
            keys = engine.allocate(size * self.key_bytes, stream)
            self.inner.scan(size, keys.ptr, 0, stream)
            self.policy.rank(keys.ptr, size, ranks.ptr, stream)
            chosen, rank = keys_of_least_rank(engine, keys, self.key_bytes, ranks, size, wanted, stream)
            return Least(chosen, wanted, rank)
        numbers = engine.allocate(8 * size, stream)
        self._rows.scan_numbers(size, numbers.ptr, stream, ranks.ptr)
        rows, rank = keys_of_least_rank(engine, numbers, 8, ranks, size, wanted, stream)
        chosen = engine.allocate(wanted * self.key_bytes, stream)
        self._rows.keys_at(rows.ptr, wanted, chosen.ptr, stream)
        return Least(chosen, wanted, rank)

    def _queued(self, wanted: int, stream: Any) -> Least:
        """As `least`, of a policy whose ranks rise, and of fewer keys than there are."""
        for queue in (self._queue, None):
            if queue is None:
                queue = queue_of(self._engine, self._rows, wanted, stream)
            if (first := first_of(self._engine, self._rows, queue, wanted, stream)) is not None:
                keys, rank, self._queue = first
                return Least(keys, wanted, rank)
        raise AssertionError("a new queue has as many keys as are wanted")

    def drop(self, keys: Buffer, n: int, stream: Any) -> None:
        """Erase ``n`` keys, and count them as evicted."""
        before = self.store.size
        self.inner.erase(keys.ptr, n, 0, stream)
        self.store.finish(stream)
        self.evicted += before - self.store.size

    def _make_room(self, stream: Any) -> None:
        """Have the keys of least rank leave until no more than the bound are left."""
        if self._size_at_most <= self.max_size:
            return
        self.store.finish(stream)
        excess = self.store.size - self.max_size
        if excess > 0:
            least = self.least(excess, stream)
            self.drop(least.keys, least.n, stream)
        self._size_at_most = self.store.size

    def pieces(self, n: int) -> Iterator[tuple[int, int]]:
        """The first element of each piece, and how many elements it has. An empty batch is one piece."""
        at = 0
        while True:
            count = min(self.piece, n - at)
            yield at, count
            at += count
            if at >= n:
                return

    @property
    def _rows(self) -> WideRows:
        """The inner storage of a policy that keeps ranks."""
        assert isinstance(self.inner, WideRows)
        return self.inner

    def _ranks_of(self, scores: int, kind: int, n: int, stream: Any) -> Buffer:
        """The ranks of numbers."""
        ranks = self._engine.allocate(max(1, 8 * n), stream)
        batch = ScoreBatch(n=n, rows=scores, row_bytes=(kind >> 8) // 8, kind=kind)
        if n:
            self._engine.program(BOUNDED).run("order", Ranks(ranks=ranks.ptr), batch, n, stream)
        return ranks
