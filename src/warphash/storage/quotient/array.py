"""The lines of a quotient table in the memory of one engine, and the kernels that run over them.

On a GPU, an update of few elements is one launch, of one block. In a larger update for a table with pairs, if it has
too few elements for passes, each element has a lane and takes locks of its buckets
(``kernels/quotient/gpu/locked.cuh``); the elements that are left go to that block, too. Nobody need wait for such
updates (`one_launch`), nor for an erase of as many elements (``kernels/quotient/gpu/erase.cuh``). The elements of all
other batches that change the table are brought to their ranges: a large batch in passes (`passes`), others element by
element
(``kernels/quotient/bring.cuh``). Then a kernel works on the elements, a block for each range: `build` if no
line has been written yet, otherwise `apply`. On a GPU, a range with few elements has `apply_in_place` instead, and most
elements of a crowded range have `apply_crowds` (``kernels/quotient/crowds.cuh``). The kernels leave every range whole,
so no pair is ever displaced. Between two kernels the counters of ranges are in use; `forget_elements` resets these
counters after an interrupt.

A new array is not `cleared`: its lines hold anything. `update` and `take_over` take it so; all else needs `clear`
first. A build of elements that came in passes writes all lines, also those of ranges without elements. So does the
kernel that takes over the lines of another array, and a build on a CPU (`group_build`).

An array that grows for a batch in passes stays as it is: the new array gets its pairs and the batch by one kernel
(`QuotientArray.grown_with`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, Self, cast

from ...designs.layout import LINE_BYTES, Quotients
from ...runtime.abi import (
    CROWDS,
    LEFTOVER,
    LISTS_BYTES,
    RANGE_LISTS_BYTES,
    REPORT_WORDS,
    WINNERS,
    Flag,
    OneLaunchBatch,
    Op,
    QuotientBatch,
    QuotientTable,
    TakeOverBatch,
)
from ...runtime.engine import Buffer, KernelSpec
from .. import snapshots
from ..batch import Batch
from ..elements import DeviceList, Elements, Piece, pieces
from ..hash_constants import buckets_for, draw_constants, inverse_of
from ..listed import Listed
from ..lookup import NO_FIELDS
from ..scratch import Outcome, Report, ReportBuffer, read_report, starts_of, zeroed_report
from ..slots import MemoryUse, TableKind
from ..snapshots import Snapshot
from ..uninterrupted import uninterrupted
from ..update.left import LeftBuild
from ..update.pairs import Pairs
from . import one_launch, route
from .group_build import GroupBuild
from .one_launch import MOST_AWAITED, MOST_LEFT, FewLauncher, OneLaunchUpdates
from .passes import Passes
from .permutation import unpermuted
from .route import PassPlan, Way

__all__ = ["MOST_RANGE_BUCKETS", "QuotientArray", "QuotientGeometry", "geometry_for"]

MOST_RANGE_BUCKETS = 512
"""Of a range: ``kMostRangeBuckets``."""

_FEWEST_ALIKE = 1 << 22
"""Flags from which on the host asks whether all are alike: their way back takes longer than that."""

_ZEROED_AT_ONCE = 1 << 18
"""Bytes of the memory of a table up to which a GPU sets all of it to 0 by the fill that sets the counters to 0."""

_CROWD_THREADS = 256
"""Of a block that works on the elements of crowded ranges."""

_BUILDING, _CHANGING = ("build", "find"), ("apply", "apply_in_place")
"""Kernels that follow passes; and a lookup, which mostly follows a build."""

_FIRST = ("update_locked", "find", "update_few")
"""Kernels of a first update in the order in which they are needed, and a lookup, which mostly follows."""

_MOST_ROUNDS = 8
"""Of a first update. What is left then mostly has a key in common, or no room."""


_Apply = Callable[[QuotientBatch, Any], bool]
"""Launches a kernel that applies the elements of a launch, on a stream. Whether it is a build."""


class _ElementBuffers(NamedTuple):
    """Memory for the elements of an update, or for passes over them, and a batch that has its addresses.

    Attributes
    ----------
    n
        Most elements of a launch.
    element_bytes
        Of an element that is brought.
    left
        Address of the list of a build (``kernels/quotient/build.cuh``) and of crowded ranges; 0 if passes have it.
    """

    memory: Buffer | Passes
    batch: QuotientBatch
    n: int
    element_bytes: int
    left: int = 0


class _Lines(NamedTuple):
    """Where the lines are in the memory of an array."""

    ptr: int
    nbytes: int


class QuotientGeometry(NamedTuple):
    """Slots of a bucket, ranges, and buckets of a range."""

    slots_per_bucket: int
    ranges: int
    range_buckets: int


class _Form(NamedTuple):
    """What follows from the kernels and the number of slots of an array, on a sort of engine.

    Attributes
    ----------
    spec
        The kernels for so many slots.
    beside_bytes
        Of the counters and of the locks.
    spare_bytes, spare_starts
        Of the memory for `SPARE_ELEMENTS` elements.
    report, updates, lines
        Where these begin in the memory of the array.
    zeroed, end
        Where the part ends that is set to 0 at first, and where the memory ends.
    most_few
        As of `QuotientArray`.
    table
        What kernels are told, but for addresses and hash constants.
    """

    spec: KernelSpec
    buckets: int
    ranges: int
    slots: int
    beside_bytes: int
    spare_bytes: tuple[int, int, int, int]
    spare_starts: tuple[int, ...]
    report: int
    updates: int
    lines: int
    zeroed: int
    end: int
    facts: route.Facts
    most_few: int
    table: QuotientTable


def _launches(n: int, most: int, numbers: int) -> list[Piece]:
    """Launches of up to ``most`` of ``n`` elements, as of `elements.pieces`.

    Parameters
    ----------
    numbers
        Address of the numbers (uint32) of listed elements, which count from the first element of the batch; 0 for the
        first ``n`` elements.
    """
    return [(0 if numbers else at, min(most, n - at), numbers and numbers + 4 * at, 0) for at in range(0, n, most)]


@lru_cache(maxsize=64)
def _with_slots(spec: KernelSpec, slots_per_bucket: int) -> KernelSpec:
    """The kernels of other lines. The object is kept, since it keeps what follows from its fields."""
    return replace(spec, slots_per_bucket=slots_per_bucket)


@lru_cache(maxsize=256)
def _form_of(
    spec: KernelSpec, slots: int, on_gpu: bool, reach_bytes: int, most_range_buckets: int, spare: int
) -> _Form:
    """The form of the smallest array with at least so many slots: found once, as it takes longer than a launch.

    Parameters
    ----------
    most_range_buckets, spare
        `MOST_RANGE_BUCKETS` and `SPARE_ELEMENTS`, which tests change.
    """
    layout: Any = spec.layout
    geometry = geometry_for(slots, layout, spec.key_bytes, spec.value_bytes, most_range_buckets, in_groups=not on_gpu)
    each, ranges, range_buckets = geometry
    spec = spec if spec.slots_per_bucket == each else _with_slots(spec, each)
    buckets = ranges * range_buckets
    beside_bytes = 8 * ranges + (4 * -(-buckets // 32) if on_gpu else 0)
    spare_bytes = _buffer_sizes(spec, ranges, spare, True)
    of_updates = one_launch.bytes_for(spec, ranges) if on_gpu else 0
    sizes = beside_bytes, 8 * REPORT_WORDS, of_updates, *spare_bytes, LINE_BYTES * buckets
    _, report, updates, *spare_starts, lines, end = starts_of(sizes)
    zeroed = updates + one_launch.zeroed_bytes_for(spec, ranges) if on_gpu else updates
    if on_gpu and end <= _ZEROED_AT_ONCE:
        zeroed = end
    alone = layout.puts_alone(spec.key_bytes, spec.value_bytes, each)
    in_reach = LINE_BYTES * buckets <= reach_bytes
    facts = route.Facts(on_gpu, buckets, ranges, spec.word_bytes, spec.slot_bytes, alone, in_reach)
    table = QuotientTable(buckets=buckets, ranges=ranges, range_buckets=range_buckets, **dict(spec.constants))
    slots, starts = each * buckets, (report, updates, lines, zeroed, end)
    sizes_and_spare = spec, buckets, ranges, slots, beside_bytes, spare_bytes, tuple(spare_starts)
    return _Form(*sizes_and_spare, *starts, facts, route.most_few(facts), table)


def _form_for(kind: TableKind, slots: int) -> _Form:
    """The form of an array with at least so many slots."""
    engine = kind.engine
    limits = engine.reach_bytes, MOST_RANGE_BUCKETS, route.SPARE_ELEMENTS
    return _form_of(kind.spec, slots, engine.window_bytes > 0, *limits)


def _buffer_sizes(spec: KernelSpec, ranges: int, n: int, numbered: bool) -> tuple[int, int, int, int]:
    """Bytes of ``n`` brought elements, of their numbers, of `_ElementBuffers.left`, and of the lists of ranges.

    A CPU writes whole lines of the first three.
    """
    elements, words = n * spec.slot_bytes, 4 * n
    return elements, words * numbered, words, RANGE_LISTS_BYTES * min(n, ranges)


def geometry_for(
    slots: int,
    layout: Quotients,
    key_bytes: int,
    value_bytes: int,
    most_range_buckets: int = MOST_RANGE_BUCKETS,
    *,
    in_groups: bool = False,
) -> QuotientGeometry:
    """The geometry of the smallest table with at least ``slots`` slots: ranges are equal, and as few as possible.

    Parameters
    ----------
    in_groups
        A table of more than `route.FEW_GROUPS` ranges consists of whole groups of `route.MOST_GROUP_RANGES`.
    """
    geometry, least = (0, 0, 0), 0
    for slots_per_bucket, fewest in layout.forms(key_bytes, value_bytes):
        buckets = max(fewest, buckets_for(slots, slots_per_bucket))
        ranges = -(-buckets // most_range_buckets)
        if in_groups and ranges > route.FEW_GROUPS:
            ranges = -(-ranges // route.MOST_GROUP_RANGES) * route.MOST_GROUP_RANGES
        range_buckets = -(-buckets // ranges)
        if not least or ranges * range_buckets < least:
            geometry, least = (slots_per_bucket, ranges, range_buckets), ranges * range_buckets
    return QuotientGeometry(*geometry)


class _LeftBuild(NamedTuple):
    """A `LeftBuild` of elements that have come in passes, all in one launch."""

    array: QuotientArray
    passes: Passes
    batch: QuotientBatch
    n: int
    unique: bool

    def end(self, stream: Any) -> int | None:
        """As `LeftBuild.end`, behind what the build has left of crowded ranges."""
        report = self.array._settled(self.batch, self.passes.rest, True, stream)
        return None if report.unplaced else report.changed

    def elements(self, stream: Any) -> tuple[Batch, object]:
        """As `LeftBuild.elements`: those that were brought, whose hashes are undone on the host."""
        engine, spec, batch = self.array.engine, self.array.spec, self.batch
        key, value = spec.word_bytes, spec.value_word_bytes
        width = max(key, value)
        words = engine.to_host(batch.brought, f"u{width}", self.n * spec.slot_bytes // width, stream)
        hashes = (words[::2] if value else words).astype(f"u{key}")
        keys = engine.from_host(unpermuted(hashes, self.array.table, self.array.family), stream)
        values = engine.from_host(words[1::2].astype(f"u{value}"), stream) if value else None
        made = Batch(keys.ptr, values.ptr if values else 0, self.n, unique=self.unique, stream=stream)
        return made, (keys, values)


class QuotientArray:
    """The `SlotArray` of lines with at least ``slots`` slots between them, without pairs.

    Parameters
    ----------
    seed
        Of the hash constants.
    family
        One of `HASHES`.

    Attributes
    ----------
    buckets, ranges, slots
        Lines; ranges of lines; slots of all lines.
    most_few
        Elements of an update of one block.
    leave_few
        As of `LeavingArray`.
    """

    batch_type, find_fields, most_left, most_awaited = QuotientBatch, NO_FIELDS, MOST_LEFT, MOST_AWAITED

    def __init__(self, kind: TableKind, slots: int, seed: int, family: str, stream: Any = None) -> None:
        self.engine, self.design, self.parameters, _ = self.kind = kind
        self.seed, self.family = seed, family
        engine = kind.engine
        self._form = form = _form_for(kind, slots)
        self.spec = spec = form.spec
        self.buckets, self.ranges, self.slots, self._facts = form.buckets, form.ranges, form.slots, form.facts
        self.most_few = form.most_few
        self.program = engine.program(spec)
        self._memory = engine.allocate(form.end, stream)  # one call of the driver, which takes microseconds
        self._counters = counters = self._memory.ptr
        self._report, self._lines = counters + form.report, _Lines(counters + form.lines, LINE_BYTES * form.buckets)
        constants = draw_constants(random.Random(seed), family, spec.word_bytes)
        self.table = table = QuotientTable.from_buffer_copy(form.table)
        table.slots, table.counters, table.starts = counters + form.lines, counters, counters + 4 * form.ranges
        table.multiplier, table.addend = constants["multiplier"], constants["addend"]
        table.inverse = inverse_of(constants["multiplier"][0] | 1)
        self._updates: OneLaunchUpdates | None = None  # once there was one
        self.leave_few: FewLauncher | None = None
        self._is_zero = form.zeroed == form.end  # nothing was written to the lines since
        engine.fill(counters, 0, form.zeroed, stream)
        self._is_new = self._is_counted = True  # no update was launched; the report is 0
        self.cleared, self._is_blank = False, True

    @cached_property
    def _spare(self) -> _ElementBuffers:
        """Memory for `SPARE_ELEMENTS` elements that are brought one by one."""
        return self._buffers_at(self._memory, self._form.spare_starts, self._form.spare_bytes, route.SPARE_ELEMENTS)

    @property
    def nbytes(self) -> int:
        """Bytes of the lines, of the counters and of the locks."""
        return self._lines.nbytes + self._form.beside_bytes

    def memory_use(self) -> MemoryUse:
        """The lines: all of them are in use."""
        return MemoryUse(self._lines.nbytes)

    # ---- arrays like this one
    def sibling(self, slots: int, seed: int, stream: Any = None) -> Self:
        """An array of the same kind with other hash constants, without pairs."""
        return type(self)(self.kind, slots, seed, self.family, stream)

    beside = sibling

    def copy(self, stream: Any = None) -> Self:
        """An array with the same hash constants and pairs, in memory of its own."""
        twin = self.sibling(self.slots, self.seed, stream)
        twin.cleared, twin._is_blank, twin._is_zero = self.cleared, False, False
        self.engine.copy(twin._lines.ptr, self._lines.ptr, self._lines.nbytes, stream)
        return twin

    # ---- memory
    def clear(self, stream: Any = None) -> None:
        """Forget all pairs."""
        if not self._is_zero:
            self.engine.fill(self._lines.ptr, 0, self._lines.nbytes, stream)
        self._is_zero, self.leave_few = False, None
        if not self._is_new:
            self.forget_elements(stream)
        self.cleared = self._is_blank = True  # no pair has been written since

    def forget(self, stream: Any = None) -> None:
        """Forget all pairs. A new array without any is not cleared by that. A copy may be new and have pairs."""
        if self.cleared or not self._is_new:
            self.clear(stream)

    def forget_elements(self, stream: Any = None) -> None:
        """Forget the elements that a batch which stopped half way has brought to ranges, and the adopted pairs.

        No bucket is locked.
        """
        self._is_counted, self.leave_few = False, None
        self.engine.fill(self._counters, 0, self._form.beside_bytes, stream)
        if self._updates is not None:
            self._updates.forget(stream)

    def snapshot(self, stream: Any = None) -> Snapshot:
        """A copy of the lines; on the host, where the device has no memory for one."""
        return snapshots.take(self.engine, self._lines, stream)

    def restore(self, saved: Snapshot, stream: Any = None) -> None:
        """Put back what `snapshot` gave. Allocates nothing on the device."""
        self._is_blank = self._is_zero = False
        snapshots.put_back(self.engine, self._lines, saved, stream)
        self.forget_elements(stream)

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """As `Slots.scan`."""
        report = zeroed_report(self.engine, stream)
        self._scan(0, self.buckets, room, out_keys, out_values, report.ptr, stream)
        return report.read(stream).winners

    def _scan(
        self, first: int, buckets: int, room: int, out_keys: int, out_values: int, report: int, stream: Any
    ) -> None:
        """Copy the pairs of up to so many buckets behind those that ``report`` counts."""
        for at in range(first, min(first + buckets, self.buckets), route.MOVED_BUCKETS):
            n = min(route.MOVED_BUCKETS, first + buckets - at, self.buckets - at) * self.spec.slots_per_bucket
            batch = QuotientBatch(n=n, first_bucket=at, report=report, room=room)
            batch.out_keys, batch.out_values = out_keys, out_values
            self.program.run("scan", self.table, batch, n, stream)

    def broken_buckets(self, stream: Any = None) -> int:
        """As `Slots.broken_buckets`: slots to which no search for their key comes, and counters in use."""
        report, n = zeroed_report(self.engine, stream), self.buckets
        self.program.run("audit", self.table, QuotientBatch(n=n, report=report.ptr), n, stream)
        return report.read(stream).mismatches

    # ---- operations that change pairs
    def update(self, given: Batch, *, count_probes: bool = False, listed: Listed | None = None) -> Outcome:
        """As `SlotArray.update`. An array without pairs is built; if the keys are unique, without comparing keys."""
        if listed is None and not count_probes and self.may_build(given.n):
            with suppress(MemoryError):
                return self.build(given)
        walked = listed.n if listed else given.n
        way = self._way_of(given.op, walked)
        if way is Way.FIRST:
            return self._update_first(given, listed, count_probes)
        if way is not Way.RANGES:
            self.begin(given, way, listed=listed, count_probes=count_probes)
            return self.outcome(given.stream)
        fields = {"count_probes": count_probes, "unique": given.unique, "erases": 0}
        buffers = self._element_buffers(walked, given.flags, listed is None, True, given.stream)
        numbers = listed.numbers.ptr if listed else 0
        return self._run(buffers, given, _launches(walked, buffers.n, numbers), fields)

    def may_build(self, n: int) -> bool:
        """Whether `build` takes ``n`` elements: those of an array without pairs, on a CPU."""
        return self._is_blank and route.builds_by_groups(self._facts, n)

    def build(self, given: Batch) -> Outcome:
        """As `update`: write all lines of an array without pairs (``kernels/quotient/cpu/build.cuh``).

        If the outcome is not complete, pairs have no slot, or others have written to keys of a ``shared`` batch
        meanwhile. The array is then to be cleared.

        Raises
        ------
        MemoryError
            If there is no memory for it. The array has no pairs.
        """
        self._is_new = self._is_zero = False
        self._reset_report(given.stream)
        build = GroupBuild(self.engine, self.program, self.spec, self.table, self._report, given)
        build.place()
        self.cleared = False
        if not build.scatter():
            if given.shared:
                return Outcome(0, 0, given.n, 0)
            self._forget_build(given)
            raise MemoryError("there is no memory to bring the elements of a batch to their places")
        self._is_blank = False
        counts = build.write_lines()
        if counts.mismatches:
            self._forget_build(given)
            raise MemoryError("there is no memory to build the lines of a table in")
        self.cleared = True
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def _forget_build(self, given: Batch) -> None:
        """Forget what a build has written to the lines and the flags: the batch goes another way."""
        self.clear(given.stream)
        if given.flags:
            self.engine.fill(given.flags, Flag.UNPLACED, given.n, given.stream)

    def leave_build(self, given: Batch) -> LeftBuild | None:
        """Launch a build of elements that come in passes, all at once, and do not wait for it; None for other batches.

        The passes keep the elements.

        Raises
        ------
        MemoryError
            As other errors and interrupts, this may come between two launches.
        """
        n, stream = given.n, given.stream
        plan = route.pass_plan_for(self._facts, n) if self._is_blank and n <= route.MOST_KEPT else None
        if plan is None or self._way_of(given.op, n) is not Way.RANGES:
            return None
        buffers = self._buffers_in_passes(plan, False, stream)
        passes, batch = cast(Passes, buffers.memory), buffers.batch
        batch.n, batch.keys, batch.values, batch.op, batch.kind = n, given.keys, given.values, given.op, given.kind
        self._begin(batch, {"count_probes": 0, "unique": given.unique, "erases": 0}, stream)
        passes.bring(self.table, batch, stream)
        self._apply(batch, stream)
        return _LeftBuild(self, passes, batch, n, given.unique)

    def is_one_launch(self, n: int) -> bool:
        """Whether an update of ``n`` elements is one launch that leaves none: nothing can stop it half way."""
        return n <= self.most_few and self._way_of(Op.KEEP, n) is Way.FEW

    def goes_in_passes(self, n: int) -> bool:
        """Whether the elements of a build of ``n`` come to their ranges in passes, if there is memory for these."""
        return self._way_of(Op.KEEP, n) is Way.RANGES and route.pass_plan_for(self._facts, n) is not None

    def _way_of(self, op: int, n: int) -> Way:
        """The way of ``n`` elements of an update."""
        facts, blank = self._facts, self._is_blank
        way = route.way_of_update(facts, n, op, is_blank=blank)
        first = route.is_for_first(facts, way, n, is_blank=blank, is_begun=self.program.is_begun)
        return Way.FIRST if first else way

    def leave(self, given: Batch, left: int, awaited: int, new_share: float) -> int:
        """As `LeavingArray.leave`, while there is room to adopt all elements that are left."""
        way, stream = self._way_of(given.op, given.n), given.stream
        if way in (Way.RANGES, Way.FIRST):
            return 0
        batch = (self._updates or self._make_updates()).batch_to_leave(given, left, awaited)
        return 0 if batch is None else self._launch(batch, way, new_share, stream)

    def begin(self, given: Batch, way: Way, *, listed: Listed | None = None, count_probes: bool = False) -> None:
        """Launch an update that does not go to the ranges; `outcome` waits for it.

        Raises
        ------
        MemoryError
            Before a kernel is launched.
        """
        updates, stream = self._updates or self._make_updates(), given.stream
        n = listed.n if listed else given.n
        lists = None if way is Way.FEW else self.engine.allocate(8 * n, stream)
        self._launch(updates.batch_of(given, listed, count_probes, lists.ptr if lists else 0), way, 1.0, stream)

    def _launch(self, batch: OneLaunchBatch, way: Way, new_share: float, stream: Any) -> int:
        """Launch the kernels of an update: its ticket."""
        if not self.cleared:
            self.clear(stream)
        was_blank, self._is_blank, self._is_new = self._is_blank, False, False
        if way is Way.FEW:
            self.program.run_blocks("update_few", self.table, batch, 1, stream)
            compiled = None if self.leave_few or was_blank else getattr(self.engine, "compiled", None)
            if compiled is not None and self._updates is not None:  # the first update may be all
                self.leave_few = self._updates.prepare_few(compiled, self.program, self.table)
        else:
            self._reset_report(stream)
            self._launch_lanes(batch, new_share, stream)
            batch.finishes = 1
            self.program.run_blocks("update_few", self.table, batch, 1, stream)
            self._is_counted = True  # the last kernel sets the report to 0
        ticket: int = batch.ticket
        return ticket

    def _update_first(self, given: Batch, listed: Listed | None, count_probes: bool) -> Outcome:
        """An update by the kernel that a compiler takes least for. Waits.

        A lane has an element, and takes locks. What is left has another round: of the lanes of a warp with one home,
        some were left at once. Elements that no round has done wait for the compiler, and go to one block.
        """
        engine, program, stream, n = self.engine, self.program, given.stream, listed.n if listed else given.n
        builds = self._is_blank and n > route.most_few(self._facts)
        if new := [name for name in ((*_FIRST, "build") if builds else _FIRST) if not program.is_begun(name)]:
            program.expect(new)
        lists = engine.allocate(8 * n, stream)
        batch = (self._updates or self._make_updates()).batch_of(given, listed, count_probes, lists.ptr)
        if not self.cleared:
            self.clear(stream)
        self._is_blank = self._is_new = False
        self._reset_report(stream)
        left = n
        for turn in range(_MOST_ROUNDS):
            if turn:
                batch.n, batch.left_out, batch.stuck = left, batch.stuck, batch.left_out
                engine.fill(batch.report + LEFTOVER, 0, 8, stream)
            program.run("update_locked", self.table, batch, left, stream)
            report = read_report(engine, batch.report, stream)
            before, left, batch.indices = left, report.leftover, batch.left_out
            if not left:
                return Outcome(report.changed, 0, 0, report.probes)
            if left == before:
                break
        batch.count, batch.finishes = batch.report + LEFTOVER, 1
        program.run_blocks("update_few", self.table, batch, 1, stream)
        self._is_counted = True  # the last kernel sets the report to 0
        return self.outcome(stream)

    def _launch_lanes(self, batch: OneLaunchBatch, new_share: float, stream: Any) -> None:
        """Launch a lane for each element. The batch then has the list of those that are left."""
        n: int = batch.n
        report, run = batch.report, self.program.run
        alone, stuck = route.lanes_for(self._facts, n, batch.op, new_share)
        if not alone:
            run("update_locked", self.table, batch, n, stream)
        else:
            run("put_alone", self.table, batch, alone, stream)
            batch.indices, batch.count = batch.stuck, report + WINNERS
            if not stuck:
                return
            run("put_stuck", self.table, batch, stuck, stream)
        batch.indices, batch.count = batch.left_out, report + LEFTOVER

    def _make_updates(self) -> OneLaunchUpdates:
        at = self._counters + self._form.updates
        self._updates = updates = OneLaunchUpdates(self.engine, self.spec, self._report, at, self.ranges)
        return updates

    def answer(self, ticket: int) -> Outcome | None:
        """As `LeavingArray.answer`."""
        assert self._updates is not None
        return self._updates.answer(ticket)

    def outcome(self, stream: Any = None) -> Outcome:
        """The outcome of the update that `begin` has launched. Waits."""
        assert self._updates is not None
        return self._updates.outcome(stream)

    def forget_left(self) -> None:
        """As `LeavingArray.forget_left`."""
        if self._updates is not None:
            self._updates.give_back()

    def adopted(self, stream: Any = None) -> Pairs | None:
        """Copies of the pairs that were adopted, and not forgotten since; None before the first `begin`. Waits."""
        return None if self._updates is None else self._updates.adopted(stream)

    def leave_erase(self, given: Batch) -> int:
        """As `ErasingArray.leave_erase`."""
        return self._erase_alone(given) if self._way_of_erase(given.n) is Way.ONE_LAUNCH else 0

    def _way_of_erase(self, n: int, *, in_order: bool = True) -> Way:
        return route.way_of_erase(self._facts, n, is_blank=self._is_blank, in_order=in_order)

    def _erase_alone(self, given: Batch) -> int:
        """Launch an erase in one launch, and do not wait: its ticket."""
        stream = given.stream
        batch = (self._updates or self._make_updates()).batch_to_erase(given)
        self._is_new = False
        self._reset_report(stream)
        n: int = batch.n
        self.program.run("erase_alone", self.table, batch, n, stream)
        self.program.run_blocks("renew_filters", self.table, batch, route.renewing_blocks(self._facts, n), stream)
        self._is_counted = True  # the last kernel sets the report to 0
        ticket: int = batch.ticket
        return ticket

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> int:
        """Erase keys; how many were there. Waits.

        Raises
        ------
        MemoryError
            Before a kernel is launched, if ``only`` is no list on the host.
        """
        given = Batch(keys, 0, n, flags=flags, stream=stream)
        if self._way_of_erase(n, in_order=only is None) is Way.ONE_LAUNCH:
            self._erase_alone(given)
            return self.outcome(stream).changed
        # The length of a list on the device is not known here, so one launch has all of it.
        whole = isinstance(only, DeviceList)
        buffers = self._element_buffers(n, flags, only is None, False, stream, whole=whole)
        launches = pieces(self.engine, n, buffers.n, only, stream)
        return self._run(buffers, given, launches, self._erasing(buffers)).changed

    def erase_listed(self, keys: int, numbers: int, n: int, stream: Any = None) -> int:
        """Erase the keys of up to `SPARE_ELEMENTS` elements whose numbers (uint32) lie at an address. Waits.

        Allocates nothing.
        """
        given, launches = Batch(keys, 0, n, stream=stream), _launches(n, n, numbers)
        return self._run(self._spare, given, launches, self._erasing(self._spare)).changed

    def _erasing(self, buffers: _ElementBuffers) -> dict[str, int]:
        """Fields of a batch that erases."""
        return {"erases": buffers.element_bytes, "count_probes": 0, "unique": 0}

    def take_over(self, other: QuotientArray, size: int, stream: Any = None) -> Outcome:
        """Add the ``size`` pairs of an array to this one, which has none. Waits.

        On a GPU, pairs go straight to the lines, if these lie in the order of the other ones
        (``kernels/quotient/gpu/take_over.cuh``). Otherwise they go by way of arrays of keys and values: all at once, so
        that a block has a range once; or in pieces, where one launch is not enough, or where there is no memory for it.
        """
        if self.engine.window_bytes and self._order == other._order:
            return self._take_over_lines(other, stream)
        *many, fewest = route.shares_to_take_over(self._facts, size, other.buckets, other.spec.slots_per_bucket)
        for buckets in many:
            try:
                return self._take_over(other, size, buckets, stream)
            except MemoryError:  # mostly of the first piece, before a kernel has changed this array
                if not self._is_blank:
                    raise
        return self._take_over(other, size, fewest, stream)

    @property
    def _order(self) -> tuple[int, str, int]:
        """What the order of keys in lines depends on, besides the number of lines."""
        return self.seed, self.family, self.spec.slots_per_bucket

    def _take_over_lines(self, other: QuotientArray, stream: Any) -> Outcome:
        """Write all lines anew, of the pairs in those of an array with the same order. Allocates nothing."""
        batch = self._batch_of_lines(other)
        self._begin(batch, {}, stream)
        self._is_blank = False
        self.program.run_blocks("take_over", self.table, batch, self.ranges, stream)
        self.cleared = True
        report = read_report(self.engine, batch.report, stream)
        return Outcome(report.changed, 0, report.unplaced, 0)

    def _batch_of_lines(self, other: QuotientArray) -> TakeOverBatch:
        """A batch that takes over the pairs of an array with the same order."""
        batch, source = TakeOverBatch(report=self._report), other.table
        batch.source_slots, batch.source_buckets = source.slots, source.buckets
        batch.source_range_buckets = source.range_buckets
        return batch

    def grown_with(self, slots: int, given: Batch) -> tuple[Self, Outcome] | None:
        """An array of at least so many slots, with the pairs of this one and those of a batch.

        None for a batch whose elements do not go to the ranges in passes, in one launch, and for lines that hold other
        parts of hashes. This array stays as it is. The outcome counts the keys of the batch. Waits.

        Parameters
        ----------
        given
            It combines no values.

        Raises
        ------
        MemoryError
            Before a kernel is launched.
        """
        form, stream = _form_for(self.kind, slots), given.stream
        plan = route.plan_to_grow(form.facts, given.n, given.op)
        if plan is None or form.spec.slots_per_bucket != self.spec.slots_per_bucket:
            return None
        new = self.sibling(slots, self.seed, stream)
        return new, new._take_over_with(self, given, plan)

    def _take_over_with(self, other: QuotientArray, given: Batch, plan: PassPlan) -> Outcome:
        """As `_take_over_lines`, with the elements of a batch."""
        stream = given.stream
        self.program.expect(("take_over_with",))
        passes = Passes(self.engine, self.spec, plan, given.flags != 0, stream)
        whole = self._batch_of_lines(other)
        batch = QuotientBatch.from_buffer(whole)  # the same words
        batch.n, batch.op, batch.kind = given.n, given.op, given.kind
        batch.keys, batch.values, batch.out_flags = given.keys, given.values, given.flags
        self._begin(batch, {}, stream)

        def apply(_: QuotientBatch, stream: Any) -> bool:
            self._is_blank = False
            self.program.run_blocks("take_over_with", self.table, whole, self.ranges, stream)
            return False

        report = self._go_in_passes(passes, batch, apply, True, stream)
        self.cleared = True
        return Outcome(report.changed, 0, report.unplaced, 0)

    def _take_over(self, other: QuotientArray, size: int, buckets: int, stream: Any) -> Outcome:
        """Add the pairs of an array, of so many buckets at a time."""
        engine, spec = self.engine, self.spec
        room = min(size, buckets * other.spec.slots_per_bucket)
        *starts, end = starts_of((room * spec.word_bytes, room * spec.value_word_bytes))
        words = engine.allocate(end, stream)
        keys, values = words.ptr + starts[0], words.ptr + starts[1] if spec.value_word_bytes else 0
        report, changed, unplaced = ReportBuffer(engine, stream), 0, 0
        for at in range(0, other.buckets, buckets):
            other._scan(at, buckets, room, keys, values, report.reset(stream), stream)
            n = report.read(stream).winners
            if n:
                outcome = self.update(Batch(keys, values, n, stream=stream))
                changed, unplaced = changed + outcome.changed, unplaced + outcome.unplaced
        return Outcome(changed, 0, unplaced, 0)

    def _run(
        self, buffers: _ElementBuffers, given: Batch, launches: Iterable[Piece], fields: Mapping[str, int]
    ) -> Outcome:
        """Launch the kernels of an update for some elements at a time. Waits.

        Parameters
        ----------
        launches
            As of `elements.pieces`.
        """
        engine, spec, batch, stream = self.engine, self.spec, buffers.batch, given.stream
        builds = self._is_blank and route.may_build(fields["erases"], fields["count_probes"])
        if not self.cleared and not (builds and isinstance(buffers.memory, Passes)):
            self.clear(stream)
        batch.op, batch.kind = given.op, given.kind
        self._begin(batch, fields, stream)
        report: Report | None = None
        for done, (at, n, indices, length) in enumerate(launches):
            batch.n, batch.indices, batch.count = n, indices, length
            batch.keys = given.keys + at * spec.word_bytes
            batch.values = given.values and given.values + at * spec.value_word_bytes
            batch.out_flags = given.flags and given.flags + at
            if done:
                engine.fill(batch.report, 0, LISTS_BYTES, stream)
            if isinstance(buffers.memory, Passes):
                report = self._go_in_passes(buffers.memory, batch, self._apply, not done, stream)
            else:
                report = self._go_directly(batch, buffers.left, stream)
        report = report or read_report(engine, batch.report, stream)
        return Outcome(report.changed, 0, report.unplaced, report.probes)

    def _begin(self, batch: QuotientBatch, fields: Mapping[str, int], stream: Any) -> None:
        """Give a batch its fields, and let the report of the array count from 0."""
        self._is_new = self._is_zero = False
        self._reset_report(stream)
        for name, value in fields.items():
            setattr(batch, name, value)

    def _reset_report(self, stream: Any) -> None:
        """Let the report of the array count from 0, for a launch that follows."""
        if not self._is_counted:
            self.engine.fill(self._report, 0, 8 * REPORT_WORDS, stream)
        self._is_counted = False

    def _go_directly(self, batch: QuotientBatch, left: int, stream: Any) -> Report:
        """Bring each element of a launch by itself, and apply them. The report of all launches so far."""
        run, n, indices, length = self.program.run, batch.n, batch.indices, batch.count
        batch.left = 0 if batch.erases or (self._facts.on_gpu and not self._builds(batch)) else left
        run("count", self.table, batch, n, stream)
        batch.indices, batch.count = 0, batch.report + WINNERS
        run("reserve", self.table, batch, min(n, self.ranges), stream)
        batch.indices, batch.count = indices, length
        run("scatter", self.table, batch, n, stream)
        batch.indices, batch.count = 0, 0
        return self._settled(batch, left, self._apply(batch, stream), stream)

    def _go_in_passes(self, passes: Passes, batch: QuotientBatch, apply: _Apply, is_first: bool, stream: Any) -> Report:
        """Bring the elements of a launch in passes, and apply them. The report of all launches so far.

        The flags of the elements are the caller's when the last pass has brought them back. Where values are added, an
        interrupt must find the flags of all elements that were applied.

        Parameters
        ----------
        apply
            `_apply`, or a function that launches another kernel for the same elements.
        """
        passes.bring(self.table, batch, stream)
        flags = batch.out_flags
        if not flags:
            return self._settled(batch, passes.rest, apply(batch, stream), stream)
        batch.out_flags = passes.flags
        do = partial(self._apply_and_restore, passes, batch, apply, flags, is_first, stream)
        return do() if batch.op in (Op.KEEP, Op.REPLACE) else uninterrupted(do)

    def _apply_and_restore(
        self, passes: Passes, batch: QuotientBatch, apply: _Apply, flags: int, is_first: bool, stream: Any
    ) -> Report:
        """As `_go_in_passes`, behind the passes.

        Mostly all keys of a large batch are new, or none is. Then all flags are alike, and need no way back. Those of a
        smaller batch are on their way back while the host waits, which is in vain if some elements are left.
        """
        built = apply(batch, stream)
        goes_ahead = batch.n < _FEWEST_ALIKE
        if goes_ahead:
            passes.restore_flags(self.table, batch.n, flags, stream)
        report = self._settled(batch, passes.rest, built, stream)
        if goes_ahead and not (report.leftover or report.crowds):
            return report
        if is_first and not report.unplaced and report.changed in (0, batch.n):
            self.engine.fill(flags, Flag.CHANGED if report.changed else Flag.PRESENT, batch.n, stream)
        else:
            passes.restore_flags(self.table, batch.n, flags, stream)
        return report

    def _settled(self, batch: QuotientBatch, rest: int, built: bool, stream: Any) -> Report:
        """The report of all launches so far, behind what `_apply` has left. Waits.

        The report still counts the ranges that were left, in ``leftover`` and ``crowds``. The kernels for crowded
        ranges are those of ``kernels/quotient/crowds.cuh``, steps 2 to 4.

        Parameters
        ----------
        rest
            Address of a list (uint32) of as many elements as the launch has.
        built
            Whether the launch was a build. Then all lines are written at the end.
        """
        if self._updates is None and self._facts.on_gpu and batch.n > route.MOST_KEPT:
            with suppress(MemoryError):  # what a first update needs, while the device works
                self._make_updates()
        report, run = read_report(self.engine, batch.report, stream), self.program.run_blocks
        if report.leftover:  # ranges with many elements
            run("apply", self.table, batch, report.leftover, stream)
            report = read_report(self.engine, batch.report, stream)
        if report.crowds:
            batch.rest = 0
            run("build_some" if built else "apply_some", self.table, batch, report.crowds, stream)
            batch.rest = rest
            blocks = min(report.chunks, max(1, self.engine.lanes // _CROWD_THREADS))
            run("apply_crowds", self.table, batch, blocks, stream)
            run("apply_some", self.table, batch, report.crowds, stream)
            report = read_report(self.engine, batch.report, stream)
            self.engine.fill(batch.report + CROWDS, 0, 8, stream)  # for the next launch
        self.cleared |= built
        return report

    def _apply(self, batch: QuotientBatch, stream: Any) -> bool:
        """Apply the elements of a launch that are brought. Whether it is a build.

        It leaves crowded ranges, and ranges with many elements where most have few.
        """
        builds = self._builds(batch)
        self._is_blank = False
        blocks = min(batch.n, self.ranges)
        run = self.program.run_blocks
        if builds:
            if not self.cleared and self._facts.on_gpu:
                blocks, batch.touched = self.ranges, 0
            run("build", self.table, batch, blocks, stream)
        else:
            entry = route.applies(self._facts, batch.n)
            batch.heavy = batch.touched + 4 * blocks if entry == "apply_in_place" else 0
            run(entry, self.table, batch, blocks, stream)
        return builds

    def _builds(self, batch: QuotientBatch) -> bool:
        """Whether a launch is a build."""
        return self._is_blank and route.may_build(batch.erases, batch.count_probes)

    def _element_buffers(
        self, n: int, flags: int, in_order: bool, valued: bool, stream: Any, *, whole: bool = False
    ) -> _ElementBuffers:
        """Memory for launches of up to ``n`` elements, or of as many as one may have.

        Parameters
        ----------
        in_order
            All elements of the batch take part.
        valued
            Whether they may have values.
        whole
            One launch has all elements.
        """
        if n <= route.SPARE_ELEMENTS:
            return self._spare
        numbered, ways = flags != 0, route.ways_to_ranges(self._facts, n, in_order=in_order, valued=valued, whole=whole)
        *many, (fewest, _) = ways
        for size, plan in many:
            with suppress(MemoryError):
                if plan:
                    return self._buffers_in_passes(plan, numbered, stream)
                return self._buffers_for(size, numbered, stream)
        return self._buffers_for(fewest, numbered, stream)

    def _buffers_in_passes(self, plan: PassPlan, numbered: bool, stream: Any) -> _ElementBuffers:
        """Memory for launches whose elements are brought in passes; ``numbered`` as of `_buffers_for`."""
        self.program.expect(_BUILDING if self._is_blank else _CHANGING)
        passes = Passes(self.engine, self.spec, plan, numbered, stream)
        return _ElementBuffers(passes, QuotientBatch(report=self._report), plan.n, plan.element_bytes)

    def _buffers_for(self, n: int, numbered: bool, stream: Any) -> _ElementBuffers:
        """Memory for launches of ``n`` elements that are brought one by one.

        Parameters
        ----------
        numbered
            Whether elements have flags, which the numbers of the elements lead to.
        """
        sizes = _buffer_sizes(self.spec, self.ranges, n, numbered)
        *starts, end = starts_of(sizes)
        return self._buffers_at(self.engine.allocate(end, stream), starts, sizes, n)

    def _buffers_at(self, memory: Buffer, starts: Sequence[int], sizes: Sequence[int], n: int) -> _ElementBuffers:
        """Buffers for launches of ``n`` elements, whose arrays begin at ``starts`` of a buffer."""
        addresses = (memory.ptr + at if size else 0 for at, size in zip(starts, sizes, strict=True))
        brought, numbers, left, touched = addresses
        batch = QuotientBatch(report=self._report, brought=brought, numbers=numbers, touched=touched)
        batch.crowds = touched + 8 * min(n, self.ranges)
        return _ElementBuffers(memory, batch, n, self.spec.slot_bytes, left)
