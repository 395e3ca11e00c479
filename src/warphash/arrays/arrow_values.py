"""Arrow data as NumPy arrays: columns of one width, exactly, or refused.

| Arrow | NumPy |
| --- | --- |
| integers, floats, booleans, dates, timestamps, durations | the type of the same name and unit |
| timestamps with a zone | `datetime64`, instants of UTC |
| times of the day | `timedelta64` since midnight |
| binary data of n bytes, UUID | `V` of n bytes |
| decimal numbers | `decimals.decimal_type` |
| lists of n items | rows of n items |
| structs of one type | rows, whose items have names |
| dictionaries, run-end encoded columns | as their values |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError
from .arrow import BOOL8, CODES, UUID, Chunk, check_extension
from .decimals import decimal_scale, decimal_type

__all__ = ["Frame", "Items", "Names", "Valid", "arrow_format", "both", "frame_or_items"]

Valid = npt.NDArray[np.bool_] | None
"""Which rows are no nulls; None if all are."""

Names = tuple[Any, ...]
"""The names of the items of a row."""


def both(one: Valid, other: Valid) -> Valid:
    """Which rows two masks have; None if both have all."""
    return one if other is None else other if one is None else one & other


_FLOATS = {"e": "f2", "f": "f4", "g": "f8"}
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


class Items(NamedTuple):
    """The values of a column.

    Attributes
    ----------
    array
        One item, or one row of items, for each; anything for nulls.
    valid
        Which are no nulls.
    names
        Of the items of a row; None if these have no names.
    """

    array: npt.NDArray[Any]
    valid: Valid = None
    names: Names | None = None


class Frame(NamedTuple):
    """Columns with names.

    Attributes
    ----------
    names
        Of the columns.
    columns
        The values of each.
    valid
        Which rows are no nulls as a whole.
    """

    names: Names
    columns: list[Items]
    valid: Valid = None

    def as_rows(self, dtype: np.dtype[Any] | None = None) -> Items:
        """The rows, if the columns are of one type, or ``dtype`` has the values of all of them.

        Raises
        ------
        DtypeError
            For columns of several types, for two columns of one name, and for nulls in a row that is none.
        """
        self._check()
        arrays = [column.array for column in self.columns]
        if dtype is not None and all(_holds(dtype, array.dtype) for array in arrays):
            arrays = [array.astype(dtype, copy=False) for array in arrays]
        if len(kinds := sorted({str(np.dtype((array.dtype, array.shape[1:]))) for array in arrays})) != 1:
            raise DtypeError(
                f"expected columns of one type, got {', '.join(kinds)}: convert the columns to one type, or make the "
                f"table of a structured type, such as {self._as_fields()}, which takes columns by their names"
            )
        return Items(np.stack(arrays, axis=1), self.valid, self.names)

    def as_records(self, dtype: np.dtype[Any]) -> Items:
        """The rows as items of a structured type, whose fields are the columns of the same names.

        Raises
        ------
        DtypeError
            As `as_rows`, and if the fields are others, or of types that do not hold the columns' values.
        """
        self._check()
        held = {str(name): column.array for name, column in zip(self.names, self.columns, strict=True)}
        if held.keys() != set(dtype.names or ()):
            raise DtypeError(
                f"expected columns named as the fields of {dtype}, got {', '.join(held)}: rename the columns"
            )
        made = np.zeros(len(self.columns[0].array), dtype)
        for name, column in held.items():
            base, shape = dtype[name].subdtype or (dtype[name], ())
            if column.shape[1:] != shape or not _holds(base, column.dtype):
                raise DtypeError(
                    f"column {name!r} must be {dtype[name]}, as the field of the table, got "
                    f"{np.dtype((column.dtype, column.shape[1:]))}: convert the column"
                )
            made[name] = column
        return Items(made, self.valid)

    def _as_fields(self) -> list[tuple[str, str]]:
        """A structured type for the rows, as far as fields have such types."""
        types = [column.array.dtype for column in self.columns]
        return [
            (str(name), "S16" if dtype.hasobject else dtype.str) for name, dtype in zip(self.names, types, strict=True)
        ]

    def _check(self) -> None:
        if not self.columns:
            raise DtypeError("expected columns, got none: give a table of at least one column")
        if len(set(self.names)) < len(self.names):
            repeated = next(name for name in self.names if self.names.count(name) > 1)
            raise DtypeError(
                f"expected columns that each have a name of their own, got {repeated!r} twice: rename the columns"
            )
        for name, column in zip(self.names, self.columns, strict=True):
            if column.valid is None:
                continue
            wrong = ~column.valid if self.valid is None else ~column.valid & self.valid
            if nulls := int(wrong.sum()):
                raise DtypeError(
                    f"expected rows without nulls in them, got {nulls:,} in column {name!r}: drop or fill the nulls "
                    "first"
                )


def _holds(wanted: np.dtype[Any], given: np.dtype[Any]) -> bool:
    """Whether a type has every value of another one, without a change of kind."""
    same = wanted.kind == given.kind or (wanted.kind in "iu" and given.kind in "iu")
    return wanted == given or (same and given.kind in "iuSU" and np.can_cast(given, wanted, "safe"))


# ---- Arrow data
def frame_or_items(chunks: Sequence[Chunk]) -> Items | Frame:
    """The values of a column in pieces; of a struct, its columns.

    Raises
    ------
    DtypeError
        For a type of which NumPy has no values of one width.
    """
    made: Items | Frame = _joined([_of_struct(chunk) if chunk.format == "+s" else _items(chunk) for chunk in chunks])
    return made


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    valid = _joined_valid([(part.valid, _length(part)) for part in parts])
    first = parts[0]
    if isinstance(first, Frame):
        columns = [_joined([part.columns[k] for part in parts]) for k in range(len(first.columns))]
        return Frame(first.names, columns, valid)
    return Items(np.concatenate([part.array for part in parts]), valid, first.names)


def _length(part: Items | Frame) -> int:
    if isinstance(part, Items):
        return len(part.array)
    return len(part.columns[0].array) if part.columns else 0


def _joined_valid(parts: list[tuple[Valid, int]]) -> Valid:
    if all(valid is None for valid, _ in parts):
        return None
    return np.concatenate([np.ones(n, np.bool_) if valid is None else valid for valid, n in parts])


def _of_struct(chunk: Chunk) -> Frame:
    check_extension(chunk.extension)
    names = tuple(child.name for child in chunk.children)
    return Frame(names, [_items(chunk.child(k)) for k in range(len(names))], chunk.valid)


def _items(chunk: Chunk) -> Items:
    """The values of a piece."""
    if chunk.dictionary is not None:
        return _taken(_items(chunk.dictionary), chunk.codes, chunk.valid)
    if chunk.format == "+s":
        return _of_struct(chunk).as_rows()
    if chunk.format == "+r":
        return _taken(_items(chunk.children[1]), chunk.runs, None)
    check_extension(chunk.extension, UUID, BOOL8)
    if chunk.format.startswith("+w:"):
        return Items(_lists(chunk), chunk.valid)
    if chunk.format == "n":
        return Items(np.zeros(chunk.length, np.bool_), chunk.valid)
    read = _reader(chunk.format)
    if read is None:
        raise DtypeError(_refusal(chunk.format))
    array = read(chunk)
    return Items(array != 0 if chunk.extension == BOOL8 else array, chunk.valid)


def _taken(values: Items, numbers: npt.NDArray[Any], valid: Valid) -> Items:
    """The values of some numbers. The number of a null may be any."""
    if len(values.array):
        array = values.array.take(numbers, axis=0, mode="clip")
    else:
        array = np.zeros((len(numbers), *values.array.shape[1:]), values.array.dtype)
    if values.valid is not None and len(values.valid):
        held = values.valid.take(numbers, mode="clip")
        valid = held if valid is None else held & valid
    return Items(array, None if valid is None or valid.all() else valid, values.names)


def _lists(chunk: Chunk) -> npt.NDArray[Any]:
    width = int(chunk.format.removeprefix("+w:"))
    items, valid = _items(chunk.child(0, width)), chunk.valid
    if items.valid is not None:
        held = items.valid.reshape(chunk.length, width).all(axis=1)
        if not (held if valid is None else held | ~valid).all():
            raise DtypeError("expected lists without nulls in them: drop or fill the nulls first")
    return items.array.reshape(chunk.length, width, *items.array.shape[1:])


def _reader(form: str) -> Callable[[Chunk], npt.NDArray[Any]] | None:
    """What reads the values of a format; None for formats that no type of NumPy has."""
    if form == "b":
        return lambda chunk: chunk.bits(1)
    if form.startswith("d:"):
        return _decimals
    if form in _OF_32_BITS:
        return lambda chunk: chunk.at(1, "i4", chunk.length, chunk.offset).astype(_OF_32_BITS[form])
    dtype = _type(form)
    if dtype is None or not np.dtype(dtype).itemsize:  # NumPy reads no items of no width
        return None
    return lambda chunk: chunk.at(1, dtype, chunk.length, chunk.offset)


_OF_32_BITS = {"tdD": "M8[D]", "tts": "m8[s]", "ttm": "m8[ms]"}
"""Dates and times of 32 bits, of which NumPy has 64."""


def _type(form: str) -> str | None:
    """The type of a format whose values lie in a buffer as NumPy has them; None for other formats."""
    plain = CODES.get(form) or _FLOATS.get(form)
    if plain is not None:
        return plain
    if form.startswith("w:"):
        return f"V{form.removeprefix('w:')}"
    if form[:2] == "ts":
        return f"M8[{_UNITS[form[2]]}]"
    if form[:2] == "tD":
        return f"m8[{_UNITS[form[2]]}]"
    return {"tdm": "M8[ms]", "ttu": "m8[us]", "ttn": "m8[ns]", "tiM": "m8[M]"}.get(form)


def _decimals(chunk: Chunk) -> npt.NDArray[Any]:
    _, digits, *width = chunk.format.removeprefix("d:").split(",")
    scale, bits = int(digits), int(width[0]) if width else 128
    if bits >= 128:
        return chunk.at(1, f"V{bits // 8}", chunk.length, chunk.offset).view(decimal_type(scale, bits // 8))
    words = np.empty((chunk.length, 2), np.int64)  # the lower half, and what fills the upper one with the sign
    words[:, 0] = chunk.at(1, f"i{bits // 8}", chunk.length, chunk.offset)
    words[:, 1] = words[:, 0] >> 63
    return words.view(decimal_type(scale)).reshape(-1)


def _refusal(form: str) -> str:
    what = {
        **dict.fromkeys("uUzZ", "text or bytes of any length"),
        **dict.fromkeys(("vu", "vz"), "text or bytes of any length"),
        **dict.fromkeys(("+l", "+L", "+vl", "+vL"), "lists of any length"),
        "+m": "maps",
        "tiD": "intervals of the calendar",
        "tin": "intervals of the calendar",
    }.get(form, "unions" if form.startswith("+u") else f"Arrow data of format {form!r}")
    return (
        f"expected values of one width that NumPy has, got {what}: give text or bytes as a single column, to a table "
        'of type "str" or "bytes"; convert other data to such a type'
    )


# ---- columns of ours
def arrow_format(dtype: np.dtype[Any]) -> str | None:
    """Arrow's format for bytes of one width and for decimal numbers; None for other types."""
    scale = decimal_scale(dtype)
    if scale is not None:
        return f"d:38,{scale}" if dtype.itemsize == 16 else f"d:76,{scale},256"
    return f"w:{dtype.itemsize}" if dtype.kind == "V" and dtype.names is None and dtype.type is np.void else None
