"""The slab list: what it does when the pool ends, and that an erased key is never stored twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.model import Model
from warphash import HashMap, TableFull
from warphash.runtime.slabs import SlabPool

N = 600


def table_of(n: int, rng: np.random.Generator, **options: Any) -> tuple[HashMap, Model, np.ndarray]:
    keys = rng.permutation(np.arange(40 * N, dtype=np.uint32))
    table = HashMap("u4", "u4", design="slab", device="cpu", capacity=N, **options)
    model = Model()
    model.inserted(keys[:n], keys[:n], table.insert(keys[:n], keys[:n]))
    return table, model, keys


@pytest.mark.parametrize("verb", ["insert", "assign", "upsert"])
def test_without_memory_for_more_slabs_nothing_changes(
    verb: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, model, keys = table_of(N, rng, rebucket=False)

    def refuse(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(SlabPool, "grow_by", refuse)
    batch = keys[N // 2 :]  # some are there
    with pytest.raises(TableFull, match="no room; the table is as it was"):
        getattr(table, verb)(batch, batch + 1, *(["add"] if verb == "upsert" else []))
    model.agrees(table, keys)
    monkeypatch.undo()
    model.inserted(batch, batch, table.insert(batch, batch))
    model.agrees(table, keys)


@pytest.mark.parametrize("design", ["slab", "lock_free_chaining"])
@pytest.mark.parametrize("verb", ["assign", "upsert"])
def test_counts_are_put_back_with_the_slots(verb: str, design: str, rng: np.random.Generator) -> None:
    """Of keys, or the table has fewer than none; of erased slots, or nobody looks for the room that they have."""
    keys = np.arange(5000, dtype=np.uint32)
    table = HashMap("u4", "u4", design=design, device="cpu", capacity=20, on_full="raise", rebucket=False, seed=1)
    model = Model()

    def does_not_fit() -> None:
        with pytest.raises(TableFull, match="the table is as it was"):
            getattr(table, verb)(keys, keys + 1, *(["add"] if verb == "upsert" else []))
        model.agrees(table, keys[:100])

    does_not_fit()  # an empty table is not copied beforehand
    while True:
        try:
            model.inserted(keys[len(model) :][:1], keys[:1], table.insert(keys[len(model) :][:1], keys[:1]))
        except TableFull:
            break
    full = len(model)
    model.erased(keys[: full // 2], table.erase(keys[: full // 2]))
    does_not_fit()
    model.inserted(keys[: full // 2], keys[: full // 2], table.insert(keys[: full // 2], keys[: full // 2]))
    assert len(table) == full
    model.erased(keys[:full], table.erase(keys[:full]))
    does_not_fit()  # nor is one that holds only erased slots
    model.inserted(keys[:full], keys[:full], table.insert(keys[:full], keys[:full]))
    model.agrees(table, keys[:100])


def test_erased_slots_of_a_fixed_table_come_back(rng: np.random.Generator) -> None:
    table, model, keys = table_of(0, rng, on_full="raise", rebucket=False)
    for _ in range(12):
        batch = rng.choice(keys, N, replace=False)
        model.inserted(batch, batch, table.insert(batch, batch))
        model.erased(batch, table.erase(batch))
    assert len(table) == 0
    model.inserted(keys[:N], keys[:N], table.insert(keys[:N], keys[:N]))
    model.agrees(table, keys)
    table.check()


def test_a_key_erased_in_front_of_its_list_is_not_stored_twice(rng: np.random.Generator) -> None:
    """S3-40: with erased slots used again, the second insert would come before the key that is still there."""
    keys = np.arange(100, dtype=np.uint32)
    table = HashMap("u4", "u4", design="slab", device="cpu", capacity=1, rebucket=False)  # one bucket
    table.insert(keys, keys)
    assert table.stats().slots == 15
    table.erase(keys[:40])
    assert not table.insert(keys[40:], keys[40:]).any()
    assert table.insert(keys, keys).sum() == 40
    table.check()


def test_lists_are_shortened_by_more_buckets(rng: np.random.Generator) -> None:
    table, model, keys = table_of(N, rng)
    for part in np.array_split(keys[N:], 4):
        model.inserted(part, part, table.insert(part, part))
        assert table.load_factor <= 1
    assert table.probe_counts(keys).mean() < 1.5
    assert table.stats().rebuilds > 0
    model.agrees(table, keys)


@pytest.mark.parametrize(("load", "slabs_per_bucket"), [(0.7, 1.068), (1.0, 1.432), (2.0, 2.454)])
def test_slabs_per_bucket(load: float, slabs_per_bucket: float) -> None:
    """S3-23: what an absent key reads is its bucket's whole list; the lengths are those of a Poisson distribution."""
    n = 1_000_000
    keys = np.random.default_rng(3).permutation(np.arange(2 * n, dtype=np.uint32))
    table = HashMap("u4", "u4", design="slab", device="cpu", capacity=int(n / load), load_factor=1, rebucket=False)
    table.insert(keys[:n], keys[:n])
    assert table.probe_counts(keys[n:]).mean() == pytest.approx(slabs_per_bucket, rel=0.005)
