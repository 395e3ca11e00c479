"""What one resizing takes: the batch that carries a table's load factor over a bound, of one pair.

Dynamic Hash Tables on GPUs, section 6.3. The table's slots before and after tell how many pairs were moved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from .dynamic import Dynamic
from .dynamic_run import bounded
from .oracle import Oracle
from .runner import Setting

if TYPE_CHECKING:
    from .runner import Lab
    from .workloads import Workload

__all__ = ["Resize", "measure_resize"]


@dataclass(frozen=True)
class Resize:
    """Median seconds of the batch, the pairs that it moved, and wrong answers afterwards."""

    seconds: float
    moved: int
    mismatches: int


def measure_resize(
    lab: Lab, workload: Workload, setting: Setting, shape: Dynamic, *, up: bool, by_insert: bool = False, seed: int = 1
) -> Resize | None:
    """Time the resizing of a table that is as full as ``shape.beta``, or as empty as ``shape.alpha``.

    None where the table was resized before it was so full: then there is no one step to measure.

    Parameters
    ----------
    workload
        Distinct keys.
    by_insert
        Instead of the resizing, time the insert of as many pairs as it moves, into a table that has the others and is
        of the new size: what it takes to rehash with the means of the table itself.
    """
    assert workload.values is not None
    setting = bounded(setting, shape.alpha, shape.beta)
    columns = lab.columns(workload)
    load = shape.beta if up else shape.alpha
    capacity = int(0.9 * len(workload.keys))  # what is left reaches the bound where slots were rounded up
    table: Any = None
    slots = held = 0
    at_once = True
    flags: list[Any] = []

    def part(begin: int, end: int) -> list[Any]:
        return [column[begin:end] for column in columns]

    def fill() -> None:
        nonlocal table, slots, held, at_once
        table = None  # its memory is free before the next one's is taken
        table = lab.empty(workload, setting, load, capacity=capacity, seed=seed)
        slots = table.stats().slots
        held = int(load * slots) if up else math.ceil(load * slots)
        table.insert(*part(0, held), assume_unique=True)
        at_once &= held < len(workload.keys) and table.stats().slots == slots

    def cross() -> None:
        last = held if up else held - 1
        flags.append(
            table.insert(*part(last, last + 1), assume_unique=True) if up else table.erase(columns[0][last : last + 1])
        )

    seconds = lab.timed(cross, fill)
    after = table.stats().slots
    if not at_once or after == slots:
        return None
    left = held + 1 if up else held - 1
    moved = held * (after - slots) // slots if up else held * 2 * (slots - after) // slots
    if by_insert:

        def fill_others() -> None:
            nonlocal table
            table = None
            table = lab.empty(workload, setting, left / after, capacity=left, seed=seed)
            table.insert(*part(moved, left), assume_unique=True)

        flags.clear()
        seconds = lab.timed(lambda: flags.append(table.insert(*part(0, moved), assume_unique=True)), fill_others)
    wrong = sum(int((~lab.back(answer)).sum()) for answer in flags)
    wrong += Oracle(workload.keys[:left], workload.values[:left], lab.argsort).check_items(
        *table.to_arrays(like="numpy")
    )
    return Resize(median(seconds), moved, wrong)
