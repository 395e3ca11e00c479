"""Keys or values wider than a word: the slot holds a fingerprint of the key and the number of its row.

Layout. Key rows and value rows are two packed arrays beside the table; a value of up to 8 bytes takes a whole word
there, so that an upsert can combine it atomically. Rows are appended; an erased key leaves its row behind until more
than half of the rows are dead, when all are packed anew.

Fingerprints have 64 bits and a salt. Two keys of one fingerprint are never in the table together: an insert that meets
another key under its fingerprint makes the store draw a new salt and load itself anew (of 40 tables of 10^9 keys, one).
So a find whose fingerprint matches a row of another key is a find of an absent key, with no second look.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedVerb
from .abi import Batch, Op, Table
from .elastic import ElasticStore
from .engine import Buffer, Engine
from .scratch import flags_at
from .source import ROWS

__all__ = ["RowBacking"]


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
        self._used = 0
        self._room = 0
        self._key_rows: Buffer = self._engine.allocate(1)
        self._value_rows: Buffer = self._engine.allocate(1)

    @property
    def _engine(self) -> Engine:
        return self.elastic.store.engine

    @property
    def nbytes(self) -> int:
        return self.elastic.store.nbytes + self._key_rows.nbytes + self._value_rows.nbytes

    # ---- the operations of a backing
    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        held = None if flags else self._engine.allocate(n, stream)
        found = held.ptr if held else flags
        rows = self._rows_of(keys, n, found, stream)
        if values:
            absent = self._engine.from_host(np.frombuffer(default, np.uint8).copy(), stream)
            self._gather(
                rows.ptr, n, self._value_rows, self.value_bytes, self._value_stride, values, found, absent, stream
            )

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        prints = self._fingerprints(keys, n, stream)
        self.elastic.store.find(prints.ptr, n, 0, 0, 0, stream, counts=out, entry=entry)

    def update(
        self, keys: int, values: int, n: int, *, op: Op, kind: int, flags: int, unique: bool, stream: Any
    ) -> None:
        if op not in (Op.KEEP, Op.REPLACE) and self.value_bytes not in (4, 8):
            raise UnsupportedVerb(
                "beside keys of more than 8 bytes, upsert combines values of 4 or 8 bytes: widen them"
            )
        if n == 0:
            return
        flags, _own_flags = flags_at(self._engine, flags, n, stream)
        self._reserve(self._used + n, stream)
        numbers = self._engine.from_host(np.arange(self._used, self._used + n, dtype=np.uint64), stream)
        prints = self._fingerprints(keys, n, stream)
        # A table of the slots alone may be told to keep what is there: values lie in the rows.
        self.elastic.update(prints.ptr, numbers.ptr, n, flags=flags, unique=unique, stream=stream)
        self._used += n
        self._scatter(numbers.ptr, n, keys, self.key_bytes, self._key_rows, self.key_bytes, flags, stream)
        if self.value_bytes:
            self._scatter(numbers.ptr, n, values, self.value_bytes, self._value_rows, self._value_stride, flags, stream)
        added = self._engine.to_host(flags, np.uint8, n, stream)
        if added.all():
            return
        same = self._engine.allocate(n, stream)
        rows = self._rows_of(keys, n, same.ptr, stream)
        matched = self._engine.to_host(same.ptr, np.uint8, n, stream)
        if op != Op.KEEP:
            self._overwrite(rows, values, n, op, kind, matched & ~added & 1, stream)
        if not matched.all():
            self._update_colliding(keys, values, n, np.flatnonzero(matched == 0), op, kind, flags, stream)

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        if n == 0:
            return
        found = self._engine.allocate(n, stream)
        self._rows_of(keys, n, found.ptr, stream)
        only = np.flatnonzero(self._engine.to_host(found.ptr, np.uint8, n, stream))
        nothing = self._engine.from_host(np.zeros(n, np.uint8), stream)
        self._engine.copy(flags, nothing.ptr, n, stream)
        prints = self._fingerprints(keys, n, stream)
        self.elastic.erase(prints.ptr, n, flags, only, stream)

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
        self._used = 0

    def rebuild(self, keys: int, stream: Any) -> None:
        self._reload(max(keys, self.elastic.size), self._salt, stream)

    # ---- updates of keys that are there
    def _overwrite(
        self, rows: Buffer, values: int, n: int, op: Op, kind: int, which: npt.NDArray[np.uint8], stream: Any
    ) -> None:
        if op == Op.REPLACE:  # one element for each row, so that its bytes are one value's
            numbers = self._engine.to_host(rows.ptr, np.uint64, n, stream)
            there = np.flatnonzero(which)
            _, last = np.unique(numbers[there][::-1], return_index=True)
            which = np.zeros(n, np.uint8)
            which[there[::-1][last]] = 1
        flags = self._engine.from_host(which, stream)
        if op == Op.REPLACE:
            self._scatter(
                rows.ptr, n, values, self.value_bytes, self._value_rows, self._value_stride, flags.ptr, stream
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
            out_flags=flags.ptr,
        )
        self._program.run("merge", Table(), batch, n, stream)

    def _update_colliding(
        self, keys: int, values: int, n: int, which: npt.NDArray[np.intp], op: Op, kind: int, flags: int, stream: Any
    ) -> None:
        """Elements whose fingerprint another key of the table has: draw another salt, and update with them again."""
        engine = self._engine
        self._reload(self.elastic.capacity, self._salt * 6364136223846793005 + 1442695040888963407, stream)
        parts = []
        for at, width in ((keys, self.key_bytes), (values, self.value_bytes)):
            if width:
                rows = engine.to_host(at, np.uint8, n * width, stream).reshape(n, width)
                parts.append(engine.from_host(np.ascontiguousarray(rows[which]), stream))
        some = engine.allocate(len(which), stream)
        values_at = parts[1].ptr if self.value_bytes else 0
        self.update(parts[0].ptr, values_at, len(which), op=op, kind=kind, flags=some.ptr, unique=False, stream=stream)
        all_flags = engine.to_host(flags, np.uint8, n, stream)
        all_flags[which] = engine.to_host(some.ptr, np.uint8, len(which), stream)
        held = engine.from_host(all_flags, stream)
        engine.copy(flags, held.ptr, n, stream)

    # ---- memory of rows
    def _reserve(self, rows: int, stream: Any) -> None:
        if rows <= self._room:
            return
        if self._used > 2 * self.elastic.size:
            self._reload(self.elastic.capacity, self._salt, stream)
            rows -= self._room - self.elastic.size if rows > self._room else 0
        room = max(rows, 2 * self._room, 1024)
        keys = self._engine.allocate(room * self.key_bytes, stream)
        values = self._engine.allocate(max(1, room * self._value_stride), stream)
        self._engine.copy(keys.ptr, self._key_rows.ptr, self._used * self.key_bytes, stream)
        self._engine.copy(values.ptr, self._value_rows.ptr, self._used * self._value_stride, stream)
        self._key_rows, self._value_rows, self._room = keys, values, room

    def _reload(self, capacity: int, salt: int, stream: Any) -> None:
        """Pack the live rows and enter them into a new store, under a salt that tells different keys apart.

        Of equal keys, which ``unique`` may have brought in, one stays: no salt tells them apart.
        """
        engine, n = self._engine, self.elastic.size
        room = max(n, 1)
        old = engine.allocate(8 * room, stream)
        self.elastic.store.scan(n, 0, old.ptr, stream)
        keys = engine.allocate(room * self.key_bytes, stream)
        values = engine.allocate(max(1, room * self._value_stride), stream)
        width, stride = self.key_bytes, self._value_stride
        self._gather(old.ptr, n, self._key_rows, width, width, keys.ptr, 0, None, stream)
        if stride:
            self._gather(old.ptr, n, self._value_rows, stride, stride, values.ptr, 0, None, stream)
        numbers = engine.from_host(np.arange(room, dtype=np.uint64), stream)
        while True:
            salt &= (1 << 64) - 1
            elastic = self.elastic.sibling(capacity, stream)
            prints = self._fingerprints(keys.ptr, n, stream, salt)
            elastic.update(prints.ptr, numbers.ptr, n, stream=stream)
            if elastic.size == n or self._all_match(elastic, prints, keys, n, stream):
                break
            salt = salt * 6364136223846793005 + 1442695040888963407
        elastic.rebuilds = self.elastic.rebuilds + 1
        elastic.probes, elastic.inserted = self.elastic.probes, self.elastic.inserted
        self.elastic, self._salt = elastic, salt
        self._key_rows, self._value_rows, self._room, self._used = keys, values, n, n

    # ---- kernels
    def _fingerprints(self, keys: int, n: int, stream: Any, salt: int | None = None) -> Buffer:
        prints = self._engine.allocate(8 * max(1, n), stream)
        salt = (self._salt if salt is None else salt) & ((1 << 64) - 1)
        batch = Batch(n=n, keys=keys, op=self.key_bytes, random=salt, out_keys=prints.ptr)
        self._run("fingerprint", batch, stream)
        return prints

    def _rows_of(self, keys: int, n: int, flags: int, stream: Any) -> Buffer:
        """Row numbers of keys; ``flags`` says which of them are there."""
        prints = self._fingerprints(keys, n, stream)
        return self._matched(self.elastic, prints, self._key_rows, keys, n, flags, stream)

    def _matched(
        self, elastic: ElasticStore, prints: Buffer, key_rows: Buffer, keys: int, n: int, flags: int, stream: Any
    ) -> Buffer:
        """Row numbers under these fingerprints; ``flags`` says which of ``key_rows`` there have the key itself."""
        rows = self._engine.allocate(8 * max(1, n), stream)
        elastic.store.find(prints.ptr, n, rows.ptr, flags, 0, stream)
        batch = Batch(
            n=n,
            keys=keys,
            op=self.key_bytes,
            kind=self.key_bytes,
            values=rows.ptr,
            source_buckets=key_rows.ptr,
            out_flags=flags,
        )
        self._run("match", batch, stream)
        return rows

    def _all_match(self, elastic: ElasticStore, prints: Buffer, keys: Buffer, n: int, stream: Any) -> bool:
        """Whether each of these keys has its own fingerprint in the store, alone or with keys that equal it."""
        flags = self._engine.allocate(n, stream)
        self._matched(elastic, prints, keys, keys.ptr, n, flags.ptr, stream)
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
