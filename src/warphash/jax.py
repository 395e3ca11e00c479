"""Lookups and updates inside ``jax.jit``: callbacks to the host, which JAX calls when the compiled function runs.

Lookups are ``jax.pure_callback``: JAX may leave one out, repeat it, or move it. Updates are
``jax.experimental.io_callback(ordered=True)``: each runs once, and all run in the order of the program. A lookup
between updates needs ``ordered=True``, too.

Importing this module imports JAX. Nothing else of warphash does: outside of ``jit``, tables take and return JAX arrays
without it.

A callback gets its keys in host memory, so the keys and the answers of a function on a GPU cross the bus. The table may
be on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.experimental import io_callback

from .arrays.adapters.jax import check_type
from .errors import ShapeError, UnsupportedVerb
from .table.multimap import MultiMap

if TYPE_CHECKING:
    from .table.keywords import Operator

__all__ = ["assign", "contains", "erase", "find", "insert", "upsert"]

BOOL: np.dtype[np.bool_] = np.dtype(np.bool_)


def find(table: Any, keys: Any, default: Any = 0, *, ordered: bool = False) -> tuple[Any, Any]:
    """Values and presence of keys, as `HashMap.find`, also under ``jit``, ``vmap`` and ``scan``.

    The table is looked up when the compiled function runs, as it is then. JAX may call a lookup whose answer nobody
    uses never, and another one more than once. So do not change the table while a function runs, or give ``ordered``.

    Parameters
    ----------
    table
        A table with values, on any device. Close the compiled function over it, as with ``functools.partial``.
    keys
        Array of shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.
    default
        What absent keys get: a value that is known when the function is traced.
    ordered
        The lookup runs once, behind the updates that come before it in the program, and before those that come after
        it.

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

    def answers(keys: Any) -> tuple[Any, Any]:
        shape = _shape(table, keys)
        return _answer((*shape, *value.shape), value.base), _answer(shape, BOOL)

    values, found = (_in_order if ordered else _pure)(partial(_find, table, default), answers, keys)
    return values, found


def contains(table: Any, keys: Any, *, ordered: bool = False) -> Any:
    """Which keys are there, as ``table.contains(keys)``, also under ``jit``, ``vmap`` and ``scan``; see `find`.

    Parameters
    ----------
    table
        A table of any class.
    keys, ordered
        As for `find`.

    Returns
    -------
    array
        bool of shape ``s``.

    Raises
    ------
    ShapeError
        If the keys are no rows of the table's length.
    """
    return (_in_order if ordered else _pure)(partial(_contains, table), partial(_flags, table), keys)


def insert(table: Any, keys: Any, values: Any = None) -> Any:
    """Add the keys that are absent, as ``table.insert``, also under ``jit``, ``vmap`` and ``scan``.

    The table is updated once each time that the compiled function runs, in the order of the program. Under ``vmap``,
    the elements of all rows are one batch. A call of the table itself sees the update once the answers are there, or
    behind ``jax.effects_barrier()``. No gradient flows into the values.

    Parameters
    ----------
    table
        A table of any class, on any device. Close the compiled function over it, as with ``functools.partial``.
    keys
        Array of shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.
    values
        Array of shape ``(*s, *row)``, where ``row`` is the shape of a value; or one value, which is that of all keys.
        None for a `HashSet`.

    Returns
    -------
    array
        bool of shape ``s``, True where an element added its key. None for a `MultiMap`.

    Raises
    ------
    DtypeError, ShapeError, UnsupportedVerb
        As of the table, when the function is traced.
    jax.errors.JaxRuntimeError
        When the function has run, if the table raised an error, which the message names. The table is as it was before
        this update, and updates that come later in the program did not run.
    """
    return _update(table, "insert", keys, values)


def assign(table: Any, keys: Any, values: Any) -> Any:
    """Insert keys, or overwrite their values, as ``table.assign``; see `insert`.

    Parameters
    ----------
    table, keys, values
        As for `insert`.

    Returns
    -------
    array
        bool of shape ``s``, True where the key is new.

    Raises
    ------
    DtypeError, ShapeError, UnsupportedVerb, jax.errors.JaxRuntimeError
        As `insert`.
    """
    return _update(table, "assign", keys, values)


def upsert(table: Any, keys: Any, values: Any, op: Operator) -> Any:
    """Insert keys, or combine their values, as ``table.upsert``; see `insert`.

    Parameters
    ----------
    table, keys, values
        As for `insert`.
    op
        As for `HashMap.upsert`; known when the function is traced.

    Returns
    -------
    array
        bool of shape ``s``, True where the key is new.

    Raises
    ------
    DtypeError, ShapeError, UnsupportedVerb, jax.errors.JaxRuntimeError
        As `insert`.
    """
    return _update(table, "upsert", keys, values, op)


def erase(table: Any, keys: Any) -> Any:
    """Erase keys, as ``table.erase``; see `insert`.

    Parameters
    ----------
    table, keys
        As for `insert`.

    Returns
    -------
    array
        bool of shape ``s``, True where an element erased its key.

    Raises
    ------
    DtypeError, ShapeError, UnsupportedVerb, jax.errors.JaxRuntimeError
        As `insert`.
    """
    return _update(table, "erase", keys, None)


def _answer(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    make: Any = jax.ShapeDtypeStruct
    return make(shape, dtype)


def _flags(table: Any, keys: Any, *_: Any) -> Any:
    return _answer(_shape(table, keys), BOOL)


def _pure(look_up: Any, answers: Any, keys: Any) -> Any:
    return jax.pure_callback(look_up, answers(keys), keys, vmap_method="expand_dims")


def _in_order(run: Any, answers: Any, *arrays: Any) -> Any:
    """Call ``run`` on the host, in the order of the program. JAX has no ``vmap`` of such calls, so ``vmap`` becomes one
    call with an axis more.

    Parameters
    ----------
    answers
        Gives the shapes and types of the answers for arrays.
    """

    def call(*arrays: Any) -> Any:
        return io_callback(run, answers(*arrays), *arrays, ordered=True)

    def mapped(n: int, is_mapped: Sequence[bool], *arrays: Any) -> tuple[Any, Any]:
        whole = [
            array if has_axis else jnp.broadcast_to(array, (n, *array.shape))
            for array, has_axis in zip(arrays, is_mapped, strict=True)
        ]
        made = _in_order(run, answers, *whole)
        return made, jax.tree.map(lambda _: True, made)

    mappable: Any = jax.custom_batching.custom_vmap(call)
    mappable.def_vmap(mapped)
    return mappable(*arrays)


def _update(table: Any, verb: str, keys: Any, values: Any, *options: Any) -> Any:
    """Call a verb of a table that updates it."""
    run = getattr(table, verb, None)
    if run is None:
        raise UnsupportedVerb(f"a {type(table).__name__} has no {verb}")
    arrays, rows = [jnp.asarray(keys)], [table.key_dtype.shape]
    if values is not None:
        arrays.append(_values_of(table, values, _shape(table, arrays[0])))
        rows.append(table.value_dtype.shape)
    # The table checks types and names by a batch without elements, which changes nothing.
    run(*(np.empty((0, *row), array.dtype) for row, array in zip(rows, arrays, strict=True)), *options)

    def on_host(*arrays: Any) -> Any:
        batch = (np.asarray(array).reshape((-1, *row)) for row, array in zip(rows, arrays, strict=True))
        flags = run(*batch, *options)
        return None if flags is None else flags.reshape(_shape(table, arrays[0]))

    nothing = isinstance(table, MultiMap) and verb == "insert"
    return _in_order(on_host, (lambda *_: None) if nothing else partial(_flags, table), *arrays)


def _values_of(table: Any, values: Any, shape: tuple[int, ...]) -> Any:
    """A value for each key of an array of a shape."""
    value = getattr(table, "value_dtype", None)
    if value is None:
        raise UnsupportedVerb(f"a {type(table).__name__} has no values, got values={values!r:.60}")
    given = jnp.asarray(values, value.base if isinstance(values, bool | int | float) else None)
    whole = shape + value.shape
    if given.shape not in ((), value.shape, whole):
        raise ShapeError(f"values must have shape {whole} or {value.shape}, got {given.shape}")
    return jax.lax.stop_gradient(jnp.broadcast_to(given, whole))


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
