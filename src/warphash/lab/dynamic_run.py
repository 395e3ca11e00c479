"""The batches of `dynamic`, timed: how long each verb took, what of it was resizing, and how full the table was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from ..designs import registry
from .dynamic import Dynamic, Held, Plan, Step
from .oracle import Oracle
from .runner import Setting

if TYPE_CHECKING:
    from .runner import Lab
    from .workloads import Workload

__all__ = ["VERBS", "Lap", "Run", "bounded", "measure_dynamic"]

VERBS = ("insert", "find", "erase")

_ENOUGH_S = 0.5
"""Of passes, of which the fastest tells: a host has other things to do, too, and short runs notice it."""


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
    first failure of an insert too (S0-31); a table that does must have room for a factor of two, so that where alpha is
    more than half of beta they keep to that half.
    """
    own = {parameter.name for parameter in registry.get(setting.design).parameters}
    if {"alpha", "beta"} <= own:
        return replace(setting, parameters={**setting.parameters, "alpha": alpha, "beta": beta})
    bounds = (min(alpha, beta / 2), beta)
    return replace(setting, parameters={**setting.parameters, "load_bounds": bounds, "attempts": 1})


def measure_dynamic(lab: Lab, workload: Workload, plan: Plan, setting: Setting, shape: Dynamic, seed: int = 1) -> Run:
    """Time a plan; the table begins with room for one batch. One that doubles does so before a batch of too many keys.

    Each step is waited for, and timed alone. Its answers are checked when the pass is over: that drives everything else
    out of the host's caches.
    """
    setting = bounded(setting, shape.alpha, shape.beta)
    passes: list[list[Lap]] = []
    wrong = 0
    if lab.warms_up:
        _pass(lab, workload, plan, setting, shape.beta, seed)
    while not passes or (
        len(passes) < lab.repetitions and sum(lap.seconds for laps in passes for lap in laps) < _ENOUGH_S
    ):
        table, laps, answers = _pass(lab, workload, plan, setting, shape.beta, seed)
        passes.append(laps)
        assert workload.values is not None
        held = Held(plan.distinct, workload.values.dtype)
        for lap, answer in zip(laps, answers, strict=True):
            wrong += held.mismatches(lap.step, tuple(lab.back(column) for column in answer))
            wrong += lap.size != held.size
        wrong += Oracle(*held.items(), lab.argsort).check_items(*table.items())
    return Run(min(passes, key=lambda laps: sum(lap.seconds for lap in laps)), wrong)


def _pass(
    lab: Lab, workload: Workload, plan: Plan, setting: Setting, load_factor: float, seed: int
) -> tuple[Any, list[Lap], list[tuple[Any, ...]]]:
    table = lab.empty(workload, setting, load_factor, capacity=plan.largest, seed=seed)
    doubles = "load_bounds" in setting.parameters
    laps: list[Lap] = []
    answers: list[tuple[Any, ...]] = []

    def call(step: Step) -> None:
        # Linear looks through a full table for each key that it has no slot for, which takes hundreds of times as long.
        while doubles and step.verb == "insert" and len(table) + len(step.ids) > table.stats().slots:
            table.reserve(2 * table.capacity)
        answer = getattr(table, step.verb)(*step.arguments)
        answers.append(answer if isinstance(answer, tuple) else (answer,))

    before = table.stats()
    for step in plan.steps:
        seconds = lab.time(partial(call, step))
        after = table.stats()
        resized = (after.rebuilds, after.resizes) != (before.rebuilds, before.resizes)
        laps.append(Lap(step, seconds, resized, after.size, after.load_factor, after.nbytes))
        before = after
    return table, laps, answers
