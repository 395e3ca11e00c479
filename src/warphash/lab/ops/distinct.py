"""Operations on the distinct elements of a column, and on the distinct rows of two columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import factorize, unique, value_counts
from . import inputs, oracles
from .base import Call, Op

__all__ = ["OPS"]

_MOST_STRINGS = 2_000_000
"""So many strings of Python take 150 MB, and some seconds to make."""


def _polars_codes(pl: Any, x: Any) -> Any:
    """Number the elements by a join. ``rank("dense")`` sorts: 2.6 times as long (2 M int64, 100,000 distinct)."""
    values = x.unique().to_frame().with_row_index("code")
    return values["key"], x.to_frame().join(values, on="key", how="left", maintain_order="left")["code"]


def _duckdb_codes(db: Any, x: Any) -> Any:
    """Number the elements by a join. With several threads the rows come in any order, so each has its place."""
    db.execute(f"CREATE OR REPLACE TEMP TABLE codes AS SELECT DISTINCT key FROM {x}")
    values = db.sql("SELECT key FROM codes ORDER BY rowid").fetchnumpy()["key"]
    rows = db.sql(
        f"SELECT {x}.rowid AS place, codes.rowid AS code FROM {x} JOIN codes ON {x}.key = codes.key"
    ).fetchnumpy()
    codes = np.empty(len(rows["code"]), np.int64)
    codes[rows["place"]] = rows["code"]
    return values, codes


def _arrow_codes(pa: Any, x: Any) -> Any:
    encoded = x.dictionary_encode()
    return encoded.dictionary, encoded.indices


def _pandas_counts(pd: Any, x: Any) -> Any:
    counts = x.value_counts(sort=False)
    return counts.index, counts


def _arrow_codes_and_counts(pa: Any, x: Any) -> Any:
    values, codes = _arrow_codes(pa, x)
    return values, codes, np.bincount(codes.to_numpy(), minlength=len(values))


def _pandas_codes_and_counts(pd: Any, x: Any) -> Any:
    codes, values = pd.factorize(x)
    return values, codes, np.bincount(codes, minlength=len(values))


_CODES = {
    "pandas": Call(lambda pd, x: pd.factorize(x)[::-1]),
    "polars": Call(_polars_codes),
    "pyarrow": Call(_arrow_codes),
    "duckdb": Call(_duckdb_codes),
}
_INVERSE = {
    "numpy": Call(lambda np, x: np.unique(x, return_inverse=True)),
    **_CODES,
    "torch": Call(lambda torch, x: torch.unique(x, return_inverse=True)),
    "cupy": Call(lambda cupy, x: cupy.unique(x, return_inverse=True)),
}


def _two_of_matrix(lib: Any, rows: Any) -> Any:
    return rows[:, 0], rows[:, 1]


OPS = (
    Op(
        "unique",
        "Distinct elements",
        inputs.keys,
        lambda table: oracles.Distinct(table).values,
        Call(lambda at, x: unique(x)),
        {
            "numpy": Call(lambda np, x: np.unique(x)),
            "pandas": Call(lambda pd, x: x.unique()),
            "polars": Call(lambda pl, x: x.unique()),
            "pyarrow": Call(lambda pa, x: x.unique()),
            "duckdb": Call(lambda db, x: db.sql(f"SELECT DISTINCT key FROM {x}").fetchnumpy()),
            "torch": Call(lambda torch, x: torch.unique(x)),
            "cupy": Call(lambda cupy, x: cupy.unique(x)),
        },
    ),
    Op(
        "unique_inverse",
        "Distinct elements, with the inverse",
        inputs.keys,
        lambda table: oracles.Distinct(table).codes,
        Call(lambda at, x: unique(x, return_inverse=True)),
        _INVERSE,
    ),
    Op(
        "unique_inverse_counts",
        "Distinct elements, with the inverse and counts",
        inputs.keys,
        lambda table: oracles.Distinct(table).codes_and_counts,
        Call(lambda at, x: unique(x, return_inverse=True, return_counts=True)),
        {
            "numpy": Call(lambda np, x: np.unique(x, return_inverse=True, return_counts=True)),
            "pandas": Call(_pandas_codes_and_counts),
            "pyarrow": Call(_arrow_codes_and_counts),
            "torch": Call(lambda torch, x: torch.unique(x, return_inverse=True, return_counts=True)),
            "cupy": Call(lambda cupy, x: cupy.unique(x, return_inverse=True, return_counts=True)),
        },
    ),
    Op(
        "factorize",
        "Factorize",
        inputs.keys,
        lambda table: oracles.Distinct(table).codes,
        Call(lambda at, x: factorize(x)[::-1]),
        _CODES,
    ),
    Op(
        "value_counts",
        "Counts of the distinct elements, in any order",
        inputs.keys,
        lambda table: oracles.Distinct(table).counts,
        Call(lambda at, x: value_counts(x, sort=False)),
        {
            "numpy": Call(lambda np, x: np.unique(x, return_counts=True)),
            "pandas": Call(_pandas_counts),
            "polars": Call(lambda pl, x: x.value_counts()),
            "pyarrow": Call(lambda pa, x: x.value_counts().flatten()),
            "duckdb": Call(lambda db, x: db.sql(f"SELECT key, count(*) FROM {x} GROUP BY key").fetchnumpy()),
            "torch": Call(lambda torch, x: torch.unique(x, return_counts=True)),
            "cupy": Call(lambda cupy, x: cupy.unique(x, return_counts=True)),
        },
    ),
    Op(
        "unique_strings",
        "Distinct strings, with the inverse",
        inputs.strings,
        lambda table: oracles.Distinct(table).codes,
        Call(lambda at, x: unique(x, return_inverse=True)),
        {name: call for name, call in _INVERSE.items() if name not in ("torch", "cupy")},
        ours_on=("numpy", "pandas", "polars", "pyarrow"),
        spreads=("scattered",),
        most_rows=_MOST_STRINGS,
        on_gpu=False,
    ),
    Op(
        "unique_pairs",
        "Distinct pairs of two columns",
        inputs.two_columns,
        oracles.distinct_rows,
        Call(lambda at, columns: unique(columns)),
        {
            "numpy": Call(lambda np, columns: np.unique(np.stack(columns, 1), axis=0), _two_of_matrix),
            "pandas": Call(lambda pd, frame: frame.drop_duplicates()),
            "polars": Call(lambda pl, frame: frame.unique()),
            "pyarrow": Call(lambda pa, table: table.group_by(["first", "second"]).aggregate([])),
            "duckdb": Call(lambda db, x: db.sql(f"SELECT DISTINCT first, second FROM {x}").fetchnumpy()),
            "torch": Call(lambda torch, columns: torch.unique(torch.stack(columns, 1), dim=0), _two_of_matrix),
            # unique(axis=0) of CuPy 13 has not ended within 200 s of 10 M rows on an H200
        },
    ),
)
"""Of distinct elements."""
