"""Times in another unit, exactly, however far the units are from each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["in_unit_of"]

Items = npt.NDArray[Any]

_ATTOSECONDS = {"as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15, "s": 10**18}
_ATTOSECONDS |= {unit: seconds * 10**18 for unit, seconds in (("m", 60), ("h", 3600), ("D", 86_400), ("W", 604_800))}
"""The length of each unit that has one. Months and years have none."""


def in_unit_of(items: Items, dtype: np.dtype[Any]) -> tuple[Items, npt.NDArray[np.bool_]]:
    """Times, or spans of time, in the unit of another type, and which of them that type has.

    A span of months has no length in days: ``numpy.can_cast(items.dtype, dtype, "same_kind")`` must be True.
    """
    given = items.dtype
    try:
        made = items.astype(dtype)
        return made, (made.astype(given) == items) | np.isnat(items)
    except OverflowError:  # NumPy's factor between the units is limited to 56 bits, whatever the items are
        pass
    days = np.dtype("M8[D]")
    if np.datetime_data(given)[0] in "YM":
        whole_days, fits = in_unit_of(items, days)
        made, held = _scaled(whole_days, dtype)
    elif np.datetime_data(dtype)[0] in "YM":
        whole_days, fits = _scaled(items, days)
        made, held = in_unit_of(whole_days, dtype)
    else:
        return _scaled(items, dtype)
    return made, fits & held


def _scaled(items: Items, dtype: np.dtype[Any]) -> tuple[Items, npt.NDArray[np.bool_]]:
    """Times in another unit, both units of a fixed length, by way of Python's integers, which have no limit."""
    (unit, count), (wanted_unit, wanted_count) = np.datetime_data(items.dtype), np.datetime_data(dtype)
    flat = items.reshape(-1)
    numbers = flat.view(np.int64).astype(object) * (count * _ATTOSECONDS[unit])
    length, limit = wanted_count * _ATTOSECONDS[wanted_unit], 2**63
    whole = numbers // length
    fits = ((whole * length == numbers) & (whole < limit) & (whole > -limit)).astype(np.bool_)  # -2**63 is NaT
    made = np.where(fits, whole, 0).astype(np.int64).view(dtype)
    is_nat = np.isnat(flat)
    made[is_nat] = np.array("NaT", dtype)
    return made.reshape(items.shape), (fits | is_nat).reshape(items.shape)
