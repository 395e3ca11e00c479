"""Updates that find no memory, wherever they ask for it: the table is as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from support.engines import missing
from support.faults import FAMILIES, SOME, VERBS, Scenario, refusals, scenarios
from warphash import HashMap, TableFull

DESIGNS = [name for name in design_names() if name != "dynamic_cuckoo"]
HELD = np.arange(300)
GIVEN = np.concatenate([np.arange(100), np.arange(1000, 1500), np.arange(1000, 1200)])
"""Keys of a batch: some are held, others are new, some of which repeat."""


def keys_of(ids: np.ndarray, key: str) -> np.ndarray:
    return ids.astype(key) if key != "V24" else np.repeat(ids.astype("u8"), 3).view("V24")


def change(table: Any, verb: str, keys: np.ndarray) -> None:
    values = np.full(len(keys), 7, "u8")
    if verb == "erase":
        table.erase(keys)
    elif verb == "shrink":
        table.shrink()
    elif verb == "reserve":
        table.reserve(5000)
    elif verb == "upsert":
        table.upsert(keys, values, "add")
    else:
        getattr(table, verb)(keys, values)


@pytest.mark.parametrize("key", ["u8", "u2", "V24"])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("verb", ["insert", "assign", "upsert", "find_or_insert", "erase", "shrink", "reserve"])
def test_no_memory_leaves_the_table_as_it_was(
    monkeypatch: pytest.MonkeyPatch, verb: str, design: str, key: str
) -> None:
    """All allocations fail from the first one on, then from the second, until there are as many as are needed."""
    table = HashMap(key, "u8", capacity=64, design=design, device="cpu", seed=3)
    table.insert(keys_of(HELD, key), HELD.astype("u8"))
    engine = table._engine
    allocate, left = engine.allocate, [0]

    def scarce(*given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError("none left")
        return allocate(*given)

    possible, done = 0, False
    while not done:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "allocate", scarce)
            left[0] = possible
            try:
                change(table, verb, keys_of(GIVEN, key))
                done = True
            except (MemoryError, TableFull):
                possible += 1
        if not done:
            assert len(table) == len(HELD)
            assert (table[keys_of(HELD, key)] == HELD).all()
            assert not table.contains(keys_of(GIVEN[100:], key)).any()
        table.check()
    expected = {"erase": 200, "shrink": 300, "reserve": 300}.get(verb, 800)
    assert len(table) == expected


READ = ("find", "contains", "__getitem__", "find_all", "count", "probe_counts", "check", "stats", "__len__")
"""Verbs that only look; `copy` and `to_arrays`, which ask for much memory, are tried like updates."""


def crossed() -> list[Any]:
    """Every verb that asks for memory, with every family and engine; on any day, fewer of the emulated engine."""
    verbs = [verb for verb in VERBS if verb not in (*READ, "clear")]
    marked = []
    for device in ("cpu", "emulated"):
        for scenario in [] if missing(device) else scenarios(device, FAMILIES, verbs):
            daily = scenario.family.name in SOME
            if device == "emulated":
                daily &= scenario.verb.name in ("insert", "erase", "shrink") and not scenario.grows
            marked.append(pytest.param(scenario, id=str(scenario), marks=[pytest.mark.slow] * (not daily)))
    return marked


@pytest.mark.parametrize("once", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["once", "for_good"])
@pytest.mark.parametrize("scenario", crossed())
def test_a_call_that_is_refused_memory_changes_nothing(scenario: Scenario, once: bool) -> None:
    """Each allocation in turn is refused, ``once`` or with all behind it."""
    for fault in refusals(scenario, once=once):
        assert not fault.harm(), fault
