"""Python values as items of a NumPy type: each value is kept exactly, or refused.

NumPy converts wherever it can. It cuts a string to the width of the type, a fraction to an integer and a time to whole
days. It reads "1" as a number, and writes a number as b"1". A table that took such an item would hold another key than
the caller gave. So every item is compared with the value that it was made from.

Some conversions count as exact: numbers that are equal (2.0 and 2, True and 1); a string of ASCII characters for its
bytes; a `uuid.UUID` for its 16 bytes; a time of the day for the time since midnight; a time with a zone for its instant
in UTC; a number for a decimal number. Python's floating-point values are rounded to the width of the type, as
everywhere in NumPy. An item that the type does not hold is refused by `exactly`, and marked by `fitting`. `cast.py`
does the same of arrays.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ShapeError
from .decimals import decimal_of, decimal_scale, decimals_of, type_of_decimals
from .library import shown
from .plain_array import contiguous, gives_array, numpy_of, python_value
from .times import in_unit_of

__all__ = ["exactly", "fitting", "item_at"]

Dtype = np.dtype[Any]
Items = npt.NDArray[Any]
Shape = tuple[int, ...]

_SEQUENCES = (list, tuple, range)
_PLAIN = {int, float, bool, str, bytes}
"""The types of most items, which are no sequences of items."""

_NUMBERS = (numbers.Number, np.bool_, decimal.Decimal)
_MOMENT = re.compile(r"NaT|[+-]?\d{4,}(-\d\d(-\d\d([T ][\d:.]*(?P<zone>Z|[+-]\d\d:?\d\d)?)?)?)?")
"""An ISO date or time. NumPy also reads "now" and "today", which are never the same twice."""


class _UnfitError(Exception):
    """An item that the type does not hold; the message is the mend, if there is a better one than another type."""


_FAILURES = (_UnfitError, OverflowError, ValueError, TypeError, decimal.InvalidOperation)
"""What a conversion of NumPy's, or of ours, raises."""


def exactly(value: Any, dtype: Dtype | None) -> Items:
    """A list, nested lists or a single value as an array.

    Parameters
    ----------
    value
        A list, tuple or range, nested as deep as the array has axes; or one item. A record is a tuple.
    dtype
        Type of an item. None takes the type that NumPy finds for the values.

    Returns
    -------
    array
        A new NumPy array. O(n), with a few operations of Python for each item.

    Raises
    ------
    DtypeError
        If the type does not hold an item exactly, or NumPy has no type for the items.
    ShapeError
        If rows differ in length.
    """
    shape, leaves = _leaves(value, dtype is not None and dtype.names is not None)
    wanted = _found_type(leaves) if dtype is None else dtype
    try:
        return _converted(leaves, wanted).reshape(shape)
    except _FAILURES:
        if dtype is None and len(set(map(type, leaves))) > 1:
            raise DtypeError(f"expected values of one kind, got {_kinds(leaves)}: give an array of one type") from None
        raise _refusal(leaves, wanted) from None


def fitting(value: Any, dtype: Dtype) -> tuple[Items, npt.NDArray[np.bool_] | None]:
    """The items of `exactly`, and which of them the type holds; None if it holds all. Others are zeros.

    Raises
    ------
    DtypeError
        If an item of a list is None. For what is no list, array or single value.
    ShapeError
        As `exactly`.
    """
    shape, leaves = _leaves(value, dtype.names is not None)
    try:
        return _converted(leaves, dtype).reshape(shape), None
    except _FAILURES:
        pass
    if shape and (nulls := sum(leaf is None for leaf in leaves)):
        raise DtypeError(
            f"expected values, got {nulls:,} nulls among them: leave them out, or make the table with nulls='drop' or "
            "nulls='key'"
        )
    made, fits = np.zeros(len(leaves), dtype), np.zeros(len(leaves), np.bool_)
    for number, leaf in enumerate(leaves):
        try:
            made[number] = _converted([leaf], dtype)[0]
        except _FAILURES:
            continue
        fits[number] = True
    return made.reshape(shape), fits.reshape(shape)


def item_at(value: Any, number: int, items: int, dtype: Dtype) -> Any:
    """A row of a list, or the single value, as the caller gave it: the one of a number, in rows of so many items."""
    _, leaves = _leaves(value, dtype.names is not None)
    row = leaves[number * items : (number + 1) * items]
    return row[0] if len(row) == 1 else row


def _leaves(value: Any, has_records: bool) -> tuple[Shape, list[Any]]:
    """The shape of nested sequences, and their items in order."""
    if not isinstance(value, _SEQUENCES):
        value = python_value(value)
    if isinstance(value, np.ndarray):
        return value.shape, list(contiguous(value, objects=True).reshape(-1))
    if has_records and isinstance(value, tuple | Mapping):
        return (), [value]
    if not isinstance(value, _SEQUENCES):
        array = _as_array(value)
        return ((), [value]) if array is None else _leaves(array, has_records)
    kinds = set(map(type, value))
    if any(hasattr(kind, "as_py") for kind in kinds - _PLAIN):
        value = list(map(python_value, value))
        kinds = set(map(type, value))
    if kinds <= _PLAIN or not any(_is_nested(kind, has_records) for kind in kinds):
        return (len(value),), list(value)
    parts = [_leaves(part, has_records) for part in value]
    shapes = {shape for shape, _ in parts}
    if len(shapes) > 1:
        raise ShapeError(
            f"expected a list of values or of rows of one length, got parts of shapes {sorted(shapes)}: "
            "give each row the same number of items"
        )
    return (len(value), *shapes.pop()), [leaf for _, leaves in parts for leaf in leaves]


def _is_nested(kind: type, has_records: bool) -> bool:
    if has_records and issubclass(kind, tuple):
        return False
    return issubclass(kind, (*_SEQUENCES, np.ndarray)) or gives_array(kind) or hasattr(kind, "as_py")


def _as_array(value: Any) -> Items | None:
    """What has its items in memory, as an array; None for a single value."""
    if value is None or isinstance(value, str | bytes | np.generic | numbers.Number):
        return None
    if gives_array(type(value)):
        return numpy_of(value)
    if not isinstance(value, Iterable):
        return None
    if isinstance(value, Mapping):
        raise DtypeError("expected a row as a tuple, got a mapping: give its values, in the order of the columns")
    try:
        return np.asarray(memoryview(value))  # type: ignore[arg-type]  # array.array and its like
    except TypeError:
        name = type(value).__name__
        raise DtypeError(f"expected an array, a list or a single value, got a {name}: give list(...) of it") from None


def _found_type(leaves: list[Any]) -> Dtype:
    """The type of values for which the caller named none."""
    if not leaves:
        raise DtypeError("an empty list has no type: give an empty array, such as numpy.empty(0, 'int64')")
    kinds = set(map(type, leaves))
    if all(issubclass(kind, datetime.date | datetime.timedelta) for kind in kinds):  # objects to NumPy
        return np.result_type(*{_time(leaf).dtype for leaf in leaves})
    try:
        found = np.asarray(leaves).dtype
    except MemoryError:
        raise
    except Exception:  # of an item's own conversion
        found = np.dtype(object)
    # A span of NumPy's is an integer to `numbers`.
    are_whole = all(issubclass(kind, numbers.Integral) and not issubclass(kind, np.timedelta64) for kind in kinds)
    if found.kind in "fO" and are_whole:
        return _integer_type([int(leaf) for leaf in leaves])
    if found.hasobject and all(kind.__module__ == "uuid" for kind in kinds):
        return np.dtype("V16")
    if found.hasobject and all(issubclass(kind, decimal.Decimal) for kind in kinds):
        return type_of_decimals(leaves)
    if found.hasobject:
        raise DtypeError(
            f"expected numbers, bytes, strings or times, got {shown(next(iter(leaves)))} ({_kinds(leaves)}), Python "
            "objects that have no NumPy type in common: give an array of one type"
        )
    return found


def _integer_type(whole: list[int]) -> Dtype:
    """The type of integers that NumPy has none for, or floats."""
    least, most = min(whole), max(whole)
    for name in ("int64", "uint64"):
        limits = np.iinfo(name)
        if limits.min <= least and most <= limits.max:
            return np.dtype(name)
    width = max(least.bit_length(), most.bit_length()) // 8 + 1
    got = " and ".join(map(str, sorted({least, most})))
    raise DtypeError(
        f"expected integers that one type of 64 bits holds, got {got}: give the bytes of each, as in "
        f"numpy.array([n.to_bytes({width}, 'little', signed=True) for n in values], 'V{width}')"
    )


def _kinds(leaves: list[Any]) -> str:
    return ", ".join(sorted({type(leaf).__name__ for leaf in leaves}))


def _refusal(leaves: list[Any], dtype: Dtype) -> DtypeError:
    """The error for the first item that the type does not hold."""
    for leaf in leaves:
        mend = ""
        try:
            _converted([leaf], dtype)
            continue
        except _UnfitError as error:
            mend = str(error)
        except _FAILURES:
            pass
        return DtypeError(
            f"expected values that {dtype} holds, got {shown(leaf)} ({type(leaf).__name__}): "
            f"{mend or 'leave it out, or make the table of a type that holds it'}"
        )
    return DtypeError(f"expected values of one kind for {dtype}, got {_kinds(leaves)}: give an array of one type")


# ---- items of each kind


def _converted(leaves: list[Any], dtype: Dtype) -> Items:
    """The items as a one-dimensional array, or an exception."""
    if not leaves:
        return np.empty(0, dtype)
    if decimal_scale(dtype) is not None:
        leaves = [decimal_of(leaf) if _is_decimal(leaf) else leaf for leaf in leaves]
        if all(isinstance(leaf, _NUMBERS) for leaf in leaves):
            return decimals_of(_plain(leaves), dtype)
    if dtype.names is not None:
        return _records(leaves, dtype)
    kind = "custom" if dtype.kind == "V" and dtype.type is not np.void else dtype.kind
    convert = _CONVERSIONS.get(kind)
    if convert is None:
        raise _UnfitError("give an array of that type")
    return convert(leaves, dtype)


def _is_decimal(leaf: Any) -> bool:
    return isinstance(leaf, np.void) and decimal_scale(leaf.dtype) is not None


def _records(leaves: list[Any], dtype: Dtype) -> Items:
    names = dtype.names or ()
    leaves = [_by_names(leaf, names) for leaf in leaves]
    for leaf in leaves:
        if not isinstance(leaf, tuple) or len(leaf) != len(names):
            raise _UnfitError(f"a record is a tuple of {len(names)} items")
    made = np.zeros(len(leaves), dtype)  # what lies between the fields, too
    for number, name in enumerate(names):
        base, shape = dtype[name].subdtype or (dtype[name], ())
        given = [leaf[name] if isinstance(leaf, np.void) else leaf[number] for leaf in leaves]
        items_shape, items = _leaves(given, base.names is not None)
        if items_shape != (len(leaves), *shape):
            raise _UnfitError(f"field {name!r} takes items of shape {shape}")
        try:
            made[name] = _converted(items, base).reshape(items_shape)
        except _FAILURES:
            raise _UnfitError(f"give field {name!r} a type that holds the item, or leave the record out") from None
    return made


def _by_names(leaf: Any, names: tuple[str, ...]) -> Any:
    """A record of NumPy's, a mapping or a named tuple as a tuple of fields in the order of ``names``."""
    if isinstance(leaf, np.void):
        own = leaf.dtype.names
    else:
        own = tuple(leaf) if isinstance(leaf, Mapping) else getattr(leaf, "_fields", None)
    if own is None:
        return leaf
    if set(own) != set(names):
        raise _UnfitError(f"give a record with the fields {', '.join(names)}")
    return tuple(leaf[own.index(name)] if isinstance(leaf, tuple) else leaf[name] for name in names)


def _plain(leaves: list[Any]) -> list[Any]:
    """Numbers of Python in place of NumPy's, which are rounded when they are compared with floats."""
    kinds = set(map(type, leaves))
    if any(issubclass(kind, np.timedelta64 | np.datetime64) for kind in kinds):  # the former is an integer to NumPy
        raise _UnfitError
    if not any(issubclass(kind, np.generic) for kind in kinds):
        return leaves
    return [leaf.item() if isinstance(leaf, np.generic) else leaf for leaf in leaves]


def _equal(leaves: list[Any], dtype: Dtype) -> Items:
    """Integers and booleans: whatever number equals the item."""
    leaves = _plain(leaves)
    with np.errstate(all="ignore"):
        made = np.array(leaves, dtype)
    if made.ndim != 1 or any(isinstance(leaf, complex) for leaf in leaves) or made.tolist() != leaves:
        raise _UnfitError
    return made


def _rounded(leaves: list[Any], dtype: Dtype) -> Items:
    """Floating-point numbers: rounded; but an integer has to be equal, and nothing finite becomes infinite."""
    if not all(isinstance(leaf, _NUMBERS) for leaf in leaves):
        raise _UnfitError
    leaves = _plain(leaves)
    with np.errstate(all="ignore"):
        made = np.array(leaves, dtype)
    for item, leaf in zip(made.tolist(), leaves, strict=True):
        if item == leaf:
            continue
        is_whole = isinstance(leaf, numbers.Integral | np.bool_)
        number = complex(leaf)
        if is_whole or not (_is_nan(number) or (_is_finite(number) and _is_finite(complex(item)))):
            raise _UnfitError
    return made


def _is_nan(number: complex) -> bool:
    return math.isnan(number.real) or math.isnan(number.imag)


def _is_finite(number: complex) -> bool:
    return math.isfinite(number.real) and math.isfinite(number.imag)


def _bytes(leaves: list[Any], dtype: Dtype) -> Items:
    return _whole([leaf.encode("ascii") if isinstance(leaf, str) else leaf for leaf in leaves], bytes, dtype)


def _strings(leaves: list[Any], dtype: Dtype) -> Items:
    return _whole(leaves, str, dtype)


def _whole(leaves: list[Any], kind: type, dtype: Dtype) -> Items:
    """Bytes or strings, none of which is cut."""
    if not all(isinstance(leaf, kind) for leaf in leaves):
        raise _UnfitError
    made = np.array(leaves, dtype)
    if made.tolist() != leaves:
        raise _UnfitError(_width_mend(leaves, dtype.kind))
    return made


def _width_mend(leaves: Sequence[Any], kind: str) -> str:
    if any(leaf[-1:] in (b"\0", "\0") for leaf in leaves):
        width = max(len(leaf) if kind == "S" else len(leaf.encode(errors="surrogatepass")) for leaf in leaves)
        any_length = "bytes" if kind == "S" else "str"
        return (
            f"NumPy drops zeros at the end of {kind} items; make the table of V{width}, and give {width} bytes each, "
            f"or make it with keys of type {any_length!r}"
        )
    return f"make the table of {kind}{max(map(len, leaves))}, or leave it out"


def _voids(leaves: list[Any], dtype: Dtype) -> Items:
    rows = [leaf.tobytes() if isinstance(leaf, np.void) else getattr(leaf, "bytes", leaf) for leaf in leaves]
    if not all(isinstance(row, bytes) and len(row) == dtype.itemsize for row in rows):
        raise _UnfitError(f"give {dtype.itemsize} bytes")
    return np.frombuffer(b"".join(rows), dtype).copy()


def _moments(leaves: list[Any], dtype: Dtype) -> Items:
    return np.array([_in_unit(_moment(leaf), dtype) for leaf in leaves], dtype)


def _moment(leaf: Any) -> np.datetime64:
    """A time as NumPy has it: one with a zone as its instant in UTC, one without a zone as it is."""
    if hasattr(leaf, "to_datetime64"):  # pandas counts nanoseconds, which datetime does not; gives instants, too
        return leaf.to_datetime64()  # type: ignore[no-any-return]
    if isinstance(leaf, str):
        return _parsed_moment(leaf)
    if not isinstance(leaf, np.datetime64 | datetime.date):
        raise _UnfitError("give numpy.datetime64 or datetime")
    if isinstance(leaf, datetime.datetime) and (ahead := leaf.utcoffset()) is not None:
        # not astimezone(), which has no instant before the year 1 or after the year 9999
        return np.datetime64(leaf.replace(tzinfo=None)) - np.timedelta64(ahead)
    return np.datetime64(leaf)


def _parsed_moment(text: str) -> np.datetime64:
    parts = _MOMENT.fullmatch(text)
    if not parts:
        raise _UnfitError("write the time as ISO 8601 has it")
    zone = parts["zone"]
    if zone is None:
        return np.datetime64(text)
    local = np.datetime64(text.removesuffix(zone))
    if zone == "Z":
        return local
    ahead = np.timedelta64(60 * int(zone[1:3]) + int(zone[-2:]), "m")
    return local + ahead if zone[0] == "-" else local - ahead


def _spans(leaves: list[Any], dtype: Dtype) -> Items:
    return np.array([_in_unit(_span(leaf), dtype) for leaf in leaves], dtype)


def _span(leaf: Any) -> np.timedelta64:
    if hasattr(leaf, "to_timedelta64"):
        return leaf.to_timedelta64()  # type: ignore[no-any-return]
    if isinstance(leaf, datetime.time) and leaf.tzinfo is None:  # of the day
        parts = {"hours": leaf.hour, "minutes": leaf.minute, "seconds": leaf.second, "microseconds": leaf.microsecond}
        return np.timedelta64(datetime.timedelta(**parts))
    if not isinstance(leaf, np.timedelta64 | datetime.timedelta):
        raise _UnfitError("give numpy.timedelta64 or timedelta")
    return np.timedelta64(leaf)


def _time(leaf: Any) -> Any:
    """A time of Python's or of pandas', as NumPy has it."""
    return _span(leaf) if isinstance(leaf, datetime.timedelta) else _moment(leaf)


def _in_unit(time: Any, dtype: Dtype) -> Any:
    """A time in the unit of the type, and back again as it was."""
    if np.isnat(time):
        return time
    if "generic" in (np.datetime_data(time.dtype)[0], np.datetime_data(dtype)[0]):
        raise _UnfitError("name the unit of the time")
    if not np.can_cast(time.dtype, dtype, "same_kind"):  # months have no number of days
        raise _UnfitError(f"make the table of {time.dtype}, or leave it out")
    made, fits = in_unit_of(np.asarray(time), dtype)
    if not fits:
        raise _UnfitError(f"make the table of {time.dtype}, or leave it out")
    return made[()]


_CONVERSIONS: Mapping[str, Callable[[list[Any], Dtype], Items]] = {
    **dict.fromkeys("biu", _equal),
    **dict.fromkeys("fc", _rounded),
    "S": _bytes,
    "U": _strings,
    "V": _voids,
    "M": _moments,
    "m": _spans,
}
