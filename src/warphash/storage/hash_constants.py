"""The constants of hash functions: what kernels are told of them, and how a table draws them."""

from __future__ import annotations

import random
from typing import Any

from ..runtime.abi import MAX_HASHES

__all__ = ["HASHES", "MAX_BUCKETS", "PRIMES", "draw_constants"]

HASHES = ("mixer", "universal")
"""Hash families, in the order of ``enum Family``."""

MAX_BUCKETS = (1 << 32) - 16
"""Buckets are numbered in 32 bits."""

PRIMES = {4: 4294967291, 8: (1 << 61) - 1}
"""Of the universal family, by the bytes of a key's word (``kernels/core/hash.cuh``)."""


def range_of(family: str, word_bytes: int) -> int:
    """Constants of a family are below this number."""
    return PRIMES[4 if word_bytes == 4 else 8] if family == "universal" else 1 << 64


def draw_constants(source: random.Random, family: str, word_bytes: int) -> dict[str, Any]:
    """``multiplier`` and ``addend`` of each function, as `abi.Table` has them."""
    end = range_of(family, word_bytes)
    return {
        "multiplier": tuple(source.randrange(1, end) for _ in range(MAX_HASHES)),
        "addend": tuple(source.randrange(end) for _ in range(MAX_HASHES)),
    }
