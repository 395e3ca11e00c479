"""A stand-in for CuPy: arrays that NumPy refuses, as it refuses those of a GPU, and the functions that CuPy has."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from warphash.lab.bench.runner import Lab

__all__ = ["ELSEWHERE", "LabElsewhere", "bare", "there"]

_NAMES = (
    *("arange", "asarray", "empty", "ones", "zeros", "concatenate"),
    *("argsort", "cumsum", "unique", "searchsorted", "where"),
    *("count_nonzero", "flatnonzero", "intersect1d", "isin"),
    *("ascontiguousarray", "flip", "isnan", "moveaxis", "sqrt", "stack"),
)
"""Functions that CuPy has, with the meaning that they have in NumPy."""


class Elsewhere(np.ndarray):
    """An array that works only with arrays of its kind, by its own methods and operators.

    If a write names a place several times, the first element stays there. In NumPy it is the last one, and on a GPU
    any of them.
    """

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError(f"{func.__name__} of an array that lies elsewhere")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        _refuse(inputs)
        if out:
            options["out"] = tuple(map(bare, out))
        found = getattr(ufunc, method)(*map(bare, inputs), **options)
        return out[0] if out else there(found)

    def __getitem__(self, key: Any) -> Any:
        _refuse([key])
        return there(bare(self)[bare(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        _refuse([key, value])
        key, value = bare(key), bare(value)
        if isinstance(key, np.ndarray) and key.dtype != bool:
            key, value = key[::-1], value[::-1] if isinstance(value, np.ndarray) else value
        bare(self)[key] = value


def _refuse(operands: Any) -> None:
    if any(isinstance(x, np.ndarray) and not isinstance(x, Elsewhere) for x in operands):
        raise TypeError("an array of the host beside one that lies elsewhere")


def bare(x: Any) -> Any:
    """An array of either kind as one of the host."""
    return x.view(np.ndarray) if isinstance(x, Elsewhere) else x


def there(x: Any) -> Any:
    """An array of either kind as one that lies elsewhere."""
    return x.view(Elsewhere) if isinstance(x, np.ndarray) else x


def _function(name: str) -> Any:
    """A function of NumPy for arrays elsewhere, with answers elsewhere. Only ``asarray`` takes arrays of the host."""

    def function(*args: Any, **options: Any) -> Any:
        parts = [part for arg in args for part in (arg if isinstance(arg, list | tuple) else [arg])]
        if name != "asarray":
            _refuse(parts)
        found = getattr(np, name)(
            *(type(arg)(map(bare, arg)) if isinstance(arg, list | tuple) else bare(arg) for arg in args), **options
        )
        return tuple(map(there, found)) if isinstance(found, tuple) else there(found)

    return function


_TYPES = ("uint8", "int16", "int32", "int64")

ELSEWHERE = SimpleNamespace(
    __name__="numpy",
    **{name: _function(name) for name in _NAMES},
    **{name: getattr(np, name) for name in _TYPES},
)
"""The module of the arrays that lie elsewhere."""


class LabElsewhere(Lab):
    """A laboratory that draws and checks elsewhere. Its tables are on the CPU, and so are their arrays."""

    @property
    def arrays(self) -> Any:
        return ELSEWHERE

    def here(self, array: Any) -> Any:
        return bare(array)

    def back(self, array: Any) -> Any:
        return bare(array)

    def argsort(self, array: Any) -> Any:
        return ELSEWHERE.argsort(array)
