"""Items of one type as items of another, so that their bytes can be compared."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import NUMPY, address_of
from ..arrays.arrow_values import Valid, both
from ..arrays.cast import cast, is_comparable
from ..arrays.decimals import decimal_scale, decimals_of_integers, in_scale_of, integers_of_decimals
from ..arrays.row_names import Names, RowNames
from ..arrays.strings import ROW, rows_of
from ..errors import DtypeError
from .items import Fixed, Items, Text, are_absent, text_items

__all__ = ["Compared", "as_type_of", "order_by_names"]


class Compared(NamedTuple):
    """Items in the type of others.

    Attributes
    ----------
    items
        One for each of those that were given.
    fits
        Which of them that type has; None if it has all.
    """

    items: Items
    fits: Valid


def as_type_of(given: Items, wanted: Items) -> Compared | None:
    """Items in the type of others, by their values; None if no item of the one can equal one of the other.

    Numbers are compared as numbers, True as 1, and decimal numbers of any scale, with integers, too; strings with
    strings, and with the bytes of ASCII characters; bytes of a fixed width with bytes of any length; lists of one
    length with lists of that length; structs by the names of their fields.

    Raises
    ------
    DtypeError
        For decimal numbers beside floating-point numbers, and for structs whose fields have other names.
    """
    if isinstance(wanted, Text):
        if isinstance(given, Text):
            return Compared(given, None) if given.text == wanted.text else None
        if _are_bytes(given.array) and not wanted.text:
            return Compared(_with_any_length(given), None)
        if given.array.dtype.kind != ("U" if wanted.text else "S"):
            return None
        return Compared(text_items(rows_of(given.array, wanted.text)), None)
    dtype = wanted.array.dtype
    if isinstance(given, Fixed):
        order = order_by_names(given.names, wanted.names)
        if order is not None:
            given = given._replace(array=np.ascontiguousarray(given.array[:, order]), names=wanted.names)
        if given.array.shape[1:] != wanted.array.shape[1:]:
            return None
        if not are_absent(given):
            _refuse_decimals_beside_floats(given.array.dtype, dtype)
        array, fits = _as_numbers(given.array, dtype)
    elif _are_bytes(wanted.array) and not given.text:
        array, fits = _with_exact_width(given, dtype)
    else:
        array, fits = _with_width(given)
    if array.dtype == dtype:
        return Compared(Fixed(array, given.valid), fits)
    parts = np.dtype(f"f{dtype.itemsize // 2}") if array.dtype.kind in "iuf" and dtype.kind == "c" else dtype
    made = _cast(array, parts, fits)
    return None if made is None else Compared(Fixed(made[0].astype(dtype, copy=False), given.valid), made[1])


def _with_width(given: Text) -> tuple[npt.NDArray[Any], Valid]:
    """Strings of any length in a type of NumPy's, which drops zeros at their ends; and which have no such zeros."""
    rows = given.array if given.valid is None else given.array[given.valid]
    held = [ctypes.string_at(address, length) for address, length in rows.tolist()]
    items: list[Any] = [item.decode() for item in held] if given.text else held
    made = np.array(items, np.str_ if given.text else np.bytes_)
    fits = np.array([item[-1:] != b"\0" for item in held], np.bool_)
    if given.valid is not None:
        kept, made, whole = made, np.zeros(len(given.array), made.dtype), np.ones(len(given.array), np.bool_)
        made[given.valid], whole[given.valid] = kept, fits
        fits = whole
    return made, None if fits.all() else fits


def order_by_names(given: Names | None, known: Names | None) -> list[int] | None:
    """Which of the given columns, or fields, is the first of the known ones, and so on; None: as they are.

    Those without names on one side go by their position, and so do names that are numbers of positions.

    Raises
    ------
    DtypeError
        If the names differ.
    """
    if given is None or known is None:
        return None
    names = RowNames()
    names.learn(known)
    mend = "pass tuples of columns, which go by their position"
    return names.order(given, "rows", "the rows that they are compared with", mend)


def _refuse_decimals_beside_floats(given: np.dtype[Any], wanted: np.dtype[Any]) -> None:
    are_decimal = [decimal_scale(dtype) is not None for dtype in (given, wanted)]
    for is_decimal, other in zip(are_decimal, (wanted, given), strict=True):
        if is_decimal and other.kind in "fc":
            raise DtypeError(
                f"decimal numbers are not compared with floating-point numbers, got some of {other} beside decimal "
                "numbers: cast one side to the type of the other"
            )


def _are_bytes(array: npt.NDArray[Any]) -> bool:
    """Whether these are bytes of a fixed width, of which zeros at the end count."""
    return array.ndim == 1 and array.dtype.type is np.void and array.dtype.names is None


def _with_any_length(given: Fixed) -> Text:
    """Bytes of a fixed width as bytes of any length."""
    rows = np.empty(len(given.array), ROW)
    rows["length"] = given.array.itemsize
    rows["address"] = address_of(given.array) + np.arange(len(rows), dtype=np.uint64) * np.uint64(given.array.itemsize)
    return Text(rows, given.valid, False, given.array)


def _with_exact_width(given: Text, dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], Valid]:
    """Bytes of any length in a type of bytes of a fixed width, and which of them are of that width."""
    fits: npt.NDArray[np.bool_] = given.array["length"] == dtype.itemsize
    made = np.zeros(len(fits), dtype)
    held = b"".join(ctypes.string_at(address, length) for address, length in given.array[fits].tolist())
    made[fits] = np.frombuffer(held, dtype)
    return made, None if fits.all() else fits


def _as_numbers(array: npt.NDArray[Any], wanted: np.dtype[Any]) -> tuple[npt.NDArray[Any], Valid]:
    """Truth values as integers, complex numbers as their real parts, decimal numbers in the scale of the others."""
    kind = array.dtype.kind
    scale = decimal_scale(wanted)
    if array.ndim == 1 and scale is not None and kind in "biu":
        array = decimals_of_integers(array.view(np.uint8) if kind == "b" else array)
    elif array.ndim == 1 and wanted.kind in "biu" and decimal_scale(array.dtype) is not None:
        return integers_of_decimals(array, np.dtype(np.uint64 if wanted.kind == "u" else np.int64))
    if array.ndim == 1 and scale is not None and decimal_scale(array.dtype) not in (None, scale):
        return in_scale_of(array, wanted)
    if kind == "b" and wanted.kind in "iufc":
        return array.view(np.uint8), None
    if kind == "c" and wanted.kind in "biuf":
        real = array.imag == 0
        return np.ascontiguousarray(array.real), None if real.all() else real
    return array, None


def _cast(array: npt.NDArray[Any], dtype: np.dtype[Any], fits: Valid) -> tuple[npt.NDArray[Any], Valid] | None:
    """Items in another type, and which of them are there; None for types that have no value in common."""
    if dtype.kind == "b" and array.dtype.kind in "iuf":
        held = (array == 0) | (array == 1)
        made = array.astype(dtype)
    elif is_comparable(array.dtype, dtype) and (found := cast(NUMPY.see(array), dtype)) is not None:
        host, held = found[0].host, found[1]
        assert host is not None
        made = host
    else:
        return None
    held = both(held, fits)
    return made, None if held is None or held.all() else held
