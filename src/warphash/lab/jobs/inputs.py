"""Inputs of the jobs, as the libraries hold them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "VOXEL",
    "K",
    "edges",
    "events",
    "ids",
    "known_users",
    "pages",
    "pairs",
    "points",
    "reads",
    "shops",
    "stream",
    "texts",
    "visits",
]

K = 21
"""Letters of a k-mer."""

VOXEL = 0.5
"""Edge of a cell of space."""

_COUNTRIES = np.array(["DE", "FR", "US", "IN", "BR", "JP", "GB", "CN"], object)
_ITEMS, _USERS = 50_000, 800_000


def _tables(**tables: dict[str, Any]) -> SimpleNamespace:
    """Tables by their names, as frames of pandas and as frames of Polars."""
    import pandas
    import polars

    frames = {name: pandas.DataFrame(columns) for name, columns in tables.items()}
    others = {name: polars.from_pandas(frame) for name, frame in frames.items()}
    return SimpleNamespace(pandas=SimpleNamespace(**frames), polars=SimpleNamespace(**others))


def _sku(item: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.object_]:
    names = np.array([f"SKU-{k:08}-{k % 97}" for k in range(_ITEMS)], object)
    made: npt.NDArray[np.object_] = names[item]
    return made


def _columns(n: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    item = random.integers(0, _ITEMS, n).astype(np.int32)
    seconds = np.sort(random.integers(1_700_000_000, 1_700_000_000 + 14 * 86_400, n))
    return {
        "user": (random.zipf(1.25, n) % _USERS) * 7919 + 10_000_000_000,
        "item": item,
        "time": seconds.astype("M8[s]").astype("M8[us]"),
        "country": _COUNTRIES[random.integers(0, len(_COUNTRIES), n)],
        "amount": np.round(random.gamma(2, 30, n), 2),
        "sku": _sku(item),
    }


def events(n: int, seed: int) -> SimpleNamespace:
    """What users bought: few users buy much."""
    return _tables(frame=_columns(n, seed))


def shops(n: int, seed: int) -> SimpleNamespace:
    """`events`, and prices of four fifths of the items."""
    random = np.random.default_rng(seed + 1)
    item = np.flatnonzero(random.random(_ITEMS) < 0.8)
    prices = {"sku": _sku(item), "price": np.round(random.gamma(3, 10, len(item)), 2)}
    return _tables(frame=_columns(n, seed), prices=prices)


def pages(n: int, seed: int) -> SimpleNamespace:
    """A part of `events`, and the countries of each item, of which most have eight."""
    import pandas

    columns = _columns(n, seed)
    right = pandas.DataFrame({name: columns[name] for name in ("item", "country")}).drop_duplicates(ignore_index=True)
    return _tables(frame={name: columns[name][: n // 16] for name in ("user", "item")}, right=dict(right))


def known_users(n: int, seed: int) -> SimpleNamespace:
    """`events`, and a third of the users."""
    columns, random = _columns(n, seed), np.random.default_rng(seed + 1)
    users = np.unique(columns["user"])
    return _tables(frame=columns, known={"user": random.choice(users, len(users) // 3, replace=False)})


def visits(n: int, seed: int) -> SimpleNamespace:
    """The users and times of `events`, in the order of time."""
    columns = _columns(n, seed)
    made = _tables(frame=columns)
    return SimpleNamespace(
        user=columns["user"], time=columns["time"], pandas=made.pandas.frame, polars=made.polars.frame
    )


def edges(n: int, seed: int) -> SimpleNamespace:
    """Pairs of nodes with names of 64 bits."""
    random = np.random.default_rng(seed)
    names = random.integers(0, 2**63, max(2, n // 8), np.uint64)
    return SimpleNamespace(edges=names[np.minimum(random.zipf(1.4, (n, 2)), len(names)) - 1])


def texts(n: int, seed: int) -> SimpleNamespace:
    """Texts of 20 to 200 letters, of which a third is there before."""
    import pandas
    import polars
    import pyarrow

    random, distinct = np.random.default_rng(seed), max(1, 2 * n // 3)
    ends = np.cumsum(random.integers(20, 201, distinct))
    letters = random.integers(97, 123, int(ends[-1]), np.uint8)
    offsets = pyarrow.py_buffer(np.concatenate(([0], ends)))
    pool = pyarrow.Array.from_buffers(pyarrow.large_string(), distinct, [None, offsets, pyarrow.py_buffer(letters)])
    chosen = np.concatenate((np.arange(distinct), random.integers(0, distinct, n - distinct)))
    column = pool.take(pyarrow.array(random.permutation(chosen)))
    return SimpleNamespace(pyarrow=column, polars=polars.from_arrow(column), pandas=pandas.Series(column.to_pandas()))


def reads(n: int, seed: int) -> SimpleNamespace:
    """The k-mers of a sequence of DNA, two bits for each letter."""
    import polars

    letters = np.random.default_rng(seed).integers(0, 4, n + K - 1).astype(np.uint64)
    kmers = np.zeros(n, np.uint64)
    for at in range(K):
        kmers = kmers << np.uint64(2) | letters[at : at + n]
    kmers[n // 2 :] = kmers[: n - n // 2]  # each is there twice
    return SimpleNamespace(kmers=kmers, polars=polars.Series(kmers))


def points(n: int, seed: int) -> SimpleNamespace:
    """Points of a scanner."""
    return SimpleNamespace(points=(np.random.default_rng(seed).normal(0, 1, (n, 3)) * [20, 20, 2]).astype(np.float32))


def stream(n: int, seed: int) -> SimpleNamespace:
    """Keys that come in batches of 10,000, and how many of the last are remembered."""
    random = np.random.default_rng(seed)
    keys = (random.zipf(1.2, n) % 3_000_000 + random.integers(0, 3, n) * 10_000_000).astype(np.int64)
    return SimpleNamespace(batches=np.array_split(keys, 500), kept=min(100_000, max(1, n // 10)))


def ids(n: int, seed: int) -> SimpleNamespace:
    """The users of `events`, in batches."""
    return SimpleNamespace(batches=np.split(_columns(n, seed)["user"], range(4096, n, 4096)))


def pairs(n: int, seed: int) -> SimpleNamespace:
    """Pairs of distinct keys, and a tenth of the keys."""
    random = np.random.default_rng(seed)
    keys = random.permutation(np.unique(random.integers(0, 2**63, n)))
    values = random.integers(0, 2**40, len(keys))
    return SimpleNamespace(keys=keys, values=values, asked=random.choice(keys, n // 10))
