"""Columns of pandas, Polars and PyArrow: seen as NumPy arrays, and answered with columns of the same library.

A pandas Series, and a DataFrame whose columns are the items of a row, is answered with Series of its index. Polars is
answered with Series, and PyArrow with Arrays. Where values are rows, pandas gives a DataFrame, and the others give a
column of lists of fixed size. How columns are read: `read_column.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DtypeError
from ..arrow import give_values
from ..arrow_values import Names, Valid, arrow_format
from ..library import Allocator, ArrayView, Dtype, Library, Shape
from .numpy import NUMPY

__all__ = ["ColumnLibrary", "column_library", "column_of", "library_name", "name_items", "plain_library"]

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
        """View an array, of which `export` makes a column."""
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


def library_name(array: Any) -> str | None:
    """The library of a column or a frame, whose own adapter is here; None for other objects."""
    for base in type(array).__mro__:  # a subclass may live anywhere
        library = base.__module__.partition(".")[0]
        if base.__name__ in _CLASSES.get(library, ()):
            return library
    return None


def column_library(array: Any) -> Library | None:
    """The adapter for what answers a column or a frame, with its labels; None for other objects."""
    library = library_name(array)
    if library is None:
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


class _Given:
    """Values of a type that Arrow has and NumPy names otherwise, as a column of Arrow data."""

    def __init__(self, array: npt.NDArray[Any], valid: Valid, form: str) -> None:
        self._given = array, valid, form

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return give_values(*self._given)


def column_of(library: str, array: npt.NDArray[Any], valid: Valid = None) -> Any:
    """A column of a library, without labels; null where ``valid`` is False.

    Raises
    ------
    Exception
        Of the library's own, if the library has no such column.
    """
    module = sys.modules[library]
    form = arrow_format(array.dtype)
    if library == "pyarrow":
        return _arrow_column(array, valid)
    if library == "polars":
        if array.ndim > 1 and array.size and valid is None:
            return column_of(library, array.reshape(-1)).reshape(array.shape)
        if form is not None:
            return module.Series(_Given(array.reshape(-1), valid, form))
        made = module.Series(array)
        if made.dtype == module.Object:
            raise TypeError("Python objects")
        if valid is None:
            return made
        return made.zip_with(module.Series(valid), module.repeat(None, len(array), dtype=made.dtype, eager=True))
    if form is not None and array.dtype.names is not None:
        if array.ndim == 2:
            return module.DataFrame({number: column_of(library, array[:, number]) for number in range(array.shape[1])})
        arrow = import_module("pyarrow").array(_Given(array, valid, form))
        return module.Series(arrow, dtype=module.ArrowDtype(arrow.type))
    made = module.Series(array, copy=False) if array.ndim == 1 else module.DataFrame(array, copy=False)
    if valid is None:
        return made
    nullable = {"i": "Int", "u": "UInt", "f": "Float"}.get(array.dtype.kind)
    return (made.astype(f"{nullable}{8 * array.dtype.itemsize}") if nullable else made).where(valid)


def name_items(made: Any, names: Names) -> Any:
    """Rows, with the names of their items where the library has such: as the columns of a DataFrame of pandas."""
    if library_name(made) == "pandas" and hasattr(made, "columns") and len(made.columns) == len(names):
        made.columns = list(names)
    return made


def _pandas_column(array: npt.NDArray[Any], index: Any = None, name: Any = None) -> Any:
    made = column_of("pandas", array)
    if index is not None:
        made.index = index
    if array.ndim == 1:
        made.name = name
    return made


def _polars_column(array: npt.NDArray[Any], name: str = "") -> Any:
    return column_of("polars", array).alias(name)


def _arrow_column(array: npt.NDArray[Any], valid: Valid = None) -> Any:
    pyarrow = sys.modules["pyarrow"]
    form = arrow_format(array.dtype)
    items = np.ascontiguousarray(array).reshape(-1)
    if array.ndim > 1 and valid is not None:
        made = _arrow_column(array)
        return pyarrow.FixedSizeListArray.from_arrays(made.values, array.shape[1], mask=pyarrow.array(~valid))
    if form is not None:
        made = pyarrow.array(_Given(items, valid, form))
    else:
        made = pyarrow.array(items, mask=None if valid is None else ~valid)
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
