"""The strings whose numbers a storage holds, as its keys or as its values.

A batch gives its strings numbers before the storage is updated with these. If the update stops in between, does not
fit, or keeps an older value, there are strings whose number nobody holds. So there are behind an erase, and where a
value is overwritten. `HeldStrings.intern` forgets such strings once they may be many, or long: which numbers are held
is found by a scan of the storage.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ...runtime.engine import Buffer, Engine
from ..rows import Rows
from ..slots import MemoryUse
from .string_table import NUMBER_BYTES, StringTable

__all__ = ["BYTES_TO_COLLECT", "FEWEST_TO_COLLECT", "HeldStrings"]

FEWEST_TO_COLLECT = 1 << 14
"""Strings that nobody holds, below which none are looked for on account of their number."""

BYTES_TO_COLLECT = 1 << 26
"""Bytes of strings that came since the last search, below which nothing is looked for on account of their length."""


class HeldStrings:
    """The strings of a storage.

    Parameters
    ----------
    strings
        Numbers the strings.
    holder
        Holds the numbers, uint32: as keys, each of which may come up several times, or as values.
    are_values
        The numbers are values.
    """

    def __init__(self, strings: StringTable, holder: Rows, *, are_values: bool = False) -> None:
        self.strings, self._holder, self._are_values = strings, holder, are_values
        self._engine: Engine = holder.store.engine

    def memory_use(self) -> MemoryUse:
        """As `Rows.memory_use`, of the storage and of the strings."""
        use, reserve = self._holder.memory_use(), self.strings.reserve_nbytes
        return use._replace(in_use=use.in_use + self.strings.nbytes - reserve, reserve=use.reserve + reserve)

    def look_up(self, rows: int, n: int) -> Buffer:
        """The numbers of strings; of a string that has none, `string_table.NO_NUMBER`."""
        numbers = self.numbers(n)
        self.strings.look_up(rows, n, numbers.ptr)
        return numbers

    def intern(self, rows: int, n: int, stream: Any) -> Buffer:
        """The numbers of strings, which all have one then."""
        if self._may_be_wasteful():
            with suppress(MemoryError):
                self.collect(stream)
        numbers = self.numbers(n)
        self.strings.intern(rows, n, numbers.ptr)
        return numbers

    def _may_be_wasteful(self) -> bool:
        """Whether strings that nobody holds may outnumber the others, or may take more bytes than all that is held.

        Between two searches, either the strings have doubled, or their bytes and those of the storage. So a search
        costs each string a constant time.
        """
        strings = self.strings
        if strings.used > 2 * self._holder.store.size + FEWEST_TO_COLLECT:
            return True
        fresh = strings.fresh_nbytes - BYTES_TO_COLLECT
        return fresh > 0 and fresh > strings.kept_nbytes + self._holder.nbytes

    def collect(self, stream: Any) -> None:
        """Forget the strings that nobody holds.

        Raises
        ------
        MemoryError
            If there is no room for a copy of the others; nothing has changed.
        """
        numbers, n = self.live(stream)
        self.strings.keep(numbers.ptr, n)

    def copied(self, stream: Any) -> StringTable:
        """A table with the strings that are held, which have the same numbers there."""
        numbers, n = self.live(stream)
        return self.strings.copy(numbers.ptr, n)

    def live(self, stream: Any) -> tuple[Buffer, int]:
        """The number of each pair, and how many pairs there are."""
        store = self._holder.store
        store.finish(stream)
        n = store.size
        numbers = self.numbers(n)
        keys, values = (0, numbers.ptr) if self._are_values else (numbers.ptr, 0)
        self._holder.scan(n, keys, values, stream)
        return numbers, n

    def numbers(self, n: int) -> Buffer:
        """Memory for ``n`` numbers."""
        return self._engine.allocate(max(1, n * NUMBER_BYTES))
