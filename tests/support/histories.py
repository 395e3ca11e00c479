"""Whether a batch of operations that ran at once is linearizable: whether some order of them explains all answers.

All operations of one batch overlap in time, so nothing but their answers restricts that order. And those on different
keys never restrict each other: a history is linearizable if it is so for each object (Herlihy and Wing, 1990).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from support.types import Array, as_bytes
from warphash import Operation

State = Hashable
"""The value of a key; `ABSENT` where it is not there."""

ABSENT = None
UNPLACED = 2
"""The answer of an insert or assign that found no room: it has done nothing."""


_UNSEEN = object()


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
    def changes(self) -> bool:
        """Whether it may leave another state than it met."""
        if self.operation in (Operation.FIND, Operation.ASSIGN):
            return self.operation == Operation.ASSIGN and self.flag != UNPLACED
        return self.flag == 1

    def after(self, state: State) -> tuple[bool, State]:
        """Whether the answer is right for an operation that meets ``state``, and what it leaves."""
        there = state is not ABSENT
        if self.flag == UNPLACED:
            return self.operation in (Operation.INSERT, Operation.ASSIGN), state
        if self.operation == Operation.FIND:
            return there == bool(self.flag) and (not there or state == self.value), state
        if self.operation == Operation.ERASE:
            return there == bool(self.flag), ABSENT
        keeps = there and self.operation == Operation.INSERT
        return there != bool(self.flag), state if keeps else self.value


def explains(events: list[Event], before: State, after: State) -> bool:
    """Whether some order of ``events`` leads from state to state, each meeting what its answer says.

    A search over the sets of events that are done. Those that change nothing are done as soon as they can be, which
    takes no order away; of equal ones, the first comes first; and values that nobody saw are equal.
    """
    adds = sum(event.flag == 1 and event.operation in (Operation.INSERT, Operation.ASSIGN) for event in events)
    erases = sum(event.flag == 1 and event.operation == Operation.ERASE for event in events)
    if adds - erases != (after is not ABSENT) - (before is not ABSENT):
        return False
    seen = {after, *(event.value for event in events if event.operation == Operation.FIND)}
    events = [event if event.value in seen else replace(event, value=_UNSEEN) for event in events]
    # The value that stays is best written last, and everything else is then found at the first attempt.
    order = sorted(range(len(events)), key=lambda i: events[i].value == after)
    dead: set[tuple[int, State]] = set()
    everything = (1 << len(events)) - 1

    def leads_on(done: int, state: State) -> bool:
        for i in order:
            if not (done >> i & 1 or events[i].changes) and events[i].after(state)[0]:
                done |= 1 << i
        if done == everything:
            return state == after
        if (done, state) in dead:
            return False
        tried = set()
        for i in order:
            event = events[i]
            if done >> i & 1 or event in tried:
                continue
            tried.add(event)
            right, left = event.after(state)
            if right and leads_on(done | 1 << i, left):
                return True
        dead.add((done, state))
        return False

    return leads_on(0, before)


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
