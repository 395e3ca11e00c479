"""What a `HashMap` does as a dict does: a value or a default, pop, update, and equality.

`get` and `pop` take one key or a batch of keys, as ``m[keys]`` does: what has the shape of a key is one key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.cast import Sought, chosen
from ..arrays.library import ArrayView
from ..arrays.strings import StringArray
from ..arrays.view import view
from ..errors import DtypeError, ParameterError
from ..runtime.abi import Op
from ..storage import selection
from ..storage.rows import Rows
from .front import BOOL
from .parts import Parts
from .scans import owned
from .set_algebra import Side

__all__ = ["MISSING", "columns_of", "get", "pop", "same_pairs", "update"]

MISSING: Any = object()
"""Stands for a default that the caller did not give."""


def get(parts: Parts, keys: Any, default: Any) -> Any:
    """The value of one key, or ``default``; or the values of a batch, with ``default`` for absent keys."""
    front, look_up = parts.front, parts.lookups.look_up
    one, seen, fits = front.one_or_many(keys)
    if one and fits is not None:
        return default
    if not one:
        if default is None:
            raise ParameterError(
                "a batch needs a default that the value type has, and None is no such value: give one, as in "
                "get(keys, 0); find(keys) also says which keys are there"
            )
        return look_up("find", Sought(seen, fits), front.value, default)[0]
    values, found = look_up("find", Sought(seen, None), front.value, 0)
    return values[0] if front.on_host(view(found))[0] else default


def pop(parts: Parts, keys: Any, default: Any) -> Any:
    """Erase keys, and return their values."""
    front, guarded, column = parts.front, parts.guarded, parts.front.value
    assert column is not None
    one, given, fits = front.one_or_many(keys)
    if fits is not None and default is MISSING:
        front.raise_missing(given, view(fits), fits, keys)
    if one and fits is not None:
        return default
    # The keys that are found are the keys that are erased.
    seen = front.transfer.private_view(given if fits is None else chosen(given, fits))
    library, rows = seen.library, seen.shape[:1]
    absent = column.default(0 if one or default is MISSING else default)
    values = front.rows_for(seen, column)
    found, erased = (library.empty(seen, rows, BOOL, front.engine) for _ in range(2))

    def body(n: int, at: list[int], to: list[int]) -> None:
        guarded.storage.find(at[0], n, to[0], to[1], absent, seen.stream)

    def pop_locked() -> ArrayView | StringArray:
        front.run(body, [seen], [values, found], seen.stream)
        if default is MISSING:
            front.raise_missing(seen, found)
        popped = values if fits is None else front.spread(given, fits, values, absent, front.rows_for(given, column))
        made = owned(front.engine, column, popped)
        parts.lookups.answer_locked(seen, erased, guarded.storage.erase)
        return made

    made = guarded.alone(pop_locked)
    if one and default is not MISSING and not front.on_host(found)[0]:
        return default
    held = column.exported(made, given.library)
    return held[0] if one else held


def columns_of(pairs: Any) -> tuple[list[Any], list[Any]] | None:
    """Keys and values of a mapping, or of an iterable of pairs; None if there are none."""
    rows: Iterable[Any] = pairs.items() if hasattr(pairs, "items") else pairs
    columns = list(zip(*rows, strict=True))
    if not columns:
        return None
    if len(columns) != 2:
        raise ParameterError(
            f"update takes a mapping or pairs, got rows of {len(columns)}: for two arrays, call assign(keys, values)"
        )
    return list(columns[0]), list(columns[1])


def update(parts: Parts, other: Parts) -> None:
    """Assign all pairs of another table: on the device, if both are there."""
    front, theirs, scans = parts.front, other.front, other.scans
    assert front.value is not None
    types = front.key.spec, front.value.numpy
    if other.facts.is_multi or theirs.value is None or (theirs.key.spec, theirs.value.numpy) != types:
        shown = other.guarded.settled(other.figures.repr_locked)
        names = f"{front.key.name} and {front.value.name}"
        raise DtypeError(f"update takes a HashMap of {names}, got {shown}: convert its to_arrays()")
    if other is parts:
        return
    if not front.has_order_of(theirs):
        keys, values = front.ordered(theirs, *scans.read("numpy", *theirs.stored))
    elif theirs.device == front.device:
        keys, values = other.guarded.settled(scans.owned_columns_locked, ENGINE_MEMORY, theirs.device, theirs.stored)
    else:
        keys, values = scans.read("numpy", *theirs.stored)
    front.learn_names(other.copies.names)
    front.note_kind_of(theirs)
    parts.updates.update("assign", keys, values, Op.REPLACE, answers=False)


def same_pairs(left: Side, right: Side) -> bool:
    """Whether two maps have the same keys, each with an equal value. Values are compared by ``==``, in host memory."""
    if left.size != right.size:
        return False
    ours, theirs = left.parts.front, right.parts.front
    assert theirs.value is not None
    assert ours.value is not None
    if ours.value.has_any_length != theirs.value.has_any_length:
        return left.size == 0
    keys, values = left.parts.scans.scanned_locked(ENGINE_MEMORY, ours.device, ours.stored)
    n, column, engine = keys.rows, theirs.value, theirs.engine
    others = ENGINE_MEMORY.empty(keys, (n, *column.shape), column.dtype, engine)
    found = ENGINE_MEMORY.empty(keys, (n,), BOOL, engine)
    _unused(right.parts).find(keys.ptr, n, others.ptr, found.ptr, bytes(column.nbytes), None)
    if selection.count(engine, found, n) < n:
        return False
    if column.has_any_length:
        if ours.value.numpy != column.numpy:
            return n == 0
        return _same_strings(*(owned(engine, column, rows) for rows in (values, others)))
    return np.array_equal(ours.on_host(values), ours.on_host(others))


def _same_strings(left: Any, right: Any) -> bool:
    """Whether two of `StringArray` have the same strings, none of which is a null."""
    return np.array_equal(left.offsets, right.offsets) and np.array_equal(left.data, right.data)


def _unused(parts: Parts) -> Rows:
    """The storage, inside a bound: a find there is no use of the keys."""
    storage: Any = parts.guarded.storage
    inner: Rows = storage if parts.facts.bound is None else storage.unused
    return inner
