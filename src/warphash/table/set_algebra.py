"""Set algebra on the device: no keys go to the host, but of a set on another device than the left one's.

An answer is a set of its own (`combined`), a truth (`related`), or a change of the left set (`changed`). Both sets are
locked meanwhile, so the answer is that of one moment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.library import ArrayView
from ..arrays.strings import StringArray
from ..errors import DtypeError
from ..runtime.abi import Op
from ..runtime.engine import Buffer
from ..storage import selection
from .base import BaseTable
from .copies import TableContents
from .front import Front
from .parts import Parts
from .scans import owned

__all__ = [
    "Change",
    "Choice",
    "Relation",
    "Side",
    "add_all",
    "changed",
    "combined",
    "difference",
    "erase_all",
    "intersection",
    "is_disjoint",
    "is_equal",
    "is_proper_subset",
    "is_proper_superset",
    "is_subset",
    "is_superset",
    "keep_common",
    "related",
    "symmetric_difference",
    "union",
]

_UNBOUNDED = {"max_size": None, "evict": None, "score": None}
"""The options of a table without a bound."""

AnySet = TypeVar("AnySet", bound=BaseTable)
T = TypeVar("T")


class Side:
    """One of two tables, while its lock is held.

    Parameters
    ----------
    parts
        Of the table.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    @cached_property
    def keys(self) -> ArrayView:
        """All keys, in memory of the engine."""
        front = self.parts.front
        return self.parts.scans.scanned_locked(ENGINE_MEMORY, front.device, [front.key])[0]

    @property
    def size(self) -> int:
        """Number of keys."""
        return self.parts.guarded.storage.store.size

    def held_by(self, other: Side) -> tuple[ArrayView, ArrayView]:
        """The keys in any order, and which of them the other set has, too."""
        return other.parts.lookups.present_in_any_order_locked(self.keys)

    def count_held_by(self, other: Side) -> int:
        """How many of the keys the other set has, too."""
        return selection.count(self.parts.front.engine, self.held_by(other)[1], self.keys.rows)

    def shared_with(self, other: Side) -> ArrayView:
        """The keys that the other set has, too."""
        return self._selected(*self.held_by(other))

    def without(self, other: Side) -> ArrayView:
        """The keys that the other set does not have."""
        keys, held = self.held_by(other)
        return self._selected(keys, selection.inverted(self.parts.front.engine, held, keys.rows))

    def _selected(self, keys: ArrayView, flags: Buffer) -> ArrayView:
        """The keys whose flag is set."""
        column, engine = self.parts.front.key, self.parts.front.engine
        packed, n = selection.select(engine, keys, column.nbytes, keys.rows, flags)
        return ENGINE_MEMORY.of(packed, (n, *column.shape), column.dtype, keys.device)


Choice: TypeAlias = Callable[[Side, Side], list[ArrayView]]
"""The keys of a result, in one array or more, of two sets."""

Relation: TypeAlias = Callable[[Side, Side], bool]

Change: TypeAlias = Callable[[Side, Side], None]
"""Changes the left side, whose lock is held alone."""


def union(left: Side, right: Side) -> list[ArrayView]:
    """The keys of both."""
    return [left.keys, right.keys]


def intersection(left: Side, right: Side) -> list[ArrayView]:
    """The keys that both have."""
    return [left.shared_with(right)]


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


def add_all(left: Side, right: Side) -> None:
    """Insert the keys of the right set."""
    ours, theirs = left.parts, right.parts
    ours.front.scores(right.keys, None)  # which refuses a table that needs scores
    ours.front.learn_names(theirs.copies.names)
    ours.front.note_kind_of(theirs.front)
    ours.updates.update_locked([right.keys], Op.KEEP, None)


def erase_all(left: Side, right: Side) -> None:
    """Erase the keys of the right set."""
    _erase(left, right.keys)


def keep_common(left: Side, right: Side) -> None:
    """Erase the keys that the right set does not have."""
    _erase(left, left.without(right))


def _erase(side: Side, keys: ArrayView) -> None:
    if keys.rows:
        storage = side.parts.guarded.storage
        storage.erase(keys.ptr, keys.rows, 0, None)
        storage.store.finish(None)


def combined(left: AnySet, right: BaseTable, choose: Choice) -> AnySet:
    """A set, on the left one's device and with its options, of the keys that ``choose`` takes of both at one moment.

    The set has no bound: a bound would leave out keys of the answer.
    """
    ours, theirs = left._parts, right._parts

    def answer(*sides: Side) -> tuple[dict[str, Any], ArrayView | StringArray]:
        description = ours.copies.typed_description_locked()
        description["names"] = description["names"] or sides[1].parts.copies.names
        return description, owned(ours.front.engine, ours.front.key, _joined(ours.front, choose(*sides)))

    description, keys = _of_both(left, right, answer)
    description |= {"capacity": keys.shape[0], **_UNBOUNDED}
    made = left._with_pairs(TableContents(description, keys, None), left.device, unique=False)
    made._parts.front.note_kind_of(theirs.front)
    return made


def related(left: BaseTable, right: BaseTable, holds: Relation) -> bool:
    """Whether ``holds`` is true of two tables at one moment."""
    return _of_both(left, right, holds)


def changed(left: BaseTable, right: BaseTable, change: Change, verb: str) -> None:
    """Change the left set, by a verb, to what follows from the right one at one moment."""
    left._parts.facts.need(verb)
    _of_both(left, right, change, alone=True)


def _of_both(left: BaseTable, right: BaseTable, ask: Callable[[Side, Side], T], *, alone: bool = False) -> T:
    """What ``ask`` answers of two tables, while the locks of both are held; that of the left one ``alone``.

    All threads lock two tables in the same order, so none waits for another for ever.
    """
    ours, theirs = left._parts, right._parts
    for parts in (ours, theirs):
        parts.facts.need("keys")
        parts.facts.need("contains")
    if theirs.front.key != ours.front.key:
        raise DtypeError(
            f"both tables must hold one key type, got {ours.front.key.name} and {theirs.front.key.name}: give a "
            "method, such as union or issubset, the other table's keys(), which are compared exactly"
        )

    def answer() -> T:
        near = theirs
        if right.device != left.device or not ours.front.has_order_of(theirs.front):
            keys, values = ours.front.ordered(theirs.front, *theirs.scans.on_host_locked()[:2])
            description = theirs.copies.typed_description_locked() | _UNBOUNDED
            description["names"] = ours.copies.names or description["names"]
            near = right._rebuilt(TableContents(description, keys, values), left.device)._parts
        return ask(Side(ours), Side(near))

    if left is right:
        return ours.guarded.alone(answer) if alone else ours.guarded.settled(answer)
    lock_left = ours.guarded.alone if alone else ours.guarded.settled
    if id(left) < id(right):
        return lock_left(lambda: theirs.guarded.settled(answer))
    return theirs.guarded.settled(lambda: lock_left(answer))


def _joined(front: Front, parts: list[ArrayView]) -> ArrayView:
    """Several arrays of keys as one."""
    if len(parts) == 1:
        return parts[0]
    column, engine, n = front.key, front.engine, sum(part.rows for part in parts)
    joined = engine.allocate(max(1, n * column.nbytes))
    at = joined.ptr
    for part in parts:
        engine.copy(at, part.ptr, part.nbytes)
        at += part.nbytes
    return ENGINE_MEMORY.of(joined, (n, *column.shape), column.dtype, parts[0].device)
