"""The data sets of Dynamic Hash Tables on GPUs, Table 2: 32-bit keys and values, with the paper's counts of repeats.

A smaller run takes the same share of each data set, so the sets stay in proportion. RAND is the largest set.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError
from .datasets import hashed_line
from .look_alikes import LOOK_ALIKES, LookAlike, normal_keys, repeated
from .workloads import Workload, make, of_keys

__all__ = ["SETS", "pairs_of"]

SETS = {**LOOK_ALIKES, "line": LookAlike(50_000_000, 45_159_880, 4), "rand": LookAlike(100_000_000, 100_000_000, 1)}
"""The five data sets. Four have the counts of the paper's sets; the keys of ``"rand"`` have a normal distribution.

The keys of ``"line"`` are those of TPC-H (`datasets.hashed_line`), as in the paper, which hashes them to 32 bits, too.
They repeat as often as Table 2 says, though the hashes of 50 million keys would repeat less often.
"""


def pairs_of(name: str, n: int, seed: int) -> Workload:
    """The pairs of a data set, in a run that takes ``n`` pairs of the largest set.

    Parameters
    ----------
    name
        ``"random"`` for ``n`` distinct keys; one of `SETS`; or ``"hot 5"`` for ``n`` pairs of which 5 per cent share
        one key.

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
    if name == "line":
        copies = SETS[name].scaled(pairs).copies()
        return of_keys(name, repeated(hashed_line(int(copies.sum())), copies, seed), "uint32", seed)
    if name != "rand":
        return _with_copies(name, SETS[name].scaled(pairs).copies(), seed)
    keys = normal_keys(pairs, "uint32", seed).view(np.uint32)
    # All keys lie within two deviations, which span half of all numbers. Flipping the upper bit moves a key into the
    # other half, so the flipped keys are absent.
    return replace(make(pairs, "uint32", "uint32", seed), name=name, keys=keys, absent=keys ^ np.uint32(1 << 31))


def _with_copies(name: str, copies: npt.NDArray[np.int64], seed: int) -> Workload:
    """Random keys: ``copies[0]`` of them occur once, ``copies[1]`` twice, and so on."""
    workload = make(int(copies @ np.arange(1, len(copies) + 1)), "uint32", "uint32", seed)
    return replace(workload, name=name, keys=repeated(workload.keys[: copies.sum()], copies, seed))
