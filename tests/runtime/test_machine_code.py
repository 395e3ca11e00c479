"""Kernels that are compiled one by one, when they are asked for; needs NVRTC's wheel, no GPU."""

from __future__ import annotations

import logging
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from warphash.designs import registry
from warphash.runtime.cuda import nvrtc
from warphash.runtime.cuda.cache import CubinCache
from warphash.runtime.cuda.machine_code import MachineCode
from warphash.runtime.cuda.program import CudaProgram
from warphash.runtime.source import SLABS, kernel_names, kernel_root, single_kernel, translation_unit
from warphash.settings import CACHE_VARIABLE
from warphash.storage.make import programs

pytestmark = pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC is not installed")

FAMILIES = {
    design.layout.family: design for design in map(registry.get, registry.names()) if not design.layout.composed
}


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The kernels of each compilation so far."""
    done: list[set[str]] = []
    real = nvrtc.compile

    def noted(source: str, arch: str) -> nvrtc.CompiledModule:
        module = real(source, arch)
        done.append(set(module.usage()))
        return module

    monkeypatch.setattr(nvrtc, "compile", noted)
    return done


def test_each_kernel_is_compiled_by_itself_and_once(compiled: list[set[str]], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "warphash"):
        (take,) = MachineCode(SLABS, "sm_90").of(["take"])
    assert take.startswith(b"\x7fELF") and compiled == [{"take"}]
    assert "compiling the kernels of slabs for sm_90" in caplog.text and caplog.text.count("take") == 1
    give_back, again = MachineCode(SLABS, "sm_90").of(["give_back", "take"])
    assert again == take != give_back and compiled == [{"take"}, {"give_back"}]
    MachineCode(SLABS, "sm_80").of(["take"])
    assert compiled[2:] == [{"take"}]


def test_kernels_that_are_asked_for_together_are_compiled_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=60)

    def waits_for_the_other(source: str, arch: str) -> nvrtc.CompiledModule:
        both.wait()
        return nvrtc.CompiledModule(re.search(r"WARPHASH_NAMED_(\w+)", source)[1].encode(), "")  # type: ignore[index]

    monkeypatch.setattr(nvrtc, "compile", waits_for_the_other)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert MachineCode(SLABS, "sm_90").of(["take", "give_back"]) == [b"take", b"give_back"]


def test_a_kernel_that_is_expected_is_compiled_in_the_background_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, times = threading.Event(), threading.Event(), list[str]()

    def late(source: str, arch: str) -> nvrtc.CompiledModule:
        name = re.search(r"WARPHASH_NAMED_(\w+)", source)[1]  # type: ignore[index]
        times.append(name)
        begun.set()
        assert may_end.wait(60)
        if name == "give_back":
            raise nvrtc.CompileError("no such thing")
        return nvrtc.CompiledModule(name.encode(), "")

    monkeypatch.setattr(nvrtc, "compile", late)
    code = MachineCode(SLABS, "sm_90")
    code.begin(["take", "give_back"])  # returns, though nothing ends
    assert begun.wait(60)
    code.begin(["take"])
    may_end.set()
    assert code.of(["take"]) == [b"take"] == code.of(["take"]) and sorted(times) == ["give_back", "take"]
    for _ in range(2):  # who asks learns why, and the next one has it compiled anew
        with pytest.raises(nvrtc.CompileError, match="no such thing"):
            code.of(["give_back"])
    assert sorted(times) == ["give_back", "give_back", "take"]
    code.begin(["take"])
    assert times.count("take") == 1  # the cache has it


def test_a_kernel_that_nobody_asks_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    def late(source: str, arch: str) -> nvrtc.CompiledModule:
        assert may_end.wait(60)
        return nvrtc.CompiledModule(b"code", "")

    monkeypatch.setattr(nvrtc, "compile", late)
    code = MachineCode(SLABS, "sm_90")
    assert not code.is_begun("take")
    code.begin(["take"])
    assert code.is_begun("take") and not MachineCode(SLABS, "sm_90").is_begun("take")
    may_end.set()
    code._under_way["take"].result(60)
    assert MachineCode(SLABS, "sm_90").is_begun("take") and not code.is_begun("give_back")


def test_all_kernels_can_be_compiled_ahead(compiled: list[set[str]]) -> None:
    code = MachineCode(SLABS, "sm_90")
    assert code.compile_all()
    every = compiled[0]
    assert {"take", "give_back"} <= every and sorted(map(sorted, compiled[1:])) == sorted([name] for name in every)
    assert not code.compile_all() and len(compiled) == 1 + len(every)
    CubinCache().clear()
    code.of(["take"])
    assert code.compile_all() and len(compiled) == 1 + len(every) + 1 + len(every)  # all but one, and the names


def test_a_kernel_that_does_not_compile_says_why() -> None:
    unit = translation_unit(SLABS, "cuda").replace("griddepcontrol", "no_such_instruction")
    with pytest.raises(nvrtc.CompileError, match="no_such_instruction"):
        nvrtc.compile(single_kernel(unit, "take"), "sm_90")


@pytest.mark.parametrize("family", FAMILIES)
def test_companions_are_kernels_of_their_program(family: str) -> None:
    """Of each program that a table may launch, and in each of the widths that lead to others."""
    design = FAMILIES[family]
    kernels: set[str] = set()
    for key_bytes, value_bytes in ((4, 4), (4, 8), (8, 8), (24, 40)):
        widths = {"key_bytes": key_bytes, "value_bytes": value_bytes}
        for spec in programs(design, design.resolve({}), family="mixer", **widths):
            names = set(nvrtc.compile(kernel_names(translation_unit(spec, "cuda")), "sm_90").usage())
            kernels |= names
            for entry, others in ({} if spec.header else spec.layout.companions).items():
                assert entry not in names or set(others) <= names, f"{spec.layout.entries} lacks some of {others}"
    assert set(design.layout.companions) - {"place_pairs"} <= kernels  # which tables of several columns launch


def test_most_threads_of_a_block_are_those_of_the_header() -> None:
    header = (kernel_root() / "platform" / "cuda.cuh").read_text()
    assert f"kMostBlockThreads = {CudaProgram.block_threads};" in header


class Engine:
    """What a program needs of an engine until it looks for a kernel."""

    _driver = None


def test_two_threads_that_need_one_kernel_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[list[str]] = []
    found: list[Any] = []
    both = threading.Barrier(2, timeout=60)

    def load(names: Any) -> list[str]:
        loaded.append(list(names))
        return [f"module of {name}" for name in names]

    companions = {"settle": ("claim", "find")}
    program: Any = CudaProgram(Engine(), load, lambda names: None, bool, frozenset(), companions)  # type: ignore[arg-type]
    monkeypatch.setattr(program, "_found", lambda name, module: (name, module))

    def find() -> None:
        both.wait()
        found.append(program._find("settle"))

    threads = [threading.Thread(target=find) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == 2 * [("settle", "module of settle")] and loaded == [["settle", "claim", "find"]]
    assert program._find("find") == ("find", "module of find") and len(loaded) == 1
    assert program._find("erase") == ("erase", "module of erase") and loaded[1:] == [["erase"]]


def test_kernels_that_are_expected_begin_once() -> None:
    begun: list[list[str]] = []
    program: Any = CudaProgram(Engine(), lambda names: names, begun.append, bool, frozenset(), {})  # type: ignore[arg-type]
    program.kernels["find"] = object()
    program.expect(["build", "find", "scan"])
    assert begun == [["build", "scan"]]  # those that are not loaded
    program.kernels["build"] = object()
    program.expect(["build", "find", "scan"])
    assert begun == [["build", "scan"]]


def test_what_has_begun_stays_so() -> None:
    """Though its compilation fails, or another process clears the cache."""
    answers = [False, True]
    program: Any = CudaProgram(Engine(), lambda names: names, bool, lambda name: answers.pop(0), frozenset(), {})  # type: ignore[arg-type]
    assert [program.is_begun("build") for _ in range(3)] == [False, True, True] and not answers
    program.kernels["find"] = object()
    assert program.is_begun("find")
