"""An `ElasticStore` of subtables: it grows and shrinks one of them at a time, within bounds of the load factor.

An insert settles what fits without moving anybody, which also tells how many new keys are left; the smallest subtable
is made larger until these fit within the bounds, and then they are placed. So a batch knows its size before it evicts.
Most batches are left to the device (`UnawaitedStore`).

What may go wrong, and what follows:

1. Chains of evictions end without a slot: pairs are strays, and elements that came later are unplaced. The smallest
   subtable is enlarged, the strays are placed first, then the elements. When each subtable was enlarged and
   there still are strays, the keys may share their buckets at every size: all pairs move into subtables with other hash
   constants.
2. There is no memory, or the table may not grow: the keys that the batch added are erased again. There is room for the
   strays then, as there was before the batch: they are placed, by longer chains if need be. Values are combined only
   when all keys have a place, so the table is as it was.
3. The keys of an erased table do not fit into the half of a subtable, though the load factor says that they should.
   The subtable is enlarged again, and halved when fewer keys are left (`policies.may_halve`).
4. Strays are left, and there is no memory for a larger subtable. `MemoryError` is raised, and the strays are kept on
   the host. Every call tries again to place them before it does anything else.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import Buffer
from .. import policies
from ..buckets.store import Outcome
from ..partition import in_parts
from ..scratch import Elements, Scratch, flags_at
from .insert import Insert, Piece, Strays
from .pending import Begun, UnawaitedStore
from .store import SETTLED, SETTLED_UNIQUE, SubtableStore

__all__ = ["ElasticSubtables"]

_MANY_TIMES = 4
"""As many elements as slots, beyond which a table is built anew: its own pairs are few beside those that come."""

_LONG_CHAIN = 1 << 12
"""Evictions of the longest chains that are tried in a small table."""

_EVICTIONS_PER_SLOT = 4
"""Evictions of the longest chains that are tried, for each slot. Where a key has two slots to be in, a chain visits no
slot more than twice before it ends, if it ends (Pagh and Rodler, Cuckoo Hashing, 2004)."""


class _Terms(NamedTuple):
    """How the pieces of one update are inserted.

    Attributes
    ----------
    leaves
        Its keys may be under way still when the update returns, if there is surely room for them.
    """

    scratch: Scratch
    unique: bool
    leaves: bool
    stream: Any


class ElasticSubtables(UnawaitedStore):
    """Subtables, and how they may change. ``bounds`` are those of the load factor, None for a table of one size.

    Attributes
    ----------
    resizes
        How often a subtable was made larger or smaller.
    """

    def __init__(self, store: SubtableStore, **policy: Any) -> None:
        super().__init__(store, **policy)
        self.resizes = 0
        self._grew = True  # when there last might not have been room
        self._failed = (0, 0)  # slots and keys of the last table in which some keys found no slot
        self._strays = Strays.none(store.spec.word_bytes, store.spec.value_bytes)

    # ---- the ends of batches that nobody waited for
    def _end_insert(self, insert: Insert) -> bool:
        """Count its keys, and house those that it left without a home."""
        outcome = insert.outcome()
        self._note(outcome)
        if outcome.homeless:
            self._gather_strays(insert.strays(outcome.homeless))
            with suppress(MemoryError):
                self._enlarge_for_strays(0, None)
            self._house_all(None)
        return outcome.homeless > 0

    def _end_housing(self) -> bool:
        self._house_all(None)
        return True

    def _unfinished(self) -> Begun | None:
        """Strays that no call could place."""
        return Begun(self._end_housing, None, ends_first=True) if len(self._strays.keys) else None

    def _end_erase(self) -> bool:
        self._note_erased(self._store.erased(), None)
        return False

    # ---- batches
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
        """As `ElasticStore.update`."""
        if n == 0:
            return
        self._end_before_updates()
        vouched, self.vouched = self.vouched, self.vouched or unique
        store = self._store  # all that comes before the first wait has the time that an earlier batch takes
        spec, engine, asked = store.spec, store.engine, flags
        most = min(n, SETTLED_UNIQUE if unique else SETTLED)
        scratch = store.scratch(most, unique)
        store.incoming = n
        copies = in_parts(store, keys, values, n, stream) if op == Op.KEEP and (unique or not flags) else None
        if copies:
            keys, values, flags = copies.keys, copies.values, 0
        flags, _own_flags = flags_at(engine, flags, n, stream)
        parts = [
            Piece(keys + at * spec.word_bytes, values and values + at * spec.value_bytes, flags + at, min(most, n - at))
            for at in range(0, n, most)
        ]
        leaves = len(parts) == 1 and op == Op.KEEP and not copies and self.bounds is not None and engine.asynchronous
        terms = _Terms(scratch, unique, leaves, stream)
        insert = self._settled_ahead(parts[0], terms)
        size, launched = self.size, 0
        try:
            for part in parts:
                insert = insert or self._settled(part, terms)
                launched += part.n
                if self._insert(part, insert, terms):
                    return
                insert = None
            if op != Op.KEEP and self.size - size < n:
                for part in parts:
                    self.store.combine(part, op, kind, stream)
            if copies and asked:
                copies.flag(asked, flags, self.size - size, stream)
        except (TableFull, MemoryError) as error:
            done = engine.to_host(flags, np.uint8, launched, stream)
            added, homeless = np.flatnonzero(done == Flag.CHANGED), len(self._strays.keys)
            try:
                self._take_back(keys, values, n, added, stream)
            finally:
                self.size, self.vouched = size, vouched
            # As many new keys as there are strays did not fit, even if the strays are others that they threw out.
            unplaced = np.flatnonzero(done == Flag.UNPLACED)
            unplaced = np.union1d(unplaced, added[len(added) - min(homeless, len(added)) :])
            if copies:
                unplaced = copies.originals(unplaced, stream)
            raise TableFull(f"{error}; the table is as it was", unplaced) from error
        self._tidy(stream)

    def _begin(self, piece: Piece, terms: _Terms) -> Insert:
        return self._store.begin(piece, terms.scratch, self.counts_probes, terms.stream)

    def _settled_ahead(self, piece: Piece, terms: _Terms) -> Insert | None:
        """An insert that settles behind the batch that is under way: the device does so while the host waits for that.

        None if nothing is under way, the table has to grow first, or that batch has left pairs without a home: then the
        kernel has done nothing, and is to be launched again.
        """
        if self._begun is None or piece.n > _MANY_TIMES * self._store.slots:
            return None
        insert = self._begin(piece, terms)
        try:
            insert.settle(terms.unique)
        except MemoryError:  # for the list of those that it leaves
            return None
        return None if self._end() else insert

    def _settled(self, piece: Piece, terms: _Terms) -> Insert:
        """An insert that has settled, into a new store if the elements are many beside the slots.

        The store is replaced before the batch begins: an insert ends in the store where it began.

        Raises
        ------
        TableFull, MemoryError
            Nothing of the piece was launched.
        """
        if self.bounds and piece.n > _MANY_TIMES * self.store.slots:
            new = piece.n if terms.unique else self._distinct(self._begin(piece, terms))
            self._replace_for(new, self.bounds[1], terms.stream)
        insert = self._begin(piece, terms)
        insert.settle(terms.unique)
        return insert

    def _insert(self, piece: Piece, insert: Insert, terms: _Terms) -> bool:
        """Add the keys of a piece that ``insert`` has settled; whether they are under way still."""
        stream = terms.stream
        most, coming = self._most_load * self.store.slots, piece.n
        if self.size + coming > most:
            insert.ask(last=False)
            memory = self._memory_ahead(stream)
            self._note(insert.outcome())
            coming, resizes = insert.left, self.resizes
            self._make_room_for(coming, stream, memory)
            self._grew = self.resizes > resizes
            if not coming:
                return False
            most = self._most_load * self.store.slots
            insert.settle_rest()
        most = min(most, self._surely_placed * self.store.slots)
        if terms.leaves and insert.may_adopt and self.size + coming <= most:
            insert.place_or_adopt()
            self._begun = Begun(partial(self._end_insert, insert), insert.homeless, ends_first=False)
            return True
        self._place(piece, insert, terms)
        return False

    def _place(self, piece: Piece, insert: Insert, terms: _Terms) -> None:
        """Add the keys that ``insert`` has not settled."""
        insert.place()
        for attempt in count(1):
            outcome = insert.outcome()
            self._note(outcome)
            if outcome.complete:
                return
            self._gather_strays(insert.strays(outcome.homeless))
            self._enlarge_after(attempt, outcome.unplaced, terms.stream)
            tries = attempt
            while not self._house(self.store.table.chain_limit, terms.stream):
                tries += 1
                self._enlarge_after(tries, outcome.unplaced, terms.stream)
            flags = self.store.engine.to_host(piece.flags, np.uint8, piece.n, terms.stream)
            only = np.flatnonzero(flags == Flag.UNPLACED)
            if not len(only):
                return
            insert = self._begin(piece, terms)
            insert.place(only)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        """As `ElasticStore.erase`."""
        if n == 0:
            return
        self._end_before_updates()
        self._store.begin_erase(keys, n, flags, only, stream)
        if self._end():
            self._store.begin_erase(keys, n, flags, only, stream)
        store = self.store
        store.ask(None, True, stream)
        if not store.engine.asynchronous or only is not None:
            self._end_erase()
            return
        least = self.bounds[0] if self.bounds else 0.0
        self._begun = Begun(self._end_erase, {}, ends_first=self.size - n < least * store.slots)

    @staticmethod
    def _distinct(insert: Insert) -> int:
        """Keys of a batch."""
        insert.claim()
        insert.outcome()
        return insert.left

    def _note(self, outcome: Outcome) -> None:
        self.size += outcome.changed
        if self.counts_probes:
            self.probes, self.inserted = self.probes + outcome.probes, self.inserted + outcome.changed

    # ---- sizes
    @property
    def _surely_placed(self) -> float:
        return policies.load_surely_placed(self._store.spec.slots_per_bucket, len(self._store.hashed))

    @property
    def _most_load(self) -> float:
        return self.bounds[1] if self.bounds else 1.0

    def _memory_ahead(self, stream: Any) -> Buffer | None:
        """What the next enlargement will take, if one is due: asked for while the host has nothing else to do.

        Not if it was in vain the last time: a table near its bound, whose batches bring few new keys, would map memory
        for each of them.
        """
        store = self._store
        if self._grew and self.bounds is not None and store.engine.asynchronous:
            with suppress(MemoryError):
                return store.memory_to_enlarge(policies.subtable_to_enlarge(store.sizes), stream)
        return None

    def _make_room_for(self, new: int, stream: Any, memory: Buffer | None = None) -> None:
        """Enlarge the smallest subtable until so many keys more are within the bounds, if there is memory for it.

        ``memory``: of `_memory_ahead`.
        """
        wanted = self.size + new
        if self.bounds is None:
            if wanted > self.store.slots:
                raise TableFull(
                    f"{wanted:,} keys do not fit into {self.store.slots:,} slots of design {self.store.design.name!r}; "
                    "allow on_full='grow', or give a larger capacity"
                )
            return
        with suppress(MemoryError):
            while wanted > self.bounds[1] * self.store.slots:
                self._enlarge(stream, memory)
                memory = None

    def _replace_for(self, new: int, most: float, stream: Any) -> None:
        """Move all pairs into a store with room for ``new`` keys more, if these are many and there is memory for it."""
        if new > _MANY_TIMES * self.store.slots:
            with suppress(MemoryError):
                slots = int((self.size + new) / (most * (1 - 0.5 / (len(self.store.hashed) + 1))))
                self._replace(slots, 0, stream)

    def _enlarge(self, stream: Any, memory: Buffer | None = None) -> None:
        self.store.enlarge(policies.subtable_to_enlarge(self.store.sizes), stream, memory)
        self.resizes += 1

    def _enlarge_for_strays(self, unplaced: int, stream: Any, memory: Buffer | None = None) -> None:
        """More slots for strays, and for elements, that evictions found none for; see `_house_all` for ``memory``."""
        store = self.store
        self._failed = (store.slots, self.size + unplaced)
        self._checked(2 * store.slots, unplaced)
        if memory is not None:
            memory = store.memory_to_undo(memory, policies.subtable_to_enlarge(store.sizes), stream)
        self._enlarge(stream, memory)

    def _enlarge_after(self, attempt: int, unplaced: int, stream: Any) -> None:
        """More room after evictions that led nowhere; other hash constants where that did not help."""
        if not self.grows and attempt >= self.attempts:
            raise TableFull(
                f"{unplaced + len(self._strays.keys):,} keys found no place beside {self.size:,} others in "
                f"{self.store.slots:,} slots; allow on_full='grow', or give a larger capacity"
            )
        if attempt % (len(self.store.hashed) + 1) == 0 and self._fits_anew(unplaced):
            with suppress(MemoryError, TableFull):
                self._redraw(stream)
        elif self.grows:
            self._enlarge_for_strays(unplaced, stream)

    def _fits_anew(self, unplaced: int) -> bool:
        """Whether all pairs find slots under other hash constants, too: a table of one size has no others for them."""
        return self.grows or 2 * (self.size + unplaced) <= self._surely_placed * self.store.slots

    def _redraw(self, stream: Any) -> None:
        """Move all pairs but the strays into subtables with other hash constants.

        Keys that share their buckets under the present constants do so in larger subtables, too.

        Raises
        ------
        MemoryError
            If there is no room for both. The table is as it was.
        """
        self._replace(self.store.slots, 0, stream)

    def _tidy(self, stream: Any, erased: bool = False) -> None:
        """Enlarge or halve subtables until the load factor is within the bounds, if there is memory for it."""
        if self.bounds is None:
            return
        least, most = self.bounds
        with suppress(MemoryError, TableFull):  # the batch is done, and the next call places what has no slot
            while self.size > most * self.store.slots:
                self._enlarge(stream)
            while erased and self.size < least * self.store.slots:
                if not self._halve(stream):
                    return

    def _halve(self, stream: Any) -> bool:
        """Halve a subtable; whether one could be halved, and its keys may have found slots there."""
        store = self.store
        number = policies.subtable_to_halve(store.sizes)
        if number is None:
            return False
        old = store.hashed[number]
        slots = store.slots - old.buckets // 2 * store.spec.slots_per_bucket
        if not policies.may_halve(self.size, slots, self._failed):
            return False
        store.incoming = 0
        self._gather_strays(store.halve(number, stream))
        self.resizes += 1
        self._house_all(stream, old.memory)
        return True

    def rebuild(self, keys: int, stream: Any = None) -> None:
        """Enlarge subtables until ``keys`` keys fit; move all pairs into new ones if these would be smaller."""
        if keys <= self.capacity:
            return super().rebuild(keys, stream)
        while keys > self.capacity:
            self._enlarge(stream)

    def _replace(self, slots: int, homeless: int, stream: Any, keys: int = 0) -> None:
        old = self.store
        super()._replace(slots, homeless, stream, keys)
        new = self.store
        new.incoming = old.incoming
        new.account.peak_bytes = max(old.account.peak_bytes, old.account.held_bytes + new.account.peak_bytes)
        self._failed = (0, 0)

    def clear(self, stream: Any = None) -> None:
        """Forget all keys, those without a slot included; keep the memory."""
        with suppress(TableFull, MemoryError):
            self._end()
        self._strays, self._begun = Strays.none(self._store.spec.word_bytes, self._store.spec.value_bytes), None
        self._failed = (0, 0)
        super().clear(stream)

    # ---- pairs without a home
    def _gather_strays(self, strays: Strays) -> None:
        if len(strays.keys):
            self._strays = self._strays.with_others(strays)

    def _house(self, chain_limit: int, stream: Any) -> bool:
        """Try once to place all strays, with chains of so many evictions; whether none is left."""
        strays, n = self._strays, len(self._strays.keys)
        if not n:
            return True
        store, engine = self.store, self.store.engine
        keys, values = (store.account.from_host(rows.reshape(-1), stream) for rows in strays)
        flags = store.account.allocate(n, stream)
        usual, store.table.chain_limit = store.table.chain_limit, chain_limit
        try:
            _, homeless = store.move(Piece(keys.ptr, values.ptr, flags.ptr, n), stream)
        finally:
            store.table.chain_limit = usual
        left = engine.to_host(flags.ptr, np.uint8, n, stream) == Flag.UNPLACED
        self._strays = Strays(strays.keys[left], strays.values[left])
        self._gather_strays(homeless)
        return not len(self._strays.keys)

    def _house_all(self, stream: Any, memory: Buffer | None = None) -> None:
        """Place all strays.

        After `attempts` tries the table is enlarged, if it may grow: into ``memory`` if that is what a subtable was
        halved from. Where the table cannot grow, each try has chains twice as long, until a chain that finds no slot
        shows that there is none.

        Raises
        ------
        MemoryError, TableFull
            If strays are left. The next call tries again.
        """
        try:
            self._try_to_house_all(memory, stream)
        finally:
            self._begun = self._begun or self._unfinished()

    def _try_to_house_all(self, memory: Buffer | None, stream: Any) -> None:
        chain_limit, tries, rounds, refused = self.store.table.chain_limit, 0, 0, False
        while True:
            try:
                if self._house(chain_limit, stream):
                    return
            except MemoryError:
                refused = True
            tries += 1
            if tries < self.attempts:
                continue
            if self.grows:
                rounds += 1
                try:
                    if rounds % (len(self.store.hashed) + 1) == 0:
                        self._redraw(stream)
                    else:
                        self._enlarge_for_strays(0, stream, memory)
                except MemoryError:
                    refused = True
                else:
                    chain_limit, tries, memory = self.store.table.chain_limit, 0, None
                    continue
            if chain_limit >= max(_LONG_CHAIN, _EVICTIONS_PER_SLOT * self.store.slots):
                break
            chain_limit = 2 * max(1, chain_limit)
        n = len(self._strays.keys)
        if refused:
            raise MemoryError(
                f"{n:,} pairs have no slot, and there is no memory to enlarge the table for them: free some memory. "
                "The table keeps these pairs, and the next call tries again to place them"
            )
        raise TableFull(
            f"{n:,} pairs found no slot beside {self.size - n:,} others in {self.store.slots:,} slots, "
            f"{self._why_hopeless}. The table keeps these pairs, and the next call tries again to place them; clear() "
            "forgets all",
            np.empty(0, np.int64),
        )

    def _take_back(self, keys: int, values: int, n: int, added: npt.NDArray[np.int64], stream: Any) -> None:
        """Erase the keys of these elements, wherever they are now."""
        width = self.store.spec.word_bytes
        rows = self.store.engine.to_host(keys, np.uint8, n * width, stream).reshape(n, width)[added]
        as_one = f"V{width}"
        ours = np.isin(self._strays.keys.view(as_one).ravel(), rows.view(as_one).ravel())
        self._strays = Strays(self._strays.keys[~ours], self._strays.values[~ours])
        self.store.erase_listed(keys, n, added, stream)
        self._house_all(stream)
