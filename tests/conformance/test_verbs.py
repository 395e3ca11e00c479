"""Each verb, on every engine, design and type, against the dict oracle."""

from __future__ import annotations

import numpy as np
import pytest

from support.cases import Case, is_map, only
from support.model import OPS_OF_KIND, Model
from support.types import Array, as_bytes, some_values, special_keys, special_values


def halves(case: Case, rng: np.random.Generator, n: int | None = None) -> tuple[Array, Array]:
    """Two disjoint sets of keys: to insert, and to ask for in vain."""
    keys = case.keys(2 * (n or case.n), rng)
    return keys[: len(keys) // 2], keys[len(keys) // 2 :]


def repeated(keys: Array, rng: np.random.Generator, times: int = 3) -> Array:
    """Each key ``times`` times, shuffled."""
    return rng.permutation(np.repeat(keys, times, axis=0), axis=0)


def test_insert_find_contains(case: Case, rng: np.random.Generator) -> None:
    present, absent = halves(case, rng)
    values = case.values(len(present), rng)
    table, model = case.table(capacity=len(present)), Model(case.is_set)
    assert len(table) == 0 and not table.contains(present).any()
    model.inserted(present, values, case.insert(table, present, values))
    assert len(table) == len(present)
    model.agrees(table, absent)
    assert not table.contains(absent).any()


def test_insert_keeps_the_value_that_is_there(case: Case, rng: np.random.Generator) -> None:
    present, new = halves(case, rng)
    table, model = case.table(capacity=len(present)), Model(case.is_set)
    for batch in (present, np.concatenate([present[::2], new[::3]]), present[1:2]):
        values = case.values(len(batch), rng)
        model.inserted(batch, values, case.insert(table, batch, values))
    model.agrees(table, new)


def test_insert_of_duplicates_adds_each_key_once(case: Case, rng: np.random.Generator) -> None:
    present, new = halves(case, rng, max(8, case.n // 3))
    table, model = case.table(capacity=len(present)), Model(case.is_set)
    for batch in (repeated(present, rng), repeated(np.concatenate([present, new]), rng, 2)):
        values = case.values(len(batch), rng)
        model.inserted(batch, values, case.insert(table, batch, values))
        model.agrees(table, new)


def test_one_key_many_times(case: Case, rng: np.random.Generator) -> None:
    key = np.repeat(case.keys(1, rng), case.n, axis=0)
    values = case.values(len(key), rng)
    table, model = case.table(capacity=4), Model(case.is_set)
    flags = case.insert(table, key, values)
    assert np.count_nonzero(flags) == 1
    model.inserted(key, values, flags)
    model.agrees(table)


def test_insert_assume_unique(case: Case, rng: np.random.Generator) -> None:
    present, absent = halves(case, rng)
    values = case.values(len(present), rng)
    table, model = case.table(capacity=len(present)), Model(case.is_set)
    flags = case.insert(table, present, values, assume_unique=True)
    assert flags.all()
    model.inserted(present, values, flags)
    model.agrees(table, absent)


def test_from_arrays(case: Case, rng: np.random.Generator) -> None:
    present, absent = halves(case, rng)
    for keys, assume_unique in ((present, True), (present, False), (repeated(present, rng, 2), False)):
        values = case.values(len(keys), rng)
        table = case.from_arrays(keys, values, assume_unique=assume_unique)
        assert len(table) == len(present)
        assert set(as_bytes(table.keys())) == set(as_bytes(present))
        if values is not None:
            offered = set(zip(as_bytes(keys), as_bytes(values), strict=True))
            assert offered.issuperset(zip(*map(as_bytes, table.to_arrays()), strict=True))
        assert table.contains(present).all() and not table.contains(absent).any()
        table.check()


@only(is_map)
def test_assign_overwrites(case: Case, rng: np.random.Generator) -> None:
    present, new = halves(case, rng, max(8, case.n // 2))
    table, model = case.table(capacity=len(present)), Model()
    for batch in (present, np.concatenate([present, new]), repeated(present, rng)):
        values = case.values(len(batch), rng)
        model.assigned(batch, values, table.assign(batch, values), table)
    model.agrees(table)


@only(is_map)
def test_assign_never_mixes_two_values(case: Case, rng: np.random.Generator) -> None:
    keys = case.keys(3, rng)
    table, model = case.table(capacity=8), Model()
    batch = repeated(keys, rng, max(4, case.n // 8))
    values = case.values(len(batch), rng)
    model.assigned(batch, values, table.assign(batch, values), table)


@only(lambda case, op: is_map(case) and op in OPS_OF_KIND.get(case.value_dtype.kind, ()))
@pytest.mark.parametrize("op", ["add", "min", "max", "or", "and", "xor", "first", "last"])
def test_upsert(case: Case, op: str, rng: np.random.Generator) -> None:
    present, new = halves(case, rng, max(8, case.n // 3))
    table, model = case.table(capacity=len(present)), Model()
    for batch in (present, np.concatenate([present, new]), repeated(np.concatenate([present, new]), rng)):
        values = some_values(case.value_dtype, len(batch), rng)
        if case.value_dtype.kind in "if":
            values -= 50
        model.upserted(batch, values, op, table.upsert(batch, values, op), table)
    model.agrees(table)


@only(is_map)
def test_find_default(case: Case, rng: np.random.Generator) -> None:
    present, absent = halves(case, rng, 50)
    table = case.from_arrays(present, case.values(len(present), rng))
    numeric = case.value_dtype.kind in "iuf"
    values, found = table.find(absent, default=77) if numeric else table.find(absent)
    assert not found.any() and found.dtype == bool
    assert values.dtype == case.values(1, rng).dtype
    assert (np.asarray(values) == (77 if numeric else np.zeros((), values.dtype))).all()


@only(is_map)
def test_find_or_insert(case: Case, rng: np.random.Generator) -> None:
    present, new = halves(case, rng, max(8, case.n // 3))
    table, model = case.table(capacity=len(present)), Model()
    for batch in (present, repeated(np.concatenate([present, new]), rng, 2)):
        offered = case.values(len(batch), rng)
        values, inserted = table.find_or_insert(batch, offered)
        model.inserted(batch, offered, inserted)
        assert as_bytes(values) == [model.pairs[name] for name in as_bytes(batch)]
    model.agrees(table)


def numbers_keys(case: Case) -> bool:
    """Whether the tables of a case number keys: values are integers, and no key leaves."""
    return not case.is_set and case.value_dtype.kind in "iu" and not case.parameters.get("max_size")


@only(numbers_keys)
def test_number(case: Case, rng: np.random.Generator) -> None:
    present, new = halves(case, rng, max(8, min(case.n // 3, 60 if case.value_dtype.itemsize == 1 else case.n)))
    table, number_of = case.table(capacity=len(present)), dict[bytes, int]()
    for batch in (repeated(present, rng), present[::-1], repeated(np.concatenate([present, new]), rng, 2)):
        numbers, added = table.number(batch)
        for name, number, flag in zip(as_bytes(batch), numbers.tolist(), added.tolist(), strict=True):
            assert flag == (name not in number_of)
            assert number == number_of.setdefault(name, len(number_of))
        assert numbers.dtype == case.value_dtype and len(table) == len(number_of)
    table.check()


def test_erase(case: Case, rng: np.random.Generator) -> None:
    present, absent = halves(case, rng)
    values = case.values(len(present), rng)
    table, model = case.from_arrays(present, values), Model(case.is_set)
    model.inserted(present, values, np.ones(len(present), bool))
    for batch in (absent, present[::3], repeated(present[::2], rng, 2), present[:1]):
        model.erased(batch, table.erase(batch))
        model.agrees(table, present)


def test_erase_then_insert(case: Case, rng: np.random.Generator) -> None:
    present, new = halves(case, rng)
    values = case.values(len(present), rng)
    table, model = case.from_arrays(present, values, on_full="grow"), Model(case.is_set)
    model.inserted(present, values, np.ones(len(present), bool))
    model.erased(present[::2], table.erase(present[::2]))
    batch = np.concatenate([present, new])
    values = case.values(len(batch), rng)
    model.inserted(batch, values, case.insert(table, batch, values))
    model.agrees(table)


def test_churn_keeps_the_table_small(case: Case, rng: np.random.Generator) -> None:
    """Keys come and go without end, half of them at a time: erased slots are used again."""
    pool = case.keys(4 * max(16, case.n // 8), rng)
    quarter = len(pool) // 4
    table, model = case.table(capacity=2 * quarter), Model(case.is_set)
    for round_number in range(6 if case.engine == "emulated" else 24):
        coming = np.roll(pool, -quarter * round_number, axis=0)[:quarter]
        going = np.roll(pool, -quarter * (round_number - 2), axis=0)[:quarter]
        model.erased(going, table.erase(going))
        values = case.values(quarter, rng)
        model.inserted(coming, values, case.insert(table, coming, values))
    model.agrees(table, pool)
    assert table.capacity <= 16 * max(quarter, 64)


def test_special_keys_present_and_absent(case: Case, rng: np.random.Generator) -> None:
    """All ones and its neighbours are keys like any other, erased, absent, repeated and moved by growth too."""
    special = special_keys(case.key_dtype)
    others = case.keys(40, rng)
    table, model = case.table(capacity=4), Model(case.is_set)
    for batch in (others, special[::2], repeated(special, rng, 2)):
        model.agrees(table, special)
        values = case.values(len(batch), rng)
        model.inserted(batch, values, case.insert(table, batch, values))
    model.agrees(table, special)
    table.reserve(8 * case.n)
    model.agrees(table, special)
    model.erased(special[1:], table.erase(special[1:]))
    model.agrees(table, special)
    values = case.values(len(special), rng)
    model.inserted(special, values, case.insert(table, special, values))
    model.agrees(table, special)


@only(is_map)
def test_special_values(case: Case, rng: np.random.Generator) -> None:
    """All ones as a value, alone and beside an all-ones key, is a value like any other."""
    keys = np.concatenate([special_keys(case.key_dtype), case.keys(24, rng)])
    values = np.resize(special_values(case.value_dtype), (len(keys), *case.value_dtype.shape))
    table, model = case.table(capacity=len(keys)), Model()
    model.inserted(keys, values, table.insert(keys, values))
    model.agrees(table)
    values = np.roll(values, 1, axis=0)
    model.assigned(keys, values, table.assign(keys, values), table)
    model.agrees(table)


def test_probe_counts(case: Case, rng: np.random.Generator) -> None:
    present, absent = halves(case, rng)
    table = case.from_arrays(present, case.values(len(present), rng))
    for keys in (present, absent, special_keys(case.key_dtype)):
        counts = np.asarray(table.probe_counts(keys))
        assert counts.shape == (len(keys),) and counts.dtype.kind in "iu"
        assert counts.min() >= 1
    assert table.probe_counts(present).mean() <= table.probe_counts(absent).mean() + 0.5
