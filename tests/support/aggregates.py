"""What plain Python says about the values of a group."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from .relational import canonical

__all__ = ["ORACLES", "as_shown", "place"]


def is_nan(item: Any) -> bool:
    return bool(item != item)


def wrapped(number: int, like: str) -> int:
    """An integer modulo 2^64, of a type like that of the values."""
    low = number % 2**64
    return low if like == "u" or low < 2**63 else low - 2**64


def added(items: Sequence[Any], kind: str) -> Any:
    if kind != "f":
        return wrapped(sum(map(int, items)), kind)
    total = 0.0
    for item in items:
        total += float(item)
    return total


def multiplied(items: Sequence[Any], kind: str) -> Any:
    if kind != "f":
        return wrapped(math.prod(map(int, items)), kind)
    total = 1.0
    for item in items:
        total *= float(item)
    return total


def mean(items: Sequence[Any], kind: str) -> Any:
    return added([float(item) for item in items], "f") / len(items) if items else None


def squares(items: Sequence[Any], kind: str) -> Any:
    if len(items) < 2:
        return None
    center = mean(items, kind)
    distances = [float(item) - center for item in items]
    squared, left = added([distance * distance for distance in distances], "f"), added(distances, "f")
    excess = left * (left / len(items))  # the mean is rounded: distances from the exact one add up to 0
    corrected = squared - excess if math.isfinite(excess) else squared
    return (0.0 if corrected < 0 else corrected) / (len(items) - 1)


def extreme(items: Sequence[Any], is_greatest: bool) -> Any:
    """NaN before all, and -0.0 less than 0.0."""
    if any(map(is_nan, items)):
        return math.nan
    choose = max if is_greatest else min
    return choose(items, key=lambda item: (item, math.copysign(1, item)), default=None)


def place(items: Sequence[Any], is_greatest: bool) -> int | None:
    """Where the extreme first is, or a number that equals it."""
    found = extreme(items, is_greatest)
    return next((at for at, item in enumerate(items) if item == found or (is_nan(item) and is_nan(found))), None)


def median(items: Sequence[Any], kind: str) -> Any:
    if not items:
        return None
    return math.nan if any(map(is_nan, items)) else statistics.median([float(item) for item in items])


ORACLES: dict[str, Callable[[Sequence[Any], str], Any]] = {
    "count": lambda items, kind: len(items),
    "sum": added,
    "mean": mean,
    "min": lambda items, kind: extreme(items, False),
    "max": lambda items, kind: extreme(items, True),
    "any": lambda items, kind: any(map(bool, items)),
    "all": lambda items, kind: all(map(bool, items)),
    "prod": multiplied,
    "var": squares,
    "std": lambda items, kind: None if len(items) < 2 else math.sqrt(squares(items, kind)),
    "nunique": lambda items, kind: len({canonical(item) for item in items}),
    "median": median,
}
"""The answer for the values of a group that are no nulls, and the kind of their type."""


def as_shown(item: Any) -> str:
    """An answer, with the sign of a zero."""
    if item is None:
        return "null"
    if isinstance(item, bool | int):
        return str(item)
    return "nan" if is_nan(item) else repr(float(item))
