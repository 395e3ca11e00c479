"""Tests of the checker of histories: it accepts a history exactly if some order explains it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from support.histories import (
    ABSENT,
    UNPLACED,
    Event,
    State,
    explains,
    explains_bag,
    explains_queue,
    in_bag,
    in_queue,
    wrong_keys,
)
from warphash import Operation

FIND, INSERT, ASSIGN, ERASE = Operation.FIND, Operation.INSERT, Operation.ASSIGN, Operation.ERASE
Row = tuple[Operation, State, int]


def found(value: State) -> Row:
    return FIND, value, int(value is not ABSENT)


RIGHT: dict[str, tuple[list[Row], State, State]] = {
    "nothing happens": ([], "a", "a"),
    "a find before and one behind an insert": ([found("x"), found(ABSENT), (INSERT, "x", 1)], ABSENT, "x"),
    "an insert of what is there": ([(INSERT, "x", 0), found("a")], "a", "a"),
    "an insert comes before the erase that made room": ([(INSERT, "x", 1), (ERASE, ABSENT, 1)], "a", "x"),
    "two inserts add with an erase between": ([(INSERT, "x", 1), (INSERT, "y", 1), (ERASE, ABSENT, 1)], ABSENT, "y"),
    "assigns that nobody saw": ([(ASSIGN, "x", 0), (ASSIGN, "y", 0), (ASSIGN, "z", 0)], "a", "y"),
    "an assign adds and another one overwrites": ([(ASSIGN, "x", 1), (ASSIGN, "y", 0), found("x")], ABSENT, "y"),
    "all values are seen": ([found("y"), (ASSIGN, "x", 0), found("a"), (ASSIGN, "y", 0), found("x")], "a", "y"),
    "an erase in vain before an insert": ([(ERASE, ABSENT, 0), (INSERT, "x", 1)], ABSENT, "x"),
    "an erase in vain between an erase and an insert": (
        [(ERASE, ABSENT, 0), (INSERT, "x", 1), (ERASE, ABSENT, 1)],
        "a",
        "x",
    ),
    "an assign comes behind an erase and an insert": (
        [(ASSIGN, "x", 0), (ERASE, ABSENT, 1), (INSERT, "y", 1)],
        "a",
        "x",
    ),
    "a value is written back": ([(ASSIGN, "a", 0), (ASSIGN, "x", 0)], "a", "a"),
    "no room": ([(INSERT, "x", UNPLACED), (ASSIGN, "y", UNPLACED), found(ABSENT)], ABSENT, ABSENT),
    "a set": (
        [(INSERT, "", 1), (ASSIGN, "", 0), (ERASE, ABSENT, 1), (ERASE, ABSENT, 1), (INSERT, "", 1)],
        ABSENT,
        ABSENT,
    ),
}
WRONG: dict[str, tuple[list[Row], State, State]] = {
    "a change without an operation": ([], "a", "b"),
    "a key comes from nowhere": ([found(ABSENT)], ABSENT, "a"),
    "a find of what nobody wrote": ([found("z"), (INSERT, "x", 1)], ABSENT, "x"),
    "a find of a value that lost": ([found("y"), (INSERT, "x", 1), (INSERT, "y", 0)], ABSENT, "x"),
    "two inserts add and nobody erases": ([(INSERT, "x", 1), (INSERT, "y", 1)], ABSENT, "y"),
    "an insert of what is there adds": ([(INSERT, "x", 1)], "a", "x"),
    "an insert of what is there writes": ([(INSERT, "x", 0)], "a", "x"),
    "nobody adds": ([(INSERT, "x", 0), (ASSIGN, "y", 0)], ABSENT, "x"),
    "an erase is lost": ([(ERASE, ABSENT, 1)], "a", "a"),
    "an erase says that it was not": ([(ERASE, ABSENT, 0)], "a", ABSENT),
    "two erases of one key": ([(ERASE, ABSENT, 1), (ERASE, ABSENT, 1)], "a", ABSENT),
    "an assign is lost": ([(ASSIGN, "x", 0)], "a", "a"),
    "an assign is lost behind an erase": ([(ASSIGN, "x", 0), (ERASE, ABSENT, 1), (INSERT, "y", 1)], "a", "a"),
    "a key is missed that was there all the time": ([found(ABSENT), (ASSIGN, "x", 0)], "a", "x"),
    "finds see two inserts": ([found("x"), found("y"), (INSERT, "x", 1), (INSERT, "y", 0)], ABSENT, "x"),
    "one without room has written": ([(INSERT, "x", UNPLACED)], ABSENT, "x"),
    "a find without room": ([(FIND, ABSENT, UNPLACED)], ABSENT, ABSENT),
    "an erase without room": ([(ERASE, ABSENT, UNPLACED)], ABSENT, ABSENT),
    "what was written first is there in the end": ([(INSERT, "x", 1), (ASSIGN, "y", 0)], ABSENT, "x"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_histories(name: str) -> None:
    rows, before, after = RIGHT[name]
    assert explains([Event(*row) for row in rows], before, after)
    assert explains([Event(*row) for row in reversed(rows)], before, after)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_histories(name: str) -> None:
    rows, before, after = WRONG[name]
    assert not explains([Event(*row) for row in rows], before, after)


Step = Callable[[Event, Any], tuple[bool, Any]]


def in_some_order(events: list[Event], before: State, after: State, step: Step = Event.after) -> bool:
    """Whether some order explains the events, by trying all orders."""
    for order in permutations(events):
        state = before
        for event in order:
            right, state = step(event, state)
            if not right:
                break
        else:
            if state == after:
                return True
    return False


def test_it_says_what_trying_all_orders_says(rng: np.random.Generator) -> None:
    """Answers are drawn at random. Values may repeat."""
    agreed = {True: 0, False: 0}
    states = [ABSENT, "a", "b"]
    for _ in range(3000):
        events = []
        for _ in range(rng.integers(1, 6)):
            operation, flag = Operation(rng.integers(4)), int(rng.choice(3, p=[0.45, 0.5, 0.05]))
            events.append(Event(operation, states[1 + rng.integers(2)] if operation != ERASE else ABSENT, flag))
        before, after = (states[rng.integers(3)] for _ in range(2))
        answer = explains(events, before, after)
        assert answer == in_some_order(events, before, after), (events, before, after)
        agreed[answer] += 1
    assert min(agreed.values()) > 200


QUEUE_RIGHT: dict[str, tuple[list[Row], tuple[State, ...], tuple[State, ...]]] = {
    "nothing happens": ([], ("a", "b"), ("a", "b")),
    "inserts come behind": ([(INSERT, "x", 1), (INSERT, "y", 1)], ("a",), ("a", "y", "x")),
    "an erase takes the first": ([(ERASE, ABSENT, 1), (INSERT, "x", 1)], ("a", "b"), ("b", "x")),
    "finds see each first pair": ([found("a"), (ERASE, ABSENT, 1), found("b")], ("a", "b", "c"), ("b", "c")),
    "a find of a pair that came and went": ([(INSERT, "x", 1), found("x"), (ERASE, ABSENT, 1)], (), ()),
    "misses between the old pairs and the new": (
        [found(ABSENT), (ERASE, ABSENT, 0), (ERASE, ABSENT, 1), (INSERT, "x", 1), found("x"), found("a")],
        ("a",),
        ("x",),
    ),
    "no room": ([(INSERT, "x", UNPLACED), (INSERT, "y", 1)], (), ("y",)),
}
QUEUE_WRONG: dict[str, tuple[list[Row], tuple[State, ...], tuple[State, ...]]] = {
    "a change without an operation": ([], ("a", "b"), ("b", "a")),
    "an insert comes first": ([(INSERT, "x", 1)], ("a",), ("x", "a")),
    "an insert is lost": ([(INSERT, "x", 1)], ("a",), ("a",)),
    "an insert adds nothing": ([(INSERT, "x", 0)], ("a",), ("a",)),
    "a pair is added twice": ([(INSERT, "x", 1), (INSERT, "y", 1)], (), ("x", "x")),
    "an erase takes the second": ([(ERASE, ABSENT, 1)], ("a", "b"), ("a",)),
    "two erases take one pair": ([(ERASE, ABSENT, 1), (ERASE, ABSENT, 1)], ("a", "b"), ("b",)),
    "an erase takes a new pair before an old one": ([(ERASE, ABSENT, 1), (INSERT, "x", 1)], ("a",), ("a",)),
    "a find of the second pair": ([found("b")], ("a", "b"), ("a", "b")),
    "a find of a new pair behind an old one": ([found("x"), (INSERT, "x", 1)], ("a",), ("a", "x")),
    "a find of the second new pair": ([found("y"), (INSERT, "x", 1), (INSERT, "y", 1)], (), ("x", "y")),
    "a miss of a key that had a pair all the time": (
        [found(ABSENT), (ERASE, ABSENT, 1), (INSERT, "x", 1)],
        ("a", "b"),
        ("b", "x"),
    ),
    "an assign": ([(ASSIGN, "x", 0)], ("a",), ("x",)),
    "a find without room": ([(FIND, ABSENT, UNPLACED)], (), ()),
}


@pytest.mark.parametrize("name", QUEUE_RIGHT)
def test_right_histories_of_queues(name: str) -> None:
    rows, before, after = QUEUE_RIGHT[name]
    assert explains_queue([Event(*row) for row in rows], before, after)


@pytest.mark.parametrize("name", QUEUE_WRONG)
def test_wrong_histories_of_queues(name: str) -> None:
    rows, before, after = QUEUE_WRONG[name]
    assert not explains_queue([Event(*row) for row in rows], before, after)


def test_of_queues_it_says_what_trying_all_orders_says(rng: np.random.Generator) -> None:
    """Some operations happen in an order, so that many histories are right; then answers or the end are altered."""
    agreed = {True: 0, False: 0}
    for _ in range(4000):
        state: tuple[State, ...] = ("a", "b")[: rng.integers(3)]
        before, events = state, []
        for value in ("v", "w", "x", "y", "z")[: rng.integers(1, 6)]:
            operation = Operation(rng.choice([FIND, INSERT, ERASE]))
            flag = 1 if operation == INSERT else int(bool(state))
            seen = value if operation == INSERT else state[0] if operation == FIND and state else ABSENT
            event = Event(operation, seen, flag)
            _, state = in_queue(event, state)
            events.append(event)
        if rng.random() < 0.7:
            i, changed = rng.integers(len(events)), rng.choice(3)
            others = [ABSENT, "a", "b", "v", "w", "x"]
            event = events[i]
            if changed == 0:
                events[i] = Event(event.operation, others[rng.integers(6)], event.flag)
            elif changed == 1:
                events[i] = Event(event.operation, event.value, int(rng.integers(3)))
            else:
                state = tuple(state[k] for k in rng.permutation(len(state))[: rng.integers(4)])
        inserted = [event.value for event in events if event.operation == INSERT]
        if len(set(inserted)) < len(inserted) or set(inserted) & {*before, ABSENT}:
            continue  # values differ
        answer = explains_queue(events, before, state)
        assert answer == in_some_order(events, before, state, in_queue), (events, before, state)
        agreed[answer] += 1
    assert min(agreed.values()) > 200


def bag_in_some_order(events: list[Event], before: tuple[State, ...], after: tuple[State, ...]) -> bool:
    """Whether some order explains the events of pairs without an order, by trying all."""
    for order in permutations(events):
        states = {frozenset(before)}
        for event in order:
            states = {frozenset(left) for state in states for left in in_bag(event, tuple(state))}
        if frozenset(after) in states:
            return True
    return False


def test_of_bags_it_says_what_trying_all_orders_says(rng: np.random.Generator) -> None:
    """As for queues; the end is drawn from all values."""
    agreed = {True: 0, False: 0}
    for _ in range(4000):
        before: tuple[State, ...] = ("a", "b")[: rng.integers(3)]
        events = []
        for value in ("v", "w", "x", "y")[: rng.integers(1, 5)]:
            operation = Operation(rng.choice([FIND, INSERT, ERASE]))
            flag = 1 if operation == INSERT else int(rng.choice([0, 1]))
            seen = value if operation == INSERT else rng.choice(["a", "v", "w"]) if operation == FIND and flag else None
            events.append(Event(operation, seen, flag))
        if rng.random() < 0.1:
            events.append(Event(Operation(rng.integers(4)), "z", UNPLACED))
        pairs = [*before, *(event.value for event in events if event.operation == INSERT and event.flag == 1)]
        erases = sum(event.flag == 1 for event in events if event.operation == ERASE)
        left = max(0, len(pairs) - erases) if rng.random() < 0.8 else rng.integers(len(pairs) + 1)
        after = tuple(pairs[k] for k in rng.permutation(len(pairs))[:left])
        answer = explains_bag(events, before, after)
        assert answer == bag_in_some_order(events, before, after), (events, before, after)
        agreed[answer] += 1
    assert min(agreed.values()) > 200


def test_many_operations_on_one_key() -> None:
    """The checker takes reasonable time also if no order exists."""
    rows: list[Row] = (
        [(ASSIGN, f"x{i}", 0) for i in range(9)] + [found(f"x{i}") for i in range(7)] + [(ERASE, ABSENT, 1)] * 10
    )
    rows += [(INSERT, f"y{i}", 1) for i in range(9)]
    assert explains([Event(*row) for row in rows], "a", ABSENT)
    assert not explains([Event(*row) for row in [*rows, found("z")]], "a", ABSENT)
    assert not explains([Event(*row) for row in rows], ABSENT, "y1")


def test_of_arrays() -> None:
    operations = np.array([INSERT, FIND, ERASE, FIND, INSERT], np.uint8)
    keys = np.array([5, 5, 6, 7, 8], np.uint32)
    values = np.array([1, 0, 0, 0, 4], np.uint32)
    seen = np.array([0, 1, 0, 9, 0], np.uint32)
    flags = np.array([1, 1, 1, 0, 1], np.uint8)

    def name(key: int) -> bytes:
        return np.uint32(key).tobytes()

    before = {name(6): name(3), name(9): name(9)}
    after = {name(5): name(1), name(8): name(4), name(9): name(9)}
    assert wrong_keys(operations, keys, values, seen, flags, before, after) == []
    seen[1] = 2
    flags[2] = 0
    del after[name(9)]
    wrong = wrong_keys(operations, keys, values, seen, flags, before, after)
    assert [row[0] for row in wrong] == [name(5), name(6), name(9)]
    assert wrong[1][1:] == (name(3), ABSENT, [Event(ERASE, ABSENT, 0)])
