"""Random words that NumPy and CuPy draw alike, so that a workload is the same wherever it is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .workloads import first_of_each

__all__ = ["RandomWords", "mixed"]

_GOLDEN = 0x9E3779B97F4A7C15
"""The step of SplitMix64's counter: 2^64 over the golden ratio."""


class RandomWords:
    """A stream of random words of 64 bits: SplitMix64, whose words follow from their number in the stream.

    Parameters
    ----------
    seed
        Streams of different seeds begin far apart.
    arrays
        NumPy or CuPy. The words are in its arrays.
    """

    def __init__(self, seed: int, arrays: Any = np) -> None:
        self.arrays = arrays
        self._next = int(mixed(np.array([seed], np.uint64))[0])

    def words(self, n: int) -> Any:
        """The next ``n`` words."""
        numbers = self.arrays.arange(n, dtype=np.uint64)
        numbers += np.uint64(self._next)
        numbers *= np.uint64(_GOLDEN)
        self._next = (self._next + n) % (1 << 64)
        return mixed(numbers)

    def below(self, bound: int, n: int) -> Any:
        """``n`` integers from 0 to ``bound`` - 1, int64. ``bound`` is at most 2^32."""
        return ((self.words(n) >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)

    def shuffled(self, ids: Any) -> Any:
        """The distinct integers of an array that is not empty, in random order.

        The sort is by random words. Copies have the same word, so they end up side by side.
        """
        order = self.arrays.argsort(mixed(ids.astype(np.uint64) + self.words(1)))
        ordered = ids[order]
        return ordered[first_of_each(ordered, self.arrays)]


def mixed(x: Any) -> Any:
    """Apply the finalizer of SplitMix64 to an array of 64-bit words, in place. It is a bijection."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return x
