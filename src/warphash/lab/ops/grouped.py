"""Operations on keys with several values each: group the values of each key, and find all values of some keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import MultiMap
from . import inputs, oracles
from .base import Call, Op
from .libraries import Library

__all__ = ["OPS"]


def _built(at: Library, pairs: Any) -> Any:
    return MultiMap.from_arrays(*pairs, device=at.device)


def _pairs_of(at: Library, table: Any) -> Any:
    return table.to_arrays(like=at.name)


def _found(at: Library, pairs: Any, asked: Any) -> Any:
    return asked, *_built(at, pairs).find_all(asked)


def _pairs_found(at: Library, answer: Any) -> Any:
    asked, values, offsets = answer
    counts = np.diff(at.host(offsets))
    return asked[at.held({"place": np.repeat(np.arange(len(counts)), counts)})], values


def _sorted_pairs(xp: Any, pairs: Any) -> Any:
    keys, values = pairs
    order = xp.argsort(keys)
    return keys[order], values[order]


def _numpy_found(np: Any, pairs: Any, asked: Any) -> Any:
    keys, values = _sorted_pairs(np, pairs)
    begins, ends = np.searchsorted(keys, asked), np.searchsorted(keys, asked, side="right")
    counts = ends - begins
    at = np.repeat(ends - np.cumsum(counts), counts) + np.arange(counts.sum())
    return np.repeat(asked, counts), values[at]


def _torch_found(torch: Any, pairs: Any, asked: Any) -> Any:
    keys, values = _sorted_pairs(torch, pairs)
    begins, ends = torch.searchsorted(keys, asked), torch.searchsorted(keys, asked, right=True)
    counts = ends - begins
    at = torch.repeat_interleave(ends - torch.cumsum(counts, 0), counts)
    return torch.repeat_interleave(asked, counts), values[at + torch.arange(len(at), device=at.device)]


def _pandas_pairs(pd: Any, rows_of: Any) -> Any:
    """The values are the numbers of the rows."""
    return np.repeat(np.array(list(rows_of)), [len(rows) for rows in rows_of.values()]), np.concatenate(
        [*rows_of.values()]
    )


def _arrow_pairs(pa: Any, table: Any) -> Any:
    lists = table["values"].combine_chunks()
    return table["key"].combine_chunks().take(lists.value_parent_indices()), lists.flatten()


def _duckdb_pairs(db: Any, table: Any) -> Any:
    import pyarrow as pa

    return tuple(column.to_numpy() for column in _arrow_pairs(pa, table))


OPS = (
    Op(
        "multimap_build",
        "Group the values of each key",
        inputs.pairs,
        oracles.pairs,
        Call(_built, _pairs_of),
        {
            "numpy": Call(_sorted_pairs),
            "pandas": Call(lambda pd, frame: frame.groupby("key", sort=False).indices, _pandas_pairs),
            "polars": Call(
                lambda pl, frame: frame.group_by("key").agg("value"), lambda pl, frame: frame.explode("value")
            ),
            "pyarrow": Call(
                lambda pa, table: table.group_by("key").aggregate([("value", "list")]),
                lambda pa, table: _arrow_pairs(pa, table.rename_columns({"value_list": "values"})),
            ),
            "duckdb": Call(
                lambda db, x: db.sql(f"SELECT key, list(value) AS values FROM {x} GROUP BY key").to_arrow_table(),
                _duckdb_pairs,
            ),
            "torch": Call(_sorted_pairs),
            "cupy": Call(_sorted_pairs),
        },
    ),
    Op(
        "multimap_find_all",
        "Find all values of some keys",
        inputs.pairs_and_lookups,
        oracles.pairs_found,
        Call(_found, _pairs_found),
        {
            "numpy": Call(_numpy_found),
            "pandas": Call(lambda pd, frame, asked: pd.merge(asked, frame, on="key")),
            "polars": Call(lambda pl, frame, asked: asked.to_frame().join(frame, on="key")),
            "pyarrow": Call(
                lambda pa, table, asked: pa.table({"key": asked}).join(table, "key", join_type="inner"),
            ),
            "duckdb": Call(
                lambda db, x, asked: db.sql(f"SELECT key, value FROM {asked} JOIN {x} USING (key)").fetchnumpy()
            ),
            "torch": Call(_torch_found),
        },
        hit_shares=(0.5, 0.05),
    ),
)
"""Of keys with several values."""
