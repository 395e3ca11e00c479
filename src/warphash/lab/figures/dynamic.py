"""The dynamic workload: batches of inserts, finds and erases, then the same batches with inserts and erases swapped.

Dynamic Hash Tables on GPUs, section 6.1. The paper does not say which keys are erased and found. Here, an erase takes
keys that are present, each once. A find takes keys of the batches so far; some of them are erased by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bench import turns
from ..data.random_words import RandomWords
from ..data.workloads import first_of_each

if TYPE_CHECKING:
    from ..bench.runner import Lab
    from ..data.workloads import Workload

__all__ = ["CallSequence", "Dynamic", "Held", "Step", "draw"]


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
        Indices of the elements' keys among the distinct keys, int32, and the values of an insert. Both are arrays of
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
class CallSequence:
    """All calls in order, their distinct keys in `Lab.arrays`, and the number of pairs in the largest batch."""

    steps: list[Step]
    distinct: Any
    largest: int


def draw(lab: Lab, workload: Workload, shape: Dynamic, batch: int, seed: int) -> CallSequence:
    """Draw the calls for a workload's pairs, ``batch`` pairs at a time.

    `Lab.arrays` draws everything, and the sequence stays there: on a GPU, the host moves no keys.
    """
    arrays = lab.arrays
    keys, values = arrays.asarray(workload.keys), arrays.asarray(workload.values)
    ids, distinct = _numbered(keys, lab)
    spans = list(pairwise([*range(0, len(keys), batch), len(keys)]))
    with turns.away_with(arrays):
        drawn = [
            (asked, gone, words.astype(values.dtype), distinct[asked], distinct[gone])
            for asked, gone, words in _batches(RandomWords(seed, arrays), ids, len(distinct), spans, shape)
        ]
    once: list[Step] = []
    again: list[Step] = []
    for number, ((begin, end), (asked, gone, fresh, *columns)) in enumerate(zip(spans, drawn, strict=True)):
        taken, taken_values = ids[begin:end], values[begin:end]
        asked_keys, gone_keys, new = map(lab.here, (*columns, keys[begin:end]))
        once += [
            Step(number, False, "insert", taken, taken_values, [new, lab.here(taken_values)]),
            Step(number, False, "find", asked, None, [asked_keys]),
            Step(number, False, "erase", gone, None, [gone_keys]),
        ]
        again += [
            Step(len(spans) + number, True, "erase", taken, None, [new]),
            Step(len(spans) + number, True, "find", asked, None, [asked_keys]),
            Step(len(spans) + number, True, "insert", gone, fresh, [gone_keys, lab.here(fresh)]),
        ]
    steps = [step for step in once + (again if shape.again else []) if len(step.ids)]
    return CallSequence(steps, distinct, min(batch, len(keys)))


class Held:
    """The oracle of the dynamic workload: which keys the table must hold after each step, and with which values.

    If a batch inserts a key several times, any of these inserts may win. The flags of the table's answer say which one
    won. The flags are right if exactly one element of each absent key is flagged. The oracle shares no code with a
    table.

    Counts are numbers of ``arrays``, so on a GPU the host waits for none of them: a sequence has hundreds of steps.

    Parameters
    ----------
    distinct, value
        The distinct keys, and the type of values.
    arrays
        NumPy, or CuPy if the answers are on a GPU. There the check takes a hundredth of the time.

    Attributes
    ----------
    size
        Number of keys that the table must hold.
    """

    def __init__(self, distinct: Any, value: np.dtype[Any], arrays: Any = np) -> None:
        self._arrays = arrays
        self._distinct = distinct
        self._there = arrays.zeros(len(distinct), bool)
        self._values = arrays.zeros(len(distinct), value)
        self._written = arrays.zeros(len(distinct) + 1, np.int32)
        self.size: Any = 0

    def to_arrays(self) -> tuple[Any, Any]:
        """All pairs."""
        return self._distinct[self._there], self._values[self._there]

    def mismatches(self, step: Step, answer: tuple[Any, ...]) -> Any:
        """Count the wrong answers to a step, and apply the step as it should have been."""
        if any(len(column) != len(step.ids) for column in answer):
            return max(len(step.ids), *map(len, answer))
        if step.verb == "find":
            return self._wrong_values(step.ids, *answer)
        return self._wrong_flags(step, answer[0].astype(bool))

    def _wrong_values(self, ids: Any, values: Any, found: Any) -> Any:
        there = self._there[ids]
        return ((found.astype(bool) != there) | (there & (values != self._values[ids]))).sum()

    def _wrong_flags(self, step: Step, flags: Any) -> Any:
        ids, erases = step.ids, step.verb == "erase"
        due = self._there[ids] == erases
        winner = self._winners(ids, due & flags)
        wins = due & (winner == self._arrays.arange(len(ids), dtype=np.int32))
        if step.values is not None:
            self._values[ids] = self._arrays.where(due, step.values[winner], self._values[ids])
        self._there[ids] = not erases
        self.size = self.size - wins.sum() if erases else self.size + wins.sum()
        return (flags != wins).sum()

    def _winners(self, ids: Any, told: Any) -> Any:
        """The number of one element of the key of each element: of one that is ``told``, if any is.

        Of several elements that write to one place, one stays there. Elements that are not told write to a spare place.
        """
        numbers = self._arrays.arange(len(ids), dtype=np.int32)
        self._written[ids] = numbers
        self._written[self._arrays.where(told, ids, len(self._distinct))] = numbers
        return self._written[ids]


def _numbered(keys: Any, lab: Lab) -> tuple[Any, Any]:
    """The index of each key among the distinct keys, int32, and the distinct keys."""
    arrays = lab.arrays
    order = lab.argsort(keys)
    with turns.away_with(arrays):
        ordered = keys[order]
        first = first_of_each(ordered, arrays)
        ids = arrays.empty(len(keys), np.int32)
        ids[order] = arrays.cumsum(first) - 1
    return ids, ordered[first]


def _batches(
    random: RandomWords, ids: Any, keys: int, spans: list[tuple[int, int]], shape: Dynamic
) -> Iterator[tuple[Any, Any, Any]]:
    """Draw each batch's keys to find and keys to erase, as ids, and new values of the erased keys, below 2^31.

    Parameters
    ----------
    ids, keys
        The ids of all inserts, and the number of distinct keys.
    spans
        The inserts of each batch.
    """
    there = random.arrays.zeros(keys, bool)
    for begin, end in spans:
        there[ids[begin:end]] = True
        gone = _some_held(random, ids[:end], there, round(shape.erases_per_insert * (end - begin)))
        there[gone] = False
        asked = ids[random.below(end, round(shape.finds_per_insert * (end - begin)))]
        yield asked, gone, random.words(len(gone)) >> np.uint64(33)


def _some_held(random: RandomWords, seen: Any, there: Any, n: int) -> Any:
    """Up to ``n`` different keys that are present, in random order."""
    arrays = random.arrays
    if 2 * n >= int(arrays.count_nonzero(there)):
        return random.shuffled(arrays.flatnonzero(there).astype(seen.dtype))[:n]
    chosen = seen[:0]
    while len(chosen) < n:  # drawing and rejecting is faster than listing all present keys
        candidates = seen[random.below(len(seen), 2 * (n - len(chosen)) + 16)]
        chosen = random.shuffled(arrays.concatenate([chosen, candidates[there[candidates]]]))
    return chosen[:n]
