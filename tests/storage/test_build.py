"""A CPU builds a table from its first batch part by part: nothing lost, nothing doubled, whatever the batch is like."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from support.hashing import first_buckets
from support.inside import parts_of, storage_of
from warphash import HashMap, HashSet, TableFull
from warphash.runtime.abi import Op
from warphash.runtime.cpu import CpuEngine
from warphash.runtime.devices import engine_for
from warphash.storage.batch_order import parts
from warphash.storage.buckets import store
from warphash.storage.buckets.array import BucketArray
from warphash.storage.scratch import Workbench
from warphash.table.base import BaseTable

BCHT = {"design": "bucketed_cuckoo", "slots_per_bucket": 8}
SETTINGS: list[dict[str, Any]] = [
    {"design": "cuckoo"},
    BCHT,
    {"design": "bucketed_cuckoo", "slots_per_bucket": 32, "hashes": 2, "hash": "universal"},
    {"design": "megakv"},
    {"design": "iceberg"},
    {"design": "linear_probing"},
]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts so small that tables of a few thousand keys have many."""
    monkeypatch.setattr(engine_for("cpu"), "stage_bytes", 1024)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Of each attempt at a build, whether it took place and did all."""
    made: list[bool] = []
    build = BucketArray.build

    def spied(*args: Any) -> Any:
        outcome = build(*args)
        made.append(outcome is not None and outcome.complete)
        return outcome

    def unseen(table: BaseTable, keys: Any) -> int:
        seen = len(made)
        number = distinct(table, keys)
        del made[seen:]  # of the set that `check` makes
        return number

    distinct = BaseTable._distinct
    monkeypatch.setattr(BaseTable, "_distinct", unseen)
    monkeypatch.setattr(BucketArray, "build", spied)
    yield made


def some_keys(n: int, dtype: str, seed: int = 1) -> np.ndarray:
    """Unique keys, in no order, with the reserved ones."""
    top = np.iinfo(dtype).max
    drawn = np.unique(np.random.default_rng(seed).integers(0, top - 2, 2 * n + 9, dtype, endpoint=True))
    keys = np.concatenate([drawn[: n - 3], np.array([top, top - 1, top - 2], dtype)])
    np.random.default_rng(seed).shuffle(keys)
    return keys.astype(dtype)


def check_map(table: HashMap, keys: np.ndarray) -> None:
    """The table has just these keys, each with the number of an element that had it."""
    distinct = np.unique(keys)
    assert len(table) == len(distinct)
    assert (np.sort(table.keys()) == distinct).all()
    numbers, found = table.find(distinct)
    assert found.all() and (keys[numbers] == distinct).all()
    assert not table.contains(np.setdiff1d(some_keys(500, str(keys.dtype), seed=99), distinct)).any()
    table.check()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("n", [3000, 70_001])
def test_every_key_is_there_once(
    setting: dict[str, Any],
    dtype: str,
    threads: int,
    n: int,
    builds: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WARPHASH_NUM_THREADS", str(threads))
    keys = some_keys(n, dtype)
    twice = np.concatenate([keys[: n // 2], keys[: n // 3]])
    for batch, unique in ((keys, True), (keys, False), (twice, False)):
        numbers = np.arange(len(batch)).astype(dtype)
        table = HashMap.from_arrays(batch, numbers, assume_unique=unique, device="cpu", seed=n, **setting)
        check_map(table, batch)
        keys_alone = HashSet.from_arrays(batch, assume_unique=unique, device="cpu", **setting)
        assert (np.sort(keys_alone.keys()) == np.unique(batch)).all()
        keys_alone.check()
    assert builds == [True] * 6


@pytest.mark.parametrize("stage_bytes", [1 << 15, 1 << 17])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_build_over_an_older_one(
    stage_bytes: int, threads: int, builds: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of several runs, not all of which are used: what is behind these is no pair of this batch."""
    monkeypatch.setattr(engine_for("cpu"), "stage_bytes", stage_bytes)
    monkeypatch.setenv("WARPHASH_NUM_THREADS", str(threads))
    table = HashMap("uint32", "uint32", capacity=80_000, device="cpu", **BCHT)
    for seed, n in enumerate((80_000, 35_000, 70_001)):
        keys = some_keys(n, "uint32", seed)
        assert table.insert(keys, np.arange(n, dtype=np.uint32), assume_unique=True).all()
        check_map(table, keys)
        table.clear()
    assert builds == [True] * 3


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("kinds", [1, 2, 40, 3000])
def test_few_keys_many_times(kinds: int, threads: int, builds: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Far more copies than a part has room for."""
    monkeypatch.setenv("WARPHASH_NUM_THREADS", str(threads))
    keys = np.random.default_rng(kinds).choice(some_keys(max(kinds, 3), "uint32")[:kinds], 80_000)
    check_map(HashMap.from_arrays(keys, np.arange(len(keys), dtype=np.uint32), device="cpu", **BCHT), keys)
    check_map(HashMap.from_arrays(np.sort(keys), np.arange(len(keys)), device="cpu", **BCHT), np.sort(keys))
    assert builds == [True, True]


@pytest.mark.parametrize("bits", [33, 64])
def test_copies_of_reserved_keys(bits: int, builds: list[bool]) -> None:
    dtype = "uint32" if bits == 33 else "uint64"
    keys = some_keys(4000, dtype)
    keys[::2] = np.iinfo(dtype).max - np.arange(2000, dtype=dtype) % 3
    check_map(HashMap.from_arrays(keys, np.arange(4000), device="cpu", **BCHT), keys)
    assert builds == [True]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("load_factor", [0.13, 0.5, 0.9, 0.99])
def test_any_load_factor(setting: dict[str, Any], load_factor: float, builds: list[bool]) -> None:
    for n in (4001, 4002, 4099):
        keys = some_keys(n, "uint32")
        for unique in (True, False):
            options = {"device": "cpu", "load_factor": load_factor, "assume_unique": unique, **setting}
            check_map(HashMap.from_arrays(keys, np.arange(n), **options), keys)
    assert builds == [True] * 6 or load_factor > 0.2


@pytest.mark.parametrize("slots", [1, 7, 8, 9, 63, 64, 65, 513])
def test_small_tables(slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for stage_bytes in (64, 128, 512, 4096):
        monkeypatch.setattr(engine_for("cpu"), "stage_bytes", stage_bytes)
        keys = some_keys(max(3, slots), "uint32")[:slots]
        for setting in SETTINGS:
            check_map(HashMap.from_arrays(keys, np.arange(slots), device="cpu", **setting), keys)
            assert (np.sort(HashSet.from_arrays(keys, device="cpu", **setting).keys()) == np.sort(keys)).all()


def test_buckets_are_first_buckets_where_there_is_room(builds: list[bool]) -> None:
    keys = some_keys(3000, "uint32")
    keys = keys[keys < 2**32 - 3]  # without the reserved ones
    table = HashMap.from_arrays(keys, ~keys, assume_unique=True, device="cpu", load_factor=0.5, seed=1, **BCHT)
    loads = np.bincount(first_buckets(storage_of(table).store.array, keys))
    displaced = int(np.maximum(loads - 8, 0).sum())
    assert builds == [True] and 0 < displaced < 100
    at_home = (table.probe_counts(keys) == 1).sum()
    assert len(keys) - 2 * displaced <= at_home <= len(keys) - displaced


@pytest.mark.parametrize("unique", [True, False])
def test_a_table_that_is_full_names_the_keys_that_did_not_fit(unique: bool, builds: list[bool]) -> None:
    keys = some_keys(6000, "uint32")
    keys = keys[keys < 2**32 - 3]  # without the reserved ones
    capacity = len(keys) - 7
    options: dict[str, Any] = {"load_factor": 1.0, "on_full": "raise", "device": "cpu", **BCHT}
    for grown in (0, 8):  # with a batch larger than the table, and with one that only just fits
        table = HashSet("uint32", capacity=capacity + grown, **options)
        try:
            parts_of(table).updates.update("insert", keys, None, Op.KEEP, unique=unique, answers=False)
        except TableFull as error:
            left = np.asarray(error.keys)
            assert np.isin(left, keys).all() and len(np.unique(left)) == len(left)
            assert len(left) >= len(keys) - storage_of(table).store.array.slots
            assert len(table) == 0 and not table.contains(keys).any()
        else:
            assert grown and (np.sort(table.keys()) == np.sort(keys)).all()
            table.clear()
        table.check()
        assert table.insert(keys[:100]).all() and len(table) == 100


def test_a_batch_for_an_empty_table_says_what_it_added(builds: list[bool]) -> None:
    keys = some_keys(4000, "uint32")
    table = HashMap("uint32", "uint32", capacity=4000, device="cpu", **BCHT)
    for _ in range(2):
        assert table.insert(keys, ~keys, assume_unique=True).all()
        assert table.erase(keys).all() and len(table) == 0  # and the next build takes the tombstones away
    assert table.insert(keys, keys, assume_unique=True).all() and builds == [True] * 3
    assert (table.find(keys)[0] == keys).all() and storage_of(table).store.state.tombstones == 0
    table.check()
    table.clear()
    assert table.insert(np.concatenate([keys[:3000], keys[:900]]), np.arange(3900, dtype=np.uint32)).sum() == 3000
    assert len(builds) == 3, "a batch whose keys repeat is inserted"
    table.check()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_a_build_flags_one_element_of_each_key(
    setting: dict[str, Any], dtype: str, builds: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "3")
    monkeypatch.setattr(store, "seem_distinct", lambda *_: True)
    keys = some_keys(20_000, dtype)
    once, often = keys, np.concatenate([keys, keys[:500], keys[-3:], np.full(3000, keys[7])])
    for batch in (once, often):
        np.random.default_rng(2).shuffle(batch)
        table = HashMap(dtype, dtype, capacity=len(batch), device="cpu", seed=1, **setting)
        added = table.insert(batch, np.arange(len(batch)).astype(dtype))
        assert (np.sort(batch[added]) == np.unique(batch)).all()
        assert (table.find(batch[added])[0] == np.flatnonzero(added)).all(), (
            "the table has the values of these elements"
        )
        check_map(table, batch)
        keys_alone = HashSet(dtype, capacity=len(batch), device="cpu", **setting)
        assert (np.sort(batch[keys_alone.insert(batch)]) == np.unique(batch)).all()
    assert builds == [True] * 4


def test_without_memory_to_flag_a_build_the_batch_is_inserted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(store, "seem_distinct", lambda *_: True)
    monkeypatch.setattr(BucketArray, "flag_added", refuse)
    keys = some_keys(4000, "uint32")
    table = HashMap("uint32", "uint32", capacity=4000, device="cpu", **BCHT)
    batch = np.concatenate([keys[:3000], keys[:900]])
    added = table.insert(batch, np.arange(3900, dtype=np.uint32))
    assert (np.sort(batch[added]) == np.sort(keys[:3000])).all()
    check_map(table, batch)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_a_table_that_grows_is_built_from_the_old_one(
    setting: dict[str, Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "3")
    built, build_from = [], BucketArray.build_from

    def spied(*args: Any) -> Any:
        outcome = build_from(*args)
        built.append(outcome is not None and outcome.complete)
        return outcome

    monkeypatch.setattr(BucketArray, "build_from", spied)
    keys = some_keys(30_000, dtype)
    table = HashMap(dtype, dtype, capacity=9000, device="cpu", seed=1, **setting)
    numbers = np.arange(len(keys)).astype(dtype)
    table.insert(keys[-9000:], numbers[-9000:])
    assert table.erase(keys[-2000:-1000]).all()
    table.reserve(12_000)
    held = np.concatenate([keys[-9000:-2000], keys[-1000:]])
    values, found = table.find(held)
    assert found.all() and (values == np.concatenate([numbers[-9000:-2000], numbers[-1000:]])).all()
    assert built == [True] and len(table) == 8000 and storage_of(table).store.state.tombstones == 0
    assert not table.contains(keys[-2000:-1000]).any()
    table.check()
    for at in range(0, 30_000, 5000):
        table.insert(keys[at : at + 5000], numbers[at : at + 5000])
    check_map(table, keys)


@pytest.fixture
def joint_builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each build from a table and a batch at once, how many keys it added."""
    made: list[int] = []
    build = BucketArray.build_from_both

    def spied(*args: Any) -> Any:
        outcome = build(*args)
        made.append(outcome.changed)
        return outcome

    monkeypatch.setattr(BucketArray, "build_from_both", spied)
    return made


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_a_table_grows_for_new_keys_in_one_build(
    setting: dict[str, Any], dtype: str, joint_builds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "3")
    keys = some_keys(40_000, dtype)
    numbers = np.arange(len(keys)).astype(dtype)
    table = HashMap(dtype, dtype, device="cpu", seed=1, **setting)
    members = HashSet(dtype, device="cpu", seed=1, **setting)
    for at in range(0, 40_000, 4000):
        part = slice(at, at + 4000)
        assert table.insert(keys[part], numbers[part]).all() and members.insert(keys[part]).all()
        assert len(table) == at + 4000
    check_map(table, keys)
    assert (np.sort(members.keys()) == np.sort(keys)).all()
    assert len(joint_builds) >= 4 and set(joint_builds) <= set(range(8000, 40_001, 4000))


@pytest.mark.parametrize("odd", ["there", "twice"])
def test_a_batch_whose_sample_misled_is_inserted(
    odd: str, joint_builds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key that is in the table keeps its value, and one key that repeats is added once."""
    monkeypatch.setattr(store, "seem_new", lambda *_: True)
    keys = some_keys(12_000, "uint32")
    for which in range(0, 4000, 97):
        table = HashMap("uint32", "uint32", capacity=4000, device="cpu", **BCHT)
        table.insert(keys[:4000], np.arange(4000, dtype=np.uint32))
        batch = keys[4000:].copy()
        batch[which + 1] = keys[which] if odd == "there" else batch[which]
        added = table.insert(batch, np.arange(4000, 12_000, dtype=np.uint32))
        assert joint_builds[-1] == 11_999 == len(table)
        assert added.sum() == 7999 and added[which] | added[which + 1]
        held, numbers = np.append(keys[:4000], batch[added]), np.append(np.arange(4000), 4000 + np.flatnonzero(added))
        assert (table.find(held)[0] == numbers).all()
    table.check()


def test_a_joint_build_without_memory_leaves_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(BucketArray, "build_from_both", refuse)
    keys = some_keys(12_000, "uint32")
    table = HashMap.from_arrays(keys[:4000], np.arange(4000), device="cpu", **BCHT)
    assert table.insert(keys[4000:], np.arange(4000, 12_000)).all()
    check_map(table, keys)


def test_a_false_word_about_unique_keys_loses_none(builds: list[bool]) -> None:
    keys = some_keys(3000, "uint32")
    table = HashSet("uint32", capacity=4000, device="cpu", **BCHT)
    added = table.insert(np.concatenate([keys, keys[:500]]), assume_unique=True)
    assert builds == [True] and table.contains(keys).all()
    assert added.sum() == len(table)


def test_what_is_not_built(builds: list[bool]) -> None:
    keys = some_keys(4000, "uint32")
    for options in ({"capacity": 40_000}, {"capacity": 4000, "design": "power_of_two"}):
        check_map(HashMap.from_arrays(keys, np.arange(4000), device="cpu", **{**BCHT, **options}), keys)
    assert not any(builds)
    check_map(HashMap.from_arrays(keys, np.arange(4000), device="cpu", **{**BCHT, "capacity": 3000}), keys)
    assert builds[-1], "the table grows for the batch first"
    builds.clear()
    tried = len(builds)
    counted = HashSet.from_arrays(keys, device="cpu", count_probes=True, **BCHT)
    assert counted.stats().insert_probes >= 1 and len(builds) == tried


def test_without_memory_the_batch_goes_as_it_came(builds: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    keys = some_keys(4000, "uint32")
    table = HashSet("uint32", capacity=4000, device="cpu", **BCHT)
    allocate = CpuEngine.allocate

    def allocate_little(self: CpuEngine, nbytes: int, stream: Any = None) -> Any:
        if nbytes == 4 * len(keys):
            raise MemoryError
        return allocate(self, nbytes, stream)

    with monkeypatch.context() as context:
        context.setattr(CpuEngine, "allocate", allocate_little)
        assert table.insert(keys, assume_unique=True).all() and not builds
    assert (np.sort(table.keys()) == np.sort(keys)).all()


def test_without_memory_for_claims_nothing_is_half_done(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = some_keys(4000, "uint32")
    table = HashMap("uint32", "uint32", capacity=4000, device="cpu", **BCHT)

    def refuse(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as context, pytest.raises(MemoryError):
        context.setattr(Workbench, "of", refuse)
        parts_of(table).updates.update("insert", keys, keys, Op.KEEP, unique=False, answers=False)
    assert len(table) == 0 == len(table.keys()) and not table.contains(keys).any()
    parts_of(table).updates.update("insert", keys, keys, Op.KEEP, unique=False, answers=False)
    assert len(table) == 4000
    table.check()


def test_a_build_that_did_not_do_all_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    build = BucketArray.build
    monkeypatch.setattr(BucketArray, "build", lambda *args: build(*args)._replace(unplaced=1))
    keys = some_keys(4000, "uint32")
    table = HashMap.from_arrays(keys, np.arange(4000), device="cpu", **BCHT)
    check_map(table, keys)


def test_a_table_is_cleared_before_anybody_looks() -> None:
    keys = some_keys(4000, "uint32")

    def cleared() -> HashMap:
        table = HashMap.from_arrays(keys, keys, device="cpu", **BCHT)
        table.clear()
        return table

    assert not cleared().contains(keys).any() and not cleared().find(keys)[1].any()
    assert len(cleared().keys()) == 0 == len(cleared().copy()) and not cleared().erase(keys).any()
    assert (cleared().probe_counts(keys) == 1).all()
    cleared().check()
    table = cleared()
    assert table.insert(keys[:10], keys[:10]).all() and len(table.keys()) == 10
    for change in (lambda: table.reserve(9000), table.shrink):
        table.clear()
        change()
        assert len(table.keys()) == 0 and not table.contains(keys).any()
        table.check()
    for _ in range(20):
        table = cleared()
        with ThreadPoolExecutor(4) as pool:
            assert not any(found.any() for found in pool.map(table.contains, [keys] * 4))


def test_where_a_build_would_not_help() -> None:
    of = parts.build_parts_of
    assert of(1 << 16, 64, 1 << 19, 0, 1 << 19) is None  # an engine without the kernels
    assert of(1 << 16, 64, 1 << 19, 32, 1 << 19) is None  # a bucket is larger than a part
    assert of(1 << 16, 64, 1 << 19, 1 << 12, 1 << 19) == (1024, 6)
    assert of(1 << 16, 64, 1 << 19, 1 << 11, 1 << 19) == (1024, 6)  # as many parts as there may be
    assert of(257, 64, 257 * 8, 1 << 12, 2000) == (5, 6)
    assert of(256, 64, 256 * 8, 1 << 12, 2000) is None  # it lies in the cache as it is
    assert of(257, 64, 257 * 8, 1 << 12, 257 * 8 + 1) is None  # more elements than slots
    assert of(257, 64, 257 * 8, 1 << 12, 257) == (5, 6)
    assert of(257, 64, 257 * 8, 1 << 12, 256) is None  # an eighth of the slots
