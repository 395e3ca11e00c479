"""MultiMap: each verb, on every engine and type, in lists and in groups, against a dict of lists."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from support.cases import Case, MultiCase, group_designs, list_designs, only
from support.inside import storage_of
from support.multi_model import MultiModel
from support.types import Array, as_bytes, special_keys
from warphash import CorruptFile, HashMap, MultiMap, TableFull, unpickle_to
from warphash.storage.chains.node_pool import SlabPool


def values_of(case: Case, n: int, first: int = 0) -> Array:
    """Values that differ as far as the type goes."""
    bits = np.arange(first, first + n, dtype=np.uint64)
    return bits.astype(f"u{case.value_dtype.itemsize}").view(case.value_dtype)


class Checked:
    """A table and its model."""

    def __init__(self, case: Case, **options: Any) -> None:
        self.case, self.table, self.model = case, case.table(**options), MultiModel()
        self.written = 0

    def insert(self, keys: Array) -> None:
        values = values_of(self.case, len(keys), self.written)
        self.written += len(keys)
        assert self.table.insert(keys, values) is None
        self.model.inserted(keys, values, self.table)

    def erase(self, keys: Array) -> None:
        self.model.erased(keys, self.table.erase(keys))

    def erase_all(self, keys: Array) -> None:
        self.model.erased_all(keys, self.table.erase_all(keys))

    def agrees(self, *asked: Array) -> None:
        self.model.agrees(self.table, *asked)


def pool_of(case: Case, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Keys to insert, the patterns that slots use themselves among them, and keys that never are."""
    keys = case.keys(n + 10, rng)
    return np.concatenate([keys[10:], special_keys(case.key_dtype)]), keys[:10]


def test_items_and_iteration(multi_case: Case, rng: np.random.Generator) -> None:
    keys, absent = pool_of(multi_case, rng, 20)
    checked = Checked(multi_case)
    for count in (3, 2, 1):
        checked.insert(keys[: 7 * count])
    table, some = checked.table, keys[:9]
    values, offsets = table[some]
    expected, starts = table.find_all(some)
    assert as_bytes(values) == as_bytes(expected) and offsets.tolist() == starts.tolist()
    assert as_bytes(table[keys[0]]) == checked.model.values[as_bytes(keys[:1])[0]]
    assert Counter(as_bytes(np.array(list(table), multi_case.key_dtype))) == {
        name: len(held) for name, held in checked.model.values.items()
    }
    assert keys[0] in table and absent[0] not in table
    with pytest.raises(KeyError):
        table[absent[0]]
    with pytest.raises(KeyError, match="and 9 more keys"):
        table[np.concatenate([some, absent])]
    checked.agrees(absent)


def test_every_pair_is_kept(multi_case: Case, rng: np.random.Generator) -> None:
    keys, absent = pool_of(multi_case, rng, multi_case.n // 2)
    checked = Checked(multi_case, capacity=len(keys))
    checked.agrees(absent)
    for batch in (keys, keys[::2], rng.choice(keys, len(keys)), keys[:1], keys[:0]):
        checked.insert(batch)
    checked.agrees(absent, keys)


def test_values_come_in_the_order_of_the_batches(multi_case: Case, rng: np.random.Generator) -> None:
    """Few keys, many batches: their lists get long, and the table grows and is rebuilt on the way."""
    keys, absent = pool_of(multi_case, rng, 4)
    checked = Checked(multi_case, capacity=2)
    for number in range(12 if multi_case.engine == "emulated" else 40):
        checked.insert(rng.choice(keys, rng.integers(1, 3 * len(keys))))
        if number % 10 == 9:
            checked.table.reserve(100 * number)
            checked.agrees(absent, keys)
    checked.agrees(absent, keys)
    if multi_case.design in list_designs() and multi_case.parameters.get("rebucket", True):
        assert checked.table.stats().rebuilds > 0


def test_erase_takes_what_came_first(multi_case: Case, rng: np.random.Generator) -> None:
    keys, absent = pool_of(multi_case, rng, 30)
    checked = Checked(multi_case, capacity=len(keys))
    for _ in range(4):
        checked.insert(rng.choice(keys, 80))
    for n in (10, 0, 200, 60, 300):
        checked.erase(rng.choice(np.concatenate([keys, absent]), n))
        checked.agrees(keys)
        checked.insert(rng.choice(keys, 25))
    checked.agrees(keys, absent)


def test_erase_all(multi_case: Case, rng: np.random.Generator) -> None:
    keys, absent = pool_of(multi_case, rng, 30)
    checked = Checked(multi_case, capacity=len(keys))
    for _ in range(3):
        checked.insert(rng.choice(keys, 120))
        checked.erase_all(keys[:0])
        checked.erase_all(rng.choice(np.concatenate([keys[::2], absent]), 70))
        checked.agrees(keys)
    checked.erase_all(np.concatenate([keys, absent, keys]))
    assert len(checked.table) == 0
    checked.insert(keys)
    checked.agrees(absent)


def test_one_key_very_often(multi_case: Case, rng: np.random.Generator) -> None:
    n = {"emulated": 200, "cpu": 20_000, "cuda": 100_000}[multi_case.engine]
    keys, absent = pool_of(multi_case, rng, 3)
    checked = Checked(multi_case, capacity=4)
    checked.insert(keys)
    checked.insert(np.repeat(keys[1:2], n, axis=0))
    checked.insert(keys)
    checked.agrees(absent)
    checked.erase(np.repeat(keys[1:2], 20, axis=0))
    checked.agrees()
    checked.erase_all(keys[1:2])
    checked.agrees(keys)


def test_ends_of_long_lists(multi_case: Case, rng: np.random.Generator) -> None:
    """What is known of them is forgotten with the nodes."""
    keys, _ = pool_of(multi_case, rng, 3)
    checked = Checked(multi_case, capacity=4)
    table = checked.table
    for upkeep in (table.flush, table.shrink, lambda: table.reserve(2000), table.clear, table.flush):
        checked.insert(np.repeat(keys[:2], 150, axis=0))
        checked.erase_all(keys[:1])
        checked.insert(np.repeat(keys[1:3], 10, axis=0))
        upkeep()
        if upkeep == table.clear:
            checked.model = MultiModel()
        checked.agrees(keys)
    checked.insert(np.repeat(keys[:2], 150, axis=0))
    checked.agrees(keys)


def test_find_default(multi_case: Case, rng: np.random.Generator) -> None:
    keys, absent = pool_of(multi_case, rng, 20)
    checked = Checked(multi_case)
    checked.insert(keys)
    values, found = checked.table.find(np.concatenate([absent, keys]), default=77)
    assert (values[: len(absent)] == 77).all() and values.dtype == multi_case.value_dtype
    np.testing.assert_array_equal(found, np.arange(len(values)) >= len(absent))


def test_empty_batches(multi_case: Case, rng: np.random.Generator) -> None:
    keys, _ = pool_of(multi_case, rng, 20)
    none = keys[:0]
    for checked in (Checked(multi_case), Checked(multi_case, capacity=0)):
        for batch in (none, keys):
            checked.insert(batch)
            for verb in (checked.erase, checked.erase_all, checked.insert):
                verb(none)
            values, offsets = checked.table.find_all(none)
            assert values.shape == (0,) and offsets.tolist() == [0]
            assert checked.table.count(none).shape == checked.table.contains(none).shape == (0,)
            checked.agrees(none)
    assert len(multi_case.from_arrays(none, values_of(multi_case, 0))) == 0


def test_from_arrays(multi_case: Case, rng: np.random.Generator) -> None:
    keys, absent = pool_of(multi_case, rng, multi_case.n // 2)
    batch = rng.choice(keys, 2 * len(keys))
    values = values_of(multi_case, len(batch))
    table, model = multi_case.from_arrays(batch, values), MultiModel()
    model.inserted(batch, values, table)
    model.agrees(table, absent)
    assert (table.key_dtype, table.value_dtype) == (multi_case.key_dtype, multi_case.value_dtype)
    assert table.capacity >= len(batch)


def filled(case: Case, rng: np.random.Generator) -> tuple[Checked, Array]:
    keys, _ = pool_of(case, rng, 60)
    checked = Checked(case, capacity=50)
    for _ in range(4):
        checked.insert(rng.choice(keys, 100))
    checked.erase(rng.choice(keys, 40))
    return checked, keys


def test_clear(multi_case: Case, rng: np.random.Generator) -> None:
    checked, keys = filled(multi_case, rng)
    checked.table.clear()
    checked.model = MultiModel()
    checked.agrees(keys)
    checked.insert(keys)
    checked.agrees(keys)


def test_sizes(multi_case: Case, rng: np.random.Generator) -> None:
    """The order of the values outlives every rebuild."""
    checked, keys = filled(multi_case, rng)
    few = multi_case.engine == "emulated"
    many = 4000 if few else 100_000
    checked.table.reserve(many)
    assert checked.table.capacity >= many
    large = checked.table.nbytes
    checked.agrees(keys)
    checked.erase_all(keys[10:])
    checked.table.shrink()
    assert checked.table.nbytes <= large
    if multi_case.engine == "cpu":  # elsewhere the smallest pool has room for so many
        assert checked.table.nbytes < large
    checked.agrees(keys)
    checked.insert(rng.choice(keys, 300))
    checked.agrees(keys)
    checked.table.flush()
    checked.agrees(keys)


def test_copy_is_apart(multi_case: Case, rng: np.random.Generator) -> None:
    checked, keys = filled(multi_case, rng)
    twin, model = checked.table.copy(), MultiModel()
    model.values = dict(checked.model.values)
    assert type(twin) is MultiMap and twin.design == checked.table.design
    model.erased(keys[::2], twin.erase(keys[::2]))
    checked.insert(keys[1::3])
    model.agrees(twin, keys)
    checked.agrees(keys)


def pickled(table: MultiMap) -> MultiMap:
    again: MultiMap = pickle.loads(pickle.dumps(table))
    return again


def unpickled_to_the_cpu(table: MultiMap) -> MultiMap:
    with unpickle_to("cpu"):
        return pickled(table)


def with_other_lists(table: MultiMap) -> MultiMap:
    return cast("Any", table).__replace__(capacity=3 * len(table), seed=12)


def of_another_design(table: MultiMap) -> MultiMap:
    other = "slab" if table.design == "lock_free_chaining" else "lock_free_chaining"
    return cast("Any", table).__replace__(design=other)


WAYS: list[Callable[[MultiMap], MultiMap]] = [
    *(MultiMap.copy, copy.copy, copy.deepcopy, pickled, unpickled_to_the_cpu, with_other_lists, of_another_design)
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_copy_keeps_the_order(
    multi_case: Case, way: Callable[[MultiMap], MultiMap], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that lie between each other in their lists, one of them very often, some erased in front and added again.

    By several threads, each with many keys under way: an insert of all pairs as one batch would mix them.
    """
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "2")
    few = multi_case.engine == "emulated"
    keys, absent = pool_of(multi_case, rng, 20 if few else 2000)
    checked = Checked(multi_case, capacity=len(keys))
    for number in range(3 if few else 12):
        checked.insert(rng.permutation(np.concatenate([keys, np.repeat(keys[:1], 60 if few else 500, axis=0)])))
        checked.erase(rng.choice(keys, len(keys) // (1 + number)))
    twin = Checked(multi_case)
    twin.table, twin.model.values = way(checked.table), dict(checked.model.values)
    twin.written = checked.written
    twin.agrees(absent)
    twin.insert(keys)
    twin.erase(keys[::2])
    twin.agrees(absent)
    checked.agrees(absent)


def test_a_copy_without_pairs(multi_case: Case, rng: np.random.Generator) -> None:
    keys, _ = pool_of(multi_case, rng, 3)
    for way in WAYS:
        checked = Checked(multi_case)
        checked.table = way(checked.table)
        checked.agrees(keys)
        checked.insert(keys)
        checked.agrees(keys)


def test_save_load(multi_case: Case, rng: np.random.Generator, tmp_path: Path) -> None:
    checked, keys = filled(multi_case, rng)
    checked.insert(np.repeat(keys[:2], 30, axis=0))
    checked.table.save(tmp_path / "table")
    again = Checked(multi_case)
    again.table, again.model.values = multi_case.load(tmp_path / "table"), checked.model.values
    again.agrees(keys)
    assert again.table.capacity >= checked.table.capacity and again.table.seed == checked.table.seed
    again.insert(keys)
    again.agrees(keys)
    with pytest.raises(CorruptFile):
        HashMap.load(tmp_path / "table", device=multi_case.engine)


@pytest.mark.parametrize("share", [0.3, 0.9], ids=["fresh", "worn"])
def test_table_full_changes_nothing(multi_case: Case, share: float, rng: np.random.Generator) -> None:
    """Pairs of the failed batch are taken out again, and not those that were there with the same key and value."""
    keys, _ = pool_of(multi_case, rng, 60)
    checked = Checked(multi_case, capacity=100, on_full="raise")
    checked.insert(rng.choice(keys, 60))
    if share > 0.5:
        checked.erase(rng.choice(keys, 50))
        checked.insert(rng.choice(keys, 30))
    for n in (3000, 1500):
        held = checked.table.to_arrays()
        some = rng.integers(0, len(held[0]), n)
        new = values_of(multi_case, n, 5000)
        twice = rng.random(n) < share
        batch = np.where(twice, held[0][some], rng.choice(keys, n))
        values = np.where(twice, held[1][some], new)
        with pytest.raises(TableFull, match="the table is as it was") as caught:
            checked.table.insert(batch, values)
        left = as_bytes(np.asarray(caught.value.keys))
        assert left and set(left) <= set(as_bytes(keys))
        checked.agrees(keys)
        checked.table.flush()
        checked.agrees(keys)
    checked.erase_all(keys)
    checked.insert(keys)
    checked.agrees(keys)


# The smallest pool of a growing table takes minutes to fill on the emulated engine.
@only(lambda multi_case: multi_case.engine != "emulated" and multi_case.design in list_designs())
def test_without_memory_nothing_changes(
    multi_case: Case, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, _ = pool_of(multi_case, rng, 60)
    checked = Checked(multi_case, capacity=16)
    checked.insert(rng.choice(keys, 60))

    def refuse(*_: Any, **__: Any) -> None:
        raise MemoryError("no room")

    store = storage_of(checked.table).store
    monkeypatch.setattr(SlabPool, "grow", refuse)
    monkeypatch.setattr(type(store), "_replace", refuse)
    # One key has nearly all of them: the lists of the others stay short.
    pairs = (store.array.pool.capacity + 1) * (store.array.slots // store.array.buckets)
    batch = np.repeat(keys[[1, 0]], [pairs, 100], axis=0)
    with pytest.raises(TableFull, match="no room; the table is as it was"):
        checked.table.insert(batch, values_of(multi_case, len(batch), 1))
    checked.agrees(keys)
    monkeypatch.undo()
    checked.insert(rng.choice(keys, 500))
    checked.agrees(keys)


def test_stats(multi_case: Case, rng: np.random.Generator) -> None:
    checked, _ = filled(multi_case, rng)
    stats = checked.table.stats()
    assert stats.size == len(checked.model) == len(checked.table)
    assert stats.load_factor == pytest.approx(stats.size / stats.slots)
    assert repr(checked.table).startswith(f"<MultiMap key={multi_case.key_dtype}, value={multi_case.value_dtype}: ")
    assert checked.table.probe_counts(checked.table.keys()).min() == 1


# ---- wrong input
KEYS = st.one_of(st.integers(0, 9), st.integers(2**32 - 4, 2**32 - 1))
BATCHES = st.lists(KEYS, max_size=50)


class MultiMachine(RuleBasedStateMachine):
    """Few keys with many values, on tables so small that each run grows, flushes and rebuilds."""

    case: Case

    @initialize(capacity=st.integers(1, 30), seed=st.integers(0, 2**31))
    def make(self, capacity: int, seed: int) -> None:
        self.checked = Checked(self.case, capacity=capacity, seed=seed)

    @rule(keys=BATCHES)
    def insert(self, keys: list[int]) -> None:
        self.checked.insert(np.array(keys, np.uint32))

    @rule(keys=BATCHES)
    def erase(self, keys: list[int]) -> None:
        self.checked.erase(np.array(keys, np.uint32))

    @rule(keys=BATCHES)
    def erase_all(self, keys: list[int]) -> None:
        self.checked.erase_all(np.array(keys[:4], np.uint32))

    @rule(keys=BATCHES)
    def ask(self, keys: list[int]) -> None:
        self.checked.model.answers(self.checked.table, np.array(keys, np.uint32))

    @rule(bucket=st.integers(0, 40))
    def flush(self, bucket: int) -> None:
        if self.case.design in list_designs():
            self.checked.table.flush(slice(bucket, bucket + 3))
        self.checked.table.flush()

    @rule()
    def shrink(self) -> None:
        self.checked.table.shrink()

    @rule(n=st.integers(0, 300))
    def reserve(self, n: int) -> None:
        self.checked.table.reserve(n)
        assert self.checked.table.capacity >= n

    @rule()
    def clear(self) -> None:
        self.checked.table.clear()
        self.checked.model = MultiModel()

    @rule()
    def go_on_with_a_copy(self) -> None:
        self.checked.table = self.checked.table.copy()

    @rule(way=st.sampled_from([copy.deepcopy, pickled]))
    def go_on_with_what_was_stored(self, way: Callable[[MultiMap], MultiMap]) -> None:
        self.checked.table = way(self.checked.table)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "checked"):
            self.checked.agrees()


@pytest.mark.parametrize(
    ("design", "parameters"),
    [
        ("slab", {}),
        ("slab", {"allocator": "slab_light"}),
        ("lock_free_chaining", {}),
        *((name, {}) for name in group_designs()),
    ],
    ids=str,
)
def test_any_order_of_verbs(design: str, parameters: dict[str, Any]) -> None:
    machine: Any = type("Machine", (MultiMachine,), {"case": MultiCase("cpu", design, "u4", "u4", parameters)})
    case = machine.TestCase
    case.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
    case("runTest").runTest()
