"""Decimal numbers of 128 and 256 bits for groups, which keep words of 64 bits: exact sums, means, and an order.

A number is a whole number of its last digit (`arrays/decimals.py`). It is cut into parts of 32 bits, and the sign is in
the highest one. A word of 64 bits holds the sum of as many parts as an array has rows, which are 2^31 at most. So each
part is summed as a column of integers is, and carries make one number of the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.arrow_values import Valid
from ..arrays.decimals import decimal_of, decimal_scale, decimal_type
from ..errors import DtypeError

__all__ = ["as_objects", "means_of", "ordered", "parts_of", "sums_of"]

_PART_BITS, _PART_BYTES = 32, 4
_MOST_DIGITS = {16: 38, 32: 76}
"""Digits that any number of so many bytes may have."""

_EXACT = 1 << 53
"""Integers below are float64, too."""

Words = npt.NDArray[Any]


def parts_of(items: npt.NDArray[Any], valid: Valid) -> list[npt.NDArray[Any]]:
    """The parts of decimal numbers, the lowest first: uint32, and int32 the last one.

    Highest parts that say no more than the sign are left out, down to two parts, which numbers of up to 18 digits
    have. Nulls are zeros.
    """
    whole = _parts(items, valid)
    count = whole.shape[1]
    while count > 2 and bool((whole[:, count - 1] == _sign_of(whole[:, count - 2])).all()):
        count -= 1
    made: list[npt.NDArray[Any]] = [np.ascontiguousarray(whole[:, place]) for place in range(count)]
    made[-1] = made[-1].view(np.int32)
    return made


def ordered(items: npt.NDArray[Any], valid: Valid) -> npt.NDArray[np.int64]:
    """Numbers in the order of decimal numbers, equal ones for equal ones: themselves, if 64 bits hold them."""
    parts = parts_of(items, valid)
    if len(parts) == 2:
        low, high = parts
        made: npt.NDArray[np.int64] = (high.astype(np.int64) << _PART_BITS) | low
        return made
    order = np.lexsort(parts)  # the last one, which is the highest, counts most
    differs = np.zeros(len(items), np.bool_)
    for part in parts:
        sorted_part = part[order]
        differs[1:] |= sorted_part[1:] != sorted_part[:-1]
    ranks = np.empty(len(items), np.int64)
    ranks[order] = differs.cumsum()
    return ranks


def sums_of(words: Sequence[Words], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The sums of groups as decimal numbers, of the sums of their parts.

    Raises
    ------
    DtypeError
        If a sum has more digits than a type of so many bytes.
    """
    nbytes = dtype.itemsize
    whole, carry = _carried(words, nbytes // _PART_BYTES)
    made = whole.view(decimal_type(decimal_scale(dtype) or 0, nbytes)).reshape(-1)
    most = 10 ** _MOST_DIGITS[nbytes]
    highest = whole[:, -2:].copy().view(np.int64).reshape(-1)
    bound = most >> (8 * nbytes - 64)
    near = np.flatnonzero((carry != highest >> 63) | (highest >= bound) | (highest < -bound))
    for place in near.tolist():
        if carry[place] != highest[place] >> 63 or not -most < _integer(whole[place]) < most:
            raise DtypeError(
                f"a sum has more than the {_MOST_DIGITS[nbytes]} digits of decimal{8 * nbytes}: cast the column to "
                f"{'decimal256(76, scale) or ' if nbytes == 16 else ''}float64"
            )
    return made


def means_of(words: Sequence[Words], counts: npt.NDArray[np.int64], dtype: np.dtype[Any]) -> npt.NDArray[np.float64]:
    """The means of groups as float64, rounded once; 0 for a group without values."""
    whole, _ = _carried(words, dtype.itemsize // _PART_BYTES + 2)
    scale = decimal_scale(dtype) or 0
    up, down = 10 ** max(0, -scale), 10 ** max(0, scale)
    low = whole[:, :2].copy().view(np.int64).reshape(-1)
    is_low = len(low) and (whole[:, 2:] == _sign_of(whole[:, 1])[:, None]).all()
    if is_low and max(int(low.max()), -int(low.min())) * up < _EXACT and int(counts.max()) * down < _EXACT:
        made: npt.NDArray[np.float64] = (low * up) / (counts.clip(1) * down)
        return made
    integers = map(_integer, whole)
    return np.array(
        [total * up / (max(1, n) * down) for total, n in zip(integers, counts.tolist(), strict=True)], float
    )


def as_objects(items: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Decimal numbers as those of Python."""
    made = np.empty(len(items), object)
    made[:] = list(map(decimal_of, items))
    return made


def _parts(items: npt.NDArray[Any], valid: Valid) -> npt.NDArray[np.uint32]:
    whole = np.ascontiguousarray(items).view(np.uint32).reshape(len(items), items.dtype.itemsize // _PART_BYTES)
    return whole if valid is None else np.where(valid[:, None], whole, np.uint32(0))


def _sign_of(parts: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The part above, of a number whose highest part this is."""
    return (parts.view(np.int32) >> (_PART_BITS - 1)).view(np.uint32)


def _carried(words: Sequence[Words], parts: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Sums of parts as numbers of so many parts, and what is carried beyond: 0, or -1 for a negative number."""
    groups = len(words[0])
    whole, carry = np.empty((groups, parts), np.uint32), np.zeros(groups, np.int64)
    for place in range(parts):
        total = carry + words[place].astype(np.int64) if place < len(words) else carry
        whole[:, place] = (total & 0xFFFFFFFF).astype(np.uint32)
        carry = total >> _PART_BITS
    return whole, carry


def _integer(parts: npt.NDArray[np.uint32]) -> int:
    return int.from_bytes(parts.tobytes(), "little", signed=True)
