"""DyHash: what Dynamic Hash Tables on GPUs says of sizes, resizing and probes, and what it leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from warphash import HashMap, HashSet, ParameterError, TableFull, UnsupportedVerb, policies
from warphash.runtime.subtables import SubtableStore

HERE = one_of_each("cpu", "emulated", "cuda")


def table_of(device: str, key: Any = "u8", value: Any = "u8", **options: Any) -> Any:
    return HashMap(key, value, device=device, design="dynamic_cuckoo", **{"seed": 3, "capacity": 64, **options})


def store_of(table: Any) -> SubtableStore:
    store = table._backing.elastic.store
    assert isinstance(store, SubtableStore)
    return store


def sizes_of(table: Any) -> list[int]:
    return store_of(table).sizes


def scale(device: str, n: int) -> int:
    return n // 20 if device == "emulated" else n


def numbers(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.arange(1, n + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)


# ---- sizes
@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [2, 3, 4, 8])
def test_growing_and_shrinking_keep_to_the_bounds(device: str, subtables: int) -> None:
    """S0-15, S0-19, S0-20, S0-21, S0-24: and no key is lost on the way."""
    n = scale(device, 40_000)
    alpha, beta = 0.4, 0.9
    table = table_of(device, subtables=subtables, alpha=alpha, beta=beta)
    keys = numbers(n)
    first = sum(sizes_of(table))
    moved = 0
    with counted_moves() as moves:
        for part in np.array_split(keys, 40):
            assert table.insert(part, part).all()
            sizes = sizes_of(table)
            assert max(sizes) <= 2 * min(sizes)
            assert table.load_factor <= beta
            if sum(sizes) > first:
                assert table.load_factor >= beta * subtables / (subtables + 1) - len(part) / table.stats().slots
        moved = sum(moves)
        assert moved <= 2 * n
        values, found = table.find(keys)
        assert found.all() and (values == keys).all()
        assert table.probe_counts(keys).max() <= subtables
        table.check()
        for part in np.array_split(keys[: n * 99 // 100], 40):
            assert table.erase(part).all()
            sizes = sizes_of(table)
            assert max(sizes) <= 2 * min(sizes)
            assert table.load_factor >= alpha or min(sizes) % 2 or max(sizes) == 1
        assert sum(moves) - moved <= 2 * n
    assert sum(sizes_of(table)) < 4 * first + n // 64
    assert (table.contains(keys) == (np.arange(n) >= n * 99 // 100)).all()
    table.check()


def counted_moves() -> Any:
    """A list that gets the pairs of each subtable that is resized."""
    moves: list[int] = []
    enlarge, halve = SubtableStore.enlarge, SubtableStore.halve

    def enlarging(self: SubtableStore, number: int, *given: Any) -> None:
        moves.append(self.hashed[number].keys)
        enlarge(self, number, *given)

    def halving(self: SubtableStore, number: int, stream: Any = None) -> Any:
        moves.append(self.hashed[number].keys)
        return halve(self, number, stream)

    class Patched:
        def __enter__(self) -> list[int]:
            self.patches = [
                mock.patch.object(SubtableStore, "enlarge", enlarging),
                mock.patch.object(SubtableStore, "halve", halving),
            ]
            for patch in self.patches:
                patch.start()
            return moves

        def __exit__(self, *_: object) -> None:
            for patch in self.patches:
                patch.stop()

    return Patched()


@pytest.mark.parametrize("device", HERE)
def test_counts_of_subtables_are_those_that_are_there(device: str) -> None:
    table = table_of(device, alpha=0.3)
    keys = numbers(scale(device, 20_000))
    for part in np.array_split(keys, 7):
        table.insert(part, part)
    table.erase(keys[::3])
    table.assign(keys, keys + np.uint64(1))
    table.erase(keys[1::2])
    store = store_of(table)
    for number, subtable in enumerate(store.hashed):
        rows = store.engine.to_host(subtable.memory.ptr, np.uint64, subtable.buckets * store.spec.slots_per_bucket)
        assert int((rows < np.uint64(2**64 - 2)).sum()) == subtable.keys, number
    assert sum(subtable.keys for subtable in store.hashed) == len(table)


@pytest.mark.parametrize("device", HERE)
def test_a_pair_stays_in_its_half_when_a_subtable_is_enlarged(device: str) -> None:
    """S0-13, S0-22: from bucket c to 2c or 2c + 1, at the same slot; all other subtables untouched."""
    table = table_of(device, capacity=scale(device, 4000))
    keys = numbers(scale(device, 3500))
    table.insert(keys, keys)
    store = store_of(table)

    def lines(number: int) -> np.ndarray:
        subtable = store.hashed[number]
        slots = store.spec.slots_per_bucket
        rows = store.engine.to_host(subtable.memory.ptr, np.uint64, subtable.buckets * slots)
        return rows.reshape(subtable.buckets, slots)

    before = [lines(number) for number in range(3)]
    store.enlarge(1)
    after = [lines(number) for number in range(3)]
    assert (before[0] == after[0]).all() and (before[2] == after[2]).all()
    empty, erased = np.uint64(2**64 - 1), np.uint64(2**64 - 2)
    halves = after[1].reshape(len(before[1]), 2, -1)
    held = before[1] < erased
    assert ((halves == before[1][:, None]).sum(axis=1)[held] == 1).all()
    assert ((halves == erased).sum(axis=1)[held] == 1).all()
    assert ((halves == empty).sum(axis=1)[before[1] == empty] == 2).all()
    assert table.contains(keys).all()
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [2, 3])
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", "f8"), ("S20", "S9"), ("S128", "i8"), ("u4", "none")])
def test_what_finds_no_room_in_a_half_goes_elsewhere(device: str, subtables: int, key: str, value: str) -> None:
    """S0-14: a subtable is halved while it is too full for that, values and all."""
    slots = subtables * scale(device, 5120)
    n = slots * 11 // 20
    options = {"device": device, "design": "dynamic_cuckoo", "subtables": subtables, "seed": 5}
    options |= {"capacity": slots, "load_factor": 1.0}
    ids = np.arange(1, n + 1)
    keys = ids.astype(key)
    table: Any = HashSet(key, **options) if value == "none" else HashMap(key, value, **options)
    pairs = (keys,) if value == "none" else (keys, ids.astype(value))
    assert table.insert(*pairs).all()
    elastic = table._backing.elastic
    residuals = 0
    for _ in range(2):
        number = policies.subtable_to_halve(elastic.store.sizes)
        assert number is not None
        if table.load_factor > 0.7:
            break
        before = elastic.store.hashed[number].keys
        elastic._gather_strays(elastic.store.halve(number))
        residuals += before - elastic.store.hashed[number].keys
        elastic._house_all(None)
        assert table.contains(keys).all() and len(table) == n
        table.check()
    assert residuals > 0
    if value != "none":
        assert (table.find(keys)[0] == pairs[1]).all()


# ---- room
@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [3, 4, 8])
def test_nine_tenths_and_more_of_the_slots_are_filled(device: str, subtables: int) -> None:
    """S0-23, S0-25: no insert into a table of one size fails at the load factors of Tables 4 to 8."""
    n = scale(device, 60_000)
    table = table_of(device, "u4", "u4", subtables=subtables, capacity=n, load_factor=0.95, on_full="raise")
    slots = table.stats().slots
    keys = np.random.default_rng(2).permutation(np.arange(1, slots + 1, dtype=np.uint32)) * np.uint32(0x9E3779B1)
    for load in (0.75, 0.8, 0.85, 0.9, 0.95):
        more = keys[len(table) : int(load * slots)]
        assert table.insert(more, more).all()
    assert table.stats().slots == slots and table.stats().resizes == 0
    assert table.contains(keys[: len(table)]).all()
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", "u8"), ("S16", "S40"), ("S128", "u4")])
@pytest.mark.parametrize("unique", [False, True])
def test_a_batch_that_does_not_fit_changes_nothing(device: str, key: str, value: str, unique: bool) -> None:
    n = scale(device, 2400)
    table = table_of(device, key, value, capacity=n // 2, load_factor=0.9, on_full="raise")
    slots = table.stats().slots
    ids = np.arange(1, 2 * slots + 1)
    keys, values = ids.astype(key), ids.astype(value)
    held = int(0.8 * slots)
    assert table.insert(keys[:held], values[:held]).all()
    for extra in (slots, slots - held + 1):
        some = slice(held, held + extra)
        with pytest.raises(TableFull, match="as it was"):
            table.insert(keys[some], values[some], assume_unique=unique)
        with pytest.raises(TableFull):  # those that are there keep their values
            table.assign(keys[: held + extra], values[: held + extra][::-1].copy())
        assert len(table) == held
        found_values, found = table.find(keys)
        assert (found == (np.arange(len(keys)) < held)).all() and (found_values[:held] == values[:held]).all()
        table.check()
    assert table.erase(keys[:10]).all() and table.insert(keys[-10:], values[-10:]).all()


@pytest.mark.parametrize("device", HERE)
def test_without_memory_for_a_larger_subtable_the_table_is_as_it_was(device: str) -> None:
    n = scale(device, 8000)
    table = table_of(device, capacity=n)
    keys = numbers(3 * n)
    held = int(0.88 * table.stats().slots)
    table.insert(keys[:held], keys[:held])
    sizes = sizes_of(table)
    with mock.patch.object(SubtableStore, "_memory_of", side_effect=MemoryError("none left")):
        more = keys[held : held + table.stats().slots // 50]
        assert table.insert(more, more).all()  # beyond beta, but there is room
        with pytest.raises(TableFull, match="as it was"):
            table.insert(keys[held:], keys[held:])
        assert table.contains(keys).sum() == len(table) == held + len(more)
        assert table.erase(keys[: held * 3 // 4]).all()  # nor for a smaller one
        assert sizes_of(table) == sizes
    assert table.contains(keys).sum() == len(table)
    table.check()
    assert table.insert(keys[:held], keys[:held]).sum() == held * 3 // 4


@pytest.mark.parametrize("device", HERE)
def test_a_resize_holds_two_copies_of_one_subtable_and_no_more(device: str) -> None:
    table = table_of(device, "u4", "u4", capacity=1000, beta=0.9)
    before = table.stats()
    assert before.peak_nbytes == table.nbytes
    keys = np.arange(1, before.slots + 1, dtype=np.uint32)
    table.insert(keys[: int(0.9 * before.slots)], keys[: int(0.9 * before.slots)])
    assert table.stats().resizes == 0
    table.insert(keys, keys)
    after = table.stats()
    assert after.resizes == 1 and after.rebuilds == 0
    # The old copy, half of the new one, goes once the new one is filled.
    assert after.peak_nbytes == table.nbytes + (table.nbytes - before.nbytes)


def test_reserve_enlarges_and_shrink_packs() -> None:
    table = table_of("cpu", capacity=100)
    table.reserve(10_000)
    assert table.capacity >= 10_000 and table.stats().resizes > 0
    keys = numbers(10_000)
    table.insert(keys, keys)
    table.erase(keys[:5000])
    table.shrink()
    assert table.contains(keys).sum() == len(table) == 5000 and table.load_factor > 0.6
    assert table.stats().rebuilds == 1


# ---- duplicates
@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("S16", "V24")])
def test_no_key_is_stored_twice_wherever_it_lives(device: str, key: str, value: str) -> None:
    """S0-48: keys that evictions took to another subtable are met there, copies in one batch included."""
    n = scale(device, 6000)
    table = table_of(device, key, value, capacity=n, load_factor=0.95, beta=0.97)
    ids = np.arange(1, n + 1)
    keys, values = ids.astype(key), np.arange(1, n + 1).astype("S24" if value == "V24" else value).astype(value)
    assert table.insert(keys, values).all()
    crowd = np.random.default_rng(4).integers(0, n, 3 * n)
    assert not table.insert(keys[crowd], values[crowd]).any()
    assert table.erase(keys[crowd]).sum() == len(np.unique(crowd))
    assert table.insert(keys[crowd], values[crowd]).sum() == len(np.unique(crowd))
    found_values, found = table.find(keys)
    assert found.all() and (found_values == values).all()
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("coordination", ["voter", "spin"])
@pytest.mark.parametrize("key", ["u4", "S32"])
def test_a_hot_key_is_inserted_once(device: str, coordination: str, key: str) -> None:
    n = scale(device, 20_000)
    table = table_of(device, key, "u8", coordination=coordination, capacity=100)
    ids = np.random.default_rng(9).integers(10, 10 + n, n)
    ids[::20] = 3
    keys = ids.astype(key)
    added = table.insert(keys, ids.astype("u8"))
    assert added.sum() == len(np.unique(ids)) == len(table) and added[ids == 3].sum() == 1
    table.upsert(keys, np.ones(n, "u8"), "add")
    values, _ = table.find(np.array([3]).astype(key))
    assert values[0] == 3 + (ids == 3).sum()
    table.check()


# ---- widths
@pytest.mark.parametrize("device", one_of_each("cpu", "cuda"))
@pytest.mark.parametrize("key_bytes", [1, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 64, 65, 127, 128])
@pytest.mark.parametrize("value_bytes", [1, 4, 8, 9, 32, 100])
def test_keys_and_values_of_any_width_lie_in_place(device: str, key_bytes: int, value_bytes: int) -> None:
    """S0-08: a key of 128 bytes fills a bucket; the patterns that mean something in a slot are keys like others."""
    n = 100 if key_bytes == 1 else 700
    rng = np.random.default_rng(key_bytes)
    raw = rng.integers(0, 256, (n, key_bytes), np.uint8)
    raw[:3] = 0xFF
    raw[1, 0], raw[2, 0] = 0xFE, 0xFD
    raw[3] = 0
    raw = np.unique(raw, axis=0)
    keys = raw.view(f"V{key_bytes}").ravel()
    values = rng.integers(0, 256, (len(keys), value_bytes), np.uint8).view(f"V{value_bytes}").ravel()
    table = table_of(device, keys.dtype, values.dtype, capacity=50)
    for part in np.array_split(np.arange(len(keys)), 3):
        assert table.insert(keys[part], values[part]).all()
    found_values, found = table.find(keys)
    assert found.all() and (found_values == values).all()
    table.assign(keys, values[::-1].copy())
    assert (table.find(keys)[0] == values[::-1]).all()
    assert table.erase(keys[::2]).all() and len(table) == len(keys) // 2
    assert (table.contains(keys) == (np.arange(len(keys)) % 2 == 1)).all()
    store = store_of(table)
    assert store.spec.slots_per_bucket == 128 // max(4, 1 << (key_bytes - 1).bit_length())
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("offset", [1, 4, 8])
@pytest.mark.parametrize(("key_bytes", "value_bytes"), [(16, 32), (32, 16), (64, 20)])
def test_wide_rows_may_lie_anywhere(device: str, offset: int, key_bytes: int, value_bytes: int) -> None:
    """Kernels move 16 bytes at once: rows that are aligned to fewer are other rows to them."""
    arrays = pytest.importorskip("cupy") if device == "cuda" else np
    rng = np.random.default_rng(offset)

    def rows(width: int) -> Any:
        return arrays.asarray(rng.integers(0, 256, 16 + 300 * width, np.uint8))[offset:][: 300 * width].reshape(
            -1, width
        )

    keys, values = rows(key_bytes), rows(value_bytes)
    table = HashMap.from_arrays(keys[:100], values[:100], device=device, design="dynamic_cuckoo", seed=3)
    assert bool(table.insert(keys[100:], values[100:]).all())
    found_values, found = table.find(keys)
    assert bool(found.all()) and bool((found_values == values).all())
    assert bool(table.erase(keys[::2]).all()) and len(table) == 150
    table.check()


# ---- lines
def grown(device: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """A table that many batches have made grow; its keys, and as many others."""
    n, batches = 400, 60
    keys, absent = np.split(numbers(2 * n * batches).astype(np.uint32), 2)
    table = table_of(device, "u4", "u4", capacity=n, count_probes=True)
    for batch in np.split(keys, batches):
        sizes, shares = sizes_of(table), list(store_of(table).table.shares)
        table.insert(batch, batch)
        if sizes_of(table) == sizes:
            assert list(store_of(table).table.shares) == shares
    assert len(set(sizes_of(table))) == 2, "no subtable is ahead of another"
    return table, keys, absent


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_in_a_table_that_has_grown_few_lines_are_read(device: str) -> None:
    """Shares move seldom, and guests' bits save the other lines."""
    table, keys, absent = grown(device)
    assert table.probe_counts(absent).mean() < 1.5 and table.probe_counts(keys).mean() < 1.65


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_guests_are_asked_for_where_a_first_bucket_does_not_say_enough(device: str) -> None:
    keys, absent = np.split(numbers(2000).astype(np.uint32), 2)
    table = table_of(device, "u4", "u4", capacity=4000)
    table.insert(keys, keys)
    assert not table.guest_counts(absent).any(), "shares have not moved, and no bucket was full"
    table, keys, absent = grown(device)
    asked, subtables = table.guest_counts(absent), len(sizes_of(table))
    assert 0.5 * (subtables - 1) < asked.mean() and asked.max() == subtables - 1
    assert table.guest_counts(keys).mean() < 0.75 * asked.mean(), "a key that is found is not asked about further"


def test_a_processor_reads_buckets_and_no_guests() -> None:
    table, _, absent = grown("cpu")
    assert not table.guest_counts(absent).any()
    with pytest.raises(UnsupportedVerb, match="guest_counts"):
        HashMap("u4", "u4", device="cpu").guest_counts(absent)


def test_who_looks_for_room_stops_where_there_is_some() -> None:
    """On the emulated engine: on a GPU so small a batch goes for its slots all at once, and many a key looks again."""
    table, _, _ = grown("emulated")
    assert table.stats().insert_probes < 2.75  # of inserts that make the table grow, too, which settle twice


# ---- parameters
def wrong_parameters() -> Iterator[dict[str, Any]]:
    yield {"subtables": 1}
    yield {"subtables": 9}
    yield {"alpha": 0.7}  # of three subtables, one more makes 0.675 of 0.9
    yield {"alpha": 0.4, "beta": 0.5}
    yield {"coordination": "queue"}
    yield {"load_bounds": (0.1, 0.5)}


@pytest.mark.parametrize("given", list(wrong_parameters()), ids=str)
def test_parameters_that_cannot_be(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        table_of("cpu", **given)
