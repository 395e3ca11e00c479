"""Thin a cloud of points: the mean of the points, and their number, in each cubic cell of space."""

import argparse

import numpy as np

import warphash


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="number of points")
    parser.add_argument("--size", type=float, default=0.5, help="edge of a cell")
    given = parser.parse_args()

    points = np.random.default_rng(1).normal(0, [4, 4, 1], (given.n, 3)).astype(np.float32)
    x, y, z = points.T

    cells = np.floor(points / given.size).astype(np.int32)
    made = warphash.group_by(tuple(cells.T)).agg(x=(x, "mean"), y=(y, "mean"), z=(z, "mean"), n="size")

    distinct, row, count = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    means = np.column_stack([np.bincount(row.ravel(), weights=axis) for axis in (x, y, z)]) / count[:, None]
    order = np.lexsort(made.keys[::-1])
    assert np.array_equal(np.column_stack(made.keys)[order], distinct) and np.array_equal(made["n"][order], count)
    assert np.allclose(np.column_stack([made["x"], made["y"], made["z"]])[order], means, rtol=0, atol=1e-5)
    print(f"{given.n:,} points in {len(count):,} cells, at most {count.max()} in one")


if __name__ == "__main__":
    main()
