"""The constants of hash functions: what kernels are told of them, and how a table draws them."""

from __future__ import annotations

import random
from typing import Any

from ..errors import ParameterError
from ..runtime.abi import MAX_HASHES

__all__ = ["HASHES", "MAX_BUCKETS", "PRIMES", "buckets_for", "draw_constants", "inverse_of"]

HASHES = ("mixer", "universal")
"""Hash families, in the order of ``enum Family``."""

MAX_BUCKETS = (1 << 32) - 16
"""Buckets are numbered in 32 bits."""

_WORD = (1 << 64) - 1

PRIMES = {4: 4294967291, 8: (1 << 61) - 1}
"""Of the universal family, by the bytes of a key's word (``kernels/core/hash.cuh``)."""


def buckets_for(slots: int, slots_per_bucket: int) -> int:
    """Buckets that have at least so many slots.

    Raises
    ------
    ParameterError
        If there are more than can be numbered.
    """
    buckets = max(1, -(-slots // slots_per_bucket))
    if buckets > MAX_BUCKETS:
        raise ParameterError(
            f"a table has at most {MAX_BUCKETS:,} buckets, and {slots:,} slots of {slots_per_bucket} a bucket "
            f"make {buckets:,}: use more slots a bucket, a smaller capacity or a greater load_factor"
        )
    return buckets


def range_of(family: str, word_bytes: int) -> int:
    """Constants of a family are below this number."""
    return PRIMES[4 if word_bytes == 4 else 8] if family == "universal" else 1 << 64


def draw_constants(source: random.Random, family: str, word_bytes: int) -> dict[str, Any]:
    """``multiplier`` and ``addend`` of each function, as `abi.Table` has them."""
    end = range_of(family, word_bytes)
    multipliers = [1 + number for number in _below(end - 1, source)]
    return {"multiplier": tuple(multipliers), "addend": tuple(_below(end, source))}


def inverse_of(odd: int) -> int:
    """The number whose product with an odd one is 1 in 64 bits.

    By Newton's method, in a seventh of the time that ``pow`` takes: each step doubles the number of right bits, and
    the first guess has five (Warren, Hacker's Delight, section 10-16).
    """
    inverse = 3 * odd ^ 2
    for _ in range(4):
        inverse = inverse * (2 - odd * inverse) & _WORD
    return inverse


def _below(end: int, source: random.Random) -> list[int]:
    """Draw a number below ``end`` for each function: those of ``randrange``, without its checks and calls."""
    bits, draw = end.bit_length(), source.getrandbits
    numbers: list[int] = []
    while len(numbers) < MAX_HASHES:
        if (number := draw(bits)) < end:
            numbers.append(number)
    return numbers
