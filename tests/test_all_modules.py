"""No module of the package is without a test."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from support.imported import Imported, modules_of_the_package

RIVALS = "warphash.lab.rivals."
"""Modules of which some need a library that no file of the project installs."""


OF_A_GPU = "warphash.arrays.adapters.cupy"
"""The module that only tests with an NVIDIA GPU import."""


def lacks_its_library(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return True
    return False


def test_tests_have_imported_all_modules(pytestconfig: pytest.Config) -> None:
    """In the runs before this one, which were given the same file by ``--imported``."""
    file = pytestconfig.getoption("--all-imported")
    if file is None:
        pytest.skip("no --all-imported FILE was given")
    missing = modules_of_the_package() - set(Path(file).read_text().splitlines())
    missing.discard(OF_A_GPU)
    missing -= {name for name in missing if name.startswith(RIVALS) and lacks_its_library(name)}
    assert not missing, f"no test imports {', '.join(sorted(missing))}: write one, or delete the module"


def test_the_streams_load_without_a_driver() -> None:
    """They take the functions of the driver by address, when an engine is made."""
    streams = importlib.import_module("warphash.runtime.cuda._streams")
    assert {"Streams", "Kernel", "Find"} <= set(dir(streams))


def test_a_run_notes_what_it_has_imported(tmp_path: Path) -> None:
    file = tmp_path / "imported"
    for _ in range(2):
        Imported(file).pytest_sessionfinish()
    names = file.read_text().splitlines()
    assert names.count("warphash.settings") == 2
    assert {
        "warphash.settings",
        "warphash.lab.report.tables",
        "warphash.storage.buckets.store",
    } <= modules_of_the_package()
