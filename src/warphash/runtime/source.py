"""Kernel specification to one self-contained translation unit: the only place that writes C++.

Our headers include each other and nothing else, so the unit is one string: no include path at NVRTC, and its digest
names everything that the source can change in the binary. ``#line`` markers keep a compiler's complaints in terms of
the header that a reader would open.
"""

from __future__ import annotations

import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from ..errors import ParameterError
from .engine import KernelSpec

__all__ = [
    "CEILING",
    "MALLOC",
    "PARTITION",
    "PLATFORMS",
    "ROWS",
    "SLABS",
    "amalgamate",
    "class_name",
    "kernel_root",
    "translation_unit",
]

PLATFORMS = {"cuda": "WARPHASH_CUDA", "emulated": "WARPHASH_EMULATED"}
"""The macro by which ``entries.cuh`` chooses a platform header."""

ROWS = KernelSpec("rows", 0, 0, 0)
"""The kernels that no design changes: widening, narrowing, and wide rows."""

CEILING = KernelSpec("ceiling", 0, 0, 0)
"""Random reads with no table around them: what `lab.ceilings` times."""

SLABS = KernelSpec("slabs", 0, 0, 0)
"""The slab allocator by itself."""

PARTITION = KernelSpec("partition", 0, 0, 0)
"""A batch brought in the order of the parts of a table."""

MALLOC = KernelSpec("malloc", 0, 0, 0)
"""The platform's own heap: what `lab.allocators` times it against. On a GPU see `Engine.reserve_heap`."""

_INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
_ONCE = re.compile(r"\s*#\s*pragma\s+once\b")


def kernel_root() -> Traversable:
    """The folder of the headers, wherever the package is installed."""
    return resources.files("warphash") / "kernels"


def class_name(design: str) -> str:
    """``"bucketed_cuckoo"`` -> ``"BucketedCuckoo"``: the class that a design's header defines."""
    return "".join(part.capitalize() for part in design.split("_"))


def translation_unit(spec: KernelSpec, platform: str, root: Traversable | None = None) -> str:
    """The whole source of one design's kernels for one slot layout.

    Parameters
    ----------
    spec
        Design and layout, or `ROWS`, `CEILING`, `SLABS`, `PARTITION` or `MALLOC`.
    platform
        ``"cuda"`` or ``"emulated"``.
    root
        Folder of the headers; the package's own by default.

    Raises
    ------
    ParameterError
        For an unknown platform.
    """
    if spec in (ROWS, CEILING, SLABS, PARTITION, MALLOC):
        return _unit(platform, root, [f"{spec.design}.cuh"], "WARPHASH_PLAIN_ENTRIES")
    # The emulation runs one binary for all parameters: it is compiled by a slower compiler, and timed by nobody.
    constants = spec.constants if platform == "cuda" else ()
    word = f"warphash::u{8 * spec.word_bytes}" if spec.word_bytes <= 8 else f"warphash::Wide<{spec.word_bytes}>"
    if spec.subtables:
        value = "warphash::kRow" if spec.value_is_row else str(spec.value_bytes)
        entries = f"WARPHASH_SUBTABLE_ENTRIES({class_name(spec.design)}, {word}, {value})"
        return _unit(platform, root, ["resize.cuh", f"designs/{spec.design}.cuh"], entries, constants)
    macro = "WARPHASH_LIST_ENTRIES" if spec.lists else "WARPHASH_CHOICE_ENTRIES"
    valued = "true" if spec.value_bytes else "false"
    design, slots = class_name(spec.design), spec.slots_per_bucket
    headers, entries = ["entries.cuh", f"designs/{spec.design}.cuh"], f"{macro}({design}, {word}, {valued}, {slots})"
    if spec.splits:
        headers, entries = [*headers, "split.cuh"], f"{entries}\nWARPHASH_SPLIT_ENTRIES({design}, {word}, {slots})"
    return _unit(platform, root, headers, entries, constants)


def _unit(
    platform: str,
    root: Traversable | None,
    headers: list[str],
    last_line: str,
    constants: tuple[tuple[str, int], ...] = (),
) -> str:
    if platform not in PLATFORMS:
        raise ParameterError(f"platform is one of {', '.join(PLATFORMS)}, not {platform!r}")
    defines = [f"#define {PLATFORMS[platform]} 1\n"]
    if constants:
        defines.append(
            f"#define WARPHASH_CONSTANTS {' '.join(f'known.{name} = {value};' for name, value in constants)}\n"
        )
    text = "".join([*defines, *(f'#include "{header}"\n' for header in headers), last_line])
    return amalgamate(text + "\n", "unit.cu", root)


def amalgamate(text: str, name: str, root: Traversable | None = None) -> str:
    """Put every ``#include "..."`` of ``text`` in its place, each header once; ``<...>`` includes stay.

    A header is looked for beside the one that names it, then at ``root``.
    """
    return "".join(_expand(text, PurePosixPath(name), root or kernel_root(), set()))


def _expand(text: str, name: PurePosixPath, root: Traversable, seen: set[PurePosixPath]) -> list[str]:
    pieces = [f'#line 1 "{name}"\n']
    for number, line in enumerate(text.splitlines(), start=1):
        included = _INCLUDE.match(line)
        header = _locate(included[1], name, root) if included else None
        if header is None:
            # The amalgam is one main file, where the pragma means nothing and warns; the blank line keeps the count.
            # A header that is not there may stand in a branch for another platform: the compiler knows, and complains.
            pieces.append("\n" if _ONCE.match(line) else line + "\n")
            continue
        if header in seen:
            pieces.append("\n")
            continue
        seen.add(header)
        pieces += _expand(_read(root, header), header, root, seen)
        pieces.append(f'#line {number + 1} "{name}"\n')
    return pieces


def _locate(included: str, includer: PurePosixPath, root: Traversable) -> PurePosixPath | None:
    for candidate in (includer.parent / included, PurePosixPath(included)):
        parts: list[str] = []
        for part in candidate.parts:
            if part == ".." and parts:
                parts.pop()
            else:
                parts.append(part)
        if parts and root.joinpath(*parts).is_file():
            return PurePosixPath(*parts)
    return None


def _read(root: Traversable, header: PurePosixPath) -> str:
    return root.joinpath(*header.parts).read_text(encoding="utf-8")
