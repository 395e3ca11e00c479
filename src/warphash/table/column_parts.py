"""One column of keys of several columns: read as bytes or as strings, and made of them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.read_column import read_column
from ..arrays.arrow_values import Items, Valid
from ..arrays.cast import Fits
from ..arrays.decimals import decimal_of, decimal_scale
from ..arrays.key_column import text_of
from ..arrays.library import ArrayView
from ..arrays.nullable_column import NullableColumn
from ..arrays.plain_array import listed_objects
from ..arrays.row_type import Column
from ..arrays.strings import NULL_LENGTH, StringArray, rows_of
from ..runtime.devices import engine_for
from ..runtime.engine import Engine
from ..storage.strings.packed_rows import Fixed, Strings
from ..storage.strings.string_table import packed

__all__ = [
    "Part",
    "check_part",
    "encoder_of",
    "host_of",
    "length_of",
    "part_of",
    "string_array",
    "values_of",
    "with_nulls",
]

Part = Fixed | Strings
"""A column of rows."""


def part_of(item: Column, given: Any) -> tuple[Part, Fits]:
    """A column of a caller, and which of its items the type has; None if it has all."""
    if isinstance(given, Items):
        return _of_stored(item, given), None
    if not isinstance(item, NullableColumn):
        seen, fits = item.elements(given)
        rows = host_of(seen).reshape(-1).view(np.uint64).reshape(-1, 2)
        valid = rows[:, 1] != NULL_LENGTH
        return Strings(rows, None if valid.all() else valid, seen), None if fits is None else fits.reshape(-1)
    keys = item.apart(_listed(_as_numbers(item, given)))
    fits = None if keys.fits is None else np.asarray(keys.fits).reshape(-1)
    return _fixed(keys.values, keys.valid), fits


def _of_stored(item: Column, given: Items) -> Part:
    """A column of a file, whose bytes may be any."""
    assert isinstance(item, NullableColumn) and item.items is not None
    part = _fixed(host_of(item.items.view(given.array, "keys")), None)
    return part if given.valid is None else with_nulls(part, given.valid)


def check_part(item: Column, given: Any) -> None:
    """Raise the error of a table of one column for a value that its type does not have."""
    item.see(_listed(_as_numbers(item, given)) if isinstance(item, NullableColumn) else given)


def _as_numbers(item: NullableColumn, given: Any) -> Any:
    """A column of decimal numbers of another scale as a list of numbers; other columns as they are."""
    assert item.items is not None
    scale = decimal_scale(item.items.dtype)
    if scale is None or isinstance(given, list):
        return given
    read = Items(given) if isinstance(given, np.ndarray) else read_column(given)
    if read is None or decimal_scale(read.array.dtype) in (None, scale) or not read.array.shape:
        return given
    valid = np.ones(len(read.array), np.bool_) if read.valid is None else read.valid
    made = map(decimal_of, read.array)
    return [number if is_valid else None for number, is_valid in zip(made, valid, strict=True)]


def _listed(given: Any) -> Any:
    """A column of Python objects, or of strings, as a list, whose items are read one by one; others as they are."""
    if (objects := listed_objects(given)) is not None:
        return objects
    text = None if isinstance(given, list | str | bytes) else text_of(given)
    if text is None:
        return given
    rows = rows_of(given, text)
    held = Strings(rows.rows.view(np.uint64).reshape(-1, 2), None, rows)
    return string_array(engine_for("cpu"), held, is_text=text).tolist()


def _fixed(values: npt.NDArray[Any], valid: Valid) -> Fixed:
    """The bytes of items, of which equal items have equal ones."""
    if values.dtype.kind == "b":  # any byte but 0 is True
        values = values.view(np.uint8) != 0
    items = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    return Fixed(items, None if valid is None or valid.all() else valid)


def values_of(part: Fixed, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The items of a column; zeros for nulls."""
    return part.items.reshape(-1).view(dtype)


def string_array(engine: Engine, part: Strings, *, is_text: bool) -> StringArray:
    """The strings of a column, in memory of their own."""
    rows = np.ascontiguousarray(part.rows)
    offsets, data, valid = packed(engine, rows.ctypes.data, len(rows))
    return StringArray(offsets, data, is_text, valid)


def with_nulls(part: Part, valid: npt.NDArray[np.bool_]) -> Part:
    """A column whose items of some rows are nulls, too."""
    both = valid if part.valid is None else valid & part.valid
    if isinstance(part, Strings):
        return part._replace(valid=both)
    return Fixed(np.where(both[:, None], part.items, np.uint8(0)), both)


def length_of(part: Part) -> int:
    """Number of items."""
    return len(part.items if isinstance(part, Fixed) else part.rows)


def host_of(seen: ArrayView) -> npt.NDArray[Any]:
    """The memory of a view in host memory."""
    assert seen.host is not None
    return seen.host


def encoder_of(dtype: np.dtype[Any]) -> Callable[[Any], bytes | None]:
    """What makes the bytes of a plain Python value of a column; None for other values."""
    if not dtype.itemsize and dtype.kind == "U":
        return lambda item: item.encode() if type(item) is str and item.isascii() else None
    if not dtype.itemsize:
        return lambda item: item if type(item) is bytes else None
    if dtype.kind not in "iu":
        return lambda item: None
    width, bounds = dtype.itemsize, np.iinfo(dtype)
    low, high, signed = int(bounds.min), int(bounds.max), dtype.kind == "i"

    def encode(item: Any) -> bytes | None:
        fits = type(item) is int and low <= item <= high
        return item.to_bytes(width, "little", signed=signed) if fits else None

    return encode
