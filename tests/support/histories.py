"""Check whether a batch of concurrent operations is linearizable: whether some order of them explains all answers.

All operations of a batch overlap in time, so only their answers restrict the order. Operations on different keys do not
restrict each other: a history is linearizable if it is linearizable for each object (Herlihy and Wing, 1990).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from support.types import Array, as_bytes
from warphash import Operation

State = Hashable
"""The value of a key, or `ABSENT` if the table does not hold the key."""

ABSENT = None
UNPLACED = 2
"""The answer of an insert or assign that found no room and changed nothing."""


@dataclass(frozen=True)
class Event:
    """One operation on a key, and its answer.

    Attributes
    ----------
    operation
        The kind of the operation.
    value
        The value that an insert or assign brings, or the value that a find returns.
    flag
        The answer's flag: 0, 1 or `UNPLACED`.
    """

    operation: Operation
    value: State
    flag: int

    @property
    def writes(self) -> bool:
        """Whether the operation writes a value, and adds its key if the key is absent."""
        return self.operation in (Operation.INSERT, Operation.ASSIGN)

    def after(self, state: State) -> tuple[bool, State]:
        """Whether the answer is right if the operation meets ``state``, and the state that it leaves."""
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
    """Whether some order of ``events`` leads from ``before`` to ``after`` and explains each answer. Takes linear time.

    A key is present and absent by turns: an insert or assign adds the key, an erase removes it. All events overlap, so
    an event that needs the key may be placed in any span of time in which the key is present. The following rules are
    therefore necessary and sufficient:

    1. The events that add and erase the key lead from ``before`` to ``after``.
    2. If an event found the key, there is a span with the key. If an event missed it, there is a span without the key.
    3. A find returned the first value or a written value. Every written value is present for a while.
    4. Either an assign wrote the last value, and this assign comes last. Or the last value is the value with which the
       last span began, and all assigns belong to other spans.
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
        The values that inserts and assigns bring, and the values that finds return. None for a set.
    before, after
        The pairs of the table before and after the batch. For a set, the values are empty.
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
