"""Columns of pandas, Polars and PyArrow: seen as NumPy arrays, and answered with columns of the same library.

A pandas Series, and a DataFrame whose columns are the items of a row, is answered with Series of its index. Polars is
answered with Series, and PyArrow with Arrays. Where values are rows, pandas gives a DataFrame, and the others give a
column of lists of fixed size. How columns are read: `read_column.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DtypeError
from ..arrow import give_values
from ..arrow_values import Names, Valid, arrow_format
from ..library import Allocator, ArrayView, Dtype, Library, Shape
from ..strings import StringArray
from ..times import in_unit_of
from .numpy import NUMPY

__all__ = [
    "ColumnLibrary",
    "column_library",
    "column_of",
    "frame_library",
    "frame_of_columns",
    "library_name",
    "name_items",
    "plain_library",
]

Make = Callable[[Any], Any]


class ColumnLibrary:
    """A library of columns in host memory. A result is a NumPy array until `export` makes a column of it.

    Parameters
    ----------
    name
        Name of the library.
    make
        Makes a column of a NumPy array, or of a `StringArray`.
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

    def strings(self, made: StringArray) -> Any:
        """A column of strings."""
        return self._make(made)

    def example(self, device: str) -> Any:
        """An empty column, on whatever device the table is."""
        return self._make(np.empty(0, np.uint8))


def library_name(array: Any) -> str | None:
    """The library of a column or a frame, whose own adapter is here; None for other objects."""
    return _class_of(array)[0]


def frame_library(given: Any) -> str | None:
    """The library of a frame, whose own adapter is here; None for columns and other objects."""
    library, name = _class_of(given)
    return library if name in _FRAMES else None


def _class_of(given: Any) -> tuple[str | None, str]:
    """The library and the name of the class with an adapter that an object is of."""
    for base in type(given).__mro__:  # a subclass may live anywhere
        library = base.__module__.partition(".")[0]
        if base.__name__ in _CLASSES.get(library, ()):
            return library, base.__name__
    return None, ""


def column_library(array: Any) -> Library | None:
    """The adapter for what answers a column or a frame, with its labels; None for other objects."""
    library = library_name(array)
    if library is None:
        return None
    plain = _LIBRARIES[library]
    if library == "pandas":
        name = None if hasattr(array, "columns") else array.name  # a frame may have a column of that name
        make = partial(_pandas_column, index=array.index, name=name)
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


def column_of(library: str, array: npt.NDArray[Any] | StringArray, valid: Valid = None) -> Any:
    """A column of a library, without labels; null where ``valid`` is False. Strings say themselves which are null.

    Where there are nulls, NaT is none of them: such times become Arrow data, in which NaT is the least number.

    Raises
    ------
    DtypeError
        If the library has no such column.
    """
    if isinstance(array, StringArray):
        return _STRINGS[library](array)
    try:
        return _COLUMNS[library](array, valid)
    except MemoryError:
        raise
    except Exception:  # of the library's own
        full = np.dtype((array.dtype, array.shape[1:])) if array.shape[1:] else array.dtype
        raise DtypeError(f"{library} has no column of {full}: pass NumPy arrays, or use another type") from None


def _of_pandas(array: npt.NDArray[Any], valid: Valid) -> Any:
    pandas = sys.modules["pandas"]
    if array.dtype.kind in "Mm":
        array = _in_units(array, ("s", "ms", "us", "ns"))  # as pandas does, which rounds times of finer units
    is_decimal = array.dtype.names is not None and arrow_format(array.dtype) is not None
    if valid is None and not is_decimal:
        return pandas.Series(array, copy=False) if array.ndim == 1 else pandas.DataFrame(array, copy=False)
    if valid is None and array.ndim == 2:
        return pandas.DataFrame({number: _of_pandas(array[:, number], None) for number in range(array.shape[1])})
    nullable = _NULLABLE_OF_PANDAS.get(array.dtype.kind)
    if array.ndim == 1 and nullable is not None and array.dtype != np.float16:
        return pandas.Series(getattr(pandas.arrays, nullable)(array, ~np.asarray(valid)))
    made = _of_pyarrow(array, valid)
    return pandas.Series(made, dtype=pandas.ArrowDtype(made.type))


_NULLABLE_OF_PANDAS = {"b": "BooleanArray", "i": "IntegerArray", "u": "IntegerArray", "f": "FloatingArray"}
"""The class of pandas' columns with a mask, by the kind of the values."""


def _of_polars(array: npt.NDArray[Any], valid: Valid) -> Any:
    polars = sys.modules["polars"]
    form = arrow_format(array.dtype)
    if valid is not None and _has_nat(array):
        array, form = _numbers_of(array, ("ms", "us", "ns"))
    if array.ndim > 1 and array.size:
        made = _of_polars(array.reshape(-1), None).reshape(array.shape)
    elif form is not None:
        if form.endswith(",256"):
            raise TypeError("Polars ends the process, or panics, if it gets decimal numbers of 256 bits")
        return polars.Series(_Given(array.reshape(-1), valid, form))
    else:
        made = polars.Series(array)
    if made.dtype == polars.Object:
        raise TypeError("Python objects")
    if valid is None:
        return made
    return made.zip_with(polars.Series(valid), polars.repeat(None, len(array), dtype=made.dtype, eager=True))


def _of_pyarrow(array: npt.NDArray[Any], valid: Valid) -> Any:
    pyarrow = import_module("pyarrow")
    form = arrow_format(array.dtype)
    if valid is not None and _has_nat(array):
        array, form = _numbers_of(array, ("s", "ms", "us", "ns"))
    items = np.ascontiguousarray(array).reshape(-1)
    of_items = None if array.ndim > 1 else valid
    if form is not None:
        made = pyarrow.array(_Given(items, of_items, form))
    else:
        made = pyarrow.array(items, mask=None if of_items is None else ~of_items)
    for extent in reversed(array.shape[1:]):
        made = pyarrow.FixedSizeListArray.from_arrays(made, extent)
    if of_items is valid:
        return made
    return pyarrow.FixedSizeListArray.from_arrays(made.values, array.shape[1], mask=pyarrow.array(~np.asarray(valid)))


_COLUMNS: dict[str, Callable[[npt.NDArray[Any], Valid], Any]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_pyarrow,
}


def _strings_of_pandas(made: StringArray) -> Any:
    pandas = sys.modules["pandas"]
    if not made.text:
        return pandas.Series(made.tolist(), dtype=object)
    dtype = pandas.Series(dtype="str").dtype
    if getattr(dtype, "storage", "python") != "pyarrow":
        return pandas.Series(made.tolist(), dtype=dtype)
    return pandas.Series(pandas.array(_strings_of_pyarrow(made), dtype))  # without an object for each string


def _strings_of_polars(made: StringArray) -> Any:
    return sys.modules["polars"].Series(made)


def _strings_of_pyarrow(made: StringArray) -> Any:
    return sys.modules["pyarrow"].array(made)


_STRINGS: dict[str, Callable[[StringArray], Any]] = {
    "pandas": _strings_of_pandas,
    "polars": _strings_of_polars,
    "pyarrow": _strings_of_pyarrow,
}


def _has_nat(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind in "Mm" and bool(np.isnat(array).any())


def _in_units(times: npt.NDArray[Any], units: Sequence[str]) -> npt.NDArray[Any]:
    """Times in a unit of some: in their own, or in the coarsest or the finest of these that has all of the times."""
    unit = np.datetime_data(times.dtype)
    if unit[0] in units and unit[1] == 1:
        return times
    for other in () if unit[0] in ("ps", "fs", "as") else (units[0], units[-1]):
        dtype = np.dtype(f"{times.dtype.kind}8[{other}]")
        if np.can_cast(times.dtype, dtype, "same_kind"):  # no spans of months
            made, fits = in_unit_of(times, dtype)
            if fits.all():
                return made
    raise TypeError(f"no unit for {times.dtype}")


def _numbers_of(times: npt.NDArray[Any], units: Sequence[str]) -> tuple[npt.NDArray[np.int64], str]:
    """Times as Arrow has them, where a library takes some units: their numbers and the format. NaT is a number, too.

    Days, of which Arrow has 32 bits and no NaT, become times of another unit.
    """
    if np.datetime_data(times.dtype)[0] not in (*units, "D"):
        raise TypeError(f"no unit for {times.dtype}")
    times = _in_units(times, units)
    unit = {"s": "s", "ms": "m", "us": "u", "ns": "n"}[np.datetime_data(times.dtype)[0]]
    return times.view(np.int64), f"ts{unit}:" if times.dtype.kind == "M" else f"tD{unit}"


def frame_of_columns(library: str, names: Names, columns: Sequence[Any]) -> Any:
    """A frame of a library: of its own columns, without labels, by their names.

    Raises
    ------
    DtypeError
        If the library has no columns of such names.
    """
    pairs = zip(names, columns, strict=True)
    if library == "pandas":
        frame = sys.modules["pandas"].concat(list(columns), axis=1, ignore_index=True)
        frame.columns = list(names)
        return frame
    if not all(isinstance(name, str) for name in names):
        shown = ", ".join(map(repr, names))
        raise DtypeError(f"{library} has text for names of columns, got {shown}: pass like='pandas' or like='numpy'")
    module = import_module(library)
    return module.DataFrame(dict(pairs)) if library == "polars" else module.table(dict(pairs))


def name_items(made: Any, names: Names) -> Any:
    """Rows, with the names of their items where the library has such: as the columns of a DataFrame of pandas."""
    if library_name(made) == "pandas" and hasattr(made, "columns") and len(made.columns) == len(names):
        made.columns = list(names)
    return made


def _pandas_column(array: npt.NDArray[Any] | StringArray, index: Any = None, name: Any = None) -> Any:
    made = column_of("pandas", array)
    if index is not None:
        made.index = index
    if len(array.shape) == 1:
        made.name = name
    return made


def _polars_column(array: npt.NDArray[Any] | StringArray, name: str = "") -> Any:
    return column_of("polars", array).alias(name)


def _arrow_column(array: npt.NDArray[Any] | StringArray) -> Any:
    return column_of("pyarrow", array)


_CLASSES = {
    "pandas": ("Series", "DataFrame"),
    "polars": ("Series", "DataFrame"),
    "pyarrow": ("Array", "ChunkedArray", "RecordBatch", "Table"),
}
_FRAMES = ("DataFrame", "RecordBatch", "Table")
_MAKERS: dict[str, Make] = {"pandas": _pandas_column, "polars": _polars_column, "pyarrow": _arrow_column}
_LIBRARIES: dict[str, Library] = {name: ColumnLibrary(name, make) for name, make in _MAKERS.items()}


@lru_cache
def _check_type(library: str, dtype: Dtype, row: Shape) -> None:
    """Raise `DtypeError` if a library has no column of such rows: before anything is done that needs an answer."""
    column_of(library, np.empty((0, *row), dtype))
