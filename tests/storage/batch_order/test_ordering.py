"""Large batches go into a table in the order of its parts: nothing lost, nothing doubled, and in that order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from support.engines import missing, narrow, one_of_each
from support.faults import OLD, VERBS, Array, Family, Scenario, all_faults, check_harmless, new_values
from support.hashing import first_buckets
from support.inside import storage_of
from support.planting import planted, planted_among
from warphash import HashMap, HashSet, TableFull
from warphash.runtime.abi import Flag
from warphash.runtime.devices import engine_for
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine, EmulationError
from warphash.storage.batch import Batch
from warphash.storage.batch_order import parts as sizes_of_parts
from warphash.storage.batch_order.ordering import in_parts
from warphash.storage.buckets.array import BucketArray

ONE_OF_EACH = one_of_each("emulated", "cuda")
SETTINGS: list[dict[str, Any]] = [
    {"design": "cuckoo"},
    {"design": "bucketed_cuckoo", "slots_per_bucket": 8},
    {"design": "bucketed_cuckoo", "slots_per_bucket": 32},
]


@pytest.fixture(params=ONE_OF_EACH)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def some_keys(n: int, dtype: str, seed: int = 1) -> np.ndarray:
    """Unique keys, in no order, with the reserved ones."""
    top = np.iinfo(dtype).max
    drawn = np.random.default_rng(seed).integers(0, top - 2, 2 * n + 9, dtype, endpoint=True)
    return np.concatenate([[top, top - 1, top - 2], np.unique(drawn)[: n + 9]]).astype(dtype)[:n][::-1].copy()


def copies_of(store: BucketArray, keys: np.ndarray, values: np.ndarray | None) -> list[np.ndarray]:
    """Keys, and values, as `in_parts` arranges them."""
    engine = store.engine
    held = [engine.from_host(column) for column in (keys, values) if column is not None]
    copies = in_parts(store, Batch(held[0].ptr, held[-1].ptr if values is not None else 0, len(keys)))
    assert copies is not None
    columns = [(copies.batch.keys, keys), (copies.batch.values, values)]
    return [engine.to_host(at, column.dtype, len(column)) for at, column in columns if column is not None]


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("valued", [True, False])
@pytest.mark.parametrize(
    ("window_bytes", "lanes", "n"), [(2048, 7, 5000), (2048, 1, 4097), (1024, 1, 4096), (512, 1, 777)]
)
def test_a_batch_in_the_order_of_the_parts(
    device: str, dtype: str, valued: bool, window_bytes: int, lanes: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, device, window_bytes, lanes)
    for setting in SETTINGS:
        make: Any = HashMap(dtype, dtype, capacity=n, device=device, **setting) if valued else None
        table = make or HashSet(dtype, capacity=n, device=device, **setting)
        store = storage_of(table).store.array
        bucket_bytes = store.spec.slots_per_bucket * store.spec.slot_bytes
        parts = sizes_of_parts.parts_of(store.buckets, bucket_bytes, window_bytes, lanes, n)
        assert parts is not None and 2 <= parts[0] <= sizes_of_parts.MOST_PARTS
        keys = some_keys(n, dtype)
        values = keys[::-1].copy() if valued else None
        copied = copies_of(store, keys, values)
        order = np.argsort(copied[0])
        assert (copied[0][order] == np.sort(keys)).all()
        if values is not None:
            assert (copied[1][order] == values[np.argsort(keys)]).all()
        part = first_buckets(store, copied[0]) >> parts[1]
        assert (np.diff(part) >= 0).all() and part.max() < parts[0]


def test_where_the_order_would_not_help() -> None:
    assert sizes_of_parts.parts_of(1000, 8, 0, 99, 1000) is None  # a device without such a cache
    assert sizes_of_parts.parts_of(1000, 8, 4001, 99, 1000) is None  # the table lies in it
    assert (
        sizes_of_parts.parts_of(1 << 20, 64, 1 << 10, 9, (1 << 20) - 1) is None
    )  # fewer elements than lines of 64 bytes
    assert sizes_of_parts.parts_of(1 << 20, 64, 1 << 10, 9, 1 << 20) == (256, 12)  # as many parts as there may be
    assert sizes_of_parts.parts_of(1001, 8, 2000, 99, 1000) == (8, 7)
    assert sizes_of_parts.parts_of(1001, 8, 2000, 9, 1000) == (32, 5)  # four buckets for each lane
    assert sizes_of_parts.parts_of(1001, 8, 2000, 256, 1000) is None  # two lanes for each bucket
    assert sizes_of_parts.parts_of(1001, 8, 7, 1, 1000) is None  # not one bucket lies in the cache
    assert sizes_of_parts.parts_of(768, 8, 2048, 99, 1000) is None  # three parts
    assert sizes_of_parts.parts_of(769, 8, 2048, 99, 1000) == (4, 8)


@pytest.mark.parametrize(
    "setting", [*SETTINGS, {"design": "power_of_two"}, {"design": "iceberg"}, {"design": "iceberg", "hashes": 4}]
)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("uint32", "uint32"), ("S20", "i8")),
        *(pytest.param(*types, marks=pytest.mark.slow) for types in (("uint64", "uint64"), ("int16", "S3"))),
    ],
)
def test_a_table_from_arrays_has_all(
    device: str, setting: dict[str, Any], key: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, device, 2048, 4)
    n = 3000
    keys = some_keys(n, "uint64").astype("S20") if key == "S20" else some_keys(n, key)
    values = np.arange(n).astype(value)
    for unique in (True, False):
        table = HashMap.from_arrays(keys, values, device=device, assume_unique=unique, **setting)
        found_values, found = table.find(keys)
        assert len(table) == n and found.all() and (found_values == values).all()
        table.check()
    twice = np.concatenate([keys, keys])
    table = HashMap.from_arrays(twice, np.concatenate([values, values]), device=device, **setting)
    assert len(table) == n and (table.find(twice)[0][n:] == values).all()
    table.check()


@pytest.mark.parametrize("setting", [*SETTINGS, {"design": "iceberg"}])
def test_an_insert_of_new_keys_says_that_all_are_new(
    device: str, setting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, device, 2048, 4)
    keys = some_keys(4000, "uint32")
    table = HashMap("uint32", "uint32", capacity=1000, device=device, **setting)  # and it grows
    for part in np.split(keys, [1900]):
        assert table.insert(part, ~part, assume_unique=True).tolist() == [True] * len(part)
    values, found = table.find(keys)
    assert len(table) == 4000 and found.all() and (values == ~keys).all()
    table.check()


def test_a_false_word_about_new_keys_is_answered_with_what_came_of_it(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, device, 2048, 4)
    keys = some_keys(4000, "uint32")
    table = HashSet("uint32", capacity=8000, design="iceberg", device=device)
    assert table.insert(keys[:1000], assume_unique=True).all()
    added = table.insert(keys, assume_unique=True)
    assert added[1000:].all() and len(table) == 1000 + added.sum()


def test_a_table_that_is_full_names_the_keys_that_did_not_fit(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, device, 512, 1)
    keys = some_keys(2000, "uint32")[:-3]  # without the reserved ones
    options: dict[str, Any] = {"design": "bucketed_cuckoo", "slots_per_bucket": 8, "device": device, "load_factor": 1.0}
    with pytest.raises(TableFull) as caught:
        HashSet.from_arrays(keys, assume_unique=True, capacity=1600, on_full="raise", **options)
    left = np.asarray(caught.value.keys)
    assert len(keys) - 1600 <= len(left) < len(keys)
    assert np.isin(left, keys).all() and len(np.unique(left)) == len(left)


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
def test_without_memory_for_copies_the_batch_goes_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_for("emulated")
    table = HashMap("uint32", "uint32", capacity=4000, design="cuckoo", device="emulated")
    store = storage_of(table).store.array

    def refuse(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as context:
        context.setattr(engine, "allocate", refuse)
        assert in_parts(store, Batch(16, 16, 4000)) is None


@dataclass(frozen=True)
class NewKeys(Scenario):
    """A large batch of new keys, which the caller vouches for."""

    @property
    def ids(self) -> Array:
        return np.random.default_rng(1).permutation(np.arange(1000, 1500))

    def make(self) -> Any:
        table = self.family.table(200 if self.grows else 800, self.device)
        table.insert(self.family.keys(OLD), self.family.values(OLD))
        return table

    def call(self, table: Any) -> Any:
        keys = self.family.keys(self.ids)
        absent = ~table.contains(keys)  # after a fault, some are there
        return table.insert(keys[absent], self.family.values(new_values(self.ids))[absent], assume_unique=True)


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize("grows", [False, True], ids=["fits", "grows"])
def test_faults_of_a_batch_that_fills_first_buckets_first(grows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, "emulated", 1024, 4)
    settled: list[int] = []
    settle = BucketArray.settle

    def counted(array: BucketArray, *arguments: Any, **options: Any) -> Any:
        outcome = settle(array, *arguments, **options)
        settled.append(0 if outcome is None else outcome[1].n)
        return outcome

    monkeypatch.setattr(BucketArray, "settle", counted)
    scenario = NewKeys(Family("iceberg", "iceberg"), replace(VERBS["insert"], whole=True), "emulated", grows)
    faults = [*all_faults(scenario, every=7)]
    check_harmless(faults)
    assert len(faults) > 10
    assert max(settled) > 0 and min(settled) == 0  # and the list was refused, too


def disorder(engine: EmulatedEngine, seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether keys or values were lost, or torn from each other, in one schedule."""
    monkeypatch.setattr(emulated, "schedule_seed", seed)
    n = 4500
    table = HashMap("uint32", "uint32", capacity=n, design="cuckoo", device="emulated")
    store = storage_of(table).store.array
    monkeypatch.setattr(store, "engine", engine)
    keys = some_keys(n, "uint32")
    try:
        copied, values = copies_of(store, keys, ~keys)
    except EmulationError:
        return True
    return bool((np.sort(copied) != np.sort(keys)).any() or (values != ~copied).any())


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestSchedules:
    def test_all_of_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine()
        assert not any(disorder(engine, seed, monkeypatch) for seed in range(40))

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            (
                "fetch_add(tile.counts + part, 1u);",
                "load_relaxed(tile.counts + part); store_relaxed(tile.counts + part, (place[k] & 0xffffu) + 1);",
            ),
            ("    block_barrier();  // before the keys are written over\n", ""),
            ("fetch_add(sizes + b.parts + part, static_cast<u64>(count))", "sizes[b.parts + part]"),
        ],
        ids=["a rank is read, then written", "values overtake keys", "two tiles have one place"],
    )
    def test_a_planted_bug_shows(self, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine(lambda source: planted(source, right, wrong))
        assert any(disorder(engine, seed, monkeypatch) for seed in range(30))


def misplaced(engine: EmulatedEngine, seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a crowded table that is filled in two rounds has lost or invented keys, in one schedule."""
    monkeypatch.setattr(emulated, "schedule_seed", seed)
    like = storage_of(HashSet("uint32", capacity=500, design="iceberg", threshold=0.2, device="emulated")).store.array
    array = BucketArray(like.kind._replace(engine=engine), like.slots, 1, like.family)
    array.clear()
    keys = some_keys(int(0.98 * array.slots), "uint32")
    n, held, flags = len(keys), engine.from_host(keys), engine.allocate(len(keys))
    out = engine.allocate(4 * n)
    try:
        batch = Batch(held.ptr, 0, n, flags=flags.ptr, unique=True)
        settled = array.settle(batch)
        assert settled is not None
        rest = array.update(batch, past_first=True, listed=settled[1])
        found = array.scan(n, out.ptr, 0)
    except EmulationError:
        return True
    if not found == settled[0] + rest.changed == n - rest.unplaced or array.broken_buckets():
        return True
    left = keys[engine.to_host(flags.ptr, np.uint8, n) == Flag.UNPLACED]
    buckets = engine.to_host(array.table.slots, np.uint32, array.slots).reshape(array.buckets, -1)
    has_room = (buckets == np.uint32(0xFFFFFFFF)).any(axis=1)
    return bool(
        not np.isin(engine.to_host(out.ptr, np.uint32, found), keys).all() or has_room[first_buckets(array, left)].any()
    )


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestTwoRounds:
    def test_all_of_many_schedules(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine()
        assert not any(misplaced(engine, seed, monkeypatch) for seed in range(20))

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("p.best.found() || p.primary_vacant != kNotSeen", "p.bucket != kNowhere"),
            ("if (p.best.found() || p.primary_vacant != kNotSeen) {", "if (!p.best.found()) return Placed::kNoRoom; {"),
            ("if (!s.room) return end(s, Outcome::kLeftover);", "if (!s.room) return end(s, Outcome::kPresent);"),
        ],
        ids=["a bucket that was not read", "the primary bucket is never read again", "what is left is not listed"],
    )
    def test_a_planted_bug_shows(self, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine(planted_among("struct Iceberg ", right, wrong))
        assert any(misplaced(engine, seed, monkeypatch) for seed in range(10))
