"""Measure tables whose slots lie in the memory of a GPU's host, by the size of a batch.

Stadium Hashing, section IV-A, Figure 17: rates of inserts and finds out of core. Keys and values have 8 bytes each. A
key is an odd multiple of its number, and its value follows from it, so the right answers are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import HashMap

if TYPE_CHECKING:
    from .runner import Lab, Setting

__all__ = ["BATCHES", "BusRate", "measure_bus"]

BATCHES = tuple(1 << bits for bits in range(14, 30, 2))
"""Keys of a batch. Larger batches than a quarter of the table are left out."""

_FACTOR, _MASK = 0x9E3779B97F4A7C15, 0x5555
_ABSENT = 1 << 40
"""Number of the first absent key."""


@dataclass(frozen=True)
class BusRate:
    """Keys a second, in batches of one size.

    Attributes
    ----------
    operation
        ``"insert"``; or ``"present"``, ``"half"`` and ``"absent"`` for finds of which all, half and no keys are there.
    """

    operation: str
    batch: int
    rate_per_s: float
    mismatches: int


def measure_bus(lab: Lab, setting: Setting, load_factor: float, n: int) -> list[BusRate]:
    """Fill a table in host memory with ``n`` pairs, in few large batches and one of each size; find keys in it."""
    table: Any = HashMap(
        "uint64",
        "uint64",
        design=setting.design,
        device=lab.device,
        memory="host",
        capacity=n,
        load_factor=load_factor,
        on_full="raise",
        seed=1,
        **setting.parameters,
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

    sizes = [size for size in BATCHES if 4 * size <= n] or [n]
    largest, done = sizes[-1], 0
    least = sum(sizes)
    filled: list[tuple[float, int]] = []
    while n - done >= largest + least:  # until the table takes one batch of each size
        filled.append(insert(done, largest))
        done += largest
    for size in sizes:
        batches = [insert(done, size), *(filled if size == largest else [])]
        done += size
        seconds = sum(batch[0] for batch in batches)
        rates.append(BusRate("insert", size, size * len(batches) / seconds, sum(batch[1] for batch in batches)))
    lost = abs(len(table) - done)
    for size in sizes:
        for operation, share in (("present", 1.0), ("half", 0.5), ("absent", 0.0)):
            there = min(int(share * size), done)
            asked = arrays.concatenate([keys(0, there), keys(_ABSENT, size - there)])
            answers: list[Any] = []

            def find(asked: Any = asked, answers: list[Any] = answers) -> None:
                answers[:] = table.find(asked)

            seconds = min(lab.timed(find))
            values, found = answers
            wrong = int((found != (arrays.arange(size) < there)).sum())
            wrong += int((values[:there] != (asked[:there] ^ np.uint64(_MASK))).sum())
            rates.append(BusRate(operation, size, size / seconds, wrong + lost))
            lost = 0
    return rates
