"""Compute hash values in Python: ``core/hash.cuh`` and ``core/wide.cuh`` written again from their descriptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warphash.storage.hash_constants import PRIMES

__all__ = ["MIXER", "digest", "first_buckets", "permuted", "subtable_buckets", "universal", "unmixed", "unshifted"]

MIXER = {
    32: ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)),
    64: ((32, 0xD6E8FEB86659FD93),) * 2 + ((32, 1),),
}
"""Shifts and factors of ``mix``, by the bits of a word."""

_WORD = 1 << 64


def mixed(x: int, bits: int) -> int:
    """Apply the bijective mixer."""
    for shift, factor in MIXER[bits]:
        x = (x ^ x >> shift) * factor & (1 << bits) - 1
    return x


def unshifted(x: npt.NDArray[Any], shift: int) -> npt.NDArray[Any]:
    """Undo ``x ^= x >> shift``."""
    y = x
    for _ in range(8 * x.itemsize // shift):
        y = x ^ (y >> x.dtype.type(shift))
    return y


def unmixed(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Undo the bijective mixer: the keys of some hash values, under a constant of 0."""
    bits = 8 * x.itemsize
    for shift, factor in reversed(MIXER[bits]):
        x = unshifted(x * x.dtype.type(pow(factor, -1, 1 << bits)), shift)
    return x


def permuted(array: Any, keys: Any) -> Any:
    """The hash values of keys in a quotient table under the mixer (``kernels/quotient/permutation.cuh``)."""
    bits = 8 * keys.itemsize
    x = keys ^ keys.dtype.type(array.table.multiplier[0] % (1 << bits))
    for shift, factor in MIXER[bits]:
        x = (x ^ (x >> keys.dtype.type(shift))) * keys.dtype.type(factor)
    return x


def universal(key: int, a: int, b: int, key_bytes: int) -> int:
    """The hash value of a key in the universal family. For keys of 8 bytes, remainder and quotient both count."""
    prime = PRIMES[key_bytes]
    quotient, remainder = divmod(key, prime)
    return (a * remainder + b * (quotient + 1 if key_bytes == 8 else 1)) % prime


def digest(key: bytes, constant: int) -> int:
    """The 64-bit digest of a wide key: a polynomial whose coefficients have 60 bits of the key each, low bits first."""
    point, prime = constant % (1 << 60), PRIMES[8]
    bits = int.from_bytes(key, "little")
    x = 0
    for at in range(0, 8 * len(key), 60):
        product = x * point
        x = (product % _WORD & prime) + (product >> 61) + (bits >> at) % (1 << 60)
    assert x < _WORD
    return x


def first_buckets(store: Any, keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The first bucket of each key of 4 or 8 bytes in a `storage.buckets.array.BucketArray`."""
    return buckets_under(store, keys, 0)


def buckets_under(store: Any, keys: npt.NDArray[Any], function: int) -> npt.NDArray[np.int64]:
    """The bucket of each key under one of the hash functions of a `storage.buckets.array.BucketArray`."""
    bits, table = 8 * keys.itemsize, store.table
    a, b = int(table.multiplier[function]), int(table.addend[function])
    if store.family == "universal":
        buckets = [universal(key, a, b, keys.itemsize) % store.buckets for key in keys.tolist()]
    else:
        buckets = [mixed(key ^ a % (1 << bits), bits) * store.buckets >> bits for key in keys.tolist()]
    return np.array(buckets, np.int64)


def subtable_buckets(store: Any, key: bytes) -> list[int]:
    """The bucket of a wide key in each subtable of a `storage.subtables.store.SubtableArray`."""
    table, buckets = store.table, []
    hashed = digest(key, int(table.digest_point))
    for number, size in enumerate(store.sizes):
        salt, addend = int(table.salts[number]), int(table.addend[number % len(table.addend)])
        in_universal = universal(hashed, salt, addend, 8) << 3
        value = in_universal if store.family == "universal" else mixed(hashed ^ salt, 64)
        buckets.append(value * size >> 64)
    return buckets
