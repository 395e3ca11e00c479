"""Time the distinct strings of a column: by warphash, PyArrow and Polars, from a column to a column; best of some runs.

Usage: python scripts/time_strings.py [--strings 5_000_000] [--distinct 5_000_000] [--runs 7]
"""

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from in_turns import best_of, show

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
    sizes = {len(job()) for job in jobs.values()}
    assert len(sizes) == 1
    best = best_of(jobs, given.runs)
    print(f"{given.strings:,} strings of 10 to 40 bytes, {sizes.pop():,} distinct")
    show(best, given.strings, "strings")


if __name__ == "__main__":
    main()
