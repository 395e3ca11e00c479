"""Count what it costs which subtable a key goes to first: conflicts, lines and filters read, in a table that grows.

Dynamic Hash Tables on GPUs, section 5.2. Counts are the same on any machine, but a CPU reads no overflow filters and so
reads all lines of an absent key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting
    from ..data.workloads import Workload

__all__ = ["RoutingStep", "measure_routing"]

_SAMPLE = 5_000
"""Keys whose lines are counted after a batch. So many give the mean within 1 %."""


@dataclass(frozen=True)
class RoutingStep:
    """The state after one batch.

    Attributes
    ----------
    conflicts
        Sum of C(m, 2) / n over the subtables of m keys and n buckets, in per cent beyond the least. That is the sum
        of equal load factors: at the minimum, all (m - 1/2) / n are equal (Lagrange).
    found, missed
        Lines that a find reads for a present and an absent key.
    words
        Words of overflow filters that a find reads for an absent key.
    added
        Lines that the batch read for each key that it inserted; None for a batch without inserts.
    resizes
        Resizes of a subtable so far.
    mismatches
        Wrong answers about the sampled keys. The last step also counts the errors of the whole table.
    """

    conflicts: float
    found: float
    missed: float
    words: float
    added: float | None
    resizes: int
    mismatches: int


def measure_routing(lab: Lab, workload: Workload, setting: Setting, batches: int, seed: int = 1) -> list[RoutingStep]:
    """Grow a table from empty in batches, replace half of its keys, and erase most of them.

    Parameters
    ----------
    workload
        Distinct keys. Half of its absent keys are inserted for those that are replaced.
    batches
        Batches of the growth. Half as many replace keys, and all but one of as many erase.
    """
    counted = _Counted(lab, workload, setting, len(workload.keys) // batches, seed)
    grown = [counted.step(inserts=True) for _ in range(batches)]
    replaced = [counted.step(inserts=True, erases=True) for _ in range(batches // 2)]
    shrunk = [counted.step(erases=True) for _ in range(batches - 1)]
    last = replace(shrunk[-1], mismatches=shrunk[-1].mismatches + counted.mismatches())
    return [*grown, *replaced, *shrunk[:-1], last]


class _Counted:
    """A table, the pairs that it must hold, and the pairs that come next."""

    def __init__(self, lab: Lab, workload: Workload, setting: Setting, batch: int, seed: int) -> None:
        assert workload.values is not None
        half = len(workload.absent) // 2
        self._lab, self._batch, self._rng = lab, batch, np.random.default_rng(seed)
        self._table = lab.empty(workload, setting, None, capacity=batch, count_probes=True, seed=seed)
        self._coming = np.concatenate([workload.keys, workload.absent[:half]])
        self._absent = lab.here(workload.absent[half:][:_SAMPLE])
        self._keys, self._values = workload.keys[:0], workload.values[:0]
        self._added = 0

    def step(self, *, inserts: bool = False, erases: bool = False) -> RoutingStep:
        """Erase a batch, insert a batch, or both. Then count."""
        wrong = self._erase() if erases else 0
        added = None
        if inserts:
            before = self._probes()
            wrong += self._insert()
            added = (self._probes() - before) / self._batch
        lab, table, sample = self._lab, self._table, self._rng.integers(0, len(self._keys), _SAMPLE)
        asked = lab.here(self._keys[sample])
        values, found = map(lab.back, table.find(asked))
        wrong += int((~found | (values != self._values[sample])).sum() + lab.back(table.contains(self._absent)).sum())
        missed, words = lab.read_per_key(table, self._absent)
        stats = table.stats()
        return RoutingStep(
            conflicts=_conflicts(stats),
            found=lab.read_per_key(table, asked)[0],
            missed=missed,
            words=words,
            added=added,
            resizes=stats.resizes,
            mismatches=wrong,
        )

    def mismatches(self) -> int:
        """Wrong pairs in the whole table."""
        oracle = self._lab.oracle(self._keys, self._values)
        return oracle.check_items(*self._lab.items(self._table))

    def _probes(self) -> float:
        """Lines that all inserts so far have read. All their keys were new."""
        return (self._table.stats().insert_probes or 0.0) * self._added

    def _insert(self) -> int:
        keys = self._coming[self._added : self._added + self._batch]
        values = self._rng.integers(0, 1 << 31, len(keys)).astype(self._values.dtype)
        self._keys, self._values = np.concatenate([self._keys, keys]), np.concatenate([self._values, values])
        self._added += len(keys)
        return self._unflagged(self._table.insert(self._lab.here(keys), self._lab.here(values)))

    def _erase(self) -> int:
        order = self._rng.permutation(len(self._keys))
        gone, kept = self._keys[order[: self._batch]], order[self._batch :]
        self._keys, self._values = self._keys[kept], self._values[kept]
        return self._unflagged(self._table.erase(self._lab.here(gone)))

    def _unflagged(self, flags: Any) -> int:
        return int((~self._lab.back(flags)).sum())


def _conflicts(stats: Any) -> float:
    """The conflicts of the subtables, in per cent beyond the least that their sizes allow."""
    sizes = [subtable.slots for subtable in stats.subtables]
    made = sum(comb(subtable.keys, 2) / subtable.slots for subtable in stats.subtables)
    equal = (sum(subtable.keys for subtable in stats.subtables) - len(sizes) / 2) / sum(sizes)
    least = (equal * equal * sum(sizes) - sum(1 / size for size in sizes) / 4) / 2
    return float(100 * (made / least - 1))
