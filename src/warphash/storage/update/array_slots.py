"""The `slots.Slots` of every family whose pairs lie in one array: when the array is replaced, and by what.

A family supplies the array (memory and launches) and a `Remedy`: what helps when a key finds no slot, how a first batch
is built, and what a recovery does. The order of an update is the same for all families:

1. A batch is left behind others that are under way, if it surely fits behind all of them. Otherwise what is under way,
   or was interrupted, is finished first.
2. A table that the batch could fill grows ahead of it (`sizes.Growth`).
3. The first batch of a table without keys is a build, if the family has one, unless it is one launch that may be left
   (4): nobody need wait for that. A build writes all slots. So the memory of
   a new or forgotten array is cleared by the first call that is no build: until then, to clear the memory is the step
   of the recovery. A build that surely fits may be left, too. Then the family keeps the elements, and the next call
   that needs the end reads what came of the build. If some elements have no slot, or an interrupt comes, the table is
   built anew of them.
4. A batch that surely fits is left, if the array has kernels for that: `ArraySlots.update` returns when it is launched
   (`left`). The array clears its memory before, if that was put off. Pairs that find no slot become displaced pairs.
   The next call that needs the end of the batch (`ArraySlots.finish`) reads the outcome, and gives displaced pairs
   slots as after an interrupt. In a fuller table, this could take more memory than there is, and a later call would
   fail for it. Each family says how full is too full (`Remedy.leaves_up_to`). Only tables that may grow leave batches.
   An erase is left in the same way.
5. Any other batch is a `Transaction`. A large batch goes in the order of the parts of the table (`ordering`). If the
   design compares the loads of buckets, the batch goes in two rounds: first all keys that have room in their first
   buckets, then the others (``buckets/insert.cuh``). A table that counts probes takes each batch as it comes, in one
   round.
6. The load factor is brought back within its bounds.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import numpy as np

from ...designs.base import Design
from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import KernelSpec
from .. import policies
from ..batch import COMBINING, Batch
from ..batch_order.ordering import in_parts
from ..elements import Elements, with_flags
from ..estimate import estimate_new_keys
from ..giving_up import does_not_fit, not_placed_anew, slots_to_try
from ..listed import Listed
from ..lookup import Searchable
from ..resize_log import Cause, Resize
from ..scratch import Outcome
from ..slots import MemoryUse, Recovery, StoreOptions, resting
from .left import ErasingArray, LeavingArray, Left, LeftBuild
from .pairs import Pairs
from .sizes import Growth
from .transaction import LISTED_BYTES, Array, ArrayState, Transaction, Undo, may_fail

__all__ = ["ArraySlots", "Remedy", "SlotArray"]

_LOOKS = 50
"""About 30 us: a batch of few elements takes a GPU 10 us, and an erase 40."""

_STREAM_BATCHES = 2
"""Batches behind each other whose elements all brought new keys, behind which the next one is taken for such."""


class SlotArray(Array, Searchable, Protocol):
    """The array of a family. It keeps no count of its keys, and decides nothing.

    Attributes
    ----------
    cleared
        Whether the memory holds what it should. A build and a move take an array that is not cleared.
    """

    cleared: bool

    @property
    def design(self) -> Design: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def nbytes(self) -> int: ...
    def memory_use(self) -> MemoryUse: ...
    def sibling(self, slots: int, seed: int, stream: Any = None) -> Self:
        """An array of the same kind with other hash constants, without pairs."""

    def beside(self, slots: int, seed: int, stream: Any = None) -> Self:
        """As `sibling`, for another table."""

    def copy(self, stream: Any = None) -> Self:
        """An array with the same hash constants and pairs, in memory of its own."""

    def forget(self, stream: Any = None) -> None:
        """Forget all pairs. The array is not cleared by that, if a build can take it so."""

    def update(self, given: Batch, *, count_probes: bool = False, listed: Listed | None = None) -> Outcome:
        """Add the keys that are absent; apply the batch's operation to the values of the others. Waits.

        Parameters
        ----------
        listed
            Elements to take part; all of them if None.

        Raises
        ------
        MemoryError
            Before a kernel is launched.
        """

    def is_one_launch(self, n: int) -> bool:
        """Whether an update of ``n`` elements is one launch: nothing can stop it half way."""

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int: ...
    def broken_buckets(self, stream: Any = None) -> int: ...


class DisplacingArray(Protocol):
    """An array that has updates which displace pairs."""

    def displaced_pairs(self, stream: Any = None) -> Pairs:
        """The pairs that the last update left without a slot. They stay there until `forget_displaced`. Waits."""

    def forget_displaced(self) -> None:
        """Forget where the last update left pairs without a slot: somebody else has them."""


A = TypeVar("A", bound=SlotArray)


class Remedy(Protocol[A]):
    """What a family adds to its array. It has no state: ``store`` is that of the call.

    What is written here is right for a family that builds nothing and displaces no pair.

    Attributes
    ----------
    keeps_constants
        A larger array has the same hash constants, if a batch has not failed under them.
    leaves_tombstones
        Erased slots are not as good as unused ones.
    goes_by_parts
        The kernels of `ordering` know the layout of the array: a large batch goes in the order of its parts.
    leaves_up_to
        Of the keys that the design surely places, the share up to which a batch surely fits, so that it may be left.
    """

    keeps_constants: bool = False
    leaves_tombstones: bool = True
    goes_by_parts: bool = False
    leaves_up_to: float = 0.5

    def build(self, store: ArraySlots[A], batch: Batch, more_slots: int | None) -> tuple[A, int] | None:
        """Do a batch that combines no values in one build: the array, and the keys in it. None if it is not done.

        Parameters
        ----------
        more_slots
            The table has keys, and grows to so many slots. A new array is built of these keys and of the batch. None if
            the table has no keys: its array is built, and is not `cleared` if that stopped half way.

        Raises
        ------
        MemoryError
            As if it is not done.
        """
        return None

    def leave_build(self, store: ArraySlots[A], batch: Batch) -> LeftBuild | None:
        """Launch the build of a table without keys, and do not wait for it; None for a batch that is not left.

        The array is not `cleared` until the build is ended.

        Raises
        ------
        MemoryError
            This may come between two launches.
        """
        return None

    def way_back(self, store: ArraySlots[A], batch: Batch) -> Undo[A] | None:
        """The way back to the table before a batch that may fail by its size; None for any other batch."""

    def make_room(self, store: ArraySlots[A], update: Transaction[A], missing: int) -> None:
        """As `UpdatedSlots.make_room`: in place, or by `ArraySlots.move_for`, as it is here."""
        store.move_for(update, missing, store.slots)

    def move(self, store: ArraySlots[A], new: A, stream: Any) -> ArrayState[A] | None:
        """The state with all pairs in a new array, which is cleared by that; None if some have no slot there."""

    def recover(self, store: ArraySlots[A], stream: Any) -> None:
        """Make the table whole after an update without a way back, and count its keys (`ArraySlots.count_keys`).

        Raises
        ------
        MemoryError, TableFull
            If displaced pairs have no slot. They stay, and the next call tries again.
        """
        store.count_keys(stream)


class ArraySlots(Generic[A]):
    """The `slots.Slots` of a family with one array.

    Parameters
    ----------
    array
        Its memory is cleared when that is needed.
    options
        What the store may do.
    remedy
        Of the family.

    Attributes
    ----------
    probes, inserted
        Buckets, slots or tickets read by updates that counted them, and the keys that these updates added.
    new_share
        Of the elements of the last update, how many brought new keys.
    listed
        As of an `UpdatedSlots`.
    """

    resizes = None
    peak_nbytes = None

    def __init__(self, array: A, options: StoreOptions, remedy: Remedy[A], stream: Any = None) -> None:
        self.engine, self.design, self.parameters = array.engine, array.design, array.parameters
        self.options, self.remedy, self.seed = options, remedy, array.seed
        self.safe_load_factor = array.design.safe_load_factor(array.parameters)
        self._growth = Growth(options.load_factor, self.safe_load_factor, options.bounds)
        # With bounds or counts, the end of a batch is part of the call.
        at_once = options.counts_probes or options.bounds is not None
        may_leave = options.leaves and options.grows and not at_once and array.engine.lanes > 1
        self._leaves = may_leave and hasattr(array, "leave")
        self._leaves_erases = self._leaves and hasattr(array, "leave_erase")
        self._reorders = remedy.goes_by_parts and not options.counts_probes
        self.rebuilds = self.probes = self.inserted = 0
        self.new_share, self._new_batches = 1.0, 0
        self._left_build: LeftBuild | None = None  # its step of the recovery builds the table anew
        self.state: ArrayState[A] = ArrayState(array, 0)
        self.recovery = Recovery()
        self._clear_later, self._recover_later = resting(ArraySlots._clear, self), resting(type(self).recover, self)
        if not array.cleared:
            array.forget(stream)
        self._rest()
        self.listed = array.engine.allocate_pinned(LISTED_BYTES)

    # ---- what the store is; nothing of it waits or changes anything
    @property
    def array(self) -> A:
        """The memory that holds the pairs."""
        return self.state.array

    @property
    def spec(self) -> KernelSpec:
        """The kernels of the table at its size."""
        return self.state.array.spec

    @property
    def size(self) -> int:
        return self.state.size

    @property
    def slots(self) -> int:
        return self.state.array.slots

    @property
    def capacity(self) -> int:
        return policies.capacity_of(self.state.array.slots, self.options.load_factor)

    @property
    def nbytes(self) -> int:
        return self.state.array.nbytes

    @property
    def insert_probes(self) -> float | None:
        return self.probes / self.inserted if self.options.counts_probes and self.inserted else None

    @property
    def pending(self) -> bool:
        return self.recovery.step is not None

    def memory_use(self) -> MemoryUse:
        return self.state.array.memory_use()

    # ---- other stores
    def sibling(self, keys: int, stream: Any = None) -> Self:
        array = self.state.array
        return type(self)(
            array.beside(self._slots_for(keys), array.seed + 1, stream), self.options, self.remedy, stream
        )

    def copy(self, stream: Any = None) -> Self:
        state = self.state
        twin = type(self)(state.array.copy(stream), self.options, self.remedy, stream)
        twin.state = state._replace(array=twin.array)
        twin.rebuilds, twin.probes, twin.inserted = self.rebuilds, self.probes, self.inserted
        return twin

    def _slots_for(self, keys: int) -> int:
        return policies.slots_for(max(1, keys), self.options.load_factor)

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        return self.state.array.scan(room, out_keys, out_values, stream)

    def broken_buckets(self, stream: Any = None) -> int:
        return self.state.array.broken_buckets(stream)

    # ---- updates
    def update(self, batch: Batch) -> None:
        """As `Slots.update`; returns when the batch is done, or left."""
        if batch.n == 0 or (self.state.left and self._leave_behind(batch)):
            return
        fits = self.prepare(batch)
        if fits is None:
            return
        if self.may_leave(batch, fits=fits) and self._leave(batch):
            return
        if self.recovery.step is not None:
            self.finish(batch.stream)
        self._do(batch)

    def leave_few(
        self, keys: int, values: int, n: int, op: int, kind: int, flags: int, unique: bool, stream: Any
    ) -> bool:
        """Do what `update` does with a batch of few elements that is left, in fewer steps: whether that is done.

        Otherwise nothing has changed, and the batch goes to `update`. The arguments are the fields of `Batch`. Each
        element has a flag.
        """
        array: Any = self.state.array
        launch = getattr(array, "leave_few", None)
        if launch is None or op in COMBINING or not 0 < n <= array.most_few or not self._leaves:
            return False
        if self.recovery.step is not None and not self.state.left:
            return False
        if not self._has_room_for_few(n) and not (self._await_first() and self._has_room_for_few(n)):
            return False
        array, size, tombstones, vouched, left, displaced, awaited = self.state
        self._note_launches()
        ticket = launch(keys, values, n, op, kind, flags, awaited, stream)
        left = (*left, Left(ticket, n))
        self.state = ArrayState(array, size, tombstones, vouched or unique, left, displaced, awaited + n)
        return True

    def _await_first(self) -> bool:
        """Count the keys of the batches that were left and have ended: whether there are some. Waits a while for one.

        To wait for all of them, as `finish` does, would leave the device without work.
        """
        return any(self._count_ended() for _ in range(_LOOKS)) if self.state.left else False

    def _has_room_for_few(self, n: int) -> bool:
        """Whether so many elements may be left behind others. A table without keys has more to do first."""
        state = self.state
        array: Any = state.array
        if state.awaited + n > array.most_awaited or len(state.left) >= array.most_left:
            return False
        return state.size > 0 and self.surely_fit(n)

    def may_leave(self, batch: Batch, *, fits: bool = False) -> bool:
        """Whether a batch may be left while no other one is under way, if the array can: it surely fits.

        Parameters
        ----------
        fits
            As of `surely_fit`.
        """
        return self._leaves and (fits or not (self.state.size or may_fail(self, batch)))

    def prepare(self, batch: Batch) -> bool | None:
        """Make the table as large as a batch needs, and do the batch if a build can: None if it is done.

        Otherwise, whether the batch fits though all of its keys were new. The memory may still be not cleared.
        """
        if self.recovery.step is not None:
            self.end_updates(batch.stream)
        fits = self.surely_fit(batch.n)
        slots = None if fits else self._slots_ahead(batch)
        done = slots is not None and self._is_grown_with(slots, batch)
        if slots is not None and not done:
            with suppress(MemoryError):  # the batch may fit all the same
                self.replace(slots, Cause.BATCH, batch.stream)
        if done or (not self.state.size and not self._is_left_at_once(batch, fits) and self._is_built(batch, fits)):
            self._keep_in_bounds(batch.stream)
            return None
        return fits or (slots is not None and self.surely_fit(batch.n))

    def _is_left_at_once(self, batch: Batch, fits: bool) -> bool:
        """Whether a first batch is one launch and may be left: nobody need wait for it, as for a build."""
        return self._leaves and self.state.array.is_one_launch(batch.n) and self.may_leave(batch, fits=fits)

    def surely_fit(self, keys: int) -> bool:
        """Whether the table has slots for so many new keys behind those that were left, and needs no rebuild before."""
        state = self.state
        slots, most = state.array.slots, self.remedy.leaves_up_to * self.safe_load_factor
        return state.size + state.awaited + keys <= most * slots and 2 * state.tombstones <= slots

    def _is_built(self, batch: Batch, fits: bool) -> bool:
        """Do a batch for a table without keys in one build, if the family can: whether it is done, or left."""
        array = self.state.array
        if self.options.counts_probes or batch.op in COMBINING:
            return False
        self.recovery.step = self._recover_later
        if self.may_leave(batch, fits=fits) and self._is_build_left(batch):
            return True
        built = None
        with suppress(MemoryError):
            built = self.remedy.build(self, batch, None)
        if built is not None:
            self.state = ArrayState(array, built[1], vouched=batch.unique)
            self._note_share(batch.n, built[1])
        self._rest()
        return built is not None

    def _is_build_left(self, batch: Batch) -> bool:
        """Launch the build of a table without keys, and do not wait for it: whether that is done."""
        try:
            left = self.remedy.leave_build(self, batch)
        except MemoryError:
            self.state.array.forget(batch.stream)
            return False
        if left is None:
            return False
        # The step does not hold the store, so a table that nobody uses any more is freed at once.
        self.recovery.step = partial(type(self)._build_anew, weakref.proxy(self), left)
        self._left_build = left
        return True

    def _end_build(self, left: LeftBuild, stream: Any) -> None:
        """Count the keys of a build that was left. If some elements have no slot, the recovery stays noted. Waits."""
        self._left_build = None  # from here on, an interrupt has the table built anew
        keys = left.end(stream)
        if keys is None:
            return
        self.state = ArrayState(self.state.array, keys, vouched=left.unique)
        self.recovery.step = None
        self._note_share(left.n, keys)

    def _build_anew(self, left: LeftBuild, stream: Any) -> None:
        """Build the table of the elements that a build was given. May run more than once."""
        array = self.state.array
        batch, _elements = left.elements(stream)
        array.forget(stream)
        self.state = ArrayState(array, 0)
        batch, _own_flags = with_flags(self.engine, batch)
        Transaction(self, batch, None).complete()

    def _is_grown_with(self, slots: int, batch: Batch) -> bool:
        """Grow to so many slots by a build that does the batch, too, if the family can: whether it is done.

        The table stays as it is until the commit.
        """
        array, size, _, vouched, *_ = self.state
        if not size or self.options.counts_probes or batch.op in COMBINING:
            return False
        resize = Resize(self.design.name, array.slots, Cause.BATCH)
        built = None
        with suppress(MemoryError):
            built = self.remedy.build(self, batch, slots)
        if built is None:
            return False
        self.state = ArrayState(*built, vouched=vouched or batch.unique)
        self.rebuilds += 1
        self._note_share(batch.n, built[1] - size)
        resize.done(built[1], built[0].slots)
        return True

    def _leave_behind(self, batch: Batch) -> bool:
        """Leave a batch behind others, if it surely fits: whether that is done. Waits for nothing."""
        if self.surely_fit(batch.n) and self._leave(batch):
            return True
        return self._count_ended() and self.surely_fit(batch.n) and self._leave(batch)

    def _count_ended(self) -> bool:
        """Count the keys of the batches that were left and have ended: whether there are some."""
        array, size, tombstones, vouched, left, displaced, awaited = self.state
        answer, ended = cast(LeavingArray, array).answer, 0
        for ticket, n in left:
            outcome = answer(ticket)
            if outcome is None or not outcome.complete:  # `finish` gives displaced pairs slots
                break
            ended, size, awaited = ended + 1, size + (outcome.changed if n else -outcome.changed), awaited - n
            if n:
                self._note_share(n, outcome.changed)
        self.state = ArrayState(array, size, tombstones, vouched, left[ended:], displaced, awaited)
        if ended == len(left):
            self.recovery.step = None
        return ended > 0

    def _leave(self, batch: Batch) -> bool:
        """Launch a batch, behind those that were left, and do not wait for it: whether that is done."""
        state, step = self.state, self.recovery.step
        array = cast(LeavingArray, state.array)
        if batch.op in COMBINING:
            return False
        if not batch.flags:
            batch, _own_flags = with_flags(self.engine, batch)
        self._note_launches()
        ticket = array.leave(batch, len(state.left), state.awaited, self.new_share)
        if not ticket:
            self.state, self.recovery.step = state, step
            return False
        whole, size, tombstones, vouched, before, displaced, awaited = state  # a third of the time of `_replace`
        left, vouched = (*before, Left(ticket, batch.n)), vouched or batch.unique
        self.state = ArrayState(whole, size, tombstones, vouched, left, displaced, awaited + batch.n)
        return True

    def _leave_erase(self, given: Batch) -> bool:
        """Launch an erase, behind the batches that were left, and do not wait for it: whether that is done."""
        state = self.state
        if self.recovery.step is not None and not state.left:
            return False
        array = cast(ErasingArray, state.array)
        if len(state.left) >= array.most_left and not self._count_ended():
            return False
        state, step = self.state, self.recovery.step
        self._note_launches()
        ticket = array.leave_erase(given)
        if not ticket:
            self.state, self.recovery.step = state, step
            return False
        self.state = state._replace(left=(*state.left, Left(ticket, 0)))
        return True

    def _note_launches(self) -> None:
        """Note that the kernels of a batch are launched now, until the batch is among those that were left (`left`)."""
        self.recovery.step = self._recover_later
        array, size, tombstones, vouched, left, displaced, awaited = self.state  # a third of the time of `_replace`
        if left:
            self.state = ArrayState(array, size, tombstones, vouched, (), displaced, awaited)

    def _do(self, batch: Batch) -> None:
        """Do a batch, or take it back.

        Its elements may go in another order (`ordering`), if they are unique or nobody asks what became of each.
        """
        before, copies = self.state, None
        array, counts = before.array, self.options.counts_probes
        if self._reorders and batch.op == Op.KEEP and (batch.unique or not batch.flags):
            copies = in_parts(array, batch)
        if copies:
            batch = copies.batch
        if not batch.flags:
            batch, _own_flags = with_flags(self.engine, batch)
        undo = self.remedy.way_back(self, batch)
        at_once = batch.op in COMBINING and array.is_one_launch(batch.n)
        update = Transaction(self, batch, undo, counts_probes=counts, at_once=at_once)
        two_rounds = copies is not None and self.design.has_two_rounds(self.parameters)
        try:
            update.do(partial(self._settle, update) if two_rounds else None)
        except TableFull as error:
            if copies and error.keys is not None:
                error.keys = copies.originals(error.keys)
            raise
        added = self.state.size - before.size
        if copies:
            copies.flag(batch.flags, added)
        self._note_share(batch.n, added)
        self._keep_in_bounds(batch.stream)

    def launch(self, batch: Batch, listed: Listed | None) -> Outcome:
        outcome = self.state.array.update(batch, count_probes=self.options.counts_probes, listed=listed)
        if outcome.displaced:
            self.keep_displaced(batch.stream)
        return outcome

    def keep_displaced(self, stream: Any) -> None:
        """Take the pairs that the last update displaced, if any, out of the scratch memory of the array."""
        array = cast(DisplacingArray, self.state.array)
        pairs = array.displaced_pairs(stream)
        if len(pairs.keys):
            self.state = self.state._replace(displaced=pairs.with_others(self.state.displaced))
        array.forget_displaced()

    def _settle(self, update: Transaction[A]) -> Listed | None:
        """Do the first round of a batch that goes in two; what is left for the second."""
        batch, state = update.batch, self.state
        self.engine.fill(batch.flags, Flag.UNPLACED, batch.n, batch.stream)
        settled = cast(Any, state.array).settle(batch)
        if settled is None:
            return None
        added, left = settled
        update.launched = True
        self.state = state._replace(size=state.size + added, vouched=state.vouched or batch.unique)
        return cast(Listed, left)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        """As `Slots.erase`; returns when the erase is done, or left."""
        may_leave = self._leaves_erases and only is None and n > 0
        if may_leave and self._leave_erase(Batch(keys, 0, n, flags=flags, stream=stream)):
            return
        self.finish(stream)
        if n == 0 or (isinstance(only, np.ndarray) and not len(only)):
            return
        self.recovery.step = self.recover
        try:
            erased = self.state.array.erase(keys, n, flags, only, stream)
        except MemoryError:  # before the first kernel
            self.recovery.step = None
            raise
        state, tombstones = self.state, erased if self.remedy.leaves_tombstones else 0
        self.state = state._replace(size=state.size - erased, tombstones=state.tombstones + tombstones)
        self.recovery.step = None
        self._keep_in_bounds(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        if self.recovery.step not in (None, self._clear_later):  # kernels may be under way, on any stream
            self.engine.synchronize(None)
        array, self._left_build = self.state.array, None
        self.state = self.state._replace(left=(), awaited=0)  # of no use any more; behind an interrupt, all is counted
        self.recovery.step = self._clear_later
        array.forget(stream)
        self.state = ArrayState(array, 0)
        self._rest()

    def _clear(self, stream: Any) -> None:
        array = self.state.array
        array.clear(stream)
        self.state = ArrayState(array, 0)

    def _rest(self) -> None:
        """Note what is left to do for an array without an update on its way."""
        self.recovery.step = None if self.state.array.cleared else self._clear_later

    # ---- size
    def rebuild(self, keys: int, stream: Any = None) -> None:
        self.finish(stream)
        self.replace(self._slots_for(max(keys, self.state.size)), Cause.ASKED, stream)

    def _slots_ahead(self, batch: Batch) -> int | None:
        """Slots to move to before a batch: if the table is as full as it should be, or the new keys would fill it.

        A table of fixed size is rebuilt at its size if searches would have no end among its tombstones.
        """
        array, size, tombstones, *_ = self.state
        if self.options.grows:
            estimate = partial(self._new_keys, batch)
            slots = self._growth.slots_ahead(size, array.slots, tombstones, batch.n, self.new_share, estimate)
            return None if slots is None else max(slots, size)
        if self.design.searches_until_unused and 2 * tombstones > array.slots:
            with suppress(MemoryError, TableFull):  # the table is right as it is
                self.replace(array.slots, Cause.ERASED, batch.stream)
        return None

    def _new_keys(self, batch: Batch, room: int) -> int:
        """As `estimate_new_keys`, which waits. If some batches brought new keys alone, the next one is taken for such.

        If it is none, the table may be twice as large as it need be. Behind one such batch, a sample decides.
        """
        batches = self._new_batches if batch.n <= self.state.size else 0
        if batches >= _STREAM_BATCHES:
            return batch.n
        return estimate_new_keys(self, batch, room, behind_new=batches > 0)

    def _keep_in_bounds(self, stream: Any, erased: bool = False) -> None:
        """Bring the load factor back within the bounds. Only an erase makes the table smaller."""
        if self.options.bounds is None:
            return
        slots = self._growth.slots_after(self.size, self.slots, erased)
        if slots is not None:
            with suppress(MemoryError, TableFull):  # the batch is done, and the table right as it is
                self.replace(slots, Cause.BOUNDS, stream)

    def make_room(self, update: Transaction[A], missing: int) -> None:
        self.remedy.make_room(self, update, missing)

    def move_for(self, update: Transaction[A], missing: int, slots: int) -> None:
        """Move all pairs into another array, in which the missing elements of a batch have a better chance.

        The new array is larger if the batch may fail by its size, or has failed under enough sets of hash constants.
        Otherwise it has the same ``slots``, and other constants.

        Raises
        ------
        TableFull, MemoryError
            The array is the old one, with the pairs that it had.
        """
        (array, size, *_), tried, batch = self.state, update.tried, update.batch
        grows, attempts, load_factor, *_ = self.options
        too_many = missing and size + (missing if batch.unique else 1) > slots
        if grows and (update.undo is not None or too_many or max(update.attempts, tried) >= attempts):
            wanted = policies.slots_after_failure(size, missing, array.slots, load_factor)
            slots = self.slots_to_try(wanted, slots, missing, tried)
        elif not grows and (too_many or tried >= attempts):
            raise does_not_fit(size + missing, slots, self.design.name, tried)
        self.replace(slots, Cause.NO_SLOT, batch.stream, rehashes=update.attempts > 1)

    def replace(self, slots: int, cause: Cause, stream: Any, *, rehashes: bool = False) -> None:
        """Move all pairs into a new array, with other hash constants unless the family keeps them.

        Parameters
        ----------
        rehashes
            The constants change in any case.

        Raises
        ------
        MemoryError, TableFull
            The array is the old one, with the pairs that it had.
        """
        old, attempts = self.state.array, self.options.attempts
        resize = Resize(self.design.name, old.slots, cause)
        first = old.seed + (rehashes or slots == old.slots or not self.remedy.keeps_constants)
        for seed in count(first):
            state = self._moved(slots, seed, stream)
            if state is not None:
                self.state = state
                self.rebuilds += old.cleared  # otherwise no pair was ever there
                resize.done(state.size, state.array.slots)
                return
            tried = seed + 1 - first
            if tried % attempts == 0:
                if not self.options.grows:
                    raise not_placed_anew(self.size, slots, tried)
                slots = self.slots_to_try(2 * slots, slots, 0, tried)

    def _moved(self, slots: int, seed: int, stream: Any) -> ArrayState[A] | None:
        """The state with all pairs in a new array; None if some have no slot there."""
        state = self.state
        new = state.array.sibling(slots, seed, stream)
        if state.array.cleared and (state.size or self.pending):
            return self.remedy.move(self, new, stream)
        if state.array.cleared and not new.cleared:  # nothing to move
            new.clear(stream)
        return state._replace(array=new, tombstones=0)

    def slots_to_try(self, wanted: int, slots: int, missing: int, tried: int) -> int:
        """As `giving_up.slots_to_try`, with ``missing`` elements beside the keys."""
        keys, limits = self.size + missing, {"tried": tried, "attempts": self.options.attempts}
        return slots_to_try(wanted, slots, keys, self.design.name, vouched=self.state.vouched, **limits)

    # ---- recovery
    def finish(self, stream: Any = None) -> None:
        if self.state.left:
            self._end(stream)
        elif self._left_build is not None:
            self._end_build(self._left_build, stream)
        if self.recovery.step is not None:
            self.recovery.run(self.engine, stream)

    def _end(self, stream: Any) -> None:
        """Count the keys of the batches that were left. With displaced pairs, the recovery stays noted. Waits."""
        state, array = self.state, cast(LeavingArray, self.state.array)
        last = array.outcome(stream)
        outcomes = [cast(Outcome, array.answer(ticket)) for ticket, _ in state.left[:-1]]
        outcomes.append(last)
        signs = [1 if n else -1 for _, n in state.left]
        size = state.size + sum(outcome.changed * sign for outcome, sign in zip(outcomes, signs, strict=True))
        self.state = state._replace(size=size, left=(), awaited=0)
        for (_, n), outcome in zip(state.left, outcomes, strict=True):
            if n:
                self._note_share(n, outcome.changed)
        if all(outcome.complete for outcome in outcomes):
            self.recovery.step = None
            array.forget_left()

    def _note_share(self, n: int, added: int) -> None:
        """Note how many of the ``n`` elements of a batch brought new keys."""
        self.new_share = added / n
        self._new_batches = self._new_batches + 1 if added == n else 0

    def end_updates(self, stream: Any) -> None:
        """As `finish`, but for memory that is still to be cleared."""
        if self.recovery.step is not self._clear_later:
            self.finish(stream)

    def recover(self, stream: Any) -> None:
        """As `UpdatedSlots.recover`. An array that is not cleared had no keys before, and is cleared."""
        if self.state.array.cleared:
            self.remedy.recover(self, stream)
        else:
            self._clear(stream)

    def count_keys(self, stream: Any) -> None:
        """Take the number of keys from the slots. Allocates a report alone, as a scan does."""
        state, size = self.state, self.state.array.scan(0, 0, 0, stream)
        gone = max(0, state.size - size) if self.remedy.leaves_tombstones else 0
        self.state = state._replace(size=size, tombstones=state.tombstones + gone, left=(), awaited=0)
