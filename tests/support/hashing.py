"""Where keys hash to, by Python's integers: the mixer of ``kernels/core/hash.cuh`` again, from its description."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_SHIFTS_AND_FACTORS = {
    32: ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)),
    64: ((32, 0xD6E8FEB86659FD93),) * 2 + ((32, 1),),
}


def first_buckets(store: Any, keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The first bucket of each key of 4 or 8 bytes in a `runtime.store.Store`."""
    bits = 8 * keys.itemsize
    mask = (1 << bits) - 1
    buckets = []
    for key in keys.tolist():
        x = key ^ (store.table.multiplier[0] & mask)
        for shift, factor in _SHIFTS_AND_FACTORS[bits]:
            x = (x ^ x >> shift) * factor & mask
        buckets.append(x * store.buckets >> bits)
    return np.array(buckets, np.int64)
