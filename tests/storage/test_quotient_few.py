"""Updates of a quotient table for which the host need not wait: those of few elements, and those under locks."""

from __future__ import annotations

import weakref
from itertools import accumulate
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.faults import at_each_allocation, at_each_line
from support.inside import storage_of
from support.quotients import FORMS, SLOTS, add, array_of, check_combined, entries, keys_with, launches, made, value_of
from warphash import HashMap
from warphash.storage.batch import Batch
from warphash.storage.quotient import array as quotient
from warphash.storage.quotient import one_launch, route

DEVICES = one_of_each("emulated", "cuda")


def store_of(table: Any) -> Any:
    return storage_of(table).store


def awaited(table: Any) -> int:
    """Elements of the batch that nobody has waited for."""
    return int(store_of(table).state.awaited)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value", "slots", "buckets"), [form[:4] for form in FORMS])
def test_every_form(device: str, key: str, value: str | None, slots: int, buckets: int) -> None:
    table = made(key, value, slots * buckets, device)
    assert store_of(table).spec.slots_per_bucket == slots
    rng = np.random.default_rng(1)
    keys = np.unique(rng.integers(0, np.iinfo(key).max, 1800, key, endpoint=True))
    old, new, absent = np.split(keys[:1000], [200, 350])
    with launches(table) as launched:
        assert add(table, old).all() and awaited(table) == len(old)
        batch = rng.permutation(np.concatenate([old[:50], new, new[:30]]))
        added = add(table, batch)
        assert awaited(table) == len(old) + len(batch) and entries(launched) == ["update_few"] * 2
    assert sorted(batch[added]) == sorted(new) and len(table) == 350 and not awaited(table)
    assert table.contains(keys[:350]).all() and not table.contains(absent).any()
    if value:
        assert (table.find(keys[:350])[0] == value_of(keys[:350], value)).all()
        asked = rng.permutation(np.concatenate([batch, absent[:20], absent[:20]]))
        assert np.count_nonzero(table.upsert(asked, np.ones(len(asked), value), "add")) == 20 and not awaited(table)
        times = np.array([np.count_nonzero(asked == k) for k in asked])
        before = np.where(np.isin(asked, absent), np.array(0, value), value_of(asked, value))
        assert (table.find(asked)[0] == (before + times.astype(value)).astype(value)).all()
        same = asked.astype(value)
        assert not table.assign(asked, same).any() and awaited(table) and (table.find(asked)[0] == same).all()
    table.check()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["add", "min", "max", "or", "and", "xor"])
def test_one_key_in_a_whole_batch(device: str, op: str) -> None:
    """Most elements are left by the locks, and each of them counts."""
    table = made("u4", "u4", 7 * 300, device)
    add(table, np.arange(40, dtype=np.uint32))
    values = np.random.default_rng(2).integers(0, 1 << 32, 700, np.uint32)
    crowd = np.where(np.arange(700) % 7 > 0, 5, 1000).astype(np.uint32)
    with launches(table) as launched:
        added = table.upsert(crowd, values, op)
        assert entries(launched) == ["update_few"]
    assert np.count_nonzero(added) == 1 and crowd[added] == 1000
    check_combined(table, op, crowd, values, {5: ~np.uint32(5)})
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_which_batches_are_left(device: str) -> None:
    """Those of few elements, or of one for each bucket, that surely fit, of a table that may grow."""
    keys = np.arange(20_000, dtype=np.uint32)
    table = made("u4", "u4", 7 * 2000, device)
    array = array_of(table)
    most, buckets = int(0.9 * store_of(table).safe_load_factor * array.slots), array.buckets
    rest = most - 1035 - 2 * buckets
    sizes = [1024, buckets, buckets + 1, *[buckets] * (rest // buckets), rest % buckets, 10, 10]
    lefts = [True, True, False, *[True] * (len(sizes) - 4), False]  # the second under locks, the third by ranges
    for first, size, left in zip(accumulate(sizes, initial=0), sizes, lefts, strict=False):
        end = first + size
        add(table, keys[first:end])
        assert bool(awaited(table)) == left, (first, end)
    assert len(table) == most + 10 and store_of(table).rebuilds == 0
    small = made("u4", "u4", 7 * 10, device)
    add(small, keys[:20])
    assert awaited(small)
    for _ in range(2):
        with launches(small) as launched:
            assert not add(small, np.repeat(keys[:20], 4)).any()  # eight for each bucket
            assert "update_few" not in entries(launched) and not awaited(small)
    for options in ({"on_full": "raise"}, {"load_bounds": (0.1, 0.9)}, {"count_probes": True}):
        waits = made("u4", "u4", 7 * 900, device, **options)
        with launches(waits) as launched:
            assert add(waits, keys[:100]).all() and not awaited(waits) and entries(launched) == ["update_few"]
        assert len(waits) == 100
        waits.check()
    for some in (table, small):
        some.check()


@pytest.mark.parametrize("device", DEVICES)
def test_what_comes_behind_a_batch_that_was_left(device: str) -> None:
    keys = np.arange(500, dtype=np.uint32)
    table = made("u4", "u4", 7 * 300, device)
    add(table, keys[:300])
    assert awaited(table) and len(table) == 300
    table.assign(keys[:300], keys[:300])
    twin = table.copy()
    assert len(twin) == 300 and (twin.find(keys[:300])[0] == keys[:300]).all()
    add(table, keys[300:400])
    assert awaited(table) and table.erase(keys[:100]).all() and len(table) == 300
    add(table, keys[400:])
    assert awaited(table) and sorted(table.keys().tolist()) == list(range(100, 500))
    add(table, keys[:10])
    table.clear()
    assert not awaited(table) and len(table) == 0 and not table.contains(keys).any()
    assert add(table, keys[:50]).all() and len(table) == 50
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_batches_that_are_left_one_behind_another(device: str) -> None:
    keys = np.arange(20_000, dtype=np.uint32)
    table = made("u4", "u4", 7 * 3000, device)
    with launches(table) as launched:
        for first in range(0, 4000, 800):
            assert add(table, keys[first : first + 1000]).sum() == (1000 if first == 0 else 800)
            assert awaited(table) == 1000 * (first // 800 % 4 + 1)
        assert entries(launched) == ["update_few"] * 5
        assert not table.assign(keys[:700], keys[:700]).any() and awaited(table) == 1700
        assert not table.upsert(keys[:700], np.ones(700, np.uint32), "add").any() and not awaited(table)
    assert len(table) == 4200 and (table.find(keys[:700])[0] == keys[:700] + 1).all()
    assert (table.find(keys[700:4200])[0] == ~keys[700:4200]).all()
    add(table, keys[4200:4300])
    add(table, keys[4300:4400])
    twin = table.copy()
    assert len(twin) == 4400 and not awaited(table)
    add(table, keys[4400:4500])
    add(table, keys[4500:4600])
    assert awaited(table) == 200 and table.erase(keys[:4550]).all() and sorted(table.keys()) == list(range(4550, 4600))
    add(table, keys[:100])
    add(table, keys[:200])
    table.clear()
    assert not awaited(table) and len(table) == 0
    assert add(table, keys[:50]).all() and not add(table, keys[:50]).any() and len(table) == 50
    table.check()
    twin.check()


@pytest.mark.parametrize("device", DEVICES)
def test_no_batch_follows_that_may_not_fit(device: str) -> None:
    keys = np.arange(5000, dtype=np.uint32)
    table = made("u4", "u4", 7 * 300, device)
    for first in range(0, 4 * store_of(table).slots // 5, 200):
        before = awaited(table)
        add(table, keys[first : first + 200])
        assert awaited(table) in (0, 200, before + 200)
        state = store_of(table).state
        assert (
            not awaited(table)
            or state.size + awaited(table) <= 0.9 * store_of(table).safe_load_factor * state.array.slots
        )
    assert len(table) == first + 200
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_more_batches_than_answers_are_kept(device: str) -> None:
    table, keys = made("u4", "u4", 7 * 3000, device), np.arange(20_000, dtype=np.uint32)
    store = store_of(table)
    for k in range(150):
        assert add(table, keys[60 * k : 60 * k + 60]).all()
        assert 0 < len(store.state.left) <= one_launch.MOST_LEFT
    assert len(table) == 9000 and not store.state.left and (table.find(keys[:9000])[0] == ~keys[:9000]).all()
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_large_batches_are_left_one_behind_another(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their keys are counted when there is no room behind them, and then the next batch is left, too."""
    monkeypatch.setattr(one_launch, "_KEPT_PAIRS", 0)
    table, keys = made("u4", "u4", 7 * 20_000, device), np.arange(100_000, dtype=np.uint32)
    add(table, keys[:10])
    assert len(table) == 10
    with launches(table) as launched:
        for k, waits in enumerate((9000, 18_000, 9000, 18_000)):
            batch = keys[9000 * k : 9000 * k + 9000]
            assert add(table, batch).sum() == 9000 - 10 * (k == 0)
            assert awaited(table) in (waits, 9000), "the first ones may have ended"
        assert entries(launched) == ["update_locked", "update_few"] * 4
    assert not table.assign(keys[:36_000:9], keys[:36_000:9]).any() and awaited(table)
    assert len(table) == 36_000 and not awaited(table)
    assert (table.find(keys[:36_000])[0] == np.where(keys[:36_000] % 9, ~keys[:36_000], keys[:36_000])).all()
    assert not table.contains(keys[36_000:]).any()
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_large_batch_without_memory_for_its_pairs_is_waited_for(device: str) -> None:
    table, keys = made("u4", "u4", 7 * 15_000, device), np.arange(9000, dtype=np.uint32)
    add(table, keys[:10])
    engine = array_of(table).engine
    allocate = engine.allocate

    def refused(nbytes: int, stream: Any = None) -> Any:
        if nbytes > 8 * 9000:
            raise MemoryError("refused")
        return allocate(nbytes, stream)

    with mock.patch.object(engine, "allocate", refused):
        assert add(table, keys).sum() == 8990 and not awaited(table)
    assert len(table) == 9000 and (table.find(keys)[0] == ~keys).all()
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_more_elements_are_left_than_a_block_has_threads(device: str) -> None:
    """Copies of one new key: most of them find their lock taken. And keys of one range, which has no slots for all."""
    with mock.patch.multiple(route, MOST_FOR_A_BUCKET=0, FEW_FOR_A_BUCKET=1000):
        table = made("u4", "u4", 7 * 6000, device)
        add(table, np.arange(10, dtype=np.uint32))
        keys = np.where(np.arange(9000) % 3, 77, np.arange(100, 9100)).astype(np.uint32)
        assert table.assign(keys, np.arange(9000, dtype=np.uint32)).sum() == 3001 and awaited(table)
        assert len(table) == 3011 and (table.find(keys[::3])[0] == np.arange(0, 9000, 3)).all()
        assert keys[table.find(np.array([77], np.uint32))[0]][0] == 77
        hashes = np.arange(6000) * ((1 << 32) // array_of(table).ranges // 6001)
        crowd = keys_with(table, hashes.astype(np.uint32))
        before = np.count_nonzero(table.contains(crowd))
        assert add(table, np.concatenate([crowd, crowd[::2]])).sum() == 6000 - before and awaited(table)
        assert add(table, crowd[::-1].copy()).sum() == 0 and awaited(table) > 9000  # many of them are adopted
        assert len(table) == 9011 - before and table.contains(crowd).all()
        table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_table_of_few_pairs_is_not_waited_for(device: str) -> None:
    keys = np.arange(300, dtype=np.uint32)
    table = HashMap.from_arrays(keys, ~keys, design="quotient_cuckoo", device=device)
    assert awaited(table) == 300
    values, found = table.find(np.arange(400, dtype=np.uint32))
    assert (values[:300] == ~keys).all() and found[:300].all() and not found[300:].any()
    assert len(table) == 300 and not awaited(table)
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_table_that_is_dropped_behind_a_batch_is_freed_at_once(device: str) -> None:
    table = made("u4", "u4", 7 * 300, device)
    add(table, np.arange(100, dtype=np.uint32))
    store = weakref.ref(store_of(table))
    assert awaited(table)
    del table
    assert store() is None


@pytest.fixture(params=["few", "locked"])
def small_ranges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of two buckets: a few more keys than a range has slots are found soon. In one launch or in two."""
    monkeypatch.setattr(quotient, "MOST_RANGE_BUCKETS", 2)
    if request.param == "locked":
        monkeypatch.setattr(route, "MOST_FOR_A_BUCKET", 0)
        monkeypatch.setattr(route, "FEW_FOR_A_BUCKET", 1000)


def overfull(device: str, key: str = "u4", value: str | None = "u4") -> tuple[Any, Any]:
    """A table, and more keys of its first range than that has slots."""
    table = made(key, value, 7 * 60, device)
    store_of(table).finish()
    array_of(table)._is_blank = False  # so a batch under locks is left, too
    bits = 8 * int(key[1])
    hashes = np.arange(40) * ((1 << bits) // array_of(table).ranges // 41)
    assert array_of(table).table.range_buckets == 2
    return table, keys_with(table, hashes.astype(key))


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value"), SLOTS)
def test_pairs_that_find_no_slot_are_adopted(device: str, key: str, value: str | None) -> None:
    """The caller may overwrite the batch as soon as the call returns."""
    table, keys = overfull(device, key, value)
    engine, twice = array_of(table).engine, np.random.default_rng(3).permutation(np.repeat(keys, 2))
    at, values, flags = (
        engine.from_host(twice),
        engine.from_host(value_of(twice, value)),
        engine.from_host(np.full(80, 9, np.uint8)),
    )
    storage_of(table).update(Batch(at.ptr, values.ptr if value else 0, 80, flags=flags.ptr))
    for overwritten in (at, values):
        engine.fill(overwritten.ptr, 0xFF, overwritten.nbytes)
    assert awaited(table) == 80 and store_of(table).rebuilds == 0
    assert len(table) == 40 and store_of(table).rebuilds > 0
    added = engine.to_host(flags.ptr, np.uint8, 80)
    assert sorted(twice[added == 1].tolist()) == sorted(keys.tolist()) and set(added.tolist()) == {0, 1}
    assert table.contains(keys).all() and (not value or (table.find(keys)[0] == value_of(keys, value)).all())
    table.check()


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize("device", DEVICES)
def test_one_of_the_values_of_an_adopted_key_is_kept_whole(device: str) -> None:
    table, keys = overfull(device)
    twice = np.random.default_rng(3).permutation(np.repeat(keys, 2))
    numbers = np.arange(80, dtype=np.uint32)
    assert np.count_nonzero(table.assign(twice, numbers)) == 40 and awaited(table)
    kept = table.find(keys)[0]
    assert (twice[kept] == keys).all() and len(table) == 40
    table.check()


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value"), SLOTS)
def test_a_batch_that_follows_finds_the_adopted_pairs(device: str, key: str, value: str | None) -> None:
    table, keys = overfull(device, key, value)
    rng = np.random.default_rng(4)
    assert add(table, keys[:30]).all() and awaited(table) == 30
    again = rng.permutation(np.concatenate([keys, keys[:7]]))
    assert sorted(again[add(table, again)].tolist()) == sorted(keys[30:].tolist()) and awaited(table) == 77
    wanted = value_of(keys, value)
    if value:
        wanted = keys.astype(value)
        assert not table.assign(keys[::-1].copy(), wanted[::-1].copy()).any() and awaited(table) == 117
    assert not add(table, keys).any() and len(table) == 40 and store_of(table).rebuilds > 0
    assert table.contains(keys).all() and (not value or (table.find(keys)[0] == wanted).all())
    table.check()


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize("device", DEVICES)
def test_other_hash_constants_part_keys_that_larger_tables_do_not(device: str) -> None:
    """Keys of one range, however many ranges there are."""
    table, _ = overfull(device)
    keys = keys_with(table, np.arange(40, dtype=np.uint32))
    assert add(table, keys).all() and awaited(table) and len(table) == 40
    assert (table.find(keys)[0] == ~keys).all() and store_of(table).slots < 7 * 6000
    table.check()


def with_adopted_pairs() -> tuple[Any, Any]:
    """A table with adopted pairs, whose batches nobody has waited for, and its keys."""
    table, keys = overfull("emulated")
    assert add(table, keys[:25]).all() and add(table, keys).sum() == 15 and awaited(table) == 65
    return table, keys


def with_a_batch_before() -> tuple[Any, Any]:
    table, keys = overfull("emulated")
    assert add(table, keys[:25]).all()
    return table, keys


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestFaults:
    @pytest.mark.parametrize("once", [True, False])
    def test_a_refused_allocation_loses_no_adopted_pair(self, once: bool) -> None:
        refused, calls = (
            0,
            at_each_allocation(with_adopted_pairs, lambda made: len(made[0]), once=once, device="emulated"),
        )
        for (table, keys), said, _ in calls:
            assert len(table) == 40 and (table.find(keys)[0] == ~keys).all()
            table.check()
            refused += bool(said)
        assert refused > 3

    @pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
    def test_an_interrupt_loses_no_adopted_pair(self, every: int) -> None:
        lines = 0
        for (table, keys), place, _ in at_each_line(with_adopted_pairs, lambda made: len(made[0]), every=every):
            assert len(table) == 40 and (table.find(keys)[0] == ~keys).all(), place
            table.check()
            lines += every
        assert lines > 50

    @pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
    def test_an_interrupt_of_a_batch_that_follows(self, every: int) -> None:
        """Each key of the batch is out or in; those before it are in."""
        lines, seen = 0, set()
        for (table, keys), place, _ in at_each_line(
            with_a_batch_before, lambda made: made[0].insert(made[1], ~made[1]), every=every
        ):
            size = len(table)
            there = table.contains(keys)
            assert there[:25].all() and np.count_nonzero(there) == size, place
            assert (table.find(keys[there])[0] == ~keys[there]).all(), place
            table.check()
            seen.add(size)
            lines += every
        assert seen >= {25, 40} and lines > 50
