"""Whether a batch of operations that ran at once is linearizable: whether some order of them explains all answers.

All operations of one batch overlap in time, so nothing but their answers restricts that order. And those on different
keys never restrict each other: a history is linearizable if it is so for each object (Herlihy and Wing, 1990).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from support.types import Array, as_bytes
from warphash import Operation

State = Hashable
"""The value of a key; `ABSENT` where it is not there."""

ABSENT = None
UNPLACED = 2
"""The answer of an insert or assign that found no room: it has done nothing."""


@dataclass(frozen=True)
class Event:
    """One operation on a key, and its answer.

    Attributes
    ----------
    operation
        What was asked for.
    value
        Of an insert or assign: its own. Of a find that found its key: the one that it found.
    flag
        0, 1 or `UNPLACED`.
    """

    operation: Operation
    value: State
    flag: int

    @property
    def writes(self) -> bool:
        """Whether it has a value to write, and adds its key if that is absent."""
        return self.operation in (Operation.INSERT, Operation.ASSIGN)

    def after(self, state: State) -> tuple[bool, State]:
        """Whether the answer is right for an operation that meets ``state``, and what it leaves."""
        there = state is not ABSENT
        if self.flag == UNPLACED:
            return self.writes, state
        if self.operation == Operation.FIND:
            return there == bool(self.flag) and (not there or state == self.value), state
        if self.operation == Operation.ERASE:
            return there == bool(self.flag), ABSENT
        keeps = there and self.operation == Operation.INSERT
        return there != bool(self.flag), state if keeps else self.value


def explains(events: list[Event], before: State, after: State) -> bool:
    """Whether some order of ``events`` leads from state to state, each meeting what its answer says. Takes linear time.

    A key is absent and there by turns: it comes with an insert or assign that adds it, and goes with an erase. As all
    events overlap, an event that needs the key may be put into any span of time in which it is there. So these rules
    are needed, and enough:

    1. The events that add the key and those that erase it lead from one state to the other.
    2. What found the key there has such a span, and what missed it has a span without the key.
    3. A find saw the first value or one that was written: every written value is there for a while.
    4. The last value was written by an assign, which then comes last; else it is that with which the last span began,
       and the assigns, if there are any, belong to another span.
    """
    placed = [event for event in events if event.flag != UNPLACED]
    if any(not event.writes for event in events if event.flag == UNPLACED):
        return False
    added = [event.value for event in placed if event.writes and event.flag]
    assigned = [event.value for event in placed if event.operation == Operation.ASSIGN and not event.flag]
    erases = sum(bool(event.flag) for event in placed if event.operation == Operation.ERASE)
    was_there, is_there = before is not ABSENT, after is not ABSENT
    if len(added) - erases != is_there - was_there:
        return False
    spans = len(added) + was_there
    met = {bool(event.flag) != event.writes for event in placed}
    if (True in met and not spans) or (False in met and was_there and not erases):
        return False
    first = [before] if was_there else []
    seen = {event.value for event in placed if event.operation == Operation.FIND and event.flag}
    if not seen <= {*first, *added, *assigned}:
        return False
    if not is_there or after in assigned:
        return True
    return after in (added or first) and (not assigned or spans > 1)


def wrong_keys(
    operations: Array,
    keys: Array,
    values: Array | None,
    found: Array | None,
    flags: Array,
    before: dict[bytes, State],
    after: dict[bytes, State],
) -> list[tuple[bytes, State, State, list[Event]]]:
    """The keys of a batch whose answers no order explains, with their states and events.

    Parameters
    ----------
    values, found
        What inserts and assigns brought, and what finds found; None of a set.
    before, after
        The pairs of the table; of a set, the values are empty.
    """
    events: dict[bytes, list[Event]] = defaultdict(list)
    names, brought = as_bytes(keys), _values(values, keys)
    rows: Any = zip(names, operations.tolist(), brought, _values(found, keys), flags.tolist(), strict=True)
    for name, number, own, seen, flag in rows:
        operation = Operation(number)
        writes = operation in (Operation.INSERT, Operation.ASSIGN)
        events[name].append(Event(operation, own if writes else seen if flag else ABSENT, int(flag)))
    for name in before.keys() | after.keys():
        events.setdefault(name, [])
    return [
        (name, before.get(name, ABSENT), after.get(name, ABSENT), its)
        for name, its in events.items()
        if not explains(its, before.get(name, ABSENT), after.get(name, ABSENT))
    ]


def _values(array: Array | None, keys: Array) -> list[bytes]:
    return [b""] * len(keys) if array is None else as_bytes(array)
