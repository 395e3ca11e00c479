"""Keys or values wider than a word: a slot holds the fingerprint of a key and the number of its row.

Layout. Key rows and value rows are two packed arrays beside the table. A value of up to 8 bytes takes a whole word
there, so that an upsert can combine it atomically. Of a wider value, which is a row of numbers, an upsert combines each
number by itself. Rows of erased keys are on the free list, a stack of row numbers in device memory. A new key takes a
row from the free list, or the first row that was never used if the list is empty. As many rows are in use as there are
keys. ``kernels/rows/rows.cuh`` draws the arrays and names the kernels.

An update, in steps:

1. Look up the fingerprints of the batch.
2. Compare the keys of the elements that were found with their rows. Choose one element of each new key (`claim_rows`).
3. Read one report: the number of new keys, and whether two keys have one fingerprint. If they have, draw another salt,
   load all keys anew, and start again.
4. Allocate rows, if there are too few for the new keys.
5. Write the rows of the new keys, with the values of all their elements. No slot leads to these rows yet.
6. Note on the host that the rows are taken. Enter the fingerprints and row numbers of the new keys into the table.
7. Overwrite, or combine, the values of the keys that were there. This step allocates nothing.

An erase looks up the fingerprints, lists the elements whose keys match, erases these, pushes their rows on the free
list, and notes on the host how many.

Failures. A `TableFull` or `MemoryError` comes out of steps 1 to 6, and the table is as it was. An interruption leaves
each key of the batch with all its elements or with none: a new key is entered with its combined value, and the values
of old keys change in one kernel. What the host knows of the rows is one immutable object (`_State`), which one
assignment replaces. Rows are noted as taken before the slots are entered, and as free after the slots are erased. So no
row ever belongs to two keys. An interrupted update may keep rows that no key has. The next update finds more rows taken
than there are keys, and packs the rows.

Fingerprints have 64 bits and a salt. Two keys of one fingerprint are never in the table together, so a find whose
fingerprint leads to the row of another key is a find of an absent key, with no second look. Of 40 tables of 10^9 keys,
one draws a second salt. A batch with ``unique`` is looked up and claimed like any other: its keys differ, but their
fingerprints may not.

Costs, in lines of 64 bytes that an element touches at random, for keys of 24 bytes and values of 4:

- find: the bucket; if the fingerprint is there, the key row (1.25 lines on average) and the value row.
- a new key: the bucket, a claim (read and written), and the slot (read and written). Its rows are in the order of the
  batch, unless they come from the free list.
- a key that is there: the bucket and the key row; insert ends here. assign and upsert also write the value row. assign
  of values of more than 8 bytes claims, too, so that one element of each key writes its value.
- erase: the bucket, the key row, and the slot (read and written). The free list is in the order of the batch.

An update that adds keys waits twice, for the report of step 3 and for that of the slots. One that adds none waits once,
and so does an erase.

Ranks. A row may have a third column, a rank of 8 bytes, by which a bounded table chooses the keys that leave
(``bounded/``). The ranks move with the rows. This module sets none: it tells the caller's `Touch` which rows a batch
reaches. The rank of a new row is set before a slot leads to the row.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import TableFull, UnsupportedVerb
from ..runtime.abi import (
    REPORT_WORDS,
    FingerprintBatch,
    Flag,
    Launch,
    Op,
    RowBatch,
    StoredRows,
    bytes_of,
)
from ..runtime.engine import Buffer, Engine
from ..runtime.source import ROWS
from .batch import COMBINING, Batch, MixedBatch
from .elements import DeviceList, flags_at, with_flags
from .lookup import launch_find
from .new_memory import copied
from .scratch import Report, read_report, zeroed_report
from .slots import MemoryUse, Slots

__all__ = ["Touch", "TouchedRows", "WideRows"]

_FIRST_ROOM = 1024
"""Rows that a table has room for from its first batch on, if it is meant for so many keys."""

_MOST_ROOM = 4
"""Rows for each key that the table is meant for: with room for more, the rows are packed."""


class TouchedRows(NamedTuple):
    """Rows that a batch reaches, in device memory.

    Attributes
    ----------
    stage
        Which elements reach a row: of an update, those that add their keys (``"new"``, flag `Flag.CHANGED`), later the
        others (``"present"``, flag `Flag.PRESENT`); of a find, those whose keys are found (``"found"``, flag
        `Flag.CHANGED`).
    n, numbers, flags
        Number of elements, and the addresses of their row words (``kernels/rows/rows.cuh``) and flags.
    ranks
        Address of the ranks of all rows, uint64.
    changes_values
        The batch overwrites, or combines, the values of keys that are there.
    """

    stage: Literal["new", "present", "found"]
    n: int
    numbers: int
    flags: int
    ranks: int
    changes_values: bool = False


Touch = Callable[[TouchedRows], None]
"""Sets ranks of rows. Allocates nothing."""


@dataclass(frozen=True)
class _State:
    """The table: its slots, its rows, and what the host knows of the free ones. Replaced whole.

    Attributes
    ----------
    store
        The slots: fingerprints and row numbers.
    salt
        Of the fingerprints.
    keys, values, ranks
        Memory of ``room`` rows each; None for ranks, if rows have none.
    end
        No row of this number, or of a greater one, was ever used.
    free_list, free
        Memory of the stack of free rows, and how many are on it.
    """

    store: Slots
    salt: int
    keys: Buffer
    values: Buffer
    ranks: Buffer | None
    free_list: Buffer
    room: int = 0
    end: int = 0
    free: int = 0

    @property
    def taken(self) -> int:
        """Rows in use."""
        return self.end - self.free

    def end_with(self, n: int) -> int:
        """`end` after ``n`` more rows are taken."""
        return self.end + max(0, n - self.free)

    def with_taken(self, n: int) -> _State:
        """The state in which ``n`` more rows are taken."""
        return replace(self, end=self.end_with(n), free=max(0, self.free - n))


@dataclass(frozen=True)
class _Lookup:
    """Where the elements of a batch are, in device memory.

    Attributes
    ----------
    prints
        Fingerprints of the keys, uint64.
    rows
        Address of row words, uint64 (``kernels/rows/rows.cuh``).
    flags
        Address of flags, uint8: of `WideRows._look_up`, whether the fingerprint was found; of an update, whether the
        element adds its key; of an erase, whether it erased its key.
    extra, report
        Addresses of further memory that was asked for, and of a zeroed `scratch.Report`.
    memory
        What keeps all of it.
    """

    prints: Buffer
    rows: int
    flags: int
    extra: int
    report: int
    memory: Buffer


class WideRows:
    """Packed rows of any width, on `Slots` of fingerprints.

    Parameters
    ----------
    key_bytes, value_bytes
        Width of a row; ``value_bytes`` may be 0.
    ranked
        Rows have ranks.
    """

    rereads = True

    def __init__(self, store: Slots, key_bytes: int, value_bytes: int, *, ranked: bool = False) -> None:
        engine, seed = store.engine, store.seed
        self.key_bytes, self.value_bytes = key_bytes, value_bytes
        self._rank_bytes = 8 if ranked else 0
        self._value_stride = value_bytes if value_bytes > 8 else (0, 4, 8)[-(-value_bytes // 4)]
        self._engine: Engine = engine
        self._program = engine.program(ROWS)
        self._random = random.Random(seed)
        self._default: tuple[bytes, Buffer] | None = None  # of the last find
        keys, values, free_list = (engine.allocate(1) for _ in range(3))
        ranks = engine.allocate(1) if ranked else None
        self._state = _State(store, 0x9E3779B97F4A7C15 ^ seed, keys, values, ranks, free_list)

    @property
    def store(self) -> Slots:
        return self._state.store

    @property
    def nbytes(self) -> int:
        state = self._state
        return state.store.nbytes + self._rows_nbytes(state)

    @staticmethod
    def _rows_nbytes(state: _State) -> int:
        held = (state.keys, state.values, state.ranks, state.free_list)
        return sum(memory.nbytes for memory in held if memory is not None)

    def memory_use(self) -> MemoryUse:
        use, state = self.store.memory_use(), self._state
        in_use = state.taken * (self.key_bytes + self._value_stride + self._rank_bytes)
        return use._replace(in_use=use.in_use + in_use, reserve=use.reserve + self._rows_nbytes(state) - in_use)

    # ---- the operations of a storage
    def find(
        self,
        keys: int,
        n: int,
        values: int,
        flags: int,
        default: bytes,
        stream: Any,
        touch: Touch | None = None,
    ) -> None:
        flags, _own_flags = flags_at(self._engine, flags, n, stream)
        rows = self._rows_of(keys, n, flags, stream)
        if touch and n:
            touch(TouchedRows("found", n, rows.ptr, flags, self._stored_ranks.rows))
        if values:
            absent = self._default_row(default, stream)
            self._gather_values(rows.ptr, n, values, stream, flags, absent.ptr)

    def _rows_of(self, keys: int, n: int, flags: int, stream: Any) -> Buffer:
        """The number of the row of each key, and in ``flags``, which keys are there."""
        prints, rows = self._fingerprints(keys, n, stream), self._engine.allocate(8 * max(1, n), stream)
        launch_find(self.store.state.array, prints.ptr, n, rows.ptr, flags, 0, stream)
        self._match(keys, n, rows.ptr, flags, stream)
        return rows

    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        self.find(keys, n, 0, flags, b"\0", stream)

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        prints = self._fingerprints(keys, n, stream)
        launch_find(self.store.state.array, prints.ptr, n, 0, 0, 0, stream, out, entry)

    def update(self, given: Batch, touch: Touch | None = None) -> None:
        """As `Rows.update`; unique keys save nothing here (see the module)."""
        if given.op in COMBINING and (number := bytes_of(given.kind)) not in (4, 8):
            raise UnsupportedVerb(
                f"upsert combines numbers of 4 or 8 bytes in a table of rows, for keys or values of more than 8 bytes "
                f"or for evict='lru', 'fifo' or 'score', and these have {number} bytes: widen them"
            )
        n, stream = given.n, given.stream
        if n == 0:
            return
        if self._state.end:  # otherwise there was never a key
            self.store.finish(stream)  # a displaced fingerprint would be taken for an absent one
        if not given.flags:
            given, _own_flags = with_flags(self._engine, given)
        while not self._try_to_update(given, touch):
            self._reload(self.store.capacity, _next_salt(self._state.salt), stream)
        self._trim(stream)

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        if n == 0:
            return
        self.store.finish(stream)
        flags, _own_flags = flags_at(self._engine, flags, n, stream)
        self._reserve_free_list(n, stream)
        batch = self._look_up(keys, n, flags, 4 * n, stream)
        pushed = zeroed_report(self._engine, stream)
        self._match(keys, n, batch.rows, flags, stream, batch)
        store, state = self.store, self._state
        size = store.size
        store.erase(batch.prints.ptr, n, flags, DeviceList(batch.extra, batch.report), stream)
        push = RowBatch(n=n, numbers=batch.rows, flags=flags, report=pushed.ptr)
        push.free_list, push.free_rows = state.free_list.ptr, state.free
        self._run("free_rows", StoredRows(), push, stream)
        store.finish(stream)
        self._state = replace(state, free=state.free + size - store.size)
        self._trim(stream)

    def execute(self, batch: MixedBatch, default: bytes, stream: Any) -> None:
        """Raise: a row cannot be read, or changed, in the moment in which its slot is."""
        raise UnsupportedVerb(
            f"execute of design {self.store.design.name!r} takes keys and values of up to 8 bytes, got "
            f"{self.key_bytes} and {self.value_bytes}: design='stadium' takes any"
        )

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any, out_ranks: int = 0) -> int:
        """As `Rows.scan`; with the ranks of the rows, if they have ranks."""
        rows = self._engine.allocate(8 * max(1, room), stream)
        found = self.scan_numbers(room, rows.ptr, stream, out_ranks)
        n = min(found, room)
        if out_keys:
            self.keys_at(rows.ptr, n, out_keys, stream)
        if out_values:
            self._gather_values(rows.ptr, n, out_values, stream)
        return found

    def scan_numbers(self, room: int, out: int, stream: Any, out_ranks: int = 0) -> int:
        """As `scan`, with the number of each row, uint64, in place of its key and value."""
        found = self.store.scan(room, 0, out, stream)
        if out_ranks:
            self.ranks_at(out, min(found, room), out_ranks, stream)
        return found

    def ranks_at(self, numbers: int, n: int, out: int, stream: Any) -> None:
        """Copy the ranks of rows, uint64, given the numbers of the rows."""
        self._gather(numbers, n, self._stored_ranks, 8, out, stream)

    def ranks_of(self, keys: int, n: int, absent: int, stream: Any) -> npt.NDArray[np.uint64]:
        """The ranks of keys, in host memory; ``absent`` for a key that is not there. Waits, and touches no key."""
        flags, _own_flags = flags_at(self._engine, 0, n, stream)
        rows, ranks = self._rows_of(keys, n, flags, stream), self._engine.allocate(8 * max(1, n), stream)
        none = self._engine.from_host(np.array([absent], np.uint64), stream)
        self._gather(rows.ptr, n, self._stored_ranks, 8, ranks.ptr, stream, flags, none.ptr)
        return self._engine.to_host(ranks.ptr, np.uint64, n, stream)

    def keys_at(self, numbers: int, n: int, out: int, stream: Any) -> None:
        """Copy the keys of rows, given the numbers of the rows."""
        self._gather(numbers, n, self._stored_keys, self.key_bytes, out, stream)

    def copy(self, stream: Any) -> WideRows:
        state = self._state
        store = state.store.copy(stream)
        twin = WideRows(store, self.key_bytes, self.value_bytes, ranked=self._rank_bytes > 0)
        keys, values, free_list = (
            copied(self._engine, memory, stream) for memory in (state.keys, state.values, state.free_list)
        )
        ranks = None if state.ranks is None else copied(self._engine, state.ranks, stream)
        twin._state = replace(state, store=store, keys=keys, values=values, ranks=ranks, free_list=free_list)
        return twin

    def clear(self, stream: Any) -> None:
        self.store.clear(stream)
        self._state = replace(self._state, end=0, free=0)

    def rebuild(self, keys: int, stream: Any) -> None:
        keys = max(keys, self.store.size)
        self._reload(keys, self._state.salt, stream, room=keys)

    # ---- updates
    def _try_to_update(self, given: Batch, touch: Touch | None) -> bool:
        """Update the table; or leave it as it was and return False, because two keys have one fingerprint."""
        n, op, held, stream = given.n, given.op, given.held, given.stream
        cells = 3 * n // 2 + 1  # a probe meets one other claim on average
        batch = self._look_up(given.keys, n, given.flags, 8 * cells, stream)
        in_words = self.value_bytes <= 8  # which a store writes whole, so elements of one key need no claim
        counts = self._claim(batch, cells, given.keys, n, op == Op.REPLACE and not in_words, stream)
        if counts.mismatches:
            return False
        if counts.winners:
            self._add(batch, counts.winners, given, touch)
        # Behind this line nothing is allocated: the keys are in.
        if op != Op.KEEP and self.value_bytes and counts.winners < n:
            if in_words or op != Op.REPLACE:
                self._merge("merge", batch, given, op)
            else:
                self._write("overwrite", self._stored_values, self.value_bytes, batch, n, given.values, stream)
        if touch and counts.winners < n:
            ranks = self._stored_ranks.rows
            touch(TouchedRows("present", n, batch.rows, batch.flags, ranks, op != Op.KEEP))
        if held:
            self._gather_values(batch.rows, n, held, stream)
        return True

    def _look_up(self, keys: int, n: int, flags: int, extra_bytes: int, stream: Any) -> _Lookup:
        """Find the fingerprints of the keys; with ``extra_bytes`` of memory, and a report."""
        prints = self._fingerprints(keys, n, stream)
        sizes = [-(-size // 256) * 256 for size in (8 * n, extra_bytes)]
        memory = self._engine.allocate(sum(sizes) + 8 * REPORT_WORDS, stream)
        rows, extra, report = memory.ptr, memory.ptr + sizes[0], memory.ptr + sum(sizes)
        self._engine.fill(report, 0, 8 * REPORT_WORDS, stream)
        if self.store.size:
            launch_find(self.store.state.array, prints.ptr, n, rows, flags, 0, stream)
        else:
            self._engine.fill(flags, Flag.PRESENT, n, stream)
        return _Lookup(prints, rows, flags, extra, report, memory)

    def _claim(self, batch: _Lookup, cells: int, keys: int, n: int, overwrites: bool, stream: Any) -> Report:
        """Choose one element of each new key: how many, and how many mismatches of keys and fingerprints. Waits."""
        self._engine.fill(batch.extra, 0xFF, 8 * cells, stream)
        claim = RowBatch(
            n=n,
            rows=keys,
            row_bytes=self.key_bytes,
            numbers=batch.rows,
            flags=batch.flags,
            fingerprints=batch.prints.ptr,
            cells=batch.extra,
            cell_count=cells,
            claims_found=overwrites,
            random=self._random.getrandbits(64),
            report=batch.report,
        )
        self._run("claim_rows", self._stored_keys, claim, stream)
        return read_report(self._engine, batch.report, stream)

    def _add(self, batch: _Lookup, added: int, given: Batch, touch: Touch | None) -> None:
        """Enter the chosen elements, ``added`` of them, with the values of all elements that have their keys."""
        n, op, stream = given.n, given.op, given.stream
        self._reserve(added, stream)
        state, size = self._state, self.store.size
        take = RowBatch(n=n, fingerprints=batch.prints.ptr, numbers=batch.rows, flags=batch.flags)
        take.free_list, take.free_rows, take.end = state.free_list.ptr, state.free, state.end
        prints, rows = batch.prints.ptr, batch.rows
        if added < n:
            column = -(-8 * added // 256) * 256
            chosen = self._engine.allocate(2 * column, stream)
            take.out_fingerprints, take.out_numbers = prints, rows = chosen.ptr, chosen.ptr + column
        self._run("take_rows", StoredRows(), take, stream)
        # Before the slots: whoever sees a row's number there sees the row.
        self._write("scatter", self._stored_keys, self.key_bytes, batch, n, given.keys, stream)
        if self.value_bytes:
            self._write("scatter", self._stored_values, self.value_bytes, batch, n, given.values, stream)
        if touch:
            touch(TouchedRows("new", n, batch.rows, batch.flags, self._stored_ranks.rows, op != Op.KEEP))
        combines = op in COMBINING
        if added < n and (combines or given.held):  # the other elements of the new keys have to know their rows
            self._merge("share_rows", batch, given, op if combines else Op.KEEP)
        self._state = state.with_taken(added)
        try:
            state.store.update(Batch(prints, rows, added, unique=True, stream=stream))
        except (TableFull, MemoryError) as error:
            with suppress(TableFull, MemoryError):  # the next call tries again
                state.store.finish(stream)
            if state.store.size == size:
                self._state = state
            if isinstance(error, TableFull) and error.keys is not None and added < n:
                raise TableFull(str(error), self._elements_of(batch, n, rows, added, error.keys, stream)) from error
            raise

    def _elements_of(self, batch: _Lookup, n: int, rows: int, added: int, which: Any, stream: Any) -> Any:
        """Numbers of the elements that took some of the rows at ``rows``."""
        to_host = self._engine.to_host
        taken = to_host(rows, np.uint64, added, stream)[which]
        chosen = np.flatnonzero(to_host(batch.flags, np.uint8, n, stream) == Flag.CHANGED)
        return chosen[np.isin(to_host(batch.rows, np.uint64, n, stream)[chosen], taken)]

    def _write(
        self, entry: str, stored: StoredRows, width: int, batch: _Lookup, n: int, rows: int, stream: Any
    ) -> None:
        """Write the keys or the values of some elements to their stored rows."""
        write = RowBatch(n=n, rows=rows, row_bytes=width, numbers=batch.rows, flags=batch.flags)
        self._run(entry, stored, write, stream)

    def _merge(self, entry: str, batch: _Lookup, given: Batch, op: Op) -> None:
        """Apply an upsert to the stored values of some elements."""
        width = self.value_bytes
        merge = RowBatch(n=given.n, rows=given.values, row_bytes=width, numbers=batch.rows, flags=batch.flags)
        merge.op, merge.kind = op, given.kind
        self._run(entry, self._stored_values, merge, given.stream)

    # ---- memory of rows
    @property
    def _stored_keys(self) -> StoredRows:
        return StoredRows(rows=self._state.keys.ptr, stored_bytes=self.key_bytes)

    @property
    def _stored_values(self) -> StoredRows:
        return StoredRows(rows=self._state.values.ptr, stored_bytes=self._value_stride)

    @property
    def _stored_ranks(self) -> StoredRows:
        ranks = self._state.ranks
        assert ranks is not None, "the rows have no ranks"
        return StoredRows(rows=ranks.ptr, stored_bytes=8)

    def _reserve(self, n: int, stream: Any) -> None:
        """Make room for ``n`` more rows; raises `MemoryError` if there is none, and the table is as it was."""
        state = self._state
        wanted = state.end_with(n)
        if wanted <= state.room:
            return
        room = max(wanted, 2 * state.room, min(_FIRST_ROOM, state.store.capacity))
        try:
            keys, values, ranks = self._memory_of(room, stream)
        except MemoryError:
            room = wanted
            keys, values, ranks = self._memory_of(room, stream)
        self._engine.copy(keys.ptr, state.keys.ptr, state.end * self.key_bytes, stream)
        self._engine.copy(values.ptr, state.values.ptr, state.end * self._value_stride, stream)
        if ranks is not None:
            self._engine.copy(ranks.ptr, self._stored_ranks.rows, 8 * state.end, stream)
        self._state = replace(state, keys=keys, values=values, ranks=ranks, room=room)

    def _reserve_free_list(self, n: int, stream: Any) -> None:
        """Make room for ``n`` more free rows, at most all; raises `MemoryError` as `_reserve` does."""
        state = self._state
        wanted, room = min(state.free + n, state.end), state.free_list.nbytes // 8
        if wanted > room:
            free_list = self._engine.allocate(8 * max(wanted, min(2 * room, state.end)), stream)
            self._engine.copy(free_list.ptr, state.free_list.ptr, 8 * state.free, stream)
            self._state = replace(state, free_list=free_list)

    def _memory_of(self, rows: int, stream: Any) -> tuple[Buffer, Buffer, Buffer | None]:
        """Memory for keys, values and ranks of so many rows."""
        allocate = self._engine.allocate
        keys = allocate(max(1, rows * self.key_bytes), stream)
        values = allocate(max(1, rows * self._value_stride), stream)
        return keys, values, allocate(max(1, 8 * rows), stream) if self._rank_bytes else None

    def _trim(self, stream: Any) -> None:
        """Pack the rows if too many are unused, and there is memory to do so.

        There may be room for many more than the table is meant for, after an erase that made the table smaller; and an
        interrupted update keeps the rows that it took.
        """
        self.store.finish(stream)
        size, capacity = self.store.size, self.store.capacity
        if self._state.room > _MOST_ROOM * max(size, capacity) or self._state.taken > size:
            with suppress(MemoryError, TableFull):
                self._reload(capacity, self._state.salt, stream)

    def _reload(self, capacity: int, salt: int, stream: Any, room: int = 0) -> None:
        """Pack the rows of all keys and enter them into a new store, under a salt that tells all keys apart.

        Parameters
        ----------
        capacity
            Keys that the new store is for.
        room
            Rows to have room for; those of the keys by default.
        """
        engine, old = self._engine, self._state
        n = old.store.size
        room, width, stride = max(n, room), self.key_bytes, self._value_stride
        rows = engine.allocate(8 * max(1, n), stream)
        old.store.scan(n, 0, rows.ptr, stream)
        keys, values, ranks = self._memory_of(room, stream)
        self._gather(rows.ptr, n, self._stored_keys, width, keys.ptr, stream)
        if stride:
            self._gather(rows.ptr, n, self._stored_values, stride, values.ptr, stream)
        if ranks is not None:
            self._gather(rows.ptr, n, self._stored_ranks, 8, ranks.ptr, stream)
        self._run("number_rows", StoredRows(), RowBatch(n=n, numbers=rows.ptr), stream)
        while True:
            store = old.store.sibling(capacity, stream)
            prints = self._fingerprints(keys.ptr, n, stream, salt)
            store.update(Batch(prints.ptr, rows.ptr, n, stream=stream))
            store.finish(stream)
            if store.size == n:
                break
            salt = _next_salt(salt)
        store.rebuilds = old.store.rebuilds + 1
        store.probes, store.inserted = old.store.probes, old.store.inserted
        self._state = _State(store, salt, keys, values, ranks, engine.allocate(1, stream), room, end=n)

    # ---- kernels
    def _fingerprints(self, keys: int, n: int, stream: Any, salt: int | None = None) -> Buffer:
        prints = self._engine.allocate(8 * max(1, n), stream)
        salt = self._state.salt if salt is None else salt
        batch = FingerprintBatch(n=n, rows=keys, row_bytes=self.key_bytes, salt=salt, fingerprints=prints.ptr)
        self._run("fingerprint", StoredRows(), batch, stream)
        return prints

    def _match(self, keys: int, n: int, rows: int, flags: int, stream: Any, listing: _Lookup | None = None) -> None:
        """Clear the flags of elements whose rows are those of other keys; list the others, if asked to."""
        batch = RowBatch(n=n, rows=keys, row_bytes=self.key_bytes, numbers=rows, flags=flags)
        if listing:
            batch.list, batch.report = listing.extra, listing.report
        self._run("match", self._stored_keys, batch, stream)

    def _gather_values(self, rows: int, n: int, out: int, stream: Any, flags: int = 0, absent: int = 0) -> None:
        """Write the values of some rows to ``out``; without a flag, the one at ``absent``."""
        self._gather(rows, n, self._stored_values, self.value_bytes, out, stream, flags, absent)

    def _gather(
        self,
        rows: int,
        n: int,
        stored: StoredRows,
        width: int,
        out: int,
        stream: Any,
        flags: int = 0,
        absent: int = 0,
    ) -> None:
        batch = RowBatch(n=n, row_bytes=width, numbers=rows, flags=flags, out_rows=out, default_row=absent)
        self._run("gather", stored, batch, stream)

    def _default_row(self, default: bytes, stream: Any) -> Buffer:
        """What a find gives for an absent key, in device memory. Finds that run together may each upload it."""
        kept = self._default
        if kept is None or kept[0] != default:
            row = self._engine.from_host(np.frombuffer(default, np.uint8).copy(), stream)
            self._default = kept = default, row
        return kept[1]

    def _run(self, entry: str, stored: StoredRows, batch: Launch, stream: Any) -> None:
        if batch.n:
            self._program.run(entry, stored, batch, batch.n, stream)


def _next_salt(salt: int) -> int:
    return (salt * 6364136223846793005 + 1442695040888963407) & ((1 << 64) - 1)
