"""Compile every kernel for three generations of GPUs, with no GPU, and print what each takes of a multiprocessor.

A spill in find fails: each spilled byte would be written and read once a bucket, in the kernel that matters most.

Usage: python scripts/compile_kernels.py [sm_80 sm_90 sm_100]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from warphash.designs import registry
from warphash.designs.layout import Layout
from warphash.lab.bench.ceilings import CEILING, LOOKUPS
from warphash.lab.figures.allocators import MALLOC
from warphash.lab.figures.boards import BOARDLESS
from warphash.lab.figures.lossy import LOSSY
from warphash.lab.figures.rejected import REJECTED
from warphash.lab.figures.slices import interleaved
from warphash.runtime import source
from warphash.runtime.cuda import nvrtc
from warphash.runtime.engine import KernelSpec
from warphash.settings import get_num_threads
from warphash.storage.quotient.store import more_programs as smaller_tables
from warphash.storage.stores import kernel_spec
from warphash.storage.subtables.coordination import by_warps
from warphash.storage.tickets.lanes import collaborating
from warphash.storage.tickets.sweep import sweeping

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
WIDTHS_BYTES = ((4, 0), (4, 4), (8, 0), (8, 8))  # of key and value; other widths share these slots
OWN_WIDTHS_BYTES = (*WIDTHS_BYTES, (4, 8), (8, 4))  # where each has a word of its own
WIDTHS_IN_PLACE_BYTES = (*WIDTHS_BYTES, (4, 8), (4, 20), (16, 32), (128, 8))  # where each has any width
MUST_NOT_SPILL = "find"
VARIANTS = {"collaborating": " clstash", "warp": " voter"}
"""By a part of the name of their header."""


def widths_for(layout: Layout) -> tuple[tuple[int, int], ...]:
    """Widths of keys and values that stand for all others."""
    if layout.in_place:
        return WIDTHS_IN_PLACE_BYTES
    return OWN_WIDTHS_BYTES if layout.own_widths else WIDTHS_BYTES


def specs() -> Iterator[KernelSpec]:
    """Every design with every slot and every bucket that it can have, then the kernels that no design changes.

    A table's parameters are built into its kernels; these have the defaults.
    """
    designs = [design for design in map(registry.get, registry.names()) if not design.layout.composed]
    for design in designs:
        choices = next((p.choices for p in design.parameters if p.name == "slots_per_bucket"), None)
        for given in [{"slots_per_bucket": n} for n in choices] if choices else [{}]:
            parameters = design.resolve(given)
            for widths in widths_for(design.layout):
                spec = kernel_spec(design, parameters, *widths, "mixer")
                yield spec
                if design.layout.family == "quotient":
                    yield from smaller_tables(spec, parameters)
                if "lanes" in parameters:
                    yield collaborating(spec)
                    yield sweeping(spec)
                if "coordination" in parameters:  # those of "spin" differ only in who leads
                    yield by_warps(kernel_spec(design, {**parameters, "coordination": "voter"}, *widths, "mixer"))
    yield source.ROWS
    yield source.BOUNDED
    yield source.AGGREGATES
    yield source.SCANS
    yield source.SKETCH
    yield source.GROUPS
    yield source.VALUE_LISTS
    yield source.JOINS
    yield source.OWNERS
    yield CEILING
    yield LOOKUPS
    yield source.SLABS
    layouts = [design.layout for design in designs]
    for header in sorted({header for at in layouts for header in (at.partition, at.lookup_partition) if header}):
        yield source.partition(header)
    yield MALLOC
    yield BOARDLESS
    yield LOSSY
    yield REJECTED
    stadium = registry.get("stadium")
    spec = kernel_spec(stadium, stadium.resolve({}), 4, 4, "mixer")
    yield from (interleaved(spec), interleaved(spec, collaborating=True))


def line(title: str, usages: dict[str, nvrtc.Usage]) -> str:
    """What one module's kernels take."""
    cells = []
    for name, usage in sorted(usages.items()):
        spilled = f"(!{usage.spill_bytes} B)" if usage.spill_bytes else ""
        cells.append(f"{name} {usage.registers}{spilled}")
    return f"{title:<42} {'  '.join(cells)}"


def variant(spec: KernelSpec) -> str:
    """Which kernels of a design these are, where they are not the default ones."""
    return next((said for part, said in VARIANTS.items() if part in spec.layout.entries), "")


def compiled(module: tuple[str, KernelSpec]) -> dict[str, nvrtc.Usage]:
    """What the kernels of a module take, on an architecture."""
    arch, spec = module
    return nvrtc.compile(source.translation_unit(spec, "cuda"), arch).usage()


def main(architectures: list[str]) -> int:
    """Compile all, and return 1 if a find kernel spills."""
    started = time.monotonic()
    kernels = 0
    spilling: list[str] = []
    print("registers of each kernel; (!n B) marks n spilled bytes", flush=True)
    modules = [(arch, spec) for arch in architectures for spec in specs()]
    with ThreadPoolExecutor(get_num_threads()) as pool:
        for (arch, spec), usages in zip(modules, pool.map(compiled, modules), strict=True):
            title = f"{arch} {spec.design}{variant(spec)} {spec.key_bytes}+{spec.value_bytes} b={spec.slots_per_bucket}"
            print(line(title, usages), flush=True)
            kernels += len(usages)
            find = usages.get(MUST_NOT_SPILL)
            if find and find.spill_bytes:
                spilling.append(f"{title}: {MUST_NOT_SPILL} spills {find.spill_bytes} bytes")
    version = ".".join(map(str, nvrtc.version()))
    print(
        f"{kernels} kernels in {time.monotonic() - started:.0f} s with NVRTC {version}; {len(spilling)} spill in find"
    )
    print("\n".join(spilling), file=sys.stderr)
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(ARCHITECTURES)))
