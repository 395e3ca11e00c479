"""The rows of a tuple of columns as elements: columns of one length, each of any library and type."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.library import Shape
from ..arrays.row_names import Names
from ..errors import ParameterError, ShapeError
from .comparable import order_by_names
from .device_elements import DeviceElements, number_device_rows
from .elements import Elements, KeptElements, concatenated, elements_of
from .frames import Frame, columns_of, frame_of, is_frame, named
from .items import Items
from .numbered import FIRSTS, Asked, Indices, Numbers, number_tuples
from .pairs import Pairs, RowLists

__all__ = [
    "RowElements",
    "alike",
    "check_alike",
    "check_axes",
    "elements_on_gpu",
    "key_elements_of",
    "row_elements_of",
    "rows_at",
    "rows_concatenated",
]

_ARRAY_METHODS = ("__array__", "__dlpack__", "__cuda_array_interface__")


class RowElements:
    """Rows of columns. What is answered for each row has the library, and the labels, of the first column.

    Parameters
    ----------
    columns
        Their elements, of one length; at least one.
    whole
        Makes what `taken` answers of columns.
    names
        Of the columns; None if they go by their position.

    Raises
    ------
    DeviceError
        For columns on several devices, and for columns of two libraries on a GPU.
    ShapeError
        If they are not of one length.
    """

    def __init__(
        self,
        columns: Sequence[Elements],
        whole: Callable[[tuple[Any, ...]], Any] = tuple,
        names: Names | None = None,
    ) -> None:
        lengths = [len(column) for column in columns]
        if len(set(lengths)) > 1:
            raise ShapeError(
                f"the columns of rows must be of one length, got {', '.join(map(str, lengths))}: give one item of each "
                "column for each row"
            )
        self.columns, self._first, self._whole, self.names = columns, columns[0], whole, names
        on_device = [column for column in columns if isinstance(column, DeviceElements)]
        self._on_device = [on_device[0].beside(column) for column in columns] if on_device else []

    def __len__(self) -> int:
        return len(self._first)

    @property
    def shape(self) -> Shape:
        """As `Elements.shape`: rows have one axis."""
        return (len(self),)

    @property
    def items(self) -> Items:
        """Raises `ShapeError`: rows have no items of one type."""
        raise ShapeError(
            f"expected an array or a column, got a tuple of {len(self.columns)} columns: give one of them, or give "
            "tuples of columns alone"
        )

    @property
    def xp(self) -> Any:
        """As `Elements.xp`."""
        return self._first.xp

    @property
    def on_gpu(self) -> DeviceElements | None:
        """The first column, if the rows are on a GPU."""
        return self._on_device[0] if self._on_device else None

    def with_order(self, order: Sequence[int]) -> RowElements:
        """The same rows, to be compared by their columns in another order; what is answered for each stays."""
        made = copy.copy(self)
        made.columns = [self.columns[place] for place in order]
        made._on_device = [self._on_device[place] for place in order] if self._on_device else []
        made._whole = tuple
        made.names = self.names and tuple(self.names[place] for place in order)
        return made

    def ranks(self, n: int) -> Any:
        """As `Elements.ranks`."""
        return self._first.ranks(n)

    def in_type(self, numbers: Any, dtype: np.dtype[Any]) -> Any:
        """As `Elements.in_type`."""
        return self._first.in_type(numbers, dtype)

    def is_nan(self, positions: Indices) -> Any:
        """As `Elements.is_nan`."""
        return reduce(or_, (column.is_nan(positions) for column in self.columns))

    def places_of(self, flags: Any) -> Any:
        """As `Elements.places_of`."""
        return self._first.places_of(flags)

    def firsts_of(self, codes: Indices, size: int) -> Any:
        """As `Elements.firsts_of`."""
        return self._first.firsts_of(codes, size)

    def row_lists(self, numbers: Numbers) -> RowLists:
        """As `Elements.row_lists`."""
        return self._first.row_lists(numbers)

    def pairs(self, codes: Indices, lists: RowLists | None, dtype: np.dtype[Any], *, keeps_all: bool) -> Pairs:
        """As `Elements.pairs`."""
        return self._first.pairs(codes, lists, dtype, keeps_all=keeps_all)

    def owners(self, offsets: Indices, total: int) -> Any:
        """As `Elements.owners`."""
        return self._first.owners(offsets, total)

    def seen(self, codes: Indices, size: int) -> Any:
        """As `Elements.seen`."""
        return self._first.seen(codes, size)

    def coded(self, codes: Sequence[Indices]) -> Elements:
        """Rows of codes, as elements: one code of each column for each row."""
        return elements_of(self.xp.stack(codes, 1), 0)

    def number(self, asked: Asked = FIRSTS) -> Numbers:
        """As `Elements.number`; the rules are those of `number_tuples`."""
        if self._on_device:
            return number_device_rows(self._on_device, asked)
        items = [column.items for column in self.columns]
        return number_tuples(items, asked)

    def taken(self, positions: Indices) -> Any:
        """As `Elements.taken`: a tuple of columns, each of its own library and type; or a frame."""
        return self._whole(tuple(column.taken(positions) for column in self.columns))

    def order(self, values: Any) -> Indices:
        """As `Elements.order`: in the order of the first items that differ."""
        first, *others = [self._ranks(column) for column in reversed(_columns_of(values))]
        order = self.argsort(first)
        for ranks in others:
            order = order[self.argsort(ranks[order])]
        return order

    def _ranks(self, values: Any) -> Indices:
        """The place of each item among the distinct ones in ascending order."""
        elements = elements_of(values)
        numbers = elements.number(Asked(codes=True))
        places: Indices = self.argsort(elements.order(elements.taken(numbers.firsts)))
        return places[numbers.code_of_each]

    def argsort(self, numbers: Indices) -> Indices:
        """As `Elements.argsort`."""
        return self._first.argsort(numbers)

    def lasts(self, numbers: Numbers) -> Indices:
        """As `Elements.lasts`."""
        return self._first.lasts(numbers)

    def flags(self) -> Any:
        """As `Elements.flags`."""
        return self._first.flags()

    def shares(self, counts: Indices) -> Any:
        """As `Elements.shares`."""
        return self._first.shares(counts)

    def for_each(self, answers: npt.NDArray[Any]) -> Any:
        """As `Elements.for_each`."""
        return self._first.for_each(answers)

    def apart(self, answers: npt.NDArray[Any]) -> Any:
        """As `Elements.apart`."""
        return self._first.apart(answers)

    def apart_with_nulls(self, answers: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> Any:
        """As `Elements.apart_with_nulls`."""
        return self._first.apart_with_nulls(answers, valid)


def row_elements_of(given: Any, axis: int | None = None) -> Elements:
    """See what a caller gave: the rows of a tuple of columns, or of a frame; or elements (`elements_of`).

    A tuple with something else among the columns is a list of items.

    Raises
    ------
    DeviceError, ShapeError
        As `RowElements`, and as `elements_of`.
    DtypeError, ParameterError
        As `elements_of`.
    """
    if not (_are_columns(given) or is_frame(given)):
        return elements_of(given, axis)
    if axis not in (None, 0, -1):
        raise ParameterError(f"rows of columns have one axis, got axis={axis!r}: leave axis= out")
    return RowElements([elements_of(column) for column in given]) if isinstance(given, tuple) else _rows_of_frame(given)


def key_elements_of(given: Any) -> Elements:
    """As `row_elements_of`, of keys whose rows are numbered: an array has one key for each row, so it has one axis.

    Raises
    ------
    ShapeError
        For an array of more axes.
    """
    elements = row_elements_of(given)
    check_axes(elements)
    return elements


def check_axes(elements: Elements) -> None:
    """Raise `ShapeError` for elements of an array with several axes: the numbers of its items are no rows."""
    if len(elements.shape) > 1:
        raise ShapeError(
            f"expected an array of keys with one axis, got one of shape {elements.shape}: give the columns of its rows "
            "as a tuple, tuple(rows.T), or its items as rows.reshape(-1)"
        )


def _columns_of(rows: Any) -> Sequence[Any]:
    """The columns of rows that were taken."""
    return rows if isinstance(rows, tuple) else columns_of(frame_of(rows))


def _rows_of_frame(given: Any) -> RowElements:
    frame = frame_of(given)
    names = frame.names
    if not names:
        raise ShapeError("expected a frame with columns, got one without: its rows have nothing to compare")
    named(names, names, "the frame")  # none repeats
    columns = _named_elements(frame, range(len(names)))
    return RowElements(columns, lambda taken: frame.made(dict(zip(names, taken, strict=True))), tuple(names))


def rows_at(frame: Frame, places: Sequence[int]) -> Elements:
    """The rows of the columns at some places of a frame; of one column, its elements.

    Raises
    ------
    DtypeError, DeviceError, ShapeError
        As `elements_of` and `RowElements`.
    """
    columns = _named_elements(frame, places)
    return RowElements(columns) if len(columns) > 1 else columns[0]


def _named_elements(frame: Frame, places: Sequence[int]) -> list[Elements]:
    names = frame.names
    columns = [elements_of(frame.column(place), name=names[place]) for place in places]
    for place, column in zip(places, columns, strict=True):
        if len(column.shape) > 1:
            raise ShapeError(
                f"a column of keys has one item for each row, and column {names[place]!r} has shape {column.shape}: "
                "give each of its columns a name of its own, as {'x': rows[:, 0], 'y': rows[:, 1]}"
            )
    return columns


def elements_on_gpu(elements: Elements) -> DeviceElements | None:
    """The elements, or the first column of rows, if they are on a GPU; else None."""
    if isinstance(elements, RowElements):
        return elements.on_gpu
    return elements if isinstance(elements, DeviceElements) else None


def check_alike(elements: Elements, others: KeptElements) -> None:
    """Raise `ShapeError` unless both are elements of arrays or columns, or both rows of so many columns."""
    counts = [len(each.columns) if isinstance(each, RowElements) else 0 for each in (elements, others)]
    if counts[0] != counts[1]:
        shown = [f"rows of {count} columns" if count else "an array or a column" for count in counts]
        raise ShapeError(
            f"expected two arrays or columns, or two tuples of as many columns, got {' and '.join(shown)}: give both "
            "in one form"
        )


def alike(elements: Elements, others: KeptElements) -> Elements:
    """The elements, in the form of others: rows of columns with names have these in the order of the others' names.

    Raises
    ------
    ShapeError
        As `check_alike`.
    DtypeError
        For rows whose columns have other names.
    """
    check_alike(elements, others)
    if not (isinstance(elements, RowElements) and isinstance(others, RowElements)):
        return elements
    order = order_by_names(elements.names, others.names)
    return elements if order is None else elements.with_order(order)


def rows_concatenated(x: Any, y: Any) -> tuple[Elements, int]:
    """As `elements.concatenated`, also for the rows of two tuples of columns.

    Raises
    ------
    ShapeError
        If only one is a tuple of columns, or they are not of as many columns.
    DeviceError, DtypeError
        As `elements.concatenated`, for each column.
    """
    if not (_are_columns(x) or _are_columns(y)):
        return concatenated(x, y)
    first = row_elements_of(x)
    check_alike(first, row_elements_of(y))
    return RowElements([concatenated(*columns)[0] for columns in zip(x, y, strict=True)]), len(first)


def _are_columns(given: Any) -> bool:
    """Whether an object is a tuple of columns."""
    return isinstance(given, tuple) and len(given) > 0 and all(map(_is_column, given))


def _is_column(given: Any) -> bool:
    """Whether an object is a column, or an array of one dimension."""
    return any(hasattr(given, name) for name in _ARRAY_METHODS) and len(getattr(given, "shape", (None,))) == 1
