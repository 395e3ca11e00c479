"""Prime numbers of slots."""

from __future__ import annotations

__all__ = ["next_prime"]

_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Bases of the Miller-Rabin test, which is exact with them below 3.3 * 10**24 (Sorenson and Webster, 2015)."""


def next_prime(n: int) -> int:
    """The smallest prime number that is not less than ``n``."""
    candidate = max(2, n)
    while not _is_prime(candidate):
        candidate += 1
    return candidate


def _is_prime(n: int) -> bool:
    """Whether ``n``, at least 2, is prime."""
    for prime in _WITNESSES:
        if n % prime == 0:
            return n == prime
    odd, halvings = n - 1, 0
    while odd % 2 == 0:
        odd, halvings = odd // 2, halvings + 1
    for witness in _WITNESSES:
        x = pow(witness, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(halvings - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True
