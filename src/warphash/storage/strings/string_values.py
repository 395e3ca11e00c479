"""A storage whose values are strings: a storage of any kind for their numbers, and a `StringTable` that numbers them.

An update gives the strings of its batch numbers, and then updates the inner storage, whose transactions are those of
the table (`held_strings.py`). A find writes where the strings are. They stay there until the next update, so a reader
copies them while the table's lock is held.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ...runtime.engine import Buffer, Engine
from ..batch import Batch, MixedBatch
from ..bounded.bounded_rows import BoundedRows, Least
from ..bounded.policies import Policy
from ..rows import Rows
from ..slots import MemoryUse, Slots
from .bounded_strings import BoundedStrings
from .held_strings import HeldStrings
from .string_table import NO_NUMBER, NUMBER_BYTES, ROW_BYTES, StringTable, bytes_at

__all__ = ["ABSENT", "BoundedStringValues", "StringValues"]

ABSENT = NO_NUMBER.to_bytes(NUMBER_BYTES, "little")
"""The value of a key that is not there, of the inner storage."""


class StringValues:
    """Strings as values; of each, a row of 16 bytes with its address and its length.

    Parameters
    ----------
    strings
        Numbers the strings.
    inner
        Has the keys, and the numbers, uint32, as their values.
    """

    def __init__(self, strings: StringTable, inner: Rows) -> None:
        self.strings, self.inner = strings, inner
        self.rereads = inner.rereads
        self._held = HeldStrings(strings, inner, are_values=True)
        self._engine: Engine = inner.store.engine

    @property
    def store(self) -> Slots:
        return self.inner.store

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes + self.strings.nbytes

    def memory_use(self) -> MemoryUse:
        return self._held.memory_use()

    # ---- the operations of a storage
    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        if not values:
            self.inner.find(keys, n, 0, flags, ABSENT, stream)
            return
        numbers = self._held.numbers(n)
        self.inner.find(keys, n, numbers.ptr, flags, ABSENT, stream)
        self._write_rows(numbers, n, values, default)

    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        self.inner.present(keys, n, flags, stream)

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        self.inner.counts(keys, n, out, stream, entry)

    def update(self, batch: Batch, **ranking: int) -> None:
        """As `Rows.update`; ``ranking`` are options of `BoundedRows.update`."""
        n = batch.n
        numbers = self._held.intern(batch.values, n, batch.stream)
        held = self._held.numbers(n) if batch.held else None
        update: Any = self.inner.update  # of a bounded storage, if there is a ranking
        update(batch._replace(values=numbers.ptr, held=0 if held is None else held.ptr), **ranking)
        if held is not None:
            self._write_rows(held, n, batch.held, bytes(ROW_BYTES))

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        self.inner.erase(keys, n, flags, stream)

    def execute(self, batch: MixedBatch, default: bytes, stream: Any) -> None:
        n = batch.n
        given = self._held.intern(batch.values, n, stream) if batch.values else None
        numbers = self._held.numbers(n)
        some = batch._replace(values=0 if given is None else given.ptr, out_values=numbers.ptr)
        self.inner.execute(some, ABSENT, stream)
        self._write_rows(numbers, n, batch.out_values, default)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        return self._scan(room, out_keys, out_values, stream)

    def _scan(self, room: int, out_keys: int, out_values: int, stream: Any, *ranks: int) -> int:
        scan: Any = self.inner.scan  # of a bounded storage, if there are ranks
        if not out_values:
            return int(scan(room, out_keys, 0, stream, *ranks))
        numbers = self._held.numbers(room)
        found = int(scan(room, out_keys, numbers.ptr, stream, *ranks))
        self.strings.rows_of(numbers.ptr, min(found, room), out_values)
        return found

    def clear(self, stream: Any) -> None:
        self.inner.clear(stream)
        with suppress(MemoryError):  # the next search forgets them
            self.strings.clear()

    def rebuild(self, keys: int, stream: Any) -> None:
        self.inner.rebuild(keys, stream)
        self._held.collect(stream)

    def copy(self, stream: Any) -> StringValues:
        return StringValues(self._held.copied(stream), self.inner.copy(stream))

    def lost_values(self, stream: Any) -> int:
        """How many values are no strings; 0 is right. Waits."""
        numbers, n = self._held.live(stream)
        return self.strings.unknown(numbers.ptr, n)

    def _write_rows(self, numbers: Buffer, n: int, rows: int, default: bytes) -> None:
        """Write where the strings of numbers are; for no number, the row ``default``."""
        held: npt.NDArray[np.uint32] = bytes_at(numbers.ptr, n, NUMBER_BYTES).view(np.uint32).reshape(n)
        absent = held == NO_NUMBER
        if not absent.any():
            self.strings.rows_of(numbers.ptr, n, rows)
            return
        present = held[~absent]
        found = np.empty((len(present), ROW_BYTES), np.uint8)
        self.strings.rows_of(present.ctypes.data, len(present), found.ctypes.data)
        written = bytes_at(rows, n, ROW_BYTES)
        written[absent] = np.frombuffer(default, np.uint8)
        written[~absent] = found


class BoundedStringValues(StringValues):
    """As `StringValues`, of at most so many keys: to a table, what a `BoundedRows` is.

    A value leaves with its key: it is a string that nobody holds.

    See `StringValues` for the parameters; ``inner`` is bounded.
    """

    inner: BoundedRows | BoundedStrings

    @property
    def piece(self) -> int:
        return self.inner.piece

    @property
    def policy(self) -> Policy:
        return self.inner.policy

    @property
    def evicted(self) -> int:
        return self.inner.evicted

    @property
    def unused(self) -> StringValues:
        return StringValues(self.strings, self.inner.unused)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any, out_ranks: int = 0) -> int:
        return self._scan(room, out_keys, out_values, stream, out_ranks)

    def copy(self, stream: Any) -> BoundedStringValues:
        return BoundedStringValues(self._held.copied(stream), self.inner.copy(stream))

    # ---- keys that leave
    def least(self, n: int, stream: Any) -> Least:
        return self.inner.least(n, stream)

    def drop(self, keys: Buffer, n: int, stream: Any) -> None:
        self.inner.drop(keys, n, stream)
