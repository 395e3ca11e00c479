"""`Slots` of subtables: a store grows and shrinks one of them at a time, within bounds of the load factor.

An insert settles what fits without moving anybody, which also tells how many new keys are left. The smallest subtable
is made larger until these fit within the bounds, and then they are placed. So a batch knows its size before it evicts.
Most batches are left to the device (``pending.py``). A batch that needs a much larger table, and an erase that leaves a
much smaller one, replace all subtables at once (`_ONE_STEP`).

What may go wrong, and what follows:

1. Chains of evictions end without a slot: pairs are displaced, and elements that came later are unplaced. The smallest
   subtable is enlarged (Dynamic Hash Tables on GPUs, section V-A), the displaced pairs are placed first, then the
   elements. When each subtable was enlarged and there still are displaced pairs, the keys may share their buckets at
   every size: all pairs move into subtables with other hash constants.
2. There is no memory, or the table may not grow: the keys that the batch added are erased again. There is room for the
   displaced pairs then, as there was before the batch: they are placed, by longer chains if need be. Values are
   combined only when all keys have a place, so the table is as it was. All this allocates nothing (`Arena`).
3. The keys of an erased table do not fit into the half of a subtable, though the load factor says that they should.
   The subtable is enlarged again, and halved when fewer keys are left (`policies.may_halve`).
4. Displaced pairs are left, and there is no memory for a larger subtable. `MemoryError` is raised, and the pairs are
   kept on the host. Every call tries again to place them before it does anything else.

**Interrupts.** A pair is always in a slot, or in one of three other places, each of which is an attribute before the
first kernel that puts a pair there is launched:

- `_displaced`: rows on the host;
- `_insert`: the scratch memory of the insert whose `place` may have been launched, with the count in the report. The
  report is reset only after these pairs have become rows;
- `_halving`: the old copy of a subtable that is halved. Its residuals find slots in other subtables, after the half has
  become the table's. Until the halving ends they are in the old copy, whether they have found a slot or not. If the
  half has not become the table's yet, the old copy is still in use, and nothing was lost.

A recovery makes rows of all of these, and drops the rows whose keys are in the table: no kernel changes the value of a
pair between the time when it is displaced and the time when it has a slot, so a pair that is in two places is the same
in both. Then it counts the keys of each subtable from the slots, and places the rows. It may be interrupted, too: as
long as rows may be in two places, the next recovery drops those of them that are in the table.

An enlargement, and a replacement of all subtables, only read the old memory, and end with one assignment. A batch that
combines values is finished, or taken back, before the interrupt goes on: nobody could do so later, as the batch is the
caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...designs.base import Design
from ...errors import TableFull
from ...runtime.abi import Flag, Op, SubtableBatch
from ...runtime.engine import Buffer, Engine, KernelSpec
from .. import policies
from ..batch import COMBINING, Batch
from ..batch_order.ordering import Copies, in_parts, parts_for
from ..elements import Elements, with_flags
from ..estimate import estimate_new_keys
from ..giving_up import not_placed_anew, slots_to_try, why_no_slot
from ..lookup import NO_FIELDS
from ..resize_log import Cause, Resize
from ..scratch import Allocate, Outcome, Scratch
from ..shielded import shielded
from ..slots import MemoryUse, Recovery, StoreOptions, TableKind
from ..update.pairs import Pairs
from .array import SETTLED, SETTLED_UNIQUE, Halving, SubtableArray, sizes_for
from .coordination import by_warps
from .insert import Insert, Piece
from .pending import PendingBatch
from .routing import fullest_load

__all__ = ["SubtableSlots"]

_ONE_STEP = 2
"""Times as large, or as small, that a table becomes subtable by subtable. Beyond it, all are replaced at once."""

_FULLEST_IN_PARTS, _FULLEST_RESIZED_IN_PARTS = 0.95, 0.82
"""Expected load factor of the fullest subtable up to which a batch goes in parts; the same after a resize."""

_LONG_CHAIN = 1 << 12
"""Evictions of the longest chains that are tried in a small table."""

_EVICTIONS_PER_SLOT = 4
"""Evictions of the longest chains that are tried, for each slot. Where a key has two slots to be in, a chain visits no
slot more than twice before it ends, if it ends (Pagh and Rodler, Cuckoo Hashing, 2004)."""


@dataclass
class _Update:
    """One call of `SubtableSlots.update`.

    Attributes
    ----------
    batch
        With room for its flags.
    parts
        The elements that go through the kernels of an insert together.
    combinations
        Launches that are left to combine values, when all keys are placed.
    copies
        If the batch is one of copies in another order.
    may_pend
        Its keys may still be under way when the update returns, if there is surely room for them.
    launched
        Elements whose flags are known.
    placed
        Whether all keys have their slots.
    """

    batch: Batch
    parts: list[Piece]
    scratch: Scratch
    combinations: list[SubtableBatch]
    copies: Copies | None
    may_pend: bool
    launched: int = 0
    placed: bool = False


class _State(NamedTuple):
    """What a commit replaces.

    Attributes
    ----------
    vouched
        Whether the table holds keys of a batch with ``unique``, which nobody has compared.
    """

    array: SubtableArray
    vouched: bool


def make_store(
    kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool
) -> SubtableSlots:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    sizes = sizes_for(slots, kind.spec.slots_per_bucket, kind.parameters["subtables"])
    own = kind.design.own_bounds(kind.parameters) if options.grows else None
    return SubtableSlots(SubtableArray(kind, sizes, seed, hash), options._replace(bounds=own))


def more_programs(spec: KernelSpec, parameters: Mapping[str, Any]) -> Iterator[KernelSpec]:
    """The kernels beside its own that a table may launch on a GPU."""
    if parameters["coordination"] != "lanes":
        yield by_warps(spec)


class SubtableSlots:
    """The `Slots` of subtables, and how these may change. ``size`` counts displaced pairs, too."""

    def __init__(self, array: SubtableArray, options: StoreOptions) -> None:
        self.state = _State(array, False)
        self.engine: Engine = array.engine
        self.design: Design = array.design
        self.spec: KernelSpec = array.spec
        self.seed = array.seed
        self.options = options
        self.grows, self.attempts, self.load_factor, self.bounds, self.counts_probes = options[:5]
        self.size = self.rebuilds = self.resizes = self.probes = self.inserted = 0
        self._most_load = self.bounds[1] if self.bounds else 1.0
        self._surely_placed = policies.load_surely_placed(self.spec.slots_per_bucket, len(array.keys))
        self._grew = True  # when there last might not have been room
        self._failed = (0, 0)  # slots and keys of the last table in which some keys found no slot
        self._displaced = self._no_pairs = Pairs.none(self.spec)
        self._insert: Insert | None = None
        self._halving: Halving | None = None
        self._pending: PendingBatch | None = None
        self.recovery = Recovery()

    # ---- what it is
    @property
    def array(self) -> SubtableArray:
        """The subtables."""
        return self.state.array

    @property
    def slots(self) -> int:
        return self.array.current.slots

    @property
    def capacity(self) -> int:
        return policies.capacity_of(self.array.current.slots, self.load_factor)

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    @property
    def peak_nbytes(self) -> int:
        return self.array.peak_nbytes

    @property
    def insert_probes(self) -> float | None:
        return self.probes / self.inserted if self.counts_probes and self.inserted else None

    def memory_use(self) -> MemoryUse:
        return self.array.memory_use()

    def sibling(self, keys: int, stream: Any = None) -> SubtableSlots:
        array = self.array.sibling(self._sizes_for(self._slots_for(keys)), self.array.seed + 1, stream)
        return SubtableSlots(array, self.options)

    def copy(self, stream: Any = None) -> SubtableSlots:
        self.finish(stream)
        other = SubtableSlots(self.array.copy(stream), self.options)
        other.state = _State(other.array, self.state.vouched)
        other.size, other._failed = self.size, self._failed
        return other

    def _slots_for(self, keys: int) -> int:
        return policies.slots_for(max(1, keys), self.load_factor)

    def _sizes_for(self, slots: int) -> list[int]:
        return sizes_for(slots, self.spec.slots_per_bucket, len(self.array.current.sizes))

    # ---- what is under way
    @property
    def pending(self) -> bool:
        return self._pending is not None or self.recovery.step is not None

    def finish(self, stream: Any = None) -> None:
        """As `Slots.finish`.

        Raises
        ------
        MemoryError, TableFull
            If displaced pairs are left. The next call tries again.
        """
        self.recovery.run(self.engine, stream)
        self._end(stream)
        self._withdraw_recovery()

    def _withdraw_recovery(self) -> None:
        """The table is whole, unless displaced pairs are left: then the next call tries again to place them."""
        if not len(self._displaced.keys):
            self.recovery.step = None

    def _end(self, stream: Any, coming: int = 0) -> bool:
        """Wait for the pending batch, count its keys, and place displaced pairs; whether there were any.

        The recovery stays noted: the caller has launched other work, or withdraws it. ``coming``: keys that the next
        batch brings.
        """
        pending = self._pending
        if pending is None:
            return False
        self.recovery.step = self._recover
        if pending.insert is None:
            self._record_erased(stream, coming)
            return False
        outcome = pending.insert.outcome()
        self._record(outcome)
        self._keep_displaced(pending.insert, outcome)
        if outcome.displaced:
            with suppress(MemoryError, TableFull):
                self._enlarge_for_displaced(0, 1, stream)
            self._place_displaced(stream)
        return outcome.displaced > 0

    def _record(self, outcome: Outcome) -> None:
        self.size += outcome.changed
        if self.counts_probes:
            self.probes, self.inserted = self.probes + outcome.probes, self.inserted + outcome.changed

    def _record_erased(self, stream: Any, coming: int = 0) -> None:
        """Count the keys that an erase has found. Waits."""
        self.size -= self.array.erased()
        self._await(None)
        self._bring_within_bounds(stream, erased=True, coming=coming)

    def _keep_displaced(self, insert: Insert, outcome: Outcome) -> None:
        """Make rows of the pairs that an insert has displaced; it is over."""
        if outcome.displaced:
            self._displaced = self._displaced.with_others(insert.displaced(outcome.displaced))
        self._insert = None
        self._await(None)

    def _await(self, pending: PendingBatch | None) -> None:
        """Note a batch that nobody waits for yet, and where finds look for the pairs that the batch displaces."""
        self._pending = pending
        insert = pending.insert if pending is not None else None
        self.array.find_fields = insert.displaced_fields if insert is not None else NO_FIELDS

    # ---- after an interrupt
    def _recover(self, stream: Any) -> None:
        """Make the table whole; see the head of this module."""
        self._gather_displaced(stream)
        self.size = self.array.count_slots(stream) + self._displaced.n
        self._place_displaced(stream)

    def _gather_displaced(self, stream: Any) -> None:
        """Make rows of all displaced pairs that are not in the table. No kernel runs any more. Allocates nothing."""
        displaced = self._displaced
        if self._halving is not None:
            displaced = displaced.with_others(self.array.residuals(self._halving, stream))
        if self._insert is not None:
            displaced = displaced.with_others(self._insert.displaced())
        self._displaced = displaced  # first, as what comes next may overwrite the memory where they were
        self._insert = self._halving = None
        self._await(None)
        self.array.workspace.expect_the_worst()
        self._displaced = self.array.absent(displaced, stream)

    # ---- lookups
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        return self.array.scan(room, out_keys, out_values, stream)

    def broken_buckets(self, stream: Any = None) -> int:
        return self.array.broken_buckets(stream)

    # ---- updates
    def update(self, batch: Batch) -> None:
        n, unique, stream = batch.n, batch.unique, batch.stream
        if n == 0:
            return
        self._finish_before_update(stream, n)
        self._make_many_slots(batch)
        array, engine, spec = self.array, self.engine, self.spec
        # All that comes before the first wait has the time that an earlier batch takes.
        most = min(n, SETTLED_UNIQUE if unique else SETTLED)
        scratch = array.workspace.workbench.kept
        if scratch is None or scratch.purpose != (most, False, unique):
            scratch = array.workspace.scratch(most, unique, array.current.nbytes, stream)
        # Where nobody asks which of several equal keys was added, the elements may go in another order.
        may_reorder = batch.op == Op.KEEP and (unique or not batch.flags) and not self.counts_probes
        gains = may_reorder and parts_for(array, n) is not None and self._overflow_is_rare(n)
        copies = in_parts(array, batch) if gains else None
        if copies:
            batch = copies.batch
        if not batch.flags:
            batch, _own_flags = with_flags(engine, batch)
        accumulates = batch.op in COMBINING
        if accumulates:
            engine.fill(batch.flags, 0, n, stream)  # an interrupt needs the flags of all elements
        width, row, keys, values = spec.word_bytes, spec.value_bytes, batch.keys, batch.values
        may_pend = n == most and batch.op == Op.KEEP and not copies and self.bounds is not None and engine.asynchronous
        update = _Update(
            batch=batch,
            parts=[
                Piece(keys + at * width, values and values + at * row, batch.flags + at, min(most, n - at))
                for at in range(0, n, most)
            ],
            scratch=scratch,
            combinations=array.combinations(batch) if batch.op != Op.KEEP else [],
            copies=copies,
            may_pend=may_pend,
        )
        vouched = self.state.vouched
        self.recovery.step = self._recover
        self.state = self.state._replace(vouched=vouched or unique)
        try:
            pends = self._insert_or_take_back(update)
        except (TableFull, MemoryError):
            self.state = self.state._replace(vouched=vouched)
            self._withdraw_recovery()
            raise
        except BaseException:
            if accumulates:
                shielded(partial(self._end_accumulation, update))
            raise
        if not pends:
            self._bring_within_bounds(stream)
        self._withdraw_recovery()

    def _overflow_is_rare(self, n: int) -> bool:
        """Whether few keys will leave their first subtables, if ``n`` are added.

        A key that leaves takes a slot of another subtable. In the order of the parts, the own keys of that bucket may
        still be to come, and find it full: more keys leave. In tables that have grown, finds read 8 % more for that
        (docs/performance/subtables.md).
        """
        current = self.array.current
        most = _FULLEST_IN_PARTS if current.table.early_exit else _FULLEST_RESIZED_IN_PARTS
        return fullest_load(current.table, current.sizes, self.spec.slots_per_bucket, self.size + n) <= most

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        if n == 0 or (isinstance(only, np.ndarray) and not len(only)):
            return
        self._finish_before_update(stream)
        array = self.array
        self.recovery.step = self._recover
        array.begin_erase(keys, n, flags, only, stream)
        if self._end(stream):
            self.array.begin_erase(keys, n, flags, only, stream)
        array.workspace.ask(array.current.table, None, True, stream)
        if self.engine.asynchronous and only is None:
            least = self.bounds[0] if self.bounds else 0.0
            self._await(PendingBatch(None, updates_wait=self.size - n < least * self.array.current.slots))
        else:
            self._record_erased(stream)
        self._withdraw_recovery()

    def clear(self, stream: Any = None) -> None:
        self.recovery.step = self._forget_all
        self._forget_all(stream)
        self._withdraw_recovery()

    def _forget_all(self, stream: Any) -> None:
        self._displaced, self._insert, self._halving = self._no_pairs, None, None
        self._await(None)
        self.array.workspace.expect_the_worst()
        self.array.clear(stream)
        self.state, self.size, self._failed = _State(self.array, False), 0, (0, 0)

    def rebuild(self, keys: int, stream: Any = None) -> None:
        """As `Slots.rebuild`. A table that has to grow for it enlarges its subtables: that takes the least memory."""
        self.finish(stream)
        if keys <= self.capacity:
            return self._replace(self._sizes_for(self._slots_for(max(keys, self.size))), Cause.ASKED, stream)
        while keys > self.capacity:
            self._enlarge(Cause.ASKED, stream)

    # ---- the steps of an update
    def _finish_before_update(self, stream: Any, coming: int = 0) -> None:
        """Nothing that counts keys may be launched between an erase and the halving that it makes due."""
        if self.recovery.step is not None or (self._pending is not None and self._pending.updates_wait):
            self.recovery.run(self.engine, stream)
            self._end(stream, coming)
            self._withdraw_recovery()

    def _insert_or_take_back(self, update: _Update) -> bool:
        """Insert a batch, or raise `TableFull` with the table as it was; whether the batch is pending."""
        try:
            return self._insert_all(update)
        except (TableFull, MemoryError) as error:
            unplaced = self._take_back(update)
            if update.copies:
                unplaced = update.copies.originals(unplaced)
            raise TableFull(f"{error}; the table is as it was", unplaced) from error

    def _insert_all(self, update: _Update) -> bool:
        """Add the keys of all parts, then combine values; whether the batch is pending.

        Raises
        ------
        TableFull, MemoryError
            If not all keys fit. Some may have been added, and pairs displaced.
        """
        insert = self._settled_ahead(update.parts[0], update)
        size = self.size
        for part in update.parts:
            insert = insert or self._settled(part, update)
            update.launched += part.n
            if self._insert_part(part, insert, update):
                return True
            insert = None
        update.placed = True
        if self.size - size < update.batch.n:
            self.array.combine(update.combinations, update.batch.stream)
        if update.copies:
            update.copies.flag(update.batch.flags, self.size - size)
        return False

    def _begin(self, piece: Piece, update: _Update) -> Insert:
        return Insert(self.array, piece, update.scratch, self.counts_probes, self.engine.allocate, update.batch.stream)

    def _settled_ahead(self, piece: Piece, update: _Update) -> Insert | None:
        """End the pending batch; an insert that settles behind it, while the host waits for the end.

        None if nothing is pending, or that batch has displaced pairs: then the kernel has done nothing, and is to be
        launched again.
        """
        insert = None
        if self._pending is not None:
            insert = self._begin(piece, update)
            try:
                insert.settle(update.batch.unique)
            except MemoryError:  # for the list of those that it leaves
                insert = None
        return None if self._end(update.batch.stream) else insert

    def _settled(self, piece: Piece, update: _Update) -> Insert:
        """An insert that has settled.

        Raises
        ------
        MemoryError
            Nothing of the piece was launched.
        """
        insert = self._begin(piece, update)
        insert.settle(update.batch.unique)
        return insert

    def _insert_part(self, piece: Piece, insert: Insert, update: _Update) -> bool:
        """Add the keys of a piece that ``insert`` has settled; whether they are still under way."""
        stream = update.batch.stream
        most, coming = self._most_load * self.array.current.slots, piece.n
        if self.size + coming > most:
            insert.ask(last=False)
            memory = self._memory_ahead(stream)
            self._record(insert.outcome())
            coming, resizes = insert.left, self.resizes
            self._make_room_for(coming, stream, memory)
            self._grew = self.resizes > resizes
            if not coming:
                return False
            most = self._most_load * self.array.current.slots
            insert.settle_rest()
        most = min(most, self._surely_placed * self.array.current.slots)
        self._insert = insert
        if update.may_pend and insert.may_displace_all and self.size + coming <= most:
            insert.place_or_displace()
            self._await(PendingBatch(insert, updates_wait=False))
            return True
        self._place(piece, insert, update)
        return False

    def _place(self, piece: Piece, insert: Insert, update: _Update) -> None:
        """Add the keys that ``insert`` has not settled."""
        first_seed = self.array.seed
        insert.place()
        for attempt in count(1):
            outcome = insert.outcome()
            self._record(outcome)
            self._keep_displaced(insert, outcome)
            if not (outcome.displaced or outcome.unplaced):
                return
            for tries in count(attempt):
                self._enlarge_after(tries, 1 + self.array.seed - first_seed, outcome.unplaced, update.batch.stream)
                if self._placed_displaced(self.array.table.chain_limit, update.batch.stream):
                    break
            flags = self.engine.to_host(piece.flags, np.uint8, piece.n, update.batch.stream)
            only = np.flatnonzero(flags == Flag.UNPLACED)
            if not len(only):
                return
            insert = self._begin(piece, update)
            self._insert = insert
            insert.place(only)

    def _take_back(self, update: _Update) -> npt.NDArray[np.int64]:
        """Undo a batch before its values are combined; which elements did not fit. Allocates nothing.

        The keys that the batch added are erased, wherever they are now, and the pairs that it displaced are placed.
        """
        batch, stream = update.batch, update.batch.stream
        done = self.engine.to_host(batch.flags, np.uint8, update.launched, stream)
        added, n_displaced = np.flatnonzero(done == Flag.CHANGED), self._displaced.n
        keys = self.engine.to_host(batch.keys, self._displaced.keys.dtype, batch.n, stream)[added]
        self._displaced = self._displaced.where(~np.isin(self._displaced.keys, keys))
        self.array.erase_listed(batch.keys, added, stream)
        self.size = self.array.count_slots(stream) + self._displaced.n
        self._place_displaced(stream)
        # As many new keys as displaced pairs did not fit, even if the displaced pairs are others.
        return np.union1d(
            np.flatnonzero(done == Flag.UNPLACED), added[len(added) - min(n_displaced, len(added)) :]
        ).astype(np.int64)

    def _end_accumulation(self, update: _Update) -> None:
        """Finish an interrupted batch that adds to values, or take it back: all values of a key are added, or none."""
        if update.placed:
            return self.array.combine(update.combinations, update.batch.stream)
        self.engine.synchronize(None)
        self._gather_displaced(update.batch.stream)
        update.launched = update.batch.n
        self._take_back(update)

    # ---- sizes
    def _memory_ahead(self, stream: Any) -> Buffer | None:
        """What the next enlargement will take, if one is due: asked for while the host has nothing else to do.

        Not if it was in vain the last time: a table near its bound, whose batches bring few new keys, would map memory
        for each of them.
        """
        if self._grew and self.bounds is not None and self.engine.asynchronous:
            with suppress(MemoryError):
                return self.array.memory_to_enlarge(policies.subtable_to_enlarge(self.array.current.sizes), stream)
        return None

    def _make_room_for(self, new: int, stream: Any, memory: Buffer | None = None) -> None:
        """Enlarge the smallest subtable until so many keys more are within the bounds, if there is memory for it.

        ``memory``: of `_memory_ahead`.
        """
        wanted, slots = self.size + new, self.array.current.slots
        if self.bounds is None:
            if wanted > slots:
                raise TableFull(
                    f"{wanted:,} keys do not fit into {slots:,} slots of design {self.design.name!r}; "
                    "allow on_full='grow', or give a larger capacity"
                )
            return
        with suppress(MemoryError):
            while wanted > self.bounds[1] * self.array.current.slots:
                self._enlarge(Cause.BATCH, stream, memory)
                memory = None

    def _make_many_slots(self, batch: Batch) -> None:
        """Move all pairs into larger subtables at once, before a batch that needs more than twice the slots."""
        n, stream = batch.n, batch.stream
        if self.bounds is None or n <= self.array.current.slots:
            return
        self.finish(stream)
        room = int(self.bounds[1] * _ONE_STEP * self.array.current.slots) - self.size
        with suppress(MemoryError):
            new = estimate_new_keys(self, batch, room)
            if new > room:
                slots = policies.slots_between_enlargements(
                    self.size + new, len(self.array.current.sizes), self.bounds[1]
                )
                self._replace(self._sizes_for(slots), Cause.BATCH, stream)

    def _enlarge(self, cause: Cause, stream: Any, memory: Buffer | None = None) -> None:
        resize = Resize(self.design.name, self.array.current.slots, cause)
        self.array.enlarge(policies.subtable_to_enlarge(self.array.current.sizes), stream, memory)
        self.resizes += 1
        resize.done(self.size, self.array.current.slots)

    def _enlarge_for_displaced(self, unplaced: int, tried: int, stream: Any, memory: Buffer | None = None) -> None:
        """Make more slots for pairs, and for elements, that evictions found none for.

        Where more slots cannot help, take other hash constants, unless enough sets of these were ``tried``.
        ``memory``: as of `_place_displaced`.
        """
        array = self.array
        self._failed = (array.current.slots, self.size + unplaced)
        if self._slots_to_try(2 * array.current.slots, array.current.slots, unplaced, tried) == array.current.slots:
            return self._redraw(stream)
        if memory is not None:
            memory = array.memory_to_undo(memory, policies.subtable_to_enlarge(array.current.sizes), stream)
        self._enlarge(Cause.NO_SLOT, stream, memory)

    def _enlarge_after(self, attempt: int, tried: int, unplaced: int, stream: Any) -> None:
        """Make more room after evictions that led nowhere; take other hash constants where that did not help.

        ``tried``: sets of hash constants under which the batch has failed.
        """
        if not self.grows and attempt >= self.attempts:
            raise TableFull(
                f"{unplaced + self._displaced.n:,} keys found no place beside {self.size:,} others in "
                f"{self.array.current.slots:,} slots (tried {tried} sets of hash constants); allow on_full='grow', or "
                "give a larger capacity"
            )
        due = attempt % (len(self.array.current.sizes) + 1) == 0 if self.grows else True
        if due and self._fits_anew(unplaced):
            with suppress(MemoryError, TableFull):
                self._redraw(stream)
        elif self.grows:
            self._enlarge_for_displaced(unplaced, tried, stream)

    def _fits_anew(self, unplaced: int) -> bool:
        """Whether all pairs find slots under other hash constants, too: a table of one size has no others for them."""
        return self.grows or 2 * (self.size + unplaced) <= self._surely_placed * self.array.current.slots

    def _redraw(self, stream: Any) -> None:
        """Move all pairs but the displaced ones into subtables of the same number of slots with other hash constants.

        Keys that share their buckets under the present constants do so in larger subtables, too.

        Raises
        ------
        MemoryError
            If there is no room for both. The table is as it was.
        """
        self._replace(self._sizes_for(self.array.current.slots), Cause.NO_SLOT, stream)

    def _bring_within_bounds(self, stream: Any, erased: bool = False, coming: int = 0) -> None:
        """Bring the load factor back within the bounds, if there is memory for it. Only an erase makes a table smaller.

        ``coming``: keys that the next batch brings. A table without keys is only cleared if these need its slots.
        """
        if self.bounds is None:
            return
        least, most = self.bounds
        with suppress(MemoryError, TableFull):  # the batch is done, and the next call places what has no slot
            while self.size > most * self.array.current.slots:
                self._enlarge(Cause.BOUNDS, stream)
            if not erased or self.size >= least * self.array.current.slots:
                return
            if not self.size and coming >= least * self.array.current.slots:
                return self.array.clear(stream)
            self._shrink_at_once(least, stream)
            while self.size < least * self.array.current.slots:
                if not self._halve(stream):
                    return

    def _shrink_at_once(self, least: float, stream: Any) -> None:
        """Replace all subtables if an erase has left so few keys that less than half of the slots remain."""
        array = self.array
        sizes = self._sizes_for(policies.slots_between_halvings(self.size, len(array.current.sizes), least))
        if _ONE_STEP * sum(sizes) >= sum(array.current.sizes):
            return
        if policies.may_halve(self.size, sum(sizes) * self.spec.slots_per_bucket, self._failed):
            with suppress(MemoryError):  # there may be enough to halve one
                self._replace(sizes, Cause.BOUNDS, stream)
                self.resizes += len(sizes)

    def _halve(self, stream: Any) -> bool:
        """Halve a subtable; whether one could be halved, and its keys may have found slots there."""
        array = self.array
        number = policies.subtable_to_halve(array.current.sizes)
        if number is None:
            return False
        slots = array.current.slots - array.current.sizes[number] // 2 * self.spec.slots_per_bucket
        if not policies.may_halve(self.size, slots, self._failed):
            return False
        self._place_displaced(stream, self._halve_subtable(number, stream))
        return True

    def _halve_subtable(self, number: int, stream: Any = None) -> Buffer:
        """Make one subtable half as large, and keep the pairs that are displaced by it; the memory of its old copy."""
        resize = Resize(self.design.name, self.array.current.slots, Cause.BOUNDS)
        halving = self.array.begin_halving(number, stream)
        self._halving, self._insert = halving, halving.insert
        self.array.halve(halving, stream)
        self._displaced = self._displaced.with_others(self.array.end_halving(halving, stream))
        self._insert = self._halving = None
        self.resizes += 1
        resize.done(self.size, self.array.current.slots)
        return halving.old.memory

    def _replace(self, sizes: Sequence[int], cause: Cause, stream: Any) -> None:
        """Move all pairs but the displaced ones into new subtables of these sizes, with other hash constants.

        Raises
        ------
        MemoryError, TableFull
            If there is no room for it. The table is as it was.
        """
        old, is_empty = self.array, not self.size and not self.pending
        resize = Resize(self.design.name, old.current.slots, cause)
        for attempt in count(1):
            new = old.sibling(sizes, old.seed + attempt, stream)
            if is_empty or new.take_over(old, stream):
                break
            if attempt % self.attempts == 0:
                slots = sum(sizes) * self.spec.slots_per_bucket
                if not self.grows:
                    raise not_placed_anew(self.size, slots, attempt)
                self._slots_to_try(2 * slots, slots, 0, attempt)
                sizes = [2 * buckets for buckets in sizes]
        new.account.peak_bytes = max(old.account.peak_bytes, old.account.held_bytes + new.account.peak_bytes)
        self.state = self.state._replace(array=new)
        self._failed = (0, 0)
        self.seed = new.seed
        self.rebuilds += 1
        resize.done(self.size, new.current.slots)

    def _slots_to_try(self, wanted: int, slots: int, missing: int, tried: int) -> int:
        """As `giving_up.slots_to_try`, with ``missing`` elements beside the keys."""
        keys, limits = self.size + missing, {"tried": tried, "attempts": self.attempts}
        return slots_to_try(wanted, slots, keys, self.design.name, vouched=self.state.vouched, **limits)

    # ---- displaced pairs
    def _placed_displaced(self, chain_limit: int, stream: Any) -> bool:
        """Try once to place all displaced pairs, with chains of so many evictions; whether none is left.

        Where there is no memory to try all at once, a few at a time are tried.
        """
        displaced, array = self._displaced, self.array
        if not displaced.n:
            return True
        try:
            self._displaced = self._left_of(displaced, array.account.allocate, chain_limit, stream)
        except MemoryError:
            for _ in range(0, displaced.n, array.reserved_pairs):
                some = self._displaced.where(slice(array.reserved_pairs))
                rest = self._displaced.where(slice(array.reserved_pairs, None))
                left = self._left_of(some, array.reserved_arena().allocate, chain_limit, stream)
                self._displaced = rest.with_others(left)
        self._insert = None
        return not self._displaced.n

    def _left_of(self, displaced: Pairs, allocate: Allocate, chain_limit: int, stream: Any) -> Pairs:
        """Try to place displaced pairs; those that have no slot afterwards, and those that lost theirs.

        Raises
        ------
        MemoryError
            If ``allocate`` does. Nothing was launched.
        """
        engine, n = self.engine, displaced.n
        columns = [displaced.keys, displaced.keys[:0] if displaced.values is None else displaced.values]
        held = [allocate(max(1, column.nbytes), stream) for column in columns]
        flags = allocate(n, stream)
        insert = self.array.begin_move(Piece(held[0].ptr, held[1].ptr, flags.ptr, n), stream, allocate, chain_limit)
        for memory, column in zip(held, columns, strict=True):
            engine.upload(memory.ptr, column, stream)
        insert.settle(unique=True)
        self._insert = insert
        insert.place()
        outcome = insert.outcome()
        left = displaced.where(engine.to_host(flags.ptr, np.uint8, n, stream) == Flag.UNPLACED)
        return left.with_others(insert.displaced(outcome.displaced))

    def _place_displaced(self, stream: Any, memory: Buffer | None = None) -> None:
        """Place all displaced pairs.

        After `attempts` tries the table is enlarged, if it may grow: into ``memory`` if that is what a subtable was
        halved from. Where the table cannot grow, each try has chains twice as long, until a chain that finds no slot
        shows that there is none.

        Raises
        ------
        MemoryError, TableFull
            If displaced pairs are left. The next call tries again.
        """
        self.recovery.step = self._recover
        chain_limit, tries, rounds, refused = self.array.table.chain_limit, 0, 0, False
        first_seed = self.array.seed
        while not self._placed_displaced(chain_limit, stream):
            tries += 1
            if tries < self.attempts:
                continue
            if self.grows:
                rounds += 1
                try:
                    if rounds % (len(self.array.current.sizes) + 1) == 0:
                        self._redraw(stream)
                    else:
                        self._enlarge_for_displaced(0, 1 + self.array.seed - first_seed, stream, memory)
                except MemoryError:
                    refused = True
                else:
                    chain_limit, tries, memory = self.array.table.chain_limit, 0, None
                    continue
            if chain_limit >= max(_LONG_CHAIN, _EVICTIONS_PER_SLOT * self.array.current.slots):
                raise self._no_slots(1 + self.array.seed - first_seed, refused)
            chain_limit = 2 * max(1, chain_limit)

    def _no_slots(self, tried: int, refused: bool) -> Exception:
        """What to raise if displaced pairs are left; ``refused``: there was no memory to enlarge the table."""
        n = self._displaced.n
        if refused:
            return MemoryError(
                f"{n:,} pairs have no slot, and there is no memory to enlarge the table for them: free some memory. "
                "The table keeps these pairs, and the next call tries again to place them"
            )
        return TableFull(
            f"{n:,} pairs found no slot beside {self.size - n:,} others in {self.array.current.slots:,} slots, "
            f"{why_no_slot(tried, vouched=self.state.vouched)}. The table keeps these pairs, and the next call tries "
            "again to place them; clear() forgets all",
            np.empty(0, np.int64),
        )
