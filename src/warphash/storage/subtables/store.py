"""A store of several subtables, one of which at a time is made twice or half as large.

The kernels are those of ``kernels/subtables/``: ``bulk.cuh``, ``insert.cuh`` and ``resize.cuh``; what a
subtable is, and which one a key goes to first, is told at the head of ``kernels/subtables/lines.cuh``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError
from ...runtime.abi import (
    ANNEX,
    COUNT_WORDS,
    HOMELESS_CAPACITY,
    LEFTOVER,
    MAX_HASHES,
    MOST_SUBTABLES,
    REPORT_WORDS,
    Batch,
    Flag,
    Op,
    Report,
    Table,
)
from ...runtime.engine import Buffer
from .. import policies
from ..buckets.memory import PRIMES, MemoryUse
from ..buckets.store import PIECE_UNIQUE, Outcome, Store
from ..scratch import Scratch, Workbench, pieces
from .account import Account
from .insert import Insert, Piece, Strays
from .routing import Shares

__all__ = ["Subtable", "SubtableStore"]

MOST_SUBTABLE_BUCKETS = 1 << 27
"""Buckets of a subtable are numbered in 28 bits, and the slots of one that is halved in 32."""

SETTLED, SETTLED_UNIQUE = 1 << 22, 1 << 24
"""Elements that go through the kernels of an insert together: so that claims stay in a GPU's cache; without claims."""

GUEST_WORDS_BYTES = 8
"""Of a bucket: two words for its guests."""

BUCKET_WORDS_BYTES = 4 + GUEST_WORDS_BYTES
"""Of a bucket beside its line and values: its lock, and those."""

LISTED_BYTES = 1 << 12
"""Of host memory for a list of elements: to undo a batch where the device has no memory left."""

_WARP = 32


@dataclass
class Subtable:
    """Memory, buckets and keys of one subtable."""

    memory: Buffer
    buckets: int
    keys: int = 0


class SubtableStore(Store):
    """A `Store` of subtables.

    Attributes
    ----------
    subtables
        Of at most twice the size of each other (S0-19); the last one is the annex.
    report
        What the kernels of inserts count.
    account
        Allocates the subtables, and the working memory of the operations that resize them.
    incoming
        Keys of the batch under way, for the shares of subtables that are resized for it.
    """

    subtables: list[Subtable]
    incoming: int = 0

    # ---- memory
    def _allocate(self, stream: Any) -> None:
        self.report = self.engine.allocate(8 * REPORT_WORDS, stream)
        self._answer = self.engine.answer(COUNT_WORDS)
        self._listed = self.engine.allocate_pinned(LISTED_BYTES)
        self._counted = True  # the report is not zero
        self._claiming: Scratch | None = None  # whose claims the last insert may have made
        self._unclaimed: Scratch | None = None  # whose claims are as an insert wants them
        number = self.parameters["subtables"]
        sizes = policies.subtable_sizes(self.buckets, number)
        if max(sizes) > MOST_SUBTABLE_BUCKETS:
            raise ParameterError(
                f"a subtable has at most {MOST_SUBTABLE_BUCKETS:,} buckets, and {self.slots:,} slots in {number} "
                f"subtables make {max(sizes):,}: use more subtables"
            )
        sizes.append(1 if self.spec.slots_per_bucket >= 3 else 3)
        self.account = Account(self.engine)
        self._resize_workbench = Workbench(self.engine, self.spec.slot_bytes, self.account.allocate, kept_bytes=0)
        self.subtables = []
        for buckets in sizes:
            self.subtables.append(Subtable(self._memory_of(buckets, stream), buckets))
        self._count()

    def _memory_of(self, buckets: int, stream: Any) -> Buffer:
        return self.account.allocate(self._bytes_of(buckets), stream)

    def _bytes_of(self, buckets: int) -> int:
        return buckets * (self._line_bytes + BUCKET_WORDS_BYTES)

    @property
    def _line_bytes(self) -> int:
        """Of the keys and values of a bucket."""
        return self.spec.slots_per_bucket * self.spec.slot_bytes

    @property
    def nbytes(self) -> int:
        return sum(subtable.memory.nbytes for subtable in self.subtables)

    @property
    def peak_nbytes(self) -> int:
        """Most bytes held at one time: by the subtables, and as working memory of the operations that resize them."""
        return self.account.peak_bytes

    def memory_use(self) -> MemoryUse:
        return MemoryUse(sum(map(self._bytes_of, self.sizes)))

    def _count(self) -> None:
        self.buckets = sum(self.sizes)
        self.slots = self.buckets * self.spec.slots_per_bucket

    @property
    def hashed(self) -> list[Subtable]:
        """The subtables without the annex."""
        return self.subtables[:-1]

    @property
    def sizes(self) -> list[int]:
        """Buckets of each."""
        return [subtable.buckets for subtable in self.hashed]

    def _numbered(self) -> list[tuple[int, Subtable]]:
        return [*enumerate(self.hashed), (ANNEX, self.subtables[-1])]

    # ---- the table
    def _describe(self) -> Table:
        prime = PRIMES[4 if self.spec.word_bytes == 4 else 8] if self.family == "universal" else 1 << 64
        draw = self._random.randrange
        table = Table(
            chain_limit=self.design.chain_limit(self.slots),
            salts=tuple(draw(1, prime) for _ in range(MOST_SUBTABLES + 1)),
            multiplier=tuple(draw(1, prime) for _ in range(MAX_HASHES)),
            addend=tuple(draw(prime) for _ in range(MAX_HASHES)),
            **self._constants,
        )
        for number, subtable in self._numbered():
            self._place_in(table, number, subtable)
        return table

    def _place_in(self, table: Table, number: int, subtable: Subtable) -> None:
        table.bases[number], table.sizes[number] = subtable.memory.ptr, subtable.buckets
        table.bucket_words[number] = subtable.memory.ptr + subtable.buckets * self._line_bytes

    _builds = False

    def clear(self, stream: Any = None) -> None:
        self._cleared = True
        for subtable in self.subtables:
            self._empty(subtable.memory, subtable.buckets, stream)
            subtable.keys = 0
        self._shares = Shares(self.table, self.sizes)

    def _empty(self, memory: Buffer, buckets: int, stream: Any) -> None:
        keys = buckets * self.spec.slots_per_bucket * self.spec.word_bytes
        self.engine.fill(memory.ptr, 0xFF, keys, stream)
        self._clear_words(memory, buckets, stream)

    def _clear_words(self, memory: Buffer, buckets: int, stream: Any) -> None:
        self.engine.fill(memory.ptr + buckets * self._line_bytes, 0, buckets * BUCKET_WORDS_BYTES, stream)

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        report = self._zeroed_report(stream)
        for number, subtable in self._numbered():
            n = subtable.buckets * self.spec.slots_per_bucket
            batch = Batch(
                n=n,
                out_keys=out_keys,
                out_values=out_values,
                report=report.ptr,
                default_value=room,
                subtable=number,
            )
            self._program.run("scan", self.table, batch, n, stream)
        return self._read(report, stream).winners

    def broken_buckets(self, stream: Any = None) -> int:
        report = self._zeroed_report(stream)
        for number, subtable in self._numbered():
            batch = Batch(n=subtable.buckets, report=report.ptr, subtable=number)
            self._program.run("audit", self.table, batch, batch.n, stream)
        return self._read(report, stream).mismatches

    # ---- keys come and go
    def begin(self, piece: Piece, scratch: Scratch, count_probes: bool, stream: Any = None) -> Insert:
        """An insert of these elements, of which nothing is launched yet."""
        self._begin_to_count(stream)
        if self._unclaimed is not scratch:
            self._workbench.forget_claims(scratch, stream)
        self._unclaimed = self._claiming = None
        return Insert(self, piece, scratch, count_probes, self.engine.allocate, stream)

    def begin_move(self, piece: Piece, stream: Any = None) -> Insert:
        """As `begin`, of distinct pairs that a resize moves: the working memory is counted in `account`."""
        self._begin_to_count(stream)
        scratch = self._resize_workbench.of(piece.n, False, unique=True)
        return Insert(self, piece, scratch, False, self.account.allocate, stream)

    def run(self, entry: str, batch: Batch, n: int, stream: Any) -> None:
        """Launch a kernel."""
        self._program.run(entry, self.table, batch, n, stream)

    def _begin_to_count(self, stream: Any) -> None:
        if self._counted:
            self.engine.fill(self.report.ptr, 0, self.report.nbytes, stream)
        self._counted = True

    def ask(self, scratch: Scratch | None, last: bool, stream: Any) -> None:
        """Ask what was counted into the report.

        After the ``last`` time, the report is ready for the next operation; its signals stay: one that is set keeps the
        next `settle` from what is not its turn. So are the claims of ``scratch``, if it turns out that nobody made any.
        """
        batch = Batch(n=COUNT_WORDS, report=self.report.ptr, answer=self._answer.ptr, default_value=last)
        self._program.run("hand_over", self.table, batch, COUNT_WORDS, stream)
        self._answer.follow(stream)
        if last:
            self._counted = False
            self._claiming = scratch if scratch is self._workbench.kept else None

    def answer(self) -> Report:
        """What was asked for. Waits."""
        self._answer.wait()
        report = Report.of(self._answer.words)
        self._counted |= report.homeless > 0  # its signals are set
        if not report.winners:
            self._unclaimed = self._claiming or self._unclaimed
        self._claiming = None
        return report

    def random_word(self) -> int:
        """For the victims of a launch."""
        return self._random.getrandbits(32)

    def combine(self, piece: Piece, op: Op, kind: int, stream: Any = None) -> None:
        """Apply ``op`` to the values of the keys that elements not flagged as new have. Allocates nothing."""
        self._begin_to_count(stream)
        batch = Batch(n=piece.n, keys=piece.keys, values=piece.values, out_flags=piece.flags, op=op, kind=kind)
        batch.report = self.report.ptr
        self._program.run("combine", self.table, batch, piece.n, stream)

    def erase(
        self, keys: int, n: int, flags: int = 0, only: npt.NDArray[np.int64] | None = None, stream: Any = None
    ) -> int:
        if n == 0 or (only is not None and not len(only)):
            return 0
        self.begin_erase(keys, n, flags, only, stream)
        self.ask(None, True, stream)
        return self.erased()

    def begin_erase(
        self, keys: int, n: int, flags: int, only: npt.NDArray[np.int64] | None, stream: Any = None
    ) -> None:
        """Erase keys; nothing, if the insert before has left pairs without a home."""
        self._begin_to_count(stream)
        for at, count, indices, length in pieces(self.engine, n, min(n, PIECE_UNIQUE), only, stream):
            batch = Batch(
                n=count,
                keys=keys + at * self.spec.word_bytes,
                indices=indices,
                count=length,
                out_flags=flags and flags + at,
                report=self.report.ptr,
            )
            self._program.run("erase", self.table, batch, count, stream)

    def erase_listed(self, keys: int, n: int, which: npt.NDArray[np.int64], stream: Any = None) -> None:
        """As `erase` of ``which`` elements, and a few at a time if there is no memory to list all. Waits."""
        try:
            self.erase(keys, n, 0, which, stream)
            return
        except MemoryError:
            lists: Any = (ctypes.c_uint32 * (self._listed.nbytes // 4)).from_address(self._listed.ptr)
        words = np.frombuffer(lists, np.uint32)  # the length, in 64 bits, then the list
        most = len(words) - 2
        for at in range(0, len(which), most):
            some = which[at : at + most]
            words[:2], words[2 : 2 + len(some)] = (len(some), 0), some
            self._begin_to_count(stream)
            batch = Batch(n=len(some), keys=keys, indices=self._listed.ptr + 8, count=self._listed.ptr)
            batch.report = self.report.ptr
            self._program.run("erase", self.table, batch, batch.n, stream)
            self.ask(None, True, stream)
            self.erased()

    def erased(self) -> int:
        """How many keys the last erase found, which was asked for. Waits."""
        erased = self.answer()
        self.add(erased.placed, -1)
        return erased.changed

    def take_over(self, other: Store, homeless: int, stream: Any = None) -> Outcome:
        """Place all pairs of ``other``, which has left none without a home. Waits."""
        assert isinstance(other, SubtableStore) and not homeless
        n = sum(subtable.keys for subtable in other.hashed) + ANNEX  # the annex is not counted
        keys = self.account.allocate(n * self.spec.word_bytes, stream)
        values = self.account.allocate(max(1, n * self.spec.value_bytes), stream)
        flags = self.account.allocate(n, stream)
        n = other.scan(n, keys.ptr, values.ptr if self.spec.value_bytes else 0, stream)
        for at in range(0, n, SETTLED_UNIQUE):
            piece = Piece(
                keys.ptr + at * self.spec.word_bytes,
                values.ptr + at * self.spec.value_bytes,
                flags.ptr + at,
                min(SETTLED_UNIQUE, n - at),
            )
            outcome = self.move(piece, stream)[0]
            if not outcome.complete:
                return outcome
        return Outcome(n, 0, 0, 0)

    def move(self, piece: Piece, stream: Any = None) -> tuple[Outcome, Strays]:
        """Add distinct pairs that are not in the table; and the pairs that lost their slots to them. Waits."""
        insert = self.begin_move(piece, stream)
        insert.settle(unique=True)
        insert.place()
        outcome = insert.outcome()
        return outcome, insert.strays(outcome.homeless)

    # ---- sizes
    def enlarge(self, number: int, stream: Any = None, memory: Buffer | None = None) -> None:
        """Make one subtable twice as large, in one kernel (S0-13); ``memory``, if it was taken, of `memory_to_enlarge`.

        Raises
        ------
        MemoryError
            If there is none for the new copy beside the old one, or more buckets than can be numbered; the table is as
            it was.
        """
        old = self.hashed[number]
        self._resize(number, 2 * old.buckets, memory or self.memory_to_enlarge(number, stream))
        batch = Batch(
            n=old.buckets * self.spec.slots_per_bucket,
            keys=old.memory.ptr,
            source_buckets=old.buckets,
            subtable=number,
        )
        self._program.run("enlarge", self.table, batch, batch.n, stream)

    def memory_to_enlarge(self, number: int, stream: Any = None) -> Buffer:
        """What `enlarge` will take for the new copy."""
        buckets = 2 * self.hashed[number].buckets
        if buckets > MOST_SUBTABLE_BUCKETS:
            raise MemoryError(f"a subtable has at most {MOST_SUBTABLE_BUCKETS:,} buckets: use more subtables")
        return self._memory_to_resize(buckets, stream)

    def memory_to_undo(self, memory: Buffer, number: int, stream: Any = None) -> Buffer | None:
        """The old copy of a subtable that was halved, as memory to `enlarge` with; None if the size is another."""
        buckets = 2 * self.hashed[number].buckets
        if memory.nbytes != self._bytes_of(buckets):
            return None
        self._clear_words(memory, buckets, stream)
        return memory

    def halve(self, number: int, stream: Any = None) -> Strays:
        """Make one subtable half as large (S0-14): the pairs that found no place. Waits.

        Raises
        ------
        MemoryError
            As `enlarge`.
        """
        old = self.hashed[number]
        assert old.buckets % 2 == 0
        slots = old.buckets // 2 * self.spec.slots_per_bucket
        residuals = self.account.allocate(4 * (old.keys // 2 + 1), stream)  # a bucket has no more than half of its keys
        flags = self.account.allocate(2 * slots, stream)
        values = old.memory.ptr + old.buckets * self.spec.slots_per_bucket * self.spec.word_bytes
        # The residuals are elements of the old copy, which also has room for the values that they throw out.
        piece = Piece(old.memory.ptr, values, flags.ptr, min(slots, HOMELESS_CAPACITY))
        insert = self.begin_move(piece, stream)
        batch = insert.batch
        batch.leftover, batch.source_buckets, batch.subtable = residuals.ptr, old.buckets, number
        batch.n = -(-slots // _WARP) * _WARP
        self._resize(number, old.buckets // 2, self._memory_to_resize(old.buckets // 2, stream))
        self._program.run("halve", self.table, batch, batch.n, stream)
        batch.indices, batch.count = batch.leftover, batch.report + LEFTOVER
        batch.closed, batch.spare_values, batch.unique = number + 1, values, 1
        self._program.run("place", self.table, batch, slots, stream)
        outcome = insert.outcome()
        self.hashed[number].keys -= outcome.changed + outcome.unplaced
        strays = insert.strays(outcome.homeless)
        if not outcome.unplaced:
            return strays
        listed = self.engine.to_host(residuals.ptr, np.uint32, insert.left, stream)
        unplaced = listed[self.engine.to_host(flags.ptr, np.uint8, 2 * slots, stream)[listed] == Flag.UNPLACED]
        rows = (
            self.engine.to_host(at, np.uint8, 2 * slots * width, stream).reshape(2 * slots, width)[unplaced]
            for at, width in ((old.memory.ptr, self.spec.word_bytes), (values, self.spec.value_bytes))
        )
        return strays.with_others(Strays(*rows))

    def _memory_to_resize(self, buckets: int, stream: Any) -> Buffer:
        """For a copy of a subtable, whose kernel fills its lines and tells its guests."""
        memory = self._memory_of(buckets, stream)
        self._clear_words(memory, buckets, stream)
        return memory

    def _resize(self, number: int, buckets: int, memory: Buffer) -> None:
        """New memory for a subtable; the caller holds the old, and launches the kernel."""
        self.subtables[number] = Subtable(memory, buckets, self.subtables[number].keys)
        self._place_in(self.table, number, self.subtables[number])
        self._count()
        self.table.chain_limit = self.design.chain_limit(self.slots)
        self._shares.move(self.sizes, [subtable.keys for subtable in self.hashed], self.incoming)
        self._shares.tell_guests(number)

    # ---- scratch memory
    def scratch(self, piece: int, unique: bool) -> Scratch:
        """What an insert of so many elements needs; kept, if it is no larger than the table."""
        self._workbench.kept_bytes = max(1 << 20, self.nbytes)
        return self._workbench.of(piece, False, unique)

    def add(self, placed: Iterable[int], sign: int = 1) -> None:
        """Count keys that came into each subtable, or left it."""
        for subtable, number in zip(self.hashed, placed, strict=False):
            subtable.keys += sign * number
