"""Quotient tables of all forms, made to be looked into."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from support.hashing import MIXER
from support.inside import storage_of
from support.types import Array
from warphash import HashMap, HashSet

__all__ = [
    "FORMS",
    "SLOTS",
    "add",
    "array_of",
    "check_combined",
    "entries",
    "held_locks",
    "keys_with",
    "launches",
    "made",
    "value_of",
]

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
    ("u8", "u4", 6, (1 << 18) + 300, 46),
    ("u8", "u4", 4, 600, 64),
    ("u4", "u8", 6, (1 << 18) + 300, 14),
    ("u4", "u8", 5, 1027, 22),
    ("u4", "u8", 4, 600, 32),
]

SLOTS = {(key, value): slots for key, value, slots, buckets, _ in FORMS if buckets == 600}
"""Of a bucket of a table of few buckets, by the types of keys and values."""


def made(key: str, value: str | None, slots: int, device: str = "cpu", **options: Any) -> Any:
    """A table with at least so many slots."""
    options = {"design": "quotient_cuckoo", "device": device, "seed": 5, "load_factor": 1.0, **options}
    return HashMap(key, value, capacity=slots, **options) if value else HashSet(key, capacity=slots, **options)


def value_of(keys: Any, value: Any) -> Any:
    """The values, of a type, that `add` gives to keys: the complements, cut off or zero-extended."""
    return (~keys).astype(value or keys.dtype)


def array_of(table: Any) -> Any:
    return storage_of(table).store.array


def add(table: Any, keys: Any, **options: Any) -> Any:
    """Insert keys, with the values of `value_of`."""
    values = [value_of(keys, table.value_dtype)] if isinstance(table, HashMap) else []
    return table.insert(keys, *values, **options)


def check_combined(table: Any, op: str, keys: Array, values: Array, before: dict[int, Any]) -> None:
    """Check each value: that before the batch, if its key was there, combined with those of the key's elements."""
    function: Any = {"add": np.add, "min": np.minimum, "max": np.maximum}.get(op) or getattr(np, f"bitwise_{op}")
    for key in np.unique(keys):
        there = [before[int(key)]] if int(key) in before else []
        expected = function.reduce(
            np.concatenate([np.array(there, values.dtype), values[keys == key]]), dtype=values.dtype
        )
        assert table.find(np.array([key]))[0] == expected


def launches(table: Any) -> Any:
    """A mock of the launches of a table's kernels, which launches them."""
    program = array_of(table).program
    return mock.patch.object(program, "run", side_effect=program.run)


def entries(launched: Any) -> list[str]:
    """The kernels that such a mock has seen, in order."""
    return [call.args[0] for call in launched.call_args_list]


def held_locks(table: Any) -> Any:
    """The words of the locks of a table's buckets that are not 0: there are none between two kernels."""
    array = array_of(table)
    words = array.engine.to_host(array.table.counters + 8 * array.ranges, np.uint32, -(-array.buckets // 32))
    return words[words != 0]


def keys_with(table: Any, hashes: Any) -> Any:
    """The keys of some hash values."""
    bits = 8 * hashes.itemsize
    word, x = hashes.dtype.type, hashes.copy()
    for shift, multiplier in reversed(MIXER[bits]):
        x = x * word(pow(multiplier, -1, 1 << bits))
        x = x ^ (x >> word(shift)) ^ (x >> word(2 * shift) if 2 * shift < bits else word(0))
    return x ^ word(array_of(table).table.multiplier[0] % (1 << bits))
