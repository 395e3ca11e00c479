"""The doctor speaks on any machine, and names what mends it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warphash.errors import EngineUnavailable, ParameterError
from warphash.runtime import _cpu, doctor
from warphash.runtime.cpu import best_level
from warphash.runtime.cuda import engine as cuda
from warphash.runtime.cuda import nvrtc
from warphash.runtime.cuda.cache import CubinCache
from warphash.settings import CACHE_VARIABLE


def states() -> dict[str, doctor.Finding]:
    return {finding.subject: finding for finding in doctor.examine()}


def test_report_covers_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    CubinCache().put("k", bytes(2_000_000))
    text = doctor.report()
    for subject in ("warphash", "CPU engine", "GPU engine", "NVRTC", "compile cache", "array libraries"):
        assert any(line.startswith(subject) for line in text.splitlines()), text
    assert f"{tmp_path}: 1 kernels, 2.0 of" in text


def test_machine_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    monkeypatch.setitem(sys.modules, "warphash.runtime._cpu", None)
    monkeypatch.setattr(cuda, "reason_unavailable", lambda: "no NVIDIA driver is installed")
    found = states()
    assert found["NVRTC"].mend == nvrtc.MEND and "warphash[cuda13]" in nvrtc.MEND
    assert "pip install" in found["CPU engine"].mend
    assert found["GPU engine"].state == "not usable: no NVIDIA driver is installed"


def test_what_is_asked_for_is_among_the_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    subjects = {finding.subject for finding in doctor.examine()}
    assert {subject for subject in doctor.ASKED.values() if subject} <= subjects
    monkeypatch.setattr(doctor, "_version", lambda name: "13" if name in ("cupy-cuda13x", "torch") else None)
    findings = [doctor.Finding("GPU engine", "", is_ready=False), doctor.Finding("NumPy", "")]
    assert doctor.lacking(["numpy", "gpu"], findings) == ["gpu"]
    assert doctor.lacking(["cupy", "torch", "jax"], []) == ["jax"]
    with pytest.raises(ParameterError, match="did you mean 'torch'"):
        doctor.lacking(["torhc"], findings)


def test_an_extension_for_a_better_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cpu, "levels", lambda: "")
    found = states()["CPU engine"]
    assert "AVX2" in found.state and "WARPHASH_LEVELS" in found.mend
    with pytest.raises(EngineUnavailable, match="AVX2"):
        best_level()


def test_missing_bindings_are_mended_by_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "reason_unavailable", lambda: f"the CUDA bindings are not installed: {nvrtc.MEND}")
    found = states()["GPU engine"]
    assert found.mend == nvrtc.MEND and found.state == "not usable: the CUDA bindings are not installed"


def test_folder_that_takes_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    found = states()["compile cache"]
    assert "read only" in found.state and CACHE_VARIABLE in found.mend


def test_look_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("broken")

    monkeypatch.setattr(cuda, "reason_unavailable", fail)
    assert states()["GPU engine"].state == "cannot be examined: OSError: broken"


def test_no_driver_is_a_reason_and_no_error() -> None:
    reason = cuda.reason_unavailable()
    assert cuda.available() == (reason is None)
    if reason is not None:
        assert cuda.device_count() == 0
        with pytest.raises(cuda.EngineUnavailable, match="cuda:0"):
            cuda.engine(0)
