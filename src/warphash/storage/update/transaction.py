"""One update of a table whose pairs lie in one array, from its first kernel to its commit.

The rule stands at the head of `storage.slots`; here it is programmed for every family with one array. What an update
may leave undone, and what follows:

1. Each element has a slot: the update is committed.
2. Some elements have no slot. The store makes room in its own way (`UpdatedSlots.make_room`), mostly by a new array
   that takes over all pairs. Then these elements are launched again.
3. The policy, or the memory, allows no more room: the table becomes what it was, and `TableFull` is raised. Where the
   batch could fail by its size, a copy of the slots was made before it (`Undo`), and is put back. The same is done if
   the batch changes values and the table has so few slots that a part of it can be full by chance
   (`is_risky`). Any other batch fails only with a freak of the hash constants. Then its keys are erased, and
   the values that it has changed stay changed. If no kernel was launched, nothing is to be undone, and the refusal
   itself is raised.
4. An interrupt comes. With a copy of the slots, the recovery puts the copy back, and all keys of the batch are out.
   Without a copy, the store counts its keys anew (`UpdatedSlots.recover`): each element was done, or not. A batch that
   adds to values must not stop there, because either all values of a key are added, or none. Such a batch is finished
   before the interrupt comes out. Its flags tell which elements are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import Buffer, Engine
from ...runtime.memory import bytes_at
from ..batch import COMBINING, Batch
from ..elements import Elements
from ..listed import Listed, list_unplaced
from ..scratch import Outcome
from ..shielded import shielded
from ..slots import Recovery
from .left import Left
from .pairs import Pairs

__all__ = [
    "LISTED_BYTES",
    "ArrayState",
    "Transaction",
    "Undo",
    "UpdatedSlots",
    "is_risky",
    "may_fail",
    "put_back",
    "way_back",
]

LISTED_BYTES = 1 << 12
"""Of host memory for a list of elements: to undo a batch where the device has no memory left."""


class Array(Protocol):
    """The array of a family, as a transaction sees it."""

    @property
    def seed(self) -> int: ...
    @property
    def slots(self) -> int: ...
    def clear(self, stream: Any = None) -> None: ...
    def restore(self, saved: Any, stream: Any = None) -> None: ...
    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> int:
        """Erase the keys of at least one element; how many were there. Waits."""


class CopiedArray(Array, Protocol):
    """An array whose copy for a way back does not depend on the batch."""

    def snapshot(self, stream: Any = None) -> Any: ...


A = TypeVar("A", bound=Array)
C = TypeVar("C", bound=CopiedArray)


class ArrayState(NamedTuple, Generic[A]):
    """What a commit replaces.

    Attributes
    ----------
    array
        The memory that holds the pairs, and the kernels' launches.
    size
        Keys in it.
    tombstones
        Erased slots since the array was made (an upper bound: an insert may have taken some again).
    vouched
        Whether the table holds keys of a batch with unique keys, which nobody has compared.
    left
        The batches that were left, the first one first. The keys that they added or erased are not counted yet.
    displaced
        Pairs of the table that have no slot, until the update or its recovery has placed them; None for none.
    awaited
        The most keys that the batches which were left can add: the sum of `Left.n`.
    """

    array: A
    size: int
    tombstones: int = 0
    vouched: bool = False
    left: tuple[Left, ...] = ()
    displaced: Pairs | None = None
    awaited: int = 0


class Undo(NamedTuple, Generic[A]):
    """How to get back to the table before an update. ``saved`` is a copy of the slots, None if there were no keys."""

    state: ArrayState[A]
    saved: Any


class UpdatedSlots(Protocol[A]):
    """What a transaction needs of its store.

    Attributes
    ----------
    listed
        `LISTED_BYTES` of pinned memory, for the array's ``erase_listed``.
    safe_load_factor
        At which the design still places all keys.
    probes, inserted
        As of `Slots`.
    """

    engine: Engine
    state: ArrayState[A]
    recovery: Recovery
    listed: Buffer
    safe_load_factor: float
    probes: int
    inserted: int

    def finish(self, stream: Any = None) -> None: ...
    def launch(self, batch: Batch, listed: Listed | None) -> Outcome:
        """Launch the kernels of a batch for the elements in a list, or for all. Waits.

        Pairs that are left without a slot become `ArrayState.displaced`.

        Raises
        ------
        MemoryError
            Before the first kernel.
        """

    def make_room(self, update: Transaction[A], missing: int) -> None:
        """Give the missing elements of a batch a better chance, and displaced pairs slots.

        Raises
        ------
        TableFull, MemoryError
            If nothing is allowed that would help.
        """

    def recover(self, stream: Any) -> None:
        """Make the table whole after an update without a way back."""


class Transaction(Generic[A]):
    """An update on its way. Its caller holds the table's lock, and has prepared what the batch can need.

    Parameters
    ----------
    batch
        With room for its flags.
    undo
        The way back, if the batch may fail by its size.
    counts_probes
        The store counts what updates read.
    at_once
        The batch is one launch, which nothing stops half way.

    Attributes
    ----------
    launched
        Whether a kernel may have changed the table.
    attempts, tried
        Launches of the batch; sets of hash constants under which it has failed, that of now included.
    n_displaced
        Pairs that the last launch left without a slot.
    """

    __slots__ = (
        "_counts_probes",
        "_ends_sums",
        "_store",
        "attempts",
        "batch",
        "launched",
        "n_displaced",
        "tried",
        "undo",
    )

    def __init__(
        self,
        store: UpdatedSlots[A],
        batch: Batch,
        undo: Undo[A] | None,
        *,
        counts_probes: bool = False,
        at_once: bool = False,
    ) -> None:
        self.batch, self.undo = batch, undo
        self.launched, self.attempts, self.tried, self.n_displaced = False, 0, 1, 0
        self._store, self._counts_probes = store, counts_probes
        self._ends_sums = batch.op in COMBINING and undo is None and not at_once

    def do(self, begin: Callable[[], Listed | None] | None = None) -> None:
        """Do the batch, or take it back.

        Parameters
        ----------
        begin
            Does a first round of the batch, and lists the elements that are left. None stands for all elements.

        Raises
        ------
        TableFull
            The table is as it was; ``keys`` are the numbers of the elements without a slot.
        MemoryError
            No kernel was launched.
        """
        store, batch = self._store, self.batch
        before, resting = store.state, store.recovery.step
        if self._ends_sums:  # an interrupt needs the flags of all elements
            store.engine.fill(batch.flags, Flag.UNPLACED, batch.n, batch.stream)
        store.recovery.step = partial(put_back, store, self.undo) if self.undo else store.recover
        try:
            self.complete(begin() if begin else None)
        except (TableFull, MemoryError) as error:
            if not self.launched:
                store.recovery.step = resting
                raise
            raise TableFull(f"{error}; the table is as it was", self._take_back(before)) from error
        except BaseException:
            if self._ends_sums:  # at the next call, the memory of the batch may be gone
                shielded(self._end_sums)
            raise
        store.recovery.step = None

    def complete(self, listed: Listed | None = None) -> None:
        """Launch the batch, or some elements of it, until each has a slot. The caller has noted the recovery.

        Raises
        ------
        TableFull, MemoryError
            If some elements have no slot. Others may have.
        """
        store, batch = self._store, self.batch
        while True:
            changed, self.n_displaced, unplaced, probes = store.launch(batch, listed)
            self.launched, self.attempts = True, self.attempts + 1
            array, size, tombstones, vouched, _, displaced, _ = store.state
            store.state = ArrayState(array, size + changed, tombstones, vouched or batch.unique, (), displaced)
            if self._counts_probes:
                store.probes, store.inserted = store.probes + probes, store.inserted + changed
            if not (unplaced or self.n_displaced):
                return
            listed = list_unplaced(store.engine, batch.flags, batch.n, batch.stream)
            seed = array.seed
            store.make_room(self, listed.n)
            self.tried += store.state.array.seed - seed

    def _end_sums(self) -> None:
        """Finish an interrupted batch that adds to values, unless the kernels came to no element: then it is out."""
        store, batch = self._store, self.batch
        store.finish(batch.stream)
        listed = list_unplaced(store.engine, batch.flags, batch.n, batch.stream)
        if listed.n < batch.n:
            store.recovery.step = store.recover
            self.complete(listed)
            store.recovery.step = None

    def _take_back(self, before: ArrayState[A]) -> npt.NDArray[np.int64]:
        """Take the batch back: the numbers of its elements that found no slot."""
        store, batch = self._store, self.batch
        done = store.engine.to_host(batch.flags, np.uint8, batch.n, batch.stream)
        added = np.flatnonzero(done == Flag.CHANGED)
        if self.undo is not None:
            put_back(store, self.undo, batch.stream)
            store.recovery.step = None
        else:
            self._erase(added)
            with suppress(TableFull, MemoryError):  # the next call tries again
                store.finish(batch.stream)
            store.state = store.state._replace(vouched=before.vouched)
        # As many new keys as pairs were left without a slot did not fit, even if these pairs are others.
        others = len(added) - min(self.n_displaced, len(added))
        return np.union1d(np.flatnonzero(done == Flag.UNPLACED), added[others:])

    def _erase(self, added: npt.NDArray[np.int64]) -> None:
        """Erase the keys of some elements, wherever they are. Allocates no device memory."""
        store, batch = self._store, self.batch
        displaced = store.state.displaced
        if displaced is not None:
            ours = store.engine.to_host(batch.keys, displaced.keys.dtype, batch.n, batch.stream)[added]
            store.state = store.state._replace(displaced=displaced.where(~np.isin(displaced.keys, ours)))
        held, array = store.listed, cast(Any, store.state.array)
        words = bytes_at(held.ptr, LISTED_BYTES).view(np.uint32)
        for at in range(0, len(added), len(words)):
            some = added[at : at + len(words)]
            words[: len(some)] = some
            left = len(some)  # a second launch finds something only if a batch of unique keys had a key twice
            while left > 0 and (erased := array.erase_listed(batch.keys, held.ptr, len(some), batch.stream)):
                left -= erased


def is_risky(size: int, incoming: int, slots: int, safe_load_factor: float, overwrites: bool) -> bool:
    """Whether a batch needs a way back: it could fail to fit other than by a freak of the hash constants.

    ``incoming`` counts duplicates and keys that are there already, so this errs on the side of caution.

    Parameters
    ----------
    overwrites
        The batch may change values that are there. Then to erase its keys does not undo it. In few slots, freaks are
        not rare, and a copy of the slots takes little (14 µs on a CPU): eight times the standard deviation of the keys
        that hash to a part of the table are to have room. So batches that fill no more than half of a table can be
        risky only where fewer than 256 keys fit.
    """
    full = safe_load_factor * slots
    margin = 8 * math.sqrt(full) if overwrites and size else 0
    return size + incoming > min(0.9 * full, full - margin)


def may_fail(store: UpdatedSlots[A], batch: Batch) -> bool:
    """Whether a batch may fail by its size, so that it needs a way back."""
    state = store.state
    return is_risky(state.size, batch.n, state.array.slots, store.safe_load_factor, batch.op != Op.KEEP)


def way_back(store: UpdatedSlots[C], batch: Batch) -> Undo[C] | None:
    """The way back to a table as it is, if a batch may fail by its size; None for any other batch."""
    if not may_fail(store, batch):
        return None
    state = store.state
    return Undo(state, state.array.snapshot(batch.stream) if state.size else None)


def put_back(store: UpdatedSlots[A], undo: Undo[A], stream: Any) -> None:
    """Make the table what it was. Allocates nothing on the device."""
    array = undo.state.array
    if undo.saved is None:
        array.clear(stream)
    else:
        array.restore(undo.saved, stream)
    store.state = undo.state
