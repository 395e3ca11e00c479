"""Time calls on 1,000 keys, where most of the time is the way from the verb to its kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warphash
from warphash import HashMap

from .workload import FEW, THREADS, full, workload

VERBS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "find": lambda table, keys, values: table.find(keys),
    "contains": lambda table, keys, values: table.contains(keys),
    "insert": lambda table, keys, values: table.insert(keys, values),
    "assign": lambda table, keys, values: table.assign(keys, values),
    "upsert": lambda table, keys, values: table.upsert(keys, values, "max"),
    "find_or_insert": lambda table, keys, values: table.find_or_insert(keys, values),
    "erase": lambda table, keys, values: table.erase(~keys),
    "keys": lambda table, keys, values: table.keys(),
    "to_arrays": lambda table, keys, values: table.to_arrays(),
    "len": lambda table, keys, values: len(table),
    "copy": lambda table, keys, values: table.copy(),
    "from_arrays": lambda table, keys, values: HashMap.from_arrays(keys, values, device="cpu"),
}
"""Each leaves the table as it is: the keys are present, or in an erase absent, and the values are their values."""


class Calls:
    """Calls with the 1,000 keys of a table of the default design."""

    params = tuple(VERBS)
    param_names = ("verb",)

    def setup(self, verb: str) -> None:
        warphash.set_num_threads(THREADS)
        pairs = workload(FEW)
        self.call, self.table = VERBS[verb], full("bucketed_cuckoo", FEW)
        self.keys, self.values = pairs.keys, pairs.values
        assert not np.isin(~pairs.keys, pairs.keys).any()

    def time_call(self, verb: str) -> None:
        self.call(self.table, self.keys, self.values)
