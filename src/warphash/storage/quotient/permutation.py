"""Hash functions that can be undone, on the host (``kernels/quotient/permutation.cuh``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...runtime.abi import QuotientTable

__all__ = ["unpermuted"]


def unpermuted(hashes: npt.NDArray[Any], table: QuotientTable, family: str) -> npt.NDArray[Any]:
    """The keys of some hashes (uint32 or uint64), under the constants of a table.

    Parameters
    ----------
    family
        One of `HASHES`.
    """
    word = hashes.dtype.type
    most = (1 << 8 * hashes.itemsize) - 1
    multiplier, addend, inverse = (
        word(constant & most) for constant in (table.multiplier[0], table.addend[0], table.inverse)
    )
    keys: npt.NDArray[Any]
    if family == "universal":
        keys = (hashes - addend) * inverse
    else:
        keys = (_unmixed_32(hashes) if hashes.itemsize == 4 else _unmixed_64(hashes)) ^ multiplier
    return keys


def _unmixed_32(x: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x43021123)
    x = (x ^ (x >> np.uint32(15)) ^ (x >> np.uint32(30))) * np.uint32(0x1D69E2A5)
    return x ^ (x >> np.uint32(16))


def _unmixed_64(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    for _ in range(2):
        x = (x ^ (x >> np.uint64(32))) * np.uint64(0xCFEE444D8B59A89B)
    return x ^ (x >> np.uint64(32))
