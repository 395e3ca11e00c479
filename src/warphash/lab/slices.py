"""Measure inserts and finds that run together: Stadium Hashing, section IV-A, Figures 14 and 15.

The operations come in slices. Half of a slice inserts new keys. The other half finds keys: all of them keys of the
slice before, or half of them keys of the slice before and half of them absent keys.

A design with mixed batches (`HashMap.execute`) takes a slice in one batch, in which 32 inserts and 32 finds take turns.
Any other design takes two batches, inserts first, as the paper's cuckoo table does. Keys and values have 4 bytes each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import HashMap, Operation
from ..designs import registry

if TYPE_CHECKING:
    from .runner import Lab, Setting

__all__ = ["Slices", "measure_slices"]

_GROUP = 32
"""Operations of one kind in a row."""

_FACTOR, _MASK = 0x9E3779B1, 0x5555


@dataclass(frozen=True)
class Slices:
    """Rates per second of all operations, in percent the concurrency efficiency, and the wrong answers.

    Attributes
    ----------
    present, half
        Rates of slices whose finds ask for keys of which all, or half, are there.
    concurrency
        Time of the inserts alone and of the finds alone, over the time of both together.
    """

    present: float
    half: float
    concurrency: float
    mismatches: int


def measure_slices(lab: Lab, setting: Setting, load_factor: float, n: int, slice_operations: int) -> Slices:
    """Insert ``n`` keys in slices, beside as many finds."""
    mixes = "execute" in registry.get(setting.design).capabilities
    inserts = max(_GROUP, slice_operations // 2 // _GROUP * _GROUP)
    count = max(2, n // inserts)
    arrays = lab.arrays

    def keys(first: int) -> Any:
        return arrays.arange(first, first + inserts, dtype=np.uint32) * np.uint32(_FACTOR)

    new = [keys(i * inserts) for i in range(count)]
    values = [part ^ np.uint32(_MASK) for part in new]
    absent = [keys((count + i) * inserts) for i in range(count)]
    there = {"present": arrays.ones(inserts, np.bool_), "half": arrays.arange(inserts) // _GROUP % 2 == 0}

    def asked(i: int, which: str) -> Any:
        """What slice ``i`` asks for; the first one asks for absent keys."""
        return arrays.where(there[which], new[i - 1], absent[i]) if i else absent[0]

    def together(mine: Any, others: Any) -> Any:
        """The first array and the second one, in groups that take turns."""
        pairs = arrays.stack([mine.reshape(-1, _GROUP), others.reshape(-1, _GROUP)], axis=1)
        return pairs.reshape(-1)

    kind = arrays.full(inserts, int(Operation.INSERT), np.uint8), arrays.full(inserts, int(Operation.FIND), np.uint8)
    operations = together(*kind)
    table: Any = None
    wrong = 0

    def empty() -> None:
        nonlocal table
        table = None
        table = HashMap(
            "uint32",
            "uint32",
            design=setting.design,
            device=lab.device,
            capacity=count * inserts,
            load_factor=load_factor,
            on_full="raise",
            seed=1,
            **setting.parameters,
        )

    def insert(i: int) -> None:
        if mixes:
            table.execute(kind[0], new[i], values[i])
        else:
            table.insert(new[i], values[i], assume_unique=True)

    def find(questions: Any) -> Any:
        return table.execute(kind[1], questions, questions) if mixes else table.find(questions)

    def judge(i: int, which: str, answer: Any) -> None:
        nonlocal wrong
        held, found = answer
        expected = there[which] if i else arrays.zeros(inserts, np.bool_)
        right = arrays.where(expected, asked(i, which) ^ np.uint32(_MASK), 0)
        wrong += int(((found.astype(np.bool_) != expected) | (held != right)).sum())

    def seconds_of(which: str) -> float:
        questions = [asked(i, which) for i in range(count)]
        mixed = [(together(new[i], questions[i]), together(values[i], values[i])) for i in range(count if mixes else 0)]
        answers: list[Any] = []

        def run() -> None:
            answers.clear()
            for i in range(count):
                if mixes:
                    answers.append(table.execute(operations, *mixed[i]))
                else:
                    insert(i)
                    answers.append(find(questions[i]))

        seconds = min(lab.timed(run, empty))
        for i, (held, found) in enumerate(answers):
            if mixes:
                held, found = (part.reshape(-1, 2, _GROUP)[:, 1].reshape(-1) for part in (held, found))
            judge(i, which, (held, found))
        return seconds

    present_s, half_s = seconds_of("present"), seconds_of("half")

    def all_inserts() -> None:
        for i in range(count):
            insert(i)

    inserts_s = min(lab.timed(all_inserts, empty))
    questions = [asked(i, "present") for i in range(count)]
    answers: list[Any] = []

    def all_finds() -> None:
        answers[:] = [find(part) for part in questions]

    finds_s = min(lab.timed(all_finds))
    for i in range(1, count):
        judge(i, "present", answers[i])
    wrong += abs(len(table) - count * inserts)
    total = 2 * count * inserts
    return Slices(total / present_s, total / half_s, 100 * (inserts_s + finds_s) / present_s, wrong)
