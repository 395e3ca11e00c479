"""Time one resize: a batch of one pair carries the table's load factor over a bound.

Dynamic Hash Tables on GPUs, section 6.3. The number of moved pairs follows from the table's slots before and after.

In the paper, section 5.1, updates of the other subtables run beside a resize. Here every batch waits until the resize
is done. `measure_wait` has a second thread look up a few keys again and again meanwhile. The longest of these calls,
less a usual call, is the most that a batch beside a resize could gain.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from threading import Event
from typing import TYPE_CHECKING, Any

from ..bench.runner import Setting
from .dynamic import Dynamic
from .dynamic_run import bounded

if TYPE_CHECKING:
    from ..bench.runner import Lab
    from ..data.workloads import Workload

__all__ = ["Resize", "Wait", "measure_resize", "measure_wait"]

_ASKED = 1000
"""Keys of a call beside a resize."""

_USUAL = 50
"""Calls before the resize begins."""


@dataclass(frozen=True)
class Resize:
    """Median seconds of the batch, the number of pairs that it moved, and the wrong answers afterwards."""

    seconds: float
    moved: int
    mismatches: int


@dataclass(frozen=True)
class Wait:
    """Seconds of the longest lookup beside a resize and of a usual one, and the wrong answers of all lookups.

    Attributes
    ----------
    longest_s, usual_s
        Medians over the repetitions. A lookup's time ends when its answers are on the host.
    """

    longest_s: float
    usual_s: float
    mismatches: int


class _Crossing:
    """A table whose load factor is at a bound, and the batch of one pair that carries the load factor over.

    Attributes
    ----------
    columns
        The workload's keys and values on the device.
    held, slots
        Pairs and slots of the table before the batch.
    at_once
        Whether every table reached the bound without a resize. If not, no single step can be measured.
    """

    def __init__(self, lab: Lab, workload: Workload, setting: Setting, shape: Dynamic, up: bool, seed: int) -> None:
        assert workload.values is not None
        self._lab, self._workload, self._up, self._seed = lab, workload, up, seed
        self._setting = bounded(setting, shape.alpha, shape.beta)
        self._load = shape.beta if up else shape.alpha
        self.columns = lab.columns(workload)
        self.table: Any = None
        self.slots = self.held = 0
        self.at_once = True
        self.flags: list[Any] = []

    def part(self, begin: int, end: int) -> list[Any]:
        """Some of the pairs."""
        return [column[begin:end] for column in self.columns]

    def fill(self) -> None:
        """Make the table."""
        workload = self._workload
        capacity = int(0.9 * len(workload.keys))  # slots are rounded up; the other keys still reach the bound
        self.table = None  # free the old table before the new one is allocated
        self.table = self._lab.empty(workload, self._setting, self._load, capacity=capacity, seed=self._seed)
        self.slots = self.table.stats().slots
        exact = self._load * self.slots
        self.held = int(exact) if self._up else math.ceil(exact)
        self.table.insert(*self.part(0, self.held), assume_unique=True)
        self.at_once &= self.held < len(workload.keys) and self.table.stats().slots == self.slots

    def cross(self) -> None:
        """Insert one more pair, or erase the last one."""
        last = self.held if self._up else self.held - 1
        pair = self.part(last, last + 1)
        self.flags.append(self.table.insert(*pair, assume_unique=True) if self._up else self.table.erase(pair[0]))

    @property
    def left(self) -> int:
        """Pairs of the table behind the batch."""
        return self.held + 1 if self._up else self.held - 1

    def refill(self, slots: int, moved: int) -> None:
        """Make a table of another size with all pairs that are left but those that the resize moves."""
        self.table = None
        self.table = self._lab.empty(
            self._workload, self._setting, self.left / slots, capacity=self.left, seed=self._seed
        )
        self.table.insert(*self.part(moved, self.left), assume_unique=True)

    def mismatches(self) -> int:
        """Wrong answers of all batches, and wrong pairs in the table."""
        wrong = sum(int((~self._lab.back(answer)).sum()) for answer in self.flags)
        keys, values = self._workload.keys[: self.left], self._workload.values
        assert values is not None
        return wrong + self._lab.oracle(keys, values[: self.left]).check_items(*self._lab.items(self.table))


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
    at = _Crossing(lab, workload, setting, shape, up, seed)
    seconds = lab.timed(at.cross, at.fill)
    after = at.table.stats().slots
    if not at.at_once or after == at.slots:
        return None
    moved = at.held * (after - at.slots) // at.slots if up else at.held * 2 * (at.slots - after) // at.slots
    if by_insert:
        at.flags.clear()
        seconds = lab.timed(
            lambda: at.flags.append(at.table.insert(*at.part(0, moved), assume_unique=True)),
            lambda: at.refill(after, moved),
        )
    return Resize(median(seconds), moved, at.mismatches())


def measure_wait(
    lab: Lab, workload: Workload, setting: Setting, shape: Dynamic, *, up: bool, seed: int = 1
) -> Wait | None:
    """Measure the longest lookup beside a resize. The arguments are those of `measure_resize`."""
    at = _Crossing(lab, workload, setting, shape, up, seed)
    longest: list[float] = []
    usual: list[float] = []
    wrong = 0
    with ThreadPoolExecutor(1) as pool:
        for _ in range(lab.repetitions + lab.warms_up):
            at.fill()
            before, after, missed = _called_beside(lab, at, pool)
            longest.append(max(after))
            usual.append(median(before))
            wrong += missed
    if not at.at_once or at.table.stats().slots == at.slots:
        return None
    return Wait(median(longest[lab.warms_up :]), median(usual[lab.warms_up :]), wrong + at.mismatches())


def _called_beside(lab: Lab, at: _Crossing, pool: ThreadPoolExecutor) -> tuple[list[float], list[float], int]:
    """Look keys up in another thread while the table is resized.

    Returns
    -------
    tuple
        Seconds of the calls that ended before the resize, and of those that ended behind its begin; and wrong answers.
    """
    asked = at.columns[0][:_ASKED]
    calls: list[tuple[float, float]] = []  # begin and end
    steady, done = Event(), Event()

    def ask() -> int:
        wrong = 0
        last = False
        while not last:
            last = done.is_set()  # read before the call, so that at least one call ends behind the resize's begin
            begin = time.perf_counter()
            found = lab.back(at.table.find(asked)[1])
            calls.append((begin, time.perf_counter()))
            wrong += int((~found).sum())
            if len(calls) == _USUAL:
                steady.set()
        return wrong

    asking = pool.submit(ask)
    while not steady.wait(0.1):
        if asking.done():
            break
    crossed = time.perf_counter()
    try:
        lab.time(at.cross)
    finally:
        done.set()
    wrong = asking.result()
    before = [end - begin for begin, end in calls if end < crossed]
    return before, [end - begin for begin, end in calls if end >= crossed], wrong
