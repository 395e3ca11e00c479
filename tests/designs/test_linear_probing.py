"""Linear probing: how far keys go, whatever the order of their insertion, and a ring that is full."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import one_of_each
from support.hashing import first_buckets
from support.inside import storage_of
from warphash import HashSet, TableFull

HERE = one_of_each("cpu", "emulated")


def overflows(homes: np.ndarray, buckets: int, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys that each bucket sends on, and those that it holds: as many as come to it, from behind and of its own."""
    arriving = np.bincount(homes, minlength=buckets)
    sent = np.zeros(buckets, np.int64)
    before = 0
    for _ in range(2):  # once around the ring to know what comes from its end
        for bucket in range(buckets):
            before = max(0, before + int(arriving[bucket]) - slots)
            sent[bucket] = before
    return sent, arriving + np.roll(sent, 1) - sent


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("slots", [1, 8, 16, 32])
@pytest.mark.parametrize("load_factor", [0.5, 0.8, 0.95, 1.0])
def test_keys_go_as_far_as_the_buckets_before_are_too_full(device: str, slots: int, load_factor: float) -> None:
    n = 20_000 if device == "cpu" else 600
    keys = np.unique(np.random.default_rng(3).integers(0, 1 << 32, 2 * n + 50, np.uint64))[: 2 * n].astype("u4")
    present, absent = keys[::2], keys[1::2]
    table = HashSet.from_arrays(
        present, device=device, design="linear_probing", load_factor=load_factor, slots_per_bucket=slots, seed=1
    )
    store = storage_of(table).store.array
    sent, held = overflows(first_buckets(store, present), store.buckets, slots)
    assert table.contains(present).all() and not table.contains(absent).any()
    assert int(table.probe_counts(present).sum()) == n + int(sent.sum())
    if load_factor < 1:  # an absent key is looked for up to the first bucket that was never full
        until_open = np.zeros(store.buckets, np.int64)
        for bucket in range(2 * store.buckets - 1, -1, -1):
            at = bucket % store.buckets
            until_open[at] = 1 if held[at] < slots else 1 + until_open[(at + 1) % store.buckets]
        assert (table.probe_counts(absent) == until_open[first_buckets(store, absent)]).all()
    table.check()


@pytest.mark.parametrize("device", HERE)
def test_every_slot_is_found_before_the_table_is_full(device: str) -> None:
    table = HashSet("u8", device=device, design="linear_probing", capacity=64, load_factor=1.0, on_full="raise")
    keys = np.arange(100, 165, dtype=np.uint64)
    assert table.insert(keys[:64]).all() and len(table) == 64
    with pytest.raises(TableFull) as caught:
        table.insert(keys)
    assert caught.value.keys.tolist() == [164]
    assert len(table) == 64 and table.contains(keys).sum() == 64
    assert table.erase(keys[:1]).all() and table.insert(keys[64:]).all()
    assert table.contains(keys[1:]).all() and not table.contains(keys[:1]).any()
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("slots", [1, 8])
def test_no_key_goes_further_than_the_limit(device: str, slots: int) -> None:
    limit = 32
    table = HashSet(
        "u4",
        device=device,
        design="linear_probing",
        capacity=300,
        load_factor=1.0,
        on_full="raise",
        attempts=1,
        slots_per_bucket=slots,
        probe_limit=limit,
        seed=1,
    )
    present, absent = np.split(np.random.default_rng(2).permutation(np.arange(2000, dtype="u4")), [300])
    held, failed = [], []
    for key in present:  # one at a time: as many as there are slots, and not all of these are near enough
        try:
            assert table.insert(np.array([key])).all()
            held.append(key)
        except TableFull as error:
            failed += error.keys.tolist()
    assert len(table) == len(held) > 250 and len(failed) == len(present) - len(held) > 0
    assert table.contains(np.array(held)).all() and not table.contains(np.array(failed, "u4")).any()
    assert not table.contains(absent).any()
    assert table.probe_counts(np.concatenate([present, absent])).max() == limit // slots
    table.check()


@pytest.mark.parametrize(
    ("load_factor", "per_cent"), [(0.75, (0, 0)), (0.8, (0, 0.0005)), (0.9, (0.0005, 0.05)), (0.95, (0.03, 2))]
)
def test_keys_fail_as_often_as_those_of_the_paper(load_factor: float, per_cent: tuple[float, float]) -> None:
    """In magnitude, with the limit that the laboratory gives it; the paper tells none."""
    n = 500_000
    keys = np.unique(np.random.default_rng(4).integers(0, 1 << 32, n + 9000, np.uint64))[:n].astype("u4")
    table = HashSet(
        "u4",
        device="cpu",
        design="linear_probing",
        capacity=n,
        load_factor=load_factor,
        on_full="raise",
        attempts=1,
        slots_per_bucket=1,
        probe_limit=512,
        seed=1,
    )
    failed = 0
    try:
        table.insert(keys)
    except TableFull as error:  # whose keys had no slot; no other was moved for them
        failed = len(error.keys)
    assert per_cent[0] <= 100 * failed / n <= per_cent[1]


@pytest.mark.parametrize("device", HERE)
def test_a_table_of_one_bucket(device: str) -> None:
    table = HashSet("u4", device=device, design="linear_probing", capacity=1, load_factor=1.0)
    top = np.array([2**32 - 1, 2**32 - 2, 2**32 - 3], np.uint32)  # reserved keys, whose bucket is no part of the ring
    assert table.insert(np.concatenate([top, np.arange(8, dtype="u4")])).all()
    assert table.contains(top).all() and not table.contains(np.arange(8, 99, dtype="u4")).any()
    assert table.erase(top[:2]).all() and table.contains(top).tolist() == [False, False, True]
    table.check()
