"""The items of an array or a column in host memory, as rows of bytes that are equal exactly if the items are.

`numbering.number` compares bytes. Most types need nothing for that. Floating-point numbers do: -0.0 equals 0.0, and NaN
has many patterns. So their rows are a copy, in which equal numbers have one pattern. Strings of any length are numbered
first (`StringTable`), and their numbers are the rows.

Nulls, and NaN where the caller has a rule for it, are no rows. `numbered.number_items` puts them back.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..arrays.arrow_values import Names, Valid, both
from ..arrays.key_types import check_key_type, packed_type
from ..arrays.strings import NULL_LENGTH, StringRows
from ..runtime.engine import Engine
from ..storage.strings.string_table import NUMBER_BYTES, StringTable

__all__ = [
    "Fixed",
    "Items",
    "Missing",
    "Packed",
    "Text",
    "are_absent",
    "may_be_nan",
    "nan_among",
    "nan_at",
    "packed",
    "text_items",
]

Missing = Literal["one", "apart", "dropped"]
"""What missing items are: all one key; each a key of its own; or no keys."""

_FLOATS, _WITH_NAN = "fc", "fcmM"
"""Kinds of types that are not equal by their bytes; and that have an item which is unequal to itself."""

_EXTENDED_BYTES = 10
"""Bytes of an x87 number that count. NumPy's longdouble has 12 or 16, the others are undefined."""


class Fixed(NamedTuple):
    """Items of a fixed width.

    Attributes
    ----------
    array
        A contiguous NumPy array of ``n`` items, or of ``n`` rows of items.
    valid
        Which items are no nulls, bool[n]; None if all are.
    names
        Of the items of a row; None if they have none.
    """

    array: npt.NDArray[Any]
    valid: Valid = None
    names: Names | None = None


class Text(NamedTuple):
    """Strings or bytes of any length.

    Attributes
    ----------
    array
        `strings.ROW` items: where each string is.
    valid
        As of `Fixed`.
    text
        They are strings; otherwise bytes.
    owner
        Keeps the strings alive.
    """

    array: npt.NDArray[Any]
    valid: Valid
    text: bool
    owner: Any


Items = Fixed | Text


def are_absent(items: Items) -> bool:
    """Whether all items are nulls, or there are no items. Their type then says nothing: an empty list has one, too."""
    return not len(items.array) if items.valid is None else not items.valid.any()


class Packed(NamedTuple):
    """Rows of bytes of those items that are keys.

    Attributes
    ----------
    rows
        A contiguous array with one row for each of these items.
    width
        Bytes of a row.
    kept
        Which items have a row, bool; None if all have.
    """

    rows: npt.NDArray[Any]
    width: int
    kept: npt.NDArray[np.bool_] | None


def text_items(rows: StringRows) -> Text:
    """Strings that were read of a column."""
    valid = None if not rows.nulls else rows.rows["length"] != NULL_LENGTH
    return Text(rows.rows, valid, rows.text, rows)


def nan_at(items: Items, positions: npt.NDArray[np.signedinteger[Any]]) -> npt.NDArray[np.bool_]:
    """Which of the items at some positions are NaN or NaT, and no nulls."""
    valid = None if items.valid is None else items.valid[positions]
    return nan_among(items._replace(array=items.array[positions], valid=valid))


def may_be_nan(items: Items) -> bool:
    """Whether items are of a type with NaN or NaT."""
    return not isinstance(items, Text) and items.array.dtype.kind in _WITH_NAN


def nan_among(items: Items) -> npt.NDArray[np.bool_]:
    """Which items are NaN or NaT, and no nulls."""
    if not may_be_nan(items):
        return np.zeros(len(items.array), np.bool_)
    made = _is_nan(items.array)
    return made if items.valid is None else made & items.valid


def packed(engine: Engine, items: Items, nan: Missing = "one") -> Packed:
    """Rows of bytes that are equal exactly if items are.

    Parameters
    ----------
    engine
        Of the CPU.
    nan
        Unless it is ``"one"``, items that are NaN or NaT have no row.

    Raises
    ------
    DtypeError
        For a type of numbers that NumPy does not have itself.
    MemoryError
        If there is no room.
    """
    if isinstance(items, Text):
        strings = items.array if items.valid is None else np.ascontiguousarray(items.array[items.valid])
        return Packed(_numbers_of(engine, strings), NUMBER_BYTES, items.valid)
    array, kept = items.array, items.valid
    kind = array.dtype.kind
    if nan != "one" and kind in _WITH_NAN:
        present = ~_is_nan(array)
        if not present.all():
            kept = both(kept, present)
    if kept is not None:
        array = array[kept]
    if kind not in "iumMSU":
        array = _with_one_pattern(array)
    width = array.dtype.itemsize * math.prod(array.shape[1:])
    return Packed(array, width, kept) if width else Packed(np.zeros(len(array), np.uint8), 1, kept)


def _is_nan(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which items, or rows with such an item, are NaN or NaT."""
    made: npt.NDArray[np.bool_] = np.isnan(array)
    return made if made.ndim == 1 else np.asarray(made.any(tuple(range(1, made.ndim))))


def _with_one_pattern(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Items of a type that has several patterns of bits for one value, as a copy with one pattern for each value."""
    dtype = array.dtype
    if dtype.names is not None:
        records = np.zeros(array.shape, packed_type(dtype))
        for name in dtype.names:
            records[name] = _with_one_pattern(array[name])
        return records
    if dtype.kind == "b":  # any byte but 0 is True
        return np.not_equal(array.view(np.uint8), 0)
    if dtype.kind in _FLOATS:
        return _with_one_nan(array)
    check_key_type(dtype)
    return array


def _with_one_nan(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of floating-point numbers in which 0.0 has no sign, and all NaN have one pattern of bits."""
    made: npt.NDArray[Any] = array + array.dtype.type(0)
    missing = made != made
    if missing.any():
        made[missing] = np.nan
    if array.dtype.char in "gG" and np.finfo(array.dtype).nmant == 63:
        parts = made.reshape(-1).view(np.uint8).reshape(-1, np.dtype(np.longdouble).itemsize)
        parts[:, _EXTENDED_BYTES:] = 0
    return made


def _numbers_of(engine: Engine, strings: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """A number for each string, equal for equal strings."""
    numbers = np.empty(len(strings), np.uint32)
    StringTable(engine, 0, borrows=True).intern(address_of(strings), len(strings), address_of(numbers))
    return numbers
