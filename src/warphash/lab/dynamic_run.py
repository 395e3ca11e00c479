"""The batches of `dynamic`, timed: how long each verb took, what of it was resizing, and how full the table was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from ..designs import registry
from ..table.stats import Stats
from .dynamic import Dynamic, Held, Plan, Step
from .oracle import Oracle
from .runner import Setting

if TYPE_CHECKING:
    from .runner import Lab
    from .workloads import Workload

__all__ = ["VERBS", "Lap", "Run", "bounded", "measure_dynamic"]

VERBS = ("insert", "find", "erase")

_MOST_PASSES, _ENOUGH_S = 2, 0.5
"""For each repetition that is asked for, until so much time was spent. The fastest pass tells: a host has other things
to do, too, and short runs notice it."""


@dataclass(frozen=True)
class Lap:
    """One step: its time, whether the table was resized in it, and what the table had behind it."""

    step: Step
    seconds: float
    resized: bool
    size: int
    load_factor: float
    nbytes: int


@dataclass(frozen=True)
class Run:
    """The fastest pass over a plan, and the wrong answers of all timed ones."""

    laps: list[Lap]
    mismatches: int

    @property
    def seconds(self) -> float:
        """Of all steps."""
        return sum(lap.seconds for lap in self.laps)

    def of(self, verb: str) -> list[Lap]:
        """The steps of one verb."""
        return [lap for lap in self.laps if lap.step.verb == verb]

    def resizing(self, verb: str) -> float:
        """Seconds of a verb that went into resizing, by estimate.

        A verb that resizes does so inside its call. Of each step in which the table was resized, what is beyond the
        median of those in which it was not, of the same number of elements, counts as resizing.
        """
        found = 0.0
        for again in (False, True):
            its = [lap for lap in self.of(verb) if lap.step.again == again]
            quiet = [lap.seconds for lap in its if not lap.resized]
            usual = median(quiet) if quiet else min((lap.seconds for lap in its), default=0)
            found += sum(max(0.0, lap.seconds - usual) for lap in its if lap.resized)
        return found

    def batches(self) -> list[list[Lap]]:
        """The steps of each batch."""
        found: dict[int, list[Lap]] = {}
        for lap in self.laps:
            found.setdefault(lap.step.batch, []).append(lap)
        return list(found.values())

    def rate_per_s(self, verb: str | None = None) -> float:
        """Elements of a verb, or of all, per second of theirs."""
        laps = self.laps if verb is None else self.of(verb)
        return sum(len(lap.step.ids) for lap in laps) / sum(lap.seconds for lap in laps)


def bounded(setting: Setting, alpha: float, beta: float) -> Setting:
    """A setting with which a table keeps its load factor in [alpha, beta].

    Designs that do so by themselves have the two as parameters. The others double or halve all their memory, at the
    first failure of an insert too; a table that does must have room for a factor of two, so that where alpha is
    more than half of beta they keep to that half.
    """
    own = {parameter.name for parameter in registry.get(setting.design).parameters}
    if {"alpha", "beta"} <= own:
        return replace(setting, parameters={**setting.parameters, "alpha": alpha, "beta": beta})
    bounds = (min(alpha, beta / 2), beta)
    return replace(setting, parameters={**setting.parameters, "load_bounds": bounds, "attempts": 1})


def measure_dynamic(lab: Lab, workload: Workload, plan: Plan, setting: Setting, shape: Dynamic, seed: int = 1) -> Run:
    """Time a plan; the table begins with room for one batch.

    Nobody waits between the steps of a timed pass. What the table has behind each of them is told by a pass before,
    which waits, and resizes in the same steps. Answers are checked when a pass is over: that drives everything else out
    of the host's caches.
    """
    setting = bounded(setting, shape.alpha, shape.beta)
    assert workload.values is not None
    value = workload.values.dtype

    def begin() -> _Pass:
        return _Pass(lab.empty(workload, setting, shape.beta, capacity=plan.largest, seed=seed))

    def mismatches(done: _Pass, sizes: list[int], whole: bool) -> int:
        """Wrong answers, and sizes behind the steps; ``whole``: and pairs in the end."""
        held = Held(plan.distinct, value, lab.arrays)
        wrong = 0
        for number, (step, answer) in enumerate(zip(plan.steps, done.answers, strict=True)):
            wrong += held.mismatches(step, answer if lab.arrays is not np else tuple(map(lab.back, answer)))
            wrong += number < len(sizes) and sizes[number] != held.size
        wrong += len(done.table) != held.size
        if not whole:
            return wrong
        keys, values = map(lab.back, held.to_arrays())
        return wrong + Oracle(keys, values, lab.argsort).check_items(*done.table.to_arrays(like="numpy"))

    first, behind = begin(), []
    before = first.table.stats()
    for step in plan.steps:
        first.call(step)
        after = first.table.stats()
        behind.append((_resizes(after) != _resizes(before), after.size, after.load_factor, after.nbytes))
        before = after
    wrong = mismatches(first, [size for _, size, _, _ in behind], whole=False)
    passes: list[list[float]] = []
    enough = False
    while not enough:
        timed = begin()
        ends = lab.laps(partial(timed.call, step) for step in plan.steps)
        passes.append([end - start for start, end in pairwise([0.0, *ends])])
        enough = len(passes) >= _MOST_PASSES * lab.repetitions or sum(map(sum, passes)) >= _ENOUGH_S
        wrong += mismatches(timed, [], whole=enough)
    best = min(passes, key=sum)
    return Run([Lap(*of_step) for of_step in zip(plan.steps, best, *zip(*behind, strict=True), strict=True)], wrong)


def _resizes(stats: Stats) -> tuple[int, int | None]:
    return stats.rebuilds, stats.resizes


class _Pass:
    """One table, and what it answered to each step."""

    def __init__(self, table: Any) -> None:
        self.table, self.answers = table, list[tuple[Any, ...]]()

    def call(self, step: Step) -> None:
        """Run a step."""
        answer = getattr(self.table, step.verb)(*step.arguments)
        self.answers.append(answer if isinstance(answer, tuple) else (answer,))
