"""Time the chunks of an insert by Stash and by clStash: Stadium Hashing, section III-C, Figure 13.

Keys and values have 8 bytes each. `storage.tickets.threshold` takes the times, as ``warphash tune`` does. Then a table
of each kind is filled by as many chunks, and all of its pairs are looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ... import HashMap
from ...storage.tickets.threshold import crossing, time_chunks
from .arrays import array_of

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["CHUNKS", "Chunks", "measure_chunks"]

CHUNKS = 50
"""Chunks of the insert, as in the paper."""

_FACTOR, _MASK = 0x9E3779B97F4A7C15, 0x5555
"""A key is an odd multiple of its number, and its value follows from it."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Chunks:
    """Seconds of each chunk, by the load factor in its middle.

    Attributes
    ----------
    fit
        The difference of the times, Stash less clStash, as a polynomial of the second order has it.
    threshold
        The load factor from which clStash is faster, by the fit: `threshold.crossing`.
    mismatches
        Lost, doubled and invented pairs of the tables that were filled by chunks.
    """

    load_factors: Floats
    stash: Floats
    clstash: Floats
    fit: Floats
    threshold: float
    mismatches: int


def measure_chunks(lab: Lab, setting: Setting, load_factor: float, n: int, seed: int = 1) -> Chunks:
    """Insert ``n`` pairs in chunks, up to a load factor, by Stash and by clStash."""

    def empty(lanes: str, capacity: int) -> Any:
        keywords = {**setting.keywords, "lanes": lanes}
        return HashMap(
            "uint64",
            "uint64",
            device=lab.device,
            capacity=capacity,
            load_factor=load_factor,
            on_full="raise",
            seed=seed,
            **keywords,
        )

    times = time_chunks(array_of(empty("hybrid", 1)), n, load_factor, CHUNKS, seed=seed)
    fit = np.polynomial.Polynomial.fit(times.load_factors, times.stash - times.clstash, 2)
    wrong = sum(_wrong_pairs(lab, empty(lanes, n), n) for lanes in ("stash", "clstash"))
    return Chunks(*times, fit(times.load_factors), crossing(times), wrong)


def _wrong_pairs(lab: Lab, table: Any, n: int) -> int:
    """Fill an empty table by chunks. Each key is found once, and there are no more pairs than keys."""
    arrays = lab.arrays
    keys = arrays.arange(n, dtype=np.uint64) * np.uint64(_FACTOR)
    values = keys ^ np.uint64(_MASK)
    edges = np.linspace(0, n, CHUNKS + 1).astype(int).tolist()
    for first, end in pairwise(edges):
        table.insert(keys[first:end], values[first:end], assume_unique=True)
    found_values, found = table.find(keys)
    return int((~found | (found_values != values)).sum()) + abs(len(table) - n)
