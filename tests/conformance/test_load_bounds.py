"""Tables that are kept within bounds of their load factor: doubled, halved, never wrong, and never thrashing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from support.engines import ENGINES, one_of_each
from support.inside import storage_of
from warphash import HashMap, HashSet, MultiMap, ParameterError
from warphash.designs import registry
from warphash.storage import policies

WITHOUT_OWN_BOUNDS = [
    name for name in registry.names() if registry.get(name).own_bounds(registry.get(name).resolve({})) is None
]
ONE_OF_EACH = one_of_each(*ENGINES)
BOUNDS = (0.1, 0.25)
"""That every design can be filled to."""


def slots_of(table: Any) -> int:
    return int(table.stats().slots)


@pytest.mark.parametrize("device", ONE_OF_EACH)
@pytest.mark.parametrize("design", WITHOUT_OWN_BOUNDS)
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", "none"), ("S20", "i4")])
def test_a_table_follows_its_keys(device: str, design: str, key: str, value: str) -> None:
    n = 300 if device == "emulated" else 3000
    numbers = np.random.default_rng(7).permutation(np.arange(1, n + 1)).astype("u8")
    keys = numbers.astype(key)
    options: dict[str, Any] = {"design": design, "device": device, "capacity": 10, "load_bounds": BOUNDS, "seed": 1}
    table: Any = HashSet(key, **options) if value == "none" else HashMap(key, value, **options)
    least, most = BOUNDS
    held: set[int] = set()

    def check() -> None:
        assert len(table) == len(held) and len(table) <= most * slots_of(table)
        there = table.contains(keys)
        assert set(numbers[there].tolist()) == held
        if value != "none":
            assert (table.find(keys[there])[0] == numbers[there].astype(value)).all()

    for part in np.array_split(np.arange(n), 5):
        held |= set(numbers[part].tolist())
        assert (table.insert(keys[part], *([numbers[part].astype(value)] if value != "none" else []))).all()
        check()
    largest = slots_of(table)
    for part in np.array_split(np.arange(n), 5):
        held -= set(numbers[part].tolist())
        assert table.erase(keys[part]).all()
        check()
        assert len(table) >= least * slots_of(table) or slots_of(table) <= 2 * policies.FEWEST_SLOTS
    assert slots_of(table) < largest / 8
    table.check()


@pytest.mark.parametrize("device", ["cpu"])
@pytest.mark.parametrize("design", ["bucketed_cuckoo", "linear_probing", "slab"])
def test_room_that_was_asked_for_stays_until_keys_are_erased(device: str, design: str) -> None:
    table = HashSet("u8", design=design, device=device, capacity=5000, load_bounds=(0.2, 0.8))
    before = slots_of(table)
    table.insert(np.arange(100, dtype="u8"))
    assert slots_of(table) == before and table.stats().rebuilds == 0
    table.erase(np.arange(50, dtype="u8"))
    assert slots_of(table) <= 4 * 128 and table.contains(np.arange(50, 100, dtype="u8")).all()


def test_a_table_at_its_bounds_is_not_rebuilt_again_and_again() -> None:
    table = HashSet("u8", design="bucketed_cuckoo", device="cpu", capacity=100, load_bounds=(0.4, 0.8))
    keys = np.arange(4000, dtype="u8")
    table.insert(keys)
    for _ in range(20):  # in and out over either bound
        table.erase(keys[:200])
        table.insert(keys[:200])
    assert table.stats().rebuilds <= 12


def test_pairs_of_a_multimap_and_saved_tables_keep_their_bounds(tmp_path: Any) -> None:
    with pytest.raises(ParameterError, match=r"lie without gaps.*design='slab'"):
        MultiMap("u4", "u4", device="cpu", load_bounds=(0.1, 0.5))
    pairs = MultiMap("u4", "u4", design="slab", device="cpu", capacity=10, load_bounds=(0.1, 0.5))
    keys = np.repeat(np.arange(1000, dtype="u4"), 4)
    pairs.insert(keys, np.arange(4000, dtype="u4"))
    assert pairs.load_factor <= 0.5 and pairs.erase_all(np.arange(990, dtype="u4")).sum() == 3960
    assert sorted(pairs.find_all(np.array([995], "u4"))[0].tolist()) == [3980, 3981, 3982, 3983]
    table = HashSet("u4", device="cpu", capacity=10, load_bounds=[0.25, 0.5], design="iceberg")
    table.insert(keys)
    table.save(tmp_path / "table")
    for twin in (table.copy(), HashSet.load(tmp_path / "table", device="cpu")):
        twin.erase(np.arange(950, dtype="u4"))
        assert len(twin) == 50 and slots_of(twin) <= 256


def test_without_memory_for_another_size_a_batch_is_done_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = HashSet("u8", design="bucketed_cuckoo", device="cpu", capacity=100, load_bounds=(0.4, 0.8))
    keys = np.arange(4000, dtype="u8")
    table.insert(keys)
    slots = slots_of(table)

    def refuse(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as context:
        context.setattr(type(storage_of(table).store.array), "sibling", refuse)
        assert table.erase(keys[:3900]).all() and slots_of(table) == slots
        assert table.contains(keys).sum() == 100
    assert table.erase(keys[3900:3901]).all() and slots_of(table) < slots / 8
    assert table.contains(keys).tolist() == [False] * 3901 + [True] * 99


@pytest.mark.parametrize(
    "bounds", [0.5, (0.5,), (0.1, 0.2, 0.3), (0.3, 0.5), (-0.1, 0.5), (0.1, 1.1), (0, 0), ("a", "b"), (math.nan, 0.5)]
)
def test_bounds_that_cannot_be(bounds: Any) -> None:
    with pytest.raises(ParameterError, match="load_bounds"):
        HashSet("u4", device="cpu", load_bounds=bounds)


@pytest.mark.parametrize("options", [{"on_full": "raise"}, {"design": "slab", "rebucket": False}])
def test_tables_whose_size_is_to_stay_have_no_bounds(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="leave load_bounds out"):
        HashSet("u4", device="cpu", load_bounds=(0.1, 0.5), **options)


def test_policy() -> None:
    bounds = policies.slots_in_bounds
    assert bounds(90, 100, (0.4, 0.9)) is None and bounds(40, 100, (0.4, 0.9)) is None
    assert bounds(91, 100, (0.4, 0.9)) == 200 and bounds(39, 100, (0.4, 0.9)) == 50
    assert bounds(1000, 100, (0.4, 0.9)) == 1600 and bounds(1, 1 << 20, (0.4, 0.9)) == policies.FEWEST_SLOTS
    assert bounds(0, 64, (0.4, 0.9)) is None and bounds(0, 65, (0.4, 0.9)) == 33
