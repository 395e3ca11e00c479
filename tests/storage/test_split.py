"""Tables in columns that are built of whole pairs: nothing lost or torn, and only where it pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.inside import storage_of
from support.planting import planted_among
from support.types import distinct_keys, special_keys
from warphash import HashMap, TableFull
from warphash.designs import registry
from warphash.runtime.devices import engine_for
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine
from warphash.storage.batch_order import parts

WORD = np.dtype("u8")


@pytest.fixture(params=one_of_each("emulated", "cuda"))
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One whose cache holds two kilobytes of a table."""
    monkeypatch.setattr(engine_for(request.param), "window_bytes", 2048)
    return str(request.param)


def some_keys(n: int) -> np.ndarray:
    """Distinct, reserved keys among them."""
    drawn = distinct_keys(WORD, n, np.random.default_rng(n))
    return np.unique(np.concatenate([drawn, special_keys(WORD)]))[-n:]


def launches(table: HashMap, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The entries that a table launches from now on."""
    program, names = storage_of(table).store.array.program, []
    run = program.run

    def noted(entry: str, *rest: Any) -> None:
        names.append(entry)
        run(entry, *rest)

    monkeypatch.setattr(program, "run", noted)
    return names


@pytest.mark.parametrize("load_factor", [0.4, 0.8])
def test_all_pairs_are_there(device: str, load_factor: float) -> None:
    for n in (700, 2001):
        keys = some_keys(n)
        table = HashMap.from_arrays(
            keys,
            ~keys,
            design="power_of_two",
            slots_per_bucket=16,
            assume_unique=True,
            load_factor=load_factor,
            device=device,
        )
        table.check()
        values, found = table.find(keys)
        assert len(table) == n and found.all() and (values == ~keys).all()
        assert not table.contains(np.arange(5, 500, dtype=WORD)).any()
        held = dict(zip(*(column.tolist() for column in table.to_arrays()), strict=True))
        assert held == dict(zip(keys.tolist(), (~keys).tolist(), strict=True))
        assert table.erase(keys[::2]).all() and table.insert(keys[::2], keys[::2]).all()
        assert (table.find(keys)[0][::2] == keys[::2]).all()
        table.check()


def test_only_a_large_batch_for_a_table_without_keys(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = some_keys(3000)
    table = HashMap(WORD, WORD, capacity=3000, design="power_of_two", slots_per_bucket=16, device=device)
    names = launches(table, monkeypatch)
    table.insert(keys[:1000], keys[:1000], assume_unique=True)  # too few
    assert names and "split" not in names
    table.clear()
    names.clear()
    table.insert(keys[:2000], keys[:2000], assume_unique=True)
    assert names == ["place_pairs", "split"]
    table.erase(keys[:2000])
    names.clear()
    table.insert(keys[:2000], keys[:2000], assume_unique=True)  # no keys, but tombstones
    assert len(table) == 2000 and "split" not in names
    table.clear()
    names.clear()
    table.insert(keys[:2000], keys[:2000])  # they may repeat
    assert "split" not in names


def put_back(table: HashMap) -> HashMap:
    array = storage_of(table).store.array
    array.restore(array.snapshot())
    return table


def moved(table: HashMap) -> HashMap:
    table.reserve(3200)
    return table


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("n", [10, 1000])
@pytest.mark.parametrize("then", [lambda table: table, HashMap.copy, put_back, moved])
def test_no_batch_for_a_table_with_keys(
    device: str, n: int, unique: bool, then: Callable[[HashMap], HashMap], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = some_keys(3000)
    table = HashMap(WORD, WORD, capacity=3000, design="power_of_two", slots_per_bucket=16, device=device)
    table.insert(keys[:n], keys[:n], assume_unique=unique)
    table = then(table)
    names = launches(table, monkeypatch)
    table.insert(keys[1000:], keys[1000:], assume_unique=True)
    assert "place" in names and "split" not in names
    assert table.contains(keys[:n]).all() and table.contains(keys[1000:]).all() and len(table) == n + 2000


def test_where_it_would_not_pay() -> None:
    power_of_two = registry.get("power_of_two")
    splits = [power_of_two.splits({"slots_per_bucket": slots}, slots, slot_bytes=16) for slots in (8, 16, 32)]
    assert splits == [
        False,
        True,
        False,
    ]  # pairs, columns, columns of large buckets
    assert not parts.is_built_whole(1000, 1200, 1 << 20, 0)  # a device without such a cache
    assert not parts.is_built_whole(1000, 1200, (1 << 20) - 1, 1 << 19)  # half of the table lies in it
    assert parts.is_built_whole(1000, 1200, 1 << 20, 1 << 19)
    assert parts.is_built_whole(1000, 3000, 1 << 20, 1 << 19)
    assert not parts.is_built_whole(1000, 3001, 1 << 20, 1 << 19)


def test_a_table_that_is_full_is_as_it_was_and_one_that_may_grow_does(device: str) -> None:
    keys = some_keys(3000)
    options: dict[str, Any] = {"design": "power_of_two", "slots_per_bucket": 16, "device": device, "load_factor": 1.0}
    table = HashMap(WORD, WORD, capacity=2400, on_full="raise", **options)
    with pytest.raises(TableFull) as caught:
        table.insert(keys, keys, assume_unique=True)
    assert len(table) == 0 and len(np.asarray(caught.value.keys)) >= len(keys) - 2416
    table.check()
    table = HashMap(WORD, WORD, capacity=2400, **options)
    assert table.insert(keys, ~keys, assume_unique=True).all() and (table.find(keys)[0] == ~keys).all()
    table.check()


def torn(engine: EmulatedEngine, seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether pairs were lost, or torn, in one schedule."""
    monkeypatch.setattr(emulated, "schedule_seed", seed)
    monkeypatch.setattr(emulated, "engine", lambda: engine)
    keys = some_keys(600)
    table = HashMap.from_arrays(
        keys, ~keys, design="power_of_two", slots_per_bucket=16, assume_unique=True, device="emulated"
    )
    values, found = table.find(keys)
    return not (found.all() and (values == ~keys).all())


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestSchedules:
    def test_all_of_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine()
        assert not any(torn(engine, seed, monkeypatch) for seed in range(40))

    def test_a_pass_that_does_not_wait_for_its_readers_shows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine(planted_among("split.cuh", "    warp_barrier();\n", ""))
        assert any(torn(engine, seed, monkeypatch) for seed in range(30))
