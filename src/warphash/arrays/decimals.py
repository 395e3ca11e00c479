"""Decimal numbers as items of a NumPy type: whole numbers of the last digit, with the scale in the name of the type.

NumPy has no decimal numbers. So an item is a record of one field: a two's complement integer in 16 bytes, or in 32 for
what needs more than 38 digits. The field's name says how many of the digits come behind the point. So 1.5 and 1.50, of
columns of different scales, are of different types, and none is taken for the other.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError

__all__ = [
    "decimal_of",
    "decimal_scale",
    "decimal_type",
    "decimals_of",
    "decimals_of_integers",
    "in_scale_of",
    "in_width_of",
    "integers_of_decimals",
    "type_of_decimals",
    "type_to_cast_to",
]

_FIELD = re.compile(r"decimal\(scale=(-?\d+)\)")


_DIGITS_OF_16_BYTES, _MOST_DIGITS = 38, 76
"""Digits that any number of 16, and of 32 bytes may have."""


def decimal_type(scale: int, nbytes: int = 16) -> np.dtype[Any]:
    """The type of decimal numbers with ``scale`` digits behind the point, of 16 or 32 bytes."""
    return np.dtype([(f"decimal(scale={scale})", f"V{nbytes}")])


def type_of_decimals(numbers: Sequence[decimal.Decimal]) -> np.dtype[Any]:
    """The type with as many digits behind the point as one of some numbers has, which are finite.

    Raises
    ------
    DtypeError
        For numbers that are not finite, and for numbers of more digits than 32 bytes hold.
    """
    parts = [number.as_tuple() for number in numbers]
    exponents = [part.exponent for part in parts if isinstance(part.exponent, int)]
    if len(exponents) < len(parts):
        raise DtypeError("expected decimal numbers, got one that is not finite: leave it out, or give None for a null")
    scale = max(0, -min(exponents))
    digits = max(len(part.digits) + exponent + scale for part, exponent in zip(parts, exponents, strict=True))
    if digits > _MOST_DIGITS:
        raise DtypeError(
            f"expected decimal numbers of at most {_MOST_DIGITS} digits, got {digits:,}: give them as text"
        )
    return decimal_type(scale, 16 if digits <= _DIGITS_OF_16_BYTES else 32)


def decimal_scale(dtype: np.dtype[Any]) -> int | None:
    """The scale of a type of `decimal_type`; None for other types."""
    if dtype.names is None or len(dtype.names) != 1:
        return None
    found = _FIELD.fullmatch(dtype.names[0])
    return int(found[1]) if found and dtype[0] in (np.dtype("V16"), np.dtype("V32")) else None


def decimals_of(numbers: Iterable[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Integers and `decimal.Decimal` as items of a type of `decimal_type`.

    Raises
    ------
    ValueError, OverflowError
        If the type does not hold a number exactly.
    """
    scale, raw = decimal_scale(dtype) or 0, []
    for number in numbers:
        whole = _digits(decimal.Decimal(number), scale)
        raw.append(whole.to_bytes(dtype.itemsize, "little", signed=True))
    return np.frombuffer(b"".join(raw), dtype).copy()


def _digits(number: decimal.Decimal, scale: int) -> int:
    """The number as a whole number of its last digit."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{number} is no finite number")
    whole = int("".join(map(str, digits)))
    shift = exponent + scale
    if whole and shift > 80:
        raise OverflowError(f"{number} is too large")
    if shift >= 0:
        whole *= 10**shift
    else:
        whole, rest = divmod(whole, 10**-shift) if -shift < len(digits) + 1 else (0, whole)
        if rest:
            raise ValueError(f"{number} has more than {scale} digits behind the point")
    return -whole if sign else whole


def decimal_of(item: Any) -> decimal.Decimal:
    """An item of a type of `decimal_type` as a number of Python's."""
    whole = int.from_bytes(item.tobytes(), "little", signed=True)
    digits = tuple(map(int, str(abs(whole))))
    return decimal.Decimal((int(whole < 0), digits, -(decimal_scale(item.dtype) or 0)))


def in_width_of(items: npt.NDArray[Any], dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Decimal numbers in a type of the same scale and another width, and which of them that type has."""
    raw = np.ascontiguousarray(items).view(np.uint8).reshape(*items.shape, items.dtype.itemsize)
    kept = raw[..., : dtype.itemsize]
    of_sign = np.where(kept[..., -1:] < 128, 0, 255).astype(np.uint8)
    made = np.empty((*items.shape, dtype.itemsize), np.uint8)
    made[..., : kept.shape[-1]] = kept
    made[..., kept.shape[-1] :] = of_sign
    return made.view(dtype).reshape(items.shape), (raw[..., dtype.itemsize :] == of_sign).all(-1)


def decimals_of_integers(items: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Integers as decimal numbers without digits behind the point."""
    made = np.zeros((len(items), 2), np.int64)
    made[:, 0] = items.astype(np.int64, copy=False)  # of uint64, the same bits
    if items.dtype.kind == "i":
        made[:, 1] = made[:, 0] >> 63
    return made.view(decimal_type(0)).reshape(-1)


def integers_of_decimals(
    items: npt.NDArray[Any], dtype: np.dtype[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Decimal numbers as int64 or uint64, and which of them that type has."""
    whole, fits = in_scale_of(items, decimal_type(0)) if decimal_scale(items.dtype) else (items, None)
    words = np.ascontiguousarray(whole).view(np.int64).reshape(-1, whole.dtype.itemsize // 8)
    behind = words[:, :1] >> 63 if dtype.kind == "i" else 0
    held: npt.NDArray[np.bool_] = (words[:, 1:] == behind).all(1)
    return np.ascontiguousarray(words[:, 0]).view(dtype), held if fits is None else held & fits


def in_scale_of(items: npt.NDArray[Any], dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Decimal numbers in a type of another scale, and which of them that type has; the others are zeros."""
    shift = (decimal_scale(dtype) or 0) - (decimal_scale(items.dtype) or 0)
    up, down = 10 ** max(0, shift), 10 ** max(0, -shift)
    if (scaled := _scaled_words(items, dtype, up, down)) is not None:
        return scaled
    most = 1 << (8 * dtype.itemsize - 1)
    made, fits = [], np.zeros(len(items), np.bool_)
    for number, item in enumerate(items):
        whole, rest = divmod(int.from_bytes(item.tobytes(), "little", signed=True) * up, down)
        fits[number] = not rest and -most <= whole < most
        made.append((whole if fits[number] else 0).to_bytes(dtype.itemsize, "little", signed=True))
    return np.frombuffer(b"".join(made), dtype).copy(), fits


def _scaled_words(
    items: npt.NDArray[Any], dtype: np.dtype[Any], up: int, down: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]] | None:
    """As `in_scale_of`, of numbers that are words before and after it; None if one is not."""
    words = np.ascontiguousarray(items).view("<i8").reshape(-1, items.dtype.itemsize // 8)
    low, most = words[:, 0], np.iinfo(np.int64).max // up
    if not most or down > np.iinfo(np.int64).max or (words[:, 1:] != low[:, None] >> 63).any() or not len(low):
        return None
    if low.max() > most or low.min() < -most:
        return None
    whole, rest = np.divmod(low * np.int64(up), np.int64(down))
    fits = rest == 0
    whole[~fits] = 0
    made = np.empty((len(items), dtype.itemsize // 8), "<i8")
    made[:, 0], made[:, 1:] = whole, whole[:, None] >> 63
    return made.view(dtype).reshape(-1), fits


_DIGITS = {"i1": 3, "u1": 3, "i2": 5, "u2": 5, "i4": 10, "u4": 10, "i8": 19, "u8": 20}
"""Decimal digits that PyArrow sees in integers, whatever their values are."""

_COMMON_DIGITS = 20
"""Digits before the point that a decimal type should have for numbers whose type limits none."""


def type_to_cast_to(given: np.dtype[Any], scale: int) -> str | None:
    """The decimal type of Arrow that PyArrow casts a column to, for a scale; None if it casts no such column."""
    if given.kind in "iu":
        digits = _DIGITS[given.str[1:]] if scale >= 0 else None
    else:
        is_cast = (given.kind == "f" and given.itemsize >= 4) or decimal_scale(given) is not None
        digits = _COMMON_DIGITS if is_cast else None
    if digits is None:
        return None
    widths = (("decimal128", 38), ("decimal256", 76))
    return next((f"{name}({most}, {scale})" for name, most in widths if digits + scale <= most), None)
