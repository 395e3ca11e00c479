"""A table on one engine, in words and addresses: the kernels of each operation.

The sequence of kernels that an update takes, and why, is told at the head of ``kernels/core/insert.cuh``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import COUNT_WORDS, LEFTOVER, LISTS_BYTES, LOSERS, REPORT_WORDS, WINNERS, Batch, Op, Report, Table
from ...runtime.engine import Buffer
from ..policies import build_parts_of, is_built_whole
from ..result_slot import Mailbox
from ..scratch import Scratch, pieces
from .memory import MAX_BUCKETS, SlotMemory

__all__ = ["Outcome", "Store"]

PIECE_UNIQUE = 1 << 30
"""Elements of one launch, where nothing but 32-bit element numbers bounds it."""

PIECE = 1 << 22
"""Elements settled, claimed and placed together: the claims of so many stay in the second-level cache of a GPU."""


class Outcome(NamedTuple):
    """What one update did: keys added, pairs left without a slot, elements without a slot, buckets read."""

    changed: int
    homeless: int
    unplaced: int
    probes: int

    @property
    def complete(self) -> bool:
        return not (self.homeless or self.unplaced)


class Store(SlotMemory):
    """One table. Not safe from several threads; `table` holds the lock."""

    # ---- operations that change nothing
    def find(
        self,
        keys: int,
        n: int,
        values: int,
        flags: int,
        default: int,
        stream: Any = None,
        *,
        counts: int = 0,
        entry: str = "find",
        fields: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Values and presence of ``n`` keys; or what another ``entry`` of a find writes to ``counts`` for each.

        ``fields``: further ones of the batch.
        """
        key_bytes, value_bytes = self.spec.word_bytes, self.spec.value_word_bytes
        for at in range(0, n, PIECE_UNIQUE):
            batch = Batch(
                n=min(PIECE_UNIQUE, n - at),
                keys=keys + at * key_bytes,
                out_values=values and values + at * value_bytes,
                out_flags=flags and flags + at,
                out_counts=counts and counts + at * 4,
                default_value=default,
                **fields,
            )
            self._program.run(entry, self.table, batch, batch.n, stream)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """Copy up to ``room`` pairs out, in no particular order; how many there are. Waits."""
        report = self._zeroed_report(stream)
        per_piece = PIECE_UNIQUE // self.spec.slots_per_bucket * self.spec.slots_per_bucket
        for at in range(0, self.total_slots, per_piece):
            table = Table.from_buffer_copy(self.table)
            table.slots = self.memory.ptr + at * self.spec.slot_bytes
            table.buckets = max(0, self.buckets - at // self.spec.slots_per_bucket)
            n = min(per_piece, self.total_slots - at)
            batch = Batch(n=n, out_keys=out_keys, out_values=out_values, report=report.ptr, default_value=room)
            self._program.run("scan", table, batch, n, stream)
        return self._read(report, stream).winners

    def broken_buckets(self, stream: Any = None) -> int:
        """Buckets that break the rules of ``core/slot.cuh``; 0 is right. Waits."""
        report = self._zeroed_report(stream)
        for part, slots, hashed in self._parts():
            table = Table.from_buffer_copy(self.table)
            table.slots, table.buckets = part, hashed
            n = slots // self.spec.slots_per_bucket
            self._program.run("audit", table, Batch(n=n, report=report.ptr), n, stream)
        return self._read(report, stream).mismatches

    # ---- operations that change the table
    def update(
        self,
        keys: int,
        values: int,
        n: int,
        *,
        op: Op = Op.KEEP,
        kind: int = 0,
        flags: int = 0,
        unique: bool = False,
        displaced: bool = False,
        fresh: bool = False,
        count_probes: bool = False,
        only: npt.NDArray[np.int64] | None = None,
        stream: Any = None,
    ) -> Outcome:
        """Add the keys that are absent; apply ``op`` to the values of the others. Waits.

        Parameters
        ----------
        keys, values, flags
            Addresses of ``n`` words, words and bytes; ``flags`` (`abi.Flag`) may be 0.
        unique
            The caller vouches that the keys differ from each other and from those in the table.
        displaced
            The keys are not in the table, and their first buckets are full; but some may repeat.
        fresh
            No key was put into the table since it was cleared.
        only
            Elements to take part, ascending; all of them if None.
        """
        unique = unique or self.design.places_at_once
        # Those that throw pairs out pass them on. A second piece may have keys that the first has put into the table.
        displaced = displaced and self.design.moves_keys and (unique or n <= PIECE)
        place = "place_next" if displaced else "place"
        piece = min(n, PIECE_UNIQUE if unique else PIECE)
        if only is not None and not len(only):
            return Outcome(0, 0, 0, 0)
        fresh = fresh and unique and self.spec.splits
        whole = fresh and is_built_whole(n, self.slots, self._base_bytes, self.engine.window_bytes)
        place = "place_pairs" if whole else place
        combines = op not in (Op.KEEP, Op.REPLACE)
        scratch = self._workbench.of(piece, combines and not unique, unique)
        small = n <= self._program.block_threads
        if not small:
            self._workbench.restart(scratch, stream)
        batch = scratch.batch
        batch.op, batch.kind, batch.count_probes = op, kind, count_probes
        width = self.spec.word_bytes
        dirty_claims = False
        for at, count, indices, length in pieces(self.engine, n, piece, only, stream):
            batch.n, batch.indices, batch.count = count, indices, length
            batch.keys, batch.values = keys + at * width, values and values + at * width
            batch.out_flags = flags and flags + at
            batch.random = self._random.getrandbits(32)
            if small:
                return self._run_block("update_block", batch, scratch, stream)
            if unique:
                self._program.run(place, self.table, batch, count, stream)
            else:
                if dirty_claims:
                    self._workbench.restart(scratch, stream, LISTS_BYTES)
                dirty_claims = True
                if self.design.settles and not displaced:
                    self._program.run("settle", self.table, batch, count, stream)
                    batch.indices, batch.count = batch.leftover, batch.report + LEFTOVER
                self._claim_and_place(batch, place, stream)
        if whole:
            self._program.run("split", self.table, Batch(n=self.total_slots), self.total_slots, stream)
        report = self._read(scratch.report, stream)
        self._homeless = scratch if report.homeless else None
        return Outcome(report.changed, report.homeless, report.unplaced, report.probes)

    def build(self, keys: int, values: int, n: int, unique: bool, stream: Any = None) -> Outcome | None:
        """As `update`, of a table without keys, by ``buckets/cpu/build.cuh``; None where that would not help. Waits.

        If the outcome is not complete, or there is no memory, the store is to be cleared.
        """
        engine, spec = self.engine, self.spec
        bucket_bytes = spec.slots_per_bucket * spec.slot_bytes
        parts = build_parts_of(self.buckets, bucket_bytes, self.slots, engine.stage_bytes, n)
        if parts is None or not self._builds:
            return None
        width = spec.word_bytes
        left = [engine.allocate(n * width, stream) for _ in range(2 if values else 1)]
        chunks = engine.allocate(8 * parts[0], stream)
        report = self._zeroed_report(stream)
        engine.fill(chunks.ptr, 0, chunks.nbytes, stream)
        batch = Batch(n=n, keys=keys, values=values, out_keys=left[0].ptr, out_values=left[-1].ptr if values else 0)
        batch.report, batch.out_counts, (batch.parts, batch.part_shift) = report.ptr, chunks.ptr, parts
        hashed = self.buckets * bucket_bytes
        engine.fill(self._memory.ptr + hashed, 0xFF, self._base_bytes - hashed, stream)
        self._program.run("scatter_parts", self._table, batch, n, stream)
        self._program.run("build_parts", self._table, batch, self.buckets, stream)
        self._cleared = True
        built = self._read(report, stream)
        outcome = Outcome(built.changed, 0, built.unplaced, 0)
        for first, count, displaced in ((0, built.leftover, True), (n - built.winners, built.winners, False)):
            if outcome.complete and count:
                at = [column and column + first * width for column in (batch.out_keys, batch.out_values)]
                rest = self.update(at[0], at[1], count, unique=unique, displaced=displaced, stream=stream)
                outcome = Outcome(outcome.changed + rest.changed, rest.homeless, rest.unplaced, 0)
        return outcome

    def _run_block(self, entry: str, batch: Batch, scratch: Scratch, stream: Any) -> Outcome:
        """One launch of ``kernels/buckets/gpu/one_block.cuh``, and its answer."""
        self._mailbox = self._mailbox or Mailbox(self.engine)
        self._mailbox.address(batch)
        self._program.run(entry, self.table, batch, batch.n, stream)
        homeless, unplaced, changed, probes = self._mailbox.outcome(stream)
        self._homeless = scratch if homeless else None
        return Outcome(changed, homeless, unplaced, probes)

    def _claim_and_place(self, batch: Batch, place: str, stream: Any) -> None:
        report, n = batch.report, batch.n
        run = self._program.run
        run("claim", self.table, batch, n, stream)
        batch.indices, batch.count = batch.winners, report + WINNERS
        run(place, self.table, batch, n, stream)
        if batch.losers:
            batch.indices, batch.count = batch.losers, report + LOSERS
            run("combine", self.table, batch, n, stream)

    def migrate(self, slots: int, n: int, hashed_buckets: int, stream: Any = None) -> Outcome:
        """Place the pairs of ``n`` slots at ``slots``; behind ``hashed_buckets`` buckets is the annex. Waits."""
        scratch = self._workbench.of(min(n, PIECE_UNIQUE), False, True)
        self._workbench.restart(scratch, stream)
        per_bucket = self.spec.slots_per_bucket
        for at in range(0, n, PIECE_UNIQUE):
            count = min(PIECE_UNIQUE, n - at)
            batch = Batch(
                n=count,
                keys=slots + at * self.spec.slot_bytes,
                source_buckets=max(0, hashed_buckets - at // per_bucket),
                random=self._random.getrandbits(32),
                report=scratch.report.ptr,
                homeless=scratch.batch.homeless,
            )
            self._program.run("migrate", self.table, batch, count, stream)
        report = self._read(scratch.report, stream)
        return Outcome(report.changed, report.homeless, report.unplaced, 0)

    def take_over(self, other: Store, homeless: int, stream: Any = None) -> Outcome:
        """Place all pairs of ``other``, with the ``homeless`` ones that its last update left. Waits."""
        outcome = self.migrate(other.memory.ptr, other.total_slots, other.buckets, stream)
        if not outcome.complete or not homeless:
            return outcome
        assert other._homeless is not None
        stray = self.migrate(other._homeless.batch.homeless, homeless, MAX_BUCKETS, stream)
        return Outcome(outcome.changed + stray.changed, stray.homeless, stray.unplaced, 0)

    def erase(
        self, keys: int, n: int, flags: int = 0, only: npt.NDArray[np.int64] | None = None, stream: Any = None
    ) -> int:
        """Erase keys; how many were there. Waits."""
        if n == 0 or (only is not None and not len(only)):
            return 0
        small = n <= self._program.block_threads
        scratch = (self._workbench.kept or self._workbench.of(n, False, True)) if small else None
        report = scratch.report if scratch else self._zeroed_report(stream)
        for at, count, indices, length in pieces(self.engine, n, min(n, PIECE_UNIQUE), only, stream):
            batch = Batch(
                n=count,
                keys=keys + at * self.spec.word_bytes,
                indices=indices,
                count=length,
                out_flags=flags and flags + at,
                report=report.ptr,
            )
            if scratch:
                return self._run_block("erase_block", batch, scratch, stream).changed
            self._program.run("erase", self.table, batch, count, stream)
        return self._read(report, stream).changed

    # ---- reports
    def _zeroed_report(self, stream: Any) -> Buffer:
        report = self.engine.allocate(8 * REPORT_WORDS, stream)
        self.engine.fill(report.ptr, 0, 8 * REPORT_WORDS, stream)
        return report

    def _read(self, report: Buffer, stream: Any) -> Report:
        return Report.of(self.engine.to_host(report.ptr, np.uint64, COUNT_WORDS, stream))
