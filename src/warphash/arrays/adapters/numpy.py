"""NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DtypeError, ShapeError, WarphashError
from ..library import MAX_ROWS, Allocator, ArrayView, Dtype, Shape, alignment_of, array_view, refuse_rows

__all__ = ["NUMPY", "NumpyLibrary", "address_of", "contiguous", "no_stream", "numpy_of", "refuse_attributes"]

_HEADER_BYTES = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


def address_of(array: npt.NDArray[Any]) -> int:
    """Address of an array's first element.

    The first field of NumPy's ``PyArrayObject``, where every compiled extension reads the address. A call needs three
    addresses: this takes 0.16 us each, and ``array.ctypes.data`` 1.3 us.
    """
    return _word_at(id(array) + _HEADER_BYTES).value


def contiguous(array: npt.NDArray[Any], *, objects: bool = False) -> npt.NDArray[Any]:
    """A plain array with the same elements, C-contiguous and of native byte order; the same one if possible.

    Raises
    ------
    ShapeError
        For masked arrays.
    DtypeError
        For an array of a subclass that is more than its elements; for Python objects, unless ``objects`` is True.
    """
    if type(array) is not np.ndarray:
        if isinstance(array, np.ma.MaskedArray):
            raise ShapeError("expected an array without a mask; drop or fill the masked elements first")
        if isinstance(array, np.char.chararray):
            raise DtypeError(
                "expected plain bytes or strings, got a chararray, which ignores white space at their ends: give "
                "numpy.asarray(array), whose items differ by their white space"
            )
        if not isinstance(array, np.memmap | np.recarray | np.matrix):
            refuse_attributes(array, "numpy.asarray(array)")
        array = np.asarray(array)
    if array.shape and array.shape[0] > MAX_ROWS:
        refuse_rows(array.shape[0])
    if array.dtype.hasobject and not objects:
        mend = "give list(array), whose items are checked one by one"
        raise DtypeError(f"expected a fixed-width type, got an array of {array.dtype}: {mend}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return array


def refuse_attributes(array: Any, mend: str) -> None:
    """Raise `DtypeError` if an array of a subclass has attributes, such as a unit, that its elements are without."""
    held = [name for name, value in getattr(array, "__dict__", {}).items() if value is not None]
    if held:
        raise DtypeError(
            f"expected a plain array, got {type(array).__name__} with the attribute {held[0]}, which a table does not "
            f"keep: give {mend}, if the elements alone are meant"
        )


def numpy_of(array: Any) -> npt.NDArray[Any]:
    """What an object of another library makes for NumPy.

    Raises
    ------
    DtypeError
        For numbers with a unit, which the array would be without; and if the library makes none.
    """
    try:
        attributes = getattr(array, "attrs", None)
        for name in ("unit", "units"):
            unit = getattr(array, name, None)
            if unit is None and isinstance(attributes, Mapping):
                unit = attributes.get(name)
            if unit is not None and not callable(unit):
                raise DtypeError(
                    f"expected plain numbers, got {type(array).__name__} with the unit {unit}, which a table does not "
                    "keep: give numpy.asarray(array), in the same unit each time"
                )
        return np.asarray(array)
    except (MemoryError, WarphashError):
        raise
    except Exception as error:  # of any type: each library has its own
        raise DtypeError(
            f"expected an array that its library gives to NumPy, got {type(array).__name__}, which answers "
            f"{type(error).__name__} ({error}): give a NumPy array, or a list of its values"
        ) from None


class NumpyLibrary:
    """NumPy. Arrays are in host memory, whatever the table's device."""

    kind = "numpy"

    def see(self, array: npt.NDArray[Any]) -> ArrayView:
        """View an array."""
        dtype, shape = array.dtype, array.shape
        is_plain = type(array) is np.ndarray and array.flags.c_contiguous and dtype.isnative
        if not is_plain or dtype.hasobject or (shape and shape[0] > MAX_ROWS):
            array = contiguous(array)
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


def no_stream() -> None:
    """The stream of arrays in host memory: None."""


NUMPY = NumpyLibrary()
