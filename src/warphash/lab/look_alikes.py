"""Keys that repeat as those of data sets that are not public: so many pairs, unique keys, and copies of the commonest.

Source: Dynamic Hash Tables on GPUs, Table 2. The paper does not tell how many keys have how many copies; here
each further copy is as likely as the one before, as far as the numbers allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from .workloads import distinct, key_type, random_keys

__all__ = ["LOOK_ALIKES", "LookAlike", "keys_of", "normal_keys", "repeated"]

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LookAlike:
    """Pairs of a data set, unique keys among them, and copies of the most frequent one."""

    pairs: int
    unique: int
    most_copies: int

    def scaled(self, pairs: int) -> LookAlike:
        """The same with fewer pairs, and keys that repeat as often."""
        unique = max(1, round(self.unique * pairs / self.pairs))
        return LookAlike(pairs, max(unique, -(-pairs // self.most_copies)), self.most_copies)

    def copies(self) -> Counts:
        """How many keys there are of one copy, of two, and so on.

        Raises
        ------
        ParameterError
            If no such keys exist.
        """
        most, unique, extra = self.most_copies, self.unique, self.pairs - self.unique
        if not 0 <= extra <= unique * (most - 1):
            raise ParameterError(
                f"{unique:,} keys of up to {most} copies are {unique:,} to {unique * most:,} pairs, not {self.pairs:,}"
            )
        shares = _geometric(extra / unique, most)
        counts = np.floor(shares * unique).astype(np.int64)
        if extra >= most - 1 and counts[-1] == 0:
            counts[-1] = 1  # the most frequent key
        # What rounding left over goes where it makes both sums right: first the keys, then the pairs.
        counts[0] += unique - int(counts.sum())
        missing = extra - int((counts * np.arange(most)).sum())
        step = 1 if missing > 0 else -1
        for source in range(most - 1) if missing > 0 else range(most - 1, 0, -1):
            moved = min(abs(missing), max(0, int(counts[source]) - (source == most - 1)))
            counts[source] -= moved
            counts[source + step] += moved
            missing -= step * moved
        return counts


LOOK_ALIKES = {
    "tw": LookAlike(50_876_784, 44_523_684, 4),
    "re": LookAlike(48_104_875, 41_466_682, 2),
    "com": LookAlike(10_000_000, 4_583_941, 14),
}
"""Of Twitter, Reddit and the customers of Alibaba. The paper's LINE is TPC-H's (`datasets`), its RAND `normal_keys`."""


def keys_of(name: str, n: int | None, dtype: npt.DTypeLike, seed: int) -> npt.NDArray[np.generic]:
    """Keys of a look-alike, in random order: all of them, or ``n``."""
    full = LOOK_ALIKES[name]
    wanted = full if n is None else full.scaled(min(n, full.pairs))
    copies = wanted.copies()
    return repeated(random_keys(wanted.unique, dtype, seed), copies, seed)


def repeated(keys: npt.NDArray[np.generic], copies: Counts, seed: int) -> npt.NDArray[np.generic]:
    """The first ``copies[0]`` keys once, the next ``copies[1]`` twice, and so on; in random order."""
    found = np.repeat(keys, np.repeat(np.arange(1, len(copies) + 1), copies))
    np.random.default_rng(seed).shuffle(found)
    return found


def normal_keys(n: int, dtype: npt.DTypeLike, seed: int) -> npt.NDArray[np.generic]:
    """``n`` distinct keys of a normal distribution around the middle of what a type holds, in random order: RAND."""
    kind = key_type(dtype)
    bits = 8 * kind.itemsize
    if n > 1 << (bits - 3):
        raise ParameterError(f"{n:,} distinct keys of a normal distribution are too many for {kind}")
    rng = np.random.default_rng(seed)
    drawn = np.empty(0, np.int64)
    while len(drawn) < n:
        deviations = rng.standard_normal(n + n // 4 + 64)
        within = deviations[np.abs(deviations) < 2]
        drawn = distinct(np.concatenate([drawn, np.rint(within * 2.0 ** (bits - 3)).astype(np.int64)]))
    rng.shuffle(drawn)
    middle = 0 if kind.kind == "i" else 1 << (bits - 1)
    return (drawn[:n].astype(np.uint64) + np.uint64(middle)).astype(kind)


def _geometric(mean: float, most: int) -> npt.NDArray[np.float64]:
    """Shares of 0 to ``most - 1`` further copies, each as likely as the one before, with this mean."""
    further = np.arange(most)
    low, high = 0.0, 1e6
    for _ in range(200):
        ratio = (low + high) / 2
        weights = ratio ** (further - (most - 1 if ratio > 1 else 0.0))
        low, high = (ratio, high) if (weights @ further) / weights.sum() < mean else (low, ratio)
    return np.asarray(weights / weights.sum())
