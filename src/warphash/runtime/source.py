"""Kernel specification to one self-contained translation unit: the only place that writes C++.

Our headers include each other and nothing else, so the unit is one string: no include path at NVRTC, and its digest
names everything that the source can change in the binary. ``#line`` markers keep a compiler's complaints in terms of
the header that a reader would open.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from ..designs.base import class_name
from ..designs.layout import SlotTypes
from ..errors import ParameterError
from .engine import KernelSpec

__all__ = [
    "BOUNDED",
    "PLATFORMS",
    "ROWS",
    "SLABS",
    "amalgamate",
    "kernel_root",
    "partition",
    "translation_unit",
]

PLATFORMS = {"cuda": "WARPHASH_CUDA", "emulated": "WARPHASH_EMULATED"}
"""The macro by which ``platform/platform.cuh`` chooses a platform."""

SCHEDULE = "core/gpu/schedule.cuh"
"""How elements are spread over lanes. The emulation has those of a GPU."""

ROWS = KernelSpec("rows", 0, 0, 0, header="rows/rows.cuh")
"""The kernels that no design changes: widening, narrowing, and wide rows."""

BOUNDED = KernelSpec("bounded", 0, 0, 0, header="bounded/bounded.cuh")
"""Which keys leave a bounded table."""

SLABS = KernelSpec("slabs", 0, 0, 0, header="chains/slabs.cuh")
"""The slab allocator by itself."""


@cache
def partition(header: str) -> KernelSpec:
    """The kernels that bring a batch in the order of the parts of a table (`Layout.partition`)."""
    return KernelSpec("partition", 0, 0, 0, header=header)


_INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
_ONCE = re.compile(r"\s*#\s*pragma\s+once\b")


def kernel_root(package: str = "warphash") -> Traversable:
    """The folder of a package's headers, wherever the package is installed."""
    return resources.files(package) / "kernels"


def translation_unit(spec: KernelSpec, platform: str, root: Traversable | None = None) -> str:
    """The whole source of one design's kernels for one slot layout.

    Parameters
    ----------
    spec
        Design and layout, or kernels that no design changes.
    platform
        ``"cuda"`` or ``"emulated"``.
    root
        Folder of the headers; by default the spec's package's own, then warphash's.

    Raises
    ------
    ParameterError
        For an unknown platform.
    """
    roots = [root] if root else [kernel_root(spec.package), kernel_root()]
    # The emulation runs one binary for all parameters: it is compiled by a slower compiler, and timed by nobody.
    constants = spec.constants if platform == "cuda" else ()
    if spec.header:
        return _unit(platform, roots, [spec.header], "WARPHASH_PLAIN_ENTRIES", constants)
    types = SlotTypes(spec.word_bytes, spec.value_bytes, spec.slots_per_bucket, spec.in_place)
    design, slots = class_name(spec.design), spec.slots_per_bucket
    headers = [spec.layout.entries, f"designs/{spec.design}.cuh"]
    entries = f"WARPHASH_ENTRIES({design}, {types.word}, {types.value}, {slots})"
    if spec.splits:
        headers.append("buckets/gpu/split.cuh")
        entries += f"\nWARPHASH_SPLIT_ENTRIES({design}, {types.word}, {slots})"
    return _unit(platform, roots, headers, entries, constants)


def _unit(
    platform: str,
    roots: list[Traversable],
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
    text = "".join([*defines, *(f'#include "{header}"\n' for header in (SCHEDULE, *headers)), last_line])
    return amalgamate(text + "\n", "unit.cu", *roots)


def amalgamate(text: str, name: str, *roots: Traversable) -> str:
    """Put every ``#include "..."`` of ``text`` in its place, each header once; ``<...>`` includes stay.

    A header is looked for in each of the ``roots``, by default warphash's own.
    """
    return "".join(_expand(text, name, roots or (kernel_root(),), set()))


def _expand(text: str, name: str, roots: tuple[Traversable, ...], seen: set[str]) -> list[str]:
    pieces = [f'#line 1 "{name}"\n']
    for number, line in enumerate(text.splitlines(), start=1):
        included = _INCLUDE.match(line)
        source = _read(roots, included[1]) if included else None
        if included is None or source is None:
            # The amalgam is one main file, where the pragma means nothing and warns; the blank line keeps the count.
            # A header that is not there may stand in a branch for another platform: the compiler knows, and complains.
            pieces.append("\n" if _ONCE.match(line) else line + "\n")
            continue
        header = included[1]
        if header in seen:
            pieces.append("\n")
            continue
        seen.add(header)
        pieces += _expand(source, header, roots, seen)
        pieces.append(f'#line {number + 1} "{name}"\n')
    return pieces


def _read(roots: tuple[Traversable, ...], header: str) -> str | None:
    for root in roots:
        file = root.joinpath(*header.split("/"))
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None
