"""The dynamic workload: batches of inserts, finds and erases, then the same batches with inserts and erases swapped.

Dynamic Hash Tables on GPUs, section 6.1. The paper does not say which keys are erased and found. Here, an erase takes
keys that are present, each once. A find takes keys of the batches so far; some of them are erased by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import turns
from .workloads import Workload, first_of_each, scrambled

if TYPE_CHECKING:
    from .runner import Lab

__all__ = ["Dynamic", "Held", "Plan", "Step", "draw"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Dynamic:
    """Parameters of the dynamic workload.

    Attributes
    ----------
    alpha, beta
        Lower and upper bound of the table's load factor.
    pairs_per_batch
        Inserts in a batch of the full data set. A smaller run has the same number of batches, each smaller.
    erases_per_insert, finds_per_insert
        Erases and finds in a batch, for each insert. The paper calls ``erases_per_insert`` r.
    again
        Whether all batches run a second time, with inserts and erases swapped.
    """

    alpha: float = 0.4
    beta: float = 0.9
    pairs_per_batch: float = 1_000_000
    erases_per_insert: float = 0.4
    finds_per_insert: float = 1.0
    again: bool = True

    @property
    def drawn_of(self) -> tuple[float, ...]:
        """The parameters that determine the batches: all but the bounds of the load factor."""
        return self.pairs_per_batch, self.erases_per_insert, self.finds_per_insert, self.again


@dataclass(frozen=True)
class Step:
    """One call of a verb, part of a batch.

    Attributes
    ----------
    batch, again
        Number of the batch, and whether the batch runs with inserts and erases swapped.
    verb
        ``"insert"``, ``"find"`` or ``"erase"``.
    ids, values
        Indices of the elements' keys among the distinct keys, and the values of an insert. Both are arrays of
        `Lab.arrays`, which checks the answers.
    arguments
        Arguments of the verb, on the device.
    """

    batch: int
    again: bool
    verb: str
    ids: Any
    values: Any
    arguments: list[Any]


@dataclass(frozen=True)
class Plan:
    """All calls in order, their distinct keys (of `Lab.arrays`), and the number of pairs in the largest batch."""

    steps: list[Step]
    distinct: Any
    largest: int


def draw(lab: Lab, workload: Workload, shape: Dynamic, batch: int, seed: int) -> Plan:
    """Draw the calls for a workload's pairs, ``batch`` pairs at a time.

    The plan is drawn where `Lab.arrays` are. On a GPU it stays there: a plan of 100 million pairs takes the host a
    minute.
    """
    assert workload.values is not None
    arrays, random = lab.arrays, _Random(lab.arrays, seed)
    ids, keys = _numbered(workload.keys, lab)
    all_values = arrays.asarray(workload.values)
    ends = [*range(batch, len(ids), batch), len(ids)]
    there, marks = arrays.zeros(len(keys), bool), arrays.zeros(len(keys), np.int32)
    once: list[Step] = []
    again: list[Step] = []
    for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        taken, values = ids[begin:end], all_values[begin:end]
        there[taken] = True
        gone = _taken_away(random, ids[:end], there, marks, round(shape.erases_per_insert * len(taken)), lab)
        asked = ids[random.below(end, round(shape.finds_per_insert * len(taken)))]
        fresh = random.below(1 << 31, len(gone)).astype(values.dtype)
        new_keys, gone_keys, asked_keys = (lab.here(keys[chosen]) for chosen in (taken, gone, asked))
        once += [
            Step(number, False, "insert", taken, values, [new_keys, lab.here(values)]),
            Step(number, False, "find", asked, None, [asked_keys]),
            Step(number, False, "erase", gone, None, [gone_keys]),
        ]
        again += [
            Step(len(ends) + number, True, "erase", taken, None, [new_keys]),
            Step(len(ends) + number, True, "find", asked, None, [asked_keys]),
            Step(len(ends) + number, True, "insert", gone, fresh, [gone_keys, lab.here(fresh)]),
        ]
    steps = [step for step in once + (again if shape.again else []) if len(step.ids)]
    return Plan(steps, keys, min(batch, len(ids)))


class Held:
    """The oracle of the dynamic workload: which keys the table must hold after each step, and with which values.

    If a batch inserts a key several times, any of these inserts may win. The flags of the table's answer say which one
    won. The flags are right if exactly one element of each absent key is flagged. The oracle shares no code with a
    table.

    Numbers are arrays without axes: the host need not wait for a GPU to read each of them.

    Parameters
    ----------
    distinct, value
        The distinct keys, and the type of values.
    arrays
        NumPy, or CuPy if the answers are on a GPU. There the check takes a hundredth of the time.

    Attributes
    ----------
    size
        Number of keys.
    """

    def __init__(self, distinct: Any, value: np.dtype[Any], arrays: Any = np) -> None:
        self._arrays = arrays
        self._distinct, self._nobody = distinct, len(distinct)
        # Behind the keys is one entry more, for elements that change nothing (`_ids_of`).
        self._there = arrays.zeros(self._nobody + 1, bool)
        self._values = arrays.zeros(self._nobody + 1, value)
        self._marks = arrays.zeros(self._nobody + 1, np.int32)
        self.size: Any = arrays.zeros((), np.int64)

    def to_arrays(self) -> tuple[Any, Any]:
        """All pairs."""
        there = self._there[: self._nobody]
        return self._arrays.asarray(self._distinct)[there], self._values[: self._nobody][there]

    def mismatches(self, step: Step, answer: tuple[Any, ...]) -> Any:
        """Count the wrong answers to a step, and apply the step. A wrong answer is replaced by the right one."""
        if any(len(column) != len(step.ids) for column in answer):
            return max(len(step.ids), *map(len, answer))
        if step.verb == "find":
            values, found = answer
            there = self._there[step.ids]
            return ((found.astype(bool) != there) | (there & (values != self._values[step.ids]))).sum()
        told = answer[0].astype(bool)
        right = told & self._can_change(step)
        right &= is_marked(self._ids_of(step.ids, right), self._marks, self._arrays)
        self._change(step, right, right.sum())
        missed = self._can_change(step)
        wrong = told.sum() - right.sum()
        if not missed.any():
            return wrong
        missed &= is_marked(self._ids_of(step.ids, missed), self._marks, self._arrays)
        self._change(step, missed, missed.sum())
        return wrong + missed.sum()

    def _can_change(self, step: Step) -> Any:
        """Which elements have a key that an insert would add, or an erase take away."""
        return self._there[step.ids] == (step.verb == "erase")

    def _ids_of(self, ids: Any, which: Any) -> Any:
        """The ids of some elements. The others have an entry that belongs to no key."""
        return self._arrays.where(which, ids, self._nobody)

    def _change(self, step: Step, which: Any, keys: Any) -> None:
        """Apply some elements of a step, each of another key: ``keys`` is their number."""
        changed, erases = self._ids_of(step.ids, which), step.verb == "erase"
        if step.values is not None:
            self._values[changed] = step.values
        self.size = self.size - keys if erases else self.size + keys
        self._there[changed] = not erases


def is_marked(ids: Any, marks: Any, arrays: Any) -> Any:
    """Choose one element of each key that occurs in ``ids``: the element whose mark was written last.

    Parameters
    ----------
    marks
        An int32 for each id, of any value.
    """
    at = arrays.arange(len(ids), dtype=np.int32)
    marks[ids] = at
    return marks[ids] == at


class _Random:
    """Random numbers, the same in each array library."""

    def __init__(self, arrays: Any, seed: int) -> None:
        self._arrays, self._next = arrays, seed << 40

    def below(self, bound: int, n: int) -> Any:
        """``n`` numbers from 0 to ``bound - 1``, of fewer than 32 bits."""
        words = scrambled(self._arrays.arange(n, dtype=np.uint64) + np.uint64(self._next))
        self._next += n
        return ((words >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)


def _numbered(keys: Array, lab: Lab) -> tuple[Any, Any]:
    """The index of each key among the distinct keys, and the distinct keys. Both are arrays of `Lab.arrays`."""
    arrays = lab.arrays
    here = arrays.asarray(keys)
    order = lab.argsort(here)
    with turns.away_with(arrays):
        ordered = here[order]
        first = first_of_each(ordered, arrays)
        ids = arrays.empty(len(here), np.int32)
        ids[order] = (arrays.cumsum(first) - 1).astype(np.int32)
        return ids, ordered[first]


def _taken_away(random: _Random, seen: Any, there: Any, marks: Any, n: int, lab: Lab) -> Any:
    """Up to ``n`` different keys that are present, in random order. They are present no more."""
    arrays = lab.arrays
    with turns.away_with(arrays):
        if 2 * n >= int(there.sum()):
            left = arrays.flatnonzero(there).astype(np.int32)
            chosen = [left[arrays.argsort(random.below(1 << 32, len(left)))][:n]]
            there[chosen[0]] = False
            return chosen[0]
        chosen, missing = [seen[:0]], n
        while missing:  # drawing and rejecting is faster than listing all present keys
            some = seen[random.below(len(seen), 2 * missing + 16)]
            some = some[there[some]]
            some = some[is_marked(some, marks, arrays)][:missing]
            there[some] = False
            chosen.append(some)
            missing -= len(some)
        return arrays.concatenate(chosen)
