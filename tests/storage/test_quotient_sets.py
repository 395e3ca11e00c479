"""Batches that passes bring to the ranges of a quotient table, of which a block has a set."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import one_of_each
from support.passes import in_passes
from support.quotients import SLOTS, add, array_of, check_combined, entries, launches, made, value_of
from warphash import TableFull

DEVICES = one_of_each("emulated", "cuda")
TYPES = [(*types, slots) for types, slots in SLOTS.items()]
"""Types of keys and of values, and slots of a bucket."""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value", "slots"), TYPES)
@pytest.mark.parametrize(("range_buckets", "tenths"), [(4, 3), (64, 9)])
def test_one_kernel_follows_the_passes(
    device: str, key: str, value: str | None, slots: int, range_buckets: int, tenths: int
) -> None:
    """While the table fills up, and no single move makes room for some keys."""
    with in_passes(range_buckets, by_sets=True):
        table = made(key, value, slots * 300, device, on_full="raise")
        most = slots * 300 * tenths // 10
        keys, added = np.random.default_rng(2).permutation(np.arange(slots * 300)).astype(key), 0
        for few in np.array_split(keys[:most], 5):
            batch = np.concatenate([few, few[:20], keys[: added // 2]])
            with launches(table) as launched:
                flags = add(table, batch)
            assert entries(launched) == ["apply_to_sets" if added else "build"]
            assert sorted(batch[flags].tolist()) == sorted(few.tolist())
            added += len(few)
            assert len(table) == added and table.contains(keys[:added]).all()
            table.check()
        assert not table.contains(keys[added:]).any()
        assert not value or (table.find(keys[:added])[0] == value_of(keys[:added], value)).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("times", [1024, 1025, 3000], ids=["as many as a range may have", "one more", "many more"])
def test_one_key_in_many_elements(device: str, times: int) -> None:
    """Up to a bound, each of its elements has a turn under the lock. With more, a block has their range."""
    with in_passes(64, by_sets=True):
        table = made("u4", "u4", 7 * 1000, device)
        add(table, np.array([1], np.uint32))
        for hot in (1, 2):  # a key that is there, and one that is new
            keys = np.full(times, hot, np.uint32)
            values = np.random.default_rng(3).integers(0, 1 << 32, times, np.uint32)
            before = {1: ~np.uint32(1)} if hot == 1 else {}
            with launches(table) as launched:
                added = table.upsert(keys, values, "add")
            assert entries(launched) == ["apply_to_sets"] + ["apply"] * (times > 1024)
            assert np.count_nonzero(added) == len(table) - 1 == hot - 1
            check_combined(table, "add", keys, values, before)
        table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_hot_ranges_and_elements_without_room_in_one_batch(device: str) -> None:
    with in_passes(32, by_sets=True):
        table = made("u8", "u4", 4 * 320, device, on_full="raise")
        keys = np.random.default_rng(4).permutation(np.arange(4 * 320)).astype(np.uint64)
        assert add(table, keys[:900]).all()
        hot = np.repeat(keys[:2], 3000)
        batch = np.random.default_rng(5).permutation(np.concatenate([keys[900:1000], hot]))
        with launches(table) as launched:
            added = table.upsert(batch, np.ones(len(batch), np.uint32), "add")
        assert set(entries(launched)) == {"apply_to_sets", "apply"}
        assert sorted(batch[added].tolist()) == sorted(keys[900:1000].tolist()) and len(table) == 1000
        expected = np.where(np.arange(1000) < 900, value_of(keys[:1000], "u4"), np.uint32(1))
        expected[:2] += np.uint32(3000)
        assert (table.find(keys[:1000])[0] == expected).all() and not table.contains(keys[1000:]).any()
        table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_that_does_not_fit_is_taken_back(device: str) -> None:
    with in_passes(by_sets=True):
        table = made("u4", "u4", 7 * 20, device, on_full="raise")
        keys = np.arange(300, dtype=np.uint32)
        add(table, keys[:60])
        with pytest.raises(TableFull):
            add(table, keys)
        assert len(table) == 60 and (table.find(keys[:60])[0] == ~keys[:60]).all()
        assert not table.contains(keys[60:]).any()
        assert array_of(table).broken_buckets() == 0
        table.check()
