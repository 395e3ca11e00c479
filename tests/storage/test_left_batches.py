"""Small batches that a table of buckets launches and leaves: what later calls see of them, and what they place."""

from __future__ import annotations

import gc
import weakref
from itertools import product
from typing import Any

import numpy as np
import pytest

import warphash
from support.inside import storage_of
from warphash.designs import registry
from warphash.runtime.abi import Flag
from warphash.runtime.devices import engine_for
from warphash.storage.batch import Batch
from warphash.storage.buckets.array import BucketArray
from warphash.storage.buckets.store import BucketSlots
from warphash.storage.result_slot import ResultSlot
from warphash.storage.slots import TableKind
from warphash.storage.stores import kernel_spec

N = 60
"""Elements of a batch: few enough for one block of the emulated engine."""


def table(design: str = "cuckoo", **options: Any) -> warphash.HashMap:
    return warphash.HashMap("u8", "u4", device="emulated", design=design, capacity=4000, seed=5, **options)


def store_of(made: warphash.HashMap) -> BucketSlots:
    store = storage_of(made).store
    assert isinstance(store, BucketSlots)
    return store


def batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(0, 1500, N, dtype=np.uint64), rng.integers(0, 1 << 32, N, dtype=np.uint32)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a call has waited for an outcome."""
    count: list[int] = []
    outcome = ResultSlot.outcome

    def counted(slot: ResultSlot, stream: Any) -> tuple[int, int, int, int]:
        count.append(1)
        return outcome(slot, stream)

    monkeypatch.setattr(ResultSlot, "outcome", counted)
    return count


@pytest.mark.parametrize("verb", ["insert", "assign"])
def test_a_small_batch_that_fits_is_left_until_the_next_call(verb: str, waits: list[int]) -> None:
    made, keys = table(), np.arange(N, dtype=np.uint64)
    values = keys.astype(np.uint32)
    added = getattr(made, verb)(keys, values)
    assert not waits and store_of(made).pending and added.all()
    assert len(made) == N and len(waits) == 1 and not store_of(made).pending
    assert not getattr(made, verb)(keys, values + np.uint32(1)).any() and len(waits) == 1
    found = made.find(keys)
    assert len(waits) == 2 and found[1].all()
    assert (found[0] == values + np.uint32(verb == "assign")).all()
    made.find(keys)
    assert len(waits) == 2


def test_a_table_with_a_batch_that_was_left_is_freed_with_its_last_reference() -> None:
    made = table()
    made.insert(np.arange(N, dtype=np.uint64), np.zeros(N, np.uint32))
    assert store_of(made).pending
    array = weakref.ref(store_of(made).array)
    gc.disable()
    del made
    gone = array() is None
    gc.enable()
    assert gone


@pytest.mark.parametrize(
    "options",
    [
        {"on_full": "raise"},
        {"load_bounds": (0.1, 0.6)},
        {"count_probes": True},
        {"design": "iceberg"},
        {"max_size": 3000},
    ],
    ids=str,
)
def test_tables_that_need_the_end_of_a_batch_wait(options: dict[str, Any], waits: list[int]) -> None:
    made = table(**options)
    made.insert(np.arange(N, dtype=np.uint64), np.zeros(N, np.uint32))
    assert waits and not storage_of(made).store.pending


def test_batches_that_need_their_outcome_wait(waits: list[int]) -> None:
    made, keys = table(), np.arange(N, dtype=np.uint64)
    ones = np.ones(N, np.uint32)
    made.upsert(keys, ones, "add")
    assert len(waits) == 1
    assert (made.find_or_insert(keys, ones)[0] == 1).all() and len(waits) == 2
    made.insert(np.arange(3000, 6000, dtype=np.uint64), np.zeros(3000, np.uint32))
    assert len(made) == N + 3000


@pytest.mark.parametrize("seed", range(4))
def test_pairs_without_a_slot_are_placed_by_the_next_call(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no evictions allowed, a batch displaces a pair, and the rest of its new keys finds no slot."""
    recover, recoveries = BucketSlots.recover, list[int]()

    def counted(store: BucketSlots, stream: Any) -> None:
        recoveries.append(1)
        recover(store, stream)

    monkeypatch.setattr(BucketSlots, "recover", counted)
    made, held, rng = table(), dict[int, int](), np.random.default_rng(seed)
    for step in range(40):
        keys, values = batch(rng)
        if step == 20:
            keys[:4] = [0, 1, (1 << 64) - 1, (1 << 64) - 2]  # some equal the marks of slots
        kernels = store_of(made).array.table
        limit, kernels.chain_limit = kernels.chain_limit, 0
        added = made.assign(keys, values)
        kernels.chain_limit = limit
        first = {int(key) for key in keys} - held.keys()
        assert {int(key) for key in keys[added]} == first and added.sum() == len(first)
        if step % 3 == 0:  # otherwise the next update finds what the batch has left
            asked = np.fromiter({*held, *map(int, keys)}, np.uint64)
            got, there = made.find(asked)
            assert there.all() and all(
                value == held[key] if key not in set(keys.tolist()) else value in values[keys == key]
                for key, value in zip(asked.tolist(), got.tolist(), strict=True)
            )
        new, _ = made.find(keys)
        held |= dict(zip(keys.tolist(), new.tolist(), strict=True))
        assert len(made) == len(held)
    made.check()
    assert recoveries
    got, there = made.find(np.fromiter(held, np.uint64))
    assert there.all() and got.tolist() == list(held.values())


@pytest.mark.parametrize("value_bytes", [8, 0])
def test_a_pair_that_finds_no_slot_is_displaced_if_the_kernel_adopts(value_bytes: int) -> None:
    """No evictions are allowed: a key that starts behind the first displaced one finds no slot if it meets another."""
    engine: Any = engine_for("emulated")
    design, n = registry.get("cuckoo"), 256  # as many as a block has lanes
    parameters = design.resolve({})
    spec = kernel_spec(design, parameters, 8, value_bytes, "mixer")
    keys = np.arange(100, 100 + n, dtype=np.uint64)
    held, out = engine.from_host(keys), engine.allocate(8 * n)
    found_no_slot = 0
    for seed, adopts in product(range(3), (False, True)):
        flags = engine.from_host(np.full(n, 77, np.uint8))
        array = BucketArray(TableKind(engine, design, parameters, spec), 280, seed, "mixer")
        array.clear()
        array.table.chain_limit = 0
        values = held.ptr if value_bytes else 0
        array.begin(Batch(held.ptr, values, n, flags=flags.ptr), adopts=adopts)
        outcome, told = array.outcome(), engine.to_host(flags.ptr, np.uint8, n)
        displaced = array.displaced_pairs()
        assert outcome.unplaced == (told == Flag.UNPLACED).sum() and outcome.changed == (told == Flag.CHANGED).sum()
        assert outcome.displaced == len(displaced.keys) and outcome.changed + outcome.unplaced == n
        assert displaced.values is None or (displaced.values == displaced.keys).all()
        if adopts:
            assert outcome.unplaced == 0
            stored = engine.to_host(out.ptr, np.uint64, array.scan(n, out.ptr, 0))
            assert sorted([*stored.tolist(), *displaced.keys.tolist()]) == keys.tolist()
        found_no_slot += outcome.unplaced
    assert found_no_slot
