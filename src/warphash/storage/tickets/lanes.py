"""Which kernels a table with a ticket board runs on a GPU: one lane for each element, or lanes that collaborate.

Stash gives each element of a batch a lane of its own. In clStash the lanes of a warp share out the elements that are
not done (``kernels/core/gpu/collaborating.cuh``). The hybrid takes Stash below a threshold of the load factor, and
clStash above it (Stadium Hashing, section III-C). On a CPU both are the same code.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

from ...designs.layout import Tickets
from ...runtime.engine import Engine, KernelSpec, Program

__all__ = ["DEFAULT_THRESHOLD", "Lanes", "collaborating", "lanes_of"]

DEFAULT_THRESHOLD = 0.5
"""Load factor from which the hybrid takes clStash on a device where nobody has measured (`threshold.measure`)."""

_COLLABORATING = Tickets(collaborating=True)


class Lanes(NamedTuple):
    """The kernels of a table, by its load factor."""

    below: Program
    above: Program
    threshold: float

    def elements_below(self, size: int, slots: int) -> int:
        """How many more keys a table takes before it reaches the threshold."""
        return max(0, int(self.threshold * slots) - size)

    def program(self, size: int, slots: int) -> Program:
        """The kernels for a table with ``size`` keys."""
        return self.below if size < self.threshold * slots else self.above


@cache
def collaborating(spec: KernelSpec) -> KernelSpec:
    """The kernels of clStash for the tables of ``spec``."""
    return replace(spec, layout=_COLLABORATING)


def lanes_of(engine: Engine, spec: KernelSpec, lanes: str) -> Lanes:
    """The kernels of a table; ``lanes`` is ``"hybrid"``, ``"stash"`` or ``"clstash"``."""
    if lanes == "stash" or engine.lanes == 1:  # one lane has nobody to share with
        program = engine.program(spec)
        return Lanes(program, program, 0.0)
    above = engine.program(collaborating(spec))
    if lanes == "clstash":
        return Lanes(above, above, 0.0)
    measured = engine.recall(collaborating(spec))
    return Lanes(engine.program(spec), above, DEFAULT_THRESHOLD if measured is None else measured)
