"""What tables do as Python's dicts and sets do: every engine and type, one design of each family.

The verbs here are made of the verbs that all other tests cross with all designs.
"""

from __future__ import annotations

import numpy as np
import pytest

import warphash
from support.cases import ONE_OF_EACH_FAMILY, Case, only
from support.model import Model
from support.types import Array, as_bytes


def is_chosen_map(case: Case) -> bool:
    return not (case.is_set or case.variant) and case.design in ONE_OF_EACH_FAMILY


def is_chosen_set(case: Case) -> bool:
    return case.is_set and not case.variant and case.design in ONE_OF_EACH_FAMILY


def halves(case: Case, rng: np.random.Generator, n: int = 60) -> tuple[object, Model, Array, Array]:
    """A table with half of some keys, its model, and both halves."""
    keys = case.keys(n, rng)
    held, absent = keys[: n // 2], keys[n // 2 :]
    values = case.values(len(held), rng)
    model = Model(case.is_set)
    model.inserted(held, values, np.ones(len(held), bool))
    return case.from_arrays(held, values), model, held, absent


def bytes_of(case: Case, value: object) -> bytes:
    """The bit pattern of one value, which may be a scalar of fewer bytes."""
    return as_bytes(np.array([value], case.value_dtype.base))[0]


@only(is_chosen_map)
def test_get_and_setdefault(case: Case, rng: np.random.Generator) -> None:
    table, model, held, absent = halves(case, rng)
    both = np.concatenate([held, absent])
    default = case.values(1, rng)
    expected = [model.pairs.get(name, as_bytes(default)[0]) for name in as_bytes(both)]
    assert as_bytes(table.get(both, default[0])) == expected
    assert bytes_of(case, table.get(held[0])) == model.pairs[as_bytes(held[:1])[0]]
    assert table.get(absent[0]) is None and table.get(absent[0], "none") == "none"
    with pytest.raises(warphash.ParameterError, match="a batch needs a default"):
        table.get(both)
    values = case.values(len(both), rng)
    now = table.setdefault(both, values)
    model.inserted(absent, values[len(held) :], np.ones(len(absent), bool))
    assert as_bytes(now) == [model.pairs[name] for name in as_bytes(both)]
    model.agrees(table, both)


@only(is_chosen_map)
def test_pop(case: Case, rng: np.random.Generator) -> None:
    table, model, held, absent = halves(case, rng)
    with pytest.raises(KeyError, match="and 29 more keys" if len(absent) == 30 else "more keys"):
        table.pop(np.concatenate([held, absent]))
    model.agrees(table, held)
    some = np.concatenate([held[:9], held[:3]])  # elements of one key all have its value
    assert as_bytes(table.pop(some)) == [model.pairs[name] for name in as_bytes(some)]
    model.erased(held[:9], np.ones(9, bool))
    model.agrees(table, held, absent)
    zero = np.zeros(1, case.value_dtype)[0] if not case.value_dtype.shape else 0
    left = table.pop(np.concatenate([held[9:12], absent]), zero)
    assert as_bytes(left[:3]) == [model.pairs[name] for name in as_bytes(held[9:12])]
    assert not any(map(any, as_bytes(left[3:])))
    model.erased(held[9:12], np.ones(3, bool))
    assert bytes_of(case, table.pop(held[12])) == model.pairs[as_bytes(held[12:13])[0]]
    model.erased(held[12:13], np.ones(1, bool))
    assert table.pop(held[12], None) is None
    with pytest.raises(KeyError):
        table.pop(held[12])
    model.agrees(table, held, absent)


@only(is_chosen_map)
def test_update_and_equality(case: Case, rng: np.random.Generator) -> None:
    table, model, held, absent = halves(case, rng)
    values = case.values(len(absent) + 5, rng)
    keys = np.concatenate([held[:5], absent])
    other = case.from_arrays(keys, values)
    twin = table.copy()
    assert table == twin and table != other
    merged = table | other
    table |= other
    for name, value in zip(as_bytes(keys), as_bytes(values), strict=True):
        model.pairs[name] = value
    model.agrees(table, held, absent)
    model.agrees(merged, held, absent)
    if not any(np.issubdtype(values.dtype, kind) for kind in (np.floating, np.void)):  # NaN equals nothing
        assert merged == table and table != twin
        table.update(table)
        assert merged == table
    assert table != case.from_arrays(keys[:0], values[:0])


@only(is_chosen_map)
def test_one_value_is_that_of_all_keys(case: Case, rng: np.random.Generator) -> None:
    keys = case.keys(40, rng)
    table, (first, second) = case.table(capacity=10), case.values(2, rng)
    assert table.insert(keys, first).all()
    assert set(as_bytes(table[keys])) == set(as_bytes(np.array([first], case.value_dtype.base)))
    assert not table.assign(keys[:7], second).any()
    table[keys[7:9]] = second
    held, added = table.find_or_insert(keys, first)
    assert not added.any()
    assert set(as_bytes(held[:9])) == set(as_bytes(np.array([second], case.value_dtype.base)))
    assert set(as_bytes(held[9:])) == set(as_bytes(np.array([first], case.value_dtype.base)))
    assert table.insert(keys[:0], first).shape == (0,)
    with pytest.raises(warphash.ShapeError, match="of one length"):
        table.insert(keys, case.values(2, rng))
    if not case.value_dtype.shape and case.value_dtype.kind in "iu":
        table.upsert(keys, 0, "min")
        assert (table[keys] <= 0).all()


@only(is_chosen_set)
def test_sets_change_in_place(case: Case, rng: np.random.Generator) -> None:
    table, model, held, absent = halves(case, rng)
    keys = np.concatenate([held[:5], absent[:20]])
    same, other = table, case.from_arrays(keys, None)
    table |= other
    model.inserted(absent[:20], None, np.ones(20, bool))
    model.agrees(table, held, absent)
    table -= case.from_arrays(np.concatenate([absent[:4], absent[20:]]), None)
    model.erased(absent[:4], np.ones(4, bool))
    model.agrees(table, held, absent)
    table &= other
    left = np.concatenate([held[:5], absent[4:20]])
    model.pairs = dict.fromkeys(as_bytes(left), b"")
    model.agrees(table, held, absent)
    table |= table
    table &= table
    model.agrees(table)
    assert table is same
    table -= table
    assert len(table) == 0
    table.check()


@only(is_chosen_set)
def test_sets_take_one_key_and_any_keys(case: Case, rng: np.random.Generator) -> None:
    table, model, held, absent = halves(case, rng)
    for _ in range(2):
        table.add(absent[0])
    model.inserted(absent[:1], None, np.ones(1, bool))
    table.discard(absent[1])
    table.remove(held[0])
    model.erased(held[:1], np.ones(1, bool))
    with pytest.raises(KeyError):
        table.remove(held[0])
    with pytest.raises(warphash.ShapeError, match=r"call erase\(keys\)"):
        table.discard(held)
    for keys in (absent[:9], set(held[:2].tolist()) if held.dtype.kind == "u" else held[:2]):
        table.update(keys)
    model.pairs |= dict.fromkeys(as_bytes(np.concatenate([absent[:9], held[:2]])), b"")
    model.agrees(table, held, absent)
    assert len(table.union(absent)) == len(held) + len(absent)
    assert len(table.intersection(absent)) == 9 and len(table.difference(absent)) == len(held)
    assert len(table.symmetric_difference(absent)) == len(held) + len(absent) - 9
    assert table.issuperset(held) and not table.issubset(held) and table.issubset(np.concatenate([held, absent]))
