"""Measure tables whose keys and values are rows of any width, stored in place.

Dynamic Hash Tables on GPUs, section 4.1; Stadium Hashing, section IV-C and Figure 19. Each row is computed from a
number, so the right answers are known. A row consists of 32-bit words, each an odd multiple of the row's number. So no
two rows are equal.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bench.ceilings import reads_of
from ..data.workloads import random_keys

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["MEASURES", "VALUE_BYTES", "Widths", "measure_widths", "rows_of"]

VALUE_BYTES = {4: 4, 8: 8, 16: 32, 32: 32, 64: 8, 128: 8}
"""Bytes of the values, by the bytes of the keys, where a figure sweeps the keys alone."""


@dataclass(frozen=True)
class Widths:
    """Rates per second of operations, shares of the memory's ceiling, and the wrong answers.

    Attributes
    ----------
    measured
        By the name of `MEASURES`.
    """

    measured: dict[str, float]
    mismatches: int


MEASURES = ("insert", "hot_insert", "present", "absent", "present_share", "absent_share", "erase")
"""``"insert"``: inserts of distinct keys into an empty table. ``"hot_insert"``: the same, where every 20th pair has one
key. ``"present"``, ``"absent"``: finds of present keys and of absent keys. ``"present_share"``, ``"absent_share"``:
shares of the memory's ceiling for these finds. The ceiling counts all that a find reads: buckets of keys, words of
guests, and the value. ``"erase"``: erases of all keys."""


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
    wanted: Collection[str],
    seed: int = 1,
    *,
    value_bytes: int | None = None,
) -> Widths:
    """Insert ``n`` pairs into an empty table in one batch. Then find ``n`` present keys, and ``n`` absent keys.

    Parameters
    ----------
    wanted
        Which of `MEASURES`. An insert always comes first.
    value_bytes
        `VALUE_BYTES` has the default.
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
    reads = reads_of(key_bytes, value_bytes, setting.design, table.stats().parameters)
    measured: dict[str, float] = {}
    wrong = 0
    if "hot_insert" in wanted:
        hot = there.copy()
        hot[::20] = hot[0]
        measured["hot_insert"] = n / min(
            lab.timed(partial(table.insert, here(hot, key_bytes), values), before=table.clear)
        )
        wrong += int(len(table) != n - (n - 1) // 20)
    insert, few = partial(table.insert, assume_unique=True), slice(min(n, lab.most_warming))
    measured["insert"] = n / min(
        lab.timed(partial(insert, keys, values), table.clear, partial(insert, keys[few], values[few]))
    )
    wrong += int(len(table) != n)
    for name, asked, found_share in (("present", there[::-1], 100), ("absent", numbers[n:], 0)):
        share = f"{name}_share"
        if not {name, share} & set(wanted):
            continue
        questions = here(asked, key_bytes)
        got: list[Any] = []
        find_s = min(lab.timed(partial(_append, got, table, questions), got.clear, partial(table.find, questions[few])))
        answers, found = got[-1] if arrays is not np else map(lab.back, got[-1])
        wrong += int((found != bool(found_share)).sum())
        if found_share:
            wrong += int((answers != rows(asked, value_bytes)).any(axis=1).sum())
        measured[name] = n / find_s
        if share in wanted:
            read = lab.read_per_key(table, questions)
            measured[share] = lab.memory.ratio(reads, table.nbytes, f"find {found_share}", measured[name], *read) or 0.0
    if "erase" in wanted:
        flags: list[Any] = []

        def refill() -> None:
            table.clear()
            insert(keys, values)
            flags.clear()

        few_absent = here(numbers[n:][few], key_bytes)
        erase_s = min(lab.timed(lambda: flags.append(table.erase(keys)), refill, partial(table.erase, few_absent)))
        measured["erase"] = n / erase_s
        wrong += int((~flags[-1]).sum()) + len(table)
    return Widths(measured, wrong)


def _append(got: list[Any], table: Any, questions: Any) -> None:
    got.append(table.find(questions))
