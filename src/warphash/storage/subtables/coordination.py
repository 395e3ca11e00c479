"""Which kernels insert into subtables on a GPU: each lane puts its own key, or a warp puts one key at a time.

With ``"lanes"``, the kernels are those of ``kernels/subtables/insert.cuh``. With ``"voter"`` and ``"spin"``, they are
those of ``kernels/subtables/gpu/warp_insert.cuh`` (Dynamic Hash Tables on GPUs, section 4.2). On a CPU a thread puts
one key at a time, so all three are the same code.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ...designs.layout import Subtables
from ...runtime.engine import Engine, KernelSpec, Program

__all__ = ["by_warps", "program_of"]

_BY_WARPS = Subtables(line_bytes=128, entries="subtables/gpu/warp_entries.cuh")


@cache
def by_warps(spec: KernelSpec) -> KernelSpec:
    """The kernels of tables whose warps put one key at a time.

    Parameters
    ----------
    spec
        The tables. Its constants have the coordination.
    """
    return replace(spec, layout=_BY_WARPS)


def program_of(engine: Engine, spec: KernelSpec, coordination: str) -> Program:
    """The kernels of a table; ``coordination`` is ``"lanes"``, ``"voter"`` or ``"spin"``."""
    return engine.program(spec if coordination == "lanes" or engine.lanes == 1 else by_warps(spec))
