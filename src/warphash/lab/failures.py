"""Count the keys for which a table that may not grow finds no slot.

Dynamic Hash Tables on GPUs, Tables 4 to 8. The paper's tables drop a key that finds no slot and go on. Our table
refuses the whole batch, and names more keys than had to fail: after the first pair that finds no slot, no other pair is
moved. So each batch has one key here.

Halving a refused batch until the failing key is alone is no substitute, because each halving gives every key another
attempt: MegaKV's share of failures at a load factor of 0.9 falls from 2.4 to 0.8 per cent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import TableFull
from .oracle import Oracle

if TYPE_CHECKING:
    from .runner import Lab, Setting
    from .workloads import Workload

__all__ = ["Failures", "measure_failures"]


@dataclass(frozen=True)
class Failures:
    """Number of distinct keys, of keys without a slot, and of wrong answers about the keys that have a slot."""

    keys: int
    failed: int
    mismatches: int


def measure_failures(
    lab: Lab, workload: Workload, setting: Setting, load_factor: float | None, seed: int = 1
) -> Failures:
    """Insert the distinct keys of a workload, one by one, into a table of fixed size.

    The table has as many slots as give ``load_factor`` with all keys.
    """
    assert workload.values is not None
    _, first = np.unique(workload.keys, return_index=True)
    first.sort()
    keys, values = workload.keys[first], workload.values[first]
    options: dict[str, Any] = {"on_full": "raise", "attempts": 1, "capacity": len(keys), "seed": seed}
    table = lab.empty(workload, setting, load_factor, **options)
    here = lab.here(keys), lab.here(values)
    kept = np.ones(len(keys), bool)
    for i in range(len(keys)):
        try:
            table.insert(*(column[i : i + 1] for column in here), assume_unique=True)
        except TableFull:
            kept[i] = False
    wrong = Oracle(keys[kept], values[kept], lab.argsort).check_items(*table.to_arrays(like="numpy"))
    return Failures(len(keys), int((~kept).sum()), wrong)
