"""A map from integers to strings of 20 bytes beside a dict, and as a file: inserts and lookups, best of several runs.

Usage: PAIRS=1_000_000 RUNS=7 python examples/map_to_strings.py
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import warphash

n, runs = (int(os.environ.get(name, default)) for name, default in (("PAIRS", 20_000), ("RUNS", 2)))

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
best = dict.fromkeys(jobs, float("inf"))
for _ in range(runs):  # one job after the other, so that all see the same load of the machine
    for name, job in jobs.items():
        begin = time.perf_counter()
        job()
        best[name] = min(best[name], time.perf_counter() - begin)
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
for name, seconds in best.items():
    print(f"{name:32} {1000 * seconds:8,.0f} ms {n / seconds / 1e6:8.1f} M pairs/s")
