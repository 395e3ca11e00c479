"""How many keys a table that keeps its size has no slot for.

Dynamic Hash Tables on GPUs, Tables 4 to 8. Their methods drop a key without a slot and go on. A table of
ours refuses the batch, and names more keys than had to fail: once a pair is displaced, no other is moved any more. So
each key is a batch here. (To halve a batch that is refused, until the key that fails is alone, gives every key as many
attempts as there are halves: MegaKV's share at a load factor of 0.9 falls from 2.4 to 0.8 per cent.)
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
    """Distinct keys, those of them without a slot, and wrong answers about the others."""

    keys: int
    failed: int
    mismatches: int


def measure_failures(
    lab: Lab, workload: Workload, setting: Setting, load_factor: float | None, seed: int = 1
) -> Failures:
    """Insert the distinct keys of a workload into a table with as many slots as make ``load_factor`` of them all."""
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
