"""Columns of values that groups summarise, in types that kernels read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import NUMPY, address_of
from ..arrays.arrow_values import Valid
from ..arrays.decimals import decimal_scale
from ..arrays.library import ArrayView
from ..errors import DeviceError, DtypeError, ShapeError
from ..runtime.abi import ValueType
from ..storage.groups.records import Column
from .decimal_sums import ordered, parts_of
from .device_elements import DeviceElements, number_device_rows
from .elements import ArrayElements, ColumnElements, elements_of
from .items import Fixed, Items, Text, nan_among
from .numbered import Asked, Indices, number_tuples

__all__ = ["AnyValues", "DeviceValues", "Values", "values_of"]

_TYPES = {np.dtype(name.lower()): value_type for name, value_type in ValueType.__members__.items()}
_UINT8, _FLOAT32 = np.dtype(np.uint8), np.dtype(np.float32)


def _word_dtype(kind: str) -> np.dtype[Any]:
    """The type of a sum, a product, a least or a greatest one of values: 64 bits of the same kind."""
    return np.dtype({"f": np.float64, "u": np.uint64}.get(kind, np.int64))


class Values:
    """A column of values in host memory.

    Values of a type that is not read, such as lists and structs, can be counted and taken. Their items stand for them.

    Attributes
    ----------
    elements, items
        As of any array or column.
    unread
        Why items were not read; None if they were.
    valid
        Which values are neither null nor NaT; None if all are.
    """

    def __init__(self, elements: ArrayElements | ColumnElements) -> None:
        self.elements = elements
        self.unread: DtypeError | ShapeError | None = None
        try:
            self.items: Items = elements.items
        except (DtypeError, ShapeError) as error:
            if not isinstance(elements, ColumnElements):
                raise
            valid = elements.valid
            self.unread, self.items = error, Fixed(np.zeros(len(valid), "V1"), None if valid.all() else valid)
        self.valid: Valid = self.items.valid
        if self.is_time and (missing := nan_among(self.items)).any():
            self.valid = ~missing if self.valid is None else self.valid & ~missing
        if self.valid is not None:
            self.valid = np.ascontiguousarray(self.valid)

    @property
    def kind(self) -> str:
        """The kind of the type, as NumPy has it; ``"O"`` for strings of any length."""
        return "O" if isinstance(self.items, Text) else self.items.array.dtype.kind

    @property
    def is_time(self) -> bool:
        """Whether they are times, or spans of time."""
        return self.kind in "mM"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the items."""
        return self.items.array.dtype

    @property
    def is_decimal(self) -> bool:
        """Whether they are decimal numbers."""
        return not isinstance(self.items, Text) and decimal_scale(self.dtype) is not None

    @property
    def is_ordered(self) -> bool:
        """Whether `numbers` stand for values of another type, in their order: an extreme is taken of the column."""
        return self.is_time or self.is_decimal

    @cached_property
    def parts(self) -> list[Values]:
        """Decimal numbers in parts that kernels sum (`decimal_sums.py`)."""
        return [_with_nulls(part, self.valid) for part in parts_of(self.items.array, self.valid)]

    @cached_property
    def counted(self) -> Values:
        """Values with the same nulls, which take no time to read."""
        return self if self.valid is None or not self.is_decimal else _with_nulls(self.valid.view(np.uint8), self.valid)

    @cached_property
    def numbers(self) -> npt.NDArray[Any] | None:
        """The values as kernels read them: truth values and times as integers. None if they are no numbers."""
        array = self.items.array
        if self.is_decimal:
            return ordered(array, self.valid)
        if self.kind == "b":
            return np.not_equal(array.view(np.uint8), 0).view(np.uint8)  # any byte but 0 is True
        if self.is_time:
            return array.view(np.int64)
        if array.dtype == np.float16:
            return array.astype(np.float32)
        return array if array.dtype in _TYPES and array.ndim == 1 else None

    @cached_property
    def column(self) -> Column:
        """The values as kernels are given them. If they are no numbers, they can be counted alone."""
        valid = 0 if self.valid is None else address_of(self.valid)
        if self.numbers is None:
            return Column(valid, ValueType.UINT8, valid)
        return Column(address_of(self.numbers), _TYPES[self.numbers.dtype], valid)

    def order(self, numbers: npt.NDArray[np.float64]) -> Indices:
        """The places of some numbers in ascending order, NaN last; equal ones stay in their order."""
        return np.argsort(numbers, kind="stable")

    def comparable(self, numbers: Any) -> Any:
        """`numbers`, or words, so that `==` compares one with the other."""
        return numbers

    def distinct(self, rows: Indices, codes: Indices) -> Indices:
        """Which of some rows first have a pair of a code, of which there is one for each of the rows, and a value."""
        if self.unread is not None:
            raise self.unread
        items = self.items._replace(array=self.items.array[rows], valid=None)
        return number_tuples([Fixed(codes), items], Asked()).firsts

    @property
    def word_dtype(self) -> np.dtype[Any]:
        """The type of a sum, a product, a least or a greatest one of `numbers`: 64 bits of the same kind."""
        return _word_dtype(self.kind)


class DeviceValues:
    """A column of values on a GPU, where no value is a null, a time or a decimal number.

    Attributes are those of `Values`.
    """

    valid: Valid = None
    is_time = is_decimal = is_ordered = False
    unread = None

    def __init__(self, elements: DeviceElements) -> None:
        self.elements = elements

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of `Values`."""
        return self.elements.dtype

    @property
    def kind(self) -> str:
        """As of `Values`."""
        return self.dtype.kind

    @cached_property
    def numbers(self) -> Any:
        """As of `Values`: an array of the library."""
        array = self.elements.array
        if self.dtype in _TYPES:
            return array
        return self.elements.in_type(array, _UINT8 if self.kind == "b" else _FLOAT32)

    @cached_property
    def _seen(self) -> ArrayView:
        return self.elements.see(self.numbers)

    @property
    def column(self) -> Column:
        """As of `Values`."""
        return Column(self._seen.ptr, _TYPES[self._seen.dtype])

    def order(self, numbers: Any) -> Any:
        """As of `Values`."""
        return self.elements.argsort(numbers)

    def comparable(self, numbers: Any) -> Any:
        """As of `Values`. PyTorch compares no unsigned integers of two types."""
        words = self.elements.in_type(numbers, self.word_dtype)
        return words.view(self.elements.xp.int64) if self.kind == "u" else words

    def distinct(self, rows: Any, codes: Any) -> Any:
        """As of `Values`."""
        columns = [self.elements.like(column) for column in (codes, self.elements.array[rows])]
        return number_device_rows(columns, Asked()).firsts

    @property
    def word_dtype(self) -> np.dtype[Any]:
        """As of `Values`."""
        return _word_dtype(self.kind)


def _with_nulls(array: npt.NDArray[Any], valid: Valid) -> Values:
    made = Values(ArrayElements(NUMPY.see(array)))
    made.valid = valid
    return made


AnyValues = Values | DeviceValues
"""In host memory or on a GPU."""


def values_of(column: Any, n: int, keys: DeviceElements | None) -> AnyValues:
    """See a column of values.

    Parameters
    ----------
    n
        How many keys there are.
    keys
        Elements of the keys, if these are on a GPU.

    Raises
    ------
    DtypeError
        As `elements_of`.
    DeviceError
        Unless it is where the keys are, and of one library with keys on a GPU.
    ShapeError
        Unless there is one value for each of ``n`` keys.
    """
    elements = elements_of(column)
    if keys is None and isinstance(elements, DeviceElements):
        raise DeviceError(
            f"expected values in host memory, as the keys are, got an array on {elements.device}: copy one of them"
        )
    if len(elements) != n:
        raise ShapeError(f"expected one value for each of {n:,} keys, got {len(elements):,}: give a column of as many")
    if keys is not None:
        return DeviceValues(keys.beside(elements))
    assert isinstance(elements, ArrayElements | ColumnElements)
    return Values(elements)
