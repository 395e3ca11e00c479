"""The directory and the ranges of a two-level table in the memory of one engine, and the kernels that run over them.

Memory. The ranges lie in segments, each an allocation of its own: those that a table starts with, and one for each time
that buckets were given larger ranges. The directory, the counters and the slots of the reserved keys are one more
allocation (``kernels/two_level/ranges.cuh``). A bucket that has moved leaves an empty range, which stays until the next
rebuild.

Every kernel publishes whole buckets (``kernels/two_level/place.cuh``), so no pair is ever displaced when a kernel ends.
Between two kernels of an update, the counters of buckets hold lists, which `forget_lists` drops after an interrupt.

A new array is not `cleared`: its slots hold anything. `build` and `take_over` take it so; all else needs `clear` first.
"""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ...runtime.abi import LEFTOVER, LISTS_BYTES, LOSERS, WINNERS, TwoLevelBatch, TwoLevelTable
from ...runtime.engine import Buffer
from .. import snapshots
from ..batch import COMBINING, Batch
from ..batch_order.sample import Samples
from ..elements import CLAIMED_ELEMENTS, Elements, pieces
from ..hash_constants import draw_constants
from ..listed import Listed
from ..lookup import LAUNCH_ELEMENTS, NO_FIELDS
from ..policies import range_slots_for
from ..scratch import Outcome, ReportBuffer, Workbench, zeroed_report
from ..slots import MemoryUse, TableKind
from ..snapshots import Snapshot

__all__ = ["MOST_RANGE_SLOTS", "Saved", "TwoLevelArray"]

MOST_RANGE_SLOTS = 2048
"""Of a range: ``kMostRangeSlots``."""

_PLACING_THREADS = 256
"""Elements that a launch counts for a block: ``kPlacingThreads``."""

_SEGMENT_BYTES = 256 << 20
"""Most bytes of an allocation for ranges."""

_ENTRY = np.dtype([("address", np.uint64), ("slots", np.uint32), ("seed", np.uint32)])
"""Of the directory: ``struct RangeEntry``."""

_NO_ELEMENT, _BUCKET_FAILED = (1 << 32) - 1, (1 << 32) - 2
"""Of a counter: ``kNoElement`` and ``kBucketFailed``."""

_RESERVED_SLOTS = 3


class _Segment(NamedTuple):
    """Ranges in a row."""

    memory: Buffer
    slots: int


class Saved(NamedTuple):
    """Copies of the directory and of all segments."""

    directory: Snapshot
    segments: tuple[_Segment, ...]
    contents: list[Snapshot]
    slots: int


class TwoLevelArray:
    """The `SlotArray` of buckets with at least ``slots`` slots between them, each in a range of its own.

    Parameters
    ----------
    seed
        Of the hash constants.
    family
        One of `HASHES`.

    Attributes
    ----------
    buckets, slots
        Of the first level; and the slots of all their ranges.
    samples
        Of the batches that the array may be built from.
    """

    batch_type, find_fields = TwoLevelBatch, NO_FIELDS

    def __init__(self, kind: TableKind, slots: int, seed: int, family: str, stream: Any = None) -> None:
        self.engine, self.design, self.parameters, self.spec = self.kind = kind
        engine, parameters, spec = kind.engine, kind.parameters, kind.spec
        self.seed, self.family = seed, family
        self.buckets, self._range_slots = range_slots_for(slots, parameters["range_slots"], parameters["hashes"])
        self.slots = self.buckets * self._range_slots
        self.cleared = False
        self.samples = Samples()
        per_segment = max(1, _SEGMENT_BYTES // (self._range_slots * spec.slot_bytes))
        self.segments = tuple(
            self._segment(min(per_segment, self.buckets - at) * self._range_slots, stream)
            for at in range(0, self.buckets, per_segment)
        )
        self._directory_bytes = _ENTRY.itemsize * self.buckets
        self._directory = engine.allocate(self._directory_bytes + 4 * self.buckets + 64, stream)
        self.program = engine.program(spec)
        self._report = ReportBuffer(engine, stream)
        self._workbench = Workbench(engine, TwoLevelBatch, 0)
        self._random = random.Random(seed)
        reserved = self._directory.ptr
        self.table = TwoLevelTable(
            buckets=self.buckets,
            reserved=reserved,
            directory=reserved + 64,
            counters=reserved + 64 + self._directory_bytes,
            **draw_constants(self._random, family, spec.word_bytes),
            **dict(spec.constants),
        )
        self._lay_out(stream)

    def _segment(self, slots: int, stream: Any) -> _Segment:
        return _Segment(self.engine.allocate(slots * self.spec.slot_bytes, stream), slots)

    def _lay_out(self, stream: Any) -> None:
        """Write the directory of ranges in a row."""
        first, random_word = 0, self._random.getrandbits(32)
        for memory, slots in self.segments:
            n = slots // self._range_slots
            batch = TwoLevelBatch(n=n, first_bucket=first, ranges=memory.ptr, range_slots=self._range_slots)
            batch.random = random_word
            self.program.run("lay_out", self.table, batch, n, stream)
            first += n
        self.engine.fill(self._directory.ptr, 0xFF, 64, stream)
        self.forget_lists(stream)

    @property
    def nbytes(self) -> int:
        """Bytes of the ranges and of the directory."""
        return self._directory.nbytes + sum(segment.memory.nbytes for segment in self.segments)

    def memory_use(self) -> MemoryUse:
        """The ranges of the buckets, and what has moved leaves behind."""
        in_use = self.slots * self.spec.slot_bytes
        return MemoryUse(in_use, self.nbytes - self._directory.nbytes - in_use)

    # ---- arrays like this one
    def sibling(self, slots: int, seed: int, stream: Any = None) -> Self:
        """An array of the same kind with other hash constants, not cleared."""
        return type(self)(self.kind, slots, seed, self.family, stream)

    beside = sibling

    def copy(self, stream: Any = None) -> Self:
        """An array with the same hash constants and pairs, in memory of its own."""
        engine = self.engine
        twin = self.sibling(self.regular_slots, self.seed, stream)
        twin._random.setstate(self._random.getstate())
        twin.segments += tuple(self._segment(s.slots, stream) for s in self.segments[len(twin.segments) :])
        for ours, theirs in zip(self.segments, twin.segments, strict=True):
            engine.copy(theirs.memory.ptr, ours.memory.ptr, ours.memory.nbytes, stream)
        entries = self._entries(stream)
        for ours, theirs in zip(self.segments, twin.segments, strict=True):
            start = np.uint64(ours.memory.ptr)
            inside = (entries["address"] >= start) & (entries["address"] < start + np.uint64(ours.memory.nbytes))
            entries["address"][inside] += np.uint64((theirs.memory.ptr - ours.memory.ptr) % (1 << 64))
        engine.copy(twin._directory.ptr, self._directory.ptr, self._directory.nbytes, stream)
        engine.upload(twin.table.directory, entries.view(np.uint8), stream)
        twin.slots, twin.cleared = self.slots, self.cleared
        return twin

    def _entries(self, stream: Any) -> npt.NDArray[Any]:
        """The directory, on the host. Waits."""
        return self.engine.to_host(self.table.directory, np.uint8, self._directory_bytes, stream).view(_ENTRY)

    # ---- memory
    def clear(self, stream: Any = None) -> None:
        """Forget all pairs."""
        self.cleared = False
        for segment in self.segments:
            self.engine.fill(segment.memory.ptr, 0xFF, segment.memory.nbytes, stream)  # no slot was ever used
        self.engine.fill(self.table.reserved, 0xFF, 64, stream)
        self.forget_lists(stream)
        self.cleared = True

    def forget(self, stream: Any = None) -> None:
        """Forget all pairs. The array is not cleared by that."""
        self.cleared = False

    def forget_lists(self, stream: Any = None) -> None:
        """Forget what an operation that stopped half way has left in the counters."""
        self.engine.fill(self.table.counters, 0xFF, 4 * self.buckets, stream)

    def count_slots(self, stream: Any = None) -> None:
        """Read from the directory how many slots the buckets have. Waits."""
        self.slots = int(self._entries(stream)["slots"].sum(dtype=np.int64))

    def snapshot(self, stream: Any = None) -> Saved:
        """A copy of the directory and of the slots; on the host, where the device has no memory for one."""
        contents = [snapshots.take(self.engine, segment.memory, stream) for segment in self.segments]
        return Saved(snapshots.take(self.engine, self._directory, stream), self.segments, contents, self.slots)

    def restore(self, saved: Saved, stream: Any = None) -> None:
        """Put back what `snapshot` gave. Allocates nothing on the device."""
        for segment, contents in zip(saved.segments, saved.contents, strict=True):
            snapshots.put_back(self.engine, segment.memory, contents, stream)
        snapshots.put_back(self.engine, self._directory, saved.directory, stream)
        self.forget_lists(stream)
        self.segments, self.slots = saved.segments, saved.slots

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """As `Slots.scan`."""
        report = zeroed_report(self.engine, stream)
        for slots, n, keys in self._pieces():
            table = TwoLevelTable.from_buffer_copy(self.table)
            table.slots, table.buckets = slots, keys
            batch = TwoLevelBatch(n=n, out_keys=out_keys, out_values=out_values, report=report.ptr, room=room)
            self.program.run("scan", table, batch, n, stream)
        return report.read(stream).winners

    def _pieces(self) -> list[tuple[int, int, int]]:
        """All slots: the address of some in a row, how many they are, and how many of these are no reserved ones."""
        ranges = [(segment.memory.ptr, segment.slots, segment.slots) for segment in self.segments]
        return [*ranges, (self.table.reserved, _RESERVED_SLOTS, 0)]

    def broken_buckets(self, stream: Any = None) -> int:
        """As `Slots.broken_buckets`: slots to which no search for their key comes."""
        report, n = zeroed_report(self.engine, stream), self.buckets + _RESERVED_SLOTS
        self.program.run("audit", self.table, TwoLevelBatch(n=n, report=report.ptr), n, stream)
        return report.read(stream).mismatches

    # ---- operations that change pairs
    def is_one_launch(self, n: int) -> bool:
        """No update of two-level tables is a single launch."""
        return False

    def update(self, given: Batch, *, count_probes: bool = False, listed: Listed | None = None) -> Outcome:
        walked, stream = listed.n if listed else given.n, given.stream
        if not walked:
            return Outcome(0, 0, 0, 0)
        engine, spec, piece = self.engine, self.spec, min(walked, CLAIMED_ELEMENTS)
        scratch = self._workbench.of(piece, given.op in COMBINING and not given.unique, False, stream)
        chain = engine.allocate(4 * (given.n if listed else piece), stream)  # by the numbers of elements
        self._workbench.restart(scratch, stream)
        batch = scratch.batch
        batch.op, batch.kind, batch.count_probes, batch.chain = given.op, given.kind, count_probes, chain.ptr
        for at in range(0, walked, piece):
            first = 0 if listed else at  # element numbers count from here
            batch.n = min(piece, walked - at)
            batch.indices = listed.numbers.ptr + 4 * at if listed else 0
            batch.count = 0
            batch.keys = given.keys + first * spec.word_bytes
            batch.values = given.values and given.values + first * spec.value_word_bytes
            batch.out_flags = given.flags and given.flags + first
            batch.random = self._random.getrandbits(32)
            if at:
                self._workbench.restart(scratch, stream, LISTS_BYTES)
            self._place(batch, given.unique, stream)
        return self._workbench.outcome(scratch, stream)

    def _place(self, batch: TwoLevelBatch, unique: bool, stream: Any) -> None:
        """Launch the kernels of a piece."""
        report, n, run, table = batch.report, batch.n, self.program.run, self.table
        run("settle", table, batch, n, stream)
        batch.indices, batch.count = batch.leftover, report + LEFTOVER
        batch.touched, batch.touched_count = batch.winners, report + WINNERS
        if not unique:
            run("claim", table, batch, n, stream)
            batch.indices, batch.count = batch.winners, report + WINNERS
            batch.touched, batch.touched_count = batch.leftover, report + LEFTOVER
            self.engine.fill(batch.touched_count, 0, 8, stream)
        run("link", table, batch, n, stream)
        batch.count = 0
        run("place", table, batch, min(n, self.buckets) * _PLACING_THREADS, stream)
        if batch.losers and not unique:
            batch.indices, batch.count = batch.losers, report + LOSERS
            run("combine", table, batch, n, stream)

    def build(self, given: Batch) -> Outcome:
        """As `update`, of an array without pairs, cleared or not. Waits.

        The array counts as not `cleared` until its owner has seen that the outcome is complete.
        """
        n, stream = given.n, given.stream
        report = self._begin_to_fill(stream)
        for at in range(0, n, LAUNCH_ELEMENTS):
            batch = TwoLevelBatch(n=min(LAUNCH_ELEMENTS, n - at), report=report)
            batch.keys = given.keys + at * self.spec.word_bytes
            batch.values = given.values and given.values + at * self.spec.value_word_bytes
            self.program.run("scatter", self.table, batch, batch.n, stream)
        return self._filled(report, stream)

    def take_over(self, other: TwoLevelArray, stream: Any = None) -> Outcome:
        """As `build`, with the pairs of ``other``."""
        report = self._begin_to_fill(stream)
        for slots, count, reserved in other._pieces():
            for at in range(0, count, LAUNCH_ELEMENTS):
                batch = TwoLevelBatch(n=min(LAUNCH_ELEMENTS, count - at), report=report)
                batch.source_slots = slots + at * self.spec.slot_bytes
                batch.source_keys = max(0, reserved - at)
                self.program.run("scatter_slots", self.table, batch, batch.n, stream)
        return self._filled(report, stream)

    def _begin_to_fill(self, stream: Any) -> int:
        """No pair is in any range, and the counters count; address of a report that counts."""
        self.cleared = False
        self.engine.fill(self.table.reserved, 0xFF, 64, stream)
        self.engine.fill(self.table.counters, 0, 4 * self.buckets, stream)
        return self._report.reset(stream)

    def _filled(self, report: int, stream: Any) -> Outcome:
        """Place the pairs that lie in the ranges of their buckets. Waits."""
        batch = TwoLevelBatch(n=self.buckets, report=report)
        self.program.run("place_all", self.table, batch, self.buckets * _PLACING_THREADS, stream)
        counts = self._report.read(stream)
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def failed_buckets(self, stream: Any = None) -> npt.NDArray[np.uint32]:
        """The buckets for which the last operation found no layout; their counters forget it. Waits."""
        counters = self.engine.to_host(self.table.counters, np.uint32, self.buckets, stream)
        self.forget_lists(stream)
        return np.flatnonzero(counters == _BUCKET_FAILED).astype(np.uint32)

    @property
    def regular_slots(self) -> int:
        """The slots of the buckets without those of larger ranges: as many as the array was made with."""
        return self.buckets * self._range_slots

    def enlarge(
        self, which: npt.NDArray[np.uint32], most_slots: float = math.inf, stream: Any = None
    ) -> Outcome | None:
        """Give some buckets ranges of twice their slots. Waits.

        The outcome counts the pairs of a bucket as unplaced if no layout was found in its new range. Such a bucket is
        what it was. None, and nothing has changed, if a bucket has the largest range already, or the buckets would have
        more than ``most_slots`` between them.

        Raises
        ------
        MemoryError
            If there is no memory for the ranges. Nothing has changed.
        """
        engine = self.engine
        slots = 2 * self._entries(stream)["slots"][which].astype(np.int64)
        if slots.max() > MOST_RANGE_SLOTS or self.slots + int(slots.sum()) // 2 > most_slots:
            return None
        added = self._segment(int(slots.sum()), stream)
        moves = np.zeros(len(which), _ENTRY)
        moves["address"] = added.memory.ptr + (np.cumsum(slots) - slots) * self.spec.slot_bytes
        moves["slots"], moves["seed"] = slots, [self._random.getrandbits(32) for _ in which]
        words = np.concatenate([moves.view(np.uint8), which.view(np.uint8)])
        held = engine.from_host(words, stream)
        engine.fill(added.memory.ptr, 0xFF, added.memory.nbytes, stream)
        report = self._report.reset(stream)
        batch = TwoLevelBatch(n=len(which), moves=held.ptr, touched=held.ptr + moves.nbytes, report=report)
        self.segments += (added,)
        self.program.run("move", self.table, batch, len(which) * _PLACING_THREADS, stream)
        counts = self._report.read(stream)
        self.count_slots(stream)
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> int:
        """Erase keys; how many were there. Waits."""
        report = self._report.reset(stream)
        for at, count, indices, length in pieces(self.engine, n, min(n, LAUNCH_ELEMENTS), only, stream):
            batch = TwoLevelBatch(n=count, indices=indices, count=length, report=report)
            batch.keys, batch.out_flags = keys + at * self.spec.word_bytes, flags and flags + at
            self.program.run("erase", self.table, batch, count, stream)
        return self._report.read(stream).changed

    def erase_listed(self, keys: int, numbers: int, n: int, stream: Any = None) -> int:
        """Erase the keys of ``n`` elements whose numbers (uint32) lie at an address; how many were there. Waits.

        Allocates nothing. Of elements with one key, only one is sure to erase a copy of the key.
        """
        report = self._report.reset(stream)
        batch = TwoLevelBatch(n=n, keys=keys, indices=numbers, report=report)
        self.program.run("erase", self.table, batch, n, stream)
        return self._report.read(stream).changed
