"""The amalgamation of headers, on a toy set of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from warphash.designs import registry
from warphash.designs.base import class_name
from warphash.errors import ParameterError
from warphash.runtime.engine import KernelSpec
from warphash.runtime.source import amalgamate, translation_unit


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    files = {
        "core/gpu/schedule.cuh": '#pragma once\n#include "core/slot.cuh"\nint schedule;\n',
        "buckets/gpu/entries.cuh": '#pragma once\n#include "core/hash.cuh"\n#include "core/slot.cuh"\nint entries;\n',
        "core/hash.cuh": "#pragma once\nint hash;\n",
        "core/slot.cuh": '#pragma once\n#include "core/hash.cuh"\n#include "platform/cuda.cuh"\nint slot;\n',
        "platform/cuda.cuh": "#pragma once\n#include <stdint.h>\n",
        "designs/two_words.cuh": '#pragma once\n#include "core/slot.cuh"\nint design;\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_each_header_comes_once_and_in_order(headers: Path) -> None:
    unit = translation_unit(KernelSpec("two_words", 4, 8, 16), "cuda", headers)
    assert [unit.count(f"int {name};") for name in ("hash", "slot", "entries", "design")] == [1, 1, 1, 1]
    assert unit.index("int hash") < unit.index("int slot") < unit.index("int entries") < unit.index("int design")
    assert '#include "' not in unit and "#include <stdint.h>" in unit and "#pragma once" not in unit


def test_unit_names_platform_class_and_the_wider_word(headers: Path) -> None:
    unit = translation_unit(KernelSpec("two_words", 4, 8, 16), "emulated", headers)
    assert unit.startswith('#line 1 "unit.cu"\n#define WARPHASH_EMULATED 1\n')
    assert unit.endswith("WARPHASH_ENTRIES(TwoWords, warphash::u64, true, 16)\n")
    of_set = translation_unit(KernelSpec("two_words", 4, 0, 1), "cuda", headers)
    assert of_set.endswith("WARPHASH_ENTRIES(TwoWords, warphash::u32, false, 1)\n")
    of_lists = translation_unit(KernelSpec("two_words", 4, 0, 2, layout=registry.get("slab").layout), "cuda", headers)
    assert of_lists.endswith("WARPHASH_ENTRIES(TwoWords, warphash::u32, false, 2)\n")


def test_constants_are_built_into_gpu_kernels_only(headers: Path) -> None:
    spec = KernelSpec("two_words", 4, 4, 8, (("family", 1), ("hashes", 3)))
    define = "#define WARPHASH_CONSTANTS known.family = 1; known.hashes = 3;\n"
    assert define in translation_unit(spec, "cuda", headers)
    assert "WARPHASH_CONSTANTS" not in translation_unit(spec, "emulated", headers)


def test_line_markers_follow_the_headers(headers: Path) -> None:
    lines = amalgamate('int first;\n#include "core/hash.cuh"\nint last;\n', "unit.cu", headers).splitlines()
    name, number, positions = "", 0, {}
    for line in lines:
        if line.startswith("#line"):
            number, name = int(line.split()[1]) - 1, line.split('"')[1]
            continue
        number += 1
        positions[line] = (name, number)
    assert positions["int first;"] == ("unit.cu", 1)
    assert positions["int hash;"] == ("core/hash.cuh", 2)
    assert positions["int last;"] == ("unit.cu", 3)


def test_class_name_is_the_stem_in_camel_case() -> None:
    assert class_name("power_of_two") == "PowerOfTwo"


def test_missing_header_is_left_to_the_compiler(headers: Path) -> None:
    (headers / "core/hash.cuh").unlink()
    unit = translation_unit(KernelSpec("two_words", 4, 4, 8), "cuda", headers)
    assert unit.count('#include "core/hash.cuh"') == 2


def test_unknown_platform_is_refused(headers: Path) -> None:
    with pytest.raises(ParameterError, match="cuda, emulated"):
        translation_unit(KernelSpec("two_words", 4, 4, 8), "host", headers)
