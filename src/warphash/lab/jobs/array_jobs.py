"""Jobs with arrays and with tables that stay: nodes, ids, texts, k-mers, sessions, voxels, streams, files."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import warphash

from . import inputs
from .base import Job
from .inputs import VOXEL

__all__ = ["ARRAY_JOBS"]

_GAP = np.timedelta64(30, "m")


# ---- dense numbers for the nodes of a graph
def _renumber(x: Any) -> Any:
    return warphash.factorize(x.edges)


def _renumber_numpy(x: Any) -> Any:
    nodes, codes = np.unique(x.edges, return_inverse=True)
    return codes, nodes


def _renumber_pandas(x: Any) -> Any:
    import pandas

    codes, nodes = pandas.factorize(x.edges.ravel())
    return codes.reshape(x.edges.shape), nodes


# ---- texts that were not there before
def _texts(x: Any) -> Any:
    return warphash.unique(x.pyarrow)


def _texts_pyarrow(x: Any) -> Any:
    return x.pyarrow.unique()


def _texts_polars(x: Any) -> Any:
    return x.polars.unique(maintain_order=True)


def _texts_pandas(x: Any) -> Any:
    return x.pandas.drop_duplicates()


# ---- k-mers
def _kmers(x: Any) -> Any:
    return warphash.value_counts(x.kmers, sort=False)[1]


def _kmers_numpy(x: Any) -> Any:
    return np.unique(x.kmers, return_counts=True)[1]


def _kmers_polars(x: Any) -> Any:
    return x.polars.value_counts()["count"]


# ---- sessions: the visits of a user that lie less than half an hour apart
def _sessions(x: Any) -> Any:
    offsets, rows = warphash.group_by(x.user).rows()
    begins = np.diff(x.time[rows], prepend=x.time[:1]) > _GAP
    begins[offsets[:-1]] = True
    return begins.sum()


def _sessions_pandas(x: Any) -> Any:
    before = x.pandas.groupby("user", sort=False)["time"].shift()
    return ((x.pandas["time"] - before > _GAP) | before.isna()).sum()


def _sessions_polars(x: Any) -> Any:
    import polars as pl

    gap = pl.col("time") - pl.col("time").shift().over("user")
    return x.polars.select((gap > pl.duration(minutes=30)).fill_null(True).sum()).item()


# ---- voxels: the mean of the points in each cell of space
def _voxels(x: Any) -> Any:
    cells = tuple(np.floor(x.points / VOXEL).astype(np.int32).T)
    made = warphash.group_by(cells).agg(**{name: (x.points[:, at], "mean") for at, name in enumerate("xyz")})
    return np.column_stack([made[name] for name in "xyz"])


def _voxels_numpy(x: Any) -> Any:
    cell = np.floor(x.points / VOXEL).astype(np.int64) + (1 << 20)
    _, row, count = np.unique(cell @ [1 << 42, 1 << 21, 1], return_inverse=True, return_counts=True)
    return np.column_stack([np.bincount(row, x.points[:, at]) / count for at in range(3)])


def _voxels_polars(x: Any) -> Any:
    import polars as pl

    frame, cells = (
        pl.DataFrame(x.points, schema=["x", "y", "z"]),
        [(pl.col(a) / VOXEL).floor().alias(f"v{a}") for a in "xyz"],
    )
    return frame.group_by(cells).agg(pl.col("x", "y", "z").mean()).select("x", "y", "z").to_numpy()


# ---- which of a stream were among the last, by when they were used
def _last(x: Any) -> Any:
    seen, again = warphash.HashSet("int64", max_size=x.kept, evict="lru"), 0
    for batch in x.batches:
        again += len(batch) - int(seen.insert(batch).sum())
    return again


def _last_python(x: Any) -> Any:
    seen: OrderedDict[int, None] = OrderedDict()
    again = 0
    for key in (key for batch in x.batches for key in batch.tolist()):
        if key in seen:
            seen.move_to_end(key)
            again += 1
        else:
            seen[key] = None
            if len(seen) > x.kept:
                seen.popitem(last=False)
    return again


# ---- dense rows for ids that become known as batches come, as `warphash.torch.IdMap` gives them
def _ids(x: Any) -> Any:
    known = warphash.HashMap("int64", "int64")
    return [known.number(batch)[0] for batch in x.batches]


def _ids_python(x: Any) -> Any:
    known: dict[int, int] = {}
    return [np.array([known.setdefault(key, len(known)) for key in batch.tolist()]) for batch in x.batches]


# ---- pairs in a file, some of which are looked up when it is opened again
def _file(x: Any) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder, "pairs.table")
        with warphash.HashMap("int64", "int64", design="stadium", memory=path, device="cpu") as pairs:
            pairs.insert(x.keys, x.values)
        with warphash.HashMap.open(path, device="cpu") as pairs:
            return pairs.find(x.asked)[0]


def _file_saved(x: Any) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder, "pairs.table")
        warphash.HashMap.from_arrays(x.keys, x.values).save(path)
        return warphash.HashMap.load(path).find(x.asked)[0]


def _file_polars(x: Any) -> Any:
    import polars as pl

    with TemporaryDirectory() as folder:
        path, asked = Path(folder, "pairs.parquet"), pl.DataFrame({"key": x.asked})
        pl.DataFrame({"key": x.keys, "value": x.values}).write_parquet(path)
        return asked.join(pl.read_parquet(path), on="key", how="left", maintain_order="left")["value"]


def _file_python(x: Any) -> Any:
    import sqlite3

    with TemporaryDirectory() as folder:
        path = Path(folder, "pairs.db")
        with closing(sqlite3.connect(path)) as pairs, pairs:
            pairs.execute("create table pairs (key integer primary key, value integer)")
            pairs.executemany("insert into pairs values (?, ?)", zip(x.keys.tolist(), x.values.tolist(), strict=True))
        with closing(sqlite3.connect(path)) as pairs:
            find = "select value from pairs where key = ?"
            return [pairs.execute(find, (key,)).fetchone()[0] for key in x.asked.tolist()]


def _read_texts(answer: Any) -> tuple[int, int, int]:
    texts = answer.to_pylist() if hasattr(answer, "to_pylist") else answer.to_list()
    return len(texts), len(set(texts)), sum(map(len, texts))


def _codes_fit(answer: Any) -> tuple[Any, int, int]:
    codes, nodes = (np.asarray(part) for part in answer)
    return codes.shape, len(nodes), int(nodes[codes].sum(dtype=np.uint64))


ARRAY_JOBS = (
    Job(
        "renumber",
        "Dense numbers for the nodes of a graph",
        inputs.edges,
        {"warphash": _renumber, "numpy": _renumber_numpy, "pandas": _renumber_pandas},
        _codes_fit,
    ),
    Job(
        "texts",
        "Texts without duplicates",
        inputs.texts,
        {"warphash": _texts, "pyarrow": _texts_pyarrow, "polars": _texts_polars, "pandas": _texts_pandas},
        _read_texts,
        rows=1_500_000,
    ),
    Job(
        "kmers",
        "How often each k-mer is there",
        inputs.reads,
        {"warphash": _kmers, "numpy": _kmers_numpy, "polars": _kmers_polars},
        lambda answer: np.bincount(np.asarray(answer)).tolist(),
    ),
    Job(
        "sessions",
        "Where a user comes back after half an hour",
        inputs.visits,
        {"warphash": _sessions, "pandas": _sessions_pandas, "polars": _sessions_polars},
        int,
    ),
    Job(
        "voxels",
        "The mean of the points in each cell of space",
        inputs.points,
        {"warphash": _voxels, "numpy": _voxels_numpy, "polars": _voxels_polars},
        lambda answer: (len(answer), np.round(np.asarray(answer, float).sum(0), 0).tolist()),
    ),
    Job(
        "last",
        "Which keys of a stream are among the 100,000 that were used last",
        inputs.stream,
        {"warphash": _last, "python": _last_python},
        int,
        agree=lambda one, other: abs(one - other) <= 0.01 * max(one, other, 100),  # a batch is used all at once
    ),
    Job(
        "ids",
        "Dense rows for ids that come in batches of 4,096",
        inputs.ids,
        {"warphash": _ids, "python": _ids_python},
        lambda answer: np.concatenate(answer).tolist(),
    ),
    Job(
        "file",
        "A tenth of the pairs of a file, by their keys",
        inputs.pairs,
        {"warphash": _file, "warphash saved": _file_saved, "polars": _file_polars, "python": _file_python},
        lambda answer: np.asarray(answer).tolist(),
        rows=2_000_000,
    ),
)
