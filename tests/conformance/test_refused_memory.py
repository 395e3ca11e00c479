"""Memory is refused at any moment: the call raises and the table is as it was, or it returns and all is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from support.engines import one_of_each
from support.inside import parts_of
from support.refusals import refusing
from warphash import HashMap, TableFull
from warphash.designs import registry
from warphash.runtime.devices import engine_for

Model = dict[int, int]
Verb = Callable[[Any, np.ndarray, np.ndarray], Any]

VERBS: dict[str, Verb] = {
    "insert": lambda table, keys, values: table.insert(keys, values),
    "insert unique": lambda table, keys, values: table.insert(keys, values, assume_unique=True),
    "assign": lambda table, keys, values: table.assign(keys, values),
    "upsert": lambda table, keys, values: table.upsert(keys, values, "add"),
    "erase": lambda table, keys, values: table.erase(keys),
    "reserve": lambda table, keys, values: table.reserve(6 * len(table)),
    "shrink": lambda table, keys, values: table.shrink(),
}


def after(verb: str, model: Model, ids: np.ndarray) -> Model:
    """What the table has to hold when the verb returned."""
    ids, held = [int(i) for i in ids], dict(model)
    if verb.startswith("insert"):
        return {i: 3 * i for i in ids} | held
    if verb == "assign":
        return held | {i: 3 * i for i in ids}
    if verb == "upsert":
        return held | {i: 3 * i + held.get(i, 0) for i in ids}
    return {i: value for i, value in held.items() if i not in ids} if verb == "erase" else held


def holds(table: Any, model: Model, key: str, value: str) -> None:
    """That a table has these pairs, and no other."""
    ids = np.array(sorted(model))
    values, found = table.find(ids.astype(key))
    assert found.all() and (values == np.array([model[int(i)] for i in ids]).astype(value)).all()
    assert len(table) == len(model)
    table.check()


def sweep(make: Callable[[], Any], held: int, verb: str, many: int, *, once: bool) -> int:
    """Refuse each allocation of a call in turn; how many there are."""
    model = {i: i for i in range(1, held + 1)}
    fresh = held if verb == "insert unique" else held // 2
    ids = np.arange(1, held * 9 // 10) if verb == "erase" else np.arange(fresh + 1, held + many + 1)
    for first in range(1, 200):
        table = make()
        key, value = table.key_dtype, table.value_dtype
        old, keys = np.arange(1, held + 1), ids.astype(key)
        for part in np.array_split(old, 3):
            table.insert(part.astype(key), part.astype(value))
        assert len(table) == held
        expected = model
        with refusing(engine_for(table.device), first, once=once) as count:
            try:
                answer = VERBS[verb](table, keys, (3 * ids).astype(value))
                len(table)  # ends a batch that is under way
            except (MemoryError, TableFull):
                assert count.refused or parts_of(table).facts.options["on_full"] == "raise"
            else:
                expected = after(verb, model, ids)
                if verb in ("insert", "insert unique", "assign", "upsert"):
                    assert (answer == [int(i) not in model for i in ids]).all()
        holds(table, expected, key, value)
        few = np.arange(1 << 20, (1 << 20) + 5)  # the next calls are right
        try:
            assert table.insert(few.astype(key), few.astype(value)).all()
        except TableFull:
            assert parts_of(table).facts.options["on_full"] == "raise"
        else:
            assert table.erase(few.astype(key)).all()
        holds(table, expected, key, value)
        if not count.refused:
            return first - 1
    raise AssertionError(f"{verb} still asks for memory after 200 allocations")


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize("once", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("held", "many"), [(20, 420), (70, 12)])
@pytest.mark.parametrize("verb", VERBS)
def test_subtables_lose_nothing(device: str, on_full: str, once: bool, held: int, many: int, verb: str) -> None:
    options = {"design": "dynamic_cuckoo", "seed": 3, "capacity": 70, "load_factor": 0.7, "on_full": on_full}
    sweep(lambda: HashMap("u8", "u8", device=device, **options), held, verb, many, once=once)


@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("verb", ["insert", "insert unique", "assign", "erase"])
@pytest.mark.parametrize(
    ("key", "value", "subtables", "held"),
    [("S16", "S40", 3, 80), ("S60", "u4", 2, 70), ("S128", "S9", 3, 70), ("S128", "u8", 2, 35)],
)
def test_subtables_of_wide_keys_lose_nothing(
    key: str, value: str, subtables: int, held: int, verb: str, once: bool, on_full: str
) -> None:
    options = {"design": "dynamic_cuckoo", "subtables": subtables, "seed": 3, "capacity": 90, "load_factor": 0.9}
    sweep(lambda: HashMap(key, value, device="cpu", on_full=on_full, **options), held, verb, 30, once=once)


@pytest.mark.parametrize("design", sorted(set(design_names()) - {"dynamic_cuckoo"}))
@pytest.mark.parametrize("held", [40, 100])
@pytest.mark.parametrize("verb", VERBS)
def test_other_designs_lose_nothing_to_one_refusal(design: str, held: int, verb: str) -> None:
    if verb == "erase" and "erase" not in registry.get(design).capabilities:
        verb = "insert"
    sweep(lambda: HashMap("u8", "u8", device="cpu", design=design, seed=3, capacity=200), held, verb, 700, once=True)
