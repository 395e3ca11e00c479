"""A table that is used for long: it takes no more memory than at first, and keeps none that it does not count."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from support.cases import ONE_OF_EACH_FAMILY, design_names, multi_designs
from support.engines import one_of_each
from support.inside import parts_of, storage_of
from support.verbs import World, call, public
from warphash import HashMap
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import Engine

WARM, LONG = 50, 150
"""Calls of each verb after which the memory is looked at: until then a table may find its size."""

SCRATCH_BYTES = 4096
"""What small updates keep for the next ones differs with their sizes by less."""

USED = (
    *("insert", "assign", "upsert", "find_or_insert", "erase", "erase_all", "execute", "flush"),
    *("__setitem__", "__delitem__", "find", "contains", "find_all", "count"),
)


class Held:
    """Memory that an engine has given out, and not yet got back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
        self.nbytes = 0
        allocate = engine.allocate

        def counted(nbytes: int, stream: Any = None) -> Any:
            return _Counted(allocate(nbytes, stream), self)

        monkeypatch.setattr(engine, "allocate", counted)


class _Counted:
    def __init__(self, memory: Any, held: Held) -> None:
        self._memory, self._held = memory, held
        self.ptr, self.nbytes = memory.ptr, memory.nbytes
        held.nbytes += self.nbytes

    def __del__(self) -> None:
        self._held.nbytes -= self.nbytes


def crossed() -> list[Any]:
    """Every kind and design; on any day, one design of each way to keep pairs."""
    tables = [
        *(("HashMap", design, "u4") for design in design_names()),
        *(("HashMap", design, "V24") for design in ("bucketed_cuckoo", "slab", "dynamic_cuckoo", "stadium")),
        *(("MultiMap", design, "u4") for design in multi_designs()),
    ]
    daily = {
        *(("HashMap", design, "u4") for design in ONE_OF_EACH_FAMILY),
        *(("HashMap", "bucketed_cuckoo", "V24"), ("MultiMap", "slab", "u4"), ("MultiMap", "bucketed_cuckoo", "u4")),
    }
    return [pytest.param(*table, marks=[pytest.mark.slow] * (table not in daily)) for table in tables]


@pytest.mark.parametrize(("kind", "design", "key"), crossed())
def test_verbs_called_for_long_take_no_more_memory(
    monkeypatch: pytest.MonkeyPatch, kind: str, design: str, key: str
) -> None:
    held = Held(monkeypatch, engine_for("cpu"))  # before the table is made, so that all of its memory is counted
    world = World(kind, design, key, size=100)
    verbs = [verb for verb in USED if verb in public(kind)]
    seen = []
    for turn in range(LONG + 1):
        for verb in verbs:
            call(world, verb, world.owns[0])
        if turn in (WARM, LONG):
            gc.collect()
            seen.append((world.table.nbytes, held.nbytes))
    (nbytes, all_held), (nbytes_then, all_held_then) = seen
    assert nbytes_then == nbytes and all_held_then <= all_held + SCRATCH_BYTES


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("design", ["cuckoo", "iceberg"])
def test_an_update_keeps_no_large_scratch_memory(monkeypatch: pytest.MonkeyPatch, design: str, device: str) -> None:
    table = HashMap("u4", "u4", design=design, device=device, capacity=500, seed=1)
    held = Held(monkeypatch, parts_of(table).front.engine)
    storage_of(table).store.array._workbench.kept_bytes = 0  # so these few keys are many
    keys = np.arange(200, dtype="u4")
    assert table.insert(keys, keys).all() and not table.insert(keys, keys).any()
    assert held.nbytes == 0


@pytest.mark.parametrize("last", ["__init__", "find", "insert", "erase", "clear"])
@pytest.mark.parametrize("design", design_names())
def test_the_memory_of_a_table_is_free_with_its_last_reference(
    monkeypatch: pytest.MonkeyPatch, design: str, last: str
) -> None:
    held = Held(monkeypatch, engine_for("cpu"))
    gc.collect()
    before = held.nbytes
    keys = np.arange(500, dtype="u4")
    gc.disable()  # a cycle of references would keep the table until the next collection
    try:
        table = HashMap("u4", "u4", design=design, capacity=1000, device="cpu", seed=1)
        if last != "__init__":
            table.insert(keys, keys)
            getattr(table, last)(*{"insert": (keys + 500, keys), "clear": ()}.get(last, (keys,)))
        del table
        assert held.nbytes == before
    finally:
        gc.enable()
