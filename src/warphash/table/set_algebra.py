"""Set algebra on the device: no keys go to the host, but of a set on another device than the left one's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias, TypeVar

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.library import ArrayView
from ..errors import DtypeError
from ..runtime.engine import Buffer
from ..storage import selection
from . import copies
from .base import BaseTable

__all__ = [
    "Choice",
    "Relation",
    "Side",
    "combined",
    "difference",
    "intersection",
    "is_disjoint",
    "is_equal",
    "is_proper_subset",
    "is_proper_superset",
    "is_subset",
    "is_superset",
    "related",
    "symmetric_difference",
    "union",
]

AnySet = TypeVar("AnySet", bound=BaseTable)
T = TypeVar("T")


class Side:
    """One of two sets, while its lock is held.

    Parameters
    ----------
    table
        The set.
    """

    def __init__(self, table: BaseTable) -> None:
        self._table = table

    @cached_property
    def keys(self) -> ArrayView:
        """All keys, in memory of the engine."""
        table = self._table
        return table._scanned_locked(ENGINE_MEMORY, table._device, [table._key])[0]

    @property
    def size(self) -> int:
        """Number of keys."""
        return self._table._storage.store.size

    def held_by(self, other: Side) -> ArrayView:
        """Which of the keys the other set has, too."""
        return other._table._present_locked(self.keys)

    def count_held_by(self, other: Side) -> int:
        """How many of the keys the other set has, too."""
        return selection.count(self._table._engine, self.held_by(other), self.keys.rows)

    def with_flag(self, flags: Buffer) -> ArrayView:
        """The keys whose flag is set."""
        keys, column = self.keys, self._table._key
        packed, n = selection.select(self._table._engine, keys, column.nbytes, keys.rows, flags)
        return ENGINE_MEMORY.of(packed, (n, *column.shape), column.dtype, keys.device)

    def without(self, other: Side) -> ArrayView:
        """The keys that the other set does not have."""
        opposite = selection.inverted(self._table._engine, self.held_by(other), self.keys.rows)
        return self.with_flag(opposite)


Choice: TypeAlias = Callable[[Side, Side], list[ArrayView]]
"""The keys of a result, in one array or more, of two sets."""

Relation: TypeAlias = Callable[[Side, Side], bool]


def union(left: Side, right: Side) -> list[ArrayView]:
    """The keys of both."""
    return [left.keys, right.keys]


def intersection(left: Side, right: Side) -> list[ArrayView]:
    """The keys that both have."""
    return [left.with_flag(left.held_by(right))]


def difference(left: Side, right: Side) -> list[ArrayView]:
    """The keys of the left set that the right one does not have."""
    return [left.without(right)]


def symmetric_difference(left: Side, right: Side) -> list[ArrayView]:
    """The keys that one of both has."""
    return [left.without(right), right.without(left)]


def is_subset(left: Side, right: Side) -> bool:
    """Whether the right set has all keys of the left one."""
    return left.size <= right.size and left.count_held_by(right) == left.size


def is_proper_subset(left: Side, right: Side) -> bool:
    """Whether the right set has all keys of the left one, and more."""
    return left.size < right.size and is_subset(left, right)


def is_superset(left: Side, right: Side) -> bool:
    """Whether the left set has all keys of the right one."""
    return is_subset(right, left)


def is_proper_superset(left: Side, right: Side) -> bool:
    """Whether the left set has all keys of the right one, and more."""
    return is_proper_subset(right, left)


def is_equal(left: Side, right: Side) -> bool:
    """Whether both sets have the same keys."""
    return left.size == right.size and is_subset(left, right)


def is_disjoint(left: Side, right: Side) -> bool:
    """Whether no key is in both."""
    return left.count_held_by(right) == 0


def combined(left: AnySet, right: BaseTable, choose: Choice) -> AnySet:
    """A set, on the left one's device and with its options, of the keys that ``choose`` takes of both at one moment.

    The set has no bound: a bound would leave out keys of the answer.
    """
    description, keys = _of_both(left, right, lambda *sides: (left._typed_description(), _joined(left, choose(*sides))))
    description |= {"capacity": keys.rows, "max_size": None, "evict": None, "score": None}
    return copies.like(left, description, keys, None, unique=False)


def related(left: BaseTable, right: BaseTable, holds: Relation) -> bool:
    """Whether ``holds`` is true of two sets at one moment."""
    return _of_both(left, right, holds)


def _of_both(left: BaseTable, right: BaseTable, ask: Callable[[Side, Side], T]) -> T:
    """What ``ask`` answers of two sets, while the locks of both are held.

    All threads lock two sets in the same order, so none waits for another for ever.
    """
    for table in (left, right):
        table._need("keys")
        table._need("contains")
    if right.key_dtype != left.key_dtype:
        raise DtypeError(f"both sets must hold one key type, got {left.key_dtype} and {right.key_dtype}")

    def answer() -> T:
        near: BaseTable = right
        if right.device != left.device:
            keys, _ = right._host_columns_locked()
            description = right._typed_description() | {"max_size": None, "evict": None, "score": None}
            near = copies.rebuilt(type(right), copies.Snapshot(description, keys, None), left.device)
        return ask(Side(left), Side(near))

    if left is right:
        return left._settled(answer)
    first, second = sorted((left, right), key=id)
    return first._settled(lambda: second._settled(answer))


def _joined(table: BaseTable, parts: list[ArrayView]) -> ArrayView:
    """Several arrays of keys as one."""
    if len(parts) == 1:
        return parts[0]
    column, engine, n = table._key, table._engine, sum(part.rows for part in parts)
    joined = engine.allocate(max(1, n * column.nbytes))
    at = joined.ptr
    for part in parts:
        engine.copy(at, part.ptr, part.nbytes)
        at += part.nbytes
    return ENGINE_MEMORY.of(joined, (n, *column.shape), column.dtype, parts[0].device)
