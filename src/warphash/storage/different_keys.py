"""Keys for tables that are measured, such as `calibrate` and `tickets.threshold` fill."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["different_keys"]


def different_keys(n: int, word_bytes: int, seed: int) -> npt.NDArray[Any]:
    """Different keys: of 4 bytes, a permutation of numbers in a row times an odd number; wider keys are random."""
    if word_bytes == 4:
        return np.random.default_rng(seed).permutation(np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B1))
    return np.random.default_rng(seed).integers(0, 1 << 64, (n, word_bytes // 8), np.uint64)
