"""The amalgamation of headers and the digest of their code, on a toy set of them and on the real ones."""

from __future__ import annotations

import runpy
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from warphash.designs import registry
from warphash.designs.base import class_name
from warphash.errors import ParameterError
from warphash.lab.bench.ceilings import CEILING, LOOKUPS
from warphash.lab.figures.allocators import MALLOC
from warphash.lab.figures.boards import BOARDLESS
from warphash.lab.figures.lossy import LOSSY
from warphash.lab.figures.rejected import REJECTED
from warphash.runtime.engine import KernelSpec
from warphash.runtime.source import (
    BOUNDED,
    GROUP_RECORDS,
    GROUPS,
    JOINS,
    OWNERS,
    ROWS,
    SLABS,
    STRINGS,
    VALUE_LISTS,
    KernelSource,
    amalgamate,
    kernel_root,
    source_of,
    translation_unit,
)
from warphash.storage.stores import kernel_spec


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


def test_a_unit_for_a_cpu_exports_its_entries(headers: Path) -> None:
    for name in ("core/cpu/schedule.cuh", "core/cpu/groups.cuh", "buckets/cpu/entries.cuh"):
        (headers / name).parent.mkdir(exist_ok=True)
        (headers / name).write_text(f"#pragma once\nint {Path(name).stem};\n")
    unit = translation_unit(KernelSpec("two_words", 4, 8, 16, splits=True), "cpu", headers)
    order = [unit.index(f"int {name};") for name in ("schedule", "entries", "slot", "design", "groups")]
    assert order == sorted(order) and "#define" not in unit
    entries = "{WARPHASH_ENTRIES(TwoWords, warphash::u64, true, 16)}"
    exported = "const warphash_cpu::Entry warphash_entries[warphash_cpu::kMostEntries]"
    assert unit.endswith(f"{exported} = {entries};\n")


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
    with pytest.raises(ParameterError, match="cpu, cuda, emulated"):
        translation_unit(KernelSpec("two_words", 4, 4, 8), "host", headers)


SOURCE = KernelSource("cuda", "two_words", "warphash", ("core/gpu/schedule.cuh", "designs/two_words.cuh"))
CHANGES = {
    "a comment": ("#pragma once\n// why\nint hash;  /* of a key:\n twice */\n", True),
    "spaces": ("#pragma once\n\n   int\thash;\n", True),
    "code": ("#pragma once\nint other;\n", False),
    "a line that a comment disables": ("#pragma once\n// int hash;\n", False),
    "slashes in a string": ('#pragma once\nint hash;\nauto text = "//";\n', False),
}


@pytest.mark.parametrize(("header", "same"), CHANGES.values(), ids=CHANGES.keys())
def test_a_digest_is_of_the_code_that_the_headers_reach(headers: Path, header: str, same: bool) -> None:
    before = SOURCE.digest(headers)
    (headers / "core/hash.cuh").write_text(header)
    assert (SOURCE.digest(headers) == before) == same and len(before) == 32


def test_a_digest_sees_what_follows_a_comment_mark_in_a_string(headers: Path) -> None:
    hash_header = headers / "core/hash.cuh"
    digests = set()
    for tail in ("int a;", "int b;"):
        hash_header.write_text(f'#pragma once\nauto text = "/*"; char c = \'"\'; {tail} // "*/\n')
        digests.add(SOURCE.digest(headers))
    assert len(digests) == 2


def test_a_digest_is_of_one_platform(headers: Path) -> None:
    of_cuda, of_emulated = SOURCE, replace(SOURCE, platform="emulated")
    before = of_cuda.digest(headers), of_emulated.digest(headers)
    (headers / "platform/cuda.cuh").write_text("int new_word;\n")
    assert of_cuda.digest(headers) != before[0] and of_emulated.digest(headers) == before[1]


def test_a_digest_tells_a_header_that_is_gone(headers: Path) -> None:
    before = SOURCE.digest(headers)
    (headers / "designs/two_words.cuh").unlink()
    assert SOURCE.digest(headers) != before


def test_a_change_of_one_family_leaves_the_others(tmp_path: Path) -> None:
    root = tmp_path / "kernels"
    shutil.copytree(str(kernel_root()), root)
    made = {name: kernel_source(name) for name in ("slab", "cuckoo", "iceberg", "stadium")}
    before = {name: source.digest(root) for name, source in made.items()}
    assert len(set(before.values())) == 4 and before["slab"] == made["slab"].digest()
    with (root / "chains" / "slab_slots.cuh").open("a") as header:
        header.write("int one_more;\n")
    assert [name for name in made if made[name].digest(root) != before[name]] == ["slab"]
    with (root / "core" / "hash.cuh").open("a") as header:
        header.write("int one_more;\n")
    assert not [name for name in made if made[name].digest(root) == before[name]]


def kernel_source(name: str) -> KernelSource:
    design = registry.get(name)
    return source_of(kernel_spec(design, design.resolve({}), 4, 4, "mixer"), "cuda")


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_every_header_of_a_source_exists(platform: str) -> None:
    """On a CPU, the plain headers are those of which the extension is compiled."""
    path = Path(__file__).parents[2] / "src" / "extension" / "generate.py"
    compiled: dict[str, str] = runpy.run_path(str(path))["PLAIN_HEADERS"]
    plain = [ROWS, BOUNDED, SLABS, STRINGS, GROUPS, GROUP_RECORDS, VALUE_LISTS, JOINS, OWNERS]
    for spec in plain:
        *_, header = source_of(spec, platform).headers
        assert header == (compiled[spec.design] if platform == "cpu" else spec.header)
    assert compiled.keys() == {spec.design for spec in plain}  # those of the laboratory are no part of the extension
    plain += [CEILING, LOOKUPS, MALLOC, BOARDLESS, REJECTED, LOSSY]
    for name in registry.names():
        design = registry.get(name)
        if not design.layout.composed:
            plain.append(kernel_spec(design, design.resolve({}), 8, 8, "mixer"))
    for spec in plain:
        roots = [kernel_root(spec.package), kernel_root()]
        assert all(any((root / header).is_file() for root in roots) for header in source_of(spec, platform).headers)
