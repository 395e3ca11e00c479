"""Items of one type as items of another, so that their bytes can be compared."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import NUMPY
from ..arrays.arrow_values import Valid, both
from ..arrays.cast import cast, is_comparable
from ..arrays.decimals import decimal_scale, in_scale_of
from ..arrays.strings import rows_of
from .items import Fixed, Items, Text, text_items

__all__ = ["Compared", "as_type_of"]


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

    Numbers are compared as numbers, True as 1, and decimal numbers of any scale; strings with strings, and with the
    bytes of ASCII characters; lists of one length with lists of that length.
    """
    if isinstance(wanted, Text):
        if isinstance(given, Text):
            return Compared(given, None) if given.text == wanted.text else None
        if given.array.dtype.kind != ("U" if wanted.text else "S"):
            return None
        return Compared(text_items(rows_of(given.array, wanted.text)), None)
    if isinstance(given, Fixed) and given.array.shape[1:] != wanted.array.shape[1:]:
        return None
    array, fits = _with_width(given) if isinstance(given, Text) else _as_numbers(given.array, wanted.array.dtype)
    dtype = wanted.array.dtype
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


def _as_numbers(array: npt.NDArray[Any], wanted: np.dtype[Any]) -> tuple[npt.NDArray[Any], Valid]:
    """Truth values as integers, complex numbers as their real parts, decimal numbers in the scale of the others."""
    kind = array.dtype.kind
    scale = decimal_scale(wanted)
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
