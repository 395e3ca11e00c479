"""Tables in two tiers: one answer whatever tier a key is on, and nothing lost between them."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.inside import parts_of, storage_of
from support.types import Array
from warphash import HashMap, HashSet, ParameterError, PathError, TableFull
from warphash.storage.tiered import home
from warphash.storage.tiered.cache import Cache
from warphash.storage.tiered.writing import WriteBack

HERE = ("cpu", "emulated")
WRITES = ("through", "back")


def tiered(device: str, write: str, **options: Any) -> Any:
    given = {"capacity": 400, "device_capacity": 60, "seed": 5, **options}
    return HashMap("u8", "u8", design="tiered", device=device, write=write, **given)


def cache_of(table: Any) -> Cache:
    cache: Cache = storage_of(table)._tiers.cache
    return cache


def cached_keys(table: Any) -> set[int]:
    """The keys that are in the cache."""
    cache = cache_of(table)
    engine, n = parts_of(table).front.engine, cache.size
    keys = engine.allocate(max(1, 8 * n))
    assert cache.storage.scan(n, keys.ptr, 0, None) == n
    return set(engine.to_host(keys.ptr, np.uint64, n).tolist())


def warmed(table: Any, keys: Array) -> None:
    """Ask for keys until they are in the cache."""
    for _ in range(6):
        table.find(np.resize(keys, 200))
    len(table)
    assert set(keys.tolist()) <= cached_keys(table)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("device", HERE)
def test_a_random_walk_gives_the_answers_of_a_dict(device: str, write: str) -> None:
    rng = np.random.default_rng(8)
    table, model = tiered(device, write), dict[int, int]()
    universe = rng.permutation(np.arange(300, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    for step in range(60 if device == "cpu" else 25):
        n = int(rng.integers(1, 60))
        batch = universe[np.minimum(rng.zipf(1.2, n) - 1, 299)]
        values = rng.integers(0, 1 << 40, n, np.uint64)
        verb = rng.choice(["insert", "assign", "upsert", "find_or_insert", "find", "find", "find", "erase", "flush"])
        if verb == "insert":
            added = table.insert(batch, values)
            for key, value, new in zip(batch.tolist(), values.tolist(), added, strict=True):
                assert not (new and key in model)
                if new:
                    model[key] = value
        elif verb == "assign":
            distinct, first = np.unique(batch, return_index=True)
            table.assign(distinct, values[first])
            model.update(zip(distinct.tolist(), values[first].tolist(), strict=True))
        elif verb == "upsert":
            table.upsert(batch, values, "add")
            for key, value in zip(batch.tolist(), values.tolist(), strict=True):
                model[key] = model.get(key, 0) + value
        elif verb == "find_or_insert":
            held, added = table.find_or_insert(batch, values)
            for key, value, new in zip(batch.tolist(), values.tolist(), added, strict=True):
                if new:
                    model[key] = value
            assert held.tolist() == [model[key] for key in batch.tolist()]
        elif verb == "find":
            found_values, found = table.find(batch, default=7)
            assert found.tolist() == [key in model for key in batch.tolist()]
            assert found_values.tolist() == [model.get(key, 7) for key in batch.tolist()]
        elif verb == "erase":
            erased = table.erase(batch[:20])
            assert erased.sum() == len(set(batch[:20].tolist()) & model.keys())
            for key in batch[:20].tolist():
                model.pop(key, None)
        else:
            assert table.flush() == 0
        assert len(table) == len(model), step
        if step % 5 == 0:
            table.check()
            assert dict(zip(*(column.tolist() for column in table.to_arrays()), strict=True)) == model
            twin = table.copy()
            assert dict(zip(*(column.tolist() for column in twin.to_arrays()), strict=True)) == model
    assert 0 < cache_of(table).size <= 60


@pytest.mark.parametrize("device", HERE)
def test_values_that_changed_in_the_cache_come_home_with_a_flush(device: str) -> None:
    table = tiered(device, "back")
    keys = np.arange(50, dtype=np.uint64)
    table.insert(keys, keys)
    warmed(table, keys)
    table.assign(keys, keys + 100)
    at_home_lie = storage_of(table)._tiers.home.storage

    def at_home() -> list[int]:
        values, flags = np.empty(50, np.uint64), np.empty(50, np.uint8)
        at_home_lie.find(keys.ctypes.data, 50, values.ctypes.data, flags.ctypes.data, bytes(8), None)
        assert flags.all()
        return [int(value) for value in values]

    assert at_home() == keys.tolist()
    assert table.to_arrays()[1].sum() == (keys + 100).sum(), "a scan has the values of the cache"
    table.flush()
    assert at_home() == (keys + 100).tolist()
    table.upsert(keys[:10], keys[:10], "add")
    assert table.erase(keys[:5]).all(), "an erase writes back first"
    assert table.find(keys)[1].sum() == 45
    assert table.find(keys[5:10])[0].tolist() == [110, 112, 114, 116, 118]


def evictions(table: Any) -> None:
    """Have all keys of the cache, whose values have changed there, leave it for others."""
    keys = np.arange(50, dtype=np.uint64)
    table.insert(np.arange(200, dtype=np.uint64), np.arange(200, dtype=np.uint64))
    warmed(table, keys)
    table.assign(keys, keys + 100)
    for _ in range(30):
        table.find(np.resize(np.arange(100, 155, dtype=np.uint64), 220))
    len(table)
    assert cached_keys(table) >= set(range(100, 155)) and table.stats().tiers.evicted >= 45
    values, found = table.find(keys)
    assert found.all() and values.tolist() == (keys + 100).tolist()
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("write", WRITES)
def test_a_pair_that_leaves_the_cache_takes_its_value_home(device: str, write: str) -> None:
    evictions(tiered(device, write))


def test_values_of_pairs_that_leave_would_be_lost_without_a_write_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WriteBack, "write_back", lambda self, tiers, stream: None)
    with pytest.raises(AssertionError):
        evictions(tiered("cpu", "back"))


@pytest.mark.parametrize(("exponent", "shift"), [(0.99, 0), (1.3, 0), (0.99, 5000)])
def test_the_cache_meets_nearly_as_many_keys_as_one_that_knows_the_frequencies(exponent: float, shift: int) -> None:
    """Of 20,000 keys a tenth has room; then, with ``shift``, other keys become the frequent ones."""
    n, room = 20_000, 2_000
    rng = np.random.default_rng(4)
    keys = rng.permutation(np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    weights = np.arange(1, n + 1, dtype=float) ** -exponent
    weights /= weights.sum()
    table = HashMap.from_arrays(keys, keys, design="tiered", device="cpu", device_capacity=room, seed=1)
    for turn in range(160):
        batch = rng.choice(n, 5_000, p=weights)
        if turn >= 60 and shift:
            batch = (batch + shift) % n
        values, found = table.find(keys[batch])
        assert found.all() and (values == keys[batch]).all()
        if turn == 139:
            before = table.stats().tiers
    after = table.stats().tiers
    hits, misses = after.hits - before.hits, after.misses - before.misses
    oracle = weights[:room].sum()
    assert hits + misses == 20 * 5_000
    assert hits / (hits + misses) >= 0.95 * oracle
    assert after.cached <= room + room // 8
    assert after.admitted - before.admitted < (hits + misses) / 20, "most candidates are known to stay out"


@pytest.mark.parametrize(("batch_order", "piece"), [("drawn", home.PIECE), ("sorted", home.PIECE), ("drawn", 400)])
def test_a_few_batches_of_many_more_keys_than_there_is_room_for_find_the_frequent_ones(
    batch_order: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "PIECE", piece)
    n, room, rng = 50_000, 2000, np.random.default_rng(4)
    keys = rng.permutation(np.arange(n, dtype=np.uint64))
    weights = np.arange(1, n + 1, dtype=float) ** -0.99
    weights /= weights.sum()
    table = HashMap.from_arrays(keys, keys, design="tiered", device="cpu", device_capacity=room, seed=1)
    hits = 0
    for _ in range(5):
        batch = keys[rng.choice(n, 50_000, p=weights)]
        hits = table.stats().tiers.hits
        table.find(np.sort(batch) if batch_order == "sorted" else batch)
    assert (table.stats().tiers.hits - hits) / 50_000 >= 0.9 * weights[:room].sum()


@pytest.mark.parametrize("device", HERE)
def test_a_scan_of_all_keys_takes_no_more_memory_than_the_cache_has_room_for(device: str) -> None:
    n, room = (60_000, 1000) if device == "cpu" else (4000, 100)
    keys = np.arange(n, dtype=np.uint64)
    table = HashMap.from_arrays(keys, keys, design="tiered", device=device, device_capacity=room, seed=1)
    for _ in range(4):
        values, found = table.find(keys)
        assert found.all() and (values == keys).all()
        figures = table.stats().tiers
        assert figures.cached <= room
    assert figures.cached == room, "the first candidates fill the cache"
    pairs = 2 * max(room, 512)  # with those that are admitted at once; then slots are vacant, and 16 bytes of counters
    assert figures.cache_nbytes < pairs * 16 * 4 + room * 16
    assert figures.admitted <= 4 * max(room, 512)


@pytest.mark.parametrize("write", WRITES)
def test_a_long_log_is_written_back_before_a_batch(write: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    original = WriteBack.write_back

    def counted(self: WriteBack, tiers: Any, stream: Any) -> None:
        if self._log:
            written.append(self._log[1])
        original(self, tiers, stream)

    monkeypatch.setattr(WriteBack, "write_back", counted)
    table = tiered("cpu", write)
    keys = np.arange(50, dtype=np.uint64)
    table.insert(keys, keys)
    warmed(table, keys)
    for turn in range(60):
        table.assign(keys, keys + np.uint64(turn))
    assert table.find(keys)[0].tolist() == (keys + np.uint64(59)).tolist()
    assert (len(written) >= 2) == (write == "back")
    assert max(written, default=0) <= 1024


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("write", WRITES)
def test_a_full_home_leaves_both_tiers_as_they_were(device: str, write: str) -> None:
    table = tiered(device, write, capacity=90, on_full="raise", load_factor=0.9)
    keys = np.arange(80, dtype=np.uint64)
    table.insert(keys, keys)
    warmed(table, keys[:50])
    table.assign(keys[:20], keys[:20] + 1)
    before = dict(zip(*(column.tolist() for column in table.to_arrays()), strict=True))
    new = np.arange(1000, 1400, dtype=np.uint64)
    batch = np.concatenate([keys[:30], new])
    with pytest.raises(TableFull) as caught:
        table.upsert(batch, batch, "add")
    assert set(caught.value.keys.tolist()) <= set(new.tolist())
    assert dict(zip(*(column.tolist() for column in table.to_arrays()), strict=True)) == before
    assert table.find(keys)[0].tolist() == [before[key] for key in keys.tolist()]
    table.check()


@pytest.mark.parametrize("piece", [pytest.param(1, marks=pytest.mark.slow), 7, 64, 199, 200])
@pytest.mark.parametrize("device", HERE)
def test_a_lookup_goes_home_in_pieces(device: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "PIECE", piece)
    table = tiered(device, "through")
    keys = np.arange(200, dtype=np.uint64)
    table.insert(keys[:150], keys[:150] + 1)
    shuffled = np.random.default_rng(1).permutation(keys)
    for _ in range(4):
        values, found = table.find(shuffled, default=3)
        assert (found == (shuffled < 150)).all()
        assert (values == np.where(found, shuffled + np.uint64(1), np.uint64(3))).all()
        assert (table.contains(shuffled) == found).all()
    assert cache_of(table).size > 0
    assert table.find(keys[:0])[0].size == 0


@pytest.mark.parametrize("device", HERE)
def test_rows_and_sets(device: str) -> None:
    numbers = np.arange(120, dtype=np.uint64)
    keys, values = (np.repeat(numbers, width).view(f"V{8 * width}") for width in (3, 5))
    wide = HashMap("V24", "V40", design="tiered", device=device, capacity=200, device_capacity=40, write="back")
    wide.insert(keys, values)
    members = HashSet("V24", design="tiered", device=device, capacity=200, device_capacity=40)
    members.insert(keys)
    for _ in range(6):
        held, found = wide.find(keys[::4])
        assert found.all() and (held == values[::4]).all()
        assert members.contains(keys[::4]).all()
    for table in (wide, members):
        assert table.stats().tiers.hits > 0
        assert table.erase(keys[:8]).all()
        assert not table.contains(keys[:8]).any()
        assert table.contains(keys[8:]).all()
        table.check()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("device", HERE)
def test_a_home_in_a_file_has_what_the_last_flush_confirmed(device: str, write: str, tmp_path: Path) -> None:
    path, keys = tmp_path / "table", np.arange(200, dtype=np.uint64)
    table = tiered(device, write, memory=path)
    assert table.memory == path
    table.insert(keys, keys)
    warmed(table, keys[:50])
    table.assign(keys[:40], keys[:40] + 1)
    table.flush()
    table.assign(keys[:40], keys[:40] + 2)
    table.insert(keys + 1000, keys)
    table.__exit__(KeyboardInterrupt, None, None)  # as if the process had died
    with HashMap.open(path, device=device) as again:
        assert again.design == "tiered" and len(again) == 200
        assert again.find(keys)[0].tolist() == [*(keys[:40] + 1).tolist(), *keys[40:].tolist()]
        warmed(again, keys[:50])
        again.assign(keys[:40], keys[:40] + 3)
    with HashMap.open(path, device=device) as closed:
        assert closed.find(keys[:40])[0].tolist() == (keys[:40] + 3).tolist()


@pytest.mark.parametrize("device", HERE)
def test_a_copy_of_a_table_in_a_file_lies_in_memory_and_flushes_there(device: str, tmp_path: Path) -> None:
    keys = np.arange(200, dtype=np.uint64)
    table = tiered(device, "back", memory=tmp_path / "table")
    table.insert(keys, keys)
    warmed(table, keys[:50])
    twin = table.copy()
    assert twin.memory == "host"
    twin.assign(keys, keys + 1)
    assert twin.flush() == 0
    assert table.find(keys)[0].tolist() == keys.tolist()
    twin.close()
    table.flush()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("write", WRITES)
def test_a_clear_that_the_disk_refuses_changes_nothing(
    device: str, write: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table in a file is cleared in a file beside it, for which there may be no room."""
    table = tiered(device, write, memory=tmp_path / "table")
    keys = np.arange(200, dtype=np.uint64)
    table.insert(keys, keys)
    warmed(table, keys[:50])
    table.assign(keys, keys + 1)

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(MemoryError, match="no room"):
            table.clear()
    table.check()
    assert table.find(keys)[0].tolist() == (keys + 1).tolist()
    table.flush()
    assert table.to_arrays()[1].sum() == (keys + 1).sum()
    table.clear()
    assert len(table) == 0 and not table.contains(keys).any() and cache_of(table).size == 0


@pytest.mark.parametrize("device", HERE)
def test_nobody_leaves_the_cache_behind_a_write_back_that_failed(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt has left more pairs in the cache than it is to hold; then there is no memory for a write-back."""
    table = tiered(device, "back")
    keys = np.arange(200, dtype=np.uint64)
    table.insert(keys, keys)
    warmed(table, keys[:50])
    table.assign(keys[:50], keys[:50] + 1)

    def interrupt(self: Cache, stream: Any) -> None:
        raise KeyboardInterrupt

    def refuse(self: WriteBack, tiers: Any, stream: Any) -> None:
        raise MemoryError("no memory for a write-back")

    with monkeypatch.context() as patch:
        patch.setattr(Cache, "_make_room", interrupt)
        with pytest.raises(KeyboardInterrupt):
            for _ in range(30):
                table.find(keys[50:])
    assert cache_of(table).size > 60
    table.assign(keys, keys + 1)
    with monkeypatch.context() as patch:
        patch.setattr(WriteBack, "write_back", refuse)
        table.insert(np.arange(1000, 1200, dtype=np.uint64), np.arange(200, dtype=np.uint64))
        for _ in range(3):
            table.find(np.arange(1000, 1200, dtype=np.uint64))
        assert table.find(keys)[0].tolist() == (keys + 1).tolist()
    assert table.find(keys)[0].tolist() == (keys + 1).tolist()
    for _ in range(3):
        table.find(np.arange(1000, 1200, dtype=np.uint64))
    len(table)
    assert cache_of(table).size <= 60
    assert table.find(keys)[0].tolist() == (keys + 1).tolist()


def test_readers_at_once(tmp_path: Path) -> None:
    table = tiered("cpu", "through", capacity=5000, device_capacity=500)
    keys = np.arange(4000, dtype=np.uint64)
    table.insert(keys, keys + 1)
    wrong: list[str] = []

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(60):
            batch = keys[np.minimum(rng.zipf(1.1, 700), 4500) - 1 & 4095 % 4000]
            values, found = table.find(batch)
            if not found.all() or (values != batch + 1).any():
                wrong.append(f"reader {seed}")

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for reader in readers:
        reader.start()
    for turn in range(20):
        table.assign(keys[:300], keys[:300] + 1)
        table.insert(np.arange(10_000 + 10 * turn, 10_010 + 10 * turn, dtype=np.uint64), np.zeros(10, np.uint64))
    for reader in readers:
        reader.join()
    assert not wrong
    table.check()
    figures = table.stats().tiers
    assert figures.hits + figures.misses >= 4 * 60 * 700 and figures.cached <= 500


@pytest.mark.parametrize("device", HERE)
def test_lookups_in_memory_that_no_update_has_cleared(device: str) -> None:
    """A store may put its clearing off: key 0 must not be met in memory of zeros."""
    for table in (tiered(device, "through"), tiered(device, "back", capacity=100_000)):
        zeros = np.zeros(3, np.uint64)
        assert not table.contains(zeros).any() and len(table) == 0
        table.clear()
        assert not table.find(zeros)[1].any()


@pytest.mark.parametrize("device", HERE)
def test_figures_of_the_tiers(device: str) -> None:
    table = tiered(device, "through", device_capacity=30)
    keys = np.arange(100, dtype=np.uint64)
    assert table.stats().tiers.hit_rate == 0
    table.insert(keys, keys)
    table.find(keys[:30])
    table.find(keys[:30])  # admits them first
    figures = table.stats().tiers
    assert (figures.hits, figures.misses, figures.admitted) == (30, 30, 30)
    assert figures.hit_rate == 0.5 and figures.cached == figures.cache_capacity == 30
    assert figures.bytes_to_home == 100 * 16 + 30 * 8 + 30 * 8, (
        "keys and values that were inserted, asked for, admitted"
    )
    assert figures.bytes_from_home == 100 + 30 * 9 + 30 * 9
    assert figures.cache_nbytes + figures.home_nbytes == table.nbytes
    plain = HashMap("u8", "u8", device=device)
    assert plain.stats().tiers is None


@pytest.mark.parametrize("device", HERE)
def test_what_is_no_access_of_a_key_changes_no_figure(device: str) -> None:
    keys = np.arange(3000, dtype=np.uint64)
    left = HashSet.from_arrays(keys, design="tiered", device=device, device_capacity=100)
    right = HashSet.from_arrays(keys[1000:], design="tiered", device=device, device_capacity=100)
    for _ in range(3):
        left.contains(np.resize(keys[:90], 900))
    len(left)
    before = left.stats().tiers
    left.check()
    assert len(left & right) == 2000 and len(right - left) == 0 and right <= left
    assert len(left.keys()) == 3000 and left.probe_counts(keys).sum() >= 3000
    assert left.stats().tiers == before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("kind", ["cached", "due", "empty"])
def test_a_forked_child_looks_up_what_the_parent_has_in_a_file(tmp_path: Path, write: str, kind: str) -> None:
    """The child may not change the home, so nobody is admitted; and a key in the cache is not changed there alone."""
    path = tmp_path / "table"
    keys = np.arange(2000, dtype=np.uint64)
    table = tiered("cpu", write, capacity=2000, memory=path)
    table.insert(keys, keys)
    if kind != "empty":
        warmed(table, keys[:50])
        table.assign(keys[:50], keys[:50] + np.uint64(7))
    if kind == "due":
        for _ in range(3):
            table.find(keys[500:800])  # candidates that the next verb admits
    held = dict(zip(*(column.tolist() for column in table.to_arrays()), strict=True))
    values = np.array([held[key] for key in range(2000)], np.uint64)
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for at in range(0, 2000, 150):
                asked = np.resize(keys[at : at + 300], 900)
                found, there = table.find(asked)
                assert there.all() and (found == values[asked.astype(int)]).all()
                assert table.contains(keys).all() and len(table) == 2000
            for change in (
                lambda: table.assign(keys[:20], keys[:20]),
                lambda: table.upsert(keys, keys, "add"),
                lambda: table.insert(keys[:1], keys[:1]),
                lambda: table.erase(keys[:20]),
                lambda: table.reserve(90_000),
                table.clear,
                table.shrink,
                table.flush,
            ):
                with pytest.raises(PathError, match=r"forked from.*copy\(\)"):
                    change()
                assert (table.find(keys)[0] == values).all()
            twin = table.copy()
            twin.assign(keys, keys)
            assert (twin.find(keys)[0] == keys).all()
            table.check()
            table.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == before
    table.assign(keys[:100], keys[:100])
    table.close()
    with HashMap.open(path, device="cpu") as again:
        assert (again.find(keys)[0][100:] == values[100:]).all() and (again.find(keys[:100])[0] == keys[:100]).all()


def test_what_the_parameters_can_be() -> None:
    for wrong in ({"device_capacity": 0}, {"write": "around"}, {"memory": "device"}, {"device_capacity": 1.5}):
        with pytest.raises(ParameterError):
            HashMap("u8", "u8", design="tiered", device="cpu", **wrong)
    assert HashMap("u8", "u8", design="tiered", device="cpu").memory == "host"


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("put_off", lambda self, tiers, stream: None),
        ("forgotten", lambda self, tiers, stream: setattr(self, "_log", None)),
    ],
)
def test_a_planted_bug_is_noticed(name: str, bug: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A write-back that does nothing, or forgets the log, loses values."""
    monkeypatch.setattr(WriteBack, "write_back", bug)
    with pytest.raises(AssertionError):
        test_a_home_in_a_file_has_what_the_last_flush_confirmed("cpu", "back", tmp_path)
