"""New arrays of the libraries that tables see."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warphash.arrays.library import Allocator, ArrayView, Shape

__all__ = ["empty_like"]


def empty_like(seen: ArrayView, shape: Shape, dtype: npt.DTypeLike, allocator: Allocator | None = None) -> ArrayView:
    """A new array of the library of another one, on its device and stream."""
    return seen.library.empty(seen, shape, np.dtype(dtype), allocator)
