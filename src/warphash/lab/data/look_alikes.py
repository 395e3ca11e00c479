"""Look-alikes of data sets that are not public: random keys with the same counts of pairs, unique keys and copies.

Source: Dynamic Hash Tables on GPUs, Table 2. The paper does not say how many keys have how many copies. Here, the
number of copies has a geometric distribution, as far as the counts allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError
from .workloads import distinct, key_type, random_keys

__all__ = ["LOOK_ALIKES", "LookAlike", "keys_of", "normal_keys", "repeated"]

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LookAlike:
    """Numbers of a data set: pairs, unique keys, and copies of the most frequent key."""

    pairs: int
    unique: int
    most_copies: int

    def scaled(self, pairs: int) -> LookAlike:
        """The same data set with fewer pairs. Keys repeat as often as before."""
        unique = max(1, round(self.unique * pairs / self.pairs))
        return LookAlike(pairs, max(unique, -(-pairs // self.most_copies)), self.most_copies)

    def copies(self) -> Counts:
        """Number of keys that occur once, twice, and so on.

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
        # Correct both sums after the rounding: first the number of keys, then the number of pairs.
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
"""Counts of Twitter, Reddit and the customers of Alibaba. `datasets` has the paper's LINE, from TPC-H; `normal_keys`
makes the paper's RAND."""


def keys_of(name: str, n: int | None, dtype: npt.DTypeLike, seed: int) -> npt.NDArray[np.generic]:
    """Keys of a look-alike, in random order: ``n`` of them, or all."""
    full = LOOK_ALIKES[name]
    wanted = full if n is None else full.scaled(min(n, full.pairs))
    copies = wanted.copies()
    return repeated(random_keys(wanted.unique, dtype, seed), copies, seed)


def repeated(keys: npt.NDArray[np.generic], copies: Counts, seed: int) -> npt.NDArray[np.generic]:
    """Repeat the first ``copies[0]`` keys once, the next ``copies[1]`` twice, and so on. Shuffle the result."""
    found = np.repeat(keys, np.repeat(np.arange(1, len(copies) + 1), copies))
    np.random.default_rng(seed).shuffle(found)
    return found


def normal_keys(n: int, dtype: npt.DTypeLike, seed: int) -> npt.NDArray[np.generic]:
    """``n`` distinct keys in random order, from a normal distribution around the middle of the type's range (RAND)."""
    kind = key_type(dtype)
    bits = 8 * kind.itemsize
    if n > 1 << (bits - 3):
        raise ParameterError(f"{n:,} distinct keys of a normal distribution are too many for {kind}")
    rng = np.random.default_rng(seed)
    drawn = np.empty(0, f"i{kind.itemsize}")
    while len(drawn) < n:
        deviations = rng.standard_normal(n + n // 4 + 64)
        within = deviations[np.abs(deviations) < 2]
        drawn = distinct(np.concatenate([drawn, np.rint(within * 2.0 ** (bits - 3)).astype(drawn.dtype)]))
    rng.shuffle(drawn)
    middle = 0 if kind.kind == "i" else 1 << (bits - 1)
    return (drawn[:n].astype(np.uint64) + np.uint64(middle)).astype(kind)


def _geometric(mean: float, most: int) -> npt.NDArray[np.float64]:
    """A geometric distribution with a given mean, cut off: the shares of keys with 0 to ``most - 1`` further copies."""
    further = np.arange(most)
    low, high = 0.0, 1e6
    for _ in range(200):
        ratio = (low + high) / 2
        weights = ratio ** (further - (most - 1 if ratio > 1 else 0.0))
        low, high = (ratio, high) if (weights @ further) / weights.sum() < mean else (low, ratio)
    return np.asarray(weights / weights.sum())
