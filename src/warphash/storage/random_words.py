"""Random words for samples.

NumPy loads its own generators when a program first names them. That import takes memory, which a verb may not find, and
fails then with an ImportError.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), section 5: SplitMix64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["random_words"]

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def random_words(n: int, seed: int) -> npt.NDArray[np.uint64]:
    """``n`` random words of 64 bits: the same ones for the same seed."""
    words = np.arange(seed % (1 << 32), seed % (1 << 32) + n, dtype=np.uint64)
    words *= np.uint64(_STEP)
    words ^= words >> np.uint64(30)
    words *= np.uint64(_FIRST)
    words ^= words >> np.uint64(27)
    words *= np.uint64(_SECOND)
    words ^= words >> np.uint64(31)
    return words
