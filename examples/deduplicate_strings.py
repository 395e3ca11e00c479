"""The distinct strings of a column, by warphash, pyarrow and Polars, from the column to a column; best of several runs.

Usage: STRINGS=5_000_000 DISTINCT=5_000_000 RUNS=7 python examples/deduplicate_strings.py
"""

import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import warphash

n, distinct, runs = (
    int(os.environ.get(name, default)) for name, default in (("STRINGS", 100_000), ("DISTINCT", 50_000), ("RUNS", 2))
)

draw = np.random.default_rng(1)
lengths = draw.integers(10, 41, distinct)
letters = draw.integers(ord("a"), ord("z") + 1, lengths.sum(), dtype=np.uint8)
offsets = np.concatenate([[0], np.cumsum(lengths)])
words = pa.Array.from_buffers(pa.large_string(), distinct, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
order = draw.permutation(n) if distinct == n else draw.integers(0, distinct, n)
column = words.take(pa.array(order))

jobs: dict[str, Callable[[], Any]] = {
    "warphash, of a pyarrow column": lambda: warphash.HashSet.from_arrays(column, device="cpu").keys(),
    "pyarrow": lambda: pc.unique(column),
}
if importlib.util.find_spec("polars"):
    import polars as pl

    series = pl.Series(column)
    jobs["warphash, of a Polars column"] = lambda: warphash.HashSet.from_arrays(series, device="cpu").keys()
    jobs["Polars"] = series.unique

best, sizes = dict.fromkeys(jobs, float("inf")), set()
for _ in range(runs):  # one job after the other, so that all see the same load of the machine
    for name, job in jobs.items():
        begin = time.perf_counter()
        made = job()
        best[name] = min(best[name], time.perf_counter() - begin)
        sizes.add(len(made))

assert len(sizes) == 1
print(f"{n:,} strings of 10 to 40 bytes, {sizes.pop():,} distinct")
for name, seconds in best.items():
    print(f"{name:32} {1000 * seconds:8,.0f} ms {n / seconds / 1e6:8.1f} M strings/s")
