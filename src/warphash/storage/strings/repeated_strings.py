"""What only a `MultiMap` asks, of keys that are strings: all pairs of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import TableFull
from ...runtime.engine import Buffer
from ..rows import AllValues
from .string_rows import StringRows
from .string_table import bytes_at, elements_without_nulls

if TYPE_CHECKING:
    from ..chains.repeated_keys import RepeatedKeys
    from ..groups.grouped_rows import GroupedRows

__all__ = ["RepeatedStrings"]


class RepeatedStrings:
    """Operations on all pairs of a string, as those of `RepeatedKeys` on the pairs of its number.

    Parameters
    ----------
    storage
        Of strings whose numbers repeat.
    numbers
        The operations on all pairs of a number.
    """

    def __init__(self, storage: StringRows, numbers: RepeatedKeys | GroupedRows) -> None:
        self._storage, self._numbers = storage, numbers

    def count(self, keys: int, n: int, out: int, stream: Any) -> None:
        """As `RepeatedKeys.count`."""
        numbers = self._storage.look_up(keys, n)
        self._numbers.count(numbers.ptr, n, out, stream)

    def groups(self, keys: int, n: int, stream: Any) -> npt.NDArray[np.uint32]:
        """A number for each key: elements of one key have one number, and others have others. The strings are kept."""
        return self._storage.numbers_of(keys, n, stream)

    def insert_runs(self, keys: int, values: int, n: int, stream: Any) -> None:
        """As `RepeatedKeys.insert_runs`; nulls that the table drops are left out."""
        numbers, width = self.groups(keys, n, stream), self._storage.value_bytes
        given = bytes_at(values, n, width)
        kept = elements_without_nulls(keys, n) if self._storage.drops_nulls else np.arange(n)
        if len(kept) < n:
            numbers, given = numbers[kept], given[kept]
        try:
            self._numbers.insert_runs(numbers.ctypes.data, given.ctypes.data, len(kept), stream)
        except TableFull as error:
            raise TableFull(str(error), None if error.keys is None else kept[error.keys]) from error

    def erase_all(self, keys: int, n: int, out: int, stream: Any) -> None:
        """As `RepeatedKeys.erase_all`."""
        numbers = self._storage.look_up(keys, n)
        self._numbers.erase_all(numbers.ptr, n, out, stream)

    def find_all(self, keys: int, n: int, offsets: int, stream: Any) -> AllValues:
        """As `RepeatedKeys.find_all`."""
        numbers = self._storage.look_up(keys, n)
        made = self._numbers.find_all(numbers.ptr, n, offsets, stream)

        def write(values: int, numbers: Buffer = numbers) -> None:  # which lists read again
            made.write(values)

        return AllValues(made.total, write)
