"""Kernels that are compiled ahead: which, once, and to where a table looks for them. The compiler is a toy."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from warphash import DtypeError, EngineUnavailable, ParameterError
from warphash.runtime.cuda import nvrtc
from warphash.runtime.cuda.cache import CubinCache
from warphash.runtime.devices import engine_for
from warphash.settings import CACHE_VARIABLE
from warphash.table.ahead import compile_ahead, parsed

DEFAULTS: dict[str, Any] = {"design": "iceberg", "arch": ["sm_90"], "evict": None, "hash": "mixer", "parameters": {}}

SHARED = ["rows", "sketch", "aggregates", "partition"]
"""Programs of tables of all designs."""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The architectures of all compilations so far."""
    done: list[str] = []

    def toy(source: str, arch: str) -> nvrtc.CompiledModule:
        done.append(arch)
        return nvrtc.CompiledModule(source.encode()[-40:] + arch.encode(), "")

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(nvrtc, "compile", toy)
    monkeypatch.setattr(nvrtc, "version", lambda: (13, 0))
    return done


def test_kernels_are_compiled_once(compiled: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "warphash"):
        first = list(compile_ahead("u8", "f4", **DEFAULTS))
    assert [code.program for code in first] == ["iceberg", *SHARED, "partition"]  # of updates, then of lookups
    assert all(code.compiled for code in first) and compiled == ["sm_90"] * 6
    assert "compiling the kernels of iceberg for 8 + 4 bytes for sm_90" in caplog.text
    assert CubinCache().use().entries == 6
    again = list(compile_ahead("i8", "i4", **DEFAULTS))  # keys and values are words of the same widths
    assert not any(code.compiled for code in again) and len(compiled) == 6


def test_other_kinds_of_tables_need_other_kernels(compiled: list[str]) -> None:
    def programs(key: str, value: str | None, **options: Any) -> list[str]:
        return [code.program for code in compile_ahead(key, value, **DEFAULTS | options)]

    assert "bounded" in programs("u8", "f4", evict="lru")
    assert programs("u8", None, design="stadium") == ["stadium", *SHARED, "stadium", "stadium"]
    assert "slabs" in programs("u4", "u4", design="slab")
    assert programs("u8", "u8", design="tiered")[:2] == ["bounded", "bucketed_cuckoo"]
    assert len(programs("u8", "f4", arch=["sm_80", "sm_100"])) == 12 and {"sm_80", "sm_100"} <= set(compiled)
    before = len(compiled)
    programs("u8", "f4", parameters={"slots_per_bucket": 32})
    programs("u8", "f4", hash="universal")
    assert len(compiled) == before + 2


def test_what_no_table_takes_is_refused(compiled: list[str]) -> None:
    for options, error in (
        ({"design": "nope"}, ParameterError),
        ({"parameters": {"slots": 3}}, ParameterError),
        ({"evict": "oldest"}, ParameterError),
        ({"hash": "sha256"}, ParameterError),
    ):
        with pytest.raises(error):
            list(compile_ahead("u8", "f4", **DEFAULTS | options))
    with pytest.raises(DtypeError):
        list(compile_ahead("f4", "f4", **DEFAULTS))
    assert not compiled


def test_without_a_gpu_an_architecture_is_needed(compiled: list[str]) -> None:
    try:
        engine_for("cuda")
    except EngineUnavailable:
        with pytest.raises(EngineUnavailable):
            list(compile_ahead("u8", "f4", **DEFAULTS | {"arch": None}))
    else:
        assert len(list(compile_ahead("u8", "f4", **DEFAULTS | {"arch": None}))) == 6


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("slots_per_bucket=8", ("slots_per_bucket", 8)),
        ("threshold=0.5", ("threshold", 0.5)),
        ("early_exit=False", ("early_exit", False)),
        ("placement=first", ("placement", "first")),
    ],
)
def test_parameters_of_the_command_line(text: str, made: tuple[str, Any]) -> None:
    assert parsed(text) == made


@pytest.mark.parametrize("text", ["slots_per_bucket", "=8", ""])
def test_a_parameter_without_a_value_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="name=value"):
        parsed(text)
