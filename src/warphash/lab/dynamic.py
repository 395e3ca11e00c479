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
from .workloads import Workload, distinct, first_of_each

if TYPE_CHECKING:
    from .runner import Lab

__all__ = ["Dynamic", "Held", "Plan", "Step", "draw"]

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]


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
    """All calls in order, their distinct keys, and the number of pairs in the largest batch."""

    steps: list[Step]
    distinct: Array
    largest: int


def draw(lab: Lab, workload: Workload, shape: Dynamic, batch: int, seed: int) -> Plan:
    """Draw the calls for a workload's pairs, ``batch`` pairs at a time."""
    assert workload.values is not None
    rng = np.random.default_rng(seed)
    ids, keys = _numbered(workload.keys, lab)
    ends = [*range(batch, len(ids), batch), len(ids)]
    there, held = np.zeros(len(keys), bool), 0
    once: list[Step] = []
    again: list[Step] = []
    for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        taken = ids[begin:end]
        # A key that occurs several times in a batch counts once.
        held += len(distinct(taken[~there[taken]]))
        there[taken] = True
        with turns.away():
            gone = _some_held(rng, ids[:end], there, held, round(shape.erases_per_insert * len(taken)))
        there[gone] = False
        held -= len(gone)
        asked = ids[rng.integers(0, end, round(shape.finds_per_insert * len(taken)))]
        new = lab.columns(Workload("", workload.keys[begin:end], workload.values[begin:end], workload.keys[:0]))
        fresh = rng.integers(0, 1 << 31, len(gone)).astype(workload.values.dtype)
        gone_keys, asked_keys = lab.here(keys[gone]), lab.here(keys[asked])
        taken, asked, gone, values, fresh_values = map(
            lab.arrays.asarray, (taken, asked, gone, workload.values[begin:end], fresh)
        )
        once += [
            Step(number, False, "insert", taken, values, new),
            Step(number, False, "find", asked, None, [asked_keys]),
            Step(number, False, "erase", gone, None, [gone_keys]),
        ]
        again += [
            Step(len(ends) + number, True, "erase", taken, None, new[:1]),
            Step(len(ends) + number, True, "find", asked, None, [asked_keys]),
            Step(len(ends) + number, True, "insert", gone, fresh_values, [gone_keys, lab.here(fresh)]),
        ]
    steps = [step for step in once + (again if shape.again else []) if len(step.ids)]
    return Plan(steps, keys, min(batch, len(ids)))


class Held:
    """The oracle of the dynamic workload: which keys the table must hold after each step, and with which values.

    If a batch inserts a key several times, any of these inserts may win. The flags of the table's answer say which one
    won. The flags are right if exactly one element of each absent key is flagged. The oracle shares no code with a
    table.

    Parameters
    ----------
    distinct, value
        The distinct keys, and the type of values.
    arrays
        NumPy, or CuPy if the answers are on a GPU. There the check takes a hundredth of the time.
    """

    def __init__(self, distinct: Array, value: np.dtype[Any], arrays: Any = np) -> None:
        self._arrays = arrays
        self._distinct = distinct
        self._there = arrays.zeros(len(distinct), bool)
        self._values = arrays.zeros(len(distinct), value)
        self._last = arrays.zeros(len(distinct), np.int32)
        self.size = 0

    def to_arrays(self) -> tuple[Any, Any]:
        """All pairs."""
        return self._arrays.asarray(self._distinct)[self._there], self._values[self._there]

    def mismatches(self, step: Step, answer: tuple[Any, ...]) -> int:
        """Count the wrong answers to a step, and apply the step. A wrong answer is replaced by the right one."""
        if any(len(column) != len(step.ids) for column in answer):
            return max(len(step.ids), *map(len, answer))
        ids = step.ids
        if step.verb == "find":
            values, found = answer
            there = self._there[ids]
            return int(((found.astype(bool) != there) | (there & (values != self._values[ids]))).sum())
        (flags,) = answer
        told, before = self._arrays.flatnonzero(flags), step.verb == "erase"
        values = step.values
        right, last = self._there[ids[told]] == before, self._is_last(ids[told])
        wrong = int((~right).sum()) + int((~last).sum())
        self._change(ids, values, told[right], int((right & last).sum()), before)
        untold = self._arrays.flatnonzero(self._there[ids] == before)
        missed = int(self._is_last(ids[untold]).sum())
        self._change(ids, values, untold, missed, before)
        return wrong + missed

    def _change(self, ids: Any, values: Any, elements: Any, keys: int, before: bool) -> None:
        """Apply some elements of a step. ``keys`` is the number of distinct keys among them."""
        changed = ids[elements]
        if values is not None:
            self._values[changed] = values[elements]
        self.size += -keys if before else keys
        self._there[changed] = not before

    def _is_last(self, ids: Any) -> Any:
        """Choose one element of each key that occurs in ``ids``: the element that was written last."""
        at = self._arrays.arange(len(ids), dtype=np.int32)
        self._last[ids] = at
        return self._last[ids] == at


def _numbered(keys: Array, lab: Lab) -> tuple[Ids, Array]:
    """The index of each key among the distinct keys, and the distinct keys."""
    arrays = lab.arrays
    here = arrays.asarray(keys)
    order = lab.argsort(here)
    with turns.away_with(arrays):
        ordered = here[order]
        first = first_of_each(ordered, arrays)
        ids = arrays.empty(len(here), np.int64)
        ids[order] = arrays.cumsum(first) - 1
    return lab.back(ids), lab.back(ordered[first])


def _some_held(rng: np.random.Generator, seen: Ids, there: npt.NDArray[np.bool_], held: int, n: int) -> Ids:
    """Up to ``n`` different keys that are present, in random order."""
    if 2 * n >= held:
        return np.asarray(rng.permutation(np.flatnonzero(there))[:n])
    chosen = np.empty(0, np.int64)
    while len(chosen) < n:  # drawing and rejecting is faster than listing all present keys
        candidates = seen[rng.integers(0, len(seen), 2 * (n - len(chosen)) + 16)]
        chosen = distinct(np.concatenate([chosen, candidates[there[candidates]]]))
    return np.asarray(rng.permutation(chosen)[:n])
