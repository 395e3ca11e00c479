"""Items that are kept to look others up: a table of their bytes, beside what is kept of nulls.

Strings need no table of rows. Their `StringTable` has a number for each, so an array leads from that number to a code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..arrays.row_type import MAX_KEY_BYTES
from ..errors import DtypeError
from ..runtime.devices import engine_for
from ..storage.strings.string_table import StringTable
from ..table.maps import HashMap, HashSet
from .comparable import as_type_of
from .items import Fixed, Items, Missing, Packed, Text, packed
from .numbered import Int64s

__all__ = ["KnownItems"]

_NO_NUMBER = 2**32 - 1
"""Of a string that a `StringTable` does not have."""


class KnownItems:
    """Distinct items, each with its code.

    Parameters
    ----------
    items
        The items, of which none repeats if there are codes.
    codes
        int64[n], none of them negative; None: the code of every item is 0.
    nan, null
        ``"one"``: NaN is found if it is there, and a null; ``"dropped"``: they are not.

    Raises
    ------
    DtypeError
        As `items.packed`, and for more bytes than a key has.
    MemoryError
        If there is no room.
    """

    def __init__(
        self, items: Items, codes: Int64s | None = None, *, nan: Missing = "one", null: Missing = "one"
    ) -> None:
        self._like = items._replace(array=items.array[:0], valid=None)  # the type alone
        self._nan = nan
        self._null_code = -1
        if null == "one" and items.valid is not None and not items.valid.all():
            self._null_code = 0 if codes is None else int(codes[int(np.argmin(items.valid))])
        self._engine = engine_for("cpu")
        self._strings: StringTable | None = None
        self._code_of_string: Int64s | None = None
        self._table: Any = None
        if isinstance(items, Text):
            self._keep_strings(items, codes)
        else:
            self._keep_rows(packed(self._engine, items, nan), codes)

    def _keep_strings(self, items: Text, codes: Int64s | None) -> None:
        rows = items.array if items.valid is None else np.ascontiguousarray(items.array[items.valid])
        numbers = np.empty(len(rows), np.uint32)
        self._strings = StringTable(self._engine, 0)
        self._strings.intern(address_of(rows), len(rows), address_of(numbers))
        if codes is not None:
            self._code_of_string = np.empty(self._strings.used, np.int64)
            self._code_of_string[numbers] = codes if items.valid is None else codes[items.valid]

    def _keep_rows(self, rows: Packed, codes: Int64s | None) -> None:
        if rows.width > MAX_KEY_BYTES:
            raise DtypeError(
                f"an item to be looked up has at most {MAX_KEY_BYTES} bytes, got {rows.width}: take a hash"
            )
        keys = _as_keys(rows)
        options: dict[str, Any] = {"device": "cpu"}
        if rows.width <= 8:  # of words, a table whose lookups are the fastest
            options["priorities"] = ("query",)
        if codes is None:
            self._table = HashSet.from_arrays(keys, **options)
        else:
            kept = codes if rows.kept is None else codes[rows.kept]
            self._table = HashMap.from_arrays(keys, kept, assume_unique=True, **options)

    def codes_of(self, items: Items) -> Int64s:
        """The code of each item, int64[n]; -1 for one that is not there."""
        codes = np.full(len(items.array), -1, np.int64)
        if items.valid is not None:
            codes[~items.valid] = self._null_code
        compared = as_type_of(items._replace(valid=None), self._like)
        if compared is None:
            return codes
        there = items.valid if compared.fits is None else _both(compared.fits, items.valid)
        if isinstance(compared.items, Text):
            found = self._codes_of_strings(compared.items.array if there is None else compared.items.array[there])
        else:
            rows = packed(self._engine, Fixed(compared.items.array, there), self._nan)
            there, found = rows.kept, self._codes_of_rows(_as_keys(rows))
        if there is None:
            return found
        codes[there] = found
        return codes

    def _codes_of_strings(self, rows: npt.NDArray[Any]) -> Int64s:
        assert self._strings is not None
        rows, numbers = np.ascontiguousarray(rows), np.empty(len(rows), np.uint32)
        self._strings.look_up(address_of(rows), len(rows), address_of(numbers))
        found = numbers != _NO_NUMBER
        codes = np.full(len(rows), -1, np.int64)
        if self._code_of_string is None:
            codes[found] = 0
            return codes
        codes[found] = self._code_of_string[numbers[found]]
        return codes

    def _codes_of_rows(self, keys: npt.NDArray[Any]) -> Int64s:
        if isinstance(self._table, HashMap):
            return np.asarray(self._table.find(keys, -1)[0], np.int64)
        return np.where(self._table.contains(keys), np.int64(0), np.int64(-1))


def _both(fits: npt.NDArray[np.bool_], valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
    return fits if valid is None else fits & valid


def _as_keys(rows: Packed) -> npt.NDArray[Any]:
    """Rows of bytes as keys of a table: integers, if they are as wide."""
    kind = "u" if rows.width in (1, 2, 4, 8) else "V"
    return np.ascontiguousarray(rows.rows).reshape(-1).view(np.uint8).view(f"{kind}{rows.width}")
