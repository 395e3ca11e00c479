"""Floats of which minima and maxima are taken, and what these must be, to the bit."""

from __future__ import annotations

import numpy as np

from support.types import Array

__all__ = ["numbers", "winners"]


def numbers(dtype: str) -> Array:
    """Both zeros, both infinities, the least and the greatest numbers, and NaNs of several bits, of both signs."""
    kind = np.finfo(dtype)
    least = kind.smallest_subnormal
    plain = np.array([0.0, least, kind.tiny, 1.0, 1.0 + kind.eps, kind.max, np.inf], dtype)
    quiet = np.array([np.nan], dtype).view(f"u{plain.itemsize}")
    nans = np.concatenate([quiet + quiet.dtype.type(payload) for payload in (0, 1, 77)]).view(dtype)
    return np.concatenate([plain, -plain, nans, -nans])


def place_in_order(values: Array, op: str) -> list[tuple[int, int]]:
    """Of each value, what orders it, the one that wins last: a NaN by its bits, another number by its sign and bits."""
    bits, width = values.view(f"u{values.itemsize}").tolist(), 8 * values.itemsize
    sign = 1 << (width - 1)
    ranks = [(0, -(word - sign) - 1 if word & sign else word) for word in bits]
    if op == "min":
        ranks = [(0, -rank) for _, rank in ranks]
    return [(1, word) if nan else rank for word, rank, nan in zip(bits, ranks, np.isnan(values).tolist(), strict=True)]


def winners(keys: Array, values: Array, op: str) -> dict[int, bytes]:
    """The bits that each key must have."""
    held: dict[int, tuple[tuple[int, int], bytes]] = {}
    for key, place, value in zip(keys.tolist(), place_in_order(values, op), values, strict=True):
        if key not in held or place > held[key][0]:
            held[key] = place, value.tobytes()
    return {key: value for key, (_, value) in held.items()}
