"""Keys lie in the buckets that the description of the hash functions says, in Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from support.hashing import digest, first_buckets, subtable_buckets, universal
from support.inside import storage_of
from support.types import Array
from warphash import HashMap, HashSet
from warphash.storage.hash_constants import HASHES, PRIMES, inverse_of

HERE = one_of_each("cpu", "emulated", "cuda")


def keys_of(key_bytes: int, rng: np.random.Generator) -> Array:
    """Random keys, and those around the multiples of the prime."""
    prime, most = PRIMES[key_bytes], (1 << 8 * key_bytes) - 4
    around = [number * prime + step for number in range(most // prime + 1) for step in (-1, 0, 1, 5)]
    drawn = rng.integers(0, most, 60, np.uint64).tolist()
    return np.unique(np.array([key for key in (*around, *drawn, most) if 0 <= key <= most], f"u{key_bytes}"))


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("key_bytes", [4, 8])
@pytest.mark.parametrize("family", HASHES)
def test_keys_lie_in_their_first_buckets(family: str, key_bytes: int, device: str, rng: np.random.Generator) -> None:
    keys = keys_of(key_bytes, rng)
    options: dict[str, Any] = {"design": "bucketed_cuckoo", "slots_per_bucket": 8, "capacity": 5000}
    table = HashSet(keys.dtype, hash=family, device=device, seed=2, **options)
    assert table.insert(keys).all()
    store = storage_of(table).store.array  # type: ignore[attr-defined]
    slots = store.engine.to_host(store.table.slots, np.uint8, store.nbytes).view(keys.dtype)
    buckets = slots[: store.buckets * 8].reshape(store.buckets, 8)
    assert all(key in buckets[bucket] for key, bucket in zip(keys, first_buckets(store, keys), strict=True))


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("key_bytes", [16, 32, 64, 128])
@pytest.mark.parametrize("family", HASHES)
def test_wide_keys_lie_in_the_buckets_of_their_digests(
    family: str, key_bytes: int, device: str, rng: np.random.Generator
) -> None:
    rows = rng.integers(0, 256, (40, key_bytes), np.uint8)
    rows[:10, 8:] = 0
    keys = rows.view(f"V{key_bytes}").ravel()
    table = HashMap(keys.dtype, "u4", design="dynamic_cuckoo", hash=family, device=device, seed=2, capacity=100)
    assert table.insert(keys, np.arange(40, dtype="u4")).all()
    store: Any = storage_of(table).store.array
    slots = store.spec.slots_per_bucket
    lines = [
        store.engine.to_host(subtable.memory.ptr, np.uint8, subtable.buckets * 128).reshape(-1, slots, key_bytes)
        for subtable in store.current.subtables[:-1]
    ]
    for row in rows:
        places = zip(lines, subtable_buckets(store, row.tobytes()), strict=True)
        assert sum((subtable[bucket] == row).all(axis=1).sum() for subtable, bucket in places) == 1


def test_the_universal_family_tells_all_keys_apart() -> None:
    """Congruent keys of 8 bytes, under any constants; 4-byte keys have the paper's function."""
    prime, random = PRIMES[8], np.random.default_rng(8)
    for a, b in random.integers(1, prime, (50, 2)).tolist():
        for low in (0, 1, 7, prime - 1):
            keys = range(low, (1 << 64) - 3, prime)
            assert len({universal(key, a, b, 8) for key in keys}) == len(keys) >= 8
        assert universal(prime - 1, a, b, 8) == (a * (prime - 1) + b) % prime
    for key in (0, 1, 4_294_967_290, 4_294_967_291, 4_294_967_295):
        assert universal(key, 17, 23, 4) == (17 * key + 23) % PRIMES[4]


def test_digests_differ_where_one_bit_does() -> None:
    random = np.random.default_rng(9)
    for key_bytes in (16, 32, 64, 128):
        key = int.from_bytes(random.bytes(key_bytes), "little")
        constant = int(random.integers(1 << 63))
        flipped = [key, *(key ^ 1 << bit for bit in range(8 * key_bytes))]
        assert len({digest(x.to_bytes(key_bytes, "little"), constant) for x in flipped}) == len(flipped)


def test_the_inverse_of_an_odd_number() -> None:
    numbers = np.random.default_rng(1).integers(0, 1 << 64, 1000, np.uint64, endpoint=False).tolist()
    for odd in (1, 3, (1 << 64) - 1, *(number | 1 for number in numbers)):
        assert 0 < inverse_of(odd) < 1 << 64 and odd * inverse_of(odd) % (1 << 64) == 1
