"""The memory of the toy family, and its launches."""

from __future__ import annotations

import random
from typing import Any, Self

from warphash.runtime.abi import (
    LISTS_BYTES,
    LOSERS,
    WINNERS,
    BucketBatch,
    BucketTable,
)
from warphash.storage import snapshots
from warphash.storage.batch import COMBINING, Batch
from warphash.storage.elements import CLAIMED_ELEMENTS, Elements, pieces
from warphash.storage.hash_constants import buckets_for, draw_constants
from warphash.storage.listed import Listed
from warphash.storage.lookup import NO_FIELDS
from warphash.storage.scratch import Outcome, ReportBuffer, Workbench, zeroed_report
from warphash.storage.slots import MemoryUse, TableKind
from warphash.storage.snapshots import Snapshot

__all__ = ["ToyArray"]


class ToyArray:
    """Buckets in one array, by the kernels of `BucketArray`: an update claims every key, then places it."""

    batch_type, find_fields = BucketBatch, NO_FIELDS

    def __init__(self, kind: TableKind, slots: int, seed: int, family: str, stream: Any = None) -> None:
        self.engine, self.design, self.parameters, self.spec = self.kind = kind
        engine, spec = kind.engine, kind.spec
        self.seed, self.family, self.cleared = seed, family, False
        self.buckets = buckets_for(slots, spec.slots_per_bucket)
        self.slots = self.buckets * spec.slots_per_bucket
        self.all_slots = self.slots + spec.slots_per_bucket  # of the reserved bucket, too
        self._memory = engine.allocate(self.all_slots * spec.slot_bytes, stream)
        self.nbytes = self._memory.nbytes
        self.program = engine.program(spec)
        self._workbench = Workbench(engine, BucketBatch, 0)
        self._report = ReportBuffer(engine, stream)
        self.table = BucketTable(
            slots=self._memory.ptr,
            buckets=self.buckets,
            **draw_constants(random.Random(seed), family, spec.word_bytes),
            **dict(spec.constants),
        )

    def memory_use(self) -> MemoryUse:
        return MemoryUse(self.nbytes)

    def sibling(self, slots: int, seed: int, stream: Any = None) -> Self:
        return type(self)(self.kind, slots, seed, self.family, stream)

    beside = sibling

    def copy(self, stream: Any = None) -> Self:
        twin = self.sibling(self.slots, self.seed, stream)
        self.engine.copy(twin._memory.ptr, self._memory.ptr, self.nbytes, stream)
        twin.cleared = self.cleared
        return twin

    def clear(self, stream: Any = None) -> None:
        self.engine.fill(self._memory.ptr, 0xFF, self.nbytes, stream)
        self.cleared = True

    forget = clear

    def snapshot(self, stream: Any = None) -> Snapshot:
        return snapshots.take(self.engine, self._memory, stream)

    def restore(self, saved: Snapshot, stream: Any = None) -> None:
        snapshots.put_back(self.engine, self._memory, saved, stream)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        report, n = zeroed_report(self.engine, stream), self.all_slots
        batch = BucketBatch(n=n, out_keys=out_keys, out_values=out_values, report=report.ptr, room=room)
        self.program.run("scan", self.table, batch, n, stream)
        return report.read(stream).winners

    def broken_buckets(self, stream: Any = None) -> int:
        report, n = zeroed_report(self.engine, stream), self.buckets + 1
        self.program.run("audit", self.table, BucketBatch(n=n, report=report.ptr), n, stream)
        return report.read(stream).mismatches

    def is_one_launch(self, n: int) -> bool:
        return False

    def update(self, given: Batch, *, count_probes: bool = False, listed: Listed | None = None) -> Outcome:
        walked, stream, run = listed.n if listed else given.n, given.stream, self.program.run
        if not walked:
            return Outcome(0, 0, 0, 0)
        piece = min(walked, CLAIMED_ELEMENTS)
        scratch = self._workbench.of(piece, given.op in COMBINING, False, stream)
        self._workbench.restart(scratch, stream)
        batch = scratch.batch
        batch.op, batch.kind, batch.count_probes = given.op, given.kind, count_probes
        for at in range(0, walked, piece):
            first, n = 0 if listed else at, min(piece, walked - at)
            batch.n, batch.count, batch.indices = n, 0, listed.numbers.ptr + 4 * at if listed else 0
            batch.keys = given.keys + first * self.spec.word_bytes
            batch.values = given.values and given.values + first * self.spec.value_word_bytes
            batch.out_flags = given.flags and given.flags + first
            if at:
                self._workbench.restart(scratch, stream, LISTS_BYTES)
            run("claim", self.table, batch, n, stream)
            for entry, list_of, length in (("place", "winners", WINNERS), ("combine", "losers", LOSERS)):
                if getattr(batch, list_of):
                    batch.indices, batch.count = getattr(batch, list_of), batch.report + length
                    run(entry, self.table, batch, n, stream)
        return self._workbench.outcome(scratch, stream)

    def take_over(self, other: ToyArray, stream: Any = None) -> Outcome:
        report, n = zeroed_report(self.engine, stream), other.all_slots
        batch = BucketBatch(n=n, source_slots=other._memory.ptr, source_buckets=other.buckets, report=report.ptr)
        self.program.run("migrate", self.table, batch, n, stream)
        counts = report.read(stream)
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> int:
        report = self._report.reset(stream)
        for at, count, indices, length in pieces(self.engine, n, n, only, stream):
            batch = BucketBatch(n=count, indices=indices, count=length, report=report)
            batch.keys, batch.out_flags = keys + at * self.spec.word_bytes, flags and flags + at
            self.program.run("erase", self.table, batch, count, stream)
        return self._report.read(stream).changed

    def erase_listed(self, keys: int, numbers: int, n: int, stream: Any = None) -> int:
        report = self._report.reset(stream)
        self.program.run("erase", self.table, BucketBatch(n=n, keys=keys, indices=numbers, report=report), n, stream)
        return self._report.read(stream).changed
