"""Arrays and columns of a caller's: their items, values taken by position, and answers in the caller's library.

What a verb answers comes from the array that it was given. A column therefore keeps its type: categories, time zones,
nulls and decimal numbers are those of the caller.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.columns import column_library, column_of, library_name
from ..arrays.adapters.numpy import NUMPY
from ..arrays.adapters.read_column import read_column
from ..arrays.arrow_views import taken_rows, without_runs, without_views
from ..arrays.batch import library_of_rows
from ..arrays.exact import exactly
from ..arrays.key_column import text_of
from ..arrays.library import ArrayView, Shape
from ..arrays.nullable_column import without_nulls
from ..arrays.strings import StringArray, is_null, rows_of
from ..arrays.view import view
from ..errors import DtypeError, ParameterError, ShapeError, WarphashError
from .axes import checked_axis
from .device_elements import DeviceElements
from .items import Fixed, Items, nan_at, text_items
from .numbered import FIRSTS, Asked, Indices, Int64s, Numbers, number_items, stable_order
from .pairs import Pairs, RowLists, pairs_of, row_lists_of, seen_codes

__all__ = [
    "ArrayElements",
    "ColumnElements",
    "Elements",
    "HostElements",
    "KeptElements",
    "concatenated",
    "elements_of",
    "items_of_column",
]

_PLAIN = frozenset("biufcSUMm")
"""Kinds of NumPy's types that need no second look."""

_WITH_COLUMNS = ("pandas", "polars", "pyarrow")


class KeptElements(Protocol):
    """The elements of an array, of a column, or of a file, or rows of several columns: what an `Index` keeps."""

    def __len__(self) -> int: ...

    @property
    def items(self) -> Items:
        """What is compared in host memory. Raises `ShapeError` for rows of columns, and `DeviceError` on a GPU."""

    @property
    def xp(self) -> Any:
        """The module of positions, codes, counts and flags. It is used by names that NumPy, CuPy and PyTorch share."""

    def ranks(self, n: int) -> Any:
        """0, 1, 2, …, n - 1, int64."""

    def in_type(self, numbers: Any, dtype: np.dtype[Any]) -> Any:
        """Positions, codes or counts in another type."""

    def number(self, asked: Asked = FIRSTS) -> Numbers:
        """Number the distinct elements: `numbered.number_items`."""

    def taken(self, positions: Indices) -> Any:
        """The elements at some positions, as an array or a column of the caller's library."""

    def argsort(self, numbers: Indices) -> Indices:
        """The positions of some numbers in ascending order; equal ones stay in their order."""

    def row_lists(self, numbers: Numbers) -> RowLists:
        """The positions of each distinct element, of their numbers with codes and counts."""


class Elements(KeptElements, Protocol):
    """The elements of an array or a column, or the rows of several."""

    @property
    def shape(self) -> Shape:
        """Of what was given."""

    def order(self, values: Any) -> Indices:
        """The positions of values that were taken in ascending order; nulls come last, and before them NaN."""

    def lasts(self, numbers: Numbers) -> Indices:
        """The position at which each distinct element last appears, of its numbers with codes and counts."""

    def flags(self) -> Any:
        """True for each element."""

    def shares(self, counts: Indices) -> Any:
        """Counts as shares of their sum, float64."""

    def for_each(self, answers: npt.NDArray[Any]) -> Any:
        """One answer for each element, in the caller's library, with the shape or the labels of what was given."""

    def apart(self, answers: npt.NDArray[Any]) -> Any:
        """Answers for other than the elements, in the caller's library."""

    def apart_with_nulls(self, answers: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> Any:
        """As `apart`, with the nulls of the library, or else NaN: ``valid`` is False for these."""

    def is_nan(self, positions: Indices) -> Any:
        """Which of the elements at some positions are NaN or NaT, or rows with such an item; and no nulls."""

    def places_of(self, flags: Any) -> Any:
        """The positions of the flags that are set, ascending, int64."""

    def firsts_of(self, codes: Indices, size: int) -> Any:
        """The position at which each of so many codes first appears; -1 for a code that does not appear."""

    def pairs(self, codes: Indices, lists: RowLists | None, dtype: np.dtype[Any], *, keeps_all: bool) -> Pairs:
        """Pair positions with the rows of their codes: `pairs.pairs_of`."""

    def owners(self, offsets: Indices, total: int) -> Any:
        """The stretch that each of so many places lies in, int64: stretch i has those from ``offsets[i]`` on."""

    def seen(self, codes: Indices, size: int) -> Any:
        """Which of the codes below ``size`` are among some codes, of which -1 is none: bool[size]."""


class HostElements(ABC):
    """Elements in host memory: positions, codes, counts and flags are arrays of NumPy."""

    xp: Any = np

    @property
    @abstractmethod
    def items(self) -> Items:
        """What is compared."""

    @abstractmethod
    def __len__(self) -> int: ...

    def number(self, asked: Asked = FIRSTS) -> Numbers:
        """As `Elements.number`."""
        return number_items(self.items, asked)

    def argsort(self, numbers: Indices) -> Indices:
        """As `Elements.argsort`."""
        return stable_order(numbers)

    def ranks(self, n: int) -> Int64s:
        """As `Elements.ranks`."""
        return np.arange(n)

    def in_type(self, numbers: Any, dtype: np.dtype[Any]) -> Indices:
        """As `Elements.in_type`."""
        made: Indices = numbers.astype(dtype, copy=False)
        return made

    def is_nan(self, positions: Indices) -> npt.NDArray[np.bool_]:
        """As `Elements.is_nan`."""
        return nan_at(self.items, positions)

    def places_of(self, flags: npt.NDArray[np.bool_]) -> Int64s:
        """As `Elements.places_of`."""
        return np.flatnonzero(flags)

    def firsts_of(self, codes: Indices, size: int) -> Int64s:
        """As `Elements.firsts_of`."""
        made = np.full(size, -1, np.int64)
        made[codes[::-1]] = np.arange(len(codes))[::-1]  # the last of the positions that go to one place stays
        return made

    def row_lists(self, numbers: Numbers) -> RowLists:
        """As `KeptElements.row_lists`."""
        return row_lists_of(numbers)

    def pairs(self, codes: Indices, lists: RowLists | None, dtype: np.dtype[Any], *, keeps_all: bool) -> Pairs:
        """As `Elements.pairs`."""
        return pairs_of(codes, lists, dtype, keeps_all=keeps_all)

    def owners(self, offsets: Indices, total: int) -> Int64s:
        """As `Elements.owners`."""
        return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))

    def seen(self, codes: Indices, size: int) -> npt.NDArray[np.bool_]:
        """As `Elements.seen`."""
        return seen_codes(codes, size)

    def lasts(self, numbers: Numbers) -> Indices:
        """As `Elements.lasts`."""
        made, codes = np.empty(len(numbers.firsts), np.int64), numbers.code_of_each
        made[codes] = np.arange(len(codes))  # the last of the positions that go to one place stays
        return made

    def flags(self) -> npt.NDArray[np.bool_]:
        """As `Elements.flags`."""
        return np.ones(len(self), np.bool_)

    def shares(self, counts: Indices) -> npt.NDArray[np.float64]:
        """As `Elements.shares`."""
        return np.true_divide(counts, max(1, int(counts.sum())))


class ArrayElements(HostElements):
    """An array in host memory, of any library.

    Parameters
    ----------
    seen
        The array.
    axis
        Elements are the subarrays along this axis; None: they are the items, in one dimension.

    Raises
    ------
    ParameterError
        If the array has no such axis.
    """

    def __init__(self, seen: ArrayView, axis: int | None = None) -> None:
        host = seen.host
        assert host is not None
        self._seen, self._axis = seen, checked_axis(axis, host.ndim)
        if self._axis is None:
            self.array = host if host.ndim == 1 else host.reshape(-1)
        else:
            self.array = np.ascontiguousarray(np.moveaxis(host, self._axis, 0))

    def __len__(self) -> int:
        return len(self.array)

    @property
    def shape(self) -> Shape:
        """As `Elements.shape`."""
        return self._seen.shape

    @property
    def items(self) -> Items:
        """What is compared."""
        return Fixed(self.array)

    def taken(self, positions: Indices) -> Any:
        """As `Elements.taken`."""
        values = self.array[positions]
        return self._given(values if self._axis is None else np.moveaxis(values, 0, self._axis))

    def order(self, values: Any) -> Indices:
        """As `Elements.order`; rows are in the order of their first items that differ."""
        held = self._host_of(values)
        if self._axis is None:
            return stable_order(held) if held.dtype == np.int64 else np.argsort(held, kind="stable")
        rows = np.moveaxis(held, self._axis, 0)
        if not rows.size:
            return np.arange(len(rows))
        return np.lexsort(rows.reshape(len(rows), -1).T[::-1])

    def _host_of(self, values: Any) -> npt.NDArray[Any]:
        host = values if self._seen.library is NUMPY else self._seen.library.see(values).host
        assert host is not None
        return host

    def joined(self, other: ArrayElements) -> ArrayElements:
        """The items of two arrays, in a type that NumPy finds for both."""
        seen = NUMPY.see(np.concatenate((self.array, other.array)))
        return ArrayElements(seen._replace(library=library_of_rows(self._seen.library), place=self._seen.place))

    def for_each(self, answers: npt.NDArray[Any]) -> Any:
        """As `Elements.for_each`."""
        return self._given(answers if self._axis is not None else answers.reshape(self._seen.shape))

    def apart(self, answers: npt.NDArray[Any]) -> Any:
        """As `Elements.apart`."""
        return self._given(answers)

    def apart_with_nulls(self, answers: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> Any:
        """As `Elements.apart`, with nulls: NaN among floating-point numbers, else an array of NumPy with None."""
        host = answers if isinstance(answers, np.ndarray) else self._host_of(answers)
        made = _with_nulls(host, valid)
        return made if made.dtype == object else self._given(made)

    def _given(self, made: npt.NDArray[Any]) -> Any:
        """An array of the caller's library with what NumPy has made."""
        seen = self._seen
        if seen.library is NUMPY:
            return made
        out = library_of_rows(seen.library).empty(seen, made.shape, made.dtype, None)
        assert out.host is not None
        out.host[...] = made
        return out.export()


class ColumnElements(HostElements):
    """A column of a library with columns, strings of any length, or Python objects of which some are nulls.

    Parameters
    ----------
    given
        The column; a list as an array of objects.
    name
        Of the column in its frame, for messages; None: it is in none.

    Raises
    ------
    DtypeError
        For a column of another library.
    """

    def __init__(self, given: Any, name: Hashable | None = None) -> None:
        self._name = name
        if isinstance(given, StringArray):
            given = np.asarray(given)
        is_array = isinstance(given, np.ndarray)
        self._shape: Shape | None = given.shape if is_array else None
        self._given, self._library = (given.reshape(-1), "numpy") if is_array else (given, _module_of(given))
        if self._library not in ("numpy", *_WITH_COLUMNS):
            raise DtypeError(
                f"expected a column of pandas, Polars or PyArrow, got {type(given).__name__}: give pyarrow.array(x)"
            )

    def __len__(self) -> int:
        return len(self._given)

    @property
    def shape(self) -> Shape:
        """As `Elements.shape`."""
        return (len(self),) if self._shape is None else self._shape

    @cached_property
    def items(self) -> Items:
        """What is compared."""
        try:
            return items_of_column(self._given)
        except (DtypeError, ShapeError) as error:
            if self._name is None:
                raise
            raise type(error)(f"column {self._name!r}: {error}") from None

    def taken(self, positions: Indices) -> Any:
        """As `Elements.taken`. A Series of pandas has new labels."""
        given = self._given
        if self._library == "pandas":
            made = given.take(positions)
            return made.reset_index(drop=True) if hasattr(made, "reset_index") else made
        if self._library == "pyarrow":
            return taken_rows(given, positions)
        return given[positions]

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Which items are no nulls, also where `items` cannot be read."""
        if self._library == "pandas":
            return np.asarray(sys.modules["pandas"].notna(self._given), np.bool_)
        if self._library == "polars":
            return np.array(self._given.is_not_null())
        if self._library == "pyarrow":
            return np.array(self._given.is_valid())
        return np.array([not is_null(item) for item in self._given], np.bool_)

    def order(self, values: Any) -> Indices:
        """As `Elements.order`. Raises `DtypeError` for values that the library does not sort."""
        try:
            return self._order(values)
        except (MemoryError, WarphashError):
            raise
        except Exception as error:  # of any type: each library has its own
            dtype = getattr(values, "type", getattr(values, "dtype", "Python objects"))
            raise DtypeError(
                f"{self._library} does not sort values of type {dtype} ({error}): ask for the order of first "
                "appearance, sorted=False, sort=False or order='first'"
            ) from error

    def _order(self, values: Any) -> Indices:
        if self._library == "pandas":
            if getattr(values, "nlevels", 1) > 1:  # pandas makes no Series of an index with levels
                return np.asarray(values.argsort(), np.int64)
            numbered = sys.modules["pandas"].Series(values).reset_index(drop=True)
            return np.asarray(numbered.sort_values(kind="stable").index, np.int64)
        if self._library == "polars":
            return np.asarray(values.arg_sort(nulls_last=True), np.int64)
        if self._library == "pyarrow":
            return np.asarray(import_module("pyarrow.compute").sort_indices(_sortable(values)), np.int64)
        keys = [(is_null(item), 0 if is_null(item) else item) for item in values.tolist()]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)

    def for_each(self, answers: npt.NDArray[Any]) -> Any:
        """As `Elements.for_each`. Series of pandas keep their labels."""
        if self._shape is not None:
            return answers.reshape(self._shape)
        library = column_library(self._given)
        return answers if library is None else library.export(NUMPY.see(answers))

    def apart(self, answers: npt.NDArray[Any]) -> Any:
        """As `Elements.apart`."""
        library = column_library(self._given)
        return answers if library is None else library_of_rows(library).export(NUMPY.see(answers))

    def apart_with_nulls(self, answers: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> Any:
        """As `Elements.apart`, with the nulls of the library. Arrays without a library of columns are as NumPy's."""
        has_nulls = column_library(self._given) is not None
        return column_of(self._library, answers, valid) if has_nulls else _with_nulls(answers, valid)


def elements_of(given: Any, axis: int | None = None, name: Hashable | None = None) -> Elements:
    """See what a caller gave.

    Parameters
    ----------
    axis, name
        Of an array, as of `ArrayElements`; of a column, as of `ColumnElements`.

    Raises
    ------
    DtypeError, DeviceError, ShapeError
        As `view.view` and `DeviceElements`, and for frames.
    ParameterError
        If there is no such axis.
    """
    if type(given) is np.ndarray and given.dtype.kind in _PLAIN:
        return ArrayElements(NUMPY.see(given), axis)
    if isinstance(given, list | tuple):
        if without_nulls(given)[1] is None and text_of(given) is None:
            return ArrayElements(NUMPY.see(_typed(given)), axis)
        given = np.array([*given, None], object)[:-1]  # of one dimension, whatever the items are
    elif not _is_column(given):
        seen = view(given)
        return ArrayElements(seen, axis) if seen.host is not None else DeviceElements(seen, axis)
    if axis is not None and getattr(given, "ndim", 1) > 1:
        raise DtypeError("axis= is for arrays of a fixed-width type: leave it out, or give such an array")
    if axis not in (None, 0, -1):
        raise ParameterError(f"a column has one axis, got axis={axis!r}: leave axis= out")
    return ColumnElements(given, name)


def items_of_column(given: Any) -> Items:
    """The items of a column, or of an array of objects."""
    given = _objects_of_categories(given)
    dtype = getattr(given, "dtype", None)
    is_objects = isinstance(dtype, np.dtype) and dtype.kind == "O"
    text = _text_of_objects(given) if is_objects else text_of(given)
    if text is not None:
        return text_items(rows_of(given, text))
    if is_objects:
        kept, valid = without_nulls(given.tolist())
        made = _typed(kept)
        if valid is None:
            return Fixed(made)
        array = np.zeros((len(valid), *made.shape[1:]), made.dtype)
        array[valid] = made
        return Fixed(array, valid)
    items = read_column(given)
    assert items is not None
    return Fixed(NUMPY.see(items.array).owner, items.valid, items.names)


def _with_nulls(answers: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Answers with NaN for nulls if they are floating-point numbers; others as Python objects, with None.

    Of rows, all items of a null are NaN, or None.
    """
    if answers.dtype.kind == "f":
        return np.where(valid.reshape(-1, *(1,) * (answers.ndim - 1)), answers, np.nan)
    made = answers.astype(object)
    made[~valid] = None
    return made


def _objects_of_categories(given: Any) -> Any:
    """Copy a column of pandas whose categories are Python objects to an array of these. Other columns stay as they are.

    Strings stay as they are, too: they are read by their codes.
    """
    coded = getattr(given, "cat", given)
    objects = getattr(getattr(coded, "categories", None), "dtype", None) == np.dtype(object)
    if not objects or text_of(given) is not None:
        return given
    return np.array([*coded.categories, None], object)[np.asarray(coded.codes)]  # a code of -1 is a null


def _text_of_objects(items: Iterable[Any]) -> bool | None:
    """Whether the first object that is no null is a string (True), bytes (False), or neither (None)."""
    first = next((item for item in items if not is_null(item)), None)
    return True if isinstance(first, str) else False if isinstance(first, bytes) else None


def _typed(items: Sequence[Any]) -> npt.NDArray[Any]:
    """A list as an array of the type that NumPy finds; as NumPy has it, an empty list is one of float64."""
    return exactly(items, None) if len(items) else np.empty(0)


def concatenated(x: Any, y: Any) -> tuple[Elements, int]:
    """The elements of two arrays or columns, one behind the other, in the library of the first; and how many ``x`` has.

    Raises
    ------
    DeviceError
        For arrays on several devices, and for arrays of two libraries on a GPU.
    DtypeError
        If there is no type for both.
    """
    first, second = elements_of(x), elements_of(y)
    if isinstance(second, DeviceElements):
        second.beside(first)
    try:
        if isinstance(first, DeviceElements):
            return first.joined(second), len(first)
        if isinstance(first, ArrayElements) and isinstance(second, ArrayElements):
            return first.joined(second), len(first)
        column = x if isinstance(first, ColumnElements) else y
        return ColumnElements(_joined(_module_of(column), x, y)), len(first)
    except (MemoryError, WarphashError):
        raise
    except Exception as error:  # of any type: each library has its own
        raise DtypeError(
            f"expected two arrays or columns of one type, got {type(x).__name__} and {type(y).__name__} ({error}): "
            "convert one of them"
        ) from error


def _joined(library: str, x: Any, y: Any) -> Any:
    """Two columns, or a column and an array, as one column."""
    if library == "pandas":
        series = sys.modules["pandas"].Series
        parts = [given if isinstance(given, series) else series(given) for given in (x, y)]
        return sys.modules["pandas"].concat(parts, ignore_index=True)
    if library == "polars":
        series = sys.modules["polars"].Series
        parts = [given if isinstance(given, series) else series(given) for given in (x, y)]
        if not all(part.dtype.is_numeric() for part in parts):  # as text, 1 would equal "1"
            return parts[0].rename("").append(parts[1])
        frames = [part.alias("").to_frame() for part in parts]
        return sys.modules["polars"].concat(frames, how="vertical_relaxed").to_series()
    if library == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        arrays = [given if _module_of(given) == "pyarrow" else pyarrow.array(given) for given in (x, y)]
        tables = [pyarrow.table({"": array}) for array in arrays]
        made = pyarrow.concat_tables(tables, promote_options="permissive").column(0)
        return made if any(hasattr(array, "chunks") for array in arrays) else made.combine_chunks()
    return np.concatenate([np.asarray(given, object) for given in (x, y)])


def _sortable(column: Any) -> Any:
    """A column of PyArrow in a type that it sorts: it sorts no views, no runs, no chunks of codes, and no float16."""
    column = without_runs(column)
    dtype = column.type.value_type if hasattr(column.type, "index_type") else column.type
    copied = "float" if str(dtype) == "halffloat" else without_views(dtype)
    return column if copied == column.type else column.cast(copied)


def _module_of(given: Any) -> str:
    """The library of a column: also of an index of pandas, and of an array of one of its own types."""
    return library_name(given) or next(
        (name for base in type(given).__mro__ if (name := base.__module__.partition(".")[0]) in _WITH_COLUMNS), ""
    )


def _is_column(given: Any) -> bool:
    """Whether an object is a column. Raises `ShapeError` for a frame."""
    if isinstance(given, np.ndarray) and given.dtype.kind == "O":
        return True
    if _module_of(given) in _WITH_COLUMNS:
        if hasattr(given, "columns") or hasattr(given, "column_names"):
            raise ShapeError(
                f"expected an array or a column, got a frame ({type(given).__name__}): give one of its columns, or "
                "its values as a two-dimensional array with axis=0"
            )
        return True
    return text_of(given) is not None
