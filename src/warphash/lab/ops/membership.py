"""The operation `isin`: a table of one column is built and the other column is looked up, all in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import isin
from . import inputs, oracles
from .base import Call, Op

__all__ = ["OPS"]


def _duckdb(db: Any, asked: Any, held: Any) -> Any:
    """With several threads the rows come in any order, so each has its place."""
    rows = db.sql(f"SELECT rowid AS place, key IN (SELECT key FROM {held}) AS found FROM {asked}").fetchnumpy()
    found = np.empty(len(rows["found"]), bool)
    found[rows["place"]] = rows["found"]
    return found


OPS = (
    Op(
        "isin",
        "Which elements are among others",
        inputs.lookups,
        oracles.membership,
        Call(lambda at, asked, held: isin(asked, held)),
        {
            "numpy": Call(lambda np, asked, held: np.isin(asked, held)),
            "pandas": Call(lambda pd, asked, held: asked.isin(held)),
            "polars": Call(lambda pl, asked, held: asked.is_in(held.implode())),
            "pyarrow": Call(lambda pa, asked, held: pa.compute.is_in(asked, value_set=held)),
            "duckdb": Call(_duckdb),
            "torch": Call(lambda torch, asked, held: torch.isin(asked, held)),
            "cupy": Call(lambda cupy, asked, held: cupy.isin(asked, held)),
        },
        hit_shares=(0.5, 0.05),
    ),
)
"""Of membership."""
