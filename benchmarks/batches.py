"""Time whole batches: each verb of each design, with 1,000 and with 1 million keys."""

from __future__ import annotations

from typing import Any

import numpy as np

import warphash

from .workload import DESIGNS, FEW, MANY, THREADS, empty, full, workload


class _Batches:
    """What all batches share: a design, a number of keys, and a table that ``setup`` makes before each sample."""

    params: Any = (DESIGNS, [FEW, MANY])
    param_names = ("design", "keys")
    timeout = 120

    def setup(self, design: str, n: int) -> None:
        warphash.set_num_threads(THREADS)
        self.pairs = workload(n)
        self.table = self.made(design, n)

    def made(self, design: str, n: int) -> Any:
        return full(design, n)


class Lookups(_Batches):
    """Lookups leave the table as it is, so a sample has as many calls as asv wants."""

    def time_find_present(self, design: str, n: int) -> None:
        self.table.find(self.pairs.keys)

    def time_find_absent(self, design: str, n: int) -> None:
        self.table.find(self.pairs.absent)


class Upserts(_Batches):
    """The keys are all present, so each call finds the same table."""

    def setup(self, design: str, n: int) -> None:
        super().setup(design, n)
        self.ones = np.ones(n, np.uint32)

    def time_upsert_add(self, design: str, n: int) -> None:
        self.table.upsert(self.pairs.keys, self.ones, "add")


class _Once(_Batches):
    """A call changes the table, so each sample is one call on a table that nobody touched."""

    number = 1
    repeat = (10, 50, 5.0)
    warmup_time = 0


class Inserts(_Once):
    """All keys are new to an empty table that has room for them."""

    def made(self, design: str, n: int) -> Any:
        return empty(design, n)

    def time_insert(self, design: str, n: int) -> None:
        self.table.insert(self.pairs.keys, self.pairs.values)


class Erases(_Once):
    """All keys are erased."""

    def time_erase(self, design: str, n: int) -> None:
        self.table.erase(self.pairs.keys)
