"""A map from a string and an integer to a number, by warphash, a dict and an index of pandas; best of several runs.

Usage: python scripts/time_columns.py [--rows 1_000_000] [--names 200_000] [--runs 7]
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from in_turns import best_of, show

import warphash

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rows", type=int, default=20_000)
parser.add_argument("--names", type=int, default=4_000)
parser.add_argument("--runs", type=int, default=2)
given = parser.parse_args()
rows = given.rows

draw = np.random.default_rng(0)
texts = [f"name {number}" for number in draw.integers(0, given.names, rows)]
ids, numbers = draw.integers(0, 100, rows), np.arange(rows)
column, series = pa.array(texts), pd.Series(texts)
pairs = list(zip(texts, ids.tolist(), strict=True))


def new_table() -> Any:
    """A map that keeps a number of each row."""
    table = warphash.HashMap(["str", "int64"], "int64", capacity=rows, device="cpu")
    table.insert((column, ids), numbers)
    return table


def new_dict() -> dict[Any, int]:
    """A dict that does so."""
    made: dict[Any, int] = {}
    for pair, number in zip(pairs, range(rows), strict=True):
        made.setdefault(pair, number)
    return made


def new_index() -> Any:
    """An index of the distinct rows, which has built its own table."""
    index = pd.MultiIndex.from_arrays([series, ids]).unique()
    index.get_indexer(index[:1])
    return index


table, model, index = new_table(), new_dict(), new_index()
jobs: dict[str, Callable[[], Any]] = {
    "insert, warphash": new_table,
    "insert, dict": new_dict,
    "insert, pandas": new_index,
    "find, warphash": lambda: table.find((column, ids)),
    "find, warphash, a list of str": lambda: table.find((texts, ids)),
    "find, dict": lambda: [model[pair] for pair in pairs],
    "find, pandas": lambda: index.get_indexer(pd.MultiIndex.from_arrays([series, ids])),
}
best = best_of(jobs, given.runs)

assert len(table) == len(model) == len(index)
assert [pairs[number] for number in table.find((column, ids))[0].tolist()] == pairs
print(f"{rows:,} rows of a string and an integer, {len(table):,} distinct")
show(best, rows, "rows")
