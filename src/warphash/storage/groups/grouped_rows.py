"""The pairs of a `MultiMap`: a table of any design from keys to groups, and a list of values for each group.

A batch is brought in the order of its groups, so that the values of a group lie in a row, in the order in which the
batch had them. These runs are linked behind those of earlier batches (``groups/value_lists.cuh``). So the values of a
key come in the order of insertion, within a batch, too. Only a group of several runs has segments.

An update, in steps:

1. Number the distinct keys of the batch, and look up their groups. Number the keys that have none, behind the groups
   there are (`key_groups`).
2. Make room for new groups, segments and values, by one assignment.
3. Write the values in the order of groups to memory that no list leads to yet (`order`).
4. Note the recovery. Enter the new keys and their numbers into the table of keys.
5. Launch ``link``, and replace the state by one assignment.
6. Rebuild the table if it has too many segments, or too many erased values (`_rebuild_if_due`).

Failures. A `TableFull` or `MemoryError` comes out of steps 1 to 4, and the pairs are as they were. A launch runs to its
end whatever becomes of the host, and ``link`` notes in the device's memory what the lists hold then. So behind an
interruption, the recovery reads what the lists hold, and erases the keys whose numbers no group has: a batch is wholly
in, or wholly out.

A key whose pairs are all erased keeps its group, and counts as absent. The group is used again when the key comes back,
and it goes when the table is rebuilt.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ...designs.base import Design
from ...errors import TableFull, UnsupportedVerb
from ...runtime.abi import OWNER_TILE, Flag, ListBatch, Op
from ...runtime.engine import Buffer, Engine
from ...runtime.source import VALUE_LISTS
from ..batch import Batch, MixedBatch
from ..rows import AllValues, Rows
from ..scratch import zeroed_report
from ..selection import offsets_of_counts, select, starts_of_counts
from ..slots import MemoryUse, Recovery, Slots, resting
from .key_groups import (
    MOST_GROUPS,
    NUMBER_BYTES,
    NUMBER_KIND,
    BatchGroups,
    Found,
    counted_up,
    groups_of,
    numbers_of,
    take_rows,
)
from .order import ordered, ordered_rows
from .value_memory import MOST_SEGMENTS, RECORD_BYTES, Lists, empty_lists, totals_of, with_room

__all__ = ["GroupedRows"]

_FEWEST_REBUILT = 1 << 12
"""Segments, or erased values, up to which a table is left as it is."""


class _State(NamedTuple):
    """What a rebuild replaces: the table from keys to numbers of groups, and the values of the groups."""

    keys: Rows
    lists: Lists


class _Elements(NamedTuple):
    """Elements whose values are counted.

    Attributes
    ----------
    batch
        What kernels are given to copy the values.
    counts
        How many values each has, uint32.
    total
        How many all have together.
    held
        Keeps the memory of ``batch``.
    """

    batch: ListBatch
    counts: Buffer
    total: int
    held: tuple[Buffer | None, ...]


class _Scanned(NamedTuple):
    """All keys that have values: how many, the keys, where their values begin in the order of keys, and these."""

    n: int
    keys: Buffer
    offsets: Buffer
    elements: _Elements


class GroupedRows:
    """The `rows.Rows` of keys that repeat.

    Parameters
    ----------
    engine
        Whose memory the pairs are in.
    make_index
        Makes an empty storage from so many keys to numbers of 4 bytes.
    key_bytes, value_bytes
        Width of a row.
    capacity
        Pairs to make room for.
    grows
        The table may have more pairs.

    Attributes
    ----------
    rebuilds
        How often all pairs were moved into new memory.
    """

    rereads = True

    def __init__(
        self,
        engine: Engine,
        make_index: Callable[[int], Rows],
        key_bytes: int,
        value_bytes: int,
        capacity: int,
        *,
        grows: bool,
    ) -> None:
        self.engine, self._make_index = engine, make_index
        self.key_bytes, self.value_bytes = key_bytes, value_bytes
        self._capacity, self._grows = max(1, capacity), grows
        self.recovery, self.rebuilds = Recovery(), 0
        self._state = _State(make_index(1), empty_lists(engine, 0, capacity * value_bytes, None))
        self._size_rebuilt = 0
        self.store = GroupedSlots(self)

    # ---- figures
    @property
    def index(self) -> Rows:
        """The table from keys to the numbers of groups."""
        return self._state.keys

    @property
    def lists(self) -> Lists:
        """The values of all groups."""
        return self._state.lists

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + self.lists.nbytes

    @property
    def slots(self) -> int:
        """Values that the present memory has room for, erased ones included."""
        lists = self.lists
        free = (lists.chunks[-1].nbytes - lists.used) // max(1, self.value_bytes)
        return max(1, lists.held + free) if self._grows else self._capacity

    def memory_use(self) -> MemoryUse:
        """What the memory is used for: free room for groups, segments and values is a reserve."""
        lists, index = self.lists, self.index.memory_use()
        free = lists.chunks[-1].nbytes - lists.used
        free += RECORD_BYTES * (lists.group_room - lists.groups + lists.segment_room - lists.segments)
        return MemoryUse(index.in_use + lists.nbytes - free, index.reserve + free)

    def counted(self, stream: Any) -> int:
        """How many values the lists have, counted. Waits."""
        n = self.lists.groups
        numbers = counted_up(self.engine, 0, n, stream)
        offsets = self.engine.allocate(8 * (n + 1), stream)
        return self._elements(n, Found(numbers.ptr, 0, numbers), offsets.ptr, stream).total

    def _elements(self, n: int, found: Found, offsets: int, stream: Any) -> _Elements:
        """Count the values of elements, and write where those of each go: uint64[n + 1] at ``offsets``. Waits.

        All elements have a group if ``found`` has no flags.
        """
        engine = self.engine
        counts = engine.allocate(4 * max(1, n), stream)
        begins = None if engine.lanes == 1 else engine.allocate(8 * max(1, n), stream)  # which emit_keys does not read
        batch = ListBatch(n=n, elements=n, numbers=found.numbers, flags=found.flags, offsets=offsets)
        batch.out_counts, batch.begins = counts.ptr, begins.ptr if begins else 0
        self._launch("count", batch, stream)
        total = offsets_of_counts(engine, counts.ptr, n, offsets, stream)
        return _Elements(batch, counts, total, (found.memory, begins))

    def _launch(self, entry: str, batch: ListBatch, stream: Any, lists: Lists | None = None) -> None:
        table = (lists or self.lists).table(self.value_bytes)
        self.engine.program(VALUE_LISTS).run(entry, table, batch, batch.n, stream)

    # ---- lookups
    def _found(self, keys: int, n: int, stream: Any) -> Found:
        return numbers_of(self.index, self.lists.groups, keys, n, stream)

    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        """As `Rows.find`, of the first value of each key."""
        found = self._found(keys, n, stream)
        batch = ListBatch(n=n, numbers=found.numbers, flags=found.flags, out_flags=flags, out_values=values)
        absent = None
        if values:
            row = np.frombuffer(default.ljust(max(1, self.value_bytes), b"\0"), np.uint8)
            absent = self.engine.from_host(row, stream)
            batch.default_row = absent.ptr
        self._launch("first", batch, stream)
        del absent  # not before the launch

    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        self.find(keys, n, 0, flags, b"\0", stream)

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        """As `Rows.counts`: buckets of the table of keys."""
        self.index.counts(keys, n, out, stream, entry)

    def count(self, keys: int, n: int, out: int, stream: Any) -> None:
        """Pairs of each key: uint32[n]."""
        found = self._found(keys, n, stream)
        self._launch("count", ListBatch(n=n, numbers=found.numbers, flags=found.flags, out_counts=out), stream)

    def find_all(self, keys: int, n: int, offsets: int, stream: Any) -> AllValues:
        """All values of all keys, those of each from its offset on: uint64[n + 1]. Waits."""
        elements = self._elements(n, self._found(keys, n, stream), offsets, stream)

        def write(values: int) -> None:
            self._emit(elements, stream, values)

        return AllValues(elements.total, write)

    def _emit(self, elements: _Elements, stream: Any, out_values: int) -> None:
        """Copy the values of the elements: a CPU goes from key to key, a GPU from tile to tile of values."""
        batch, total = elements.batch, elements.total
        batch.out_values = out_values
        if self.engine.lanes == 1:
            batch.n = batch.elements
            self._launch("emit_keys", batch, stream)
        elif total:
            tiles = -(-total // OWNER_TILE)
            firsts = self.engine.allocate(8 * tiles, stream)
            batch.n, batch.tile_elements = tiles, firsts.ptr
            self._launch("tiles", batch, stream)
            batch.n = total
            self._launch("emit", batch, stream)

    def _numbered_keys(self, stream: Any) -> tuple[int, Buffer, Buffer]:
        """All keys of the table of keys: how many, the keys, and the numbers of their groups."""
        engine, room = self.engine, self.index.store.size
        keys = engine.allocate(max(1, room * self.key_bytes), stream)
        numbers = engine.allocate(max(1, room * NUMBER_BYTES), stream)
        return self.index.scan(room, keys.ptr, numbers.ptr, stream), keys, numbers

    def _scanned(self, stream: Any) -> _Scanned:
        """All keys that have values."""
        engine, width = self.engine, self.key_bytes
        n, keys, numbers = self._numbered_keys(stream)
        flags = engine.allocate(max(1, n), stream)
        self._launch("first", ListBatch(n=n, numbers=numbers.ptr, out_flags=flags.ptr), stream)
        keys, kept = select(engine, keys, width, n, flags, stream)
        numbers, _ = select(engine, numbers, NUMBER_BYTES, n, flags, stream)
        offsets = engine.allocate(8 * (kept + 1), stream)
        return _Scanned(kept, keys, offsets, self._elements(kept, Found(numbers.ptr, 0, numbers), offsets.ptr, stream))

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        """As `Rows.scan`; the pairs of one key follow each other, in their order."""
        held = self._scanned(stream)
        elements = held.elements
        if elements.total <= room:
            batch = elements.batch
            batch.keys, batch.key_bytes, batch.out_keys = held.keys.ptr, self.key_bytes, out_keys
            self._emit(elements, stream, out_values)
        return elements.total

    def execute(self, batch: MixedBatch, default: bytes, stream: Any) -> None:
        """Raise: no operation happens at one moment in the table of keys and in the lists."""
        raise UnsupportedVerb("execute is for a MultiMap whose buckets are lists: make it with design='slab'")

    # ---- updates
    def _begin(self, stream: Any) -> None:
        """Make the pairs whole, if an update stopped half way."""
        self.recovery.run(self.engine, stream)

    def update(self, batch: Batch) -> None:
        """Add every pair of a batch, in its order.

        Raises
        ------
        TableFull
            If the table may not grow, and has no room for all pairs.
        MemoryError
            If there is no memory. The pairs are as they were.
        """
        n, stream = batch.n, batch.stream
        self._begin(stream)
        if n == 0:
            return
        if not self._grows and self.lists.size + n > self._capacity:
            left = np.arange(max(0, self._capacity - self.lists.size), n)
            raise TableFull(f"there is no room for {len(left):,} of {n:,} pairs; the table is as it was", left)
        engine, index = self.engine, self.index
        index.store.finish(stream)
        given = groups_of(index, self.lists, self.value_bytes, batch, self.key_bytes)
        size, counts = given.keys.size, given.keys.counts
        assert counts is not None
        before, nbytes, named = self.lists, n * self.value_bytes, given.groups
        groups, segments = before.groups + named.new.n, before.segments + named.segments
        if groups > MOST_GROUPS:  # which a rebuild does not change
            raise TableFull(f"a MultiMap in groups has at most {MOST_GROUPS:,} keys; the table is as it was")
        if segments > MOST_SEGMENTS:
            return self._update_rebuilt(batch)
        lists = with_room(engine, before, groups, segments, nbytes, stream)
        to = lists.chunks[-1].ptr + lists.used
        offsets = self._order_values(given, n, batch.values, to, stream)
        self._state = _State(index, lists)  # which hold the same
        self.recovery.step = resting(GroupedRows._restore, self)
        if named.new.n:
            self._enter(given)
        linked = ListBatch(n=size, numbers=named.numbers, counts=counts.ptr, values=to)
        linked.offsets, linked.needs = (buffer.ptr if buffer else 0 for buffer in (offsets, named.needs))
        linked.first_segment, linked.totals = before.segments, lists.totals.ptr
        linked.groups, linked.segments = groups, segments
        self._launch("link", linked, stream)
        lists = lists._replace(
            groups=groups,
            segments=segments,
            size=lists.size + n,
            held=lists.held + n,
            used=lists.used + nbytes,
        )
        self._state = _State(index, lists)
        self.recovery.step = None
        if batch.flags:
            engine.fill(batch.flags, Flag.CHANGED, n, stream)
        self._rebuild_if_due(stream)

    def _update_rebuilt(self, batch: Batch) -> None:
        """Add the pairs of a batch for whose runs there are too few segments, after a rebuild, which leaves none."""
        if self.lists.segments == 0:
            most = MOST_SEGMENTS // 2
            raise TableFull(f"a batch may have at most {most:,} keys that are in the MultiMap: insert it in parts")
        self.rebuild(self._capacity, batch.stream)
        self.update(batch)  # whose keys have other groups now

    def _order_values(self, given: BatchGroups, n: int, values: int, to: int, stream: Any) -> Buffer | None:
        """Write the values of a batch group by group.

        Returns
        -------
        Buffer or None
            Where those of each group begin, uint64. None if each group has one, in the order of the groups.
        """
        engine, width, places, keys = self.engine, self.value_bytes, given.places.ptr, given.keys
        if keys.size == n:  # the groups are in the order of their first elements
            engine.copy(to, values, n * width, stream)
            return None
        is_aligned = width in (4, 8) and values % width == 0
        if is_aligned and keys.group_rows is not None:
            offsets = engine.allocate(8 * keys.size, stream)
            keys.group_rows(values, width, to, offsets.ptr)
            return offsets
        assert keys.counts is not None
        if not (is_aligned and ordered_rows(engine, places, n, keys.size, values, width, to, stream)):
            order = ordered(engine, places, n, keys.size, stream)
            take_rows(engine, values, width, order, n, to, stream)
        return starts_of_counts(engine, keys.counts, keys.size, stream)

    def _enter(self, given: BatchGroups) -> None:
        """Enter the new keys of a batch and their numbers into the table of keys."""
        try:
            self.index.update(given.groups.new)
        except TableFull as error:
            self.recovery.step = None
            which = None if error.keys is None else given.elements(self.engine, error.keys)
            raise TableFull(str(error), which) from error
        except MemoryError:
            self.recovery.step = None
            raise

    def insert_runs(self, keys: int, values: int, n: int, stream: Any) -> None:
        """Add every pair, in the order of the batch."""
        self.update(Batch(keys, values, n, stream=stream))

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        """Erase the first pair of each key; several elements of one key erase its pairs one after the other."""
        self._erase("pop", keys, n, stream, out_flags=flags)

    def erase_all(self, keys: int, n: int, out: int, stream: Any) -> None:
        """Erase every pair of each key: uint32[n], how many each element erased."""
        self._erase("drop", keys, n, stream, out_counts=out)

    def _erase(self, entry: str, keys: int, n: int, stream: Any, **out: int) -> None:
        self._begin(stream)
        engine = self.engine
        found, report = self._found(keys, n, stream), zeroed_report(engine, stream)
        batch = ListBatch(n=n, numbers=found.numbers, flags=found.flags, report=report.ptr, **out)
        self.recovery.step = resting(GroupedRows._restore, self)
        self._launch(entry, batch, stream)
        erased = report.read(stream).erased
        index, lists = self._state
        self._state = _State(index, lists._replace(size=lists.size - erased))
        self.recovery.step = None
        self._rebuild_if_due(stream)

    def _restore(self, stream: Any) -> None:
        """Read what the lists hold, and erase the keys whose numbers no group has."""
        index, lists = self._state
        index.store.finish(stream)
        groups, segments = totals_of(self.engine, lists, stream)
        lists = lists._replace(groups=groups, segments=segments, used=lists.chunks[-1].nbytes)
        self._state = _State(index, lists)
        size = self.counted(stream)
        self._forget_keys_from(groups, stream)
        self._state = _State(index, lists._replace(size=size, held=lists.held + max(0, size - lists.size)))

    def _forget_keys_from(self, groups: int, stream: Any) -> None:
        """Erase the keys with numbers from ``groups`` on from the table of keys."""
        engine, index, width = self.engine, self.index, self.key_bytes
        n, keys, numbers = self._numbered_keys(stream)
        which = np.flatnonzero(engine.to_host(numbers.ptr, np.uint32, n, stream) >= groups)
        if len(which):
            rows = engine.to_host(keys.ptr, np.uint8, n * width, stream).reshape(n, width)
            gone = engine.from_host(np.ascontiguousarray(rows[which]), stream)
            flags = engine.allocate(len(which), stream)
            index.erase(gone.ptr, len(which), flags.ptr, stream)

    # ---- all pairs
    def clear(self, stream: Any) -> None:
        self._begin(stream)
        self.recovery.step = resting(GroupedRows._clear, self)
        self._clear(stream)
        self.recovery.step = None

    def _clear(self, stream: Any) -> None:
        index, lists = self._state
        index.clear(stream)
        for array in (lists.group_records, lists.totals):
            self.engine.fill(array.ptr, 0, array.nbytes, stream)
        cleared = lists._replace(groups=0, segments=0, size=0, held=0, chunks=lists.chunks[-1:], used=0)
        self._state, self._size_rebuilt = _State(index, cleared), 0

    def rebuild(self, keys: int, stream: Any) -> None:
        """As `Rows.rebuild`, of room for so many pairs: copies and later rebuilds make room for as many."""
        self._begin(stream)
        self._state = self._rebuilt(keys, stream)
        self._size_rebuilt, self.rebuilds = self.lists.size, self.rebuilds + 1
        self._capacity = max(1, keys if self._grows else max(keys, self.lists.size))

    def _rebuilt(self, room: int, stream: Any) -> _State:
        """The same pairs in new memory, with room for so many; each group has one run."""
        engine, held = self.engine, self._scanned(stream)
        total = held.elements.total
        index = self._make_index(max(1, held.n))
        numbers = counted_up(engine, 0, held.n, stream)
        if held.n:
            index.update(Batch(held.keys.ptr, numbers.ptr, held.n, Op.KEEP, NUMBER_KIND, unique=True, stream=stream))
        lists = empty_lists(engine, held.n, max(room, total) * self.value_bytes, stream)
        to = lists.chunks[0].ptr
        self._emit(held.elements, stream, to)
        relisted = ListBatch(n=held.n, counts=held.elements.counts.ptr, offsets=held.offsets.ptr, values=to)
        relisted.totals = lists.totals.ptr
        self._launch("relist", relisted, stream, lists)
        lists = lists._replace(groups=held.n, size=total, held=total, used=total * self.value_bytes)
        return _State(index, lists)

    def pack(self, stream: Any) -> int:
        """Bring the values of each key together, and drop erased ones; how many segments fewer there are."""
        self._begin(stream)
        segments = self.lists.segments
        if segments or self.lists.held > self.lists.size:
            self.rebuild(self._capacity, stream)
        return segments - self.lists.segments

    def _rebuild_if_due(self, stream: Any) -> None:
        """Rebuild a table of many short segments, once it has twice the pairs; or of many erased values."""
        lists = self.lists
        many = lists.segments > max(_FEWEST_REBUILT, 2 * lists.groups) and lists.held >= 2 * self._size_rebuilt
        if many or lists.held - lists.size > max(_FEWEST_REBUILT, lists.size):
            with suppress(MemoryError, TableFull):  # it is as it was
                self.rebuild(self._capacity, stream)

    def copy(self, stream: Any) -> GroupedRows:
        self.store.finish(stream)
        widths = self.key_bytes, self.value_bytes
        twin = GroupedRows(self.engine, self._make_index, *widths, 0, grows=self._grows)
        twin._capacity = self._capacity
        twin._state, twin._size_rebuilt = self._rebuilt(self._capacity, stream), self.lists.size
        return twin


class GroupedSlots:
    """The part of `slots.Slots` that a table asks for. A slot is room for a value. The table resizes as a whole."""

    resizes: int | None = None
    peak_nbytes: int | None = None

    def __init__(self, rows: GroupedRows) -> None:
        self._rows: GroupedRows = weakref.proxy(rows)  # which hold this object, and are freed with their last user
        self.engine: Engine = rows.engine
        self.design: Design = self._keys.design
        self.seed: int = self._keys.seed

    @property
    def _keys(self) -> Slots:
        return self._rows.index.store

    @property
    def recovery(self) -> Recovery:
        """That of the table of keys, which may have put off its clearing; or that of the pairs."""
        keys = self._keys.recovery
        return self._rows.recovery if keys.step is None else keys

    @property
    def size(self) -> int:
        return self._rows.lists.size

    @property
    def slots(self) -> int:
        return self._rows.slots

    capacity = slots

    @property
    def rebuilds(self) -> int:
        return self._rows.rebuilds

    @property
    def insert_probes(self) -> float | None:
        return self._keys.insert_probes

    @property
    def pending(self) -> bool:
        return self._rows.recovery.step is not None or self._keys.pending

    def finish(self, stream: Any = None) -> None:
        self._rows.recovery.run(self.engine, stream)
        self._keys.finish(stream)

    def pack(self, stream: Any = None) -> int:
        """Bring the values of each key together, and drop erased ones; how many segments fewer there are."""
        return self._rows.pack(stream)

    def broken_buckets(self, stream: Any = None) -> int:
        """Broken buckets of the table of keys; one more if the lists have other values than are counted."""
        return self._keys.broken_buckets(stream) + (self._rows.counted(stream) != self.size)
