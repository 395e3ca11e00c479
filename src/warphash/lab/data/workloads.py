"""Workloads: the pairs that a table is built from, and the keys that are looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError

__all__ = [
    "Array",
    "Workload",
    "distinct",
    "first_of_each",
    "key_type",
    "make",
    "of_keys",
    "queries",
    "random_keys",
    "ranks",
    "scrambled",
]

Array = npt.NDArray[Any]
Key = TypeVar("Key", bound=np.generic)


@dataclass(frozen=True)
class Workload:
    """Keys, a value for each key (None for a set), and absent keys."""

    name: str
    keys: Array
    values: Array | None
    absent: Array

    @property
    def pair_bytes(self) -> int:
        """Bytes of a key with its value."""
        return self.keys.itemsize + (0 if self.values is None else self.values.itemsize)


def key_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A type of random keys, checked.

    Raises
    ------
    ParameterError
        If the type is not an integer of 4 or 8 bytes.
    """
    kind = np.dtype(dtype)
    if kind.kind not in "iu" or kind.itemsize not in (4, 8):
        raise ParameterError(f"keys of a random workload are integers of 4 or 8 bytes, got {kind}")
    return kind


def random_keys(n: int, dtype: npt.DTypeLike, seed: int, arrays: Any = np) -> Any:
    """``n`` distinct keys, uniform over all values of an integer type of 4 or 8 bytes, in random order.

    ``arrays`` is NumPy or CuPy; the keys are the same.
    """
    kind = key_type(dtype)
    if kind.itemsize == 4 and n > 1 << 31:
        raise ParameterError(f"{n:,} distinct keys of 4 bytes leave too few absent ones: take 8-byte keys")
    # A bijection maps consecutive numbers to keys, so the keys are distinct without a check for repeats.
    word = np.dtype(f"uint{8 * kind.itemsize}").type
    first = np.random.default_rng(seed).integers(0, 1 << 62, dtype=np.uint64).astype(word)
    return scrambled(arrays.arange(n, dtype=word) + first).view(kind)


def scrambled(words: Any) -> Any:
    """Apply a bijection to an array of unsigned words, in place. The array may be of another library than NumPy."""
    word: Any = np.dtype(words.dtype).type
    bits = 8 * np.dtype(words.dtype).itemsize
    for constant in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F):
        words *= word(constant & (2**bits - 1))
        words ^= words >> word(bits // 2)
    return words


def distinct(keys: npt.NDArray[Key]) -> npt.NDArray[Key]:
    """The distinct keys of an array, sorted. For 5 million keys, ``np.unique`` took 18 times as long: it hashes."""
    ordered = np.sort(keys)
    return np.asarray(ordered[first_of_each(ordered)])


def first_of_each(ordered: Any, arrays: Any = np) -> Any:
    """Which elements of a sorted array differ from the one before. ``arrays`` is its module."""
    first = arrays.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def make(n: int, key: npt.DTypeLike, value: npt.DTypeLike | None, seed: int) -> Workload:
    """A random workload of ``n`` keys."""
    both = random_keys(2 * n, key, seed)
    return Workload("random", both[:n], _values(n, value, seed), both[n:])


def of_keys(name: str, keys: Array, value: npt.DTypeLike | None, seed: int) -> Workload:
    """A workload of given keys. The absent keys are random keys that are not among them."""
    candidates = random_keys(min(2 * len(keys) + 64, 1 << 31), keys.dtype, seed)
    absent = candidates[~np.isin(candidates, distinct(keys), assume_unique=True)][: len(keys)]
    return Workload(name, keys, _values(len(keys), value, seed), absent)


def queries(
    workload: Workload, present_share: float, n: int, seed: int, exponent: float = 0.0
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Draw ``n`` keys to look up, of which a share is present. Return the keys, and which of them are present.

    The present keys follow Zipf's law with ``exponent``; with an exponent of 0, all are equally likely.
    """
    rng = np.random.default_rng(seed)
    expected = rng.random(n) < present_share if 0 < present_share < 1 else np.full(n, bool(present_share))
    asked = np.empty(n, workload.keys.dtype)
    there = int(expected.sum())
    if exponent:
        drawn: Array = ranks(rng.random(there), exponent, len(workload.keys))
    else:
        drawn = rng.integers(0, len(workload.keys), there)
    asked[expected] = workload.keys[drawn]
    asked[~expected] = workload.absent[rng.integers(0, len(workload.absent), n - there)]
    return asked, expected


def ranks(uniform: Any, exponent: float, n: int, arrays: Any = np) -> Any:
    """Ranks from 0 to n - 1 that follow Zipf's law, uint64, of uniform numbers between 0 and 1. The rank of 0 is 0.

    A rank of probability about (r + 1)^-exponent comes from a uniform number by the inverse of the continuous
    distribution between 1 and n + 1.
    """
    if abs(exponent - 1) < 1e-9:
        rank = arrays.exp(uniform * np.log(n + 1.0))
    else:
        power = 1 - exponent
        rank = (uniform * ((n + 1.0) ** power - 1) + 1) ** (1 / power)
    return arrays.minimum(rank, n).astype(np.uint64) - np.uint64(1)


def _values(n: int, dtype: npt.DTypeLike | None, seed: int) -> Array | None:
    if dtype is None:
        return None
    kind = np.dtype(dtype)
    raw = np.random.default_rng(seed + 1).integers(0, 1 << 31, n, dtype=np.uint32)
    return raw.astype(kind)
