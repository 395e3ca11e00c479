"""Check whether a batch of concurrent operations is linearizable: whether some order of them explains all answers.

All operations of a batch overlap in time, so only their answers restrict the order. Operations on different keys do not
restrict each other: a history is linearizable if it is linearizable for each object (Herlihy and Wing, 1990).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from support.types import Array, as_bytes
from warphash import Operation

State = Hashable
"""The value of a key, or `ABSENT` if the table does not hold the key. In a `MultiMap`: a tuple of all values, oldest
first."""

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


def in_queue(event: Event, state: tuple[State, ...]) -> tuple[bool, tuple[State, ...]]:
    """As `Event.after`, for a key of a `MultiMap`: its pairs are a queue, and only the first one is looked at."""
    if event.flag == UNPLACED:
        return event.operation == Operation.INSERT, state
    if event.operation == Operation.INSERT:
        return event.flag == 1, (*state, event.value)
    if event.operation == Operation.ERASE:
        return bool(state) == bool(event.flag), state[1:]
    found = event.operation == Operation.FIND and bool(state) == bool(event.flag)
    return found and (not state or state[0] == event.value), state


def inserts_and_asks(events: list[Event]) -> tuple[list[Event], list[Event]] | None:
    """The inserts of pairs that found a slot, and the finds and erases; None if a `MultiMap` gives no such answers.

    Only an insert may find no slot. An insert that found a slot always says that it added its pair.
    """
    placed = [event for event in events if event.flag != UNPLACED]
    if any(event.operation != Operation.INSERT for event in events if event.flag == UNPLACED):
        return None
    inserts = [event for event in placed if event.operation == Operation.INSERT]
    asks = [event for event in placed if event.operation in (Operation.FIND, Operation.ERASE)]
    if len(inserts) + len(asks) < len(placed) or not all(event.flag for event in inserts):
        return None
    return inserts, asks


def explains_queue(events: list[Event], before: State, after: State) -> bool:
    """As `explains`, for a key of a `MultiMap` whose values all differ.

    All events overlap, so a pair may be added as late as the moment when it becomes the first of its key. The following
    rules are therefore necessary and sufficient:

    1. The erases take the old pairs in their order, then inserted pairs. The other inserted pairs are left, behind the
       old pairs that are left.
    2. A find returned a pair that is the first one at some time: an old pair, if the pairs before it are erased; an
       inserted pair that is erased; or the first pair in the end.
    3. If an event missed the key, all of its old pairs are erased.
    """
    assert isinstance(before, tuple) and isinstance(after, tuple)
    sides = inserts_and_asks(events)
    if sides is None:
        return False
    inserts, asks = sides
    inserted = {event.value for event in inserts}
    erases = sum(bool(event.flag) for event in asks if event.operation == Operation.ERASE)
    old = before[erases:]
    new = after[len(old) :]
    if after[: len(old)] != old or not inserted.issuperset(new) or len(set(new)) < len(new):
        return False
    if len(inserts) - len(new) != max(0, erases - len(before)):
        return False
    first = {*before[: erases + 1], *inserted.difference(new), *after[:1]}
    if not first.issuperset(event.value for event in asks if event.operation == Operation.FIND and event.flag):
        return False
    return erases >= len(before) or all(event.flag for event in asks)


def in_bag(event: Event, state: tuple[State, ...]) -> list[tuple[State, ...]]:
    """The states that an event may leave behind, for a key of a `MultiMap` that uses erased slots again.

    Its pairs have no order: a find reads any pair, and an erase takes any. No state if the answer is wrong.
    """
    if event.flag == UNPLACED:
        return [state] * (event.operation == Operation.INSERT)
    if event.operation == Operation.INSERT:
        return [(*state, event.value)] * (event.flag == 1)
    if event.operation == Operation.ERASE and event.flag:
        return [state[:i] + state[i + 1 :] for i in range(len(state))]
    right = event.operation in (Operation.FIND, Operation.ERASE) and bool(state) == bool(event.flag)
    return [state] * (right and (not event.flag or event.value in state))


def explains_bag(events: list[Event], before: State, after: State) -> bool:
    """As `explains_queue`, for pairs without an order (`in_bag`).

    1. What is left are old and inserted pairs, as many as there were less those that were erased.
    2. A find returned an old or an inserted pair.
    3. If an event missed the key, all of its old pairs are erased.
    """
    assert isinstance(before, tuple) and isinstance(after, tuple)
    sides = inserts_and_asks(events)
    if sides is None:
        return False
    inserts, asks = sides
    pairs = {*before, *(event.value for event in inserts)}
    erases = sum(bool(event.flag) for event in asks if event.operation == Operation.ERASE)
    if not pairs.issuperset(after) or len(set(after)) < len(after) or len(pairs) - erases != len(after):
        return False
    if not pairs.issuperset(event.value for event in asks if event.operation == Operation.FIND and event.flag):
        return False
    return not set(before).intersection(after) or all(event.flag for event in asks)


def wrong_keys(
    operations: Array,
    keys: Array,
    values: Array | None,
    found: Array | None,
    flags: Array,
    before: dict[bytes, State],
    after: dict[bytes, State],
    explained: Callable[[list[Event], State, State], bool] = explains,
    absent: State = ABSENT,
) -> list[tuple[bytes, State, State, list[Event]]]:
    """The keys of a batch whose answers no order explains, with their states and events.

    Parameters
    ----------
    values, found
        The values that inserts and assigns bring, and the values that finds return. None for a set.
    before, after
        The pairs of the table before and after the batch. For a set, the values are empty.
    explained, absent
        `explains` and its state of an absent key; of a `MultiMap`, `explains_queue` and the empty tuple.
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
        (name, before.get(name, absent), after.get(name, absent), its)
        for name, its in events.items()
        if not explained(its, before.get(name, absent), after.get(name, absent))
    ]


def _values(array: Array | None, keys: Array) -> list[bytes]:
    return [b""] * len(keys) if array is None else as_bytes(array)
