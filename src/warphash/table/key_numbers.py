"""Dense numbers for keys, as the values of a map: `HashMap.number`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..arrays.library import ArrayView
from ..arrays.row_type import Column
from ..errors import DtypeError, ParameterError, UnsupportedVerb
from ..storage.batch import Batch
from ..storage.groups.table_numbers import Numbers, number_keys
from .front import BOOL
from .options import integer
from .parts import Parts

__all__ = ["number"]

_MOST_KEYS = 1 << 31
"""Of a batch: elements of groups have numbers of 32 bits, and one bit of them is taken."""


def number(parts: Parts, keys: Any, first: Any) -> tuple[Any, Any]:
    """The number of each key, and which elements added their keys; absent keys get the next numbers."""
    facts, front = parts.facts, parts.front
    facts.need("number")
    if facts.bound is not None:
        raise UnsupportedVerb(
            "a bounded table has no number, since the numbers of keys that leave would be given again: make a table "
            "without max_size="
        )
    column = front.value
    assert column is not None
    numbers = _numbers_of(column, front.key.nbytes, first)
    seen = front.seen(front.key.view(keys, "keys"), "keys")
    if front.has_rows:
        seen = front.learned([seen])[0]
    rows = seen.shape[:1]
    if rows[0] > _MOST_KEYS:
        raise ParameterError(f"number takes at most {_MOST_KEYS:,} keys in a batch, got {rows[0]:,}: give it in parts")
    front.note_kind(seen)
    made = seen.library.empty(seen, rows, column.dtype, front.engine)
    added = seen.library.empty(seen, rows, BOOL, front.engine)
    parts.guarded.lock.write(_number_locked, parts, seen, made, added, numbers)
    return made.library.export(made), added.library.export(added)


def _numbers_of(column: Column, key_bytes: int, first: Any) -> Numbers:
    """What the numbers are like. Raises if the values are no integers, or none of them is ``first``."""
    if column.shape or column.dtype.kind not in "iu":
        raise DtypeError(
            f"number gives integers, and the values of the table are {column.name}: make it with integers for values, "
            "such as int64"
        )
    bounds = np.iinfo(column.dtype)
    first = integer("first", first, int(bounds.min))
    if first > bounds.max:
        raise ParameterError(f"first must be at most {bounds.max:,}, the greatest {column.dtype}, got {first:,}")
    return Numbers(first, int(bounds.max), key_bytes, column.nbytes)


def _number_locked(parts: Parts, keys: ArrayView, made: ArrayView, added: ArrayView, numbers: Numbers) -> None:
    """As `number`, of arrays that were seen. The caller holds the table's lock."""
    storage: Any = parts.guarded.storage
    # Equal strings lie at different addresses, so their storage knows which ones are equal.
    work = storage.number if parts.front.key.has_any_length else partial(number_keys, storage)

    def body(n: int, at: list[int], to: list[int]) -> None:
        work(Batch(at[0], 0, n, flags=to[1], held=to[0], stream=keys.stream), numbers)

    parts.front.run_naming_keys(body, [keys], [made, added], keys.stream)
