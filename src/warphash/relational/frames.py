"""Frames: columns of one length with names, of pandas, Polars and PyArrow, and mappings of names to arrays.

What a verb answers is a frame of the library that it was given.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from ..arrays.adapters.columns import frame_library, library_name
from ..arrays.arrow_views import taken_rows
from ..errors import DtypeError, ParameterError, ShapeError
from ..near_names import did_you_mean
from .elements import elements_of
from .numbered import Indices

__all__ = ["Frame", "columns_of", "frame_of", "is_frame", "named"]


class Frame(Protocol):
    """A frame."""

    library: str
    """Its name; ``"mapping"`` for a mapping."""

    suffixes: tuple[str, str]
    """What the library appends to names that both sides of a join have, on each side."""

    @property
    def names(self) -> list[Any]:
        """The names of the columns, which may repeat."""

    def column(self, place: int) -> Any:
        """The column at a place, as `elements_of` takes it. It has the labels of the frame, and no name."""

    def taken(self, rows: Indices) -> Any:
        """The rows at some positions, with their labels."""

    def whole(self, column: Any) -> Any:
        """All items of a column, without labels, which share no memory that a caller writes to."""

    def with_nulls(self, column: Any, rows: Indices) -> Any:
        """The items of a column at some positions; nulls at -1."""

    def made(self, columns: Mapping[Any, Any]) -> Any:
        """A frame of columns of this library, or of arrays of NumPy, by their names."""


class _PandasFrame:
    library, suffixes = "pandas", ("_x", "_y")

    def __init__(self, given: Any) -> None:
        self._given, self._pandas = given, sys.modules["pandas"]

    @property
    def names(self) -> list[Any]:
        return list(self._given.columns)

    def column(self, place: int) -> Any:
        return self._given.iloc[:, place].rename(None)

    def taken(self, rows: Indices) -> Any:
        return self._given.take(rows)

    def whole(self, column: Any) -> Any:
        return column.reset_index(drop=True)

    def with_nulls(self, column: Any, rows: Indices) -> Any:
        array = column.array
        is_wrapped = isinstance(array, self._pandas.arrays.NumpyExtensionArray)  # strings of pandas may be, too
        if is_wrapped and isinstance(column.dtype, np.dtype):  # it would refuse nulls among integers
            array = array.to_numpy()
        taken = self._pandas.api.extensions.take(array, rows, allow_fill=True)
        return self._pandas.Series(taken, dtype=taken.dtype)

    def made(self, columns: Mapping[Any, Any]) -> Any:
        return self._pandas.DataFrame(dict(columns), copy=False)


class _PolarsFrame:
    library, suffixes = "polars", ("", "_right")

    def __init__(self, given: Any) -> None:
        self._given, self._polars = given, sys.modules["polars"]

    @property
    def names(self) -> list[Any]:
        return list(self._given.columns)

    def column(self, place: int) -> Any:
        return self._given.to_series(place).alias("")

    def taken(self, rows: Indices) -> Any:
        return self._given[rows]

    def whole(self, column: Any) -> Any:
        return column  # nobody writes to it

    def with_nulls(self, column: Any, rows: Indices) -> Any:
        polars, places = self._polars, self._polars.Series(rows)
        return column.gather(polars.select(polars.when(places >= 0).then(places)).to_series())

    def made(self, columns: Mapping[Any, Any]) -> Any:
        return self._polars.DataFrame(dict(columns))


class _ArrowFrame:
    library, suffixes = "pyarrow", ("", "_right")

    def __init__(self, given: Any) -> None:
        self._given, self._arrow = given, import_module("pyarrow")

    @property
    def names(self) -> list[Any]:
        return list(self._given.column_names)

    def column(self, place: int) -> Any:
        return self._given.column(place)

    def taken(self, rows: Indices) -> Any:
        return taken_rows(self._given, self._arrow.array(rows))

    def whole(self, column: Any) -> Any:
        return column  # nobody writes to it

    def with_nulls(self, column: Any, rows: Indices) -> Any:
        return taken_rows(column, self._arrow.array(rows, mask=rows < 0))

    def made(self, columns: Mapping[Any, Any]) -> Any:
        return self._arrow.table(dict(columns))


class _ArrayFrame:
    """A mapping of names to arrays. There are no nulls: NaN, or None in arrays of objects, stands for them.

    A column of several axes has an array for each row, along the first axis.

    Raises
    ------
    ShapeError
        If the columns are not of one length, or one is a single value.
    """

    library, suffixes = "mapping", ("", "_right")

    def __init__(self, given: Mapping[Any, Any]) -> None:
        self._given = dict(given)
        _check_lengths(self._given)

    @property
    def names(self) -> list[Any]:
        return list(self._given)

    def column(self, place: int) -> Any:
        return list(self._given.values())[place]

    def taken(self, rows: Indices) -> Any:
        return {name: elements_of(column, 0).taken(rows) for name, column in self._given.items()}

    def whole(self, column: Any) -> Any:
        elements = elements_of(column, 0)
        return elements.taken(elements.ranks(len(elements)))

    def with_nulls(self, column: Any, rows: Indices) -> Any:
        elements, found = elements_of(column, 0), rows >= 0
        if len(elements):
            taken = elements.taken(rows.clip(0))
        else:  # nulls alone
            shape = (len(rows), *elements.shape[1:])
            taken = elements.in_type(elements.ranks(math.prod(shape)).reshape(shape), np.dtype(np.float64))
        return elements.apart_with_nulls(taken, found)

    def made(self, columns: Mapping[Any, Any]) -> Any:
        return dict(columns)


def _check_lengths(columns: Mapping[Any, Any]) -> None:
    shapes = {name: _shape_of(column) for name, column in columns.items()}
    for name, shape in shapes.items():
        if not shape:
            raise ShapeError(f"a column of a frame has an item for each row, and {name!r} is a single value: repeat it")
        if len(shape) > 1 and getattr(columns[name], "dtype", None) == np.dtype(object):
            raise ShapeError(
                f"expected Python objects of one axis, got shape {shape} in column {name!r}: give each of its columns "
                "a name of its own"
            )
    if len({shape[0] for shape in shapes.values()}) > 1:
        shown = ", ".join(f"{shape[0]:,} in {name!r}" for name, shape in shapes.items())
        raise ShapeError(
            f"the columns of a frame must be of one length, got {shown}: give one item of each column for each row"
        )


def _shape_of(column: Any) -> tuple[int, ...]:
    if isinstance(column, str | bytes):
        return ()
    shape = getattr(column, "shape", None)
    if shape is None:
        return (len(column),) if hasattr(column, "__len__") else elements_of(column).shape
    return tuple(shape)


def is_frame(given: Any) -> bool:
    """Whether an object is a frame, as `frame_of` takes it. Reads nothing of a stream."""
    return _adapter_of(given) is not None


def frame_of(given: Any) -> Frame:
    """See a frame that a caller gave.

    Parameters
    ----------
    given
        A DataFrame of pandas or Polars; a Table of PyArrow; a RecordBatch, a RecordBatchReader, or another object with
        ``__arrow_c_stream__``, such as a relation of DuckDB, which become Tables; or a mapping of names to arrays. A
        stream can be read once.

    Raises
    ------
    DtypeError
        For another object.
    ShapeError
        For a mapping of columns of several lengths.
    """
    adapter = _adapter_of(given)
    if adapter is None:
        raise DtypeError(
            "expected a frame of pandas, Polars or PyArrow, or a mapping of names to arrays, got "
            f"{type(given).__name__}: put the columns into one, and collect a lazy one"
        )
    return adapter(given)


def _adapter_of(given: Any) -> Callable[[Any], Frame] | None:
    """What sees a frame; None for another object."""
    if library := frame_library(given):
        return _ADAPTERS[library]
    if isinstance(given, Mapping):
        return _ArrayFrame
    if hasattr(given, "__arrow_c_stream__") and library_name(given) is None:
        return _of_stream if any(hasattr(given, name) for name in ("schema", "columns")) else None
    return None


def _of_arrow(given: Any) -> Frame:
    table = import_module("pyarrow").Table
    return _ArrowFrame(given if isinstance(given, table) else table.from_batches([given]))


def _of_stream(given: Any) -> Frame:
    return _ArrowFrame(import_module("pyarrow").RecordBatchReader.from_stream(given).read_all())


_ADAPTERS: dict[str, Callable[[Any], Frame]] = {"pandas": _PandasFrame, "polars": _PolarsFrame, "pyarrow": _of_arrow}


def columns_of(frame: Frame) -> list[Any]:
    """All columns."""
    return [frame.column(place) for place in range(len(frame.names))]


def named(names: list[Any], wanted: Hashable | Sequence[Hashable], parameter: str) -> list[int]:
    """The places of some columns among the names of a frame: of one name, or of a list or tuple of names.

    Raises
    ------
    ParameterError
        If there is no such column, or more than one; and for an empty list.
    """
    asked = list(wanted) if isinstance(wanted, list | tuple) and wanted not in names else [wanted]
    if not asked and not names:
        raise ParameterError(f"expected a frame with columns for {parameter}, got one without")
    if not asked:
        raise ParameterError(f"expected at least one name of a column in {parameter}, got an empty list")
    return [_place(names, name, parameter) for name in asked]


def _place(names: list[Any], name: Any, parameter: str) -> int:
    count = names.count(name)
    if count == 1:
        return names.index(name)
    if count > 1:
        raise ParameterError(f"expected one column {name!r} in {parameter}, got {count}: rename all but one of them")
    raise ParameterError(f"there is no column {name!r} ({parameter}): {_nearest(name, names)}")


def _nearest(name: Any, names: list[Any]) -> str:
    return did_you_mean(name, names) or (
        f"the columns are {', '.join(map(repr, dict.fromkeys(names)))}" if names else "the frame has no columns"
    )
