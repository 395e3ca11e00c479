"""Operations on keys with several values each: group the values of each key, and find all values of some keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import MultiMap
from . import inputs, oracles
from .base import Call, Op
from .libraries import Library

__all__ = ["OPS", "in_order", "places_of_each"]


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


def in_order(lib: Any, pairs: Any) -> Any:
    """Keys in ascending order, and their values in that order."""
    keys, values = pairs
    order = lib.argsort(keys)
    return keys[order], values[order]


def places_of_each(lib: Any, keys: Any, asked: Any) -> Any:
    """The pairs of equal keys: places in ``asked``, and places in ``keys``, which ascend."""
    on_torch = lib.__name__ == "torch"
    begins, ends = lib.searchsorted(keys, asked), lib.searchsorted(keys, asked, side="right")
    counts = ends - begins
    repeat = lib.repeat_interleave if on_torch else lib.repeat
    where = {"device": keys.device} if on_torch else {}
    places = repeat(lib.arange(len(asked), **where), counts)
    behind = lib.cumsum(counts, 0)
    return places, repeat(ends - behind, counts) + lib.arange(len(places), **where)


def _found_by_sort(lib: Any, pairs: Any, asked: Any) -> Any:
    keys, values = in_order(lib, pairs)
    places, of_values = places_of_each(lib, keys, asked)
    return asked[places], values[of_values]


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
            "numpy": Call(in_order),
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
            "torch": Call(in_order),
            "cupy": Call(in_order),
        },
    ),
    Op(
        "multimap_find_all",
        "Find all values of some keys",
        inputs.pairs_and_lookups,
        oracles.pairs_found,
        Call(_found, _pairs_found),
        {
            "numpy": Call(_found_by_sort),
            "pandas": Call(lambda pd, frame, asked: pd.merge(asked, frame, on="key")),
            "polars": Call(lambda pl, frame, asked: asked.to_frame().join(frame, on="key")),
            "pyarrow": Call(
                lambda pa, table, asked: pa.table({"key": asked}).join(table, "key", join_type="inner"),
            ),
            "duckdb": Call(
                lambda db, x, asked: db.sql(f"SELECT key, value FROM {asked} JOIN {x} USING (key)").fetchnumpy()
            ),
            "torch": Call(_found_by_sort),
        },
        hit_shares=(0.5, 0.05),
    ),
)
"""Of keys with several values."""
