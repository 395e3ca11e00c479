"""Kernels that the extension of the CPU engine does not have: compiled when a program first asks for them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from warphash import HashMap, HashSet
from warphash.designs import registry
from warphash.designs.auto import chosen_slots
from warphash.errors import EngineUnavailable
from warphash.lab.bench.ceilings import CEILING, LOOKUPS
from warphash.lab.bench.standard import settings_of
from warphash.lab.figures.allocators import MALLOC
from warphash.lab.figures.boards import BOARDLESS
from warphash.lab.figures.lossy import LOSSY
from warphash.lab.figures.rejected import REJECTED
from warphash.runtime import _cpu, cpu
from warphash.runtime.cpu import CpuEngine
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import KernelSpec
from warphash.settings import CACHE_VARIABLE

LABORATORY = [CEILING, LOOKUPS, MALLOC, BOARDLESS, REJECTED, LOSSY]
LEVELS = _cpu.levels().split()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of compiled kernels, which is empty."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "cpu"


@pytest.mark.parametrize("spec", LABORATORY, ids=lambda spec: spec.design)
def test_the_extension_has_no_kernel_of_the_laboratory(spec: KernelSpec) -> None:
    assert not any(_cpu.entries(spec.design, 0, 0, 0, level) for level in LEVELS)
    assert cpu.entries_of(spec)


@pytest.mark.parametrize("level", LEVELS)
def test_other_kernels_are_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setattr(_cpu, "levels", lambda: level)
    first = cpu.entries_of(MALLOC)
    assert first and len(list(cache.glob("*.so"))) == 1
    with pytest.raises(KeyError, match="no such operation"):
        _cpu.entry(first, "no such operation")
    assert cpu.entries_of(MALLOC) == first and len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("name", [name for name in registry.names() if not registry.get(name).layout.composed])
def test_the_extension_has_what_is_usual(name: str) -> None:
    """Maps and sets of the defaults and of `auto`, and the maps of the benchmark; of most designs, all there is."""
    design = registry.get(name)
    compiled, rest = set(design.compiled()), set(design.slot_types())
    assert compiled <= rest
    rest -= compiled
    for types, is_built_in in [*((types, True) for types in compiled), *((types, False) for types in rest)]:
        value_bytes = -1 if types.value_is_row else types.value_bytes
        assert all(
            bool(_cpu.entries(name, types.word_bytes, value_bytes, types.slots_per_bucket, level)) == is_built_in
            for level in LEVELS
        )
    sizes = [setting.parameters.get("slots_per_bucket") for setting in settings_of(name, 0.8)]
    chosen = {design.resolve({}).get("slots_per_bucket"), *chosen_slots(name)}
    assert not [types for types in rest if types.slots_per_bucket in chosen]
    assert not [types for types in rest if types.slots_per_bucket in sizes and types.value_bytes]


def test_chosen_slots() -> None:
    assert chosen_slots("bucketed_cuckoo") == {8, 16} and chosen_slots("iceberg") == {16, 32}
    assert chosen_slots("power_of_two") == {16} and chosen_slots("quotient_cuckoo") == chosen_slots("slab") == set()


def test_a_rare_set_is_compiled_when_it_is_made(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_for("cpu"), "_programs", {})
    keys = np.random.default_rng(1).permutation(np.arange(40_000, dtype=np.uint32))
    table = HashSet.from_arrays(keys[:20_000], device="cpu", design="linear_probing", slots_per_bucket=32)
    assert len(list(cache.iterdir())) == 1
    assert (table.contains(keys) == (np.arange(40_000) < 20_000)).all()


def test_a_table_whose_kernels_are_not_in_the_extension(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same answers as the kernels of the extension."""
    built_in = _cpu.entries
    monkeypatch.setattr(_cpu, "entries", lambda name, *of: 0 if name == "megakv" else built_in(name, *of))
    monkeypatch.setattr(engine_for("cpu"), "_programs", {})
    keys = np.random.default_rng(1).permutation(np.arange(40_000, dtype=np.uint32))
    table = HashMap.from_arrays(keys[:20_000], ~keys[:20_000], device="cpu", design="megakv")
    values, found = table.find(keys)
    assert (found == (np.arange(40_000) < 20_000)).all() and (values[:20_000] == ~keys[:20_000]).all()
    assert table.erase(keys[10_000:]).sum() == 10_000
    table.check()
    assert len(list(cache.iterdir())) == 1


def test_without_a_compiler_only_other_kernels_are_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv("CXX", raising=False)
    engine = CpuEngine()
    with pytest.raises(EngineUnavailable, match=r"a C\+\+20 compiler is needed .* install g\+\+ 11"):
        engine.program(MALLOC)
    keys = np.arange(100, dtype=np.uint32)
    assert HashMap.from_arrays(keys, keys, device="cpu").find(keys)[1].all()
