"""Measure tables whose slots lie in the memory of a GPU's host, by the size of a batch.

Stadium Hashing, section IV-A, has such rates by the bits of a ticket (Figure 17, `slices`). Here they are by the
size of a batch, beside the rate of random reads of the same slots by a kernel without a table. Keys and values have 8
bytes each. A key is an odd multiple of its number, and its value follows from it, so the right answers are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import HashMap
from .arrays import array_of

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["BATCHES", "BusRate", "measure_bus"]

BATCHES = tuple(1 << bits for bits in range(14, 30, 2))
"""Keys of a batch. Larger batches than a third of the table are left out."""

_READS = {"cpu": 1 << 18, "cuda": 1 << 23}
"""Random reads of slots in one run."""

_SHARE = 16
"""All batches of one size together are at most a sixteenth of the pairs, if they are more than one."""

_FACTOR, _MASK = 0x9E3779B97F4A7C15, 0x5555
_ABSENT = 1 << 40
"""Number of the first absent key."""


@dataclass(frozen=True)
class BusRate:
    """Keys a second, in batches of one size.

    Attributes
    ----------
    operation
        ``"insert"``; ``"present"``, ``"half"`` and ``"absent"`` for finds of which all, half and no keys are there; or
        ``"ceiling"`` for random reads of slots by a kernel without a table.
    """

    operation: str
    batch: int
    rate_per_s: float
    mismatches: int


def measure_bus(lab: Lab, setting: Setting, load_factor: float, n: int) -> list[BusRate]:
    """Fill a table in host memory with ``n`` pairs, by batches of each size; find keys in it."""
    table: Any = HashMap(
        "uint64",
        "uint64",
        device=lab.device,
        memory="host",
        capacity=n,
        load_factor=load_factor,
        on_full="raise",
        seed=1,
        **setting.keywords,
    )
    arrays = lab.arrays
    rates: list[BusRate] = []

    def keys(first: int, count: int) -> Any:
        return arrays.arange(first, first + count, dtype=np.uint64) * np.uint64(_FACTOR)

    def insert(first: int, count: int) -> tuple[float, int]:
        """Seconds of a batch, and how many of its keys were not added."""
        batch = keys(first, count)
        values = batch ^ np.uint64(_MASK)
        added: list[Any] = []
        seconds = lab.time(lambda: added.append(table.insert(batch, values)))
        return seconds, count - int(added[0].sum())

    slots: Any = array_of(table)
    nbytes = slots.slots * slots.spec.slot_bytes
    reads_per_s = lab.memory.reads_per_s(
        slots.table.slots, nbytes, slots.spec.slot_bytes, _READS["cpu" if lab.device == "cpu" else "cuda"]
    )
    rates.append(BusRate("ceiling", n, reads_per_s, 0))
    sizes = [size for size in BATCHES if 3 * size <= n] or [n]
    turns = lab.repetitions + lab.warms_up
    inserts = {size: min(turns, max(1, n // (_SHARE * size))) for size in sizes}
    largest, done = sizes[-1], 0
    filled: list[tuple[float, int]] = []
    while rest := n - done - sum(size * count for size, count in inserts.items()):
        batch = insert(done, min(rest, largest))
        if rest >= largest:
            filled.append(batch)
        done += min(rest, largest)
    for size, count in inserts.items():
        batches = [*(filled if size == largest else []), *(insert(done + k * size, size) for k in range(count))]
        done += count * size
        warm_s = [seconds for seconds, _ in batches][lab.warms_up and len(batches) > 1 :]
        rates.append(BusRate("insert", size, size * len(warm_s) / sum(warm_s), sum(wrong for _, wrong in batches)))
    lost = abs(len(table) - done)
    for size in sizes:
        for operation, share in (("present", 1.0), ("half", 0.5), ("absent", 0.0)):
            there, wrong = min(int(share * size), done), lost
            seconds: list[float] = []
            for turn in range(lab.repetitions + lab.warms_up):  # other keys each time: slots are kept in caches
                first = turn * there % (done - there + 1)
                asked = arrays.concatenate([keys(first, there), keys(_ABSENT + turn * size, size - there)])
                answers: list[Any] = []

                def find(asked: Any = asked, answers: list[Any] = answers) -> None:
                    answers[:] = table.find(asked)

                seconds.append(lab.time(find))
                values, found = answers
                wrong += int((found != (arrays.arange(size) < there)).sum())
                wrong += int((values[:there] != (asked[:there] ^ np.uint64(_MASK))).sum())
            rates.append(BusRate(operation, size, size / min(seconds[lab.warms_up :]), wrong))
            lost = 0
    return rates
