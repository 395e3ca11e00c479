"""Columns of pandas, Polars and PyArrow: seen as NumPy arrays, and answered with columns of the same library.

A pandas Series, and a DataFrame whose columns are the items of a row, is answered with Series of its index. Polars is
answered with Series, and PyArrow with Arrays. Where values are rows, pandas gives a DataFrame, and the others give a
column of lists of fixed size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DtypeError
from ..library import Allocator, ArrayView, Dtype, Library, Shape
from .numpy import NUMPY

__all__ = ["ColumnLibrary", "column_library", "plain_library"]

Make = Callable[[npt.NDArray[Any]], Any]


class ColumnLibrary:
    """A library of columns in host memory. A result is a NumPy array until `export` makes a column of it.

    Parameters
    ----------
    name
        Name of the library.
    make
        Makes a column of a NumPy array.
    of_rows
        The adapter for columns without labels, if ``make`` labels its columns; None if it does not.
    """

    kind = "numpy"  # of what is seen; a column becomes one in `export`

    of_one_row: Library = NUMPY
    """The adapter for the answer to a single row, which is no column."""

    def __init__(self, name: str, make: Make, of_rows: Library | None = None) -> None:
        self._name = name
        self.of_rows: Library = of_rows or self
        self._make = make

    def see(self, array: Any) -> ArrayView:
        """View a column."""
        return NUMPY.see(np.asarray(array))._replace(library=self, owner=array)

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new array in host memory, of a type that the library has."""
        _check_type(self._name, dtype, shape[1:])
        return NUMPY.empty(like, shape, dtype, allocator)._replace(library=self)

    def export(self, made: ArrayView) -> Any:
        """A column of the array."""
        return self._make(made.owner)

    def example(self, device: str) -> Any:
        """An empty column, on whatever device the table is."""
        return self._make(np.empty(0, np.uint8))


def column_library(array: Any) -> Library | None:
    """The adapter for what answers a column or a frame, with its labels; None for other objects."""
    for base in type(array).__mro__:  # a subclass may live anywhere
        library = base.__module__.partition(".")[0]
        if base.__name__ in _CLASSES.get(library, ()):
            break
    else:
        return None
    plain = _LIBRARIES[library]
    if library == "pandas":
        make = partial(_pandas_column, index=array.index, name=getattr(array, "name", None))
    elif library == "polars" and hasattr(array, "name"):
        make = partial(_polars_column, name=array.name)
    else:
        return plain
    return ColumnLibrary(library, make, plain)


def plain_library(name: str) -> Library:
    """The adapter for columns without labels of a library; NumPy's, if the library has no columns."""
    return _LIBRARIES.get(name, NUMPY)


def _pandas_column(array: npt.NDArray[Any], index: Any = None, name: Any = None) -> Any:
    pandas = sys.modules["pandas"]
    if array.ndim == 1:
        return pandas.Series(array, index=index, name=name, copy=False)
    return pandas.DataFrame(array, index=index, copy=False)


def _polars_column(array: npt.NDArray[Any], name: str = "") -> Any:
    polars = sys.modules["polars"]
    made = polars.Series(name, array)
    if made.dtype == polars.Object:
        raise TypeError("Python objects")
    return made


def _arrow_column(array: npt.NDArray[Any]) -> Any:
    pyarrow = sys.modules["pyarrow"]
    made = pyarrow.array(array.reshape(-1))
    for extent in reversed(array.shape[1:]):
        made = pyarrow.FixedSizeListArray.from_arrays(made, extent)
    return made


_CLASSES = {
    "pandas": ("Series", "DataFrame"),
    "polars": ("Series", "DataFrame"),
    "pyarrow": ("Array", "ChunkedArray", "RecordBatch", "Table"),
}
_MAKERS: dict[str, Make] = {"pandas": _pandas_column, "polars": _polars_column, "pyarrow": _arrow_column}
_LIBRARIES: dict[str, Library] = {name: ColumnLibrary(name, make) for name, make in _MAKERS.items()}


@lru_cache
def _check_type(library: str, dtype: Dtype, row: Shape) -> None:
    """Raise `DtypeError` if a library has no column of such rows: before anything is done that needs an answer."""
    try:
        _MAKERS[library](np.empty((0, *row), dtype))
    except Exception:  # of the library's own
        full = np.dtype((dtype, row)) if row else dtype
        raise DtypeError(f"{library} has no column of {full}: pass NumPy arrays, or use another type") from None
