"""A new design of a family that is there: a header, a Python file of the same stem, and a line in the registry.

A new family has a folder of its own besides, with its array and its remedy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.engines import missing

ROOT = Path(__file__).resolve().parents[2]
TOY = Path(__file__).with_name("toy_family")


def copy_of_the_tree(copy: Path) -> Path:
    """Copy the sources and tests, with a line in the registry for one more design; the package's folder."""
    for name in ("src", "tests", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    package = copy / "src" / "warphash"
    shutil.copy(TOY / "toy_table.cuh", package / "kernels" / "designs")
    registry = package / "designs" / "registry.py"
    line = '    "megakv",\n'
    assert registry.read_text().count(line) == 1
    registry.write_text(registry.read_text().replace(line, f'{line}    "toy_table",\n'))
    if not list((package / "runtime").glob("_cpu.*")):
        from warphash.runtime import _cpu  # type: ignore[attr-defined]

        shutil.copy(_cpu.__file__, package / "runtime")
    return package


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a new design."""
    copy = tmp_path_factory.mktemp("tree")
    package = copy_of_the_tree(copy)
    shutil.copy(TOY / "plain_toys.py", package / "designs" / "toy_table.py")
    return copy


@pytest.fixture(scope="module")
def tree_with_a_family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a new design of a new family, whose faults are tested, too."""
    copy = tmp_path_factory.mktemp("family")
    package = copy_of_the_tree(copy)
    shutil.copy(TOY / "design.py", package / "designs" / "toy_table.py")
    shutil.copy(TOY / "plain_toys.py", package / "designs")
    folder = package / "storage" / "toy"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in ("array.py", "store.py"):
        shutil.copy(TOY / name, folder)
    faults = copy / "tests" / "support" / "faults.py"
    line, some = '        Family("buckets", "bucketed_cuckoo"),\n', "SOME = (\n"
    assert faults.read_text().count(line) == faults.read_text().count(some) == 1
    with_toys = faults.read_text().replace(line, f'{line}        Family("toys", "toy_table"),\n')
    faults.write_text(with_toys.replace(some, f'{some}    "toys",\n'))
    return copy


PYTEST = ("-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-m", "slow or not slow")
"""All cases, as no daily one may be of a toy. Where none is collected, pytest fails."""


def run(tree: Path, *command: str) -> str:
    """What ``command`` printed, run in a copy of the tree; it must succeed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / name) for name in ("src", "tests"))}
    ran = subprocess.run([sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    return ran.stdout


@pytest.mark.slow
@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize("file", ["test_verbs.py", "test_items.py", "test_container.py"])
def test_it_has_the_conformance_suite(tree: Path, file: str) -> None:
    said = run(tree, *PYTEST, f"tests/conformance/{file}", "-k", "emulated-toy_table")
    assert " passed" in said or "[100%]" in said


FAULTS = {
    "table/test_no_memory.py": "toys",
    "table/test_interrupts.py": "toys",
    "conformance/test_verbs.py": "toy_table",
    "conformance/test_container.py": "toy_table",
    "conformance/test_refused_memory.py": "toy_table",
}
"""Files of tests, and what the names of their tests for the toy family have in common."""


@pytest.mark.slow
@pytest.mark.parametrize("file", FAULTS)
def test_a_family_of_its_own_is_an_array_and_a_remedy(tree_with_a_family: Path, file: str) -> None:
    said = run(tree_with_a_family, *PYTEST, f"tests/{file}", "-k", FAULTS[file])
    assert " passed" in said or "[100%]" in said


def test_the_extension_is_generated_with_it(tree: Path, tmp_path: Path) -> None:
    run(tree, "-B", "-S", "src/extension/generate.py", str(tmp_path))
    assert "WARPHASH_UNIT(toy_table)" in (tmp_path / "units.inc").read_text()
    assert "toy_table" in (tmp_path / "units.cmake").read_text()
    unit = (tmp_path / "toy_table.cpp").read_text()
    assert '#include "designs/toy_table.cuh"' in unit
    assert unit.count("WARPHASH_ENTRIES(ToyTable, ") == unit.count(", 8)") == 4  # buckets of 16 are compiled when used
