"""An array of buckets in the memory of one engine, its hash constants, and the kernels that run over it.

The head of ``kernels/core/insert.cuh`` tells the sequence of kernels that an update takes, and why. An array keeps no
count of its keys, and decides nothing: it launches what it is told, and reports the outcome.

Two facts about a batch that stopped half way are kept here, because they are facts about the memory:

- `Workbench.displaced` is the scratch memory in which the last update left pairs that lost their slots and found no
  other. It is noted before the kernels are launched, and forgotten when all of them are known to have slots.
- `cleared` is false while the slots are not in the layout that a find reads: while an empty table is filled with whole
  pairs that one more pass splits into columns. Such a table had no keys before.

A new array is not `cleared`, either: its slots hold anything. `build` alone takes it so; all else needs `clear` first.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from ...runtime.abi import (
    DISPLACED_CAPACITY,
    LEFTOVER,
    LISTS_BYTES,
    LOSERS,
    WINNERS,
    BucketBatch,
    BucketTable,
    BuildBatch,
    InsertBatch,
    Table,
)
from .. import snapshots
from ..batch import COMBINING, Batch
from ..batch_order import lookups
from ..batch_order.parts import build_parts_of, is_built_whole
from ..elements import CLAIMED_ELEMENTS, Elements, pieces
from ..hash_constants import buckets_for, draw_constants
from ..listed import Listed
from ..lookup import LAUNCH_ELEMENTS, NO_FIELDS
from ..new_memory import filled
from ..result_slot import ResultSlot
from ..scratch import Outcome, ReportBuffer, Workbench, zeroed_report
from ..slots import MemoryUse, TableKind
from ..snapshots import Snapshot
from ..update.pairs import Pairs

__all__ = ["BucketArray", "Saved"]


class Saved(NamedTuple):
    """A copy of the slots, and the constants of that time."""

    table: Table
    slots: Snapshot


class BucketArray:
    """The `SlotArray` of buckets with slots for at least ``slots`` pairs, rounded up to whole buckets.

    Parameters
    ----------
    seed
        Of the hash constants and the victims of evictions.
    family
        One of `HASHES`.

    Attributes
    ----------
    buckets, slots
        Those that keys are hashed to. The reserved bucket behind them has slots of its own.
    """

    batch_type, find_fields, most_left = BucketBatch, NO_FIELDS, 1

    def __init__(self, kind: TableKind, slots: int, seed: int, family: str, stream: Any = None) -> None:
        self.engine, self.design, self.parameters, self.spec = self.kind = kind
        engine, spec, per_bucket = kind.engine, kind.spec, kind.spec.slots_per_bucket
        self.seed, self.family = seed, family
        self.buckets = buckets_for(slots, per_bucket)
        self.slots = self.buckets * per_bucket
        self.total_slots = (self.buckets + (1 if per_bucket >= 3 else 3)) * per_bucket
        self.nbytes = self.total_slots * spec.slot_bytes
        self.cleared = self._is_blank = False
        self._memory = engine.allocate(self.nbytes, stream)
        self.program = engine.program(spec)
        self._random = random.Random(seed)
        self.table = self._describe()
        self._report = ReportBuffer(engine, stream)
        self._workbench = Workbench(engine, BucketBatch, spec.slot_bytes if kind.design.moves_keys else 0)
        self._result_slot: ResultSlot | None = None

    def memory_use(self) -> MemoryUse:
        """The slots that keys are hashed to."""
        return MemoryUse(self.slots * self.spec.slot_bytes)

    def _describe(self) -> Table:
        return BucketTable(
            slots=self._memory.ptr,
            buckets=self.buckets,
            **draw_constants(self._random, self.family, self.spec.word_bytes),
            **dict(self.spec.constants),
            chain_limit=self.design.chain_limit(self.slots),
        )

    # ---- arrays like this one
    def sibling(self, slots: int, seed: int, stream: Any = None) -> Self:
        """An array of the same kind with other hash constants, not cleared."""
        return type(self)(self.kind, slots, seed, self.family, stream)

    beside = sibling

    def copy(self, stream: Any = None) -> Self:
        """An array with the same hash constants and pairs, in memory of its own."""
        twin = self.sibling(self.slots, self.seed, stream)
        twin.table = BucketTable.from_buffer_copy(self.table)
        twin.table.slots = twin._memory.ptr
        twin._random.setstate(self._random.getstate())
        self.engine.copy(twin._memory.ptr, self._memory.ptr, self._memory.nbytes, stream)
        twin.cleared, twin._is_blank = self.cleared, self._is_blank
        return twin

    # ---- memory
    @property
    def has_two_rounds(self) -> bool:
        """As of `Design`."""
        return self.design.has_two_rounds(self.parameters)

    @property
    def builds(self) -> bool:
        """Whether the engine and the design have the kernels of `build`."""
        return self.engine.stage_bytes > 0 and self.design.fills_first_bucket(self.parameters)

    def parts_to_build(self, keys: int) -> tuple[int, int] | None:
        """As `parts.build_parts_of` for a build from so many keys; None also where there is no build."""
        if not self.builds:
            return None
        bucket_bytes = self.spec.slots_per_bucket * self.spec.slot_bytes
        return build_parts_of(self.buckets, bucket_bytes, self.slots, self.engine.stage_bytes, keys)

    def clear(self, stream: Any = None) -> None:
        """Forget all pairs."""
        self.cleared = False
        self.engine.fill(self._memory.ptr, 0xFF, self._memory.nbytes, stream)  # no slot was ever used
        self._workbench.displaced = None
        self.cleared = self._is_blank = True  # no pair has been written since

    def forget(self, stream: Any = None) -> None:
        """Forget all pairs. An array that `builds` is not cleared by that."""
        self.cleared = False
        if not self.builds:
            self.clear(stream)

    def rehash(self, stream: Any = None) -> None:
        """Forget all pairs and draw other hash constants, in the same memory."""
        self.table = self._describe()
        self.clear(stream)

    def snapshot(self, stream: Any = None) -> Saved:
        """A copy of the slots; on the host, if the device has no memory for one."""
        return Saved(self.table, snapshots.take(self.engine, self._memory, stream))

    def restore(self, saved: Saved, stream: Any = None) -> None:
        """Put back what `snapshot` gave. Allocates nothing on the device."""
        snapshots.put_back(self.engine, self._memory, saved.slots, stream)
        self.table, self.cleared, self._is_blank = saved.table, True, False
        self._workbench.displaced = None

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """As `Slots.scan`."""
        report, base = zeroed_report(self.engine, stream), self.table
        per_launch = LAUNCH_ELEMENTS // self.spec.slots_per_bucket * self.spec.slots_per_bucket
        for at in range(0, self.total_slots, per_launch):
            table, n = self._from_slot(base, at), min(per_launch, self.total_slots - at)
            batch = BucketBatch(n=n, out_keys=out_keys, out_values=out_values, report=report.ptr, room=room)
            self.program.run("scan", table, batch, n, stream)
        return report.read(stream).winners

    def _from_slot(self, table: Table, first: int) -> Table:
        """What a scan is told of the slots from one on, which is the first of a bucket."""
        rest = BucketTable.from_buffer_copy(table)
        rest.slots = table.slots + first * self.spec.slot_bytes
        rest.buckets = max(0, self.buckets - first // self.spec.slots_per_bucket)
        return rest

    def broken_buckets(self, stream: Any = None) -> int:
        """As `Slots.broken_buckets`; the rules are those of ``core/slot.cuh``."""
        report, n = zeroed_report(self.engine, stream), self.total_slots // self.spec.slots_per_bucket
        self.program.run("audit", self.table, BucketBatch(n=n, report=report.ptr), n, stream)
        return report.read(stream).mismatches

    # ---- operations that change pairs
    def is_one_launch(self, n: int) -> bool:
        """Whether an update or erase of ``n`` elements is a single launch: nothing can stop it half way."""
        return n <= self.program.block_threads

    def update(
        self,
        given: Batch,
        *,
        count_probes: bool = False,
        listed: Listed | None = None,
        past_first: bool = False,
    ) -> Outcome:
        """As `SlotArray.update`; ``past_first`` is as of `Listed`, of all elements of the batch."""
        if listed is not None and not listed.n:
            return Outcome(0, 0, 0, 0)
        walked, unique, stream = listed.n if listed else given.n, given.unique, given.stream
        if self.is_one_launch(walked):
            self.begin(given, count_probes=count_probes, listed=listed)
            return self.outcome(stream)
        # A design that displaces a pair passes it on. A second piece may have keys that the first has added.
        goes_on = self.design.moves_keys or self.has_two_rounds
        is_past = past_first or (listed is not None and listed.past_first)
        skips_first = is_past and goes_on and (unique or walked <= CLAIMED_ELEMENTS)
        piece = min(walked, LAUNCH_ELEMENTS if unique else CLAIMED_ELEMENTS)
        may_build = self._is_blank and unique and self.spec.splits
        whole = may_build and is_built_whole(given.n, self.slots, self.nbytes, self.engine.window_bytes)
        place = "place_pairs" if whole else "place_next" if skips_first else "place"
        scratch = self._workbench.of(piece, given.op in COMBINING and not unique, unique, stream)
        table = self.table
        self._workbench.restart(scratch, stream)
        if self.design.moves_keys:
            self._workbench.displaced = scratch
        self._is_blank = False
        if whole:
            self.cleared = False
        batch = scratch.batch
        batch.op, batch.kind, batch.count_probes = given.op, given.kind, count_probes
        spec, dirty_claims = self.spec, False
        for at in range(0, walked, piece):
            first = 0 if listed else at  # element numbers count from here
            batch.n, batch.count = min(piece, walked - at), 0
            batch.indices = listed.numbers.ptr + 4 * at if listed else 0
            batch.keys = given.keys + first * spec.word_bytes
            batch.values = given.values and given.values + first * spec.value_word_bytes
            batch.out_flags = given.flags and given.flags + first
            batch.random = self._random.getrandbits(32)
            if unique:
                self.program.run(place, table, batch, batch.n, stream)
            else:
                if dirty_claims:
                    self._workbench.restart(scratch, stream, LISTS_BYTES)
                dirty_claims = True
                self._place_distinct(table, batch, place, self.design.settles and not skips_first, stream)
        if whole:
            self.program.run("split", table, BucketBatch(n=self.total_slots), self.total_slots, stream)
            self.cleared = True
        return self._workbench.outcome(scratch, stream)

    def settle(self, given: Batch) -> tuple[int, Listed] | None:
        """Add the keys that have room in their first buckets: how many, and a list of the others. Waits.

        None if a launch has not so many elements, or there is no memory for the list: nothing has changed.
        """
        n, stream = given.n, given.stream
        if n > LAUNCH_ELEMENTS:
            return None
        try:
            listed = self.engine.allocate(4 * n, stream)
            report = zeroed_report(self.engine, stream)
        except MemoryError:
            return None
        batch = BucketBatch(n=n, keys=given.keys, values=given.values, out_flags=given.flags)
        batch.leftover, batch.report = listed.ptr, report.ptr
        self._is_blank = False
        self.program.run("settle_new" if given.unique else "settle", self.table, batch, n, stream)
        settled = report.read(stream)
        return settled.changed, Listed(listed, settled.leftover, past_first=True)

    def begin(
        self, given: Batch, *, count_probes: bool = False, listed: Listed | None = None, adopts: bool = False
    ) -> None:
        """Launch an update, as of `update`, that is one launch; `outcome` waits for it.

        Parameters
        ----------
        adopts
            Pairs that find no slot become displaced pairs. Every element has a flag, and no values are combined.

        Raises
        ------
        MemoryError
            Before the kernel is launched.
        """
        n, unique, stream = listed.n if listed else given.n, given.unique, given.stream
        scratch = self._workbench.of(n, given.op in COMBINING and not unique, unique, stream)
        if self.design.moves_keys:
            self._workbench.displaced = scratch
        self._is_blank = False
        batch = scratch.batch
        batch.op, batch.kind, batch.count_probes, batch.adopts = given.op, given.kind, count_probes, adopts
        batch.n, batch.count, batch.indices = n, 0, listed.numbers.ptr if listed else 0
        batch.keys, batch.values, batch.out_flags = given.keys, given.values, given.flags
        batch.random = self._random.getrandbits(32)
        self._launch_block("update_block", batch, stream)

    def leave(self, given: Batch, left: int, awaited: int, new_share: float) -> int:
        """As `LeavingArray.leave`. Only a design that moves keys keeps pairs without a slot."""
        if left or not (self.design.moves_keys and self.is_one_launch(given.n)):
            return 0
        if not self.cleared:
            self.clear(given.stream)
        self.begin(given, adopts=True)
        return 1

    def answer(self, ticket: int) -> None:
        """As `LeavingArray.answer`: only `outcome` says what became of a batch."""

    def forget_left(self) -> None:
        """As `LeavingArray.forget_left`: no memory is held for a batch that is left."""

    def outcome(self, stream: Any = None) -> Outcome:
        """The outcome of the update that `begin` has launched. Waits."""
        return self._workbench.end(self._answer(stream))

    def _place_distinct(self, table: Table, batch: InsertBatch, place: str, settles: bool, stream: Any) -> None:
        """Launch the kernels of a piece in which keys may repeat."""
        report, n, run = batch.report, batch.n, self.program.run
        if settles:
            run("settle", table, batch, n, stream)
            batch.indices, batch.count = batch.leftover, report + LEFTOVER
        run("claim", table, batch, n, stream)
        batch.indices, batch.count = batch.winners, report + WINNERS
        run(place, table, batch, n, stream)
        if batch.losers:
            batch.indices, batch.count = batch.losers, report + LOSERS
            run("combine", table, batch, n, stream)

    def build(self, given: Batch) -> Outcome | None:
        """As `update`, of an array without pairs, cleared or not (``kernels/buckets/cpu/build.cuh``). Waits.

        None where a build would not help: nothing has changed. If the outcome is not complete, the array is to be
        cleared.

        Raises
        ------
        MemoryError
            If there is no memory for the lists, or for what does not fit into first buckets: then the array is not
            `cleared` any more.
        """
        batch = BuildBatch(n=given.n, keys=given.keys, values=given.values)
        return self._build({"scatter_parts": batch}, given.n, given.unique, given.stream)

    def build_from(self, other: BucketArray, keys: int, stream: Any = None) -> Outcome | None:
        """As `build`, of about ``keys`` pairs: those in ``other``, which has other hash constants."""
        return self._build({"scatter_slots": _slots_of(other)}, keys, True, stream)

    def build_from_both(self, other: BucketArray, size: int, given: Batch) -> Outcome | None:
        """As `build`, of the ``size`` pairs in ``other`` and of the batch.

        If a key of the batch repeats, or is in ``other``, any of its values stays: the outcome then has fewer changes
        than there are pairs.
        """
        batch = BuildBatch(n=given.n, keys=given.keys, values=given.values)
        sources = {"scatter_slots": _slots_of(other), "scatter_parts": batch}
        return self._build(sources, size + given.n, False, given.stream)

    def _build(self, sources: Mapping[str, BuildBatch], keys: int, unique: bool, stream: Any) -> Outcome | None:
        """Scatter about ``keys`` pairs from batches, each by the kernel that it is named by, and build the parts."""
        engine, spec = self.engine, self.spec
        bucket_bytes, parts = spec.slots_per_bucket * spec.slot_bytes, self.parts_to_build(keys)
        if parts is None:
            return None
        elements = {scatter: batch.n for scatter, batch in sources.items()}
        width, n = spec.word_bytes, sum(elements.values())
        left = [engine.allocate(n * width, stream) for _ in range(2 if spec.value_word_bytes else 1)]
        chunks, report = filled(engine, 8 * parts[0], stream), self._report.reset(stream)
        hashed = self.buckets * bucket_bytes
        self.cleared = self._is_blank = False
        engine.fill(self._memory.ptr + hashed, 0xFF, self.nbytes - hashed, stream)
        for scatter, batch in sources.items():
            batch.n = n  # the length of the lists
            batch.left_keys, batch.left_values = left[0].ptr, left[-1].ptr if spec.value_word_bytes else 0
            batch.report, batch.chunks, (batch.parts, batch.part_shift) = report, chunks.ptr, parts
            self.program.run(scatter, self.table, batch, elements[scatter], stream)
        self.program.run("build_parts", self.table, batch, self.buckets, stream)
        built = self._report.read(stream)
        outcome = Outcome(built.changed, 0, built.unplaced, 0)
        for first, count, in_others in ((0, built.leftover, True), (n - built.winners, built.winners, False)):
            if outcome.complete and count:
                at = [column and column + first * width for column in (batch.left_keys, batch.left_values)]
                some = Batch(at[0], at[1], count, unique=unique, stream=stream)
                rest = self.update(some, past_first=in_others)
                outcome = Outcome(outcome.changed + rest.changed, rest.displaced, rest.unplaced, 0)
        self.cleared = True
        return outcome

    def flag_added(self, given: Batch) -> int:
        """Flag the elements of the batch that the array was built from: of those with one key, one that it holds.

        Returns how many were flagged: all keys, unless the batch has changed since. Waits.

        Raises
        ------
        MemoryError
            If there is no memory for a bit for each slot. The array is as it was.
        """
        n, stream = given.n, given.stream
        claims = filled(self.engine, 4 * (self.total_slots // 32 + 1), stream)
        report = self._report.reset(stream)
        batch = BucketBatch(n=n, keys=given.keys, values=given.values, out_flags=given.flags)
        batch.claims, batch.report = claims.ptr, report
        self.program.run("flag_added", self.table, batch, n, stream)
        return self._report.read(stream).changed

    def migrate(self, slots: int, n: int, hashed_buckets: int, stream: Any = None) -> Outcome:
        """Place the pairs of ``n`` slots at an address; ``hashed_buckets`` lie before the reserved bucket. Waits."""
        scratch = self._workbench.of(min(n, LAUNCH_ELEMENTS), False, True, stream)
        self._workbench.restart(scratch, stream)
        per_bucket, table = self.spec.slots_per_bucket, self.table
        self._is_blank = False
        for at in range(0, n, LAUNCH_ELEMENTS):
            count = min(LAUNCH_ELEMENTS, n - at)
            batch = BucketBatch(
                n=count,
                source_slots=slots + at * self.spec.slot_bytes,
                source_buckets=max(0, hashed_buckets - at // per_bucket),
                random=self._random.getrandbits(32),
                report=scratch.report.ptr,
                displaced=scratch.batch.displaced,
            )
            self.program.run("migrate", table, batch, count, stream)
        return self._workbench.outcome(scratch, stream)

    def take_over(self, other: BucketArray, stream: Any = None) -> Outcome:
        """Place all pairs of ``other``. Waits."""
        return self.migrate(other._memory.ptr, other.total_slots, other.buckets, stream)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> int:
        """Erase keys; how many were there. Waits."""
        small, table = self.is_one_launch(n), self.table
        scratch = (self._workbench.kept or self._workbench.of(n, False, True, stream)) if small else None
        report = scratch.report.ptr if scratch else self._report.reset(stream)
        for at, count, indices, length in pieces(self.engine, n, min(n, LAUNCH_ELEMENTS), only, stream):
            at_keys, at_flags = keys + at * self.spec.word_bytes, flags and flags + at
            may_part = count >= lookups.FEWEST_PARTITIONED and not small and not indices
            parts = lookups.parts_for(self, count, erases=True) if may_part else None
            parted = parts and lookups.partition_keys(self, at_keys, count, parts, stream)
            batch = BucketBatch(
                n=count,
                keys=parted.keys if parted else at_keys,
                indices=indices,
                count=length,
                out_flags=at_flags and (parted.flags if parted else at_flags),
                report=report,
            )
            if scratch:
                self._launch_block("erase_block", batch, stream)
                return self._answer(stream).changed
            self.program.run("erase", table, batch, count, stream)
            if parted and flags:
                parted.restore(0, at_flags, stream)
        return self._report.read(stream).changed

    def erase_listed(self, keys: int, numbers: int, n: int, stream: Any = None) -> int:
        """Erase the keys of ``n`` elements whose numbers (uint32) lie at an address; how many were there. Waits.

        Allocates nothing. Of elements with one key, only one is sure to erase a copy of the key.
        """
        report = self._report.reset(stream)
        self.program.run("erase", self.table, BucketBatch(n=n, keys=keys, indices=numbers, report=report), n, stream)
        return self._report.read(stream).changed

    def _launch_block(self, entry: str, batch: Any, stream: Any) -> None:
        """Launch a kernel of ``kernels/buckets/gpu/one_block.cuh``."""
        slot = self._result_slot or ResultSlot(self.engine)
        self._result_slot = slot
        slot.address(batch)
        self.program.run(entry, self.table, batch, batch.n, stream)

    def _answer(self, stream: Any) -> Outcome:
        """What the last kernel of `_launch_block` did. Waits."""
        assert self._result_slot is not None
        displaced, unplaced, changed, probes = self._result_slot.outcome(stream)
        return Outcome(changed, displaced, unplaced, probes)

    # ---- after an update
    def displaced_pairs(self, stream: Any = None) -> Pairs:
        """As of `DisplacingArray`."""
        spec, scratch, n = self.spec, self._workbench.displaced, 0
        if scratch is not None:
            n = min(DISPLACED_CAPACITY, scratch.report.read(stream).displaced)
        if scratch is None or not n:
            return Pairs.none(spec)
        word = np.dtype(f"u{spec.word_bytes}")
        slots = self.engine.to_host(scratch.batch.displaced, word, n * (spec.slot_bytes // spec.word_bytes), stream)
        if not spec.value_word_bytes:
            return Pairs(slots, None)
        rows = slots.reshape(n, 2)
        return Pairs(np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1]))

    def forget_displaced(self) -> None:
        """As of `DisplacingArray`."""
        self._workbench.displaced = None


def _slots_of(array: BucketArray) -> BuildBatch:
    """A batch of all slots of an array."""
    return BuildBatch(n=array.total_slots, source_slots=array._memory.ptr, source_buckets=array.buckets)
