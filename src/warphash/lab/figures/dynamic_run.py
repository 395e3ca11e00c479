"""Time the batches of `dynamic`: time of each verb, share of resizing in that time, and load factor after each step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...designs import registry
from ...storage import resize_log
from ..bench import turns
from ..bench.runner import Setting
from .dynamic import CallSequence, Dynamic, Held, Step

if TYPE_CHECKING:
    from ..bench.runner import Lab
    from ..data.workloads import Workload

__all__ = ["VERBS", "Lap", "Run", "bounded", "measure_dynamic"]

VERBS = ("insert", "find", "erase")

_MOST_PASSES, _ENOUGH_S = 3, 0.25
"""Limits: passes, and seconds after which no further pass begins. The fastest pass counts, because other work of the
host disturbs short runs. To check the answers of a pass takes longer than the pass."""


@dataclass(frozen=True)
class Lap:
    """One timed step: its seconds, those of resizes among them, and the table's size and memory after the step."""

    step: Step
    seconds: float
    resizing_s: float
    size: int
    load_factor: float
    nbytes: int


@dataclass(frozen=True)
class Run:
    """The fastest pass over a sequence of calls, and the wrong answers of all passes."""

    laps: list[Lap]
    mismatches: int

    @property
    def seconds(self) -> float:
        """Seconds of all steps."""
        return sum(lap.seconds for lap in self.laps)

    def of(self, verb: str) -> list[Lap]:
        """The steps of one verb."""
        return [lap for lap in self.laps if lap.step.verb == verb]

    def resizing(self, verb: str) -> float:
        """Seconds that a verb spent on resizing: from the begin of each resize to its end, on the device."""
        return sum(lap.resizing_s for lap in self.of(verb))

    def batches(self) -> list[list[Lap]]:
        """The steps, grouped by batch."""
        found: dict[int, list[Lap]] = {}
        for lap in self.laps:
            found.setdefault(lap.step.batch, []).append(lap)
        return list(found.values())

    def rate_per_s(self, verb: str | None = None) -> float:
        """Elements per second of one verb, or of all verbs."""
        laps = self.laps if verb is None else self.of(verb)
        return sum(len(lap.step.ids) for lap in laps) / sum(lap.seconds for lap in laps)


def bounded(setting: Setting, alpha: float, beta: float) -> Setting:
    """A setting whose table keeps its load factor in [alpha, beta].

    Some designs have ``alpha`` and ``beta`` as parameters. The other designs double or halve all their memory, also at
    the first failure of an insert. A table that doubles or halves needs bounds a factor of two apart. For these
    designs, the lower bound is therefore at most half of ``beta``.
    """
    own = {parameter.name for parameter in registry.get(setting.design).parameters}
    if {"alpha", "beta"} <= own:
        return replace(setting, parameters={**setting.parameters, "alpha": alpha, "beta": beta})
    bounds = (min(alpha, beta / 2), beta)
    return replace(setting, parameters={**setting.parameters, "load_bounds": bounds, "attempts": 1})


def measure_dynamic(
    lab: Lab, workload: Workload, sequence: CallSequence, setting: Setting, shape: Dynamic, seed: int = 1
) -> Run:
    """Time a sequence of calls. The table begins with room for one batch.

    The host does not wait between the steps of a timed pass. An earlier pass, which does wait, records the table's size
    and memory after each step; both passes resize in the same steps. Answers are checked after each pass, because the
    check fills the host's caches and would slow the next step.
    """
    setting = bounded(setting, shape.alpha, shape.beta)
    assert workload.values is not None
    value = workload.values.dtype

    def begin() -> _Pass:
        return _Pass(lab.empty(workload, setting, shape.beta, capacity=sequence.largest, seed=seed))

    def mismatches(done: _Pass, sizes: list[int], whole: bool) -> int:
        """Wrong answers, and wrong sizes after the steps. ``whole`` also checks all pairs after the last step."""
        answers = list(map(lab.collected, done.answers))
        size = len(done.table)
        with turns.away_with(lab.arrays):
            held = Held(sequence.distinct, value, lab.arrays)
            wrong: Any = 0
            for number, (step, answer) in enumerate(zip(sequence.steps, answers, strict=True)):
                wrong = wrong + held.mismatches(step, answer)
                if number < len(sizes):
                    wrong = wrong + (held.size != sizes[number])
            counted = int(wrong) + int(held.size != size)
        return counted + (lab.oracle(*held.to_arrays()).check_items(*lab.items(done.table)) if whole else 0)

    first, behind = begin(), []
    for step in sequence.steps:
        first.call(step)
        after = first.table.stats()
        behind.append((after.size, after.load_factor, after.nbytes))
    wrong = mismatches(first, [size for size, _, _ in behind], whole=False)
    passes: list[tuple[list[float], list[float]]] = []
    enough = False
    while not enough:
        timed, resizes = begin(), _Resizes(lab)
        with resize_log.watched(resizes.begins, resizes.ends):
            ends = lab.laps(partial(resizes.call, timed, step) for step in sequence.steps)
        seconds = [end - start for start, end in pairwise([0.0, *ends])]
        passes.append((seconds, resizes.seconds()))
        enough = len(passes) >= _MOST_PASSES or sum(sum(its) for its, _ in passes) >= _ENOUGH_S
        wrong += mismatches(timed, [], whole=enough)
    best = min(passes, key=lambda its: sum(its[0]))
    return Run(
        [Lap(*of_step) for of_step in zip(sequence.steps, *best, *zip(*behind, strict=True), strict=True)], wrong
    )


class _Resizes:
    """The moments at which the resizes of each step of a pass begin and end."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._steps: list[list[tuple[Any, Any]]] = []
        self._begin: Any = None

    def call(self, timed: _Pass, step: Step) -> None:
        """Run a step."""
        self._steps.append([])
        timed.call(step)

    def begins(self) -> None:
        """A resize begins."""
        self._begin = self._lab.mark()

    def ends(self) -> None:
        """The resize that began last is done."""
        self._steps[-1].append((self._begin, self._lab.mark()))

    def seconds(self) -> list[float]:
        """Seconds of the resizes of each step, once the device has done all steps."""
        return [sum(self._lab.seconds_between(*both) for both in step) for step in self._steps]


class _Pass:
    """One table and its answer to each step."""

    def __init__(self, table: Any) -> None:
        self.table, self.answers = table, list[tuple[Any, ...]]()

    def call(self, step: Step) -> None:
        """Run a step."""
        answer = getattr(self.table, step.verb)(*step.arguments)
        self.answers.append(answer if isinstance(answer, tuple) else (answer,))
