"""A `Store` that takes every batch: it rebuilds or grows when one does not fit, and is as it was when that fails too.

What an update may leave undone, and what follows:

1. All is placed: done.
2. Pairs are homeless or elements unplaced. A new store, larger or with other hash constants, takes over the old one's
   pairs and the homeless ones; the elements without a slot are tried again on it. This repeats within the policy.
3. The policy, or the memory, allows no more: the snapshot is put back and `TableFull` raised. A snapshot is taken
   before every update that could come here (`policies.is_risky`); below that, a rebuild with new constants in the same
   memory, through the host if need be, always succeeds in the end.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import Buffer
from .. import policies
from ..partition import in_parts
from ..scratch import Elements, flags_at
from .store import Outcome, Store

__all__ = ["ElasticStore"]


_TRIES_IN_PLACE = 64
"""Sets of hash constants after which a rebuild in place has failed: keys repeat that should not."""

_HOPELESS = 256
"""Slots a key beyond which a rebuild that still fails has another cause than the lack of room."""


@dataclass
class _Undo:
    """How to get back to the table before an update."""

    store: Store
    size: int
    tombstones: int
    slots: Buffer | npt.NDArray[Any]


class ElasticStore:
    """A store, how many keys it holds, and how it may change.

    Parameters
    ----------
    store
        Empty.
    grows
        Whether it may take more memory.
    attempts
        Hash constants to try at one size before growing, or giving up.
    bounds
        Of the load factor: the least behind a batch that erases, the most behind any, if there is memory to change it.
        None for no bounds.

    Attributes
    ----------
    size, tombstones
        Keys held; erased slots since the last rebuild (an upper bound: an insert may have taken some again).
    rebuilds
        How often the pairs were moved into a new store.
    probes, inserted
        Buckets read by updates that counted them, and the keys these updates added.
    vouched
        Whether the table holds keys of a batch with ``unique``, which nobody has compared.
    """

    def __init__(
        self,
        store: Store,
        *,
        grows: bool,
        attempts: int,
        load_factor: float,
        bounds: tuple[float, float] | None,
        counts_probes: bool,
    ) -> None:
        self.store = store
        self.grows, self.attempts, self.load_factor, self.bounds = grows, attempts, load_factor, bounds
        self.counts_probes = counts_probes
        self.safe_load_factor = store.design.safe_load_factor(store.parameters)
        self.size = self.tombstones = self.rebuilds = self.probes = self.inserted = 0
        self.vouched = False

    @property
    def under_way(self) -> bool:
        """Whether `store`, or `size`, would first have to end a batch that nobody has waited for."""
        return False

    @property
    def lookups_end_first(self) -> bool:
        """Whether `find`, too, would have to end that batch. If so, its caller holds the table's lock alone."""
        return False

    engine = property(lambda self: self.store.engine)
    design = property(lambda self: self.store.design)
    parameters = property(lambda self: self.store.parameters)
    spec = property(lambda self: self.store.spec)
    seed = property(lambda self: self.store.seed)
    slots = property(lambda self: self.store.slots)
    nbytes = property(lambda self: self.store.nbytes)

    def memory_use(self) -> Any:
        return self.store.memory_use()

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        return self.store.scan(room, out_keys, out_values, stream)

    @property
    def pending(self) -> bool:
        return self.under_way

    @property
    def lookups_wait(self) -> bool:
        return self.lookups_end_first

    def finish(self, stream: Any = None) -> None:
        self.size  # noqa: B018

    def sibling(self, keys: int, stream: Any = None) -> ElasticStore:
        """An empty one of the same kind and policy, for ``keys`` keys."""
        store = self.store.sibling(self.slots_for(keys), self.store.seed + 1, keys, stream)
        return type(self)(
            store,
            grows=self.grows,
            attempts=self.attempts,
            load_factor=self.load_factor,
            bounds=self.bounds,
            counts_probes=self.counts_probes,
        )

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
        stream: Any = None,
    ) -> None:
        """As `Store.update`, to the end.

        Elements may go in another order (`partition`), if they are unique or nobody asks what became of each.

        Raises
        ------
        TableFull
            If not all keys fit; its ``keys`` are then the numbers of the elements without a slot.
        """
        if n == 0:
            return
        self._prepare(stream)
        vouched, self.vouched = self.vouched, self.vouched or unique
        asked, size = flags, self.size
        anyhow = op == Op.KEEP and (unique or not flags)
        if anyhow and self._build(keys, values, n, flags, unique, stream):
            return self._tidy(stream)
        copies = in_parts(self.store, keys, values, n, stream) if anyhow else None
        if copies:
            keys, values, flags = copies.keys, copies.values, 0
        undo = self._undo(n, op, stream)
        flags, _own_flags = flags_at(self.store.engine, flags, n, stream)
        only: npt.NDArray[np.int64] | None = None
        done = np.zeros(0, np.uint8)  # flags of the last attempt
        try:
            for attempt in count(1):
                outcome: Outcome | None = None  # of an attempt that is refused memory
                outcome = self._once(
                    keys, values, n, op=op, kind=kind, flags=flags, unique=unique, only=only, stream=stream
                )
                self.size += outcome.changed
                if self.counts_probes:
                    self.probes, self.inserted = self.probes + outcome.probes, self.inserted + outcome.changed
                if outcome.complete:
                    break
                done = self.store.engine.to_host(flags, np.uint8, n, stream)
                only = np.flatnonzero(done == Flag.UNPLACED)
                self._make_room(outcome, len(only), attempt, undo is not None, stream)
        except (TableFull, MemoryError) as error:
            self.vouched = vouched
            if not len(done):  # nothing was launched
                raise
            added = np.flatnonzero(done == Flag.CHANGED)
            if undo is None:
                self._take_back(keys, values, n, added, stream)
            else:
                self._put_back(undo, stream)
            # As many new keys as pairs were left homeless did not fit, even if it was others that they threw out.
            homeless = min(outcome.homeless if outcome else 0, len(added))
            left = np.union1d(np.flatnonzero(done == Flag.UNPLACED), added[len(added) - homeless :])
            if copies:
                left = copies.originals(left, stream)
            raise TableFull(f"{error}; the table is as it was", left) from error
        if copies and asked:
            copies.flag(asked, flags, self.size - size, stream)
        self._tidy(stream)

    def _build(self, keys: int, values: int, n: int, flags: int, unique: bool, stream: Any) -> bool:
        """A batch for a table without keys, if all of it can be done in one build; otherwise nothing is done.

        One that may not fit is not tried: the work would be done twice.
        """
        if self.size or self.counts_probes or n > self.safe_load_factor * self.store.slots:
            return False
        try:
            outcome = self.store.build(keys, values, n, unique, stream)
        except MemoryError:
            self.store.clear(stream)
            return False
        if outcome is None:
            return False
        if not outcome.complete or (flags and outcome.changed < n):  # keys repeat that should not: which was added?
            self.store.clear(stream)
            return False
        if flags:
            self.store.engine.fill(flags, Flag.CHANGED, n, stream)
        self.size, self.tombstones = outcome.changed, 0
        return True

    def _prepare(self, stream: Any) -> None:
        """Make a table larger that is as full as it should be."""
        if not self.grows:
            return
        slots = policies.slots_before_insert(self.size, self.tombstones, self.store.slots, self.safe_load_factor)
        if slots is not None:
            with suppress(MemoryError):  # the batch may fit all the same
                self._replace(max(slots, self.size), 0, stream)

    def _once(self, keys: int, values: int, n: int, **options: Any) -> Outcome:
        """One attempt at a batch."""
        fresh = not self.size and not self.tombstones
        return self.store.update(keys, values, n, count_probes=self.counts_probes, fresh=fresh, **options)

    def _tidy(self, stream: Any, erased: bool = False) -> None:
        """What is due after a batch: a size within the bounds; only one that erased makes a table smaller."""
        if self.bounds is None:
            return
        least, most = self.bounds
        slots = policies.slots_in_bounds(self.size, self.store.slots, (least if erased else 0, most))
        if slots is not None:
            with suppress(MemoryError, TableFull):  # the batch is done, and the table right as it is
                self._replace(slots, 0, stream)

    def _take_back(self, keys: int, values: int, n: int, added: npt.NDArray[np.int64], stream: Any) -> None:
        """Undo a batch that took no snapshot: of these, only one fails whose keys repeat against the caller's word."""

    def find(self, keys: int, n: int, values: int, flags: int, default: int, stream: Any = None, **more: Any) -> None:
        """As `Store.find`."""
        self.store.find(keys, n, values, flags, default, stream, **more)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        """As `Store.erase`."""
        self._note_erased(self.store.erase(keys, n, flags, only, stream), stream)

    def _note_erased(self, erased: int, stream: Any) -> None:
        self.size -= erased
        self.tombstones += erased
        self._tidy(stream, erased=True)

    def clear(self, stream: Any = None) -> None:
        """Forget all keys; keep the memory."""
        self.store.clear(stream)
        self.size = self.tombstones = 0
        self.vouched = False

    def slots_for(self, keys: int) -> int:
        """Slots of a store for ``keys`` keys."""
        return policies.slots_for(max(1, keys), self.load_factor)

    @property
    def capacity(self) -> int:
        """Keys that the present memory is meant for."""
        return policies.capacity_of(self.store.slots, self.load_factor)

    def rebuild(self, keys: int, stream: Any = None) -> None:
        """Move all pairs into a new store for ``keys`` keys, or for those that there are.

        Raises
        ------
        MemoryError
            If there is no room for it; the table is as it was.
        """
        keys = max(keys, self.size)
        self._replace(self.slots_for(keys), 0, stream, keys)

    # ---- making room
    def _make_room(self, outcome: Outcome, missing: int, attempt: int, risky: bool, stream: Any) -> None:
        """Put all pairs, the homeless ones too, into a store where the missing elements have a better chance."""
        slots = self.store.slots
        if self.grows and (risky or attempt >= self.attempts):
            slots = self._checked(policies.slots_after_failure(self.size, missing, slots, self.load_factor), missing)
        elif attempt >= self.attempts or (missing and self.size >= slots):
            raise TableFull(
                f"{self.size + missing:,} keys do not fit into {slots:,} slots of design {self.store.design.name!r} "
                f"(tried {attempt} sets of hash constants); allow on_full='grow', or give a larger capacity"
            )
        try:
            self._replace(slots, outcome.homeless, stream)
        except MemoryError:
            if risky:
                raise
            self._rebuild_in_place(outcome.homeless, stream)

    def _replace(self, slots: int, homeless: int, stream: Any, keys: int = 0) -> None:
        old = self.store
        for attempt in count(1):
            if self._move_to(old.sibling(slots, old.seed + attempt, keys, stream), homeless, stream):
                break
            if attempt % self.attempts == 0:
                if not self.grows:
                    raise TableFull(f"{self.size:,} keys could not be placed anew in {slots:,} slots")
                slots = self._checked(2 * slots, 0)
        self.tombstones = 0
        self.rebuilds += 1

    def _move_to(self, new: Store, homeless: int, stream: Any) -> bool:
        """Move all pairs to a new store; whether all have a slot there. If not, the store stays."""
        complete = new.take_over(self.store, homeless, stream).complete
        if complete:
            self.store = new
        return complete

    def _checked(self, slots: int, missing: int) -> int:
        """``slots``, unless more of them cannot help.

        Raises
        ------
        TableFull
            If these are more than `_HOPELESS` for each key.
        """
        keys = self.size + missing
        if slots <= _HOPELESS * max(keys, 1024):
            return slots
        raise TableFull(
            f"{keys:,} keys found no place in fewer than {slots:,} slots of design {self.store.design.name!r}, "
            f"{self._why_hopeless}"
        )

    @property
    def _why_hopeless(self) -> str:
        """Why keys find no place that had room enough, and the mend."""
        if self.vouched:
            return (
                "though all were tried: do keys of a batch with assume_unique=True repeat? Insert such keys without it"
            )
        return (
            "under any of the hash constants that were tried: too many of them share their buckets; give another seed, "
            "or design='slab', whose buckets have no end"
        )

    def _rebuild_in_place(self, homeless: int, stream: Any) -> None:
        """As `_replace` at the same size, in the same memory, by way of the host.

        Raises
        ------
        TableFull
            If no set of hash constants has a slot for each pair. The slots are as they were.
        """
        store, before = self.store, self.store.table
        engine, slot_bytes = store.engine, store.spec.slot_bytes
        kept = engine.to_host(store.memory.ptr, np.uint8, store.nbytes, stream)
        stray = np.empty(0, np.uint8)
        if store._homeless:
            stray = engine.to_host(store._homeless.batch.homeless, np.uint8, homeless * slot_bytes, stream)
        piece = 1 << 16
        for _ in range(_TRIES_IN_PLACE):
            store.rehash(stream)
            done = True
            for array, hashed in ((kept, store.buckets), (stray, 1 << 32)):
                for at in range(0, len(array) // slot_bytes, piece):
                    held = engine.from_host(array[at * slot_bytes : (at + piece) * slot_bytes], stream)
                    rest = max(0, hashed - at // store.spec.slots_per_bucket)
                    done &= store.migrate(held.ptr, held.nbytes // slot_bytes, rest, stream).complete
            if done:
                self.rebuilds += 1
                return
        store.put_back(before, kept, stream)
        raise TableFull(f"{self.size:,} keys could not be placed anew in {store.slots:,} slots, {self._why_hopeless}")

    # ---- undoing
    def _undo(self, n: int, op: Op, stream: Any) -> _Undo | None:
        if policies.is_risky(self.size, n, self.store.slots, self.safe_load_factor):
            return self._snapshot(stream)
        return None

    def _snapshot(self, stream: Any) -> _Undo:
        store = self.store
        if self.size == 0:
            return _Undo(store, 0, 0, np.empty(0))
        try:
            slots: Buffer | npt.NDArray[Any] = store.snapshot(stream)
        except MemoryError:
            slots = np.concatenate([store.engine.to_host(at, np.uint8, size, stream) for at, size in store.regions])
        return _Undo(store, self.size, self.tombstones, slots)

    def _put_back(self, undo: _Undo, stream: Any) -> None:
        self.store = undo.store
        if undo.size == 0:
            self.store.clear(stream)
        elif isinstance(undo.slots, np.ndarray):
            held = self.store.engine.from_host(undo.slots, stream)
            self.store.restore(held, stream)
        else:
            self.store.restore(undo.slots, stream)
        self.size, self.tombstones = undo.size, undo.tombstones
