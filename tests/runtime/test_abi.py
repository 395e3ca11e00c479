"""What stands in the headers and again in Python: a program compiled from the headers prints the values of theirs."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path

import pytest

from support.engines import missing
from warphash.designs import registry
from warphash.designs.base import Design, Layout
from warphash.designs.dynamic_cuckoo import COORDINATIONS
from warphash.runtime import abi
from warphash.runtime.emulated.engine import compiler
from warphash.runtime.engine import KernelSpec
from warphash.runtime.source import amalgamate
from warphash.storage import partition, policies
from warphash.storage.chains import node_pool

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

ENTRIES = {
    "buckets": "buckets/cpu/entries.cuh",
    "chains": "chains/entries.cuh",
    "subtables": "subtables/entries.cuh",
}
STRUCTURES: dict[str, type[ctypes.Structure]] = {"Table": abi.Table, "Batch": abi.Batch}


def structures() -> dict[str, int]:
    """Sizes, and offsets of fields."""
    expected = {}
    for name, structure in STRUCTURES.items():
        expected[f"sizeof({name})"] = ctypes.sizeof(structure)
        for field, *_ in structure._fields_:
            described = getattr(structure, field)
            expected[f"offsetof({name}, {field})"] = described.offset
            expected[f"sizeof({name}::{field})"] = described.size
    return expected


def report() -> dict[str, int]:
    lengths = {"leftover": abi.LEFTOVER, "winners": abi.WINNERS, "losers": abi.LOSERS}
    first, counts = abi.Report._fields[:4], abi.Report._fields[4:8]
    words = {"leftover": 0, "winners": 1, "homeless": 3, "unplaced": 4}
    assert first == tuple(words) and counts == ("changed", "probes", "mismatches", "erased")
    return {
        "sizeof(Report)": 8 * abi.REPORT_WORDS,
        "offsetof(Report, signals)": 8 * abi.COUNT_WORDS,
        "offsetof(Report, counts)": 64,
        **{f"offsetof(Report, {name})": offset for name, offset in lengths.items()},
        **{f"offsetof(Report, {name})": 8 * word for name, word in words.items()},
        **{f"offsetof(CountLine, {name})": 8 * word for word, name in enumerate(counts)},
        "offsetof(CountLine, placed)": 8 * len(counts),
        "sizeof(CountLine)": 64,
        "kReportLines": abi.REPORT_LINES,
    }


def constants() -> dict[str, int]:
    return {
        "kMaxHashes": abi.MAX_HASHES,
        "kMostSubtables": abi.MOST_SUBTABLES,
        "kHomelessCapacity": abi.HOMELESS_CAPACITY,
        **{f"k{op.name.title()}": op for op in abi.Op},
        **{f"k{operation.name.title()}Key": operation for operation in abi.Operation},
        **{f"k{flag.name.title()}": flag for flag in abi.Flag},
        **{f"k{name.title()}": number for number, name in enumerate(COORDINATIONS)},
    }


def of_family(family: str) -> dict[str, int]:
    """Facts of a family that no single design changes."""
    if family == "buckets":
        return {"kMostBuildParts": policies.MOST_BUILD_PARTS}
    if family == "chains":
        return {
            "kSlabBytes": node_pool.SLAB_BYTES,
            "kNoSlab": node_pool.NO_SLAB,
            "kBlockUnits": node_pool.BLOCK_UNITS,
            "kCountLines * kCountWords * sizeof(u32)": node_pool._COUNT_BYTES,
            "sizeof(Pool::bases) / sizeof(u64)": node_pool.MAX_SUPER_BLOCKS,
        }
    return {"kAnnex": abi.ANNEX}


def of_layout(design: Design, layout: Layout) -> dict[str, int]:
    """Facts of a design over some slots."""
    table = f"WARPHASH_DESIGN({design.class_name}, {layout.word}, {layout.value}, {layout.slots_per_bucket})"
    slots = f"{table}::S"
    if design.family == "subtables":
        return {f"{slots}::kSlots": layout.slots_per_bucket, f"{slots}::kBucketBytes": design.line_bytes or 0}
    slot_bytes = layout.word_bytes + layout.value_bytes
    return {
        f"{slots}::kSlots": layout.slots_per_bucket,
        f"{slots}::kBucketBytes": layout.slots_per_bucket * slot_bytes,
        f"{slots}::kDataSlots": design.pairs_per_bucket(layout.slots_per_bucket, slot_bytes),
        f"{slots}::kApart": design.keeps_columns(layout.slots_per_bucket, slot_bytes),
        f"{slots}::kLinked": design.family == "chains",
        f"{table}::kMovesKeys": design.moves_keys,
        f"{table}::kSettles": design.settles,
    }


def values(text: str, expressions: list[str], folder: Path, last_lines: str = "") -> list[str]:
    """What a program prints that starts as ``text``: the value of each expression, and what ``last_lines`` print."""
    prints = "".join(f'  std::printf("%lld\\n", static_cast<long long>({expression}));\n' for expression in expressions)
    source = f"{text}\n#include <cstdio>\nusing namespace warphash;\nint main() {{\n{prints}{last_lines}}}\n"
    machine = ["-mcx16"] if platform.machine() == "x86_64" else []
    program = folder / "values"
    subprocess.run(
        [*compiler(), "-x", "c++", "-std=gnu++20", "-w", *machine, "-o", str(program), "-"],
        input="#include <cstddef>\n" + amalgamate(source, "values.cpp"),
        text=True,
        check=True,
    )
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()


def differences(text: str, expected: dict[str, int], folder: Path) -> dict[str, tuple[int, int]]:
    """The expressions of which Python thinks otherwise: the header's value, and Python's."""
    found = map(int, values(text, list(expected), folder))
    pairs = {name: (value, int(expected[name])) for name, value in zip(expected, found, strict=True)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def designs_of(family: str) -> list[Design]:
    return [design for design in map(registry.get, registry.names()) if design.family == family]


def headers_of(family: str) -> str:
    headers = ["core/cpu/schedule.cuh", ENTRIES[family], *(f"designs/{d.name}.cuh" for d in designs_of(family))]
    return "".join(f'#include "{header}"\n' for header in headers)


def test_structures_and_constants(tmp_path: Path) -> None:
    assert differences('#include "core/abi.cuh"\n', {**structures(), **report(), **constants()}, tmp_path) == {}


def test_tiles_of_a_partition(tmp_path: Path) -> None:
    expected = {
        "kMostParts": policies.MOST_PARTS,
        "kTileThreads": partition._TILE_THREADS,
        "kTileBytes": partition._TILE_BYTES,
    }
    text = '#define WARPHASH_EMULATED 1\n#include "core/gpu/partition.cuh"\n'
    assert differences(text, expected, tmp_path) == {}


@pytest.mark.parametrize("family", ENTRIES)
class TestFamily:
    def test_facts_of_its_designs(self, family: str, tmp_path: Path) -> None:
        expected = of_family(family)
        for design in designs_of(family):
            for layout in design.layouts():
                expected |= of_layout(design, layout)
        assert differences(headers_of(family), expected, tmp_path) == {}

    def test_entries_whose_lanes_refill(self, family: str, tmp_path: Path) -> None:
        design = designs_of(family)[0]
        layout = next(iter(design.layouts()))
        prints = f"""
#undef WARPHASH_ENTRY
#define WARPHASH_ENTRY(NAME, ...) if (kRefills<__VA_ARGS__>) std::puts(#NAME);
WARPHASH_ENTRIES({design.class_name}, {layout.word}, {layout.value}, {layout.slots_per_bucket})
"""
        spec = KernelSpec(design.name, 4, 0, 1, lists=family == "chains", subtables=family == "subtables")
        assert set(values(headers_of(family), [], tmp_path, prints)) == spec.refilling
