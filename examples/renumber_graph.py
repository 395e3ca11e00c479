"""Renumber the vertices of a graph: arbitrary 64-bit identifiers to 0, 1, 2, …"""

import numpy as np

import warphash

rng = np.random.default_rng(1)
edges = rng.integers(0, 2**63, size=20_000, dtype=np.uint64)[rng.integers(0, 20_000, size=(100_000, 2))]

ends = edges.ravel()
vertices = warphash.HashSet("uint64")
first = vertices.insert(ends)  # True where an end was met for the first time
identifiers = ends[first]

number = warphash.HashMap.from_arrays(identifiers, np.arange(len(identifiers), dtype=np.uint32), assume_unique=True)
renumbered = number[ends].reshape(edges.shape)

assert (identifiers[renumbered] == edges).all()
print(f"{len(edges):,} edges between {len(number):,} vertices, {number.stats().bytes_per_pair:.1f} bytes a vertex")
