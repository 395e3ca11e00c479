"""Any array in, the same kind out.

A library is known by the module of the array's type, and has an adapter (``adapters/``). Only a library that the caller
has imported, or names, is ever touched. Host arrays of every library become NumPy views of the same memory. GPU arrays
become an address, and the stream on which their library works now: a table runs there, and the library's own allocator
gives the results, so that nothing waits.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ParameterError, WarphashError
from .adapters.engine import ENGINE_MEMORY
from .adapters.foreign import see_foreign
from .adapters.numpy import NUMPY
from .exact import exactly
from .library import MAX_ROWS, ArrayView, Library, refuse_rows

__all__ = [
    "MAX_ROWS",
    "ArrayView",
    "Library",
    "known_libraries",
    "library_like",
    "library_of",
    "view",
    "view_array",
]

_ADAPTERS = {
    "cupy": "cupy.LIBRARY",
    "jax": "jax.LIBRARY",
    "jaxlib": "jax.LIBRARY",
    "numba": "foreign.NUMBA",
    "torch": "torch.LIBRARY",
}
"""The adapter of each library: its module under ``adapters``, and its name there. Loaded with the first array."""

known_libraries: dict[type, Library] = {np.ndarray: NUMPY, ArrayView: ENGINE_MEMORY}
"""The adapter for each type of array that was seen. A view is an array that was seen before."""


def view(array: Any, dtype: npt.DTypeLike | None = None) -> ArrayView:
    """See any array, list or scalar.

    Parameters
    ----------
    array
        Of any shape. Not contiguous, or of foreign byte order: copied. Read-only is fine.
    dtype
        What a list or a Python scalar becomes (`exact.exactly`); an array keeps its own type.

    Raises
    ------
    DtypeError
        For Python objects, for values that ``dtype`` does not hold, for nulls, and for columns of several types.
    DeviceError
        For memory that is neither the host's nor an NVIDIA GPU's.
    ShapeError
        For more than `MAX_ROWS` rows; for a GPU array that is not contiguous, of a library that cannot be asked to copy
        it; ragged lists.
    """
    seen = view_array(array, dtype)
    return NUMPY.see(exactly(array, None if dtype is None else np.dtype(dtype))) if seen is None else seen


def view_array(array: Any, dtype: npt.DTypeLike | None = None) -> ArrayView | None:
    """See any array, as `view`; None for what is a list or a scalar, whose items have a type of Python's."""
    library = library_of(array)
    if library is not None:
        return library.see(array)
    if not isinstance(array, list | tuple):
        return _see_foreign(array, dtype)
    if len(array) > MAX_ROWS:
        refuse_rows(len(array))
    return None


def _see_foreign(array: Any, dtype: npt.DTypeLike | None) -> ArrayView | None:
    """As `see_foreign`; other errors than ours, of a library that we do not know, are ours."""
    try:
        return see_foreign(array, None if dtype is None else np.dtype(dtype))
    except (MemoryError, WarphashError):
        raise
    except Exception as error:
        raise DtypeError(
            f"expected an array, got {type(array).__name__}, which answers {type(error).__name__} ({error}): give a "
            "NumPy array, or a list of its values"
        ) from error


def library_of(array: Any) -> Library | None:
    """The adapter of an array's library; None if the array is of no library that has one."""
    return known_libraries.get(type(array)) or _library_of(type(array))


def library_like(like: Any) -> Library:
    """The library of an array, or the one of a name such as ``"torch"``, which is imported.

    Raises
    ------
    ParameterError
        If there is no adapter of that name, or the library is not installed.
    """
    if not isinstance(like, str):
        return view(like).library
    if like == "numpy":
        return NUMPY
    if like not in _ADAPTERS or like == "jaxlib":
        names = sorted({"numpy", *_ADAPTERS} - {"jaxlib"})
        raise ParameterError(f"like must be an array or one of {', '.join(names)}, got {like!r}")
    try:
        import_module("numba.cuda" if like == "numba" else like)
    except ImportError as error:
        raise ParameterError(f"like={like!r} cannot be met, as {like} cannot be imported ({error})") from None
    return _adapter(like)


def _library_of(kind: type) -> Library | None:
    """The adapter for a type of arrays; None if no adapter is for its library."""
    if issubclass(kind, np.ndarray):
        return NUMPY
    if not (hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__")):
        return None
    for base in kind.__mro__:  # a subclass may live anywhere
        name = base.__module__.partition(".")[0]
        if name in _ADAPTERS and name in sys.modules:
            known_libraries[kind] = _adapter(name)
            return known_libraries[kind]
    return None


def _adapter(library: str) -> Library:
    module, _, name = _ADAPTERS[library].partition(".")
    adapter: Library = getattr(import_module(f"{__package__}.adapters.{module}"), name)
    return adapter
