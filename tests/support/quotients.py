"""Quotient tables of all forms, made to be looked into."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.hashing import MIXER
from warphash import HashMap, HashSet

__all__ = ["FORMS", "add", "array_of", "held_locks", "keys_with", "made"]

FORMS = [  # type of keys, type of values, slots of a bucket, buckets, bits of a remainder
    ("u4", "u4", 10, (1 << 18) + 300, 14),
    ("u4", None, 30, (1 << 18) + 300, 14),
    ("u4", "u4", 9, 1027, 22),
    ("u4", None, 20, 1027, 22),
    ("u4", "u4", 7, 600, 32),
    ("u4", None, 14, 600, 32),
    ("u8", "u8", 4, (1 << 18) + 300, 46),
    ("u8", None, 10, (1 << 18) + 300, 46),
    ("u8", "u8", 3, 600, 64),
    ("u8", None, 7, 600, 64),
]


def made(key: str, value: str | None, slots: int, device: str = "cpu", **options: Any) -> Any:
    """A table with at least so many slots."""
    options = {"design": "quotient_cuckoo", "device": device, "seed": 5, "load_factor": 1.0, **options}
    return HashMap(key, value, capacity=slots, **options) if value else HashSet(key, capacity=slots, **options)


def array_of(table: Any) -> Any:
    return table._storage.store.array


def add(table: Any, keys: Any, **options: Any) -> Any:
    """Insert keys; the value of a key is its complement."""
    return table.insert(keys, ~keys, **options) if isinstance(table, HashMap) else table.insert(keys, **options)


def held_locks(table: Any) -> Any:
    """The words of the locks of a table's buckets that are not 0: there are none between two kernels."""
    array = array_of(table)
    words = array.engine.to_host(array._locks, np.uint32, -(-array.buckets // 32))
    return words[words != 0]


def keys_with(table: Any, hashes: Any) -> Any:
    """The keys of some hash values."""
    bits = 8 * hashes.itemsize
    word, x = hashes.dtype.type, hashes.copy()
    for shift, multiplier in reversed(MIXER[bits]):
        x = x * word(pow(multiplier, -1, 1 << bits))
        x = x ^ (x >> word(shift)) ^ (x >> word(2 * shift) if 2 * shift < bits else word(0))
    return x ^ word(array_of(table).table.multiplier[0] % (1 << bits))
