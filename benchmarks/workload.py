"""The keys and the tables of all benchmarks: pairs of 4 + 4 bytes, at the load factor that a design has by default."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from warphash import HashMap
from warphash.designs import registry
from warphash.lab.data.workloads import Workload, make

DESIGNS = registry.names()
FEW, MANY = 1_000, 1_000_000
THREADS = 1
"""Of the CPU engine: rates of more threads depend on what else the machine does."""


@cache
def workload(n: int) -> Workload:
    """``n`` pairs, the same in every run, and as many absent keys."""
    return make(n, "uint32", "uint32", seed=1)


def empty(design: str, n: int) -> Any:
    """A table with room for ``n`` pairs."""
    options: dict[str, Any] = {"device": "cpu", "seed": 1, "capacity": n}
    if design == "tiered":
        options["device_capacity"] = max(1, n // 10)
    return HashMap("uint32", "uint32", design=design, **options)


def full(design: str, n: int) -> Any:
    """A table of the pairs of `workload`."""
    made, pairs = empty(design, n), workload(n)
    added = made.insert(pairs.keys, pairs.values, assume_unique=True)
    assert np.asarray(added).all(), f"{design} lost pairs"
    return made
