"""A map from integers to strings of 20 bytes beside a dict, and as a file: inserts and lookups, best of several runs.

Usage: python scripts/time_string_values.py [--pairs 1_000_000] [--runs 7]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from in_turns import best_of, show

import warphash

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--pairs", type=int, default=20_000)
parser.add_argument("--runs", type=int, default=2)
given = parser.parse_args()
n = given.pairs

draw = np.random.default_rng(1)
keys = draw.permutation(4 * n)[:n]
texts = [f"{number:020d}" for number in draw.integers(0, 10**18, n).tolist()]
items, key_column, column = keys.tolist(), pa.array(keys), pa.array(texts)


def built(values: Any, **options: Any) -> warphash.HashMap:
    """A map of all pairs."""
    table = warphash.HashMap("int64", "str", capacity=n, device="cpu", **options)
    table.insert(keys, values)
    return table


held, table = dict(zip(items, texts, strict=True)), built(column)
jobs: dict[str, Callable[[], Any]] = {
    "a dict of lists": lambda: dict(zip(items, texts, strict=True)),
    "insert, of a list of str": lambda: built(texts),
    "insert, of a pyarrow column": lambda: built(column),
    "assign of all values again": lambda: table.assign(keys, column),
    "lookups in the dict, one by one": lambda: [held[key] for key in items],
    "find, to NumPy's strings": lambda: table.find(keys),
    "find, to a pyarrow column": lambda: table.find(key_column),
}
best = best_of(jobs, given.runs)
assert table.find(key_column)[0].to_pylist() == texts

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "texts")
    in_file, begin = built(column, design="stadium", memory=path), time.perf_counter()
    in_file.close()
    best["the file's flush"], begin = time.perf_counter() - begin, time.perf_counter()
    in_file = warphash.HashMap.open(path, device="cpu")
    best["the file's open"] = time.perf_counter() - begin
    assert in_file == table
    in_file.close()

print(f"{n:,} pairs of int64 and 20 bytes")
show(best, n, "pairs")
