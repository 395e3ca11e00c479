"""Plain NumPy arrays of what is more than that: whatever an array cannot carry over, such as a mask, is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MemberDescriptorType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ShapeError, WarphashError
from .arrow import BOOL8, UUID, check_extension
from .library import MAX_ROWS, dtype_of, refuse_rows

__all__ = [
    "WITHOUT_UNIT",
    "contiguous",
    "gives_array",
    "is_missing",
    "listed_objects",
    "numpy_of",
    "plain_array",
    "python_value",
    "refuse_attributes",
    "refuse_unit",
]

WITHOUT_UNIT = "give a copy without this attribute"
"""The mend for a column, or an array on a GPU, that names its unit."""

_OF_NUMPY = {"_mmap", "filename", "offset", "mode", "_getitem"}
"""Attributes that NumPy itself gives to `numpy.memmap` and `numpy.matrix`."""


def contiguous(array: npt.NDArray[Any], *, objects: bool = False) -> npt.NDArray[Any]:
    """A plain array with the same elements, C-contiguous and of native byte order; the same one if possible.

    Raises
    ------
    ShapeError
        For masked arrays.
    DtypeError
        For an array of a subclass that is more than its elements, such as a masked item; for Python objects, unless
        ``objects`` is True.
    """
    array = plain_array(array)
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


def plain_array(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of a subclass as one of NumPy's own class, with the same elements; a plain array itself.

    Raises
    ------
    ShapeError, DtypeError
        As `contiguous`, for arrays of a subclass.
    """
    if type(array) is np.ndarray:
        return array
    if _is_of("numpy.ma", "MaskedArray", array):
        if not array.shape:
            raise DtypeError("expected a value, got a masked one: leave it out, or give what stands for it")
        raise ShapeError("expected an array without a mask; drop or fill the masked elements first")
    if _is_of("numpy.char", "chararray", array):
        raise DtypeError(
            "expected plain bytes or strings, got a chararray, which ignores white space at their ends: give "
            "numpy.asarray(array), whose items differ by their white space"
        )
    refuse_attributes(array, "give numpy.asarray(array)")
    return np.asarray(array)


def _is_of(module: str, name: str, array: Any) -> bool:
    """Whether an array is of a class of a module, which NumPy loads when a program names it."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(array, kind)


def refuse_attributes(array: Any, mend: str) -> None:
    """Raise `DtypeError` if an array of a subclass has attributes, such as a unit, that its elements are without."""
    held = next((name for name, value in _own_attributes(array) if value is not None and name not in _OF_NUMPY), None)
    if held is not None:
        raise DtypeError(
            f"expected a plain array, got {type(array).__name__} with the attribute {held}, which a table does not "
            f"keep: {mend}, if the elements alone are meant"
        )
    refuse_unit(array, mend)


def _own_attributes(array: Any) -> Iterator[tuple[str, Any]]:
    """The names and values of what Python code keeps in an object: in its ``__dict__`` and its ``__slots__``."""
    yield from getattr(array, "__dict__", {}).items()
    for base in type(array).__mro__:
        if "__slots__" in vars(base):
            slots = [name for name, value in vars(base).items() if isinstance(value, MemberDescriptorType)]
            yield from ((name, getattr(array, name, None)) for name in slots)


def refuse_unit(array: Any, mend: str) -> None:
    """Raise `DtypeError` if an object names the unit of its numbers: as `unit`, `units` or in its `attrs`."""
    try:
        attributes = _attribute(array, "attrs")
        for name in ("unit", "units"):
            unit = _attribute(array, name)
            if unit is None and isinstance(attributes, Mapping):
                unit = attributes.get(name)
            if unit is not None and not callable(unit):
                raise DtypeError(
                    f"expected plain numbers, got {type(array).__name__} with the unit {unit}, which a table does not "
                    f"keep: {mend}, in the same unit each time"
                )
    except (MemoryError, WarphashError):
        raise
    except Exception as error:  # of an attribute that fails to tell
        raise _failed(array, error) from None


def _attribute(array: Any, name: str) -> Any:
    """An attribute that an object or its class has; None for others, such as a column of a frame, or a field."""
    held = getattr(array, "__dict__", {})
    if name in held:
        return held[name]
    for base in type(array).__mro__:
        if name in vars(base):
            is_of_time = name != "attrs" and base.__module__.partition(".")[0] == "pandas"  # the unit of its type
            return None if is_of_time else getattr(array, name)
    return None


def _failed(array: Any, error: Exception) -> DtypeError:
    return DtypeError(
        f"expected an array that its library gives to NumPy, got {type(array).__name__}, which answers "
        f"{type(error).__name__} ({error}): give a NumPy array, or a list of its values"
    )


def gives_array(kind: type) -> bool:
    """Whether objects of a type make arrays for NumPy: by one of its three protocols, and they are no single values."""
    protocols = ("__array__", "__array_interface__", "__array_struct__")
    return any(hasattr(kind, name) for name in protocols) and not issubclass(kind, np.generic)


def numpy_of(array: Any) -> npt.NDArray[Any]:
    """What an object of another library makes for NumPy.

    Raises
    ------
    DtypeError
        For numbers with a unit, which the array would be without; and if the library makes none.
    """
    refuse_unit(array, "give numpy.asarray(array)")
    try:
        return np.asarray(array)
    except (MemoryError, WarphashError):
        raise
    except Exception as error:  # of any type: each library has its own
        raise _failed(array, error) from None


def listed_objects(given: Any) -> list[Any] | None:
    """The items of an array or a column of Python objects, of one axis; None for others."""
    is_objects = getattr(dtype_of(given), "kind", "") == "O" and hasattr(given, "tolist")
    return given.tolist() if is_objects and len(getattr(given, "shape", ())) == 1 else None


def is_missing(item: Any) -> bool:
    """Whether a single value is None, or pandas' NA or NaT, which stand for a null."""
    return item is None or type(item).__name__ in ("NAType", "NaTType")


def python_value(item: Any) -> Any:
    """A single value of PyArrow as one of Python, and any other object itself.

    Times, of which Python would cut nanoseconds, become those of NumPy.

    Raises
    ------
    DtypeError
        For an extension type that is not known, as for a column of it.
    """
    if not hasattr(type(item), "as_py"):
        return item
    _check_arrow_type(item.type)
    unit = getattr(item.type, "unit", None)
    if unit is None or item.value is None:
        return item.as_py()
    make = np.datetime64 if str(item.type).startswith("timestamp") else np.timedelta64
    return make(item.value, unit)


@lru_cache
def _check_arrow_type(kind: Any) -> None:
    """Raise `DtypeError` if a type of PyArrow, or a part of it, is an extension type that is not known."""
    check_extension(getattr(kind, "extension_name", ""), UUID, BOOL8)
    parts = [kind.field(number).type for number in range(kind.num_fields)]
    for part in [*parts, *([kind.value_type] if hasattr(kind, "value_type") else [])]:
        _check_arrow_type(part)
