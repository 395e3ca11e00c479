"""Measure a tiered table beside the table of a CPU: finds of keys that follow Zipf's law, by its exponent.

HH Hash, section Future Work, leaves such a table to others. Keys and values have 8 bytes each. A key is an odd multiple
of its rank (`workloads.ranks`), and its value follows from it, so the right answers are known. The share of accesses
that go to the c most frequent keys, which is the most that a cache of c pairs can meet, comes from the same continuous
distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import HashMap
from ..data.workloads import ranks

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["TierRates", "frequent_share", "measure_tiers"]

CACHE_SHARE = 10
"""A tenth of the pairs has room on the device."""

_WARMING = 12
"""Batches before the measured one."""

_MOST_ASKED = 1 << 28
_PIECE = 1 << 24
"""Pairs that are inserted at once."""

_FACTOR, _MASK = 0x9E3779B97F4A7C15, 0x5555


@dataclass(frozen=True)
class TierRates:
    """Keys found a second, of one batch in the arrays of the laboratory's device; and wrong answers.

    Attributes
    ----------
    hits, oracle
        The share of keys that the cache met, and the most that a cache of that size can meet; 0 for a table of one
        tier.
    """

    find: float
    hits: float
    oracle: float
    mismatches: int

    @property
    def share(self) -> float:
        """Hits over those of the oracle."""
        return self.hits / self.oracle if self.oracle else 0.0


def frequent_share(most: int, exponent: float, n: int) -> float:
    """The share of accesses that go to the ``most`` most frequent of ``n`` keys."""
    if abs(exponent - 1) < 1e-9:
        return float(np.log(most + 1.0) / np.log(n + 1.0))
    power = 1 - exponent
    return float(((most + 1.0) ** power - 1) / ((n + 1.0) ** power - 1))


def measure_tiers(lab: Lab, setting: Setting, exponent: float, n: int, seed: int = 1) -> TierRates:
    """Fill a table with ``n`` pairs, ask for keys until the cache is warm, and time one more batch.

    A design without tiers has its table on the CPU, and is asked with arrays of the host.
    """
    tiered = setting.design == "tiered"
    arrays = lab.arrays if tiered else np
    options: dict[str, Any] = {"device_capacity": max(1, n // CACHE_SHARE)} if tiered else {}
    table: Any = HashMap(
        "uint64",
        "uint64",
        device=lab.device if tiered else "cpu",
        capacity=n,
        seed=seed,
        **options,
        **setting.keywords,
    )
    for first in range(0, n, _PIECE):
        keys = np.arange(first, min(n, first + _PIECE), dtype=np.uint64) * np.uint64(_FACTOR)
        table.insert(keys, keys ^ np.uint64(_MASK), assume_unique=True)
    asked = min(_MOST_ASKED, max(1, n // 4))
    rng = np.random.default_rng(seed)
    wrong = abs(len(table) - n)
    before = after = table.stats().tiers
    seconds = 0.0
    for _ in range(_WARMING + 1 if tiered else 2):
        keys = ranks(arrays.asarray(rng.random(asked)), exponent, n, arrays) * np.uint64(_FACTOR)
        answers: list[Any] = []

        def find(keys: Any = keys, answers: list[Any] = answers) -> None:
            answers[:] = table.find(keys)

        before = table.stats().tiers  # admits the candidates of the batch before
        seconds = lab.time(find)
        values, found = answers
        wrong += int((~found).sum()) + int((values != (keys ^ np.uint64(_MASK))).sum())
    after = table.stats().tiers
    if after is None:
        return TierRates(asked / seconds, 0.0, 0.0, wrong)
    hits = (after.hits - before.hits) / asked
    return TierRates(asked / seconds, hits, frequent_share(max(1, n // CACHE_SHARE), exponent, n), wrong)
