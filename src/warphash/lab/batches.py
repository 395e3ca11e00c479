"""Keys that come in batches: inserted into the table that stands, or into a new one with all keys before them.

A Dynamic Hash Table for the GPU, section VI-B (S3-32): a table that cannot grow is built from scratch for every batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .oracle import Oracle
from .workloads import Workload

if TYPE_CHECKING:
    from .runner import Lab, Setting

__all__ = ["Step", "add_in_batches"]


@dataclass(frozen=True)
class Step:
    """A table after one of its batches.

    Attributes
    ----------
    keys, seconds
        Keys in it, and the time that all batches so far took, medians summed.
    mismatches
        Wrong answers about this batch; after the last, about the whole table, too.
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
    wrong = np.zeros(len(ends) - 1, np.int64)
    for _ in range(lab.repetitions + lab.warms_up):
        seconds: list[float] = []
        table: Any = None if rebuilds else lab.empty(workload, setting, load_factor, seed=seed)
        for step, (begin, end) in enumerate(pairwise(ends)):
            if rebuilds:
                table = None  # its memory is free before the next one's is taken
                table, took = _built(lab, [array[:end] for array in arrays], setting, load_factor, seed)
            else:
                took = _inserted(lab, table, [array[begin:end] for array in arrays])
            seconds.append(took)
            values, found = map(lab.back, table.find(arrays[0][begin:end]))
            wrong[step] += int((~found | (values != workload.values[begin:end])).sum())
        wrong[-1] += Oracle(workload.keys, workload.values, lab.argsort).check_items(*table.items())
        passes.append(seconds)
    so_far = np.median(passes[lab.warms_up :], axis=0).cumsum()
    return [Step(*step) for step in zip(ends[1:], so_far.tolist(), wrong.tolist(), strict=True)]


def _inserted(lab: Lab, table: Any, batch: list[Any]) -> float:
    return lab.time(lambda: table.insert(*batch, assume_unique=True))


def _built(lab: Lab, columns: list[Any], setting: Setting, load_factor: float | None, seed: int) -> tuple[Any, float]:
    made: list[Any] = []
    seconds = lab.time(lambda: made.append(lab.built(columns, setting, load_factor, seed=seed)))
    return made[0], seconds
