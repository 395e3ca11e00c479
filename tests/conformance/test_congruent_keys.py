"""Keys that are congruent modulo the prime of the universal family: every design has a place for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from support.engines import one_of_each
from support.types import Array
from warphash import HashMap
from warphash.designs import registry
from warphash.storage.hash_constants import HASHES, PRIMES

SMALLEST_BUCKETS: dict[str, list[dict[str, Any]]] = {
    "cuckoo": [{"hashes": 2}, {"hashes": 3}, {"hashes": 4}],
    "bucketed_cuckoo": [{"slots_per_bucket": 8, "hashes": 2}],
    "power_of_two": [{"slots_per_bucket": 8}],
    "iceberg": [{"slots_per_bucket": 8}],
    "linear_probing": [{"slots_per_bucket": 1, "probe_limit": 32}],
    "dynamic_cuckoo": [{"subtables": 2}],
}
"""The parameters of a design with which a key has the fewest slots; the defaults where there are none."""

ONE_OF_EACH_FAMILY = ("cuckoo", "slab", "dynamic_cuckoo", "stadium", "two_level_cuckoo", "quotient_cuckoo")
TABLES = [
    pytest.param(design, parameters, id="-".join([design, *(f"{name}={value}" for name, value in parameters.items())]))
    for design in design_names()
    for parameters in SMALLEST_BUCKETS.get(design, [{}])
]


def congruent(key_bytes: int) -> dict[str, list[int]]:
    """Sets of keys, by name, that are congruent; or, of 4 bytes, pairs of such keys."""
    prime, end = PRIMES[key_bytes], 1 << 8 * key_bytes
    if key_bytes == 4:
        return {"all pairs": [key for low in range(end - prime) for key in (low, low + prime)]}
    return {
        "all multiples": [number * prime for number in range(9)],
        "eight of a residue": [12_345 + number * prime for number in range(8)],
        "up to the last key": [7 + number * prime for number in range(9)],
    }


SETS = [
    pytest.param(np.array(keys, f"u{key_bytes}"), id=f"u{key_bytes}-{name}".replace(" ", "-"))
    for key_bytes in (4, 8)
    for name, keys in congruent(key_bytes).items()
]


def crossed() -> list[Any]:
    """Every table with every set of keys; on any day, few on the emulated engine, which compiles for each of them."""
    marked = []
    for device in one_of_each("cpu", "emulated", "cuda"):
        for keys in SETS:
            for family in HASHES:
                for table in TABLES:
                    few = table.values[0] in ONE_OF_EACH_FAMILY and family == "universal" and keys is SETS[1]
                    slow = device.values[0] == "emulated" and not few
                    case = pytest.param(
                        *(value for given in (table, keys, device) for value in given.values),
                        family,
                        id="-".join([*(str(given.id or given.values[0]) for given in (table, keys, device)), family]),
                        marks=[*device.marks, *[pytest.mark.slow] * slow],
                    )
                    marked.append(case)
    return marked


def holds(table: HashMap, keys: Array) -> bool:
    """Whether the table holds each of the keys with the key itself as its value."""
    values, found = table.find(keys)
    return bool(found.all() and (values == keys).all())


@pytest.mark.parametrize(("design", "parameters", "keys", "device", "family"), crossed())
def test_congruent_keys_have_a_place(
    design: str, parameters: dict[str, Any], keys: Array, device: str, family: str, rng: np.random.Generator
) -> None:
    """In an empty table, and beside as many others as the design is safe for."""
    safe = registry.get(design).safe_load_factor(registry.get(design).resolve(parameters))
    others = rng.integers(1 << 20, 1 << 30, 300 if device == "cpu" else 60).astype(keys.dtype)
    others = np.unique(others)
    for before, load_factor in ((others[:0], None), (others, min(safe, 1.0))):
        capacity = max(1, len(before))
        options: dict[str, Any] = {"device": device, "hash": family, "seed": 3, "capacity": capacity, **parameters}
        table = HashMap(keys.dtype, keys.dtype, design=design, load_factor=load_factor, **options)
        table.insert(before, before)
        assert table.insert(keys, keys).all()
        assert not table.insert(keys, keys).any()
        assert holds(table, keys) and holds(table, before)
        assert len(table) == len(keys) + len(before)
        table.check()
        assert table.erase(keys[::2]).all()
        np.testing.assert_array_equal(table.contains(keys), np.arange(len(keys)) % 2 == 1)
        assert holds(table, before)
        table.check()
