"""The oracle of value conversion: decides which values a type can hold, without NumPy's conversions.

Each value that a type can hold has one plain Python form: an int, a float, bytes, a string, or a tuple of these. A time
is its number of units since 1970, and NaT is the least such number.
"""

from __future__ import annotations

import datetime
import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["NOT_HELD", "NS_OF_UNIT", "plain", "plain_of_array", "plain_of_other_array"]

NOT_HELD: Any = type("NotHeld", (), {"__repr__": lambda self: "NOT_HELD"})()
NS_OF_UNIT = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
NAT = -(2**63)
FLOAT_FORMATS = {2: "<e", 4: "<f", 8: "<d"}  # "<" raises for floats that are too large; native formats give infinity


def plain(value: Any, dtype: np.dtype[Any]) -> Any:
    """The plain form of one item of ``dtype``, or `NOT_HELD`."""
    if dtype.subdtype is not None:
        base, (extent,) = dtype.subdtype
        value = value.to_list() if hasattr(value, "to_list") else value  # Polars gives a row as a column
        if not isinstance(value, list | tuple | np.ndarray) or len(value) != extent:
            return NOT_HELD
        return _all_held(plain(item, base) for item in value)
    if dtype.names is not None:
        if not isinstance(value, tuple) or len(value) != len(dtype.names):
            return NOT_HELD
        return _all_held(plain(item, dtype[name]) for item, name in zip(value, dtype.names, strict=True))
    return {
        "b": _whole,
        "i": _whole,
        "u": _whole,
        "f": _float,
        "S": _bytes,
        "U": _string,
        "V": _void,
        "M": _moment,
        "m": _span,
    }[dtype.kind](value, dtype)


def _all_held(items: Any) -> Any:
    made = tuple(items)
    return NOT_HELD if any(item is NOT_HELD for item in made) else made


def _number(value: Any) -> Fraction | None:
    if isinstance(value, np.timedelta64):  # an integer to NumPy
        return None
    if isinstance(value, bool | int | np.integer | np.bool_):
        return Fraction(int(value))
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return Fraction(float(value))
    return None


def _whole(value: Any, dtype: np.dtype[Any]) -> Any:
    number = _number(value)
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    least = -(1 << bits - 1) if dtype.kind == "i" else 0
    if number is None or number.denominator != 1 or not least <= number < least + (1 << bits):
        return NOT_HELD
    return int(number)


def _float(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, float | np.floating):
        try:
            return struct.unpack(FLOAT_FORMATS[dtype.itemsize], struct.pack(FLOAT_FORMATS[dtype.itemsize], value))[0]
        except OverflowError:
            return NOT_HELD
    number = _number(value)
    try:
        made = None if number is None else _float(float(number), dtype)
    except OverflowError:
        return NOT_HELD
    return NOT_HELD if made is None or made is NOT_HELD or Fraction(made) != number else made


def _bytes(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, str) and value.isascii():
        value = value.encode()
    is_held = isinstance(value, bytes) and len(value) <= dtype.itemsize and not value.endswith(b"\0")
    return bytes(value) if is_held else NOT_HELD


def _string(value: Any, dtype: np.dtype[Any]) -> Any:
    is_held = isinstance(value, str) and 4 * len(value) <= dtype.itemsize and not value.endswith("\0")
    return str(value) if is_held else NOT_HELD


def _void(value: Any, dtype: np.dtype[Any]) -> Any:
    return value if isinstance(value, bytes) and len(value) == dtype.itemsize else NOT_HELD


def _units(ns: int, dtype: np.dtype[Any]) -> Any:
    count, rest = divmod(ns, NS_OF_UNIT[np.datetime_data(dtype)[0]])
    return count if rest == 0 and -(2**63) < count < 2**63 else NOT_HELD


def _moment(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, np.datetime64):
        count = int(value.view("i8"))
        return NAT if count == NAT else _units(count * NS_OF_UNIT[np.datetime_data(value.dtype)[0]], dtype)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:  # the instant
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        since = value - datetime.datetime(1970, 1, 1)
    elif isinstance(value, datetime.date):
        since = value - datetime.date(1970, 1, 1)
    else:
        return NOT_HELD
    return _units((since // datetime.timedelta(microseconds=1)) * 1000, dtype)


def _span(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, np.timedelta64):
        count = int(value.view("i8"))
        return NAT if count == NAT else _units(count * NS_OF_UNIT[np.datetime_data(value.dtype)[0]], dtype)
    if isinstance(value, datetime.timedelta):
        return _units((value // datetime.timedelta(microseconds=1)) * 1000, dtype)
    return NOT_HELD


def plain_of_other_array(array: Any, dtype: np.dtype[Any]) -> list[Any] | None:
    """The plain forms, or `NOT_HELD`, of the items of an array of a type that ``dtype`` is compared with, or None."""
    kinds = array.dtype.kind + dtype.base.kind
    is_number = kinds[0] in "iuf" and kinds[1] in "iuf"
    if not (is_number or kinds in ("MM", "mm", "SS", "UU", "US")) or array.shape[1:] != dtype.shape:
        return None
    forms = [_equal(item, dtype.base) for item in array.reshape(-1)]
    extent = int(np.prod(dtype.shape, dtype=int))
    rows = [tuple(forms[at : at + extent]) for at in range(0, len(forms), extent)]
    return [NOT_HELD if NOT_HELD in row else row for row in rows] if dtype.shape else forms


def _equal(item: Any, dtype: np.dtype[Any]) -> Any:
    """The plain form of an item of an array, which is not rounded."""
    form = plain(item, dtype)
    if form is NOT_HELD or dtype.kind != "f" or (form != form and item != item):
        return form
    return (
        form
        if math.isinf(form) == math.isinf(item) and (math.isinf(form) or Fraction(form) == _number(item))
        else NOT_HELD
    )


def plain_of_array(array: Any, dtype: np.dtype[Any]) -> list[Any]:
    """The plain forms of the items of an array of ``dtype``."""
    made = np.asarray(array)
    assert made.dtype == dtype.base and made.shape[1:] == dtype.shape
    if dtype.base.kind in "Mm":
        return list(made.view("i8").tolist())
    if dtype.base.kind == "b":
        return [int(item) for item in made.tolist()]
    if dtype.subdtype is not None:
        return [tuple(row) for row in made.tolist()]
    if dtype.kind == "V" and dtype.names is None:
        return [item.tobytes() for item in made]
    return list(made.tolist())
