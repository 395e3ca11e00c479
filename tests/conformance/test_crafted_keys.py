"""Keys made by somebody who knows the source of every hash and not the seed of the table: they cost what others cost.

Work is counted, never timed: buckets that a lookup reads, and places in the index of strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import design_names
from support.hashing import MIXER, unmixed, unshifted
from support.inside import storage_of
from support.types import Array, distinct_keys
from warphash.arrays.strings import rows_of
from warphash.runtime.devices import engine_for
from warphash.storage.hash_constants import PRIMES
from warphash.storage.strings.string_table import StringTable

MOST_TIMES_RANDOM = 3
SEEDS = range(20, 22)
N = 1024

DESIGNS = [name for name in design_names() if name != "tiered"]  # its home is a table of another design
CONSTANTS = [0x9FB21C651E98DF25, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x9E3779B97F4A7C15, 0, (1 << 64) - 1]
"""Numbers that hashes multiply by, or once did, and those without a bit."""


def crafted_numbers(key: str) -> Iterator[tuple[str, Array]]:
    """Sets of `N` keys, by name: each makes the work of some step of a hash useless, or gives it little to work on."""
    numbers, bits = np.arange(N).astype(key), 8 * np.dtype(key).itemsize
    word = numbers.dtype.type
    first, factor = MIXER[bits][0]
    inverse = word(pow(factor, -1, 1 << bits))
    for shift in range(0, bits - 10, bits // 6):
        few = numbers << word(shift)
        yield f"few bits from {shift}", few
        yield f"alike but for the bits from {shift} behind the first shift", unshifted(few, first)
        yield f"alike but for the bits from {shift} behind the first product", unshifted(few * inverse, first)
        yield f"alike but for the bits from {shift} behind the product, without a shift", few * inverse
        yield f"alike but for the bits from {shift} of the hash under a constant of 0", unmixed(few)
        yield f"alike but for the bits from {shift} behind the shifts of a round", unshifted(few, 8)
    yield "halves that cancel each other", numbers << word(bits // 2) | numbers
    yield "multiples of the golden ratio", numbers * word(0x9E3779B97F4A7C15 % (1 << bits))
    prime = PRIMES[bits // 8]
    residues = ((1 << bits) - 3) // prime
    yield "congruent modulo the prime", np.array([i // residues + i % residues * prime for i in range(N)], key)


@pytest.mark.parametrize("key", ["u4", "u8"])
@pytest.mark.parametrize("design", DESIGNS)
def test_crafted_numbers_cost_what_random_ones_cost(design: str, key: str) -> None:
    ordinary = buckets_read(design, key, None)
    assert ordinary >= 1
    for name, keys in crafted_numbers(key):
        assert len(np.unique(keys)) == N
        assert buckets_read(design, key, keys) <= MOST_TIMES_RANDOM * ordinary, name


def buckets_read(design: str, key: str, keys: Array | None) -> float:
    """Buckets that a lookup of a key reads, on average over keys and seeds; of random keys by default."""
    read = []
    for seed in SEEDS:
        table = warphash.HashSet(key, design=design, device="cpu", seed=seed, capacity=N)
        given = distinct_keys(np.dtype(key), N, np.random.default_rng(seed)) if keys is None else keys
        table.insert(given)
        read.append(table.probe_counts(given).mean())
    return float(np.mean(read))


# ---- rows and strings
def rows_of_words(*columns: Any) -> Array:
    """Keys of words of 8 bytes, uint64[N, words]; a column is a word of all keys, or a word of each."""
    words = np.empty((N, len(columns)), "<u8")
    for at, column in enumerate(columns):
        words[:, at] = column
    return words


def crafted_rows(words: int) -> Iterator[tuple[str, Array]]:
    """Sets of keys of so many words, by name: constants of a hash where they could hide the other words."""
    numbers = np.arange(N, dtype="<u8")
    drawn = np.random.default_rng(words).integers(0, 1 << 63, (words, N)).astype("<u8")
    for constant, at in product(CONSTANTS, {0, 1, words - 1}):
        alone: list[Any] = [*drawn]
        alone[at] = constant
        yield f"{constant:#x} in word {at}", rows_of_words(*alone)
        beside: list[Any] = [1] * words
        beside[(at + 1) % words], beside[at] = drawn[at], constant
        yield f"{constant:#x} in word {at}, and any number beside it", rows_of_words(*beside)
    # A product does not tell its factors apart. If both had one secret in them, these had one product.
    three, five = np.uint64(3), np.uint64(5)
    for first, second in product(CONSTANTS[:3], repeat=2):
        exchanged = rows_of_words(*[0] * words)
        for pair in range(words // 2):
            turned = (numbers >> np.uint64(pair) & np.uint64(1)).astype(bool)
            exchanged[:, 2 * pair] = np.where(turned, five, three) ^ np.uint64(first)
            exchanged[:, 2 * pair + 1] = np.where(turned, three, five) ^ np.uint64(second)
        exchanged[:, 0] += (numbers >> np.uint64(words // 2)) << np.uint64(8)
        yield f"factors exchanged under {first:#x} and {second:#x}", exchanged
    for shift, at in product((0, 20, 52), (0, words - 1)):
        few: list[Any] = [7] * words
        few[at] = numbers << np.uint64(shift)
        yield f"few bits from {shift} in word {at}", rows_of_words(*few)


@pytest.mark.parametrize("words", [2, 3, 12])
@pytest.mark.parametrize("design", ["bucketed_cuckoo", "dynamic_cuckoo", "stadium"])
def test_crafted_rows_cost_what_random_ones_cost(design: str, words: int) -> None:
    """Rows behind fingerprints, and rows in the slots, which are found by their digests."""

    def buckets_read(rows: Array, seed: int) -> float:
        keys = rows.view(f"V{8 * words}").ravel()
        table = warphash.HashSet(keys.dtype, design=design, device="cpu", seed=seed, capacity=N)
        assert table.insert(keys).sum() == len(table)
        return float(table.probe_counts(keys).mean())

    ordinary = buckets_read(np.random.default_rng(1).integers(0, 1 << 63, (N, words)).astype("<u8"), 20)
    for number, (name, rows) in enumerate(crafted_rows(words)):
        assert buckets_read(rows, 20 + number % 2) <= MOST_TIMES_RANDOM * ordinary, name


def places_read(strings: list[bytes]) -> float:
    """Places of the index that a lookup of a string reads, on average."""
    table = StringTable(engine_for("cpu"), 5)
    given, numbers = rows_of(strings, False), np.empty(len(strings), np.uint32)
    table.intern(given.rows.ctypes.data, len(strings), numbers.ctypes.data)
    assert table.used == len(set(strings))
    bits = table._state.bits
    slots = engine_for("cpu").to_host(table._state.slots.ptr, np.uint64, 1 << bits)
    at = np.flatnonzero(slots)
    homes = (slots[at] >> np.uint64(64 - bits)).astype(np.int64)
    return float(((at - homes) % (1 << bits)).mean()) + 1


@pytest.mark.parametrize("tail", [b"", b"abc", b"12345678"], ids=len)
@pytest.mark.parametrize("words", [1, 2, 3, 6, 7, 12, 16])
def test_crafted_strings_cost_what_random_ones_cost(words: int, tail: bytes) -> None:
    """Of one block of the hash, of two, and of more; whole words, and words that overlap those before them."""
    random = np.random.default_rng(1).integers(0, 1 << 63, (N, words)).astype("<u8")
    ordinary = places_read([row.tobytes() + tail for row in random])
    for name, rows in crafted_rows(words) if words > 1 else one_word():
        assert places_read([row.tobytes() + tail for row in rows]) <= MOST_TIMES_RANDOM * ordinary, name


def one_word() -> Iterator[tuple[str, Array]]:
    for name, keys in crafted_numbers("u8"):
        yield name, keys.reshape(N, 1)


def test_short_strings_and_strings_of_one_letter_cost_what_random_ones_cost() -> None:
    numbers = range(N)
    sets = {
        "7 bytes of a constant and a number": [
            constant.to_bytes(8, "little")[:4] + number.to_bytes(3, "little")
            for constant in CONSTANTS
            for number in numbers
        ],
        "two letters": [bytes(pair) for pair in product(range(256), repeat=2)][:N],
        "one letter of any length": [b"a" * length for length in numbers],
        "zeros of any length": [bytes(length) for length in numbers],
        "a number before zeros of any length": [
            number.to_bytes(8, "little") + bytes(number % 60) for number in numbers
        ],
    }
    for name, strings in sets.items():
        random = np.random.default_rng(1).integers(0, 1 << 63, len(strings)).astype("<u8")
        assert places_read(strings) <= MOST_TIMES_RANDOM * places_read([row.tobytes() for row in random]), name


@pytest.mark.parametrize("kind", ["bytes", "multi", "set", "bounded", "nulls"])
def test_tables_of_strings_have_one_index(kind: str) -> None:
    """What was slow by the constant of a hash, in each kind of table: work as that of others, counted in the index."""
    rows = [CONSTANTS[0].to_bytes(8, "little") + number.to_bytes(8, "little") + b"1" * 32 for number in range(N)]
    values = np.arange(N, dtype="u4")
    table: Any
    if kind == "set":
        table = warphash.HashSet("bytes", device="cpu", seed=1)
        table.insert(rows)
    elif kind == "multi":
        table = warphash.MultiMap("bytes", "u4", device="cpu", seed=1)
        table.insert(rows, values)
    else:
        options: dict[str, Any] = {"bounded": {"max_size": 2 * N, "evict": "lfu"}, "nulls": {"nulls": "key"}}.get(
            kind, {}
        )
        table = warphash.HashMap("bytes", "u4", device="cpu", seed=1, **options)
        table.insert(rows, values)
    index = storage_of(table).strings
    bits = index._state.bits
    slots = engine_for("cpu").to_host(index._state.slots.ptr, np.uint64, 1 << bits)
    at = np.flatnonzero(slots)
    homes = (slots[at] >> np.uint64(64 - bits)).astype(np.int64)
    assert len(table) == N and ((at - homes) % (1 << bits)).mean() < 4
