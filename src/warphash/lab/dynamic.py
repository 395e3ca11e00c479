"""A table whose keys come and go: batches of inserts, finds and erases, then all of them again with the roles swapped.

Dynamic Hash Tables on GPUs, section 6.1. The paper does not say which keys are erased and found: here erases
take keys that are there, each once, and finds ask for keys of the batches so far, some of them erased since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .workloads import Workload, distinct

if TYPE_CHECKING:
    from .runner import Lab

__all__ = ["Dynamic", "Held", "Plan", "Step", "draw"]

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Dynamic:
    """What is varied of the workload.

    Attributes
    ----------
    alpha, beta
        Least and greatest load factor that a table keeps to.
    pairs_per_batch
        Inserts of a batch of the full data set; a smaller run has smaller batches, and as many.
    erases_per_insert, finds_per_insert
        What a batch has beside its inserts; the paper calls the first one r.
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
        """What the batches depend on; the bounds of the load factor are the table's affair."""
        return self.pairs_per_batch, self.erases_per_insert, self.finds_per_insert, self.again


@dataclass(frozen=True)
class Step:
    """One call of a verb: part of a batch.

    Attributes
    ----------
    batch, again
        Its number, and whether it runs with the roles swapped.
    verb
        ``"insert"``, ``"find"`` or ``"erase"``.
    ids, values
        Which of the distinct keys its elements are, and the values of an insert: where `Lab.arrays` checks answers.
    arguments
        Of the verb, on the device.
    """

    batch: int
    again: bool
    verb: str
    ids: Any
    values: Any
    arguments: list[Any]


@dataclass(frozen=True)
class Plan:
    """All calls in their order, the distinct keys that they are about, and the pairs of the largest batch."""

    steps: list[Step]
    distinct: Array
    largest: int


def draw(lab: Lab, workload: Workload, shape: Dynamic, batch: int, seed: int) -> Plan:
    """The calls for a workload's pairs, ``batch`` of them at a time."""
    assert workload.values is not None
    rng = np.random.default_rng(seed)
    ids, keys = _numbered(workload.keys, lab)
    ends = [*range(batch, len(ids), batch), len(ids)]
    there, held = np.zeros(len(keys), bool), 0
    once: list[Step] = []
    again: list[Step] = []
    for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        taken = ids[begin:end]
        # The keys that were absent are counted where they came first, whichever copy that is.
        held += len(distinct(taken[~there[taken]]))
        there[taken] = True
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
    """Which keys a table has to hold after each step, and with which values: flags and a value for each distinct key.

    Of several inserts of one key in a batch any may win, so the table's own flags say whose value is right from there
    on, and are right themselves if exactly one element of each absent key has one. Nothing here is shared with a table.

    Parameters
    ----------
    distinct, value
        The keys, and the type of values.
    arrays
        NumPy, or what speaks it on the device where the answers are: there it takes a hundredth of the time.
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
        """Wrong answers to a step; afterwards its effect is known, and that of the right answer where one was wrong."""
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
        """Elements that are about so many different keys take effect."""
        changed = ids[elements]
        if values is not None:
            self._values[changed] = values[elements]
        self.size += -keys if before else keys
        self._there[changed] = not before

    def _is_last(self, ids: Any) -> Any:
        """Whether an element is the one of its key that was written last: true once for each key that occurs."""
        at = self._arrays.arange(len(ids), dtype=np.int32)
        self._last[ids] = at
        return self._last[ids] == at


def _numbered(keys: Array, lab: Lab) -> tuple[Ids, Array]:
    """The number of each key among the distinct ones, and these."""
    order = lab.argsort(keys)
    ordered = keys[order]
    first = np.ones(len(keys), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    ids = np.empty(len(keys), np.int64)
    ids[order] = np.cumsum(first) - 1
    return ids, ordered[first]


def _some_held(rng: np.random.Generator, seen: Ids, there: npt.NDArray[np.bool_], held: int, n: int) -> Ids:
    """``n`` different keys of those that are there, or all of them, in random order."""
    if 2 * n >= held:
        return np.asarray(rng.permutation(np.flatnonzero(there))[:n])
    chosen = np.empty(0, np.int64)
    while len(chosen) < n:  # to list all that are there would take longer than to miss some
        candidates = seen[rng.integers(0, len(seen), 2 * (n - len(chosen)) + 16)]
        chosen = distinct(np.concatenate([chosen, candidates[there[candidates]]]))
    return np.asarray(rng.permutation(chosen)[:n])
