"""The operations of the CPU engine, in each instruction level that was compiled and that this processor has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warphash import HashMap, HashSet
from warphash.designs import registry
from warphash.errors import UnsupportedVerb
from warphash.runtime import _cpu, cpu
from warphash.runtime.devices import engine_for
from warphash.runtime.doctor import SIMD_LEVELS

LEVELS = _cpu.levels().split()
DESIGNS = [name for name in registry.names() if not registry.get(name).layout.composed]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A level, which all kernels of the test are taken of."""
    monkeypatch.setattr(cpu._cpu, "levels", lambda: request.param)
    monkeypatch.setattr(engine_for("cpu"), "_programs", {})
    return str(request.param)


def test_the_levels_come_in_their_order() -> None:
    assert [level for level in ("wide", "fast", "base") if level in LEVELS] == LEVELS
    assert set(LEVELS) <= set(SIMD_LEVELS)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_a_map_of_each_level(level: str, design: str, dtype: str) -> None:
    n = 20_000
    drawn = np.unique(np.random.default_rng(3).integers(0, np.iinfo(dtype).max, 3 * n, dtype, endpoint=True))
    keys = np.random.default_rng(4).permutation(drawn)[: 2 * n]
    load: dict[str, Any] = {"load_factor": 0.25} if design == "megakv" else {}
    table = HashMap.from_arrays(keys[:n], ~keys[:n], device="cpu", design=design, **load)
    values, found = table.find(keys, default=5)
    assert (found == (np.arange(2 * n) < n)).all()
    assert (values == np.where(found, ~keys, np.array(5, dtype))).all()
    assert (table.contains(keys) == found).all()
    assert table.insert(keys[n - 99 : n + 101], keys[n - 99 : n + 101]).sum() == 101
    assert table.assign(keys[:50], keys[:50]).sum() == 0
    assert (table[keys[:50]] == keys[:50]).all() and (table[keys[50:n]] == ~keys[50:n]).all()
    table.upsert(keys[:50], np.ones(50, dtype), "add")
    assert (table[keys[:50]] == keys[:50] + np.array(1, dtype)).all()
    assert (np.sort(table.keys()) == np.sort(keys[: n + 101])).all()
    table.check()
    try:
        assert table.erase(keys[: n + 50]).all()
    except UnsupportedVerb:
        return
    assert len(table) == 51 and (np.sort(table.keys()) == np.sort(keys[n + 50 : n + 101])).all()


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_a_set_of_each_level(level: str, dtype: str) -> None:
    keys = np.random.default_rng(5).permutation(np.arange(60_000)).astype(dtype)
    for design in ("quotient_cuckoo", "bucketed_cuckoo"):
        table = HashSet.from_arrays(keys[:40_000], device="cpu", design=design)
        assert (table.contains(keys) == (np.arange(60_000) < 40_000)).all()
        assert table.erase(keys[20_000:]).sum() == 20_000 and len(table) == 20_000
        table.check()


def test_no_other_operation_is_compiled() -> None:
    find = _cpu.entries("quotient_cuckoo", 4, 4, 10, LEVELS[0])
    assert _cpu.entry(find, "find")
    with pytest.raises(KeyError, match="no such operation"):
        _cpu.entry(find, "no such operation")
    assert _cpu.entries("quotient_cuckoo", 4, 4, 11, LEVELS[0]) == 0
    assert _cpu.entries("no such design", 4, 4, 10, LEVELS[0]) == 0
