"""Tables whose slots lie behind a bus: batches that go through the slots window by window, or one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.inside import storage_of
from warphash import HashMap, Operation
from warphash.runtime.devices import engine_for
from warphash.storage.tickets import slot_need, sweep
from warphash.storage.tickets.sweep import SweepingProgram

DEVICES = one_of_each("emulated", "cuda")
TYPES = [("u8", "u8", 8), ("u4", "u4", 1), ("u4", "u8", 2), ("V24", "V40", 4)]
Array = np.ndarray


def rows(numbers: Any, dtype: str) -> Array:
    words = np.asarray(numbers, np.uint64)
    width = np.dtype(dtype).itemsize
    return words.astype(dtype) if width <= 8 else np.repeat(words, width // 8).view(dtype)


def in_turn() -> Callable[..., str]:
    """Copied windows, then windows where they lie, then one by one."""
    turns = itertools.cycle(["sweep", "ordered", "direct"])
    return lambda *_, **__: next(turns)


WAYS: dict[str, Callable[[], Callable[..., str]]] = {
    way: lambda way=way: lambda *_, **__: way  # type: ignore[misc]
    for way in ("sweep", "ordered", "direct")
}
WAYS["all"] = in_turn


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("window_bytes", [1, 1000, 1 << 20])
@pytest.mark.parametrize(("key", "value", "ticket_bits"), TYPES)
@pytest.mark.parametrize("device", DEVICES)
def test_every_verb_behind_a_bus(
    monkeypatch: pytest.MonkeyPatch, device: str, key: str, value: str, ticket_bits: int, window_bytes: int, way: str
) -> None:
    n = 200 if device == "emulated" else 20_000
    if device == "cuda" and window_bytes < 1 << 20:
        window_bytes *= 1000
    monkeypatch.setattr(sweep, "_WINDOW_BYTES", window_bytes)
    monkeypatch.setattr(sweep, "_NEAR_BYTES", window_bytes)
    monkeypatch.setattr(SweepingProgram, "_way", WAYS[way]())
    if device == "emulated" and window_bytes == 1:
        n = 40
    rng = np.random.default_rng(5)
    ids = rng.permutation(4 * n)
    old, new, absent = ids[:n], ids[n : 2 * n], ids[2 * n :]
    table = HashMap(
        *(key, value),
        design="stadium",
        memory="host",
        access="sweep",
        device=device,
        capacity=9,
        ticket_bits=ticket_bits,
    )
    assert isinstance(storage_of(table).store.array.program, SweepingProgram)  # type: ignore[attr-defined]
    expected: dict[int, int] = {}

    def holds() -> None:
        table.check()
        kept = np.array(list(expected), np.uint64)
        values, found = table.find(rows(kept, key))
        assert found.all() and len(table) == len(kept)
        np.testing.assert_array_equal(values, rows([expected[int(i)] for i in kept], value))
        assert not table.contains(rows(absent, key)).any()

    twice = np.concatenate([old, old[: n // 2]])
    assert table.insert(rows(twice, key), rows(3 * twice, value)).sum() == n
    expected |= {int(i): 3 * int(i) for i in old}
    holds()
    table.assign(rows(old[: n // 4], key), rows(7 * old[: n // 4], value))
    expected |= {int(i): 7 * int(i) for i in old[: n // 4]}
    holds()
    if key != "V24":
        table.upsert(rows(twice, key), rows(np.ones(len(twice), int), value), "add")
        for i in map(int, twice):
            expected[i] += 1
        holds()
    gone = np.concatenate([old[: n // 3], old[: n // 5], absent[: n // 5]])
    assert table.erase(rows(gone, key)).sum() == n // 3
    for i in map(int, old[: n // 3]):
        del expected[i]
    holds()
    table.insert(rows(new, key), rows(new, value), assume_unique=True)
    expected |= {int(i): int(i) for i in new}
    holds()
    mixed = rng.permutation(np.concatenate([old, new]))
    operations = rng.choice([Operation.ASSIGN, Operation.ERASE, Operation.FIND], len(mixed)).astype(np.uint8)
    finds = operations == Operation.FIND
    values, done = table.execute(operations, rows(mixed, key), rows(5 * mixed, value))
    was_there = np.array([int(i) in expected for i in mixed])
    np.testing.assert_array_equal(done, was_there ^ (operations == Operation.ASSIGN))
    np.testing.assert_array_equal(values[finds], rows([expected.get(int(i), 0) for i in mixed[finds]], value))
    expected |= {int(i): 5 * int(i) for i in mixed[operations == Operation.ASSIGN]}
    for i in map(int, mixed[operations == Operation.ERASE]):
        expected.pop(i, None)
    holds()
    table.shrink()
    holds()


def test_an_engine_in_the_memory_of_the_host_has_no_bus() -> None:
    for device in [device for device in ("cpu", "emulated") if not missing(device)]:
        table: Any = HashMap("u8", "u8", design="stadium", memory="host", device=device)
        assert not isinstance(storage_of(table).store.array.program, SweepingProgram)


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
def test_few_elements_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` sweeps when the elements that need a slot would take longer one by one than all slots in windows."""
    monkeypatch.setattr(engine_for("emulated"), "shares_host_memory", False)
    sweeps = []
    engine = engine_for("emulated")
    original = engine.sweep
    monkeypatch.setattr(engine, "sweep", lambda *given: (sweeps.append(given), original(*given))[1])
    keys = np.arange(500, dtype=np.uint64)
    table = HashMap("u8", "u8", design="stadium", memory="host", device="emulated", capacity=2000)
    monkeypatch.setattr(sweep, "_NEAR_BYTES", 1)
    monkeypatch.setattr(sweep, "_REACH_BYTES", 1)
    monkeypatch.setattr(sweep, "_NEAR_ACCESS_S", 0)
    for access_s, swept in ((0.0, False), (1.0, True)):
        monkeypatch.setattr(sweep, "_FAR_S", access_s)
        table.insert(keys, keys)
        values, found = table.find(keys)
        assert found.all() and (values == keys).all()
        assert bool(sweeps) == swept


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
def test_an_update_without_memory_for_windows_goes_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(engine_for("emulated"), "sweep", refuse)
    keys = np.arange(300, dtype=np.uint64)
    table = HashMap("u8", "u8", design="stadium", memory="host", access="sweep", device="emulated", capacity=10)
    table.insert(keys, keys)
    table.check()
    assert len(table) == 300


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
def test_a_table_whose_addresses_are_at_hand_goes_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_for("emulated")
    monkeypatch.setattr(engine, "shares_host_memory", False)
    table: Any = HashMap("u8", "u8", design="stadium", memory="host", device="emulated", capacity=2000)
    program = storage_of(table).store.array.program
    nbytes = program._slots.nbytes
    assert program._way(1 << 20, 1 << 20) == "sweep"  # the copy of few bytes takes no time
    monkeypatch.setattr(sweep, "_COPY_BYTES_PER_S", 1e-9)
    assert program._way(1 << 20, 1 << 20) == "direct"
    monkeypatch.setattr(sweep, "_REACH_BYTES", nbytes // 4)
    assert program._way(1 << 20, 1 << 20) == "ordered"
    assert program._way(1 << 20, 1 << 20, more_s=1.0) == "direct"
    assert program._way(100, 100) == "direct"


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize(("sample", "awaited"), [(64, 1), (1 << 14, 1), (1 << 14, 1 << 20)])
def test_a_sample_tells_how_many_elements_need_a_slot(
    monkeypatch: pytest.MonkeyPatch, sample: int, awaited: int
) -> None:
    """Absent keys end at the tickets, so many of them go one by one; as many present keys wait for the windows."""
    engine = engine_for("emulated")
    monkeypatch.setattr(engine, "shares_host_memory", False)
    monkeypatch.setattr(slot_need, "_SAMPLE", sample)
    monkeypatch.setattr(slot_need, "_AWAITED_ELEMENTS", awaited)
    sweeps = []
    original = engine.sweep
    monkeypatch.setattr(engine, "sweep", lambda *given: (sweeps.append(given), original(*given))[1])
    keys = np.arange(500, dtype=np.uint64)
    table: Any = HashMap("u8", "u8", design="stadium", memory="host", device="emulated", capacity=2000)
    table.insert(keys, keys)
    slots_nbytes = storage_of(table).store.array.slots * 16
    monkeypatch.setattr(sweep, "_NEAR_BYTES", 1)
    monkeypatch.setattr(sweep, "_REACH_BYTES", 1)
    monkeypatch.setattr(sweep, "_ROUND_S", 0)
    monkeypatch.setattr(sweep, "_UPDATE_S", 0)
    monkeypatch.setattr(sweep, "_WALK_S", 0)
    monkeypatch.setattr(sweep, "_NEAR_ACCESS_S", slots_nbytes / sweep._COPY_BYTES_PER_S / 250)
    monkeypatch.setattr(sweep, "_FAR_S", 0)
    asked = np.concatenate([keys[::5], np.arange(1000, 2400, dtype=np.uint64)])
    for batch, swept in ((asked, False), (keys, True)):
        for _ in range(1 if awaited == 1 else 2):  # the first batch tells of the second
            sweeps.clear()
            values, found = table.find(batch)
            np.testing.assert_array_equal(found, batch < 500)
            np.testing.assert_array_equal(values[found], batch[found])
        assert bool(sweeps) == swept
    sweeps.clear()
    assert table.erase(asked).sum() == 100
    assert not sweeps
    table.check()
