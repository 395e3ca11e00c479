"""What stands in the headers and again in Python: a program compiled from the headers prints the values of theirs."""

from __future__ import annotations

import ctypes
import platform
import runpy
import subprocess
from pathlib import Path
from typing import Any

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
from warphash.storage.groups import order
from warphash.storage.hash_constants import HASHES
from warphash.storage.quotient import array as quotient
from warphash.storage.quotient import passes, route
from warphash.storage.scratch import Report
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
KERNELS, LAB = Path(str(kernel_root())), Path(str(kernel_root("warphash.lab")))
SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "generate_abi.py"))
HEADERS: dict[str, list[Any]] = SCRIPT["declarations"](KERNELS, LAB)
"""What all headers of what kernels are given declare, as the script reads them."""

INCLUDES = "".join(f'#include "{header}"\n' for header in HEADERS)


def declared(kind: str) -> list[Any]:
    """The declarations of a kind that Python has, too: ``Constant``, ``Enum`` or ``Structure``."""
    return [
        one for of in HEADERS.values() for one in of if isinstance(one, SCRIPT[kind]) and SCRIPT["is_mirrored"](one)
    ]


def mirrored() -> dict[str, type[ctypes.Structure]]:
    """All structures that kernels are given, by name. The laboratory's are no part of ``abi.py``."""
    return {one.name: getattr(abi, one.name, None) or getattr(ceilings, one.name) for one in declared("Structure")}


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
    first, counts = Report._fields[:4], Report._fields[4:8]
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
        "sizeof(AdoptedPairs)": 8 * abi.ADOPTED_WORDS,
        "offsetof(AdoptedPairs, pairs)": 0,
    }


def constants() -> dict[str, int]:
    return {
        **{constant.name: getattr(abi, SCRIPT["upper"](constant.name)) for constant in declared("Constant")},
        **{
            header_name: getattr(abi, enum.name)[name]
            for enum in declared("Enum")
            for header_name, name in zip(enum.members, SCRIPT["members_of"](enum), strict=True)
        },
        **{f"k{name.title()}": number for number, name in enumerate(COORDINATIONS)},
        **{f"k{name.title()}": number for number, name in enumerate(HASHES)},
        "kUnsigned": abi.kind_of(np.dtype("u1")) & 0xFF,
        "kSigned": abi.kind_of(np.dtype("i1")) & 0xFF,
        "kFloat": abi.kind_of(np.dtype("f4")) & 0xFF,
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
        "kMostCountedBins": route.MOST_COUNTED_BINS[4],
        "kMostNarrowBins": route.MOST_COUNTED_BINS[8],
        "kMostCounted": passes.MOST_COUNTED,
        "kRestoringThreads * kRestoringItems": passes.RESTORED,
    }
    text = '#define WARPHASH_EMULATED 1\n#include "quotient/gpu/partition.cuh"\n'
    assert differences(text, expected, tmp_path) == {}


def test_orders_of_tiles(tmp_path: Path) -> None:
    text = '#define WARPHASH_EMULATED 1\n#include "groups/gpu/order.cuh"\n'
    expected = {"kOrderTile": order.ORDER_TILE, "kDigitBits": order.DIGIT_BITS}
    assert differences(text, expected, tmp_path) == {}


def test_updates_of_few_elements(tmp_path: Path) -> None:
    text = '#define WARPHASH_EMULATED 1\n#include "quotient/gpu/few.cuh"\n'
    assert differences(text, {"kMostFew": route.SPARE_ELEMENTS}, tmp_path) == {}


def test_comparisons(tmp_path: Path) -> None:
    names = {comparison: "k" + comparison.name.title().replace("_", "") for comparison in abi.Comparison}
    text = '#define WARPHASH_EMULATED 1\n#include "bounded/bounded.cuh"\n'
    assert differences(text, {name: comparison for comparison, name in names.items()}, tmp_path) == {}


def test_lists_of_ranges(tmp_path: Path) -> None:
    text = '#define WARPHASH_EMULATED 1\n#include "quotient/crowds.cuh"\n'
    assert differences(text, {"2 * sizeof(u32) + sizeof(Crowd)": abi.RANGE_LISTS_BYTES}, tmp_path) == {}


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
