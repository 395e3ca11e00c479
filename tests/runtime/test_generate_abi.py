"""The mirrors in ``runtime/abi.py`` are up to date, and their generator refuses headers that it cannot read."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from warphash.runtime import abi
from warphash.runtime.source import kernel_root

KERNELS = Path(str(kernel_root()))
SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "generate_abi.py"))
MODULE = Path(abi.__file__).read_text(encoding="utf-8")
MESSAGE = "the headers declare something else: run scripts/generate_abi.py"

HEAD = '// A head.\n#pragma once\n#include "platform/types.cuh"\n\nnamespace warphash {\n\n'
TAIL = "\n}  // namespace warphash\n"


def written(folder: Path, declarations: str) -> str:
    """What the script writes for one header."""
    (folder / "abi.cuh").write_text(HEAD + declarations + TAIL, encoding="utf-8")
    module = SCRIPT["generated"](SCRIPT["BEGIN"] + SCRIPT["END"], folder)
    return str(module.removeprefix(SCRIPT["BEGIN"]).removesuffix(SCRIPT["END"]))


def test_the_mirrors_are_up_to_date() -> None:
    assert SCRIPT["generated"](MODULE, KERNELS) == MODULE, MESSAGE


def test_two_fields_in_another_order_are_noticed(tmp_path: Path) -> None:
    shutil.copytree(KERNELS, tmp_path / "kernels")
    header = tmp_path / "kernels" / "chains" / "abi.cuh"
    first, second = [line for line in header.read_text().splitlines(keepends=True) if line.startswith("  u64 ")][:2]
    header.write_text(header.read_text().replace(first + second, second + first))
    assert SCRIPT["generated"](MODULE, tmp_path / "kernels") != MODULE


def test_what_is_written_for_a_header(tmp_path: Path) -> None:
    declarations = """\
// Most things.
constexpr u32 kMostThings = 1ull << 4;

// Some things. Their `places`
// are numbers.
struct Things {
  u64 n;  // how many,
          // at most kMostThings
  u64 places[kMostThings / 2];
};

// Names of things, for Python strings.
enum Name : u64 { kThis = 0, kThat };

// What happens to a thing.
enum Operation : u8 {
  kTakeThing = 0,
  kLeaveThing
};

// Things with a size.
struct SizedThings : Things {
  u64 size;
};

// What a design takes.
struct OverThings {
  using Table = Things;
  using Batch = SizedThings;
};
"""
    expected = '''\
# ---- abi.cuh
MOST_THINGS = 1 << 4
"""Most things."""


class Things(ctypes.Structure):
    """Some things.

    Their ``places`` are numbers.
    """

    _fields_ = _words("n places", places=MOST_THINGS // 2)


class Operation(IntEnum):
    """What happens to a thing."""

    TAKE = 0
    LEAVE = 1


class SizedThings(Things):
    """Things with a size."""

    _fields_ = _words("size")


'''
    assert written(tmp_path, declarations) == expected


@pytest.mark.parametrize(
    ("declarations", "message"),
    [
        ("struct Things {\n  u64 n;\n};\n", "abi.cuh:7: Things needs a comment"),
        ("// A.\n\nstruct Things {\n  u64 n;\n};\n", "abi.cuh:7: expected a constant, an enum or a structure"),
        ("// A.\nusing Word = u64;\n", "abi.cuh:7: expected a constant"),
        ("// A.\nunion Things {\n  u64 n;\n};\n", "abi.cuh:7: expected a constant"),
        ("// A.\nstruct Things {\n  u64 n;\n  u32 m;\n};\n", "abi.cuh:10: a field of what .* is a u64, not a u32"),
        ("// A.\nstruct Things {\n  u64 n : 4;\n};\n", "abi.cuh:9: expected a field"),
        ("// A.\nstruct Things {\n  u64 n, m;\n};\n", "abi.cuh:9: expected a field"),
        ("// A.\nstruct Things {\n  u64 n = 1;\n};\n", "abi.cuh:9: expected a field"),
        ("// A.\nstruct Things {\n  u64 size() const;\n};\n", "abi.cuh:9: expected a field"),
        ("// A.\nstruct Things {\n  u64 n[2][2];\n};\n", "abi.cuh:9: expected a field"),
        ("// A.\nstruct Things {\n  u64 n[2 * 2];\n};\n", "abi.cuh:9: expected a field"),
        ("// A.\nstruct Things {\n  u64 n[kMost];\n};\n", "abi.cuh:9: no constant kMost is declared before"),
        ("// A.\nstruct Things {\n  u64 n;  // a \\n\n};\n", "abi.cuh:9: a quote or a backslash"),
        ('// A "thing".\nstruct Things {\n  u64 n;\n};\n', "abi.cuh:7: a quote or a backslash"),
        ("// A.\nstruct Things {\n  u64 n;\n  u64 n;\n};\n", "abi.cuh:10: n is a word of Python's, or another field"),
        ("// A.\nstruct Things {\n  u64 lambda;\n};\n", "abi.cuh:9: lambda is a word of Python's"),
        ("// A.\nstruct Things : Table {\n  u64 n;\n};\n", "abi.cuh:8: no structure Table is declared before"),
        (
            "// A.\nstruct Table {\n  u64 n;\n};\n// B.\nstruct Things : Table {\n  u64 n;\n};\n",
            "abi.cuh:13: n is .* another field of the structure or its bases",
        ),
        ("// A.\nstruct Table {\n  u64 n;\n};\n// B.\nconstexpr int Table = 3;\n", "abi.cuh:11: expected a constant"),
        ("// A.\nenum Op : u8 { kA = 0 };\n// B.\nenum Op : u8 { kB = 0 };\n", "abi.cuh:10: Op is declared twice"),
        ("// A.\nenum Op : u8 { kA = 0, kB = 2 };\n", "abi.cuh:8: members are 0, 1, 2 and so on"),
        ("// A.\nenum Op : u8 { kA = 0, kB = kA };\n", "abi.cuh:8: expected kName or kName = number, not 'kB = kA'"),
        ("// A.\nenum class Op : u8 { kA = 0 };\n", "abi.cuh:7: expected a constant"),
        ("// A.\nconstexpr f32 kShare = 1;\n", "abi.cuh:7: expected a constant"),
        ("// A.\nconstexpr u32 kShare = sizeof(u64);\n", "abi.cuh:7: expected a constant"),
        ("#if 1\n// A.\nconstexpr u32 kShare = 1;\n#endif\n", "abi.cuh:7: expected a constant"),
    ],
)
def test_other_declarations_are_refused(tmp_path: Path, declarations: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        written(tmp_path, declarations)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("// A head.\n", "") + TAIL, "a header is a comment, #pragma once, includes, and one namespace"),
        (HEAD + TAIL + "struct Things;\n", "a header is a comment"),
        (HEAD.replace("platform/types.cuh", "core/bulk.cuh") + TAIL, "includes core/bulk.cuh, which is no abi.cuh"),
    ],
)
def test_other_headers_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "abi.cuh").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match=message):
        SCRIPT["generated"](MODULE, tmp_path)


def test_a_module_without_a_place_for_mirrors_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"abi.py has no two lines # ---- Generated"):
        SCRIPT["generated"](SCRIPT["BEGIN"], KERNELS)
