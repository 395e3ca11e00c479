"""Batches of any shape: a batch of shape ``(b, s)`` is worked on as ``b * s`` rows, and its results have its shape.

Nothing is copied. The rows of a contiguous array follow each other, whatever axes the array has. Each result is made by
the caller's library in the shape that the caller is given.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .library import MAX_ROWS, Allocator, ArrayView, Dtype, Library, Shape, refuse_rows
from .strings import StringArray

__all__ = ["ShapedLibrary", "as_rows", "library_of_rows"]


class ShapedLibrary:
    """The adapter for the results of one batch: ``n`` rows for the table, and the batch's shape for the caller.

    Parameters
    ----------
    library
        The adapter of the caller's library.
    batch
        Shape of the batch, without the shape of a row.
    """

    def __init__(self, library: Library, batch: Shape) -> None:
        self.kind = library.kind
        self.batch = batch
        self.of_rows = library_of_rows(library)
        self._library = library

    def see(self, array: Any) -> ArrayView:
        """View an array, in its own shape."""
        return self._library.see(array)

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new array of one row for each element of the batch."""
        made = self._library.empty(like, self.batch + shape[1:], dtype, allocator)
        host = None if made.host is None else made.host.reshape(shape)
        return made._replace(shape=shape, host=host, library=self)

    def export(self, made: ArrayView) -> Any:
        """The library's own array, in the shape of the batch."""
        return self._library.export(made)

    def strings(self, made: StringArray) -> Any:
        """Strings as an array of NumPy's, in the shape of the batch."""
        return np.asarray(made).reshape(self.batch)

    def example(self, device: str) -> Any:
        """An array of the library."""
        return self._library.example(device)


def as_rows(seen: ArrayView, row: Shape) -> ArrayView | None:
    """The rows of an array of any number of axes, the last of which are the row's; None for rows of another shape.

    A single row is a batch of one.
    """
    axes = len(seen.shape) - len(row)
    if axes < 0 or seen.shape[axes:] != row:
        return None
    batch = seen.shape[:axes]
    if (n := math.prod(batch)) > MAX_ROWS:
        refuse_rows(n)
    host = None if seen.host is None else seen.host.reshape((n, *row))
    library = ShapedLibrary(seen.library, batch) if axes else library_of_one_row(seen.library)
    return seen._replace(shape=(n, *row), host=host, library=library)


def library_of_rows(library: Library) -> Library:
    """The adapter for arrays that do not belong to the elements of a batch: without its shape and its labels."""
    return getattr(library, "of_rows", library)


def library_of_one_row(library: Library) -> Library:
    """The adapter for the answer to a single row: NumPy's, if the library has columns alone."""
    return getattr(library, "of_one_row", library_of_rows(library))
