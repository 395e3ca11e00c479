"""What stands in the headers and again in Python: a program compiled from the headers prints the values of theirs."""

from __future__ import annotations

import ctypes
import platform
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from support.engines import missing
from warphash.designs import registry
from warphash.designs.base import Design
from warphash.designs.dynamic_cuckoo import COORDINATIONS
from warphash.designs.layout import LINE_BYTES, Quotients, SlotTypes
from warphash.lab.bench import ceilings
from warphash.runtime import abi, cpu
from warphash.runtime.compiler import compiler
from warphash.runtime.cuda import nvrtc
from warphash.runtime.source import amalgamate, kernel_root
from warphash.storage.batch_order import ordering, parts
from warphash.storage.chains import node_pool
from warphash.storage.quotient import array as quotient
from warphash.storage.quotient import few, passes, route
from warphash.storage.two_level import array as two_level

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

ENTRIES = {
    "buckets": "buckets/cpu/entries.cuh",
    "chains": "chains/entries.cuh",
    "subtables": "subtables/entries.cuh",
    "tickets": "tickets/entries.cuh",
    "two_level": "two_level/cpu/entries.cuh",
    "quotient": "quotient/cpu/entries.cuh",
}
REPORTS = {"CountLine", "SignalLine", "Report", "FewReport"}
"""Structures that kernels write, and are not given."""

KERNELS, LAB = Path(str(kernel_root())), Path(str(kernel_root("warphash.lab")))
HEADERS = {**dict.fromkeys(KERNELS.rglob("abi.cuh"), abi), LAB / "abi.cuh": ceilings}
"""All headers of what kernels are given, and the module that mirrors each."""

INCLUDES = "".join(f'#include "{path.relative_to(LAB if LAB in path.parents else KERNELS)}"\n' for path in HEADERS)

_STRUCT = re.compile(r"^struct (\w+)(?: : (\w+))? \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  u64 (\w+)(?:\[.*\])?;", re.MULTILINE)


def declared(header: Path) -> dict[str, tuple[str, list[str]]]:
    """The structures of a header that kernels are given: name to base, if there is one, and the fields of its own."""
    found = {}
    for name, base, body in _STRUCT.findall(header.read_text(encoding="utf-8")):
        if name not in REPORTS and "using" not in body:
            fields = _FIELD.findall(body)
            assert body.count(";") - sum(line.partition("//")[2].count(";") for line in body.splitlines()) == len(
                fields
            )
            found[name] = base, fields
    return found


def mirrored() -> dict[str, type[ctypes.Structure]]:
    """All structures that kernels are given, by name."""
    return {name: getattr(module, name) for header, module in HEADERS.items() for name in declared(header)}


def structures() -> dict[str, int]:
    """Sizes, and offsets of fields."""
    expected = {}
    for name, structure in mirrored().items():
        expected[f"sizeof({name})"] = ctypes.sizeof(structure)
        for field in fields_of(structure):
            described = getattr(structure, field)
            expected[f"__builtin_offsetof({name}, {field})"] = described.offset
            expected[f"sizeof({name}::{field})"] = described.size
    return expected


def fields_of(structure: type[ctypes.Structure]) -> list[str]:
    """Names of all fields, in order, those of the bases first."""
    own: list[list[str]] = [[name for name, *_ in base.__dict__.get("_fields_", ())] for base in structure.__mro__]
    return [name for names in reversed(own) for name in names]


def report() -> dict[str, int]:
    lengths = {"leftover": abi.LEFTOVER, "winners": abi.WINNERS, "losers": abi.LOSERS, "unused": abi.CROWDS}
    first, counts = abi.Report._fields[:4], abi.Report._fields[4:8]
    words = {"leftover": 0, "winners": 1, "displaced": 3, "unplaced": 4}
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
        "sizeof(FewReport)": 8 * abi.FEW_REPORT_WORDS,
        "offsetof(FewReport, adopted)": 8 * few.ADOPTED,
        "offsetof(FewReport, added)": 8 * (few.ADOPTED - 1),
    }


def constants() -> dict[str, int]:
    return {
        "kMaxHashes": abi.MAX_HASHES,
        "kMostSubtables": abi.MOST_SUBTABLES,
        "kDisplacedCapacity": abi.DISPLACED_CAPACITY,
        **{f"k{op.name.title()}": op for op in abi.Op},
        **{f"k{operation.name.title()}Key": operation for operation in abi.Operation},
        **{f"k{flag.name.title()}": flag for flag in abi.Flag},
        **{f"k{name.title()}": number for number, name in enumerate(COORDINATIONS)},
    }


def of_family(family: str) -> dict[str, int]:
    """Facts of a family that no single design changes."""
    if family == "buckets":
        return {"kMostBuildParts": parts.MOST_BUILD_PARTS}
    if family == "chains":
        return {
            "kSlabBytes": node_pool.SLAB_BYTES,
            "kNoSlab": node_pool.NO_SLAB,
            "kBlockUnits": node_pool.BLOCK_UNITS,
            "kCountLines * kCountWords * sizeof(u32)": node_pool._COUNT_BYTES,
            "sizeof(Pool::bases) / sizeof(u64)": node_pool.MAX_SUPER_BLOCKS,
        }
    if family == "tickets":
        return {"32 >> kBoardWordShift": 1}
    if family == "two_level":
        return {
            "kMostRangeSlots": two_level.MOST_RANGE_SLOTS,
            "kPlacingThreads": two_level._PLACING_THREADS,
            "kNoElement": two_level._NO_ELEMENT,
            "kBucketFailed": two_level._BUCKET_FAILED,
            "sizeof(RangeEntry)": two_level._ENTRY.itemsize,
            "RangeEntry::of({5, 6, 7}).slots_and_seed": entry_words(5, 6, 7)[1],
        }
    if family == "quotient":
        return {
            "kMostRangeBuckets": quotient.MOST_RANGE_BUCKETS,
            "kApplyingThreads": cpu._BLOCK_ELEMENTS,
            "sizeof(Line)": LINE_BYTES,
        }
    return {"kReservedSubtable": abi.RESERVED_SUBTABLE}


def entry_words(address: int, slots: int, seed: int) -> list[int]:
    """The two words of an entry of a directory."""
    entry = np.array([(address, slots, seed)], two_level._ENTRY)
    return [int(word) for word in entry.view(np.uint64)]


def of_slots(design: Design, types: SlotTypes) -> dict[str, int]:
    """Facts of a design over some slots."""
    table = f"WARPHASH_DESIGN({design.class_name}, {types.word}, {types.value}, {types.slots_per_bucket})"
    slots = f"{table}::S"
    if design.layout.family == "subtables":
        return {f"{slots}::kSlots": types.slots_per_bucket, f"{slots}::kBucketBytes": 128}
    if design.layout.family == "tickets":
        slot_bytes = design.layout.slot_bytes(types.word_bytes, types.value_bytes)
        table_of_rows = f"TicketTable t{{}}; t.value_bytes = {types.value_bytes};"
        return {f"[] {{ {table_of_rows} return {slots}::stride(t); }}()": slot_bytes}
    slot_bytes = types.word_bytes + types.value_bytes
    if design.layout.family == "two_level":
        return {f"sizeof({slots}::Item)": slot_bytes}
    if design.layout.family == "quotient":
        fewest_buckets = dict(Quotients().forms(types.word_bytes, types.value_bytes))[types.slots_per_bucket]
        dropped_bits = f"({slots}::kWordBits - {slots}::kRemainderBits)"
        return {
            f"{slots}::kSlots": types.slots_per_bucket,
            f"1ll << {dropped_bits}": fewest_buckets,
            f"sizeof({slots}::Brought)": design.layout.slot_bytes(types.word_bytes, types.value_bytes),
        }
    return {
        f"{slots}::kSlots": types.slots_per_bucket,
        f"{slots}::kBucketBytes": types.slots_per_bucket * slot_bytes,
        f"{slots}::kDataSlots": design.layout.pairs_per_bucket(types.slots_per_bucket, slot_bytes),
        f"{slots}::kApart": design.keeps_columns(types.slots_per_bucket, slot_bytes),
        f"{slots}::kLinked": design.layout.family == "chains",
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
        input="#include <cstddef>\n" + amalgamate(source, "values.cpp", LAB, KERNELS),
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
    return [design for design in map(registry.get, registry.names()) if design.layout.family == family]


def headers_of(family: str) -> str:
    headers = ["core/cpu/schedule.cuh", ENTRIES[family], *(f"designs/{d.name}.cuh" for d in designs_of(family))]
    return "".join(f'#include "{header}"\n' for header in headers)


def test_structures_and_constants(tmp_path: Path) -> None:
    assert differences(INCLUDES, {**structures(), **report(), **constants()}, tmp_path) == {}


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.parent.name)
def test_every_field_is_mirrored(header: Path) -> None:
    structures = declared(header)
    assert structures
    for name, (base, fields) in structures.items():
        mirror = getattr(HEADERS[header], name)
        assert mirror.__base__.__name__ == (base or "Structure")
        assert [field for field, *_ in mirror._fields_] == fields


def test_every_mirror_is_declared() -> None:
    for module in set(HEADERS.values()):
        mirrors = {name for name, value in vars(module).items() if isinstance(value, type(ctypes.Structure))}
        assert mirrors <= set(mirrored())


def test_two_fields_of_a_structure_have_two_names() -> None:
    for structure in mirrored().values():
        names = fields_of(structure)
        assert len(names) == len(set(names))


@pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC is not installed")
def test_nvrtc_lays_out_structures_as_the_host_does() -> None:
    asserted = "".join(f"static_assert({expression} == {value});\n" for expression, value in structures().items())
    nvrtc.compile(amalgamate(f"{INCLUDES}using namespace warphash;\n{asserted}", "layout.cu", LAB, KERNELS), "sm_90")


def test_tiles_of_a_partition(tmp_path: Path) -> None:
    expected = {
        "kMostParts": parts.MOST_PARTS,
        "kTileThreads": ordering.TILE_THREADS,
        "kTileBytes": ordering.TILE_BYTES,
    }
    text = '#define WARPHASH_EMULATED 1\n#include "core/gpu/partition.cuh"\n'
    assert differences(text, expected, tmp_path) == {}


def test_tiles_of_passes(tmp_path: Path) -> None:
    expected = {
        "kPassTileBytes": route.TILE_BYTES,
        "kMostBins": route.MOST_BINS,
        "kMostRanges": route.MOST_RANGES,
        "kMostCountedBins": route.MOST_COUNTED_BINS,
        "kMostCounted": passes.MOST_COUNTED,
        "kRestoringThreads * kRestoringItems": passes.RESTORED,
    }
    text = '#define WARPHASH_EMULATED 1\n#include "quotient/gpu/partition.cuh"\n'
    assert differences(text, expected, tmp_path) == {}


def test_updates_of_few_elements(tmp_path: Path) -> None:
    text = '#define WARPHASH_EMULATED 1\n#include "quotient/gpu/few.cuh"\n'
    assert differences(text, {"kMostFew": route.SPARE_ELEMENTS}, tmp_path) == {}


@pytest.mark.parametrize("family", ENTRIES)
class TestFamily:
    def test_facts_of_its_designs(self, family: str, tmp_path: Path) -> None:
        expected = of_family(family)
        for design in designs_of(family):
            for types in design.slot_types():
                expected |= of_slots(design, types)
        assert differences(headers_of(family), expected, tmp_path) == {}

    def test_entries_whose_lanes_refill(self, family: str, tmp_path: Path) -> None:
        design = designs_of(family)[0]
        types = next(design.slot_types())
        prints = f"""
#undef WARPHASH_ENTRY
#define WARPHASH_ENTRY(NAME, ...) if (kRefills<__VA_ARGS__>) std::puts(#NAME);
WARPHASH_ENTRIES({design.class_name}, {types.word}, {types.value}, {types.slots_per_bucket})
"""
        assert set(values(headers_of(family), [], tmp_path, prints)) == design.layout.refilling
