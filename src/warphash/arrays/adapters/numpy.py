"""NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..exact import exactly
from ..library import MAX_ROWS, Allocator, ArrayView, Dtype, Shape, alignment_of, array_view
from ..plain_array import contiguous, listed_objects

__all__ = ["NUMPY", "NumpyLibrary", "address_of", "no_stream", "typed_objects"]

_HEADER_BYTES = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


def address_of(array: npt.NDArray[Any]) -> int:
    """Address of an array's first element.

    The first field of NumPy's ``PyArrayObject``, where every compiled extension reads the address. A call needs three
    addresses: this takes 0.16 us each, and ``array.ctypes.data`` 1.3 us. The latter also imports
    a module each time, and Python imports nothing any more when it collects what its exit functions left.
    """
    return _word_at(id(array) + _HEADER_BYTES).value


class NumpyLibrary:
    """NumPy. Arrays are in host memory, whatever the table's device."""

    kind = "numpy"

    def see(self, array: npt.NDArray[Any]) -> ArrayView:
        """View an array."""
        dtype, shape = array.dtype, array.shape
        is_plain = type(array) is np.ndarray and array.flags.c_contiguous and dtype.isnative
        if not is_plain or dtype.hasobject or (shape and shape[0] > MAX_ROWS):
            array = typed_objects(array) if dtype.kind == "O" else contiguous(array)
            dtype, shape = array.dtype, array.shape
        return array_view(
            (_word_at(id(array) + _HEADER_BYTES).value, shape, dtype, "cpu", None, array, array, self, None, None)
        )

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new array in host memory."""
        array = np.empty(shape, dtype)
        return array_view(
            (_word_at(id(array) + _HEADER_BYTES).value, shape, dtype, "cpu", None, array, array, self, None, None)
        )

    def export(self, made: ArrayView) -> Any:
        """The array itself."""
        return made.owner

    def addresses(
        self, like: ArrayView, shape: Shape, dtype: Dtype, is_written: bool
    ) -> Callable[[npt.NDArray[Any]], int | None]:
        """As `Library.addresses`."""
        slack = alignment_of(shape, dtype) - 1 if is_written else 0

        def address(array: npt.NDArray[Any]) -> int | None:
            if type(array) is np.ndarray and array.dtype == dtype and array.shape == shape:
                flags = array.flags
                if flags.c_contiguous and (flags.writeable or not is_written):
                    at = _word_at(id(array) + _HEADER_BYTES).value
                    return None if at & slack else at
            return None

        return address

    def current_stream(self, like: ArrayView) -> Callable[[], int | None]:
        """As `Library.current_stream`: None, as nothing is under way."""
        return no_stream

    def example(self, device: str) -> Any:
        """An array in host memory, on whatever device the table is."""
        return np.empty(0, np.uint8)


def typed_objects(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of Python objects, in the type that a list of these has."""
    array = contiguous(array, objects=True)
    items = listed_objects(array)  # of which each may be a row
    return exactly(array if items is None else items, None)


def no_stream() -> None:
    """The stream of arrays in host memory: None."""


NUMPY = NumpyLibrary()
