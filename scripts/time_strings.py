"""Time the distinct strings of a column: by warphash, PyArrow and Polars, from a column to a column; best of some runs.

Usage: python scripts/time_strings.py [--strings 5_000_000] [--distinct 5_000_000] [--runs 7]
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import warphash


def column_of(n: int, distinct: int) -> pa.Array:
    """Strings of 10 to 40 letters: a permutation of the distinct ones, or a draw of them."""
    draw = np.random.default_rng(1)
    lengths = draw.integers(10, 41, distinct)
    letters = draw.integers(ord("a"), ord("z") + 1, lengths.sum(), dtype=np.uint8)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    words = pa.Array.from_buffers(pa.large_string(), distinct, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    return words.take(pa.array(draw.permutation(n) if distinct == n else draw.integers(0, distinct, n)))


def jobs_on(column: pa.Array) -> dict[str, Callable[[], Any]]:
    """What each library does."""
    jobs: dict[str, Callable[[], Any]] = {
        "warphash, of a PyArrow column": lambda: warphash.HashSet.from_arrays(column, device="cpu").keys(),
        "PyArrow": lambda: pc.unique(column),
    }
    if importlib.util.find_spec("polars"):
        import polars as pl

        series = pl.Series(column)
        jobs["warphash, of a Polars column"] = lambda: warphash.HashSet.from_arrays(series, device="cpu").keys()
        jobs["Polars"] = series.unique
    return jobs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--distinct", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    jobs = jobs_on(column_of(given.strings, given.distinct))
    best, sizes = dict.fromkeys(jobs, float("inf")), set()
    for _ in range(given.runs):  # one job after the other, so that all see the same load of the machine
        for name, job in jobs.items():
            begin = time.perf_counter()
            made = job()
            best[name] = min(best[name], time.perf_counter() - begin)
            sizes.add(len(made))
    assert len(sizes) == 1
    print(f"{given.strings:,} strings of 10 to 40 bytes, {sizes.pop():,} distinct")
    for name, seconds in best.items():
        print(f"{name:32} {1000 * seconds:8,.0f} ms {given.strings / seconds / 1e6:8.1f} M strings/s")


if __name__ == "__main__":
    main()
