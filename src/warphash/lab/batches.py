"""Keys that come in batches: inserted into the table that stands, or into a new one with all keys before them.

A Dynamic Hash Table for the GPU, section VI-B: a table that cannot grow is built from scratch for every batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .oracle import Oracle
from .workloads import Workload

if TYPE_CHECKING:
    from .runner import Lab, Setting

__all__ = ["Step", "add_in_batches"]

_MOST_PASSES, _ENOUGH_S = 5, 0.2
"""For each repetition that is asked for, until so much time was spent. A batch that nobody waits for takes microseconds
of the host, which has other things to do, too: it is the fastest pass that tells what a batch takes."""


@dataclass(frozen=True)
class Step:
    """A table after one of its batches.

    Attributes
    ----------
    keys, seconds
        Keys in it, and the time that all batches so far took, one behind the other, in the fastest of some passes.
    mismatches
        Wrong answers, behind each pass, about the keys of this batch; of the last batch, about the whole table, too.
    """

    keys: int
    seconds: float
    mismatches: int


def add_in_batches(
    lab: Lab,
    workload: Workload,
    setting: Setting,
    load_factor: float | None,
    batches: int,
    *,
    rebuilds: bool,
    seed: int = 1,
) -> list[Step]:
    """Time a workload's keys in ``batches`` batches of about one size.

    Parameters
    ----------
    load_factor
        Of the table that all keys are inserted into, or of each that is built.
    rebuilds
        Build a table of all keys so far for each batch.
    """
    assert workload.values is not None
    n = len(workload.keys)
    ends = np.linspace(0, n, min(batches, n) + 1).astype(int).tolist()
    arrays = lab.columns(workload)
    passes: list[list[float]] = []
    found: list[tuple[Any, Any, int]] = []
    spans = [(0 if rebuilds else begin, end) for begin, end in pairwise(ends)]
    parts = [[array[begin:end] for array in arrays] for begin, end in spans]
    table: Any = None

    def rebuild(part: list[Any]) -> None:
        nonlocal table
        table = None  # its memory is free before the next one's is taken
        table = lab.built(part, setting, load_factor, seed=seed)

    def insert(part: list[Any]) -> None:
        table.insert(*part, assume_unique=True)

    while len(passes) < lab.repetitions + lab.warms_up or (
        len(passes) < _MOST_PASSES * lab.repetitions and sum(laps[-1] for laps in passes) < _ENOUGH_S
    ):
        table = None if rebuilds else lab.empty(workload, setting, load_factor, seed=seed)
        steps = [partial(rebuild if rebuilds else insert, part) for part in parts]
        passes.append(lab.laps(steps))
        found.append((*table.find(arrays[0]), len(table)))
    # Behind all passes: what it takes to check answers drives everything else out of the host's caches.
    wrong = np.zeros(len(ends) - 1, np.int64)
    for values, is_found, size in found:
        answers = (~lab.back(is_found) | (lab.back(values) != workload.values)).astype(np.int64)
        wrong += np.add.reduceat(answers, ends[:-1])
        wrong[-1] += size != n
    wrong[-1] += Oracle(workload.keys, workload.values, lab.argsort).check_items(*table.to_arrays(like="numpy"))
    so_far = min(passes[lab.warms_up :], key=lambda laps: laps[-1])
    return [Step(*step) for step in zip(ends[1:], so_far, wrong.tolist(), strict=True)]
