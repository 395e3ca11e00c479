"""What a `HashMap` does as a dict does: a value or a default, pop, setdefault, update, and equality.

Each function takes one key or a batch of keys, as ``m[keys]`` does: what has the shape of a key is one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.cast import Sought, chosen
from ..arrays.view import view
from ..errors import DtypeError, ParameterError
from ..runtime.abi import Op
from ..storage import selection
from . import copies, set_algebra
from .base import BaseTable

if TYPE_CHECKING:
    from .maps import HashMap

__all__ = ["MISSING", "get", "pop", "same_pairs", "setdefault", "update"]

MISSING: Any = object()
"""Stands for a default that the caller did not give."""


def get(table: HashMap, keys: Any, default: Any) -> Any:
    """The value of one key, or ``default``; or the values of a batch, with ``default`` for absent keys."""
    one, seen, fits = table._one_or_many(keys)
    if one and fits is not None:
        return default
    if not one:
        if default is None:
            raise ParameterError(
                "a batch needs a default that the value type has, and None is no such value: give one, as in "
                "get(keys, 0); find(keys) also says which keys are there"
            )
        return table._look_up(Sought(seen, fits), table._values, default)[0]
    values, found = table._look_up(Sought(seen, None), table._values, 0)
    return values[0] if table._transfer.on_host(view(found))[0] else default


def pop(table: HashMap, keys: Any, default: Any) -> Any:
    """Erase keys, and return their values."""
    one, given, fits = table._one_or_many(keys)
    if fits is not None and default is MISSING:
        table._raise_missing(given, view(fits), fits, keys)
    if one and fits is not None:
        return default
    # The keys that are found are the keys that are erased.
    seen = table._transfer.private_view(given if fits is None else chosen(given, fits))
    column, library, rows = table._values, seen.library, seen.shape[:1]
    absent = column.default(0 if one or default is MISSING else default)
    values = library.empty(seen, rows + column.shape, column.dtype, table._engine)
    found, erased = (library.empty(seen, rows, np.dtype(np.bool_), table._engine) for _ in range(2))

    def body(n: int, at: list[int], to: list[int]) -> None:
        table._storage.find(at[0], n, to[0], to[1], absent, seen.stream)

    def pop_locked() -> None:
        table._run(body, [seen], [values, found], seen.stream)
        if default is MISSING:
            table._raise_missing(seen, found)
        table._answer_locked(seen, erased, table._storage.erase)

    table._alone(pop_locked)
    if one and default is not MISSING and not table._transfer.on_host(found)[0]:
        return default
    held = column.exported(values if fits is None else table._spread(given, fits, values, absent))
    return held[0] if one else held


def setdefault(table: HashMap, keys: Any, values: Any) -> Any:
    """Add absent keys, and return the value that each key has now."""
    one = table._key.see(keys).shape == table._key.shape
    held, _ = table.find_or_insert(keys, values)
    return held[0] if one else held


def update(table: HashMap, other: Any) -> None:
    """Assign all pairs of another table, of a mapping, or of an iterable of pairs."""
    if isinstance(other, BaseTable):
        _update_from_table(table, other)
        return
    pairs: Iterable[Any] = other.items() if hasattr(other, "items") else other
    columns = list(zip(*pairs, strict=True))
    if not columns:
        return
    if len(columns) != 2:
        raise ParameterError(
            f"update takes a mapping or pairs, got rows of {len(columns)}: for two arrays, call assign(keys, values)"
        )
    keys, values = map(list, columns)
    if isinstance(other, Mapping):
        table.assign(keys, values)
    else:  # of equal keys, the last one wins, as in a dict
        table.upsert(keys, values, "last")


def _update_from_table(table: HashMap, other: Any) -> None:
    """Assign all pairs of another table: on the device, if both are there."""
    types = table.key_dtype, table.value_dtype
    if other._multi or other._value is None or (other.key_dtype, other.value_dtype) != types:
        raise DtypeError(f"update takes a HashMap of {types[0]} and {types[1]}, got {other!r}: convert its to_arrays()")
    if other is table:
        return
    columns = [other._key, other._values]
    if not copies.same_order(table, other):
        keys, values = copies.in_order_of(table, other, *other.to_arrays(like="numpy"))
    elif other.device == table.device:
        keys, values = other._settled(other._owned_columns_locked, ENGINE_MEMORY, other.device, columns)
    else:
        keys, values = other.to_arrays(like="numpy")
    table._learn_names(other._names)
    table._note_kind_of(other)
    table._update(keys, values, Op.REPLACE, answers=False)


def same_pairs(left: set_algebra.Side, right: set_algebra.Side) -> bool:
    """Whether two maps have the same keys, each with an equal value. Values are compared by ``==``, in host memory."""
    if left.size != right.size:
        return False
    ours, theirs = left.table, right.table
    assert ours._value is not None and theirs._value is not None
    keys, values = ours._scanned_locked(ENGINE_MEMORY, ours.device, [ours._key, ours._value])
    n, column, engine = keys.rows, theirs._value, theirs._engine
    others = ENGINE_MEMORY.empty(keys, (n, *column.shape), column.dtype, engine)
    found = ENGINE_MEMORY.empty(keys, (n,), np.dtype(np.bool_), engine)
    theirs._unused_storage.find(keys.ptr, n, others.ptr, found.ptr, bytes(column.nbytes), None)
    if selection.count(engine, found, n) < n:
        return False
    on_host = ours._transfer.on_host
    return np.array_equal(on_host(values), on_host(others))
