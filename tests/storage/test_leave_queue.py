"""Bounded tables whose ranks rise: keys leave in exact order, whatever happens to the keys that wait in the queue."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.engines import one_of_each
from support.inside import storage_of
from warphash import HashMap
from warphash.storage.batch import Batch
from warphash.storage.bounded import bounded_rows, leave_queue

engines = pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))

BOUND = 12
KEYS = st.integers(0, 30)
STEPS = st.one_of(
    st.tuples(st.just("insert"), KEYS),
    st.tuples(st.just("insert many"), KEYS),
    st.tuples(st.just("find"), KEYS),
    st.tuples(st.just("erase"), KEYS),
    st.tuples(st.just("evict"), st.integers(0, 4)),
    st.tuples(st.sampled_from(["copy", "rebuild", "clear"]), st.just(0)),
)


class Model:
    """What stays, in the order of the last use ("lru") or of the insert ("fifo")."""

    def __init__(self, evict: str) -> None:
        self.renews, self.held = evict == "lru", OrderedDict[int, int]()

    def insert(self, key: int) -> None:
        if key in self.held:
            self.use(key)
        self.held.setdefault(key, key)
        while len(self.held) > BOUND:
            self.held.popitem(last=False)

    def use(self, key: int) -> None:
        if self.renews and key in self.held:
            self.held.move_to_end(key)


@engines
@pytest.mark.parametrize("evict", ["lru", "fifo"])
def test_keys_leave_in_order(device: str, evict: str) -> None:
    @settings(max_examples=60 if device == "cpu" else 8, deadline=None)
    @given(st.lists(STEPS, min_size=10, max_size=60))
    def check(steps: list[tuple[str, int]]) -> None:
        model, table = Model(evict), HashMap("int64", "int64", max_size=BOUND, evict=evict, device=device)
        for verb, n in steps:
            keys = np.array([n])
            if verb == "insert":
                model.insert(n)
                table.insert(keys, keys)
            elif verb == "insert many":  # one after another, so that no two have one rank
                for key in range(n, n + 6):
                    model.insert(key)
                    table.insert(np.array([key]), np.array([key]))
            elif verb == "find":
                model.use(n)
                table.find(keys)
            elif verb == "erase":
                model.held.pop(n, None)
                table.erase(keys)
            elif verb == "evict":
                left = [model.held.popitem(last=False)[0] for _ in range(min(n, len(model.held)))]
                assert sorted(np.asarray(table.evict(n)[0]).tolist()) == sorted(left)
            elif verb == "copy":
                table = table.copy()
            elif verb == "rebuild":
                table.reserve(8 * BOUND)
            else:
                model.held.clear()
                table.clear()
            assert sorted(np.asarray(table.keys()).tolist()) == sorted(model.held)

    check()


@engines
def test_one_choice_serves_several_batches(device: str) -> None:
    table = HashMap("int64", "int64", max_size=800, evict="fifo", device=device)
    with mock.patch.object(bounded_rows, "queue_of", wraps=leave_queue.queue_of) as chosen:
        for at in range(0, 2000, 50):
            keys = np.arange(at, at + 50)
            table.insert(keys, keys)
            assert len(table) == min(at + 50, 800)
    assert sorted(np.asarray(table.keys()).tolist()) == [*range(1200, 2000)]
    assert 0 < chosen.call_count <= 8, "24 batches drive keys out, and a quarter of the keys is queued"


def test_the_queue_is_counted_and_ends_with_given_ranks() -> None:
    table = HashMap("int64", "int64", max_size=400, evict="lru", device="cpu")
    keys = np.arange(400)
    table.insert(keys, keys)
    before = table.nbytes
    table.insert(np.arange(400, 410), np.arange(400, 410))
    storage: Any = storage_of(table)
    assert len(table) == 400 and table.nbytes >= before + storage._queue.keys.nbytes
    late, rank = np.array([999]), np.array([0], np.uint64)  # of a key that came first, in a table before
    storage.update(Batch(late.ctypes.data, late.ctypes.data, 1), ranks=rank.ctypes.data)
    assert len(table) == 400 and 999 not in table
