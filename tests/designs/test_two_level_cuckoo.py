"""Two-level cuckoo hashing: what does not depend on a device, and buckets of the first level that get too many keys."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest

from designs.published import HH_HASH
from support.engines import one_of_each
from support.faults import at_each_allocation, at_each_line
from support.hashing import first_buckets
from support.inside import storage_of
from warphash import HashMap, HashSet, TableFull
from warphash.errors import ParameterError
from warphash.storage.batch import Batch
from warphash.storage.batch_order import hot_keys
from warphash.storage.two_level import array as two_level

DEVICES = one_of_each("cpu", "emulated")
N = 200_000


def made(n: int, **options: Any) -> HashMap:
    """A table of n pairs as the authors' trace has them: (i + 1, 3 i + 5)."""
    ids = np.arange(n, dtype=np.uint32)
    options = {"design": "two_level_cuckoo", "device": "cpu", "seed": 5, **options}
    return HashMap.from_arrays(ids + 1, 3 * ids + 5, **options)


def array_of(table: Any) -> Any:
    return storage_of(table).store.array


def keys_of_bucket(table: Any, bucket: int, n: int, dtype: str = "u4") -> Any:
    """Keys from 2^24 on that the first level brings to one bucket."""
    array = array_of(table)
    drawn = np.arange(1 << 24, (1 << 24) + 2 * n * array.buckets, dtype=dtype)
    found = drawn[first_buckets(array, drawn) == bucket][:n]
    assert len(found) == n
    return found


# ---- figures that do not depend on a device
@pytest.mark.parametrize(
    ("hashes", "load_factor", "share"), [(2, 0.35, 0.719), (2, 0.25, 0.787), (3, 0.35, 0.619), (4, 0.5, 0.432)]
)
def test_the_first_round_keeps_its_share(hashes: int, load_factor: float, share: float) -> None:
    load = hashes * load_factor  # of the first subtable, before any key is displaced
    assert share == pytest.approx((1 - math.exp(-load)) / load, abs=0.001)
    table = made(N, hashes=hashes, load_factor=load_factor)
    counts = table.probe_counts(np.arange(1, N + 1, dtype=np.uint32))
    assert np.mean(counts == 1) == pytest.approx(share, abs=0.005)


def test_the_first_round_of_the_default_table_keeps_the_published_share() -> None:
    counts = made(N).probe_counts(np.arange(1, N + 1, dtype=np.uint32))
    assert np.mean(counts == 1) == pytest.approx(HH_HASH.first_round, abs=0.02)


def test_a_find_of_the_default_table_reads_few_slots() -> None:
    table = made(N)
    present, absent = (np.arange(first, first + N, dtype=np.uint32) for first in (1, N + 1))
    assert table.probe_counts(present).mean() == pytest.approx(1.28, abs=0.01)
    assert table.probe_counts(absent).mean() == pytest.approx(2 - math.exp(-0.7), abs=0.01)


@pytest.mark.parametrize("range_slots", [256, 1024])
@pytest.mark.parametrize("family", ["universal", "mixer"])
def test_n_squared_slots_leave_less_than_half_a_collision_a_bucket(range_slots: int, family: str) -> None:
    """FKS: n (n - 1) / 2 pairs of keys meet in n^2 slots with probability 1 / n^2 each."""
    table = made(N, hashes=2, range_slots=2 * range_slots, sizing="squared", hash=family)
    keys_per_bucket = math.isqrt(range_slots)
    assert N / array_of(table).buckets == pytest.approx(keys_per_bucket, rel=0.01)
    collisions = np.count_nonzero(table.probe_counts(np.arange(1, N + 1, dtype=np.uint32)) > 1)
    # The number of keys of a bucket has a Poisson distribution, or consecutive keys are spread more evenly.
    assert 0.3 < collisions / array_of(table).buckets < HH_HASH.collisions


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("family", ["universal", "mixer"])
def test_squared_buckets_of_a_single_function_have_no_collision(device: str, family: str) -> None:
    n = 20_000 if device == "cpu" else 2000
    table = made(n, device=device, hashes=1, sizing="squared", range_slots=256, hash=family)
    table.check()
    assert table.load_factor == pytest.approx(1 / 16, rel=0.03)
    keys = np.arange(1, 2 * n + 1, dtype=np.uint32)
    assert table.insert(keys, 3 * keys + 2).sum() == n
    table.check()
    values, found = table.find(keys)
    assert found.all() and (values == 3 * keys + 2).all()
    assert (table.probe_counts(np.arange(1, 3 * n, dtype=np.uint32)) == 1).all()


def test_bytes_of_a_pair() -> None:
    table = made(N)
    assert table.load_factor == pytest.approx(HH_HASH.reg_load, abs=0.001)
    assert table.stats().nbytes / N < 26 < HH_HASH.pair_bytes / 4
    assert table.stats().nbytes / N == pytest.approx(8 / 0.35, abs=0.2)
    array = array_of(table)
    slots_bytes = array.slots * array.spec.slot_bytes
    assert (table.stats().nbytes - slots_bytes - 64) / array.buckets == 20 < HH_HASH.bucket_bytes


@pytest.mark.parametrize("device", DEVICES)
def test_ranges_lie_in_several_segments(device: str) -> None:
    with mock.patch.object(two_level, "_SEGMENT_BYTES", 1 << 12):
        table = made(2000, device=device, range_slots=128)
        assert len(array_of(table).segments) > 4
        twin = table.copy()
    for one in (table, twin):
        one.check()
        assert len(one.to_arrays()[0]) == 2000
    twin.erase(np.arange(1, 1001, dtype=np.uint32))
    assert len(table) == 2000 and table.contains(np.arange(1, 2001, dtype=np.uint32)).all()


def test_few_buckets_draw_other_seeds() -> None:
    table = made(N)
    seeds = array_of(table)._entries(None)["seed"]
    fresh = array_of(table).sibling(table.stats().slots, array_of(table).seed)._entries(None)["seed"]
    assert 0 <= np.count_nonzero(seeds != fresh) <= 0.01 * len(seeds)


def test_one_round_makes_buckets_draw_seeds_until_no_two_keys_meet() -> None:
    table = made(N, rounds=1, load_factor=0.004)
    table.check()
    assert (table.probe_counts(np.arange(1, N + 1, dtype=np.uint32)) == 1).mean() > 0.99


def test_a_table_shrinks_to_fewer_buckets() -> None:
    table = made(N)
    before = array_of(table).buckets
    table.erase(np.arange(1, N - 999, dtype=np.uint32))
    table.shrink()
    assert len(table) == 1000 and array_of(table).buckets < before / 100
    table.check()


# ---- batches
@pytest.mark.parametrize("device", DEVICES)
def test_a_build_of_repeated_keys_keeps_one_pair_of_each(device: str) -> None:
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 600, 900).astype(np.uint32)
    for reserved in (False, True):
        given = np.where(keys < 3, np.uint32(0xFFFFFFFF) - keys, keys).astype(np.uint32) if reserved else keys
        table = HashMap.from_arrays(given, given, design="two_level_cuckoo", device=device, capacity=3000)
        table.check()
        held, values = table.to_arrays()
        assert sorted(held.tolist()) == np.unique(given).tolist() and (held == values).all()
        assert len(table) == len(held)


@pytest.mark.parametrize("device", DEVICES)
def test_small_batches_change_a_large_table_in_place(device: str) -> None:
    table = made(3000, device=device, range_slots=256, capacity=6000)
    address = array_of(table).table.directory
    for at in range(0, 200, 20):
        keys = np.arange(10_000 + at, 10_020 + at, dtype=np.uint32)
        assert table.insert(keys, keys).all()
        assert table.erase(keys[::2]).all()
        table.check()
    assert array_of(table).table.directory == address and len(table) == 3100


def test_cycles_of_erases_and_inserts() -> None:
    table = HashSet("u4", design="two_level_cuckoo", capacity=5000, device="cpu", seed=2)
    for turn in range(60):
        keys = np.arange(turn * 4000, (turn + 1) * 4000, dtype=np.uint32)
        assert table.insert(keys).all()
        table.check()
        assert table.erase(keys).all() and len(table) == 0
    assert table.stats().slots < 4 * 5000 / 0.35


# ---- buckets with too many keys
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize("n", [150, 400])
def test_keys_that_meet_in_the_first_level(device: str, on_full: str, n: int) -> None:
    table = made(1000, device=device, range_slots=256, capacity=2000, on_full=on_full)
    colliding = keys_of_bucket(table, 3, n)
    assert table.insert(colliding, colliding).all()
    table.check()
    values, found = table.find(colliding)
    assert found.all() and (values == colliding).all() and len(table) == 1000 + n
    assert table.contains(np.arange(1, 1001, dtype=np.uint32)).all()


def test_a_single_bucket_gets_a_larger_range() -> None:
    table = made(20_000, range_slots=512, capacity=40_000)
    before = array_of(table)
    colliding = keys_of_bucket(table, 7, 300)
    table.insert(colliding, colliding)
    after = array_of(table)
    assert after is before and len(after.segments) == 2
    slots = after._entries(None)["slots"]
    assert slots[7] == 2 * slots[8] and slots.sum() == table.stats().slots
    table.check()
    table.copy().check()
    table.reserve(60_000)
    assert len(array_of(table).segments) == 1 and len(table) == 20_300


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize("unique", [True, False])
def test_a_bucket_that_fails_in_one_piece_of_a_batch_is_retried_with_the_next(
    device: str, on_full: str, unique: bool
) -> None:
    table = made(1000, device=device, range_slots=256, capacity=2000, on_full=on_full)
    colliding = keys_of_bucket(table, 3, 170)
    with mock.patch.object(two_level, "CLAIMED_ELEMENTS", 8):
        table.insert(colliding, colliding, assume_unique=unique)
    table.check()
    values, found = table.find(colliding)
    assert found.all() and (values == colliding).all() and len(table) == 1170
    assert len(array_of(table).segments) == 2 or on_full == "grow"


@pytest.mark.parametrize("device", DEVICES)
def test_a_build_of_keys_that_meet_in_the_first_level(device: str) -> None:
    empty = HashMap("u4", "u4", design="two_level_cuckoo", device=device, capacity=1000, range_slots=256, seed=9)
    colliding = keys_of_bucket(empty, 1, 600)
    empty.insert(colliding, colliding, assume_unique=True)
    empty.check()
    assert len(empty) == 600 and empty.contains(colliding).all()


@pytest.mark.parametrize("capacity", [10, 60, 1000, 5000])
@pytest.mark.parametrize("parameters", [{}, {"range_slots": 64}, {"hashes": 4}])
def test_a_table_of_fixed_size_stays_so(capacity: int, parameters: dict[str, int]) -> None:
    table = HashSet("u4", design="two_level_cuckoo", capacity=capacity, device="cpu", on_full="raise", **parameters)
    slots, at, step = table.stats().slots, 0, 16
    while step:
        keys = np.arange(at, at + step, dtype=np.uint32)
        try:
            table.insert(keys)
            at += step
        except TableFull:
            step //= 2
        assert len(table) == at <= slots
        assert table.stats().slots <= 9 / 8 * slots
    table.check()
    assert at >= capacity and table.contains(np.arange(at, dtype=np.uint32)).all()


def test_a_batch_that_finds_no_layout_is_taken_back() -> None:
    table = made(10_000, range_slots=256, capacity=20_000, on_full="raise", attempts=1)
    erased = np.arange(1, 101, dtype=np.uint32)
    table.erase(erased)
    colliding = keys_of_bucket(table, 3, 1500)
    with pytest.raises(TableFull) as caught:
        table.insert(colliding, colliding)
    assert 0 < len(caught.value.keys) <= 1500
    table.check()
    assert len(table) == 9900 and not table.contains(colliding).any()
    assert table.contains(np.arange(101, 10_001, dtype=np.uint32)).all()


def _with_collisions() -> tuple[HashMap, Any]:
    table = made(1000, range_slots=256, capacity=4000)
    return table, keys_of_bucket(table, 3, 150)


def _whole(table: HashMap, colliding: Any, all_in: bool) -> None:
    table.check()
    held = table.contains(colliding)
    assert held.all() or not all_in
    assert table.contains(np.arange(1, 1001, dtype=np.uint32)).all()
    assert len(table) == 1000 + np.count_nonzero(held) == len(table.to_arrays()[0])
    table.insert(colliding, colliding)
    assert len(table) == 1150
    table.check()


def _insert(given: tuple[Any, Any]) -> None:
    table, colliding = given
    table.insert(colliding, colliding)


@pytest.mark.slow
def test_an_interrupt_while_a_bucket_gets_a_larger_range() -> None:
    calls = 0
    for (table, colliding), place, _ in at_each_line(_with_collisions, _insert):
        if place:
            _whole(table, colliding, False)
        calls += 1
    assert calls > 100


@pytest.mark.parametrize("once", [True, False])
def test_a_refused_allocation_while_a_bucket_gets_a_larger_range(once: bool) -> None:
    for (table, colliding), said, _ in at_each_allocation(_with_collisions, _insert, once=once):
        assert not said or (len(table) == 1000 and not table.contains(colliding).any())
        _whole(table, colliding, not said)


# ---- parameters
@pytest.mark.parametrize(
    "wrong",
    [
        {"hashes": 0},
        {"hashes": 5},
        {"reg_load": 0},
        {"reg_load": 1},
        {"sizing": "n"},
        {"range_slots": 32},
        {"range_slots": 4096},
    ],
)
def test_parameters_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        HashMap("u4", "u4", design="two_level_cuckoo", device="cpu", **wrong)


def test_the_load_of_a_regular_bucket_is_the_default_of_the_load_factor() -> None:
    assert made(N, reg_load=0.2).load_factor == pytest.approx(0.2, abs=0.001)
    assert made(N, reg_load=0.2, load_factor=0.3).load_factor == pytest.approx(0.3, abs=0.001)


@pytest.mark.parametrize("given", [{}, {"load_factor": 0.01}])
def test_a_single_function_needs_squared_buckets(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="hashes=1 needs sizing='squared'"):
        HashMap("u4", "u4", design="two_level_cuckoo", device="cpu", hashes=1, **given)


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
@pytest.mark.parametrize("key", ["u4", "u8"])
def test_keys_that_repeat_often_are_inserted_and_not_built(
    device: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU, where all elements of a key go to one bucket."""
    monkeypatch.setattr(hot_keys, "FEWEST_AGGREGATED", 1 << 10)
    numbers = np.random.default_rng(3).permutation(np.arange(4000) % 400)
    build, built = two_level.TwoLevelArray.build, list[int]()

    def noted(self: Any, batch: Any) -> Any:
        built.append(batch.n)
        return build(self, batch)

    monkeypatch.setattr(two_level.TwoLevelArray, "build", noted)
    for repeats, batch in ((True, numbers), (False, np.arange(4000))):
        keys = batch.astype(key)
        table = HashMap.from_arrays(keys, batch.astype("u4"), design="two_level_cuckoo", device=device)
        assert bool(built) != repeats
        assert len(table) == len(np.unique(batch))
        assert (table.find(keys)[0] == batch).all()
        table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_a_second_build_asks_for_no_second_answer(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer of a sample is pinned memory, which takes a GPU long to allocate."""
    monkeypatch.setattr(hot_keys, "FEWEST_AGGREGATED", 1 << 10)
    table = HashMap("u4", "u4", capacity=4000, design="two_level_cuckoo", device=device)
    store, answers = storage_of(table).store, list[int]()
    engine = store.engine
    keys, answer = engine.from_host(np.arange(4000, dtype="u4")), engine.answer

    def noted(words: int) -> Any:
        answers.append(words)
        return answer(words)

    monkeypatch.setattr(engine, "answer", noted)
    for _ in range(2):
        store.clear()
        store.update(Batch(keys.ptr, keys.ptr, 4000))  # without flags, which a build of unvouched keys does not write
        assert len(table) == 4000
    assert answers == [2]
