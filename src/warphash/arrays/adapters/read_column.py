"""Columns and frames of pandas, Polars and PyArrow, and whatever gives out Arrow data, as values in host memory.

Every value is carried over exactly, or the column is refused: with its nulls, the scale of decimal numbers, and the
names of columns and fields.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DtypeError
from ..arrow import check_codes, read_arrow
from ..arrow_values import Frame, Items, frame_or_items
from ..decimals import decimal_scale
from ..library import ArrayView
from ..plain_array import WITHOUT_UNIT, is_missing, refuse_unit
from ..row_names import with_names
from .columns import column_library
from .numpy import NUMPY, typed_objects

__all__ = ["read_column", "see_items"]

_MENDS = {
    **dict.fromkeys(
        ("str", "string"),
        "give a column of text alone to a table of type 'str', or text beside other columns as a NumPy array of a "
        "structured type, with a width such as U8",
    ),
    "period": "give the first moments, series.dt.to_timestamp(), of an index to_timestamp(), if the column has but one "
    "frequency",
    "interval": "give both ends as the columns of a frame: left, right = index.left, index.right",
}
"""What to do with a column of pandas that NumPy has no values for, by the name of its type."""


def read_column(given: Any, dtype: np.dtype[Any] | None = None) -> Items | None:
    """The values of a column, or the rows of a frame; None for other objects.

    Parameters
    ----------
    dtype
        Of an item, if that is known. Of a structured type, the rows of a frame are records, by the names of its
        columns; otherwise they are rows of items of one type.

    Raises
    ------
    DtypeError
        For types of which NumPy has no values, for frames that are no rows of one type, and for values with a unit.
    """
    is_text = dtype is not None and dtype.base.kind in "SU"
    made: Items | Frame | None = _text_of_polars(given) if is_text else None
    if made is None:
        made = _read(given)
    if made is not None:
        refuse_unit(given, WITHOUT_UNIT)
    if not isinstance(made, Frame):
        return made
    if dtype is None or dtype.names is None or decimal_scale(dtype) is not None:
        return made.as_rows(dtype)
    return made.as_records(dtype)


def see_items(given: Any, items: Items) -> ArrayView:
    """View values that were read of a column, which is answered with columns of its library."""
    seen, library = NUMPY.see(items.array), column_library(given)
    if library is not None:
        seen = seen._replace(library=library, owner=given)
    return seen if items.names is None else with_names(seen, items.names)


def _read(given: Any) -> Items | Frame | None:
    if _is_of_pandas(given):
        return _of_pandas(given)
    if type(given).__module__.partition(".")[0] == "polars":
        polars = sys.modules["polars"]
        if isinstance(given, polars.LazyFrame):
            raise DtypeError("expected a column or a frame, got a LazyFrame: call .collect()")
        if polars.Object in (given.dtypes if hasattr(given, "columns") else [given.dtype]):
            raise DtypeError(
                "expected a type that Polars knows, got a column of Python objects: give series.to_list(), whose "
                "items are checked one by one"
            )
    if type(given).__module__.partition(".")[0] == "pyarrow" and hasattr(given, "as_py"):
        return _of_scalar(given)
    chunks = read_arrow(given)
    return None if chunks is None else frame_or_items(chunks)


def _text_of_polars(given: Any) -> Items | None:
    """Text of Polars without nulls as NumPy's strings of the longest one's length; None for other objects."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(given, polars.Series) or given.dtype != polars.String or given.null_count():
        return None
    return Items(np.asarray(given, np.str_))


def _of_scalar(given: Any) -> Items:
    """A single value of PyArrow: an item, or a row."""
    pyarrow = sys.modules["pyarrow"]
    made = frame_or_items(read_arrow(pyarrow.repeat(given, 1)) or [])
    items = made.as_rows() if isinstance(made, Frame) else made
    if items.valid is not None:
        raise DtypeError("expected a value, got a null: give None to a table with nulls='key'")
    return Items(items.array[0], None, items.names)


# ---- pandas
def _is_of_pandas(given: Any) -> bool:
    """Whether an object is a column, an index, an extension array or a frame, also of a class derived of these."""
    kind = type(given)
    if not (hasattr(kind, "dtype") or hasattr(kind, "dtypes")):
        return False
    return any(base.__module__.partition(".")[0] == "pandas" for base in kind.__mro__)


def _of_pandas(given: Any) -> Items | Frame:
    if hasattr(given, "columns"):
        names = tuple(given.columns)
        return Frame(names, [_items(given.iloc[:, number]) for number in range(len(names))])
    dtype = given.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return frame_or_items(read_arrow(sys.modules["pyarrow"].array(given)) or [])
    return _items(given)


def _items(given: Any) -> Items:
    pandas, dtype = sys.modules["pandas"], given.dtype
    if isinstance(dtype, np.dtype) or type(dtype).__name__ == "NumpyEADtype":
        array = np.asarray(given)
        return _of_objects(array) if array.dtype.kind == "O" else Items(array)
    if hasattr(dtype, "pyarrow_dtype"):
        made = _of_pandas(given)
        return made.as_rows() if isinstance(made, Frame) else made
    if isinstance(dtype, pandas.CategoricalDtype):
        return _of_codes(getattr(given, "cat", given))
    if isinstance(dtype, pandas.SparseDtype):
        return Items(np.asarray(given, dtype.subtype))
    valid = ~np.asarray(given.isna(), np.bool_)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        array = np.asarray(given, f"datetime64[{dtype.unit}]")
    elif isinstance(getattr(dtype, "numpy_dtype", None), np.dtype) and dtype.numpy_dtype.kind in "biuf":
        array = given.to_numpy(dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
    else:
        name = str(dtype).partition("[")[0]
        mend = _MENDS.get(name, "convert the column to a type of NumPy's, or give a list of its values")
        raise DtypeError(f"expected a type that NumPy has, got a pandas column of {dtype}: {mend}")
    return Items(array, None if valid.all() else valid)


def _of_objects(array: npt.NDArray[Any]) -> Items:
    """Python objects, some of which may be nulls, in the type that a list of the others has."""
    valid = np.array([not is_missing(item) for item in array], np.bool_)
    if valid.all():
        return Items(typed_objects(array))
    kept = typed_objects(array[valid])
    made = np.zeros((len(array), *kept.shape[1:]), kept.dtype)
    made[valid] = kept
    return Items(made, valid)


def _of_codes(given: Any) -> Items:
    """The values of categories; a code of -1 is a null."""
    codes, categories = np.asarray(given.codes), _items(given.categories)
    valid = codes != -1
    check_codes(codes, len(categories.array), valid)
    if len(categories.array):
        array = categories.array.take(codes, axis=0, mode="clip")
    else:
        dtype = categories.array.dtype
        array = np.zeros(len(codes), np.float64 if dtype.hasobject else dtype)  # as of an empty list
    return Items(array, None if valid.all() else valid)
