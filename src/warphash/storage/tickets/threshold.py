"""The load factor from which collaborating lanes insert faster than lanes on their own, measured on a device.

Source: Stadium Hashing, section III-C, Stash+clStash Hybrid, and Figure 13.

Procedure. A table is filled with random pairs, in chunks of one size, up to a load factor near 1: once by Stash, once
by clStash. The time of each chunk is the least of a few rounds. The difference of the two times, as a function of the
load factor, is fitted by a polynomial of the second order. The threshold is the larger of its roots within the range,
behind which clStash is faster. The number is kept beside the compiled kernels (`Engine.remember`), so another device,
another compiler or other kernels have no number until they are measured.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..batch import Batch
from ..different_keys import different_keys
from .array import TicketArray
from .lanes import collaborating

__all__ = ["ALWAYS", "NEVER", "FillTimes", "calibrate", "crossing", "time_chunks"]

ALWAYS, NEVER = 0.0, 2.0
"""Thresholds of a device on which one way is faster at all load factors."""

Floats = npt.NDArray[np.float64]


class FillTimes(NamedTuple):
    """Seconds that each chunk took, by the load factor in the middle of the chunk."""

    load_factors: Floats
    stash: Floats
    clstash: Floats


def time_chunks(
    array: TicketArray, pairs: int, load_factor: float, chunks: int = 50, rounds: int = 3, seed: int = 1
) -> FillTimes:
    """Fill tables like ``array`` by Stash and by clStash, and take the time of each chunk.

    Raises
    ------
    MemoryError
        If there is no memory for a table of ``pairs`` pairs, and for as many pairs beside it.
    """
    engine, spec, each = array.engine, array.spec, pairs // chunks
    keys = engine.from_host(different_keys(each * chunks, spec.word_bytes, seed))
    values = engine.allocate(max(1, each * chunks * spec.value_word_bytes))
    slots = int(each * chunks / load_factor)
    tables = {lanes: array.like(lanes, slots) for lanes in ("stash", "clstash")}
    best = {lanes: np.full(chunks, np.inf) for lanes in tables}
    for _ in range(rounds):
        for lanes, table in tables.items():
            table.clear()
            for chunk in range(chunks):
                first = chunk * each
                engine.synchronize()
                start = perf_counter()
                at_values = values.ptr + first * spec.value_word_bytes if spec.value_word_bytes else 0
                table.update(Batch(keys.ptr + first * spec.word_bytes, at_values, each, unique=True), size=first)
                best[lanes][chunk] = min(best[lanes][chunk], perf_counter() - start)
    middles = (np.arange(chunks) + 0.5) * each / tables["stash"].slots
    return FillTimes(middles, best["stash"], best["clstash"])


def crossing(times: FillTimes) -> float:
    """The load factor from which clStash is faster, by a fit of the second order; `ALWAYS` or `NEVER` if there is none.

    "We interpolated the timing difference plot via a second order polynomial regression and introduced the second
    in-the-range root as the hybrid threshold."
    """
    fit = np.polynomial.Polynomial.fit(times.load_factors, times.stash - times.clstash, 2)
    roots = [float(root.real) for root in fit.roots() if abs(root.imag) < 1e-9]
    within = sorted(root for root in roots if 0 < root < times.load_factors[-1])
    if within and fit.deriv()(within[-1]) > 0:
        return within[-1]
    return ALWAYS if fit(times.load_factors).mean() > 0 else NEVER


def calibrate(array: TicketArray, pairs: int = 1 << 26, load_factor: float = 0.95) -> float:
    """Measure the threshold of tables like ``array``, and keep it for tables that are made from now on."""
    threshold = crossing(time_chunks(array, pairs, load_factor))
    array.engine.remember(collaborating(array.spec), threshold)
    return threshold
