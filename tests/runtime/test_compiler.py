"""Libraries compiled when they are first used: once, whole or not at all; and what is said without a compiler."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from warphash.errors import EngineUnavailable
from warphash.runtime import compiler
from warphash.runtime.compiler import KERNEL_OPTIONS, compiled
from warphash.runtime.cuda.nvrtc import CompileError
from warphash.settings import CACHE_VARIABLE

SOURCE = 'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of compiled libraries, which is empty."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "toys"


def test_a_library_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled(SOURCE, KERNEL_OPTIONS, "toys")
    assert ctypes.CDLL(str(made)).answer() == 42 and list(cache.iterdir()) == [made]
    others = {compiled(f"{SOURCE}\n", KERNEL_OPTIONS, "toys"), compiled(SOURCE, (*KERNEL_OPTIONS, "-O1"), "toys")}
    assert len({made, *others}) == 3
    monkeypatch.setattr(compiler, "_compile", None)  # fails if it is called
    assert compiled(SOURCE, KERNEL_OPTIONS, "toys") == made


def test_a_source_that_is_refused_leaves_no_file(cache: Path) -> None:
    with pytest.raises(CompileError, match=r"refused the source:\n(.|\n)*nonsense"):
        compiled("nonsense", KERNEL_OPTIONS, "toys")
    assert not list(cache.iterdir())


def test_without_a_folder_each_process_compiles(cache: Path) -> None:
    cache.write_text("no folder")
    made = compiled(SOURCE, KERNEL_OPTIONS, "toys")
    assert ctypes.CDLL(str(made)).answer() == 42 and made.parent != cache
    made.unlink()
    made.parent.rmdir()


def test_the_compiler_can_be_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = cache.parent / "own"
    own.write_text(f'#!/bin/sh\nexec {" ".join(compiler.compiler())} "$@"\n')
    own.chmod(0o700)
    made = compiled(SOURCE, KERNEL_OPTIONS, "toys")
    monkeypatch.setenv("CXX", f"{own} -O0")
    assert compiler.compiler() == (str(own), "-O0")
    assert compiled(SOURCE, KERNEL_OPTIONS, "toys") != made


@pytest.mark.parametrize(("named", "tried"), [("", "g++, c++"), ("own -O0", "own, g++, c++")])
def test_no_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch, named: str, tried: str) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setenv("CXX", named)
    with pytest.raises(EngineUnavailable) as caught:
        compiled(SOURCE, KERNEL_OPTIONS, "toys")
    assert f"found was none of {tried}: install g++ 11" in str(caught.value)
