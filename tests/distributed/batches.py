"""Keys of all ranks, which each rank makes alike, and so knows those of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

SIZES = {
    "empty": (0, 0, 0),
    "one row": (0, 1, 0),
    "uneven": (0, 700, 41),
    "even": (400, 400, 400),
}
KEYS = ("int64", "uint32", "float64", "S", "rows")


def keys_of(kind: str, sizes: tuple[int, ...], seed: int, distinct: int = 120, *, heavy: bool = False) -> list[Any]:
    """The keys of each rank.

    Parameters
    ----------
    kind
        One of `KEYS`. Floating-point numbers have NaN and both zeros; strings have other widths on each rank; ``rows``
        are rows of three int16.
    heavy
        One key has nine tenths of the rows.
    """
    chance = np.random.default_rng(seed)
    made = []
    for n in sizes:
        numbers = chance.integers(0, distinct, n)
        if heavy:
            numbers[chance.random(n) < 0.9] = 5
        made.append(key_array(kind, numbers, chance))
    return made


def key_array(kind: str, numbers: npt.NDArray[np.int64], chance: np.random.Generator) -> Any:
    if kind == "float64":
        keys = numbers / 4
        keys[numbers == 7] = np.nan
        return np.where(numbers == 0, np.where(chance.random(len(numbers)) < 0.5, 0.0, -0.0), keys)
    if kind == "S":
        return np.array([b"k" * (number % 5) + str(number).encode() for number in numbers.tolist()], "S")
    if kind == "rows":
        return np.stack([numbers, -numbers % 9, numbers // 3], 1).astype(np.int16)
    return (numbers * 1_000_003 % (1 << 31)).astype(kind)


def plain(keys: Any) -> list[Any]:
    """Keys as objects of Python that are equal if the keys are; NaN is None, and a row a tuple."""
    items = np.asarray(keys).tolist()
    return [None if item != item else tuple(item) if isinstance(item, list) else item for item in items]
