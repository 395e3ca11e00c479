"""A storage whose keys are strings: a `StringTable` that numbers them, and a storage of any design for the numbers.

An update gives the strings of its batch numbers, and updates the numbers. If it stops in between, or the batch does not
fit, there are strings whose number is no key. They are no keys of the table, and are forgotten later
(`held_strings.py`). So the inner storage alone decides what the table holds, and its transactions are those of the
table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import TableFull, UnsupportedVerb
from ...runtime.engine import Buffer, Engine
from ..batch import Batch, MixedBatch
from ..groups.table_numbers import Numbers, number_keys
from ..rows import Rows
from ..slots import MemoryUse, Slots
from .held_strings import HeldStrings
from .string_table import NUMBER_BYTES, ROW_BYTES, StringTable, bytes_at, elements_without_nulls

__all__ = ["StringRows"]


class StringRows:
    """Strings in, strings out; of each, a row of 16 bytes with its address and its length.

    Parameters
    ----------
    strings
        Numbers the strings.
    inner
        Holds the numbers, uint32, with their values.
    value_bytes
        Width of a value; 0 for none.
    drops_nulls
        Updates leave nulls out; otherwise all nulls are one key.
    left_out
        What an update writes as the value of a null that it leaves out; by default, zeros.
    """

    rereads = False  # rows and flags are the table's own

    def __init__(
        self,
        strings: StringTable,
        inner: Rows,
        value_bytes: int,
        *,
        drops_nulls: bool = False,
        left_out: bytes | None = None,
    ) -> None:
        self.strings, self.inner, self.value_bytes, self.drops_nulls = strings, inner, value_bytes, drops_nulls
        self.left_out = bytes(value_bytes) if left_out is None else left_out
        self._held = HeldStrings(strings, inner)
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
        numbers = self.look_up(keys, n)
        self.inner.find(numbers.ptr, n, values, flags, default, stream)

    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        numbers = self.look_up(keys, n)
        self.inner.present(numbers.ptr, n, flags, stream)

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        numbers = self.look_up(keys, n)
        self.inner.counts(numbers.ptr, n, out, stream, entry)

    def update(self, batch: Batch, **ranking: int) -> None:
        """As `Rows.update`; ``ranking`` are options of `BoundedRows.update`."""
        if self.drops_nulls and len(kept := elements_without_nulls(batch.keys, batch.n)) < batch.n:
            self._update_some(kept, batch, ranking)
            return
        self._update_all(batch, ranking)

    def _update_all(self, batch: Batch, ranking: Mapping[str, int]) -> None:
        if not self.value_bytes and not batch.flags and self._holds_all_strings(batch.stream):
            self._insert_new(batch)
            return
        numbers = self._held.intern(batch.keys, batch.n, batch.stream)
        update: Any = self.inner.update  # of a `BoundedRows`, if there is a ranking
        update(batch._replace(keys=numbers.ptr), **ranking)

    def _holds_all_strings(self, stream: Any) -> bool:
        """Whether every string that has a number is a key."""
        self.store.finish(stream)
        return self.strings.used == self.store.size

    def _insert_new(self, batch: Batch) -> None:
        """Insert keys without values, where every string that has a number is a key: those that get a number now."""
        new = self.strings.add(batch.keys, batch.n)
        try:
            self.inner.update(batch._replace(keys=new.ctypes.data, n=len(new), held=0, unique=True))
        except TableFull as error:
            if error.keys is not None:
                error.keys = self._first_with(new[error.keys], batch.keys, batch.n)
            raise

    def _first_with(self, numbers: npt.NDArray[np.uint32], keys: int, n: int) -> npt.NDArray[np.intp]:
        """For each number, the first of ``n`` strings that has it."""
        held = self.look_up(keys, n)
        of_strings, first = np.unique(self._engine.to_host(held.ptr, np.uint32, n), return_index=True)
        return first[np.searchsorted(of_strings, numbers)]

    def number(self, batch: Batch, numbers: Numbers) -> None:
        """As `number_keys`. Nulls that are left out hold zeros, and have no flag."""
        kept = elements_without_nulls(batch.keys, batch.n) if self.drops_nulls else None
        if kept is not None and len(kept) < batch.n:
            self._do_some(kept, batch, lambda some: self._number_all(some, numbers))
        else:
            self._number_all(batch, numbers)

    def _number_all(self, batch: Batch, numbers: Numbers) -> None:
        held = self._held.intern(batch.keys, batch.n, batch.stream)
        number_keys(self.inner, batch._replace(keys=held.ptr), numbers._replace(key_bytes=NUMBER_BYTES))

    def _update_some(self, kept: npt.NDArray[np.intp], batch: Batch, ranking: Mapping[str, int]) -> None:
        """Update by some elements of a batch. The others have no flag, and hold ``left_out``."""
        ranked = self._ranking_of(kept, batch.n, ranking)
        chosen = {**ranking, **{name: array.ctypes.data for name, array in ranked.items()}}
        self._do_some(kept, batch, lambda some: self._update_all(some, chosen))

    def _do_some(self, kept: npt.NDArray[np.intp], batch: Batch, work: Callable[[Batch], None]) -> None:
        """Do ``work`` for some elements of a batch. The others have no flag, and hold ``left_out``."""
        n = batch.n
        rows = bytes_at(batch.keys, n, ROW_BYTES)[kept]
        chosen = bytes_at(batch.values, n, self.value_bytes)[kept]
        done = np.zeros((len(kept), 1), np.uint8)
        found = np.zeros((len(kept), self.value_bytes), np.uint8)
        pairs = ((chosen, batch.values), (done, batch.flags), (found, batch.held))
        values, flags, held = (array.ctypes.data if given else 0 for array, given in pairs)
        some = batch._replace(keys=rows.ctypes.data, values=values, n=len(kept), flags=flags, held=held)
        try:
            work(some)
        except TableFull as error:
            raise TableFull(str(error), None if error.keys is None else kept[error.keys]) from error
        for out, answers, others in ((batch.flags, done, b"\0"), (batch.held, found, self.left_out)):
            if out:
                answered = bytes_at(out, n, len(others))
                answered[:] = np.frombuffer(others, np.uint8)
                answered[kept] = answers

    @staticmethod
    def _ranking_of(kept: npt.NDArray[np.intp], n: int, ranking: Mapping[str, int]) -> dict[str, npt.NDArray[np.uint8]]:
        """The scores and ranks of some elements of a batch."""
        widths = {"scores": (ranking.get("score_kind", 0) >> 8) // 8, "ranks": 8}
        return {name: bytes_at(ranking[name], n, width)[kept] for name, width in widths.items() if ranking.get(name)}

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        numbers = self.look_up(keys, n)
        self.inner.erase(numbers.ptr, n, flags, stream)

    def execute(self, batch: MixedBatch, default: bytes, stream: Any) -> None:
        if self.drops_nulls and len(elements_without_nulls(batch.keys, batch.n)) < batch.n:
            raise UnsupportedVerb("execute leaves no nulls out: drop them first, or call insert, find and erase")
        numbers = self._held.intern(batch.keys, batch.n, stream)
        self.inner.execute(batch._replace(keys=numbers.ptr), default, stream)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        size = self.store.size
        # Without values there is no order to keep, and the strings of all numbers lie one behind the other.
        if out_keys and not self.value_bytes and size <= room and self.strings.all_rows(size, out_keys):
            return size
        numbers = self._held.numbers(room)
        found = self.inner.scan(room, numbers.ptr if out_keys else 0, out_values, stream)
        if out_keys:
            self.strings.rows_of(numbers.ptr, min(found, room), out_keys)
        return found

    def clear(self, stream: Any) -> None:
        self.inner.clear(stream)
        with suppress(MemoryError):  # the next search forgets them
            self.strings.clear()

    def rebuild(self, keys: int, stream: Any) -> None:
        self.inner.rebuild(keys, stream)
        self._held.collect(stream)

    def copy(self, stream: Any) -> StringRows:
        strings = self._held.copied(stream)
        return StringRows(strings, self.inner.copy(stream), self.value_bytes, **self._rules)

    @property
    def _rules(self) -> dict[str, Any]:
        return {"drops_nulls": self.drops_nulls, "left_out": self.left_out}

    # ---- strings and numbers
    def look_up(self, keys: int, n: int) -> Buffer:
        """The numbers of strings."""
        return self._held.look_up(keys, n)

    def numbers_of(self, keys: int, n: int, stream: Any) -> npt.NDArray[np.uint32]:
        """The numbers of strings, which all have one then, in host memory."""
        numbers = self._held.intern(keys, n, stream)
        return self._engine.to_host(numbers.ptr, np.uint32, n)
