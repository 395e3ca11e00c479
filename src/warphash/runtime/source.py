"""Kernel specification to one self-contained translation unit: the only place that writes C++.

Our headers include each other and nothing else, so the unit is one string: no include path at NVRTC, and its digest
names everything that the source can change in the binary. ``#line`` markers keep a compiler's complaints in terms of
the header that a reader would open.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from ..designs.base import class_name
from ..designs.layout import SlotTypes
from ..errors import ParameterError
from .engine import KernelSpec

__all__ = [
    "AGGREGATES",
    "BOUNDED",
    "GROUPS",
    "GROUP_RECORDS",
    "JOINS",
    "OWNERS",
    "PLATFORMS",
    "ROWS",
    "SCANS",
    "SKETCH",
    "SLABS",
    "STRINGS",
    "VALUE_LISTS",
    "KernelSource",
    "amalgamate",
    "kernel_names",
    "kernel_root",
    "partition",
    "single_kernel",
    "source_of",
    "translation_unit",
]

PLATFORMS = {"cuda": "WARPHASH_CUDA", "emulated": "WARPHASH_EMULATED"}
"""The macro by which ``platform/platform.cuh`` chooses a platform. Without one, it is the CPU."""

SCHEDULES = {"cpu": "core/cpu/schedule.cuh", "cuda": "core/gpu/schedule.cuh", "emulated": "core/gpu/schedule.cuh"}
"""How elements are spread over threads or lanes. The emulation has the lanes of a GPU."""

_PLATFORM_HEADERS = {"cpu": "platform/host.cuh", "cuda": "platform/cuda.cuh", "emulated": "platform/emulated.cuh"}
"""The headers of which ``platform/platform.cuh`` includes one."""

ROWS = KernelSpec("rows", 0, 0, 0, header="rows/rows.cuh")
"""The kernels that no design changes: widening, narrowing, and wide rows."""

SCANS = KernelSpec("scans", 0, 0, 0, header="rows/gpu/scans.cuh")
"""Sums of counts and flags; for a GPU alone. A CPU has the kernels among `ROWS`."""

SKETCH = KernelSpec("sketch", 0, 0, 0, header="rows/gpu/sketch.cuh")
"""How many rows differ; for a GPU alone. A CPU has the kernel among `ROWS`."""

AGGREGATES = KernelSpec("aggregates", 0, 0, 0, header="aggregates/aggregates.cuh")
"""Repeated keys of an update, combined ahead of a table; for a GPU alone."""

BOUNDED = KernelSpec("bounded", 0, 0, 0, header="bounded/bounded.cuh")
"""Which keys leave a bounded table."""

SLABS = KernelSpec("slabs", 0, 0, 0, header="chains/slabs.cuh")
"""The slab allocator by itself."""

STRINGS = KernelSpec("strings", 0, 0, 0, header="strings/cpu/strings.cuh")
"""Numbers for strings of any length; for a CPU alone."""

GROUPS = KernelSpec("groups", 0, 0, 0, header="groups/gpu/entries.cuh")
"""Dense numbers for the distinct keys of a batch."""

GROUP_RECORDS = KernelSpec("group_records", 0, 0, 0, header="group_records/gpu/entries.cuh")
"""What groups keep of values."""

VALUE_LISTS = KernelSpec("value_lists", 0, 0, 0, header="groups/gpu/list_entries.cuh")
"""The lists of values of keys that repeat, and the order of a batch by the numbers of its keys."""

JOINS = KernelSpec("joins", 0, 0, 0, header="joins/gpu/entries.cuh")
"""The pairs of a join."""

OWNERS = KernelSpec("owners", 0, 0, 0, header="owners/gpu/entries.cuh")
"""A batch in the order of the ranks that own its keys, and answers back."""


@cache
def partition(header: str) -> KernelSpec:
    """The kernels that bring a batch in the order of the parts of a table (`Layout.partition`)."""
    return KernelSpec("partition", 0, 0, 0, header=header)


@dataclass(frozen=True)
class KernelSource:
    """The headers that a set of kernels is compiled from, for one platform.

    Attributes
    ----------
    platform
        ``"cpu"``, ``"cuda"`` or ``"emulated"``: the engine.
    program
        The design, or the name of kernels that no design changes (`KernelSpec.design`).
    package
        The Python package whose folder ``kernels`` is looked in before warphash's own.
    headers
        The headers that the translation unit includes. They include the others.
    """

    platform: str
    program: str
    package: str
    headers: tuple[str, ...]

    def digest(self, *roots: Traversable) -> str:
        """A digest of all code that the headers reach, in 32 hexadecimal digits.

        Comments, spaces and empty lines do not count, nor do the headers of other platforms. A header that is not
        there any more changes the digest. The widths and constants that a kernel is compiled for are no part of it.
        The CPU engine is compiled when the package is built: its digest is that of the headers in the package.

        Parameters
        ----------
        roots
            Folders of the headers; by default the package's own, then warphash's.
        """
        others = {header for name, header in _PLATFORM_HEADERS.items() if name != self.platform}
        text = "".join(f'#include "{header}"\n' for header in self.headers)
        whole = "".join(_expand(text, "", roots or (kernel_root(self.package), kernel_root()), others))
        return hashlib.sha256(_code_of(whole).encode()).hexdigest()[:32]


@cache
def source_of(spec: KernelSpec, platform: str) -> KernelSource:
    """The headers of a specification's kernels, for the engine of ``platform``."""
    return KernelSource(platform, spec.design, spec.package, (SCHEDULES[platform], *_headers_of(spec, platform)))


def _header_on_cpu(spec: KernelSpec) -> str:
    """The header of this name in the folder ``cpu`` of its family, if there is one."""
    header = PurePosixPath(spec.header)
    family = header.parent.parent if header.parent.name == "gpu" else header.parent
    own = str(family / "cpu" / header.name)
    return own if kernel_root(spec.package).joinpath(own).is_file() else spec.header


def _headers_of(spec: KernelSpec, platform: str) -> list[str]:
    """The headers of a unit behind its schedule."""
    on_cpu = platform == "cpu"
    if spec.header:
        return [_header_on_cpu(spec) if on_cpu else spec.header]
    entries = spec.layout.cpu_entries if on_cpu else spec.layout.entries
    return [entries, f"designs/{spec.design}.cuh", *(["buckets/gpu/split.cuh"] if spec.splits and not on_cpu else [])]


_INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
_ONCE = re.compile(r"\s*#\s*pragma\s+once\b")
_LITERAL_OR_COMMENT = re.compile(r""""(?:\\.|[^"\\\n])*"|'(?:\\[^\n]{1,3}|[^'\\\n])'|//[^\n]*|/\*.*?\*/""", re.DOTALL)


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
        ``"cpu"``, ``"cuda"`` or ``"emulated"``. A unit for a CPU exports its entries (``core/cpu/groups.cuh``).
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
    headers = _headers_of(spec, platform)
    if spec.header:
        entries = "WARPHASH_PLAIN_ENTRIES"
    else:
        types = SlotTypes(spec.word_bytes, spec.value_bytes, spec.slots_per_bucket, spec.layout.own_widths)
        design = class_name(spec.design)
        entries = types.entries(design)
        if spec.splits and platform != "cpu":
            entries += f"\nWARPHASH_SPLIT_ENTRIES({design}, {types.word}, {spec.slots_per_bucket})"
    if platform == "cpu":
        headers.append("core/cpu/groups.cuh")
        entries = f"const warphash_cpu::Entry warphash_entries[warphash_cpu::kMostEntries] = {{{entries}}};"
    return _unit(platform, roots, headers, entries, constants)


def single_kernel(unit: str, name: str) -> str:
    """A unit for the platform ``cuda`` without its other kernels."""
    return (
        f"#define WARPHASH_KERNELS WARPHASH_IF_NAMED\n#define WARPHASH_NAMED_{name} ~, WARPHASH_DEFINE_KERNEL\n{unit}"
    )


def kernel_names(unit: str) -> str:
    """A unit for the platform ``cuda`` whose kernels do nothing: it compiles fast, and tells their names."""
    return f"#define WARPHASH_KERNELS(NAME) WARPHASH_DECLARE_KERNEL\n{unit}"


def _unit(
    platform: str,
    roots: list[Traversable],
    headers: list[str],
    last_line: str,
    constants: tuple[tuple[str, int], ...] = (),
) -> str:
    if platform not in SCHEDULES:
        raise ParameterError(f"platform is one of {', '.join(SCHEDULES)}, not {platform!r}")
    defines = [f"#define {PLATFORMS[platform]} 1\n"] if platform in PLATFORMS else []
    if constants:
        defines.append(
            f"#define WARPHASH_CONSTANTS {' '.join(f'known.{name} = {value};' for name, value in constants)}\n"
        )
    text = "".join([*defines, *(f'#include "{header}"\n' for header in (SCHEDULES[platform], *headers)), last_line])
    return amalgamate(text + "\n", "unit.cu", *roots)


def amalgamate(text: str, name: str, *roots: Traversable) -> str:
    """Put every ``#include "..."`` of ``text`` in its place, each header once; ``<...>`` includes stay.

    A header is looked for in each of the ``roots``, by default warphash's own.
    """
    return "".join(_expand(text, name, roots or (kernel_root(),), set()))


def _expand(text: str, name: str, roots: tuple[Traversable, ...], seen: set[str]) -> list[str]:
    pieces = [f'#line 1 "{name}"\n']
    for code, number, header in _parts(text):
        pieces.append(code)
        source = None if header is None or header in seen else _read(roots, header)
        if header in seen:
            pieces.append("\n")
        elif header is not None and source is not None:
            seen.add(header)
            pieces += _expand(source, header, roots, seen)
            pieces.append(f'#line {number + 1} "{name}"\n')
        elif header is not None:
            # Such a line may stand in a branch for another platform: the compiler knows, and complains.
            pieces.append(f'#include "{header}"\n')
    return pieces


@cache
def _parts(text: str) -> tuple[tuple[str, int, str | None], ...]:
    """A header in parts: the code before an include, the number of its line, and the header; None behind the last."""
    parts: list[tuple[str, int, str | None]] = []
    code: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if included := _INCLUDE.match(line):
            parts.append(("".join(code), number, included[1]))
            code = []
        else:
            # The amalgam is one main file, where the pragma means nothing and warns; the blank line keeps the count.
            code.append("\n" if _ONCE.match(line) else line + "\n")
    return (*parts, ("".join(code), 0, None))


def _code_of(text: str) -> str:
    """An amalgam without its comments, its spaces, its empty lines and its ``#line`` markers."""
    bare = _LITERAL_OR_COMMENT.sub(lambda found: " " if found[0].startswith("/") else found[0], text)
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("#line "))


def _read(roots: tuple[Traversable, ...], header: str) -> str | None:
    for root in roots:
        file = root.joinpath(*header.split("/"))
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None
