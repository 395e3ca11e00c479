"""Measure tables whose keys and values are rows of any width, stored in place.

Dynamic Hash Tables on GPUs, section 4.1; Stadium Hashing, section IV-C and Figure 19. Each row is computed from a
number, so the right answers are known. A row consists of 32-bit words, each an odd multiple of the row's number. So no
two rows are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bench.ceilings import reads_of
from ..data.workloads import random_keys

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["VALUE_BYTES", "Widths", "measure_widths", "rows_of"]

VALUE_BYTES = {4: 4, 8: 8, 16: 32, 32: 32, 64: 8, 128: 8}
"""Bytes of the values, by the bytes of the keys, where a figure sweeps the keys alone."""


@dataclass(frozen=True)
class Widths:
    """Rates per second of inserts, finds and erases, the finds' shares of the ceiling, and the wrong answers.

    Attributes
    ----------
    insert
        Inserts of distinct keys into an empty table.
    hot_insert
        Inserts into an empty table, where every 20th pair has the same key.
    present, absent
        Finds of present keys and of absent keys.
    present_share, absent_share
        Shares of the memory's ceiling for these finds. The ceiling counts all that a find reads: buckets of keys,
        words of guests, and the value. None if no ceiling was measured.
    erase
        Erases of all keys. None if they were not measured.
    """

    insert: float
    hot_insert: float
    present: float
    absent: float
    present_share: float | None
    absent_share: float | None
    mismatches: int
    erase: float | None = None


def rows_of(numbers: Any, nbytes: int, seed: int, arrays: Any = np) -> Any:
    """A row of ``nbytes`` for each number, uint32[n, nbytes / 4]. Different numbers below 2**32 give different rows."""
    words = np.random.default_rng(seed).integers(0, 1 << 31, nbytes // 4, np.uint64) * 2 + 1
    rows = arrays.empty((len(numbers), len(words)), np.uint32)
    for column, word in enumerate(words.tolist()):
        rows[:, column] = (numbers * word & 0xFFFFFFFF).astype(np.uint32)
    return rows


def measure_widths(
    lab: Lab,
    setting: Setting,
    load_factor: float | None,
    n: int,
    key_bytes: int,
    seed: int = 1,
    *,
    value_bytes: int | None = None,
    ceilings: bool = True,
    erases: bool = False,
) -> Widths:
    """Insert ``n`` pairs into an empty table in one batch. Then find ``n`` present keys, and ``n`` absent keys.

    Parameters
    ----------
    value_bytes
        `VALUE_BYTES` has the default.
    ceilings
        Measure the memory's ceilings, too.
    erases
        Erase all keys, too.
    """
    value_bytes = value_bytes or VALUE_BYTES[key_bytes]
    arrays = lab.arrays
    numbers = random_keys(2 * n, "uint32", seed, arrays).astype(np.uint64)

    def rows(of: Any, nbytes: int) -> Any:
        return rows_of(of, nbytes, seed + nbytes, arrays)

    def here(of: Any, nbytes: int) -> Any:
        return rows(of, nbytes) if arrays is not np else lab.here(rows(of, nbytes))

    there = numbers[:n]
    keys, values = here(there, key_bytes), here(there, value_bytes)
    table = lab.built([keys[:1], values[:1]], setting, load_factor, capacity=n, seed=seed)
    known = lab.memory if ceilings else None
    reads = reads_of(key_bytes, value_bytes, setting.design, table.stats().parameters)
    hot = there.copy()
    hot[::20] = hot[0]
    hot_s = min(lab.timed(partial(table.insert, here(hot, key_bytes), values), before=table.clear))
    wrong = int(len(table) != n - (n - 1) // 20)
    insert_s = min(lab.timed(partial(table.insert, keys, values, assume_unique=True), before=table.clear))
    wrong += int(len(table) != n)
    rates: list[float] = []
    shares: list[float | None] = []
    for asked, found_share in ((there[::-1], 100), (numbers[n:], 0)):
        questions = here(asked, key_bytes)
        got: list[Any] = []
        find_s = min(lab.timed(partial(_append, got, table, questions), got.clear))
        answers, found = got[-1] if arrays is not np else map(lab.back, got[-1])
        wrong += int((found != bool(found_share)).sum())
        if found_share:
            wrong += int((answers != rows(asked, value_bytes)).any(axis=1).sum())
        rates.append(n / find_s)
        share = None
        if known is not None:
            read = lab.read_per_key(table, questions)
            share = known.ratio(reads, table.nbytes, f"find {found_share}", rates[-1], *read)
        shares.append(share)
    widths = Widths(n / insert_s, n / hot_s, rates[0], rates[1], shares[0], shares[1], wrong)
    if not erases:
        return widths
    flags: list[Any] = []

    def refill() -> None:
        table.clear()
        table.insert(keys, values, assume_unique=True)
        flags.clear()

    erase_s = min(lab.timed(lambda: flags.append(table.erase(keys)), refill))
    wrong += int((~flags[-1]).sum()) + len(table)
    return replace(widths, mismatches=wrong, erase=n / erase_s)


def _append(got: list[Any], table: Any, questions: Any) -> None:
    got.append(table.find(questions))
