"""The table as a container: growth, sizes, copies, the dict face, figures and files; every engine, design and type."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import Case, is_map, list_designs, only, rare
from support.model import Model
from support.types import as_bytes


def filled(case: Case, rng: np.random.Generator, n: int, **options: object) -> tuple[object, Model, np.ndarray]:
    """A table with ``n`` keys, its model, and the keys."""
    keys = case.keys(n, rng)
    values = case.values(len(keys), rng)
    table, model = case.from_arrays(keys, values, **options), Model(case.is_set)
    model.inserted(keys, values, np.ones(len(keys), bool))
    return table, model, keys


def test_growth_loses_nothing(case: Case, rng: np.random.Generator) -> None:
    keys = case.keys(case.n, rng)
    values = case.values(len(keys), rng)
    table, model = case.table(capacity=2), Model(case.is_set)
    for batch in np.array_split(np.arange(len(keys)), 5):
        chosen = None if values is None else values[batch]
        model.inserted(keys[batch], chosen, case.insert(table, keys[batch], chosen))
        model.agrees(table, keys)
    assert table.stats().slots >= len(keys)


@pytest.mark.parametrize(
    "n", [1, 3, 16, 33, 97, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 7, 15, 17, 63, 65))]
)
def test_odd_sizes(case: Case, n: int, rng: np.random.Generator) -> None:
    pool = case.keys(2 * n, rng)
    keys, absent = pool[:n], pool[n:]
    values = case.values(n, rng)
    table, model = case.table(capacity=n, load_factor=1.0), Model(case.is_set)
    assert table.capacity >= n
    model.inserted(keys, values, case.insert(table, keys, values))
    model.agrees(table, absent)


def test_one_bucket(case: Case, rng: np.random.Generator) -> None:
    pool = case.keys(6, rng)
    table, model = case.table(capacity=1), Model(case.is_set)
    for keys in (pool[:1], pool[:3], pool):
        values = case.values(len(keys), rng)
        model.inserted(keys, values, case.insert(table, keys, values))
        model.agrees(table, pool)
    model.erased(pool, table.erase(pool))
    model.agrees(table, pool)


def test_empty_batch(case: Case, rng: np.random.Generator) -> None:
    table, model, keys = filled(case, rng, 20)
    none = keys[:0]
    no_values = case.values(0, rng)
    assert case.insert(table, none, no_values).shape == (0,)
    assert table.contains(none).shape == table.erase(none).shape == table.probe_counts(none).shape == (0,)
    if not case.is_set:
        values, found = table.find(none)
        assert values.shape == (0, *case.value_dtype.shape) and found.shape == (0,)
        assert table.assign(none, no_values).shape == (0,)
        values, inserted = table.find_or_insert(none, no_values)
        assert len(values) == len(inserted) == 0
    model.agrees(table)
    empty = case.from_arrays(none, no_values)
    assert len(empty) == 0 and len(empty.keys()) == 0 and not empty.contains(keys).any()


def test_clear(case: Case, rng: np.random.Generator) -> None:
    table, _, keys = filled(case, rng, case.n)
    table.clear()
    model = Model(case.is_set)
    model.agrees(table, keys)
    values = case.values(len(keys), rng)
    model.inserted(keys, values, case.insert(table, keys, values))
    model.agrees(table)


def test_copy_is_apart(case: Case, rng: np.random.Generator) -> None:
    table, model, keys = filled(case, rng, case.n)
    twin, twin_model = table.copy(), model.copy()
    assert twin.design == table.design and twin.device == table.device
    twin_model.erased(keys[::2], twin.erase(keys[::2]))
    model.erased(keys[1::3], table.erase(keys[1::3]))
    twin_model.agrees(twin, keys)
    model.agrees(table, keys)


def _reserved(table: Any) -> Any:
    table.reserve(4 * len(table))
    return table


def _shrunk(table: Any) -> Any:
    table.shrink()
    return table


MADE_OF_ANOTHER: dict[str, Callable[[Any], Any]] = {
    "copied": lambda table: table.copy(),
    "pickled": lambda table: pickle.loads(pickle.dumps(table)),
    "reserved": _reserved,
    "shrunk": _shrunk,
}
"""Tables whose slots got their pairs from other slots, and not by an update."""


@pytest.mark.parametrize("made", MADE_OF_ANOTHER)
def test_slots_without_an_update_are_cleared(case: Case, made: str, rng: np.random.Generator) -> None:
    table, _, keys = filled(case, rng, case.n)
    table = MADE_OF_ANOTHER[made](table)
    table.clear()
    model = Model(case.is_set)
    model.agrees(table, keys)
    values = case.values(len(keys), rng)
    model.inserted(keys, values, case.insert(table, keys, values))
    model.agrees(table, keys)


def test_reserve_makes_room_once(case: Case, rng: np.random.Generator) -> None:
    pool = case.keys(2 * case.n, rng)
    half = len(pool) // 2
    values = case.values(len(pool), rng)
    table, model = case.table(capacity=2), Model(case.is_set)
    for part in (slice(0, half), slice(half, None)):
        chosen = None if values is None else values[part]
        model.inserted(pool[part], chosen, case.insert(table, pool[part], chosen))
        table.reserve(len(pool))
        assert table.capacity >= len(pool)
        slots = table.stats().slots
        model.agrees(table, pool)
    table.reserve(1)
    assert table.stats().slots == slots, "reserve never shrinks"


def test_shrink_gives_memory_back(case: Case, rng: np.random.Generator) -> None:
    table, model, keys = filled(case, rng, case.n)
    table.reserve(8 * len(keys))
    large = table.nbytes
    model.erased(keys[10:], table.erase(keys[10:]))
    table.shrink()
    assert table.nbytes < large
    model.agrees(table, keys)
    values = case.values(len(keys), rng)
    model.inserted(keys, values, case.insert(table, keys, values))
    model.agrees(table, keys)


@only(lambda case: case.key != "u1")  # of which there are too few to fill a table
@only(lambda case, verb: is_map(case) or verb in ("insert", "from_arrays"))
@pytest.mark.parametrize(
    "verb",
    ["insert", "assign", *rare("find_or_insert", "from_arrays")],
)
def test_table_full_changes_nothing(case: Case, verb: str, rng: np.random.Generator) -> None:
    table, model, keys = filled(case, rng, 40, on_full="raise")
    slots = table.stats().slots
    # A key that finds no slot is costly where others are moved for it. Lists go on in the nodes of their pool.
    too_many = case.keys(4 * slots + 300 if case.design in list_designs() else slots + 60, rng)
    batch = np.concatenate([keys[:7], too_many])
    values = case.values(len(batch), rng)
    before = table.stats()
    arrays = (batch,) if case.is_set else (batch, values)
    with pytest.raises(warphash.TableFull) as caught:
        if verb == "from_arrays":
            case.from_arrays(*((*arrays, None)[:2]), on_full="raise", capacity=40)
        else:
            getattr(table, verb)(*arrays)
    model.agrees(table, batch)
    after = table.stats()
    assert (after.size, after.slots) == (before.size, before.slots)
    if verb == "insert":
        unplaced = as_bytes(np.asarray(caught.value.keys))
        assert unplaced and set(unplaced) <= set(as_bytes(batch))
    # And it goes on working.
    model.erased(keys[:5], table.erase(keys[:5]))
    model.agrees(table, keys)


def test_dict_face(case: Case, rng: np.random.Generator) -> None:
    table, model, keys = filled(case, rng, 50)
    pool = case.keys(200, np.random.default_rng(5))
    absent = pool[[name not in model.pairs for name in as_bytes(pool)]][:9]
    if case.key in ("u4", "u8", "i4", "i8"):
        assert int(keys[3]) in table and keys[3] in table
        assert int(absent[0]) not in table
    if case.is_set:
        return
    assert as_bytes(table[keys]) == [model.pairs[name] for name in as_bytes(keys)]
    with pytest.raises(KeyError) as caught:
        table[np.concatenate([keys[:3], absent])]
    if case.key in ("u4", "u8", "i4", "i8"):
        assert str(absent[0]) in str(caught.value) and str(len(absent) - 1) in str(caught.value)
    values = case.values(len(absent), rng)
    table[absent] = values
    model.assigned(absent, values, np.ones(len(absent), bool), table)
    model.agrees(table)
    del table[keys[:4]]
    model.erased(keys[:4], np.ones(4, bool))
    with pytest.raises(KeyError):
        del table[keys[:4]]
    model.agrees(table, keys)


@only(lambda case: case.key in ("u4", "u8", "i4", "i8") and is_map(case))
@only(lambda case: is_map(case) and case.value_dtype.kind in "iuf" and not case.value_dtype.shape)
def test_scalar_key(case: Case, rng: np.random.Generator) -> None:
    table = case.table(capacity=4)
    table[5] = 9
    assert table[5] == 9 and np.ndim(table[5]) == 0
    assert 5 in table and 6 not in table and len(table) == 1
    with pytest.raises(KeyError, match="6"):
        table[6]
    del table[5]
    assert 5 not in table and len(table) == 0
    with pytest.raises(KeyError, match="5"):
        del table[5]


def test_stats(case: Case, rng: np.random.Generator) -> None:
    table, model, _ = filled(case, rng, case.n, load_factor=0.6)
    stats = table.stats()
    assert stats.size == len(table) == len(model)
    assert stats.slots >= stats.size and table.capacity >= stats.size
    assert stats.load_factor == pytest.approx(stats.size / stats.slots) == pytest.approx(table.load_factor)
    assert stats.nbytes == table.nbytes > 0
    assert stats.bytes_per_pair == pytest.approx(stats.nbytes / stats.size)
    assert 0 < stats.memory_utilisation <= 1
    pair_bytes = case.key_dtype.itemsize + (0 if case.is_set else case.value_dtype.itemsize)
    in_use = stats.size * pair_bytes / stats.memory_utilisation
    assert 0 <= stats.reserve_nbytes < stats.nbytes and in_use + stats.reserve_nbytes <= stats.nbytes + 1
    assert stats.design == table.design == case.design
    assert table.device.startswith(case.engine)
    assert table.key_dtype == case.key_dtype
    assert case.is_set or table.value_dtype == case.value_dtype
    options = {name: value for name, value in case.parameters.items() if name not in ("hash", "max_size", "evict")}
    assert stats.max_size == case.parameters.get("max_size") and not stats.evicted
    assert options.items() <= dict(stats.parameters).items()
    with pytest.raises(AttributeError):
        stats.size = 0


def test_same_seed_same_table(case: Case, rng: np.random.Generator) -> None:
    keys = case.keys(300, rng)
    values = case.values(len(keys), rng)

    def built(seed: int) -> Any:
        if case.engine != "cuda":  # so few keys are one thread's, or come in the order of a schedule
            return case.from_arrays(keys, values, seed=seed, assume_unique=True)
        table = case.table(seed=seed, capacity=len(keys))
        for i in range(60):  # the threads of a batch race for slots, so each key is a batch
            case.insert(table, keys[i : i + 1], None if values is None else values[i : i + 1])
        return table

    one, two, other = map(built, (11, 11, 12))
    assert one.seed == two.seed == 11
    places, again, others = (as_bytes(table.keys()) for table in (one, two, other))
    assert set(places) == set(again) == set(others)
    if case.engine != "cuda":  # there, the threads of a scan race for their place in the result
        assert places != others, "another seed puts the keys elsewhere"
        assert places == again
    asked = case.keys(300, rng)
    for batch in (keys, asked):
        np.testing.assert_array_equal(one.probe_counts(batch), two.probe_counts(batch))


def test_save_load(case: Case, rng: np.random.Generator, tmp_path: Path) -> None:
    table, model, keys = filled(case, rng, case.n)
    model.erased(keys[::4], table.erase(keys[::4]))
    path = tmp_path / "table"
    table.save(path)
    again = case.load(path)
    assert again.design == case.design and again.seed == table.seed
    assert again.key_dtype == table.key_dtype
    assert again.capacity >= table.capacity, "room that was reserved is there again"
    model.agrees(again, keys)
    batch = case.keys(100, rng)
    values = case.values(len(batch), rng)
    model.inserted(batch, values, case.insert(again, batch, values))
    model.agrees(again, keys)


def test_save_load_of_an_empty_table(case: Case, rng: np.random.Generator, tmp_path: Path) -> None:
    case.table(capacity=5).save(tmp_path / "table")
    table, model = case.load(tmp_path / "table"), Model(case.is_set)
    keys = case.keys(30, rng)
    values = case.values(len(keys), rng)
    model.agrees(table, keys)
    model.inserted(keys, values, case.insert(table, keys, values))
    model.agrees(table)


@only(lambda case: case.is_set)
def test_set_algebra(case: Case, rng: np.random.Generator) -> None:
    keys = case.keys(90, rng)
    left, right = case.from_arrays(keys[:60], None), case.from_arrays(keys[30:], None)
    names = as_bytes(keys)
    a, b = set(names[:60]), set(names[30:])
    for answer, expected in (
        (left | right, a | b),
        (left & right, a & b),
        (left - right, a - b),
        (left ^ right, a ^ b),
    ):
        assert set(as_bytes(answer.keys())) == expected and len(answer) == len(expected)
        answer.check()
    assert set(as_bytes(left.keys())) == a and set(as_bytes(right.keys())) == b
