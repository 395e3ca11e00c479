"""Time one resize: a batch of one pair carries the table's load factor over a bound.

Dynamic Hash Tables on GPUs, section 6.3. The number of moved pairs follows from the table's slots before and after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from ..bench.runner import Setting
from .dynamic import Dynamic
from .dynamic_run import bounded

if TYPE_CHECKING:
    from ..bench.runner import Lab
    from ..data.workloads import Workload

__all__ = ["Resize", "measure_resize"]


@dataclass(frozen=True)
class Resize:
    """Median seconds of the batch, the number of pairs that it moved, and the wrong answers afterwards."""

    seconds: float
    moved: int
    mismatches: int


def measure_resize(
    lab: Lab, workload: Workload, setting: Setting, shape: Dynamic, *, up: bool, by_insert: bool = False, seed: int = 1
) -> Resize | None:
    """Time the resize of a table whose load factor is at ``shape.beta`` (``up``) or at ``shape.alpha``.

    Return None if the table is resized before it reaches the bound: then no single step can be measured.

    Parameters
    ----------
    workload
        Distinct keys.
    by_insert
        Do not time the resize, but an insert of as many pairs as the resize moves, into a table of the new size that
        holds the other pairs. This is the cost of rehashing with ordinary inserts.
    """
    assert workload.values is not None
    setting = bounded(setting, shape.alpha, shape.beta)
    columns = lab.columns(workload)
    load = shape.beta if up else shape.alpha
    capacity = int(0.9 * len(workload.keys))  # slots are rounded up; the other keys still reach the bound
    table: Any = None
    slots = held = 0
    at_once = True
    flags: list[Any] = []

    def part(begin: int, end: int) -> list[Any]:
        return [column[begin:end] for column in columns]

    def fill() -> None:
        nonlocal table, slots, held, at_once
        table = None  # free the old table before the new one is allocated
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
    wrong += lab.oracle(workload.keys[:left], workload.values[:left]).check_items(*lab.items(table))
    return Resize(median(seconds), moved, wrong)
