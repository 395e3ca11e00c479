"""Inputs of the operations: their shapes, and the tables that are drawn for a shape."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import isqrt

import numpy as np

from ..data.workloads import random_keys
from .base import Array, Op, OpsConfig, Shape, Table

__all__ = [
    "TINY_ROWS",
    "keys",
    "lookups",
    "pairs",
    "pairs_and_lookups",
    "shapes",
    "sides",
    "sides_with_repeats",
    "strings",
    "two_columns",
]

TINY_ROWS = 10
"""Rows of a call that is mostly overhead."""

_DISTINCT = (1_000, 100_000, 1_000_000)


def shapes(op: Op, config: OpsConfig) -> Iterator[Shape]:
    """The shapes that an operation is measured with: 1,000 distinct keys and more, and last a tiny call."""
    rows = min(config.rows, op.most_rows)
    counts = [*(count for count in _DISTINCT if count < rows), rows]
    for spread in op.spreads:
        for hit_share in op.hit_shares:
            yield from (Shape(rows, count, spread, hit_share) for count in counts)
    if rows > TINY_ROWS:
        yield Shape(TINY_ROWS, TINY_ROWS // 2, op.spreads[0], op.hit_shares[0])


def keys(shape: Shape, config: OpsConfig) -> tuple[Table, ...]:
    """One column of keys. Each distinct key appears equally often, give or take one."""
    present, _ = _pools(shape, config)
    return ({"key": present[_places(shape, config)]},)


def strings(shape: Shape, config: OpsConfig) -> tuple[Table, ...]:
    """One column of strings of 6 to 21 characters."""
    present, _ = _pools(shape, config)
    words = present.view(f"u{present.itemsize}").tolist()
    pool = np.array([f"user-{word:x}" for word in words], object)
    return ({"key": pool[_places(shape, config)]},)


def two_columns(shape: Shape, config: OpsConfig) -> tuple[Table, ...]:
    """Two columns of keys. The pairs of a row are what is distinct: a value of one column appears in many pairs."""
    present, _ = _pools(shape, config)
    places, width = _places(shape, config), isqrt(shape.distinct - 1) + 1
    return ({"first": present[places // width], "second": present[places % width]},)


def lookups(shape: Shape, config: OpsConfig) -> tuple[Table, ...]:
    """Keys to look up, and the distinct keys that they are looked up in."""
    present, absent = _pools(shape, config)
    rng = np.random.default_rng(config.seed + 1)
    return {"key": _asked(shape, shape.rows, present, absent, rng)}, {"key": rng.permutation(present)}


def pairs(shape: Shape, config: OpsConfig) -> tuple[Table, ...]:
    """Keys that repeat, each with the number of its row as the value."""
    (table,) = keys(shape, config)
    return ({**table, "value": np.arange(shape.rows)},)


def pairs_and_lookups(shape: Shape, config: OpsConfig) -> tuple[Table, ...]:
    """`pairs`, and keys to look up: as many as there are distinct ones, so the answer is no larger than the pairs."""
    present, absent = _pools(shape, config)
    rng = np.random.default_rng(config.seed + 1)
    return *pairs(shape, config), {"key": _asked(shape, shape.distinct, present, absent, rng)}


def sides(shape: Shape, config: OpsConfig) -> tuple[Table, ...]:
    """`lookups` as the sides of a join, each with the numbers of its rows."""
    left, right = lookups(shape, config)
    return {**left, "left": np.arange(len(left["key"]))}, {**right, "right": np.arange(len(right["key"]))}


def sides_with_repeats(shape: Shape, config: OpsConfig) -> tuple[Table, ...]:
    """`sides`, but each key comes twice on the right."""
    left, right = sides(shape, config)
    keys = np.random.default_rng(config.seed + 2).permutation(np.repeat(right["key"], 2))
    return left, {"key": keys, "right": np.arange(len(keys))}


def _pools(shape: Shape, config: OpsConfig) -> tuple[Array, Array]:
    """The distinct keys, and as many others."""
    count = shape.distinct
    if shape.spread == "dense":
        both = np.arange(2 * count, dtype=config.key)
    else:
        both = random_keys(2 * count, config.key, config.seed)
    return both[:count], both[count:]


def _places(shape: Shape, config: OpsConfig) -> Array:
    """The place in the pool of each row's key."""
    return _shuffled_places(shape.rows, shape.distinct, config.seed)


@lru_cache(maxsize=len(_DISTINCT) + 2)
def _shuffled_places(rows: int, distinct: int, seed: int) -> Array:
    """Kept for the operations to come: all of them have inputs of the same shapes, and a shuffle takes a second."""
    places = np.random.default_rng(seed).permutation(np.arange(rows) % distinct)
    places.flags.writeable = False
    return places


def _asked(shape: Shape, n: int, present: Array, absent: Array, rng: np.random.Generator) -> Array:
    """Keys to look up, of which a share is present."""
    hits = rng.random(n) < (shape.hit_share or 0.0)
    places = rng.integers(0, shape.distinct, n)
    return np.where(hits, present[places], absent[places])
