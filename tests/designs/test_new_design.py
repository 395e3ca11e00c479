"""A new design of a family that is there: a header, a Python file of the same stem, and a line in the registry."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.engines import missing

ROOT = Path(__file__).resolve().parents[2]

HEADER = """// Two buckets to try in order: a key lives in the first with room, and never moves.
#pragma once
#include "buckets/abi.cuh"
#include "core/design.cuh"

namespace warphash {

template <class S_>
struct ToyTable : OverBuckets {
  using S = S_;
  using Pair = typename S::Pair;
  static constexpr bool kSettles = false, kMovesKeys = false, kReadsFirst = true;
  WARPHASH_FN static i32 settle_slots(const Table&) { return 0; }
  WARPHASH_FN static i32 region(const Table&) { return S::kSlots; }
  WARPHASH_FN static bool advance(const Table& t, Probe<S>& probe, const BucketView<S>& seen) {
    return probe.advance(t, seen, false);
  }

  struct Placement {
    Pair hand;
    Named<S> named;
    u32 bucket;
    u32 function;
  };

  WARPHASH_FN static Placement start(const Probe<S>& probe, typename S::Word value, u32) {
    return {Pair::make(probe.named.key, value), probe.named, probe.bucket, 0};
  }

  WARPHASH_FN static Placed step(const Table& t, Placement& p, const BucketView<S>& seen) {
    if (seen.hit >= 0) return Placed::kWasThere;
    if (seen.vacant < S::kSlots)
      return S::occupy(S::at(t, p.bucket) + seen.vacant, p.hand) ? Placed::kInserted : Placed::kGoesOn;
    if (++p.function >= t.hashes) return Placed::kNoRoom;
    p.bucket = bucket_of(t, p.named, p.function);
    return Placed::kGoesOn;
  }
};

}  // namespace warphash
"""

DESIGN = '''"""A toy: see ``kernels/designs/toy_table.cuh``."""

from .base import Design, Parameter

DESIGN = Design(
    name="toy_table",
    aliases=("toy",),
    title="Toy",
    citation="nobody",
    parameters=(Parameter("slots_per_bucket", 8, "slots in a bucket", choices=(8, 16)),),
    fields=lambda p: {"hashes": 2},
    default_load_factor=lambda p: 0.5,
    safe_load_factor=lambda p: 0.6,
    moves_keys=False,
    settles=False,
)
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and tests with one more design."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("src", "tests", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    package = copy / "src" / "warphash"
    (package / "kernels" / "designs" / "toy_table.cuh").write_text(HEADER)
    (package / "designs" / "toy_table.py").write_text(DESIGN)
    registry = package / "designs" / "registry.py"
    line = '    "megakv",\n'
    assert registry.read_text().count(line) == 1
    registry.write_text(registry.read_text().replace(line, f'{line}    "toy_table",\n'))
    if not list((package / "runtime").glob("_cpu.*")):
        from warphash.runtime import _cpu  # type: ignore[attr-defined]

        shutil.copy(_cpu.__file__, package / "runtime")
    return copy


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
    selection = [f"tests/conformance/{file}", "-k", "emulated-toy_table", "-n", "0", "-p", "no:cacheprovider"]
    said = run(tree, "-m", "pytest", *selection)  # nothing collected is a failure: exit status 5
    assert " passed" in said or "[100%]" in said


def test_the_extension_is_generated_with_it(tree: Path, tmp_path: Path) -> None:
    run(tree, "-B", "-S", "src/extension/generate.py", str(tmp_path))
    assert "WARPHASH_UNIT(toy_table)" in (tmp_path / "units.inc").read_text()
    assert "toy_table" in (tmp_path / "units.cmake").read_text()
    unit = (tmp_path / "toy_table.cpp").read_text()
    assert '#include "designs/toy_table.cuh"' in unit
    assert unit.count("WARPHASH_ENTRIES(ToyTable, ") == unit.count(", 8)") == 4  # buckets of 16 are compiled when used
