"""Keys or values wider than a word: the slot holds a fingerprint of the key and the number of its row.

Layout. Key rows and value rows are two packed arrays beside the table; a value of up to 8 bytes takes a whole word
there, so that an upsert can combine it atomically. Only a key that is added takes a row, and an erased key gives its
row back (`row_numbers`). So there are as many rows as keys; and, while an update runs, a row for each of its elements
whose key is absent, of which several may have one key.

An update, in steps. A `TableFull` or `MemoryError` in any of them leaves the table as it was.

1. Look up the keys. Elements whose keys are absent take rows, and their keys and values are written there.
2. Enter the fingerprints with the numbers of these rows into the table. Elements that added no key give them back.
3. Overwrite, or combine, the values of the keys that were there.

Fingerprints have 64 bits and a salt. Two keys of one fingerprint are never in the table together: an update that meets
another key under its fingerprint is taken back, and runs again after the store has drawn a new salt and loaded itself
anew (of 40 tables of 10^9 keys, one). So a find whose fingerprint matches a row of another key is a find of an absent
key, with no second look.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import TableFull, UnsupportedVerb
from ..runtime.abi import Batch, Op, Table
from ..runtime.engine import Buffer, Engine
from ..runtime.source import ROWS
from .buckets.growth import ElasticStore
from .buckets.memory import MemoryUse
from .row_numbers import Numbers, RowNumbers
from .scratch import flags_at

__all__ = ["RowBacking"]

_FIRST_ROOM = 1024
"""Rows that a table has room for from its first batch on, if it is meant for so many keys."""

_MOST_ROOM = 4
"""Rows for each key that the table is meant for: with room for more, the rows are packed."""

Flags = npt.NDArray[np.bool_]


class RowBacking:
    """Packed rows of any width, on an `ElasticStore` of fingerprints.

    Parameters
    ----------
    key_bytes, value_bytes
        Width of a row; ``value_bytes`` may be 0.
    """

    def __init__(self, elastic: ElasticStore, key_bytes: int, value_bytes: int) -> None:
        self.elastic = elastic
        self.key_bytes, self.value_bytes = key_bytes, value_bytes
        self._value_stride = value_bytes if value_bytes > 8 else (0, 4, 8)[-(-value_bytes // 4)]
        self._program = self._engine.program(ROWS)
        self._salt = 0x9E3779B97F4A7C15 ^ elastic.store.seed
        self._numbers = RowNumbers()
        self._room = 0
        self._key_rows: Buffer = self._engine.allocate(1)
        self._value_rows: Buffer = self._engine.allocate(1)

    @property
    def _engine(self) -> Engine:
        return self.elastic.store.engine

    @property
    def nbytes(self) -> int:
        return self.elastic.store.nbytes + self._key_rows.nbytes + self._value_rows.nbytes

    def memory_use(self) -> MemoryUse:
        use, row_bytes = self.elastic.store.memory_use(), self.key_bytes + self._value_stride
        rows = self._numbers.taken
        return MemoryUse(use.in_use + rows * row_bytes, use.reserve + (self._room - rows) * row_bytes, use.nodes)

    # ---- the operations of a backing
    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        held = None if flags else self._engine.allocate(n, stream)
        found = held.ptr if held else flags
        rows = self._engine.allocate(8 * max(1, n), stream)
        self._find_rows(self._fingerprints(keys, n, stream), keys, n, rows.ptr, found, stream)
        if values:
            absent = self._engine.from_host(np.frombuffer(default, np.uint8).copy(), stream)
            self._gather(
                rows.ptr, n, self._value_rows, self.value_bytes, self._value_stride, values, found, absent, stream
            )

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        prints = self._fingerprints(keys, n, stream)
        self.elastic.store.find(prints.ptr, n, 0, 0, 0, stream, counts=out, entry=entry)

    def update(
        self, keys: int, values: int, n: int, *, op: Op, kind: int, flags: int, held: int, unique: bool, stream: Any
    ) -> None:
        if op not in (Op.KEEP, Op.REPLACE) and self.value_bytes not in (4, 8):
            raise UnsupportedVerb(
                "beside keys of more than 8 bytes, upsert combines values of 4 or 8 bytes: widen them"
            )
        if n == 0:
            return
        flags, _own_flags = flags_at(self._engine, flags, n, stream)
        while not self._try_to_update(keys, values, n, op, kind, flags, held, unique, stream):
            self._reload(self.elastic.capacity, _next_salt(self._salt), stream)
        self._trim(stream)

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        if n == 0:
            return
        engine = self._engine
        prints, rows, found = self._fingerprints(keys, n, stream), *(engine.allocate(m * n, stream) for m in (8, 1))
        self._find_rows(prints, keys, n, rows.ptr, found.ptr, stream)
        only = np.flatnonzero(engine.to_host(found.ptr, np.uint8, n, stream))
        numbers = engine.to_host(rows.ptr, np.uint64, n, stream)
        engine.fill(flags, 0, n, stream)
        self.elastic.erase(prints.ptr, n, flags, only, stream)
        self._numbers.give_back(numbers[engine.to_host(flags, np.bool_, n, stream)])
        self._trim(stream)

    def execute(
        self, operations: int, keys: int, values: int, n: int, out: int, flags: int, default: bytes, stream: Any
    ) -> None:
        """Raise: a row cannot be read, or changed, in the moment in which its slot is."""
        raise UnsupportedVerb("execute takes keys and values of up to 8 bytes, which lie in the slots themselves")

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        numbers = self._engine.allocate(8 * max(1, room), stream)
        found = self.elastic.store.scan(room, 0, numbers.ptr, stream)
        n = min(found, room)
        if out_keys:
            self._gather(numbers.ptr, n, self._key_rows, self.key_bytes, self.key_bytes, out_keys, 0, None, stream)
        if out_values:
            width, stride = self.value_bytes, self._value_stride
            self._gather(numbers.ptr, n, self._value_rows, width, stride, out_values, 0, None, stream)
        return found

    def clear(self, stream: Any) -> None:
        self.elastic.clear(stream)
        self._numbers = RowNumbers()

    def rebuild(self, keys: int, stream: Any) -> None:
        keys = max(keys, self.elastic.size)
        self._reload(keys, self._salt, stream, room=keys)

    # ---- updates
    def _try_to_update(
        self, keys: int, values: int, n: int, op: Op, kind: int, flags: int, held: int, unique: bool, stream: Any
    ) -> bool:
        """Update the table; or leave it as it was and return False, because two keys have one fingerprint."""
        engine = self._engine
        prints, rows = self._fingerprints(keys, n, stream), engine.allocate(8 * n, stream)
        same, chosen = engine.allocate(n, stream), engine.allocate(n, stream)

        def are_there() -> Flags:
            self._find_rows(prints, keys, n, rows.ptr, same.ptr, stream)
            return engine.to_host(same.ptr, np.bool_, n, stream)

        there = are_there() if self.elastic.size and not unique else np.zeros(n, np.bool_)
        numbers, added = self._add(prints, keys, values, n, ~there, flags, unique, stream)
        # Behind this line nothing is allocated: the keys are in.
        if not (there | added).all():  # several elements of one new key; or two keys of one fingerprint
            there = are_there()
            if not there.all():
                self.elastic.erase(prints.ptr, n, 0, np.flatnonzero(added), stream)
                self._numbers.give_back(numbers[added])
                return False
        if op != Op.KEEP and not added.all():
            self._overwrite(rows, values, n, op, kind, there & ~added, chosen, stream)
        if held:
            if added.any():
                are_there()
            self._gather(rows.ptr, n, self._value_rows, self.value_bytes, self._value_stride, held, 0, None, stream)
        return True

    def _add(
        self, prints: Buffer, keys: int, values: int, n: int, absent: Flags, flags: int, unique: bool, stream: Any
    ) -> tuple[Numbers, Flags]:
        """Enter the elements whose keys are absent: the rows that they were offered, and who added its key."""
        engine, which = self._engine, np.flatnonzero(absent)
        numbers = np.zeros(n, np.uint64)
        if not len(which):
            engine.fill(flags, 0, n, stream)
            return numbers, absent
        self._reserve(len(which), stream)
        size, taken = self.elastic.size, self._numbers.take(len(which))
        numbers[which] = taken
        try:
            held, new = engine.from_host(numbers, stream), engine.from_host(absent, stream)
            # Before the slots: whoever sees a row's number there sees the row.
            self._scatter(held.ptr, n, keys, self.key_bytes, self._key_rows, self.key_bytes, new.ptr, stream)
            if self.value_bytes:
                width, stride = self.value_bytes, self._value_stride
                self._scatter(held.ptr, n, values, width, self._value_rows, stride, new.ptr, stream)
            # A table of the slots alone may be told to keep what is there: values lie in the rows.
            self.elastic.update(prints.ptr, held.ptr, n, flags=flags, unique=unique, stream=stream)
        except (TableFull, MemoryError):
            if self.elastic.size == size:
                self._numbers.give_back(taken)
            raise
        added = engine.to_host(flags, np.bool_, n, stream)
        self._numbers.give_back(taken[~added[which]])
        return numbers, added

    def _overwrite(
        self, rows: Buffer, values: int, n: int, op: Op, kind: int, which: Flags, chosen: Buffer, stream: Any
    ) -> None:
        """Apply ``op`` to the values of some elements; ``chosen`` has room for a flag of each element."""
        if op == Op.REPLACE:  # one element for each row, so that its bytes are one value's
            numbers = self._engine.to_host(rows.ptr, np.uint64, n, stream)
            there = np.flatnonzero(which)
            _, last = np.unique(numbers[there][::-1], return_index=True)
            which = np.zeros(n, np.bool_)
            which[there[::-1][last]] = True
        self._engine.upload(chosen.ptr, which, stream)
        if op == Op.REPLACE:
            self._scatter(
                rows.ptr, n, values, self.value_bytes, self._value_rows, self._value_stride, chosen.ptr, stream
            )
            return
        batch = Batch(
            n=n,
            keys=values,
            op=self.value_bytes,
            values=rows.ptr,
            kind=kind,
            default_value=self._value_stride,
            claim_mask=int(op),
            source_buckets=self._value_rows.ptr,
            out_flags=chosen.ptr,
        )
        self._program.run("merge", Table(), batch, n, stream)

    # ---- memory of rows
    def _reserve(self, n: int, stream: Any) -> None:
        """Room for ``n`` more rows; raises `MemoryError` if there is none, and all is as it was."""
        wanted = self._numbers.end_with(n)
        if wanted <= self._room:
            return
        room = max(wanted, 2 * self._room, min(_FIRST_ROOM, self.elastic.capacity))
        try:
            keys, values = self._memory_of(room, stream)
        except MemoryError:
            room = wanted
            keys, values = self._memory_of(room, stream)
        self._engine.copy(keys.ptr, self._key_rows.ptr, self._numbers.end * self.key_bytes, stream)
        self._engine.copy(values.ptr, self._value_rows.ptr, self._numbers.end * self._value_stride, stream)
        self._key_rows, self._value_rows, self._room = keys, values, room

    def _memory_of(self, rows: int, stream: Any) -> tuple[Buffer, Buffer]:
        """For keys and values of so many rows."""
        allocate = self._engine.allocate
        return allocate(max(1, rows * self.key_bytes), stream), allocate(max(1, rows * self._value_stride), stream)

    def _trim(self, stream: Any) -> None:
        """Pack the rows if too many are dead, and there is memory to do so.

        There may be room for many more than the table is meant for, after a batch that repeats its new keys often or an
        erase that made the table smaller; and an interrupted update keeps the rows that it took.
        """
        size, capacity = self.elastic.size, self.elastic.capacity
        if self._room > _MOST_ROOM * max(size, capacity) or self._numbers.taken > size:
            with suppress(MemoryError, TableFull):
                self._reload(capacity, self._salt, stream)

    def _reload(self, capacity: int, salt: int, stream: Any, room: int = 0) -> None:
        """Pack the live rows and enter them into a new store, under a salt that tells different keys apart.

        Of equal keys, which ``unique`` may have brought in, one stays: no salt tells them apart.

        Parameters
        ----------
        capacity
            Keys that the new store is for.
        room
            Rows to have room for; those of the live keys by default.
        """
        engine, n = self._engine, self.elastic.size
        room = max(n, room)
        old = engine.allocate(8 * max(1, n), stream)
        self.elastic.store.scan(n, 0, old.ptr, stream)
        keys, values = self._memory_of(room, stream)
        width, stride = self.key_bytes, self._value_stride
        self._gather(old.ptr, n, self._key_rows, width, width, keys.ptr, 0, None, stream)
        if stride:
            self._gather(old.ptr, n, self._value_rows, stride, stride, values.ptr, 0, None, stream)
        numbers = engine.from_host(np.arange(max(1, n), dtype=np.uint64), stream)
        while True:
            elastic = self.elastic.sibling(capacity, stream)
            prints = self._fingerprints(keys.ptr, n, stream, salt)
            elastic.update(prints.ptr, numbers.ptr, n, stream=stream)
            if elastic.size == n or self._all_match(elastic, keys, prints, n, stream):
                break
            salt = _next_salt(salt)
        elastic.rebuilds = self.elastic.rebuilds + 1
        elastic.probes, elastic.inserted = self.elastic.probes, self.elastic.inserted
        self.elastic, self._salt = elastic, salt
        self._key_rows, self._value_rows, self._room, self._numbers = keys, values, room, RowNumbers(n)

    # ---- kernels
    def _fingerprints(self, keys: int, n: int, stream: Any, salt: int | None = None) -> Buffer:
        prints = self._engine.allocate(8 * max(1, n), stream)
        salt = self._salt if salt is None else salt
        batch = Batch(n=n, keys=keys, op=self.key_bytes, random=salt, out_keys=prints.ptr)
        self._run("fingerprint", batch, stream)
        return prints

    def _find_rows(self, prints: Buffer, keys: int, n: int, rows: int, flags: int, stream: Any) -> None:
        """Write the row number of each key to ``rows``, and to ``flags`` which of the keys are there."""
        self._match(self.elastic, self._key_rows, prints, keys, n, rows, flags, stream)

    def _match(
        self,
        elastic: ElasticStore,
        key_rows: Buffer,
        prints: Buffer,
        keys: int,
        n: int,
        rows: int,
        flags: int,
        stream: Any,
    ) -> None:
        """As `_find_rows`, of any store of fingerprints and the rows of its keys."""
        elastic.store.find(prints.ptr, n, rows, flags, 0, stream)
        batch = Batch(
            n=n,
            keys=keys,
            op=self.key_bytes,
            kind=self.key_bytes,
            values=rows,
            source_buckets=key_rows.ptr,
            out_flags=flags,
        )
        self._run("match", batch, stream)

    def _all_match(self, elastic: ElasticStore, key_rows: Buffer, prints: Buffer, n: int, stream: Any) -> bool:
        """Whether each of these keys has its own fingerprint in the store, alone or with keys that equal it."""
        rows, flags = (self._engine.allocate(width * n, stream) for width in (8, 1))
        self._match(elastic, key_rows, prints, key_rows.ptr, n, rows.ptr, flags.ptr, stream)
        return bool(self._engine.to_host(flags.ptr, np.uint8, n, stream).all())

    def _gather(
        self,
        numbers: int,
        n: int,
        rows: Buffer,
        width: int,
        stride: int,
        out: int,
        flags: int,
        absent: Buffer | None,
        stream: Any,
    ) -> None:
        batch = Batch(
            n=n,
            values=numbers,
            op=width,
            kind=stride,
            source_buckets=rows.ptr,
            out_values=out,
            out_flags=flags,
            default_value=absent.ptr if absent else 0,
        )
        self._run("gather", batch, stream)

    def _scatter(
        self, numbers: int, n: int, source: int, width: int, rows: Buffer, stride: int, flags: int, stream: Any
    ) -> None:
        batch = Batch(n=n, keys=source, values=numbers, op=width, kind=stride, source_buckets=rows.ptr, out_flags=flags)
        self._run("scatter", batch, stream)

    def _run(self, entry: str, batch: Batch, stream: Any) -> None:
        if batch.n:
            self._program.run(entry, Table(), batch, batch.n, stream)


def _next_salt(salt: int) -> int:
    return (salt * 6364136223846793005 + 1442695040888963407) & ((1 << 64) - 1)
