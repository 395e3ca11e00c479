"""Rivals that are C++ header libraries. Each is compiled by the C++ compiler of the system, once for each processor.

A table is made with room for all its keys. A lookup writes values and presence to arrays, as `HashMap.find` does. Both
are loops over the library's ``emplace`` and ``find``, on one thread (``cpp_table.hpp``).
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import WarphashError
from ...runtime.compiler import compiled
from ..bench.clocks import processor
from .base import Array, Rival

__all__ = ["cpp_rival"]

_CALLS = Path(__file__).with_name("cpp_table.hpp")
_OPTIONS = (
    *("-x", "c++", "-std=c++20", "-O3", "-march=native", "-DNDEBUG", "-w", "-fPIC", "-shared"),
    "-Wl,--no-as-needed",  # the libraries come before the source
)


def cpp_rival(name: str, table: str, libraries: Sequence[str] = ()) -> Rival:
    """Compile a rival.

    Parameters
    ----------
    name
        As of `Rival`.
    table
        C++ source that defines ``Table`` (``cpp_table.hpp``).
    libraries
        Names of the libraries that it is linked to.

    Raises
    ------
    ImportError
        If there is no compiler, or it does not find the headers or libraries.
    """
    # The processor is named, because machines that share a folder of compiled code may differ.
    source = f"// for {processor()}\n{table}\n{_CALLS.read_text()}"
    try:
        file = compiled(source, (*_OPTIONS, *(f"-l{library}" for library in libraries)), "rivals")
    except WarphashError as error:
        raise ImportError(f"{name} cannot be compiled: {error}") from None
    library = ctypes.CDLL(str(file))
    library.build.restype = ctypes.c_void_p
    return Rival(name, lambda keys, values: _Table(library, keys, values), _Table.find)


class _Table:
    """A table of C++, destroyed with this object."""

    def __init__(self, library: Any, keys: Array, values: Array) -> None:
        self._library, self._value = library, values.dtype
        self._widths = (keys.itemsize, values.itemsize)
        self._at = ctypes.c_void_p(
            library.build(*self._widths, _address(keys), _address(values), ctypes.c_size_t(len(keys)))
        )
        weakref.finalize(self, partial(library.destroy, *self._widths, self._at))

    def find(self, keys: Array) -> npt.NDArray[np.bool_]:
        """Whether each key is there. Its value is looked up, too."""
        n = len(keys)
        values, found = np.empty(n, self._value), np.empty(n, bool)
        self._library.find(
            *self._widths, self._at, _address(keys), ctypes.c_size_t(n), _address(values), _address(found)
        )
        return found


def _address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
