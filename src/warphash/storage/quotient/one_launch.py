"""Updates and erases of a quotient table whose elements have a lane each, and their answers.

The answer of an update is that of its last launch (``kernels/quotient/gpu/few.cuh``), and so is that of an erase
(``kernels/quotient/gpu/erase.cuh``).

A pair that finds no slot in an update that was left becomes the table's own: the update adopts it. So an update is
left only with room for all of its pairs. There is always room for a few small updates. That for larger ones is given
back when none is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...runtime.abi import ADOPTED_WORDS, OneLaunchBatch, QuotientTable
from ...runtime.engine import Buffer, KernelSpec
from ..batch import Batch
from ..listed import Listed
from ..result_slot import ResultSlot
from ..scratch import Outcome, starts_of
from ..update.pairs import Pairs

__all__ = ["MOST_AWAITED", "MOST_LEFT", "FewLauncher", "OneLaunchUpdates"]

MOST_AWAITED = 4096
"""Elements for whose pairs there is always room."""

MOST_LEFT = 48
"""Updates that may be under way. The host mostly takes longer to launch one than the device to do it."""

_PLACES = 64
"""Answers that are kept: those of updates under way, and of a few that were interrupted."""

_KEPT_PAIRS = 1 << 20
"""Room for more updates of the size of the first is made, up to so many pairs; and for one more of them in any case."""

_ERASED = 1 << 31
"""``kErasedPair``."""


FewLauncher = Callable[[int, int, int, int, int, int, int, Any], int]
"""`OneLaunchUpdates.leave_few`."""

_ROOM = "adopted_keys", "adopted_values", "adopted_next", "stuck", "left_out"

_FEW_PLACES = tuple(
    getattr(OneLaunchBatch, name).offset
    for name in ("n", "keys", "values", "out_flags", "op", "kind", *_ROOM, "answer", "ticket")
)
"""Words of a batch of few elements that differ from that of the next one."""


class _Room(NamedTuple):
    """Memory for the pairs that updates may adopt.

    Attributes
    ----------
    memory
        Keeps it; None where the table does.
    pairs
        Most of them.
    keys, values, next
        Addresses of their arrays.
    """

    memory: Buffer | None
    pairs: int
    keys: int
    values: int
    next: int


@lru_cache(maxsize=64)
def _starts(word_bytes: int, value_word_bytes: int, ranges: int) -> tuple[int, ...]:
    """Where, in the memory of such updates, its parts begin, and where the last one ends.

    The heads of lists, the lengths of the lists of ranges, such a list, and the arrays of adopted pairs.
    """
    pairs = _pair_sizes(word_bytes, value_word_bytes, MOST_AWAITED)
    return tuple(starts_of((8 * ADOPTED_WORDS, 16, 4 * ranges, *pairs)))


def _starts_for(spec: KernelSpec, ranges: int) -> tuple[int, ...]:
    return _starts(spec.word_bytes, spec.value_word_bytes, ranges)


def _pair_sizes(word_bytes: int, value_word_bytes: int, pairs: int) -> tuple[int, int, int]:
    """Bytes of the keys, values and links of adopted pairs."""
    return pairs * word_bytes, pairs * value_word_bytes, 4 * pairs


def zeroed_bytes_for(spec: KernelSpec, ranges: int) -> int:
    """Bytes at the start of the memory of such updates that are 0 between two of them."""
    return _starts_for(spec, ranges)[2]


def bytes_for(spec: KernelSpec, ranges: int) -> int:
    """Bytes of the memory of such updates of a table."""
    return _starts_for(spec, ranges)[-1]


class OneLaunchUpdates:
    """The memory and the batch of such updates. Its caller holds the lock of the table.

    Parameters
    ----------
    report
        Address of the Report that kernels count into.
    memory
        Address of `bytes_for` bytes, of which `zeroed_bytes_for` are 0.
    ranges
        Of the table.

    Attributes
    ----------
    batch
        Of the last update or erase; it is the same object for all. Its ticket is that of the update.

    Raises
    ------
    MemoryError
    """

    def __init__(self, engine: Any, spec: KernelSpec, report: int, memory: int, ranges: int) -> None:
        self._engine, self._spec = engine, spec
        _, lengths, renewed, keys, values, following, _ = _starts_for(spec, ranges)
        self._small = self._room = _Room(None, MOST_AWAITED, memory + keys, memory + values, memory + following)
        self._lengths, self._renewed, self._is_odd = memory + lengths, memory + renewed, False
        self._slot = ResultSlot(engine, _PLACES)
        self.batch = OneLaunchBatch(report=report, adopted=memory)

    def batch_to_leave(self, given: Batch, left: int, awaited: int) -> OneLaunchBatch | None:
        """The batch of an update that is left behind others; None if there is no room to adopt all of its pairs.

        Behind no batch, room is made, if there is memory.

        Parameters
        ----------
        given
            Every element has a flag, and no values are combined.
        left, awaited
            As of `LeavingArray.leave`.
        """
        n, room = given.n, self._room
        if left:
            if left >= MOST_LEFT or awaited + n > room.pairs:
                return None
        elif n > room.pairs:
            self._make_room(n, given.stream)
            room = self._room
            if n > room.pairs:
                return None
        batch = self._batch(given, n, 0)
        # The lists of elements lie where the pairs of this update would lie. An update of one block has read the number
        # of an element before it adopts the pair, and no pair lies behind that number.
        batch.stuck = room.keys + awaited * self._spec.word_bytes
        batch.left_out = room.next + 4 * awaited
        return batch

    def prepare_few(self, compiled: Any, program: Any, table: QuotientTable) -> FewLauncher:
        """`leave_few`, by the compiled code of an engine whose program has loaded the kernel."""
        kernel = program.kernels["update_few"]
        batch = OneLaunchBatch(report=self.batch.report, adopted=self.batch.adopted)
        self._few, self._lanes = compiled.Prepared(kernel, table, batch, _FEW_PLACES).run, kernel.threads
        return self.leave_few

    def leave_few(
        self, keys: int, values: int, n: int, op: int, kind: int, flags: int, awaited: int, stream: Any
    ) -> int:
        """Launch an update of one block behind others, of which ``awaited`` elements may have to be adopted.

        There is room to adopt `MOST_AWAITED` pairs.

        Returns
        -------
        int
            Its ticket.

        Raises
        ------
        DriverError
            If the driver refuses the launch.
        """
        room = self._room
        stuck, left_out = room.keys + awaited * self._spec.word_bytes, room.next + 4 * awaited
        at, ticket = self._slot.next()
        words = n, keys, values, flags, op, kind, room.keys, room.values, room.next, stuck, left_out, at, ticket
        status = self._few(self._lanes, stream, *words)
        if status:
            self._engine.refuse_launch(status)
        return ticket

    def batch_of(self, given: Batch, listed: Listed | None, count_probes: bool, lists: int) -> OneLaunchBatch:
        """The batch of an update that adopts no pairs.

        Parameters
        ----------
        listed
            Elements to take part; all of them if None.
        lists
            Address of two uint32 for each element; 0 for few elements.
        """
        n, numbers = (given.n, 0) if listed is None else (listed.n, listed.numbers.ptr)
        batch = self._batch(given, n, numbers)
        batch.count_probes, batch.adopted_keys = count_probes, 0
        batch.left_out = lists or self._small.next
        batch.stuck = batch.left_out + 4 * n
        return batch

    def _batch(self, given: Batch, n: int, numbers: int) -> OneLaunchBatch:
        batch, room = self.batch, self._room
        batch.n, batch.indices, batch.count, batch.count_probes, batch.finishes = n, numbers, 0, 0, 0
        batch.keys, batch.values, batch.out_flags = given.keys, given.values, given.flags
        batch.op, batch.kind = given.op, given.kind
        batch.adopted_keys, batch.adopted_values, batch.adopted_next = room.keys, room.values, room.next
        self._slot.address(batch)
        return batch

    def _make_room(self, n: int, stream: Any) -> None:
        self._room = self._small
        for pairs in (max(2 * n, min(8 * n, _KEPT_PAIRS)), n):
            with suppress(MemoryError):
                self._room = self._room_for(pairs, stream)
                return

    def _room_for(self, pairs: int, stream: Any) -> _Room:
        *starts, end = starts_of(_pair_sizes(self._spec.word_bytes, self._spec.value_word_bytes, pairs))
        memory = self._engine.allocate(end, stream)
        return _Room(memory, pairs, *(memory.ptr + start for start in starts))

    def give_back(self) -> None:
        """Give back the room for large updates: none is under way, and no pair is adopted."""
        self._room = self._small

    def batch_to_erase(self, given: Batch) -> OneLaunchBatch:
        """The batch of an erase."""
        batch, lengths = self._batch(given, given.n, 0), self._lengths
        self._is_odd = odd = not self._is_odd
        batch.renewed, batch.renewals, batch.renewals_before = self._renewed, lengths + 8 * odd, lengths + 8 * (not odd)
        return batch

    def answer(self, ticket: int) -> Outcome | None:
        """As `LeavingArray.answer`. Adopted pairs count as displaced ones."""
        words = self._slot.answer(ticket)
        return None if words is None else _outcome(*words)

    def outcome(self, stream: Any) -> Outcome:
        """As `LeavingArray.outcome`."""
        return _outcome(*self._slot.outcome(stream))

    def adopted(self, stream: Any) -> Pairs:
        """Copies of the pairs that the table has adopted, until they are forgotten. Waits."""
        engine, room = self._engine, self._room
        n = int(engine.to_host(self.batch.adopted, np.uint64, 1, stream)[0])
        pairs = Pairs.at(engine, self._spec, room.keys, room.values, n, stream)
        return pairs.where(engine.to_host(room.next, np.uint32, n, stream) < _ERASED)

    def forget(self, stream: Any) -> None:
        """Forget the adopted pairs, and the ranges whose filters were to be made anew."""
        self._engine.fill(self.batch.adopted, 0, self._renewed - self.batch.adopted, stream)


def _outcome(adopted: int, unplaced: int, changed: int, probes: int) -> Outcome:
    return Outcome(changed, adopted, unplaced, probes)
