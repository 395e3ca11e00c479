"""Batches that nobody waits for: what comes behind them sees them, and what they leave to do is done once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from support.inside import storage_of
from warphash import HashMap
from warphash.storage.subtables.array import SubtableArray
from warphash.storage.subtables.insert import Workspace


def full_to(
    device: str, load: float, key: str = "u4", value: str = "u4", **options: Any
) -> tuple[Any, np.ndarray, np.ndarray]:
    """A table of that load, the keys in it, and as many again that are not."""
    scale = 20 if device == "emulated" else 1
    options = {"capacity": 9000 // scale, "subtables": 2, "load_factor": 0.9, "beta": 0.97, **options}
    table = HashMap(key, value, device=device, design="dynamic_cuckoo", seed=3, **options)
    ids = np.arange(1, 4 * table.stats().slots)
    held = 0
    while table.load_factor < load:
        some = ids[held : held + 400 // scale]
        assert table.insert(some.astype(key), as_values(some, value)).all()
        held += len(some)
    len(table)  # waits
    return table, ids[:held], ids[held : 2 * held]


def as_values(ids: np.ndarray, value: str) -> np.ndarray:
    return np.repeat(ids.astype("u8"), 4).view(value) if value == "V32" else ids.astype(value)


def under_way(table: Any) -> bool:
    return storage_of(table).store._pending is not None


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_an_insert_that_surely_fits_is_left_to_itself(device: str) -> None:
    table, held, new = full_to(device, 0.5)
    some = np.concatenate([new[:80], held[:50], new[:20]]).astype("u4")
    added = table.insert(some, some)
    assert under_way(table) and added[:80].sum() + added[130:].sum() == 80 and not added[80:130].any()
    assert len(table) == len(held) + 80 and not under_way(table)
    for look in (table.contains, table.erase, lambda keys: table.insert(keys, keys), lambda keys: table.copy()):
        more = new[100:150].astype("u4")
        table.insert(more, more)
        assert under_way(table)
        look(more)
        table.check()
        assert table.insert(more, more).sum() in (0, 50) and table.contains(more).all()
        table.erase(more)
    size, gone = len(table), np.concatenate([held[:40], held[:7]]).astype("u4")
    assert table.erase(gone).sum() == 40 and under_way(table)
    assert len(table) == size - 40 and not under_way(table) and not table.contains(gone).any()
    table.assign(some, some)
    assert not under_way(table)  # values are combined when all keys have a place
    large, before = np.arange(1, 3 * table.stats().slots // 2, dtype="u4"), table.stats().resizes
    table.insert(large, large)
    assert under_way(table)  # it had to grow, and then there was room
    assert table.contains(large).all() and len(table) == len(large) and table.stats().resizes > before


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_an_upsert_behind_a_larger_insert_combines_all_its_values(device: str) -> None:
    """What the pending batch has added is not counted as the upsert's."""
    table, held, new = full_to(device, 0.3)
    some, few = new[:80].astype("u4"), held[:30].astype("u4")
    table.insert(some, some)
    assert under_way(table)
    table.upsert(few, few, "add")
    assert (table.find(few)[0] == 2 * few).all() and (table.find(some)[0] == some).all()


@contextlib.contextmanager
def noted_calls() -> Iterator[list[str]]:
    """The order in which memory to grow is asked for, counts are waited for, and a subtable grows."""
    calls: list[str] = []

    def noted(name: str, owner: Any, method: str) -> Any:
        of = getattr(owner, method)
        return mock.patch.object(owner, method, lambda *given: calls.append(name) or of(*given))

    asks, waits = noted("ask", SubtableArray, "memory_to_enlarge"), noted("wait", Workspace, "answer")
    with asks, waits, noted("grow", SubtableArray, "enlarge"):
        yield calls


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_memory_to_grow_is_asked_for_ahead_as_long_as_that_pays(device: str) -> None:
    table, held, new = full_to(device, 0.9)
    known, new = held.astype("u4"), new.astype("u4")
    more = np.arange(10 * held.max(), 10 * held.max() + 2 * len(held), dtype="u4")

    def insert(keys: np.ndarray) -> str:
        calls.clear()
        table.insert(keys, keys)
        return " ".join(calls)

    with noted_calls() as calls:
        assert insert(known) == "ask wait", "there might have been no room"
        assert insert(known) == "wait", "there was"
        assert insert(new).startswith("wait grow ask")
        assert "ask wait grow" in insert(more)
    assert len(table) == len(held) + len(new) + len(more)
    assert all(table.contains(keys).all() for keys in (known, new, more))
    table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_memory_asked_for_ahead_is_taken_though_all_keys_have_settled(device: str) -> None:
    table = HashMap("u4", "u4", device=device, design="dynamic_cuckoo", seed=3, capacity=450, alpha=0.1, beta=0.45)
    keys = np.arange(1, table.stats().slots // 2, dtype="u4")
    few = int(0.4 * table.stats().slots)
    table.insert(keys[:few], keys[:few])
    len(table)  # waits
    with noted_calls() as calls:
        table.insert(keys[few:], keys[few:])
    assert calls == ["ask", "wait", "grow"]
    assert len(table) == len(keys) and table.contains(keys).all() and table.load_factor <= 0.45
    table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_a_table_shrinks_when_it_is_looked_at_after_an_erase(device: str) -> None:
    for look in ("size", "insert", "erase"):
        table, held, _new = full_to(device, 0.6)
        before, kept = table.stats(), held[: len(held) // 8].astype("u4")
        gone = np.setdiff1d(held, kept).astype("u4")
        assert table.erase(gone).all() and under_way(table)
        assert not table.contains(gone).any() and table.contains(kept).all() and under_way(table)
        if look == "insert":
            assert table.insert(np.concatenate([gone[:9], kept]), np.concatenate([gone[:9], kept])).sum() == 9
            kept = np.concatenate([gone[:9], kept])
        elif look == "erase":
            assert table.erase(np.concatenate([gone[:9], kept[:9]])).sum() == 9
            kept = kept[9:]
        assert len(table) == len(kept) and not under_way(table)
        after = table.stats()
        assert after.slots <= before.slots // 2 and after.resizes > before.resizes and after.nbytes < before.nbytes
        values, there = table.find(kept)
        assert there.all() and (values == kept).all() and not table.contains(gone[9:]).any()
        table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", "f8"), ("S16", "V32")])
@pytest.mark.parametrize("memory", [True, False])
def test_what_it_leaves_without_a_home_is_found_and_then_housed(
    device: str, key: str, value: str, memory: bool
) -> None:
    table, held, new = full_to(device, 0.87, key, value)
    store, slots = storage_of(table).store.array, table.stats().slots
    before, limit = table.stats().resizes, store.table.chain_limit
    some = new[: int(0.94 * slots) - len(held)]
    twice = np.concatenate([some, some[::4]])
    store.table.chain_limit = 0  # no eviction leads anywhere
    added = table.insert(twice.astype(key), as_values(twice, value))
    assert under_way(table) and added.sum() == len(some)
    absent = new[len(some) : 2 * len(some)]
    for ids, there in ((held, True), (some, True), (absent, False)):
        values, found = table.find(ids.astype(key), as_values(np.array(7), value)[()])
        assert (found == there).all() and (values == as_values(ids if there else 0 * ids + 7, value)).all()
    assert under_way(table)
    refused = mock.patch.object(SubtableArray, "_memory_of", side_effect=MemoryError("none left"))
    with refused if not memory else contextlib.nullcontext():
        store.table.chain_limit = limit
        everybody = np.concatenate([held, some])
        found = [None] * 5
        looks = [lambda: table.find(everybody.astype(key))] * 4 + [lambda: len(table)]  # which houses them
        threads = [
            threading.Thread(target=lambda j=j, look=look: found.__setitem__(j, look())) for j, look in enumerate(looks)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for values, there in found[:4]:
        assert there.all() and (values == as_values(everybody, value)).all()
    assert len(table) == len(everybody) and not under_way(table)
    assert table.stats().resizes == before + memory
    table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("S16", "V32")])
@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("coordination", ["lanes", "voter"])
def test_an_insert_behind_one_that_left_some_without_a_home_meets_them(
    device: str, key: str, value: str, unique: bool, memory: bool, coordination: str
) -> None:
    table, held, new = full_to(device, 0.87, key, value, coordination=coordination)
    store, slots = storage_of(table).store.array, table.stats().slots
    room, before = int(0.92 * slots) - len(held), table.stats().resizes
    some, others = new[:room], new[room : room + 10]
    limit, store.table.chain_limit = store.table.chain_limit, 0
    assert table.insert(some.astype(key), as_values(some, value)).all() and under_way(table)
    store.table.chain_limit = limit
    refused = mock.patch.object(SubtableArray, "_memory_of", side_effect=MemoryError("none left"))
    with refused if not memory else contextlib.nullcontext():
        # An element of each key that has no home, and some that are new; the values of the first ones stay.
        twice = others if unique else np.concatenate([some, others, others])
        added = table.insert(twice.astype(key), as_values(twice + (1 << 20), value), assume_unique=unique)
        assert (added.all() if unique else not added[: len(some)].any()) and added.sum() == len(others)
        assert len(table) == len(held) + len(some) + len(others)
    assert table.stats().resizes == before + memory
    for ids, offset in ((held, 0), (some, 0), (others, 1 << 20)):
        values, there = table.find(ids.astype(key))
        assert there.all() and (values == as_values(ids + offset, value)).all()
    table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("S16", "V32")])
def test_an_erase_behind_one_that_left_some_without_a_home_takes_them(device: str, key: str, value: str) -> None:
    table, held, new = full_to(device, 0.87, key, value)
    store, slots = storage_of(table).store.array, table.stats().slots
    some = new[: int(0.92 * slots) - len(held)]
    limit, store.table.chain_limit = store.table.chain_limit, 0
    assert table.insert(some.astype(key), as_values(some, value)).all() and under_way(table)
    store.table.chain_limit = limit
    gone = np.concatenate([some[::2], held[::7]])
    erased = table.erase(np.concatenate([gone, gone, new[-20:]]).astype(key))
    assert (erased[: len(gone)] ^ erased[len(gone) : 2 * len(gone)]).all() and not erased[2 * len(gone) :].any()
    assert len(table) == len(held) + len(some) - len(gone)
    assert not table.contains(gone.astype(key)).any()
    kept = np.setdiff1d(np.concatenate([held, some]), gone)
    values, there = table.find(kept.astype(key))
    assert there.all() and (values == as_values(kept, value)).all()
    table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
@pytest.mark.parametrize("key_bytes", [8, 16, 32, 64, 128])
def test_each_batch_sees_what_the_one_before_wrote(device: str, key_bytes: int) -> None:
    """On a GPU they overlap: arrays lie on the device, and nobody reads an answer before all are launched."""
    arrays = pytest.importorskip("cupy") if device == "cuda" else np
    n, rounds = 1000, 4 if device == "emulated" else 40
    rng = np.random.default_rng(key_bytes)
    keys = arrays.asarray(rng.integers(0, 1 << 32, (n, key_bytes // 4), np.uint64).astype("u4"))
    numbers = arrays.arange(rounds * n, dtype="u4").reshape(rounds, n)
    held, expected, seen = np.zeros(n, "u4"), [], []
    table = HashMap.from_arrays(keys, arrays.zeros(n, "u4"), device=device, design="dynamic_cuckoo", capacity=n)
    for turn, values in enumerate(numbers):
        some = slice(turn % 4, None, 4)
        table.erase(arrays.ascontiguousarray(keys[some]))
        seen.append(table.find(keys, default=7))
        expected.append(np.where(np.arange(n) % 4 == turn % 4, 7, held))
        table.insert(arrays.ascontiguousarray(keys[some]), arrays.ascontiguousarray(values[some]))
        seen.append(table.find(keys, default=7))
        held[some] = np.arange(turn * n, (turn + 1) * n)[some]
        expected.append(held.copy())
    for (values, _), there in zip(seen, expected, strict=True):
        assert (np.asarray(values.get() if device == "cuda" else values) == there).all()
    table.check()
