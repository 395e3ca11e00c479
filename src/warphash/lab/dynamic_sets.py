"""The data sets of Dynamic Hash Tables on GPUs, Table 2: pairs of 32 bits, whose keys repeat as theirs do.

A smaller run has a share of each, so that they stay in proportion; the largest one is RAND.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from .look_alikes import LOOK_ALIKES, LookAlike, normal_keys, repeated
from .workloads import Workload, make

__all__ = ["SETS", "pairs_of"]

SETS = {**LOOK_ALIKES, "line": LookAlike(50_000_000, 45_159_880, 4), "rand": LookAlike(100_000_000, 100_000_000, 1)}
"""Four are known by their counts; the keys of the fifth, ``"rand"``, are of a normal distribution.

The paper hashes keys of LINE, which are all different, to 32 bits: these are as many as were different then.
"""


def pairs_of(name: str, n: int, seed: int) -> Workload:
    """The pairs of a data set, in a run that has ``n`` of the largest.

    Parameters
    ----------
    name
        ``"random"`` for ``n`` distinct keys; one of `SETS`; or ``"hot 5"``: ``n`` pairs, of which 5 per cent have one
        key.

    Raises
    ------
    ParameterError
        If there is no such data set.
    """
    if name == "random":
        return make(n, "uint32", "uint32", seed)
    if name.startswith("hot "):
        hot = max(1, round(n * int(name.removeprefix("hot ")) / 100))
        copies = np.zeros(hot, np.int64)
        copies[0] = n - hot
        copies[-1] += 1
        return _with_copies(name, copies, seed)
    if name not in SETS:
        raise ParameterError(f"there is no data set {name!r}; there are: random, {', '.join(SETS)}, hot PERCENT")
    pairs = max(1, round(SETS[name].pairs * n / SETS["rand"].pairs))
    if name != "rand":
        return _with_copies(name, SETS[name].scaled(pairs).copies(), seed)
    keys = normal_keys(pairs, "uint32", seed).view(np.uint32)
    # All are within two deviations, which is half of all numbers: with the upper bit turned over, they are in the rest.
    return replace(make(pairs, "uint32", "uint32", seed), name=name, keys=keys, absent=keys ^ np.uint32(1 << 31))


def _with_copies(name: str, copies: npt.NDArray[np.int64], seed: int) -> Workload:
    """Random keys, of which so many come once, so many twice, and so on."""
    workload = make(int(copies @ np.arange(1, len(copies) + 1)), "uint32", "uint32", seed)
    return replace(workload, name=name, keys=repeated(workload.keys[: copies.sum()], copies, seed))
