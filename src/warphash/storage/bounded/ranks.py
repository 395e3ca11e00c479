"""Ranks of numbers: 64-bit words in the order of the numbers (``rank_of`` in `kernels/bounded/bounded.cuh`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["rank_of"]


def rank_of(number: np.generic | npt.NDArray[np.generic]) -> int:
    """The rank of an integer, a bool or a float, as kernels give it to numbers of the same type.

    -0.0 has the rank of 0.0. NaN has rank 0, which no other float has.
    """
    width = 8 * number.dtype.itemsize
    bits, sign = int.from_bytes(number.tobytes(), "little"), 1 << (width - 1)
    if number.dtype.kind in "bu":
        return bits
    if number.dtype.kind == "i":
        return bits ^ sign
    if np.isnan(number):
        return 0
    if number == 0:
        return sign
    return bits ^ (2 * sign - 1) if bits & sign else bits | sign
