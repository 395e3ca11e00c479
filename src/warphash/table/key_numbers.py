"""Dense numbers for keys, as the values of a map: `HashMap.number`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..arrays.library import ArrayView
from ..errors import DtypeError, ParameterError, UnsupportedVerb
from ..storage.batch import Batch
from ..storage.groups.table_numbers import Numbers, number_keys
from .front import BOOL
from .options import integer
from .parts import Parts

__all__ = ["check_numbers", "number"]

_MOST_KEYS = 1 << 31
"""Of a batch: elements of groups have numbers of 32 bits, and one bit of them is taken."""


def number(parts: Parts, keys: Any, first: Any) -> tuple[Any, Any]:
    """The number of each key, and which elements added their keys; absent keys get the next numbers."""
    front = parts.front
    numbers = check_numbers(parts, first)
    column = front.value
    assert column is not None
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


def check_numbers(parts: Parts, first: Any) -> Numbers:
    """What the numbers of a table are like. Raises as `HashMap.number` of keys that are not seen yet."""
    facts, column = parts.facts, parts.front.value
    facts.need("number")
    if facts.bound is not None:
        raise UnsupportedVerb(
            "a bounded table has no number, since the numbers of keys that leave would be given again: make a table "
            "without max_size="
        )
    assert column is not None
    if column.shape or column.dtype.kind not in "iu":
        raise DtypeError(
            f"number gives integers, and the values of the table are {column.name}: make it with integers for values, "
            "such as int64"
        )
    bounds = np.iinfo(column.dtype)
    first = integer("first", first, int(bounds.min))
    if first > bounds.max:
        raise ParameterError(f"first must be at most {bounds.max:,}, the greatest {column.dtype}, got {first:,}")
    return Numbers(first, int(bounds.max), parts.front.key.nbytes, column.nbytes)


def _number_locked(parts: Parts, keys: ArrayView, made: ArrayView, added: ArrayView, numbers: Numbers) -> None:
    """As `number`, of arrays that were seen. The caller holds the table's lock."""
    storage: Any = parts.guarded.storage
    # Equal strings lie at different addresses, so their storage knows which ones are equal.
    work = storage.number if parts.front.key.has_any_length else partial(number_keys, storage)

    def body(n: int, at: list[int], to: list[int]) -> None:
        work(Batch(at[0], 0, n, flags=to[1], held=to[0], stream=keys.stream), numbers)

    parts.front.run_naming_keys(body, [keys], [made, added], keys.stream)
