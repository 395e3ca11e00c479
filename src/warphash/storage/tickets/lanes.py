"""Which kernels a table with a ticket board runs on a GPU: one lane for each element, or lanes that collaborate.

Stash gives each element of a batch a lane of its own. In clStash the lanes of a warp share out the elements that are
not done (``kernels/core/gpu/collaborating.cuh``). The hybrid inserts by Stash below a threshold of the load factor, and
by clStash above it; all else it does by Stash (Stadium Hashing, section III-C, Hybrid for Batched Insertions). On a CPU
both are the same code.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

from ...designs.layout import Tickets
from ...runtime.engine import Engine, KernelSpec, Program

__all__ = ["DEFAULT_THRESHOLD", "Lanes", "collaborating", "lanes_of"]

DEFAULT_THRESHOLD = 0.5
"""Load factor from which the hybrid inserts by clStash until somebody measures a better one (`threshold.calibrate`)."""

MOST_ELEMENTS = 1 << 62
"""More than a batch has."""

_COLLABORATING = Tickets(
    "tickets/gpu/collaborating_entries.cuh", frozenset(["combine", "erase", "find", "place", "relocate", "settle"])
)


class Lanes(NamedTuple):
    """The kernels of a table.

    Attributes
    ----------
    below, above
        Those of inserts, below a load factor of ``threshold`` and from there on. All else is done by the first.
    """

    below: Program
    above: Program
    threshold: float

    def elements_below(self, size: int, slots: int, new_share: float) -> int:
        """How many elements a table with ``size`` keys takes before it reaches the threshold.

        ``new_share`` of them bring new keys.
        """
        keys = max(0, int(self.threshold * slots) - size)
        return int(min(keys / new_share, MOST_ELEMENTS)) if new_share else MOST_ELEMENTS if keys else 0

    def for_keys(self, size: int, slots: int) -> Program:
        """The kernels that put ``size`` keys into an empty table."""
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
