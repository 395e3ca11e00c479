"""The part of the command that helps where something is missing: it runs on the standard library alone."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import warphash

HIDING = """
import runpy, sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
runpy.run_module("warphash", run_name="__main__", alter_sys=True)
"""
EVERYTHING = "typer,rich,matplotlib,pyarrow,numpy,warphash.runtime._cpu,cuda"


def without(modules: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process that has none of these modules."""
    run = [sys.executable, "-c", HIDING, modules, *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("modules", "subject", "mend"),
    [
        ("typer", "laboratory", "pip install 'warphash[bench]'"),
        ("rich", "laboratory", "pip install 'warphash[bench]'"),
        ("typer,rich,matplotlib", "laboratory", "pip install 'warphash[bench]'"),
        ("numpy", "NumPy", "pip install --force-reinstall 'numpy>=2.2'"),
        ("warphash.runtime._cpu", "CPU engine", "pip install --force-reinstall --no-deps warphash"),
        ("cuda", "NVRTC", "pip install 'warphash[cuda13]'"),
        (EVERYTHING, "NumPy", "pip install --force-reinstall 'numpy>=2.2'"),
        (EVERYTHING, "laboratory", "pip install 'warphash[bench]'"),
    ],
)
def test_the_doctor_names_what_is_missing_and_its_mend(modules: str, subject: str, mend: str) -> None:
    done = without(modules, "doctor")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert sum(not line.startswith(" ") for line in lines) >= 8  # every look, whatever became of it
    at = next(number for number, line in enumerate(lines) if line.startswith(subject))
    assert "missing" in lines[at] or "lack " + modules.partition(",")[0] in lines[at]
    assert lines[at + 1].strip().startswith("mend: " + mend)


def test_without_numpy_nothing_else_is_blamed() -> None:
    said = without("numpy", "doctor").stdout
    assert said.count("without NumPy") == 2 and said.count("mend: ") == 1 + said.count(
        "mend: pip install 'warphash[cuda"
    )


@pytest.mark.parametrize("modules", ["none", EVERYTHING])
def test_version(modules: str) -> None:
    done = without(modules, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"warphash {warphash.__version__}\n", "")


def test_another_command_without_its_extras_is_one_line_and_code_2() -> None:
    for modules, missing in (("typer", "typer"), ("rich", "rich"), ("numpy", "numpy"), ("matplotlib", "matplotlib")):
        done = without(modules, "bench")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
        assert f"needs {missing}: pip install 'warphash[bench]'" in done.stderr


def test_the_installed_command_is_this_one() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["warphash"].partition(":")
    assert module == "warphash.__main__" and callable(getattr(import_module(module), name))
