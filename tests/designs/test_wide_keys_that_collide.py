"""Wide keys that were made to have one digest: new hash constants tell them apart."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from support.hashing import digest, subtable_buckets
from support.subtables import store_of, table_of
from support.types import Array
from warphash import TableFull
from warphash.storage.hash_constants import HASHES, PRIMES

HERE = one_of_each("cpu", "emulated", "cuda")
KEY = np.dtype("V128")
_WORD, _FACTOR = 1 << 64, 0x9FB21C651E98DF25


# ---- a digest without a constant
def rotated(x: int, bits: int) -> int:
    return (x << bits | x >> 64 - bits) % _WORD


def folded(x: int) -> int:
    """Both halves of a product."""
    product = x * _FACTOR
    return product % _WORD ^ product >> 64


def unsalted_digest(words: list[int]) -> int:
    """What once was hashed of a wide key: the same in every table."""
    x = 8 * len(words)
    for word in words:
        x = folded(x ^ word) ^ rotated(x, 29)
    return x


def keys_of_one_unsalted_digest(words: int) -> list[list[int]]:
    """Two choices for each pair of words: (f, 0) and (0, f << 29) leave the same state behind, for a small f.

    f is the exclusive or of a word and the state before. Its product folds to some bits; that of f << 29 folds to the
    same bits, rotated by 29, which is what one more word does to the state.
    """
    keys = []
    for choice in itertools.product((False, True), repeat=words // 2):
        x, key = 8 * words, []
        for pair, second in enumerate(choice):
            small = 12_345 + 2 * pair
            for factor in (0, small << 29) if second else (small, 0):
                key.append(x ^ factor)
                x = folded(factor) ^ rotated(x, 29)
        keys.append(key)
    return keys


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [2, 3])
@pytest.mark.parametrize("words", [8, 16])
@pytest.mark.parametrize("family", HASHES)
def test_keys_of_one_unsalted_digest_are_stored(device: str, family: str, words: int, subtables: int) -> None:
    """A bucket has one or two slots, and such keys shared their buckets in every table."""
    made = keys_of_one_unsalted_digest(words)[:60]
    assert len({unsalted_digest(key) for key in made}) == 1
    keys = np.array(made, np.uint64).view(f"V{8 * words}").ravel()
    table = table_of(device, keys.dtype, "u4", subtables=subtables, hash=family)
    numbers = np.arange(len(keys), dtype="u4")
    assert table.insert(keys, numbers).all()
    values, found = table.find(keys)
    assert found.all() and (values == numbers).all()
    assert table.stats().slots < 1000
    table.check()
    assert table.erase(keys[::2]).all()
    np.testing.assert_array_equal(table.contains(keys), numbers % 2 == 1)
    table.check()


# ---- a digest whose constant is known
def keys_of_one_digest(table: Any, n: int) -> Array:
    """Keys of 128 bytes that have one digest under the present constants of the table, and so the same buckets."""
    constant, prime = int(table.digest_point), PRIMES[8]
    random = np.random.default_rng(6)
    of_digest: dict[int, list[bytes]] = {}
    for second in random.integers(1 << 58, size=1000).tolist():
        # What both add to the polynomial is the same for all keys: first * point + second = 1.
        first = (1 - second) * pow(constant % (1 << 60), -1, prime) % prime
        if first < 1 << 60:
            key = (3 << 120 | second << 60 | first).to_bytes(128, "little")
            of_digest.setdefault(digest(key, constant), []).append(key)
    keys = max(of_digest.values(), key=len)[:n]
    assert len(keys) == n
    return np.frombuffer(b"".join(keys), KEY)


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [2, 3, 8])
def test_keys_of_one_digest_get_new_constants(device: str, subtables: int) -> None:
    """Where larger subtables do not help; the keys that were there before move along."""
    table = table_of(device, KEY, "u8", subtables=subtables)
    store = store_of(table)
    before = np.arange(32 * 5, dtype=np.uint64).reshape(-1, 16).copy().view(KEY).ravel()
    table.insert(before, np.arange(10, dtype=np.uint64))
    keys = keys_of_one_digest(store.table, subtables + 3)
    assert len({tuple(subtable_buckets(store, bytes(key))) for key in keys}) == 1
    assert table.insert(keys, np.arange(len(keys), dtype=np.uint64)).all()
    assert not table.insert(keys, np.arange(len(keys), dtype=np.uint64)).any()
    for held in (before, keys):
        values, found = table.find(held)
        assert found.all() and (values == np.arange(len(held))).all()
    assert table.stats().slots < 2000
    assert table.stats().rebuilds >= 1
    table.check()


@pytest.mark.parametrize("device", HERE)
def test_a_table_of_one_size_gets_new_constants_too(device: str) -> None:
    table = table_of(device, KEY, "u8", on_full="raise")
    slots = table.stats().slots
    keys = keys_of_one_digest(store_of(table).table, 6)
    assert table.insert(keys, np.arange(6, dtype=np.uint64)).all()
    assert table.contains(keys).all() and table.stats().slots == slots
    table.check()
    with pytest.raises(TableFull, match="do not fit"):
        table.insert(np.arange(16 * 200, dtype=np.uint64).reshape(-1, 16).copy().view(KEY).ravel(), np.zeros(200, "u8"))
    assert table.contains(keys).all() and len(table) == 6
    table.check()
