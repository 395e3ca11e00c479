"""Lists are packed: what stays is as short as can be, in its order, and what is free is used again; every engine."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from support.cases import Case, list_designs
from support.engines import ENGINES, one_of_each
from support.inside import parts_of, storage_of
from support.model import Model
from support.types import Array, special_keys
from warphash import HashMap, MultiMap, ParameterError

PRIME = 4294967291
LISTS = 13


@pytest.fixture(params=one_of_each(*ENGINES))
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=list_designs())
def design(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Lists:
    """What the lists of a table should be like by the paper's function (docs/fidelity.md#slabhash-hash-family)."""

    def __init__(self, table: Any) -> None:
        self.table, store = table, storage_of(table).store.array
        assert (store.buckets, parts_of(table).facts.options["hash"]) == (LISTS, "universal")
        self.a, self.b = int(store.table.multiplier[0]), int(store.table.addend[0])
        self.pairs_per_node = table.stats().slots // LISTS

    def of(self, keys: Array) -> Array:
        return np.array([(self.a * int(key) + self.b) % PRIME % LISTS for key in keys])

    def shortest(self, live: Array) -> Array:
        """Nodes of each list that holds so many pairs (docs/fidelity.md#slabhash-flush)."""
        return np.maximum(1, -(-live // self.pairs_per_node))

    def lengths(self) -> Array:
        """Nodes of each list: those that the find of an absent key reads."""
        asked = np.arange(10_000_000, 10_000_000 + 40 * LISTS, dtype=np.uint32)
        counts, lists = np.asarray(self.table.probe_counts(asked)), self.of(asked)
        lengths = np.array([counts[lists == number][0] for number in range(LISTS)])
        np.testing.assert_array_equal(counts, lengths[lists])
        assert self.table.stats().nodes == lengths.sum()
        return lengths


@pytest.mark.parametrize("kind", [HashMap, MultiMap])
def test_every_list_is_as_short_as_can_be(kind: Any, design: str, device: str, rng: np.random.Generator) -> None:
    """By one bucket, by slices, and all of them; beside lists that nothing was erased from, or everything."""
    options = {"buckets": LISTS, "rebucket": False, "hash": "universal"}
    table = kind("u4", "u4", design=design, device=device, capacity=100, seed=5, **options)
    lists = Lists(table)
    keys = rng.permutation(np.arange(900, dtype=np.uint32))
    table.insert(keys, keys + 1)
    of_key = lists.of(keys)
    gone = (rng.random(len(keys)) < 0.7) & (of_key != 4) | (of_key == 9)
    table.erase(keys[gone])
    before = lists.lengths()
    shortest = lists.shortest(np.bincount(of_key[~gone], minlength=LISTS))
    np.testing.assert_array_equal(before, lists.shortest(np.bincount(of_key, minlength=LISTS)))
    assert shortest[9] == 1 and shortest[4] == before[4] and (shortest < before).sum() > LISTS // 2
    expected = before.copy()
    for asked in (9, np.int64(3), slice(5, 8), slice(20, 30), slice(7, 2), slice(-2, None), 4, None, None):
        chosen = np.arange(LISTS)[slice(None) if asked is None else asked]
        freed = int((expected[chosen] - shortest[chosen]).sum())
        expected[chosen] = shortest[chosen]
        assert table.flush(asked) == freed
        np.testing.assert_array_equal(lists.lengths(), expected)
    left = keys[~gone]
    model = Model()
    model.inserted(left, left + 1, np.ones(len(left), bool))
    model.agrees(table, keys)
    # Lists that are short go on as others do, and take the nodes that are free.
    memory = table.nbytes
    table.insert(keys[gone], keys[gone] + 7)
    np.testing.assert_array_equal(lists.lengths(), before)
    assert table.nbytes == memory
    model.inserted(keys[gone], keys[gone] + 7, np.ones(int(gone.sum()), bool))
    model.agrees(table, keys)


def test_every_number_of_erased_slots(design: str, device: str) -> None:
    """One list, flushed after each of its keys has gone, from its front and from its end."""
    keys = np.arange(40, dtype=np.uint32)
    for order in (keys, keys[::-1]):
        table = HashMap("u4", "u4", design=design, device=device, buckets=1, rebucket=False)
        per_node = table.stats().slots
        table.insert(keys, keys)
        for gone, key in enumerate(order, 1):
            nodes = table.stats().nodes
            table.erase([key])
            freed = table.flush()
            assert table.stats().nodes == nodes - freed == max(1, -(-(40 - gone) // per_node))
            assert sorted(table.keys().tolist()) == sorted(order[gone:].tolist())
        table.check()
        assert table.flush() == 0
        assert table.insert(keys, keys).all()


def test_values_keep_their_order(design: str, device: str, rng: np.random.Generator) -> None:
    table = MultiMap("u4", "u8", design=design, device=device, buckets=2, rebucket=False)
    held: dict[int, list[int]] = {key: [] for key in range(6)}
    keys = np.array([*held], np.uint32)
    for number in range(30):
        table.insert(keys, np.arange(6, dtype=np.uint64) + 10 * number)
        for key in held:
            held[key].append(10 * number + key)
    for round_number in range(6):
        batch = rng.choice(6, 20).astype(np.uint32)
        table.erase(batch)
        for key in batch.tolist():
            del held[key][:1]
        if round_number == 3:
            table.erase_all([5])
            held[5] = []
        table.flush(round_number % 2 if round_number < 4 else None)
        values, offsets = table.find_all(keys)
        assert [values[a:b].tolist() for a, b in pairwise(offsets)] == [*held.values()]
    table.check()


@pytest.mark.parametrize("wrong", [13, 2**40, -1, -14, 1.0, "3", True, slice(0, 10, 2), slice(None, None, -1)], ids=str)
def test_buckets_that_are_none(design: str, wrong: Any) -> None:
    table = HashMap("u4", "u4", design=design, device="cpu", buckets=13, rebucket=False)
    keys = np.arange(500, dtype=np.uint32)
    table.insert(keys, keys)
    table.erase(keys[::2])
    nodes = table.stats().nodes
    with pytest.raises(ParameterError, match="bucket"):
        table.flush(wrong)
    assert table.stats().nodes == nodes and len(table) == 250


# ---- reserved buckets: their lists grow into the pool as others do, and only their first nodes tell whose they are
@pytest.mark.parametrize("key", ["u4", "u8"])
def test_reserved_keys_come_and_go(design: str, key: str, device: str) -> None:
    case = Case(device, design, key, key, {})
    special = special_keys(case.key_dtype)
    others = (np.arange(20) + 50).astype(case.key_dtype)
    table, model = case.table(capacity=4), Model()
    model.inserted(others, others, table.insert(others, others))
    for number in range(60):  # each time into other slots, so into nodes behind the first
        values = (np.arange(len(special)) + 10 * number).astype(case.value_dtype)
        model.inserted(special, values, table.insert(special, values))
        if number % 15 == 7:
            model.agrees(table, special)
        if number == 30:
            table.shrink()
            model.agrees(table, special)
        model.erased(special[:3], table.erase(special[:3]))
        model.erased(special[3:], table.erase(special[3:]))
        if number % 20 == 19:
            table.flush()  # if it has not done so by itself
            assert storage_of(table).store.tombstones == 0 == table.flush()
            model.agrees(table, special)
    values = np.arange(len(special)).astype(case.value_dtype)
    model.inserted(special, values, table.insert(special, values))
    model.agrees(table, special)
    table.reserve(500)
    model.agrees(table, special)
    model.agrees(table.copy(), special)


@pytest.mark.parametrize("key", ["u4", "u8"])
def test_many_copies_of_reserved_keys(design: str, key: str, device: str) -> None:
    dtype = np.dtype(key)
    special = special_keys(dtype)
    table = MultiMap(key, key, design=design, device=device, capacity=4)
    for number in range(40):
        table.insert(special, (np.arange(len(special)) + 10 * number).astype(dtype))
    table.erase(special[1:])
    table.erase_all(special[2:3])

    def whole(table: Any) -> None:
        counts = np.array([40, 39, 0, 39, 39, 39, 39, 39])
        assert len(table) == counts.sum()
        np.testing.assert_array_equal(table.count(special), counts)
        values, offsets = table.find_all(special)
        np.testing.assert_array_equal(np.diff(offsets), counts)
        for number in range(len(special)):
            its = values[offsets[number] : offsets[number + 1]]
            assert sorted(its.tolist()) == [10 * n + number for n in range(40 - counts[number], 40)] * bool(len(its))
        keys, values = table.to_arrays()
        assert np.unique(keys).tolist() == sorted(special[counts > 0].tolist())
        np.testing.assert_array_equal(values % dtype.type(10), [special.tolist().index(k) for k in keys.tolist()])
        table.check()

    whole(table)
    assert table.flush() > 0
    whole(table)
    for rebuild in (table.shrink, lambda: table.reserve(2000), table.shrink):
        rebuild()
        whole(table)
        assert table.find_all(special[:1])[0].tolist() == [10 * n for n in range(40)], "in the order of the batches"
    whole(table.copy())


# ---- by itself
@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize("verb", ["erase", "execute", "erase_all"])
def test_memory_of_a_table_that_keys_come_to_and_leave(design: str, verb: str, on_full: str, device: str) -> None:
    n, rounds = (150, 24) if device == "emulated" else (1000, 40)
    kind: Any = MultiMap if verb == "erase_all" else HashMap
    table = kind("u4", "u4", design=design, device=device, capacity=2 * n, on_full=on_full, seed=3)
    kept = np.arange(n // 4, dtype=np.uint32)
    table.insert(kept, kept)
    memory = []
    for number in range(1, rounds):
        keys = np.arange(number * n, number * n + n, dtype=np.uint32)
        table.insert(keys, keys)
        if verb == "execute":
            assert table.execute(np.full(n, 3, np.uint8), keys)[1].all()
        else:
            assert (getattr(table, verb)(keys) == 1).all()
        assert len(table) == len(kept)
        assert storage_of(table).store.tombstones <= max(1024, len(kept) + n), "finds read what is erased"
        memory.append(table.nbytes)
    assert memory[-1] == memory[rounds // 3] and (on_full == "grow" or memory[-1] == memory[0])
    held, found = table.find(kept)
    assert found.all() and (held == kept).all()
    table.check()
