"""Lookups inside ``jax.jit``: callbacks to the host, which JAX calls when the compiled function runs.

Importing this module imports JAX. Nothing else of warphash does: outside of ``jit``, tables take and return JAX arrays
without it.

A callback gets its keys in host memory, so the keys and the answers of a function on a GPU cross the bus. The table may
be on either side.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from .arrays.adapters.jax import check_type
from .errors import ShapeError, UnsupportedVerb

__all__ = ["contains", "find"]


def find(table: Any, keys: Any, default: Any = 0) -> tuple[Any, Any]:
    """Values and presence of keys, as `HashMap.find`, also under ``jit``, ``vmap`` and ``scan``.

    The table is looked up when the compiled function runs, as it is then. JAX may call a lookup whose answer nobody
    uses never, and another one more than once. So do not change the table while a function runs.

    Parameters
    ----------
    table
        A table with values, on any device. Close the compiled function over it, as with ``functools.partial``.
    keys
        Array of shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.
    default
        What absent keys get: a value that is known when the function is traced.

    Returns
    -------
    values, found
        Arrays of shape ``(*s, *row)``, where ``row`` is the shape of a value, and of shape ``s``.

    Raises
    ------
    DtypeError
        If JAX has no such type as the values, or has it only with ``jax_enable_x64``.
    ShapeError
        If the keys are no rows of the table's length.
    UnsupportedVerb
        If the table has no values.
    """
    value = getattr(table, "value_dtype", None)
    if value is None:
        raise UnsupportedVerb(f"expected a table with values, got {type(table).__name__}: ask contains")
    check_type(value.base)
    shape = _shape(table, keys)
    answers = (_answer((*shape, *value.shape), value.base), _answer(shape, np.dtype(np.bool_)))
    values, found = _callback(partial(_find, table, default), answers, keys)
    return values, found


def contains(table: Any, keys: Any) -> Any:
    """Which keys are there, as ``table.contains(keys)``, also under ``jit``, ``vmap`` and ``scan``; see `find`.

    Parameters
    ----------
    table
        A table of any class.
    keys
        As for `find`.
    """
    return _callback(partial(_contains, table), _answer(_shape(table, keys), np.dtype(np.bool_)), keys)


def _answer(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    make: Any = jax.ShapeDtypeStruct
    return make(shape, dtype)


def _callback(look_up: Any, answers: Any, keys: Any) -> Any:
    return jax.pure_callback(look_up, answers, keys, vmap_method="expand_dims")


def _shape(table: Any, keys: Any) -> tuple[int, ...]:
    """The shape of the answers for keys."""
    given: tuple[int, ...] = np.shape(keys)
    row: tuple[int, ...] = table.key_dtype.shape
    axes = len(given) - len(row)
    if axes < 0 or given[axes:] != row:
        raise ShapeError(f"keys must have shape (*s, {', '.join(map(str, row))}), got {given}: give a row for each key")
    return given[:axes]


def _flat(table: Any, keys: Any) -> tuple[tuple[int, ...], npt.NDArray[Any]]:
    """The shape of the answers, and the keys as a batch in host memory."""
    row = table.key_dtype.shape
    return _shape(table, keys), np.asarray(keys).reshape((-1, *row))


def _find(table: Any, default: Any, keys: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    shape, batch = _flat(table, keys)
    values, found = table.find(batch, default)
    return values.reshape(shape + table.value_dtype.shape), found.reshape(shape)


def _contains(table: Any, keys: Any) -> npt.NDArray[np.bool_]:
    shape, batch = _flat(table, keys)
    found: npt.NDArray[np.bool_] = table.contains(batch).reshape(shape)
    return found
