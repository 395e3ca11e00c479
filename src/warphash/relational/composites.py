"""The rows of a tuple of columns as elements: columns of one length, each of any library and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DeviceError, ParameterError, ShapeError
from .device_elements import DeviceElements, number_device_rows
from .elements import Elements, ItemElements, elements_of
from .items import Missing
from .numbered import INT64, Indices, Numbers, number_tuples

__all__ = ["RowElements", "row_elements_of"]

_ARRAY_METHODS = ("__array__", "__dlpack__", "__cuda_array_interface__")


class RowElements:
    """Rows of columns. What is answered for each row has the library, and the labels, of the first column.

    Parameters
    ----------
    columns
        Their elements, of one length.

    Raises
    ------
    DeviceError
        For columns on several devices.
    ShapeError
        If they are not of one length.
    """

    def __init__(self, columns: Sequence[ItemElements]) -> None:
        lengths = [len(column) for column in columns]
        if len(set(lengths)) > 1:
            raise ShapeError(
                f"the columns of rows must be of one length, got {', '.join(map(str, lengths))}: give one item of each "
                "column for each row"
            )
        on_device = [column for column in columns if isinstance(column, DeviceElements)]
        devices = {column.device for column in on_device}
        if on_device and (len(on_device) < len(columns) or len(devices) > 1):
            raise DeviceError(
                f"expected columns on one device, got some on {', '.join(sorted(devices))} beside others: copy them to "
                "one device"
            )
        self._columns, self._first = columns, columns[0]
        self._on_device: Sequence[DeviceElements] = on_device

    def __len__(self) -> int:
        return len(self._first)

    def number(
        self,
        *,
        codes: bool = False,
        counts: bool = False,
        nan: Missing = "one",
        null: Missing = "one",
        dtype: np.dtype[Any] = INT64,
    ) -> Numbers:
        """As `Elements.number`; the rules are those of `number_tuples`."""
        if self._on_device:
            return number_device_rows(self._on_device, codes=codes, counts=counts, nan=nan, dtype=dtype)
        items = [column.items for column in self._columns]
        return number_tuples(items, codes=codes, counts=counts, nan=nan, null=null, dtype=dtype)

    def taken(self, positions: Indices) -> tuple[Any, ...]:
        """As `Elements.taken`: a tuple of columns, each of its own library and type."""
        return tuple(column.taken(positions) for column in self._columns)

    def order(self, values: Any) -> Indices:
        """As `Elements.order`: in the order of the first items that differ."""
        first, *others = [self._ranks(column) for column in reversed(values)]
        order = self.argsort(first)
        for ranks in others:
            order = order[self.argsort(ranks[order])]
        return order

    def _ranks(self, values: Any) -> Indices:
        """The place of each item among the distinct ones in ascending order."""
        elements = elements_of(values)
        numbers = elements.number(codes=True)
        places: Indices = self.argsort(elements.order(elements.taken(numbers.firsts)))
        return places[numbers.code_of_each]

    def argsort(self, numbers: Indices) -> Indices:
        """As `Elements.argsort`."""
        return self._first.argsort(numbers)

    def renumbered(self, codes: Indices, order: Indices) -> Indices:
        """As `Elements.renumbered`."""
        return self._first.renumbered(codes, order)

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


def row_elements_of(given: Any, axis: int | None = None) -> Elements:
    """See what a caller gave: the rows of a tuple of columns; or the elements of anything else (`elements_of`).

    A tuple with something else among the columns is a list of items.

    Raises
    ------
    DeviceError, ShapeError
        As `RowElements`, and as `elements_of`.
    DtypeError, ParameterError
        As `elements_of`.
    """
    if not (isinstance(given, tuple) and given and all(map(_is_column, given))):
        return elements_of(given, axis)
    if axis not in (None, 0, -1):
        raise ParameterError(f"rows of columns have one axis, got axis={axis!r}: leave axis= out")
    return RowElements([elements_of(column) for column in given])


def _is_column(given: Any) -> bool:
    """Whether an object is a column, or an array of one dimension."""
    return any(hasattr(given, name) for name in _ARRAY_METHODS) and len(getattr(given, "shape", (None,))) == 1
