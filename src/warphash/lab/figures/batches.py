"""Time keys that arrive in batches: insert each batch into one table, or rebuild the table with all keys so far.

A Dynamic Hash Table for the GPU, section VI-B, compares the two. A table that cannot grow must be rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.workloads import Workload

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["Step", "add_in_batches"]

_MOST_PASSES, _ENOUGH_S = 5, 0.2
"""Limits: passes for each requested repetition, and seconds after which no further pass begins. A batch takes the host
only microseconds, and other work of the host disturbs such a short time. So there are many passes, and the fastest one
counts."""


@dataclass(frozen=True)
class Step:
    """The state after one batch.

    Attributes
    ----------
    keys
        Keys in the table.
    seconds
        Time of all batches so far, in the fastest pass.
    mismatches
        Wrong answers about the keys of this batch, summed over all passes. The last step also counts the errors of the
        whole table.
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
    """Insert a workload's keys in ``batches`` batches of about equal size, and time each batch.

    Parameters
    ----------
    load_factor
        Load factor of the final table, or of each table that is built.
    rebuilds
        Build a new table of all keys so far for each batch.
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
        table = None  # free the old table before the new one is allocated
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
    # The answers are checked after all passes, because the check fills the host's caches and slows the next pass.
    wrong = np.zeros(len(ends) - 1, np.int64)
    for values, is_found, size in found:
        answers = (~lab.back(is_found) | (lab.back(values) != workload.values)).astype(np.int64)
        wrong += np.add.reduceat(answers, ends[:-1])
        wrong[-1] += size != n
    wrong[-1] += lab.oracle(workload.keys, workload.values).check_items(*lab.items(table))
    so_far = min(passes[lab.warms_up :], key=lambda laps: laps[-1])
    return [Step(*step) for step in zip(ends[1:], so_far, wrong.tolist(), strict=True)]
