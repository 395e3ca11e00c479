"""Faults while keys leave a bounded table: every key is wholly in or out, and the next update is within the bound."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.cases import only
from support.engines import one_of_each
from support.faults import STORAGE_AND_TABLE, Interrupt
from support.refusals import refusing
from support.types import Array
from warphash import HashMap, TableFull
from warphash.runtime.devices import engine_for
from warphash.storage.bounded.bounded_rows import LEAST_PIECE

MOST = 100
OLD, BATCH = np.arange(MOST), np.concatenate([np.arange(80, 150), np.arange(90, 100)])
"""The keys of a full table, and a batch of old keys, new keys, and keys that repeat."""

Call = Callable[[Any], Any]
CALLS: dict[str, Call] = {
    "insert": lambda table: table.insert(keys_of(table, BATCH), values_of(BATCH)),
    "assign": lambda table: table.assign(keys_of(table, BATCH), values_of(BATCH)),
    "find_or_insert": lambda table: table.find_or_insert(keys_of(table, BATCH), values_of(BATCH)),
    "evict": lambda table: table.evict(30),
    "evict all": lambda table: table.evict(MOST),
}
TABLES = [
    ("lru", "bucketed_cuckoo", "u8"),
    ("lfu", "bucketed_cuckoo", "u8"),
    ("lfu", "slab", "V24"),
    ("fifo", "slab", "u8"),
    ("lru", "dynamic_cuckoo", "V24"),
    ("lfu", "bucketed_cuckoo", "str"),
    ("fifo", "dynamic_cuckoo", "str"),
    ("random", "stadium", "u8"),
]


def keys_of(table: Any, ids: Array) -> Array:
    if table.key_dtype == np.dtype("U"):
        return np.array([f"{'key ' * (number % 20)}{number}" for number in ids.tolist()], object)
    words = ids.astype("u8")
    return words if table.key_dtype == np.dtype("u8") else np.repeat(words, 3).view("V24")


def values_of(ids: Array) -> Array:
    return 3 * ids.astype("u8") + np.uint64(1)


def made(evict: str, design: str, key: str, device: str) -> Any:
    table = HashMap(key, "u8", max_size=MOST, evict=evict, design=design, device=device, seed=3)
    for part in np.array_split(OLD, 4):
        table.insert(keys_of(table, part), values_of(part))
    return table


def held_by(table: Any) -> set[int]:
    """The numbers of the keys, each with its own value; found, counted, and each once."""
    table.check()
    keys, values = table.to_arrays()
    ids = _ids(table, keys)
    assert (values == values_of(ids)).all() and len(table) == len(ids)
    assert table.contains(keys).all()
    return set(ids.tolist())


def _ids(table: Any, keys: Array) -> Array:
    if table.key_dtype == np.dtype("U"):
        return np.array([int(key.rpartition(" ")[2]) for key in keys.tolist()], int)
    return np.ascontiguousarray(keys).view("u8").reshape(len(keys), table.key_dtype.itemsize // 8)[:, 0]


def is_sound(table: Any, verb: str) -> None:
    """What holds after any fault."""
    held, every = held_by(table), set(OLD.tolist()) | set(BATCH.tolist())
    assert held <= every and len(held) <= MOST + LEAST_PIECE
    fresh = np.arange(1000, 1020)
    table.assign(keys_of(table, fresh), values_of(fresh))
    after = held_by(table)
    assert after <= held | set(fresh.tolist()) and len(after) == min(MOST, len(held) + 20)
    CALLS[verb](table)
    assert len(held_by(table)) <= MOST


def refusals() -> list[Any]:
    """Engine, whether memory is refused once, and verb: on any day, fewer of the refusals for good."""
    return [
        pytest.param(
            *device.values,
            once,
            verb,
            id=f"{device.values[0]}-{'once' if once else 'for good'}-{verb}",
            marks=[*device.marks, *[pytest.mark.slow] * (not once and verb != "insert")],
        )
        for device in one_of_each("cpu", "emulated")
        for once in (True, False)
        for verb in CALLS
        if device.values[0] == "cpu" or (once and verb in ("insert", "evict"))
    ]


@pytest.mark.parametrize(("device", "once", "verb"), refusals())
@pytest.mark.parametrize(("evict", "design", "key"), TABLES)
@only(lambda device, key: device == "cpu" or key != "str")
def test_refused_memory(device: str, evict: str, design: str, key: str, once: bool, verb: str) -> None:
    """The call raises and changes nothing; or the batch is in, and too many keys stay until the next update."""
    for number in range(1, 200):
        table = made(evict, design, key, device)
        with refusing(engine_for(device), number, once=once) as count:
            try:
                CALLS[verb](table)
                done = True
            except (MemoryError, TableFull):
                done = False
        if not count.refused:
            assert number > 3
            return
        held = held_by(table)
        if not done:
            assert held == set(OLD.tolist())
        elif verb not in ("evict", "evict all"):
            assert len(held) == MOST or held == set(OLD.tolist()) | set(BATCH.tolist())
        else:
            assert len(held) == MOST - min(MOST, 30 if verb == "evict" else MOST)
        is_sound(table, verb)
    raise AssertionError("the call still asks for memory after 200 allocations")


def interrupted(table: Any, call: Call, number: int) -> bool:
    """Whether there was a ``number``-th line to interrupt the call at."""
    interrupt, before = Interrupt(number, STORAGE_AND_TABLE), sys.gettrace()
    sys.settrace(interrupt)
    try:
        call(table)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return bool(interrupt.place)


@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize(("evict", "design", "key"), TABLES)
def test_an_interrupt_at_any_line(evict: str, design: str, key: str, verb: str, stride: int) -> None:
    number = 1
    while True:
        table = made(evict, design, key, "cpu")
        if not interrupted(table, CALLS[verb], number):
            assert number > 100
            return
        is_sound(table, verb)
        number += stride


@pytest.mark.parametrize(("evict", "design", "key"), TABLES[:4])
def test_an_interrupt_on_an_engine_that_works_beside_the_host(evict: str, design: str, key: str) -> None:
    number = 3
    while True:
        table = made(evict, design, key, "emulated")
        if not interrupted(table, CALLS["insert"], number):
            return
        is_sound(table, "insert")
        number += 31
