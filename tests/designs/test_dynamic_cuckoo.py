"""DyHash: what lies in its buckets, and which of them are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from support.subtables import numbers, scale, sizes_of, store_of, table_of
from warphash import HashMap, ParameterError, UnsupportedVerb

HERE = one_of_each("cpu", "emulated", "cuda")
ON_A_GPU = one_of_each("emulated", "cuda")
COORDINATIONS = pytest.mark.parametrize("coordination", ["lanes", "voter", "spin"])
"""On a CPU, all three are the same code."""


# ---- duplicates
@COORDINATIONS
@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("S16", "V24")])
def test_no_key_is_stored_twice_wherever_it_lives(device: str, key: str, value: str, coordination: str) -> None:
    """Keys that evictions took to another subtable are met there, copies in one batch included.

    docs/fidelity.md#dyhash-erratum-duplicates
    """
    n = scale(device, 6000)
    table = table_of(device, key, value, coordination=coordination, capacity=n, load_factor=0.95, beta=0.97)
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


@COORDINATIONS
@pytest.mark.parametrize("device", ON_A_GPU)
@pytest.mark.parametrize("key", ["u4", "S32"])
def test_a_key_behind_a_vacant_slot_is_met(device: str, coordination: str, key: str) -> None:
    """No slot in front of the key takes a copy of it.

    docs/fidelity.md#dyhash-erratum-vacant-slot
    """
    table = table_of(device, key, "u8", coordination=coordination, capacity=200)
    ids = np.arange(1, 201)
    keys = ids.astype(key)
    assert table.insert(keys, ids.astype("u8")).all()
    assert table.erase(keys[:100]).all()
    assert (table.insert(keys, ids.astype("u8")) == (ids <= 100)).all() and len(table) == 200
    table.check()


@COORDINATIONS
@pytest.mark.parametrize("device", ON_A_GPU)
def test_any_slot_of_a_full_bucket_may_be_the_victim(device: str, coordination: str) -> None:
    """docs/fidelity.md#dyhash-erratum-victim"""
    options = {"subtables": 2, "capacity": 2000, "load_factor": 0.95, "beta": 0.97}
    table = table_of(device, "u4", "u4", coordination=coordination, **options)
    keys = numbers(2000).astype(np.uint32)

    def lines() -> np.ndarray:
        store = store_of(table)
        of_subtables = [
            store.engine.to_host(memory.ptr, np.uint32, 32 * buckets)
            for memory, buckets in store.current.subtables[:-1]
        ]
        return np.concatenate(of_subtables).reshape(-1, 32)

    table.insert(keys[:1700], keys[:1700])
    before = lines()
    table.insert(keys[1700:], keys[1700:])
    after = lines()
    assert before.shape == after.shape, "the table has grown"
    moved = (before != after) & (before < 0xFFFFFFFE)
    assert moved.sum() > 50 and moved.any(axis=0).sum() > 24
    table.check()


@COORDINATIONS
@pytest.mark.parametrize("device", HERE)
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
    """A key of 128 bytes fills a bucket; the patterns that mean something in a slot are keys like others."""
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
        sizes, shares = sizes_of(table), list(store_of(table).table.route_ends)
        table.insert(batch, batch)
        if sizes_of(table) == sizes:
            assert list(store_of(table).table.route_ends) == shares
    assert len(set(sizes_of(table))) == 2, "no subtable is ahead of another"
    return table, keys, absent


@pytest.mark.parametrize("device", ON_A_GPU)
def test_in_a_table_that_has_grown_few_lines_are_read(device: str) -> None:
    """Shares move seldom, and guests' bits save the other lines."""
    table, keys, absent = grown(device)
    assert table.probe_counts(absent).mean() < 1.5 and table.probe_counts(keys).mean() < 1.65


@pytest.mark.parametrize("device", ON_A_GPU)
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


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_a_table_tells_what_is_in_each_subtable(device: str) -> None:
    for options in ({"key": "u8"}, {"key": "V24", "max_size": 1000}):  # the second keeps rows beside its slots
        table = table_of(device, value="u4", **options, subtables=4, capacity=1000)
        keys = np.arange(1, 501, dtype="u8").astype("V24" if "max_size" in options else "u8")
        table.insert(keys, np.arange(500, dtype="u4"))
        figures = table.stats().subtables
        assert len(figures) == 4 and sum(figure.slots for figure in figures) == table.stats().slots
        assert sum(figure.keys for figure in figures) == len(table) == 500
        assert all(100 < figure.keys < 150 for figure in figures), "even shares"
    assert HashMap("u8", "u4", device=device).stats().subtables is None


# ---- parameters
def wrong_parameters() -> Iterator[dict[str, Any]]:
    yield {"subtables": 1}
    yield {"subtables": 9}
    yield {"alpha": 0.7}  # of three subtables, one more makes 0.675 of 0.9
    yield {"alpha": 0.4, "beta": 0.5}
    yield {"coordination": "queue"}
    yield {"routing": "odd"}
    yield {"load_bounds": (0.1, 0.5)}


@pytest.mark.parametrize("given", list(wrong_parameters()), ids=str)
def test_parameters_that_cannot_be(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        table_of("cpu", **given)
