"""Columns of values that groups summarise, in types that kernels read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.arrow_values import Valid
from ..errors import DeviceError, ShapeError
from ..runtime.abi import ValueType
from .device_elements import DeviceElements
from .elements import ArrayElements, ColumnElements, elements_of
from .items import Items, Text, nan_among

__all__ = ["Values", "values_of"]

_TYPES = {np.dtype(name.lower()): value_type for name, value_type in ValueType.__members__.items()}


class Values:
    """A column of values in host memory.

    Attributes
    ----------
    elements, items
        As of any array or column.
    valid
        Which values are neither null nor NaT; None if all are.
    """

    def __init__(self, elements: ArrayElements | ColumnElements) -> None:
        self.elements = elements
        self.items: Items = elements.items
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

    @cached_property
    def numbers(self) -> npt.NDArray[Any] | None:
        """The values as kernels read them: truth values and times as integers. None if they are no numbers."""
        array = self.items.array
        if self.kind == "b":
            return np.not_equal(array.view(np.uint8), 0).view(np.uint8)  # any byte but 0 is True
        if self.is_time:
            return array.view(np.int64)
        if array.dtype == np.float16:
            return array.astype(np.float32)
        return array if array.dtype in _TYPES and array.ndim == 1 else None

    @property
    def number_type(self) -> ValueType:
        """The type of `numbers`."""
        assert self.numbers is not None
        return _TYPES[self.numbers.dtype]

    @property
    def word_dtype(self) -> np.dtype[Any]:
        """The type of a sum, a product, a least or a greatest one of `numbers`: 64 bits of the same kind."""
        return np.dtype({"f": np.float64, "u": np.uint64}.get(self.kind, np.int64))


def values_of(column: Any, n: int) -> Values:
    """See a column of values.

    Raises
    ------
    DtypeError
        As `elements_of`.
    DeviceError
        For an array on a GPU.
    ShapeError
        Unless there is one value for each of ``n`` keys.
    """
    elements = elements_of(column)
    if isinstance(elements, DeviceElements):
        raise DeviceError(f"expected values in host memory, got an array on {elements.device}: copy it to the host")
    assert isinstance(elements, ArrayElements | ColumnElements)
    if len(elements) != n:
        raise ShapeError(f"expected one value for each of {n:,} keys, got {len(elements):,}: give a column of as many")
    return Values(elements)
