"""DyHash where a key has few slots to be in: load factors within the bounds that chains of evictions cannot reach."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from support.inside import storage_of
from support.refusals import refusing
from support.resizes import counted_moves
from support.subtables import scale, sizes_of, store_of, table_of
from warphash import TableFull
from warphash.runtime.devices import engine_for
from warphash.storage.subtables.array import SubtableArray
from warphash.storage.subtables.store import SubtableSlots
from warphash.storage.update.pairs import Pairs


def wide(ids: Any, key_bytes: int) -> np.ndarray:
    """A key of so many bytes for each number."""
    rows = np.zeros((len(ids), key_bytes), np.uint8)
    rows[:, :8] = np.asarray(ids, np.uint64).view(np.uint8).reshape(-1, 8)
    return rows.reshape(-1).view(f"V{key_bytes}")


def most_resizes(slots: int, subtables: int) -> int:
    """Of one batch: each subtable is halved, or doubled, until it is empty or large; one halving is undone."""
    return subtables * math.ceil(math.log2(slots)) + 4


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("subtables", [2, 3])
@pytest.mark.parametrize(("key_bytes", "alpha"), [(65, 0.4), (100, 0.55), (128, 0.4), (64, 0.55)])
def test_batches_of_wide_keys_end(device: str, seed: int, subtables: int, key_bytes: int, alpha: float) -> None:
    n = scale(device, 1200)
    table = table_of(device, f"V{key_bytes}", "u4", subtables=subtables, alpha=alpha, seed=seed)
    ids = np.arange(1, n + 1, dtype="u4")
    keys = wide(ids, key_bytes)
    for _ in range(2):
        with counted_moves() as moves:
            for some in np.array_split(np.arange(n), 12):
                before = len(moves)
                assert table.insert(keys[some], ids[some]).all() and table.contains(keys[some]).all()
                assert len(moves) - before <= most_resizes(table.stats().slots, subtables)
            assert len(table) == n and (table.find(keys)[0] == ids).all()
            table.check()
            for some in np.array_split(np.random.default_rng(seed).permutation(n), 12):
                before, slots = len(moves), table.stats().slots
                assert table.erase(keys[some]).all() and not table.contains(keys[some]).any()
                len(table)  # which halves subtables
                assert len(moves) - before <= most_resizes(slots, subtables)
                table.check()
            assert len(table) == 0 and sum(move.pairs for move in moves) <= 16 * n
    assert max(sizes_of(table)) == 1 or any(size % 2 for size in sizes_of(table))


@pytest.mark.parametrize("key_bytes", [64, 128])
@pytest.mark.parametrize("seed", range(3))
def test_one_key_in_and_out_does_not_resize_each_time(key_bytes: int, seed: int) -> None:
    n = 600
    table = table_of("cpu", f"V{key_bytes}", "u4", subtables=2, seed=seed)
    ids = np.arange(1, n + 10, dtype="u4")
    keys = wide(ids, key_bytes)
    table.insert(keys[:n], ids[:n])
    with counted_moves() as moves:
        operations = 0
        for size in range(n - 1, 30, -9):
            assert table.erase(keys[size : size + 9]).sum() >= 1
            for one in range(n, n + 9):
                assert table.insert(keys[one : one + 1], ids[one : one + 1]).all()
                assert table.erase(keys[one : one + 1]).all()
                operations += 2
    table.check()
    assert sum(move.pairs for move in moves) <= 16 * operations


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("subtables", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_table_of_one_size_has_its_pairs_back(device: str, subtables: int, seed: int) -> None:
    """Where evictions found no slot for a batch, they find the slots again that there were before."""
    slots = scale(device, 640)
    options = {"capacity": slots, "load_factor": 1.0, "on_full": "raise", "subtables": subtables, "seed": seed}
    table = table_of(device, "V128", "u4", **options)
    ids = np.arange(1, 2 * slots, dtype="u4")
    keys = wide(ids, 128)
    held, full = 0, 0
    step = max(2, slots // 40)
    while full < 4:
        some = slice(held, held + step)
        try:
            held += int(table.insert(keys[some], ids[some]).sum())
        except TableFull as error:
            full += 1
            step = max(1, step // 4)
            assert "as it was" in str(error) and len(error.keys)
        assert len(table) == held
        assert (table.contains(keys) == (ids <= held)).all() and (table.find(keys[:held])[0] == ids[:held]).all()
    table.check()


def test_a_halving_is_undone_without_memory() -> None:
    """The old copy of the subtable is taken for the new one."""
    table = table_of("cpu", "V128", "u4", subtables=2, seed=0)
    ids = np.arange(1, 600, dtype="u4")
    keys = wide(ids, 128)
    table.insert(keys, ids)
    undone = 0
    end_halving = SubtableArray.end_halving

    def ending(self: SubtableArray, *given: Any) -> Any:
        displaced = end_halving(self, *given)
        if displaced.n:
            refusals.append(mock.patch.object(SubtableArray, "_memory_of", side_effect=MemoryError("none left")))
            refusals[-1].start()
        return displaced

    for some in np.array_split(np.arange(len(keys)), 40):
        refusals: list[Any] = []
        with mock.patch.object(SubtableArray, "end_halving", ending):
            assert table.erase(keys[some]).all()
        for refusal in refusals:
            refusal.stop()
        undone += len(refusals)
        assert table.contains(keys).sum() == len(table)
        table.check()
    assert undone


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_pairs_that_cannot_be_placed_for_want_of_memory_are_placed_later(device: str) -> None:
    table = table_of(device, "u4", "u4", capacity=400, load_factor=0.9, beta=0.97, subtables=2)
    ids = np.arange(1, 3 * table.stats().slots, dtype="u4")
    held = int(0.87 * table.stats().slots)
    table.insert(ids[:held], ids[:held])
    len(table)  # waits
    store, slots = store_of(table), table.stats().slots
    some = ids[held : int(0.94 * slots)]
    limit, store.table.chain_limit = store.table.chain_limit, 0  # no eviction leads anywhere
    assert table.insert(some, some).all() and storage_of(table).store._pending is not None
    store.table.chain_limit = limit
    calls = [
        lambda: len(table),
        lambda: table.find(ids),
        lambda: table.insert(ids[-5:], ids[-5:]),
        lambda: table.assign(ids[:5], ids[:5]),
        lambda: table.erase(ids[:5]),
        lambda: table.stats(),
    ]
    nowhere = mock.patch.object(SubtableSlots, "_left_of", lambda self, displaced, *given: displaced)
    for call in calls:  # an answer without these pairs would be wrong
        with refusing(engine_for(device), 1, once=False), nowhere, pytest.raises(MemoryError):
            call()
    size = held + len(some)
    assert len(table) == size and (table.contains(ids) == (ids <= size)).all()
    table.check()
    assert table.insert(ids[-5:], ids[-5:]).all() and table.erase(ids[-5:]).all()


def test_a_table_with_pairs_that_cannot_be_placed_can_be_cleared() -> None:
    table = table_of("cpu", "V128", "u4", subtables=2, capacity=64)
    keys = wide(range(1, 20), 128)
    table.insert(keys, np.arange(19, dtype="u4"))
    elastic, store = storage_of(table).store, store_of(table)
    nowhere = mock.patch.object(SubtableSlots, "_left_of", lambda self, displaced, *given: displaced)
    with mock.patch.object(SubtableArray, "_memory_of", side_effect=MemoryError("none left")), nowhere:
        row = store.engine.to_host(store.current.subtables[0].memory.ptr, "V128", 1)
        elastic._displaced = Pairs(row, np.zeros(1, "V4"))
        with pytest.raises(MemoryError, match="1 pairs have no slot"):
            elastic._place_displaced(None)
        with pytest.raises(MemoryError, match="free some memory"):
            table.contains(keys)
        table.clear()
    assert len(table) == 0 and not table.contains(keys).any()
    assert table.insert(keys, np.arange(19, dtype="u4")).all()
    table.check()
