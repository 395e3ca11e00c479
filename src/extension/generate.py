"""Write what the extension compiles, from the registry of the designs; CMake runs this with no package installed.

Usage: generate.py OUTPUT_FOLDER

For each design, and for each set of kernels that no design changes, ``NAME.cpp`` lists the entry points of the layouts
that are compiled ahead of time. ``units.inc`` has a ``WARPHASH_UNIT(NAME)`` for each, ``wide_units.inc`` for those of
`WIDE`, ``narrow_units.inc`` for the others, and ``units.cmake`` has their names.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "warphash"
PLAIN_HEADERS = {
    "rows": "rows/cpu/rows.cuh",
    "bounded": "bounded/bounded.cuh",
    "slabs": "chains/slabs.cuh",
    "strings": "strings/cpu/strings.cuh",
    "groups": "groups/cpu/entries.cuh",
    "group_records": "group_records/cpu/entries.cuh",
    "value_lists": "groups/cpu/list_entries.cuh",
    "joins": "joins/cpu/entries.cuh",
    "owners": "owners/cpu/entries.cuh",
}
"""Of the kernels that no design changes. Those of the laboratory are compiled when a benchmark asks for them
(``runtime/cpu.py``)."""

WIDE = ("quotient_cuckoo",)
"""Units that AVX-512 makes faster (docs/performance/cpu.md)."""

UNIT = """// Written by src/extension/generate.py.
#include "core/cpu/groups.cuh"
#include "core/cpu/schedule.cuh"
{includes}
namespace {{

const warphash_cpu::Group kGroups[] = {{
{groups}
}};

}}  // namespace

warphash_cpu::Groups WARPHASH_GROUPS() {{ return {{kGroups, sizeof(kGroups) / sizeof(kGroups[0])}}; }}
"""


def registry() -> types.ModuleType:
    """Import the registry without the package around it, which needs NumPy and the extension itself."""
    package = types.ModuleType("warphash")
    package.__path__ = [str(PACKAGE)]
    sys.modules["warphash"] = package
    return import_module("warphash.designs.registry")


def units() -> Iterator[tuple[str, str]]:
    """Name and source of each unit: the longest compilations come first."""
    designs = registry()
    made = [design for design in map(designs.get, designs.names()) if not design.layout.composed]
    for design in sorted(made, key=lambda design: (not design.layout.keys_apart, -len(list(design.compiled())))):
        groups = []
        for slot in design.compiled():
            value_bytes = -1 if slot.value_is_row else slot.value_bytes
            entries = slot.entries(design.class_name)
            groups.append(f"    {{{slot.word_bytes}, {value_bytes}, {slot.slots_per_bucket}, {{{entries}}}}},")
        yield design.name, unit([f"designs/{design.name}.cuh", design.layout.cpu_entries], groups)
    for name, header in PLAIN_HEADERS.items():
        yield name, unit([header], ["    {0, 0, 0, {WARPHASH_PLAIN_ENTRIES}},"])


def unit(headers: list[str], groups: list[str]) -> str:
    """Return the source that lists ``groups``."""
    includes = "".join(f'#include "{header}"\n' for header in headers)
    return UNIT.format(includes=includes, groups="\n".join(groups))


def main(folder: Path) -> None:
    """Write the files; those that would not change are left alone, so that nothing is compiled again."""
    sources = dict(units())
    files = {f"{name}.cpp": source for name, source in sources.items()}
    narrow = [name for name in sources if name not in WIDE]
    for file, names in (("units.inc", sources), ("wide_units.inc", WIDE), ("narrow_units.inc", narrow)):
        files[file] = "".join(f"WARPHASH_UNIT({name})\n" for name in names)
    files["units.cmake"] = f"set(UNITS {' '.join(sources)})\nset(WIDE_UNITS {' '.join(WIDE)})\n"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
