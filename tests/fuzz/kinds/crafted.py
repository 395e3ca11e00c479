"""Keys that are crafted from the published source of the hashes.

With a known seed, keys are made that share their hash values or buckets under the first constants: a table takes them
while there is memory. Without the seed, keys are made of the constants in the sources, and of patterns: a table does
no more than a few times the work that it does for random keys.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import warphash
from fuzz.example import Example, require
from warphash import HashMap, HashSet, TableFull
from warphash.storage.hash_constants import PRIMES, draw_constants

Words = Any

MIXER = {4: ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)), 8: ((32, 0xD6E8FEB86659FD93),) * 2 + ((32, 1),)}
"""Shifts and factors of the mixer, by the bytes of a word."""

MOST_WORK = 20
"""Times the work for random keys. Floods take hundreds of times as much; a busy machine adds to either."""


def run(example: Example) -> None:
    example.choose_design()
    example.choose([_for_a_seed, _for_a_seed, _patterns, _strings])(example)


# ---- the seed is known


def _for_a_seed(example: Example) -> None:
    seed, width, family = example.between(0, 9), example.choose([4, 8]), example.choose(["mixer", "mixer", "universal"])
    n = example.choose([300, 3000])
    capacity = example.choose([n, 20 * n, 1_000_000])
    function = example.between(0, 3)
    table: Any = HashSet(f"u{width}", design=example.design, capacity=capacity, seed=seed, hash=family, device="cpu")
    drawn = draw_constants(random.Random(seed), family, width)
    a, b = drawn["multiplier"][function], drawn["addend"][function]
    if family == "mixer":
        hashes = np.arange(n, dtype=f"u{width}") * example.choose([1, 1, 3]) + example.choose([0, 1000])
        keys = _unmixed(hashes.astype(f"u{width}"), width) ^ np.dtype(f"u{width}").type(a % (1 << 8 * width))
    else:
        keys = _with_multiples(table.stats().slots, a, b, n, width)
    example.note(f"{len(keys)} u{width} keys for function {function} of seed {seed}, {family}, capacity {capacity}")
    _insert(table, keys)


def _unmixed(hashes: Words, width: int) -> Words:
    """The words whose mix is given."""
    word, bits, x = hashes.dtype.type, 8 * width, hashes.copy()
    with np.errstate(over="ignore"):
        for shift, factor in reversed(MIXER[width]):
            x = x * word(pow(factor, -1, 1 << bits))
            x = x ^ (x >> word(shift)) ^ (x >> word(2 * shift) if 2 * shift < bits else word(0))
    return x


def _with_multiples(buckets: int, a: int, b: int, n: int, width: int) -> Words:
    """Keys whose universal hashes are multiples of a number of buckets: all of one bucket."""
    prime = PRIMES[width]
    inverse = pow(a, -1, prime)
    keys = {(j * buckets - b) * inverse % prime for j in range(n)}
    return np.array(sorted(keys), np.uint64).astype(f"u{width}")


def _insert(table: Any, keys: Words) -> None:
    try:
        table.insert(keys)
    except TableFull as error:
        require(False, "keys are refused though there is memory", error)
    require(len(table) == len(np.unique(keys)) and table.contains(keys).all(), "crafted keys are lost")


# ---- the seed is not known


@cache
def _constants() -> list[int]:
    """All constants of 64 bits in the sources of the kernels."""
    folder = Path(warphash.__file__).parent / "kernels"
    text = "".join(path.read_text() for path in sorted(folder.rglob("*.cuh")))
    found = {int(digits, 16) for digits in re.findall(r"0x([0-9a-fA-F]{12,16})(?:u|\b)", text)}
    return sorted(found)


def _patterns(example: Example) -> None:
    """Numbers and wide rows in patterns."""
    n = 4000
    shapes: dict[str, Callable[[], Words]] = {
        "stride": lambda: np.arange(n, dtype="u8") << np.uint64(example.between(0, 50)),
        "multiples of a prime": lambda: np.arange(1, n + 1, dtype="u8") * np.uint64(PRIMES[example.choose([4, 8])]),
        "multiples of a constant": lambda: np.arange(1, n + 1, dtype="u8") * np.uint64(example.choose(_constants())),
        "near a constant": lambda: np.arange(n, dtype="u8") ^ np.uint64(example.choose(_constants())),
        "unmixed": lambda: _unmixed(np.arange(n, dtype="u8"), 8),
    }
    name, width = example.choose(sorted(shapes)), example.choose([4, 8, 16, 96, 128])
    with np.errstate(over="ignore"):
        words = shapes[name]()
    keys = _rows(example, words, width)
    example.note(f"{n} keys of {width} bytes: {name}")
    table: Any = HashSet(keys.dtype, design=example.design, device="cpu")
    _insert(table, keys)
    other: Any = HashSet(keys.dtype, design=example.design, device="cpu")
    other.insert(_rows(example, example.rng.integers(0, 2**63, n).astype("u8"), width))
    work, usual = (float(np.mean(each.probe_counts(each.keys()))) for each in (table, other))
    require(work <= 3 * usual + 2, "patterns of keys take more probes", f"{work:.1f}, and {usual:.1f} for random keys")


def _rows(example: Example, words: Words, width: int) -> Words:
    """Words as keys of a width: alone, or behind and before constants."""
    if width <= 8:
        return np.unique(words.astype(f"u{width}"))
    row = np.zeros((len(words), width // 8), "u8")
    row[:] = example.choose(_constants()) if example.happens(0.7) else 0
    row[:, example.between(0, width // 8 - 1)] = words
    return row.view(f"V{width}").ravel()


def _strings(example: Example) -> None:
    """Strings that are a constant of the sources again and again, but for one word or two."""
    is_set = example.happens(0.5)
    for _ in range(12):
        words = example.choose([2, 4, 6, 6, 12])
        constant = example.choose(_constants())
        free = [example.between(0, words - 1) for _ in range(example.choose([1, 1, 2]))]
        if _ratio(example, words, constant, free, 3000, is_set) > MOST_WORK / 4:  # which may be chance
            ratio = _ratio(example, words, constant, free, 10_000, is_set)
            detail = f"words {free} of {words} differ, the others are {constant:#x}: {ratio:.0f} times as long"
            require(ratio < MOST_WORK, "crafted strings take more work", detail)


def _ratio(example: Example, words: int, constant: int, free: list[int], n: int, is_set: bool) -> float:
    """How many times as long an insert of crafted strings takes as one of random strings."""
    times = []
    for is_crafted in (False, True, False, True):
        rows = example.rng.integers(0, 2**63, (n, words)).astype("u8")
        if is_crafted:
            rows[:, [at for at in range(words) if at not in free]] = constant
        keys = [row.tobytes() for row in rows]
        table: Any = HashSet("bytes", device="cpu") if is_set else HashMap("bytes", "u4", device="cpu")
        begun = time.process_time()
        table.insert(keys, *([] if is_set else [np.arange(n, dtype="u4")]))
        times.append(time.process_time() - begun)
    return min(times[1::2]) / min(times[::2])
