"""Count the keys for which a table that may not grow finds no slot.

Dynamic Hash Tables on GPUs, Tables 4 to 8. The paper's tables drop a key that finds no slot and go on. Our tables
refuse the whole batch and name keys without a slot. How these are counted depends on the design:

- MegaKV and CUDPP: by an insert that drops pairs (`lossy`). A refused batch of these tables would name more keys than
  had to fail, because after the first pair that finds no slot no other pair is moved.
- Linear: by the keys that the refused batch names. No key moves for another one, so these are all.
- DyHash: in the same way. It moves keys, so the number is an upper bound. It is 0 where the batch is not refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import TableFull
from ...designs import registry
from .lossy import DROPPING, distinct_pairs, measure_lossy

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting
    from ..data.workloads import Workload

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
    """Insert the distinct keys of a workload, in one batch, into a table of fixed size.

    The table has as many slots as give ``load_factor`` with all keys.
    """
    if registry.get(setting.design).name in DROPPING:
        made = measure_lossy(lab, workload, setting, load_factor, seed)
        return Failures(made.keys, made.dropped, made.mismatches)
    keys, values = distinct_pairs(workload, lab)
    options: dict[str, Any] = {"on_full": "raise", "attempts": 1, "capacity": len(keys), "seed": seed}
    table = lab.empty(workload, setting, load_factor, **options)
    arrays = lab.arrays
    kept, failed = arrays.ones(len(keys), bool), 0
    while True:
        try:
            table.insert(lab.here(keys[kept]), lab.here(values[kept]), assume_unique=True)
            break
        except TableFull as error:
            # The table is as it was. What is left is inserted to check it; another order may refuse further keys.
            failed = failed or len(error.keys)
            kept &= ~arrays.isin(keys, arrays.asarray(lab.back(error.keys)))
    wrong = lab.oracle(keys[kept], values[kept]).check_items(*lab.items(table))
    return Failures(len(keys), failed, wrong)
