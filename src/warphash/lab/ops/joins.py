"""Inner joins of two tables by their keys, to the rows of both sides: each key once on the right, and several times.

Each side has a column with the numbers of its rows, so that every library answers which rows meet.
"""

from __future__ import annotations

from typing import Any

from ... import join
from . import inputs, oracles
from .base import Call, Op
from .grouped import in_order, places_of_each

__all__ = ["OPS"]


def _by_sort(lib: Any, left: Any, right: Any) -> Any:
    keys, rows = in_order(lib, right)
    left_places, places = places_of_each(lib, keys, left[0])
    return left[1][left_places], rows[places]


_RIVALS = {
    "numpy": Call(_by_sort),
    "pandas": Call(lambda pd, left, right: left.merge(right, on="key"), lambda pd, frame: frame[["left", "right"]]),
    "polars": Call(lambda pl, left, right: left.join(right, on="key"), lambda pl, frame: frame.select("left", "right")),
    "pyarrow": Call(
        lambda pa, left, right: left.join(right, "key", join_type="inner"),
        lambda pa, table: table.select(["left", "right"]),
    ),
    "duckdb": Call(
        lambda db, left, right: db.sql(f'SELECT "left", "right" FROM {left} JOIN {right} USING (key)').fetchnumpy()
    ),
    "torch": Call(_by_sort),
    "cupy": Call(_by_sort),
}

_OURS = Call(lambda at, left, right: join(left[0], right[0]), lambda at, pairs: (pairs.left, pairs.right))
"""The numbers of the rows are the answer, so we are not given their columns."""

OPS = (
    Op(
        "join",
        "Inner join with keys that do not repeat",
        inputs.sides,
        oracles.joined,
        _OURS,
        _RIVALS,
        hit_shares=(1.0, 0.05),
    ),
    Op(
        "join_repeated",
        "Inner join with keys that come twice",
        inputs.sides_with_repeats,
        oracles.joined,
        _OURS,
        _RIVALS,
        hit_shares=(1.0,),
    ),
)
"""Of two sides."""
