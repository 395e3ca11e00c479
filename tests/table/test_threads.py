"""Several Python threads on one table: each call is whole, and no key is added twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from support.cases import design_names, list_designs
from warphash import HashMap, Operation

THREADS = 4
N = 40_000


@pytest.fixture(params=design_names())
def design(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def in_threads(work: Any) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


@pytest.mark.parametrize("capacity", [N, 16], ids=["roomy", "growing"])
def test_overlapping_inserts_add_each_key_once(design: str, capacity: int) -> None:
    table = HashMap("u4", "u4", capacity=capacity, design=design, device="cpu", seed=1)
    keys = np.arange(N, dtype=np.uint32)

    def insert(number: int) -> Any:
        order = np.random.default_rng(number).permutation(keys)
        added = np.zeros(N, np.int64)
        for batch in np.array_split(order, 10):
            added[batch] += table.insert(batch, np.full(len(batch), number, np.uint32))
        return added

    by_thread = in_threads(insert)
    assert (sum(by_thread) == 1).all()
    assert len(table) == N
    winners = np.argmax(by_thread, axis=0)
    np.testing.assert_array_equal(table[keys], winners)
    table.check()


def test_concurrent_finds(design: str) -> None:
    keys = np.arange(N, dtype=np.uint64)
    table = HashMap.from_arrays(keys, keys * 2, design=design, device="cpu", seed=1)

    def find(number: int) -> bool:
        asked = np.random.default_rng(number).integers(0, 2 * N, size=N).astype(np.uint64)
        answers = [table.find(batch, default=1) for batch in np.array_split(asked, 10)]
        values = np.concatenate([values for values, _ in answers])
        found = np.concatenate([found for _, found in answers])
        return bool((found == (asked < N)).all() and (values == np.where(asked < N, asked * 2, 1)).all())

    assert all(in_threads(find))


def test_finds_while_others_insert_and_the_table_grows(design: str) -> None:
    """A key that was there when a find began is found, even while cuckoo inserts move it."""
    settled = np.arange(2000, dtype=np.uint32)
    table = HashMap.from_arrays(settled, settled + 1, design=design, device="cpu", seed=1)

    def work(number: int) -> bool:
        right = True
        for step in range(12):
            if number % 2:
                start = 10_000 + 20_000 * number + 1000 * step
                new = np.arange(start, start + 1000, dtype=np.uint32)
                right &= bool(table.insert(new, new + 1).all())
            else:
                right &= bool((table[settled] == settled + 1).all())
        return right

    assert all(in_threads(work))
    assert len(table) == 2000 + 12_000 * (THREADS // 2)
    table.check()


def test_upserts_of_one_key_all_count(design: str) -> None:
    table = HashMap("u4", "i8", capacity=4, design=design, device="cpu", seed=1)
    batch = np.zeros(1000, np.uint32)

    def add(number: int) -> None:
        for _ in range(20):
            table.upsert(batch, np.ones(1000, np.int64), "add")

    in_threads(add)
    assert table[0] == THREADS * 20 * 1000


def test_erase_against_insert(design: str) -> None:
    table = HashMap("u4", "u4", capacity=64, design=design, device="cpu", seed=1)
    keys = np.arange(3000, dtype=np.uint32)

    def work(number: int) -> int:
        balance = 0
        for _ in range(10):
            if number % 2:
                balance -= int(np.count_nonzero(table.erase(keys)))
            else:
                balance += int(np.count_nonzero(table.insert(keys, keys)))
        return balance

    assert sum(in_threads(work)) == len(table)
    table.check()


def test_one_batch_on_several_threads(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its copies of a key meet: the threads of the engine walk equal parts, in the same order, at the same time."""
    monkeypatch.setenv("WARPHASH_NUM_THREADS", str(THREADS))
    distinct = np.random.default_rng(1).permutation(np.arange(100_000, dtype=np.uint32))
    batch = np.tile(distinct, THREADS)
    for _ in range(5):
        table = HashMap("u4", "u4", capacity=len(distinct), design=design, device="cpu", seed=1)
        for verb in (lambda m: m.insert(batch, batch), lambda m: m.erase(batch)):
            flags = verb(table).reshape(THREADS, -1)
            assert (flags.sum(axis=0) == 1).all()
        assert len(table) == 0
        assert table.upsert(batch, np.ones(len(batch), np.uint32), "add").sum() == len(distinct)
        assert (table[distinct] == THREADS).all()
        table.check()


@pytest.mark.parametrize("design", list_designs())
def test_finds_beside_erases_see_whole_pairs(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """16 bytes are two loads of a CPU: no find may answer with a key from before an erase and a value from after it."""
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "2")
    rng = np.random.default_rng(1)
    keys = rng.permutation(np.arange(8192, dtype=np.uint64) * 77_777)
    find, insert, _, erase = Operation
    table = HashMap.from_arrays(keys, keys, capacity=4 * len(keys), design=design, device="cpu")
    for _ in range(32):
        # Each of the two threads comes by a key sixteen times, at about the same time as the other.
        halves = [rng.permuted(np.repeat(np.arange(len(keys)), 16).reshape(-1, 16), axis=1).ravel() for _ in range(2)]
        batch = keys[np.concatenate(halves)]
        operations = rng.choice(np.array([find] * 4 + [insert, erase], np.uint8), len(batch))
        values, done = table.execute(operations, batch, batch, default=1)
        found = done & (operations == find)
        assert found.any() and not found[operations == find].all()
        np.testing.assert_array_equal(values, np.where(found, batch, 1))
    table.check()
