"""The columns of keys that are rows of several columns, in every form in which a caller may give them.

| given | is |
| --- | --- |
| a tuple of arrays, columns or lists | the columns of a batch |
| a tuple of single values | one key |
| a list of tuples, of mappings or of named tuples | a batch, row by row |
| a mapping or a named tuple | as a tuple, by the names of its items |
| a frame of pandas, Polars or PyArrow, a column of structs, an array of records | the columns of a batch, by name |
| an index of pandas with levels | the columns of a batch, by the names of the levels |
| an array with two axes | the columns of a batch |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ShapeError
from .adapters.columns import frame_library, library_name
from .arrow import ArrowData, Chunk, read_arrow, speaks_arrow
from .arrow_values import Names, Valid
from .plain_array import gives_array, plain_array, python_value
from .row_names import is_row_of_frame, named_rows
from .string_column import is_one_item

__all__ = ["GivenColumns", "are_columns", "columns_of", "is_table"]


class GivenColumns(NamedTuple):
    """The columns of one key, or of a batch.

    Attributes
    ----------
    columns
        Single values of one key; else arrays, columns of a library, or lists.
    names
        Of the columns; None if they have none.
    is_one
        It is one key.
    like
        Whose library, and whose labels, the answers have.
    are_rows
        Which elements of a list are rows of so many items, bool[n]; None if all are. The items of others are None.
    valid
        Which rows are no nulls as a whole, bool[n]; None if all are. The items of others are anything.
    """

    columns: Sequence[Any]
    names: Names | None
    is_one: bool
    like: Any
    are_rows: Valid = None
    valid: Valid = None


def are_columns(given: Any) -> bool:
    """Whether an object is a tuple of arrays of one axis, of columns and of lists, not of lists alone."""
    if not isinstance(given, tuple) or hasattr(given, "_fields") or not any(map(_is_column, given)):
        return False
    return all(isinstance(column, list) or _is_column(column) for column in given)


def _is_column(given: Any) -> bool:
    if isinstance(given, list | str | bytes):
        return False
    return (gives_array(type(given)) or speaks_arrow(given)) and len(getattr(given, "shape", (None,))) == 1


def is_table(given: Any) -> bool:
    """Whether an object is a frame, a mapping of columns, an index with levels, or a column of structs."""
    if isinstance(given, ArrowData):
        return bool(given.chunks) and given.chunks[0].format == "+s"
    if isinstance(given, Mapping) or frame_library(given) is not None or _has_levels(given):
        return True
    if library_name(given) is None or not speaks_arrow(given):
        return False
    return str(getattr(given, "type", getattr(given, "dtype", ""))).lower().startswith("struct")


def columns_of(given: Any, count: int | None, known: Names | None) -> GivenColumns:
    """The columns of what a caller gave for a key, or for a batch of keys.

    Parameters
    ----------
    count
        How many columns a key has; None if any number will do.
    known
        The names of the columns, as far as the table knows any: by these, a row of a frame is one.

    Raises
    ------
    DtypeError
        For another object than a key or keys of several columns.
    ShapeError
        For another number of columns, and for single values among columns.
    """
    value = python_value(given)
    if isinstance(value, np.ndarray):
        made = _of_array(value, count)
    elif isinstance(value, np.void) and value.dtype.names:
        made = GivenColumns(list(value.tolist()), _names_of_fields(value.dtype), True, None)
    elif known is not None and is_row_of_frame(value, known):
        made = GivenColumns(list(value), tuple(value.index), True, None)
    elif isinstance(value, tuple | Mapping):
        made = _of_items(value)
    elif isinstance(value, list):
        made = _of_rows(value, count)
    else:
        made = _of_table(value, count)
    names = made.names or ()
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DtypeError(
            f"expected columns that each have a name of their own, got {repeated!r} twice: rename the columns"
        )
    if count is not None and len(made.columns) != count:
        unit = "column" if count == 1 else "columns"
        raise ShapeError(
            f"expected keys of {count} {unit}, got {len(made.columns)}: give a tuple with one array, or one value, for "
            "each column, or a frame of these columns"
        )
    return made


def _of_array(array: npt.NDArray[Any], count: int | None) -> GivenColumns:
    array = plain_array(array)
    if array.dtype.names:
        fields = [array[name] for name in array.dtype.names]
        if array.ndim > 1:
            raise ShapeError(f"keys of several columns must have shape (n,), got {array.shape}: give array.reshape(-1)")
        names = _names_of_fields(array.dtype)
        return GivenColumns([field[()] for field in fields], names, array.ndim == 0, array if array.ndim else None)
    if array.ndim == 1 and array.dtype.kind == "O":
        return _of_rows(array.tolist(), count)
    if array.ndim != 2:
        raise ShapeError(
            f"expected keys of several columns, got one array of shape {array.shape}: give a tuple with one array for "
            "each column"
        )
    return GivenColumns([np.ascontiguousarray(column) for column in array.T], None, False, array)


def _names_of_fields(dtype: np.dtype[Any]) -> Names | None:
    """The names of fields; None for those that NumPy gives to fields without a name."""
    names = dtype.names or ()
    return None if names == tuple(f"f{number}" for number in range(len(names))) else names


def _of_items(given: tuple[Any, ...] | Mapping[Any, Any]) -> GivenColumns:
    """The items of a tuple or a mapping, which are single values or columns."""
    is_mapping = isinstance(given, Mapping)
    names = tuple(given) if is_mapping else getattr(given, "_fields", None)
    items = list(given.values()) if isinstance(given, Mapping) else list(given)
    single = [is_one_item(python_value(item)) or getattr(item, "shape", None) == () for item in items]
    if all(single):
        return GivenColumns(items, names, True, None)
    if any(single):
        number = single.index(True)
        raise ShapeError(
            f"expected columns of one length, or single values alone, got a single value for column {number} beside "
            "columns: repeat it, as in numpy.full(n, value)"
        )
    return GivenColumns(items, names, False, items[0])


def _of_rows(given: list[Any], count: int | None) -> GivenColumns:
    """The columns of a list of rows; what is no row of so many items has None in each."""
    rows, names = named_rows(given)
    rows = [row.tolist() if isinstance(row, np.void) else row for row in map(python_value, rows)]
    if count is None:
        count = next((len(row) for row in rows if isinstance(row, tuple | list)), 0)
    is_row = [isinstance(row, tuple | list) and len(row) == count for row in rows]
    if rows and not any(is_row):
        first = rows[0]
        got = f"{len(first)} items" if isinstance(first, tuple | list) else type(first).__name__
        raise ShapeError(
            f"expected a list of rows of {count} items, got one that begins with {got}: give a tuple for one key, a "
            "list of tuples, or a tuple with one array for each column"
        )
    if all(is_row):
        columns = list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in range(count)]
        return GivenColumns(columns, names, False, given)
    nothing = (None,) * count
    whole = [row if fits else nothing for row, fits in zip(rows, is_row, strict=True)]
    columns = list(map(list, zip(*whole, strict=True)))
    return GivenColumns(columns, names, False, given, np.array(is_row, np.bool_))


def _of_table(given: Any, count: int | None) -> GivenColumns:
    """The columns of a frame, of structs, or of an index with levels."""
    if _has_levels(given):
        names = tuple(given.names)
        columns = [given.get_level_values(number) for number in range(given.nlevels)]
        return GivenColumns(columns, None if None in names else names, False, given)
    if frame_library(given) == "pandas":
        names = tuple(given.columns)
        return GivenColumns([given.iloc[:, number] for number in range(len(names))], names, False, given)
    if library_name(given) == "pandas" and given.dtype == object:
        return _of_rows(given.tolist(), count)._replace(like=given)
    chunks = read_arrow(given)
    if not chunks or any(chunk.format != "+s" for chunk in chunks):
        raise DtypeError(
            f"expected keys of several columns, got {type(given).__name__}: give a tuple with one array for each "
            "column, a list of tuples, or a frame"
        )
    names = tuple(child.name for child in chunks[0].children)
    columns = [ArrowData([chunk.child(number) for chunk in chunks]) for number in range(len(names))]
    return GivenColumns(columns, names, False, given, valid=_valid_rows(chunks))


def _valid_rows(chunks: Sequence[Chunk]) -> Valid:
    """Which structs are no nulls as a whole; None if all are."""
    if all(chunk.valid is None for chunk in chunks):
        return None
    return np.concatenate([np.ones(chunk.length, np.bool_) if chunk.valid is None else chunk.valid for chunk in chunks])


def _has_levels(given: Any) -> bool:
    """Whether an object is an index of pandas with several levels."""
    is_of_pandas = type(given).__module__.partition(".")[0] == "pandas"
    return is_of_pandas and hasattr(given, "get_level_values") and given.nlevels > 1
