"""Wide rows: as many rows as keys, whatever came and went, and as it was after an update that fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from support.engines import one_of_each
from support.faults import Interrupt
from support.inside import storage_of
from support.refusals import refusing
from support.types import Array, as_bytes
from warphash import HashMap, TableFull
from warphash.designs import registry
from warphash.runtime.abi import COUNT_WORDS, Op, kind_of
from warphash.storage import wide_rows
from warphash.storage.batch import Batch
from warphash.storage.buckets.store import BucketSlots
from warphash.storage.wide_rows import WideRows

LAYOUTS = {name: registry.get(name).layout for name in design_names()}
IN_ROWS = [name for name, layout in LAYOUTS.items() if not (layout.in_place or layout.composed)]
"""Designs that keep wide keys in rows: subtables, and slots with tickets, keep them in place."""

ROW_BYTES = 24 + 8
"""Of a key and a value of these tests."""


def keys_of(ids: Array) -> Array:
    return np.repeat(np.asarray(ids, "u8"), 3).view("V24")


def table_of(n: int, design: str = "bucketed_cuckoo", device: str = "cpu", **options: Any) -> Any:
    table = HashMap("V24", "u8", design=design, device=device, seed=3, **{"capacity": n, **options})
    if n:
        table.insert(keys_of(np.arange(n)), np.arange(n, dtype="u8"))
    return table


def rows_of(table: Any) -> WideRows:
    backing = storage_of(table)
    assert isinstance(backing, WideRows)
    return backing


def holds(table: Any, pairs: dict[int, int]) -> None:
    """The table has these pairs, and a row for each of them."""
    keys, values = table.to_arrays()
    held = dict(zip(as_bytes(keys), values.tolist(), strict=True))
    assert held == dict(zip(as_bytes(keys_of(np.array([*pairs], "u8"))), pairs.values(), strict=True))
    assert rows_of(table)._state.taken == len(table) == len(pairs)
    table.check()


CHANGES: dict[str, Callable[[Any, Array, Array], Any]] = {
    "insert": lambda table, keys, values: table.insert(keys, values),
    "assign": lambda table, keys, values: table.assign(keys, values),
    "upsert": lambda table, keys, values: table.upsert(keys, values, "add"),
    "find_or_insert": lambda table, keys, values: table.find_or_insert(keys, values),
    "__setitem__": lambda table, keys, values: table.__setitem__(keys, values),
}


# ---- memory
@pytest.mark.parametrize("verb", CHANGES)
@pytest.mark.parametrize("design", IN_ROWS)
def test_batches_of_the_same_keys_take_no_memory(design: str, verb: str) -> None:
    repeat_a_batch("cpu", design, verb, 200, 400)


@pytest.mark.parametrize("device", one_of_each("emulated"))
@pytest.mark.parametrize(("design", "verb"), [("bucketed_cuckoo", "assign"), ("slab", "upsert")])
def test_batches_of_the_same_keys_take_no_memory_of_a_gpu(device: str, design: str, verb: str) -> None:
    repeat_a_batch(device, design, verb, 20, 5)


def repeat_a_batch(device: str, design: str, verb: str, n: int, times: int) -> None:
    table = table_of(n, design, device)
    keys, before = keys_of(np.arange(n)), table.nbytes
    for turn in range(times):
        CHANGES[verb](table, keys, np.full(n, turn, "u8"))
    assert table.nbytes == before
    values = np.arange(n) if verb in ("insert", "find_or_insert") else np.full(n, times - 1)
    values = np.arange(n) + times * (times - 1) // 2 if verb == "upsert" else values
    holds(table, dict(enumerate(values.tolist())))


@pytest.mark.parametrize("design", IN_ROWS)
@pytest.mark.parametrize("verb", ["insert", "assign", "upsert", "find_or_insert"])
def test_keys_that_come_and_go_take_the_rows_of_those_before(design: str, verb: str) -> None:
    n = 500
    table, room = table_of(0, design, capacity=2 * n), 0
    for turn in range(60):
        ids = np.arange(turn * n // 2, turn * n // 2 + n)  # half of them new
        CHANGES[verb](table, keys_of(ids), ids.astype("u8") if verb != "upsert" or turn == 0 else 0 * ids.astype("u8"))
        table.erase(keys_of(ids[: n // 2]))
        room = room or rows_of(table)._state.room
        assert rows_of(table)._state.room == room <= 2 * n + 50
    assert rows_of(table)._state.end <= 2 * n
    assert len(table) == n // 2 and table.contains(keys_of(ids[n // 2 :])).all()
    table.check()


def test_shrink_and_load_bounds_give_the_memory_of_rows_back() -> None:
    small, large = table_of(100), table_of(20_000)
    gone = keys_of(np.arange(100, 20_000))
    assert large.erase(gone).all()
    large.shrink()
    assert large.nbytes <= small.nbytes
    holds(large, {number: number for number in range(100)})
    bounded = table_of(20_000, load_bounds=(0.3, 0.9))
    assert bounded.erase(gone).all()
    assert bounded.nbytes <= 8 * small.nbytes
    holds(bounded, {number: number for number in range(100)})


@pytest.mark.parametrize("design", ["bucketed_cuckoo", "slab"])
def test_memory_is_in_use_or_in_reserve(design: str) -> None:
    table = table_of(3000, design)
    for ids in (np.arange(2000), np.arange(2500, 2600)):
        table.erase(keys_of(ids))
        for batch in (ids[:50], ids[:50], ids[:70]):
            table.assign(keys_of(batch), batch.astype("u8"))
            backing = rows_of(table)
            use, slots = backing.memory_use(), backing.store.array.memory_use()
            assert use.in_use - slots.in_use == ROW_BYTES * len(table)
            assert use.in_use + use.reserve - slots.in_use - slots.reserve == table.nbytes - backing.store.array.nbytes
    table.shrink()
    assert table.nbytes - rows_of(table).store.array.nbytes <= ROW_BYTES * len(table) + 1


def test_rows_are_reserved_with_the_slots_and_cleared_ones_are_used_again() -> None:
    table = table_of(10)
    table.reserve(50_000)
    reserved = table.nbytes
    assert reserved > 50_000 * ROW_BYTES
    for turn in range(4):
        ids = np.arange(turn, turn + 50_000)
        assert table.insert(keys_of(ids), ids.astype("u8")).sum() >= 49_990
        assert table.nbytes == reserved
        table.clear()
    holds(table, {})


def test_a_batch_that_repeats_few_new_keys_leaves_few_rows() -> None:
    table, ids = table_of(100), np.arange(100_000) % 300
    before = table.nbytes
    for verb in ("insert", "assign"):
        CHANGES[verb](table, keys_of(ids + 1000 * len(verb)), ids.astype("u8"))
        assert table.nbytes < 100 * before and rows_of(table)._state.room < 20_000
    fresh = table_of(700)
    assert table.nbytes <= 4 * fresh.nbytes


# ---- contents
@pytest.mark.parametrize(
    ("device", "design", "turns"),
    [
        *(("cpu", design, 120) for design in ("bucketed_cuckoo", "cuckoo", "slab")),
        *(pytest.param("emulated", design, 30) for design in ("bucketed_cuckoo", "slab") if one_of_each("emulated")),
    ],
)
@pytest.mark.parametrize("distinct", [400, 20])
def test_contents_against_a_dict(device: str, design: str, turns: int, distinct: int) -> None:
    """Keys repeat within each batch: few times, or often."""
    rng = np.random.default_rng(1)
    table, pairs = table_of(0, design, device, capacity=16), {}
    for turn in range(turns):
        ids, n = rng.integers(0, distinct, 150), 150
        values = rng.integers(1, 1 << 40, n).astype("u8")
        verb = rng.choice(["insert", "assign", "upsert", "find_or_insert", "erase", "shrink"])
        if verb == "shrink":
            table.shrink()
        elif verb == "erase":
            erased = table.erase(keys_of(ids))
            assert sorted(ids[erased].tolist()) == sorted(set(ids.tolist()) & pairs.keys())
            for number in ids.tolist():
                pairs.pop(number, None)
        else:
            answer = CHANGES[verb](table, keys_of(ids), values)
            added = answer[1] if verb == "find_or_insert" else answer
            assert sorted(ids[added].tolist()) == sorted(set(ids.tolist()) - pairs.keys())
            now = table[keys_of(ids)]
            for number, value, new, held in zip(ids.tolist(), values.tolist(), added, now.tolist(), strict=True):
                offered = values[ids == number].tolist()
                if verb == "upsert":
                    expected = {pairs.get(number, 0) + sum(offered)}
                elif verb == "assign":
                    expected = set(offered)
                else:
                    expected = {pairs[number]} if number in pairs else {value} if new else set(offered)
                assert held in expected
            pairs.update(zip(ids.tolist(), now.tolist(), strict=True))
        if turn % 10 == 0:
            holds(table, pairs)
    holds(table, pairs)


@pytest.mark.parametrize("device", ["cpu", *one_of_each("emulated")])
@pytest.mark.parametrize("design", ["bucketed_cuckoo", "slab"])
def test_one_value_of_a_repeated_key_wins_whole(device: str, design: str) -> None:
    rng, n = np.random.default_rng(4), 400
    table = HashMap("V24", "V40", design=design, device=device, seed=3, capacity=64)
    for turn in range(4):
        ids, offered = rng.integers(4 * turn, 4 * turn + 8, n), rng.integers(1, 1 << 60, n)
        table.assign(keys_of(ids), np.repeat(offered.astype("u8"), 5).view("V40"))
        for number in np.unique(ids):
            (words,) = table[keys_of([number])].view("u8").reshape(-1, 5)
            assert len(set(words.tolist())) == 1 and words[0] in offered[ids == number]


def narrow(monkeypatch: pytest.MonkeyPatch, bits: int, salts: int = 1) -> list[int]:
    """Fingerprints of few bits under each of the first salts; the salts that there have been."""
    seen: list[int] = []
    original = WideRows._fingerprints

    def fingerprints(self: WideRows, keys: int, n: int, stream: Any, salt: int | None = None) -> Any:
        prints, salt = original(self, keys, n, stream, salt), self._state.salt if salt is None else salt
        if salt not in seen:
            seen.append(salt)
        if seen.index(salt) < salts:
            words = self._engine.to_host(prints.ptr, np.uint64, n) & np.uint64((1 << bits) - 1)
            prints = self._engine.from_host(words)
        return prints

    monkeypatch.setattr(WideRows, "_fingerprints", fingerprints)
    return seen


@pytest.mark.parametrize("design", ["bucketed_cuckoo", "slab"])
@pytest.mark.parametrize("verb", CHANGES)
def test_keys_of_one_fingerprint(monkeypatch: pytest.MonkeyPatch, design: str, verb: str) -> None:
    """In one batch, and of one that comes to one that is there; their absence is seen before, too."""
    salts = narrow(monkeypatch, 8, salts=2)
    table = table_of(5, design, capacity=1000)
    others = np.arange(5, 300)
    assert len(salts) == 1 and not table.contains(keys_of(others)).any() and not table.erase(keys_of(others)).any()
    ids = np.concatenate([np.arange(3), others, others[::2]])
    CHANGES[verb](table, keys_of(ids), ids.astype("u8"))
    assert len(salts) == 3
    twice = {number for number in ids.tolist() if verb == "upsert" and (number < 3 or (number >= 5 and number % 2))}
    holds(table, {number: number * (1 + (number in twice)) for number in range(300)})


# ---- failures
def test_a_full_table_leaves_the_rows_as_they_were() -> None:
    for design in IN_ROWS:
        table = table_of(40, design, on_full="raise")
        before, n = table.nbytes, 4 * table.stats().slots
        for change in CHANGES.values():
            ids = np.concatenate([np.arange(20), np.arange(100, 100 + n)])
            with pytest.raises(TableFull):
                change(table, keys_of(ids), ids.astype("u8") + 7)
            holds(table, {number: number for number in range(40)})
            assert rows_of(table)._state.end <= 40 + n
        assert table.erase(keys_of(np.arange(10))).all() and table.insert(keys_of([500]), np.array([5], "u8")).all()
        holds(table, {500: 5, **{number: number for number in range(10, 40)}})
        table.shrink()
        assert table.nbytes <= before


def test_rows_that_an_interrupted_update_has_taken_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(100)

    def interrupted(*_given: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    more = np.arange(100, 200)
    for _ in range(3):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(BucketSlots, "update", interrupted)
            table.insert(keys_of(more), more.astype("u8"))
    assert rows_of(table)._state.taken == 400
    assert table.insert(keys_of(more[:1]), more[:1].astype("u8")).all()
    holds(table, {number: number for number in range(101)})


EVERY = pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
"""How many-th lines are interrupted: some of them on any day, and each in the slow tests."""


@EVERY
@pytest.mark.parametrize("verb", ["insert", "erase"])
def test_the_first_call_behind_an_interrupt_may_be_an_update(verb: str, every: int) -> None:
    """Fingerprints that were displaced, and have no slot yet, are not absent: their keys were stored twice."""
    ids = np.arange(80, 120)
    for number in count(1, every):
        table = table_of(0, "cuckoo", capacity=200, load_factor=0.6)
        for some in (np.arange(90), ids):
            storage_of(table).store.array.table.chain_limit = 1  # many are displaced
            interrupt = Interrupt(number if some is ids else 0, re.compile("storage/buckets/"))
            sys.settrace(interrupt)
            try:
                table.insert(keys_of(some), some.astype("u8"))
            except KeyboardInterrupt:
                break
            finally:
                sys.settrace(None)
        else:
            break
        if verb == "insert":
            table.insert(keys_of(ids), ids.astype("u8"))
            holds(table, {key: key for key in range(120)})
        else:
            table.erase(keys_of(np.arange(120)))
            holds(table, {})
    assert number > 100


GIVEN = np.concatenate([np.arange(15), np.arange(40, 70), np.arange(10, 45)])
"""Keys of a batch for a table of 30: some are there, others are new, and some of both repeat."""

VERBS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda table, change=change: change(table, keys_of(GIVEN), offers()) for name, change in CHANGES.items()},
    "erase": lambda table: table.erase(keys_of(GIVEN)),
    "shrink": lambda table: table.shrink(),
    "reserve": lambda table: table.reserve(3000),
    "clear": lambda table: table.clear(),
}


def offers() -> Array:
    """A value for each element of the batch."""
    return 1000 + np.arange(len(GIVEN), dtype="u8")


def outcomes(verb: str, number: int) -> set[int | None]:
    """What a key may have behind a verb that was interrupted: what it had, or all that the batch brings."""
    before = number if number < 30 else None
    offered = [int(value) for value in offers()[number == GIVEN]]
    if verb in ("shrink", "reserve") or (not offered and verb != "clear"):
        return {before}
    if verb in ("erase", "clear"):
        return {before, None}
    if verb == "upsert":
        return {before, (before or 0) + sum(offered)}
    if verb in ("assign", "__setitem__"):
        return {before, *offered}
    return {before} if before is not None else {None, *offered}


def holds_outcomes(table: Any, verb: str) -> None:
    """Each key has what it may have; no two keys share a row; and further updates work."""
    table.check()
    numbers = row_numbers(table)
    state = rows_of(table)._state
    assert len(np.unique(numbers)) == len(numbers) == len(table) <= state.taken and (numbers < state.end).all()
    values, found = table.find(keys_of(np.arange(80)))
    for number in range(80):
        assert (int(values[number]) if found[number] else None) in outcomes(verb, number)
    ids = np.arange(20, 300)
    table.assign(keys_of(ids), ids.astype("u8"))
    table.erase(keys_of(np.arange(20)))
    table.erase(keys_of(ids[100:]))
    holds(table, {number: number for number in range(20, 120)})


@pytest.mark.parametrize("device", ["cpu", *one_of_each("emulated")])
@pytest.mark.parametrize("once", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("verb", VERBS)
def test_memory_that_is_refused_leaves_the_table_as_it_was(device: str, verb: str, once: bool) -> None:
    """The first allocation is refused, then the second, and so on; alone, or with all behind it."""
    refused, number = 1, 0
    while refused:
        number += 1
        table, failed = table_of(30, device=device), False
        store, before = rows_of(table).store, table.nbytes
        with refusing(rows_of(table)._engine, number, once=once) as refusals:
            try:
                VERBS[verb](table)
            except (MemoryError, TableFull):
                failed = True
        refused = refusals.refused
        assert refused or not failed
        if failed:
            assert rows_of(table).store is store and table.nbytes < 2 * before
            holds(table, {number: number for number in range(30)})
        holds_outcomes(table, verb)
    assert number > (verb != "clear")


def interrupted_at(line: int, run: Callable[[], Any]) -> bool:
    """Run, but interrupt `WideRows` at the ``line``-th line that it runs; whether there were so many."""
    left = line

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != wide_rows.__file__:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(
    ("device", "design"),
    [("cpu", "bucketed_cuckoo"), ("cpu", "slab"), *((name, "cuckoo") for name in ["emulated"] if one_of_each(name))],
)
@pytest.mark.parametrize("verb", VERBS)
@EVERY
def test_an_interruption_at_any_line_leaves_each_key_in_or_out(device: str, design: str, verb: str, every: int) -> None:
    line, step = 1, every if device == "cpu" else 3 * every
    table = table_of(30, design, device)
    while interrupted_at(line, lambda: VERBS[verb](table)):  # noqa: B023 - run at once
        holds_outcomes(table, verb)
        table, line = table_of(30, design, device), line + step
    assert line > 2
    holds_outcomes(table, verb)


@pytest.mark.parametrize("device", ["cpu", *one_of_each("emulated")])
@pytest.mark.parametrize("verb", [*CHANGES, "erase"])
def test_an_update_reads_reports_and_no_arrays(device: str, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 3000 if device == "cpu" else 300
    table = table_of(n, device=device, capacity=4 * n)
    read: list[int] = []
    engine = rows_of(table)._engine
    to_host = engine.to_host

    def noted(ptr: int, dtype: Any, count: int, stream: Any = None) -> Any:
        read.append(np.dtype(dtype).itemsize * count)
        return to_host(ptr, dtype, count, stream)

    monkeypatch.setattr(engine, "to_host", noted)
    for first, waits in ((0, 1), (n, 2), (n // 2, 2)):  # keys that are there, new ones, and both
        read.clear()
        ids = np.arange(first, first + n)
        backing, keys, values = rows_of(table), keys_of(ids), ids.astype("u8")
        held, flags = np.empty(n, "u8"), np.empty(n, "?")
        at = [array.ctypes.data for array in (keys, values, flags, held)]
        if device == "emulated":
            buffers = [engine.from_host(array.view("u1")) for array in (keys, values, flags, held)]
            at = [buffer.ptr for buffer in buffers]
        if verb == "erase":
            backing.erase(at[0], n, at[2], None)
        else:
            op = {"assign": Op.REPLACE, "__setitem__": Op.REPLACE, "upsert": Op.ADD}.get(verb, Op.KEEP)
            held_at = at[3] if verb == "find_or_insert" else 0
            backing.update(Batch(at[0], at[1], n, op, kind_of(np.dtype("u8")), at[2], held_at))
        assert len(read) <= waits and all(nbytes <= 8 * COUNT_WORDS for nbytes in read)


# ---- row numbers
def row_numbers(table: Any) -> Array:
    """Of the rows that the slots lead to."""
    backing = rows_of(table)
    n, engine = len(table), backing._engine
    rows = engine.allocate(8 * max(1, n))
    assert backing.store.array.scan(n, 0, rows.ptr, None) == n
    return engine.to_host(rows.ptr, np.uint64, n)


@pytest.mark.parametrize("device", ["cpu", *one_of_each("emulated")])
def test_row_numbers_are_handed_out_once(device: str) -> None:
    rng, table, held = np.random.default_rng(2), table_of(3, device=device, capacity=2000), {0, 1, 2}
    most = 3
    for _ in range(300 if device == "cpu" else 40):
        state, more = rows_of(table)._state, rng.random() < 0.55
        if more:
            ids = rng.integers(0, 3000, int(rng.integers(1, 40)))
            new = set(ids.tolist()) - held
            expected = state.end_with(len(new))
            table.insert(keys_of(ids), ids.astype("u8"))
            held |= new
            assert rows_of(table)._state.end == expected
        elif held:
            back = rng.permutation([*held])[: int(rng.integers(0, 40))]
            assert table.erase(keys_of(back)).all()
            held -= set(back.tolist())
        most = max(most, len(held))
        numbers, state = row_numbers(table), rows_of(table)._state
        assert len(np.unique(numbers)) == len(numbers) == state.taken == len(held)
        assert state.end <= most and (numbers < state.end).all()
    assert most < 2000
    holds(table, {number: number for number in held})
