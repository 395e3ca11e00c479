"""Measure tables of any size with pairs that follow from their numbers, so the host keeps no list of them.

A key is a bijection of its number, so the keys of different numbers differ. A value follows from its key. So the right
answer to any question is known, and pairs and answers are made and checked on the device, some at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.workloads import Workload, key_type, scrambled
from .runner import Lab, Measurement, Setting

__all__ = ["PIECE", "Numbered", "measure_numbered"]

PIECE = 1 << 25
"""Most keys of a batch. Pieces leave the memory to the table. Larger batches of lookups are no faster."""


class Numbered:
    """Pairs by their numbers.

    Parameters
    ----------
    lab
        Of the device that has the arrays.
    key, value
        NumPy types. ``value`` is None for a set.
    n
        Pairs of the table. Keys of larger numbers are absent.
    """

    def __init__(self, lab: Lab, key: npt.DTypeLike, value: npt.DTypeLike | None, n: int, seed: int) -> None:
        self._lab, self._arrays, self._n = lab, lab.arrays, n
        self._key, self._value = key_type(key), None if value is None else np.dtype(value)
        self._word = np.dtype(f"u{self._key.itemsize}")
        self._first = int(np.random.default_rng(seed).integers(0, 1 << 31))

    @property
    def workload(self) -> Workload:
        """Types and number of the pairs, without the pairs."""
        keys = np.broadcast_to(np.zeros(1, self._key), self._n)
        values = None if self._value is None else np.broadcast_to(np.zeros(1, self._value), self._n)
        return Workload("random", keys, values, keys)

    def pairs(self, first: int, count: int) -> list[Any]:
        """Columns on the device: the keys of consecutive numbers, and their values unless the table is a set."""
        keys = self._keys_of(self._arrays.arange(first, first + count, dtype=np.uint64))
        return [self._lab.here(column) for column in (keys, self._values_of(keys)) if column is not None]

    def questions(self, count: int, present_share: float) -> tuple[Any, Callable[..., int]]:
        """Keys to look up, on the device, and a function that counts the wrong answers to a lookup of them.

        The numbers are drawn at random. Those of absent keys begin at ``n``.
        """
        drawn = scrambled(self._arrays.arange(self._first, self._first + count, dtype=np.uint64))
        expected = (drawn >> np.uint64(44)) < np.uint64(round(present_share * (1 << 20)))
        numbers = (drawn & np.uint64((1 << 44) - 1)) % np.uint64(self._n)
        keys = self._keys_of(self._arrays.where(expected, numbers, numbers + np.uint64(self._n)))
        return self._lab.here(keys), lambda *answers: self._wrong(keys, expected, answers)

    def wrong_pairs(self, table: Any) -> int:
        """Look up all keys of a table: how many pairs are lost, changed or invented."""
        find = table.contains if self._value is None else table.find
        wrong = abs(len(table) - self._n)
        for first in range(0, self._n, PIECE):
            numbers = self._arrays.arange(first, min(self._n, first + PIECE), dtype=np.uint64)
            keys = self._keys_of(numbers)
            answers = find(self._lab.here(keys))
            wrong += self._wrong(keys, numbers == numbers, (answers,) if self._value is None else answers)
        return wrong

    def _wrong(self, keys: Any, expected: Any, answers: Any) -> int:
        *values, found = self._lab.collected(answers)
        wrong = found.astype(bool) != expected
        for value in values:
            wrong |= expected & (value != self._values_of(keys))
        return int(wrong.sum())

    def _keys_of(self, numbers: Any) -> Any:
        word: Any = self._word.type
        return scrambled(numbers.astype(self._word) + word(self._first)).view(self._key)

    def _values_of(self, keys: Any) -> Any:
        """A number below 2^31, which any type of values has."""
        if self._value is None:
            return None
        mixed = keys.view(self._word).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return (mixed >> np.uint64(33)).astype(self._value)


def measure_numbered(
    lab: Lab,
    setting: Setting,
    load_factor: float,
    pairs: Numbered,
    *,
    builds: bool,
    note: Callable[[str], None],
    seed: int,
) -> Iterator[Measurement]:
    """Measure a build, inserts into an empty table that has room, and lookups of all, half and no present keys.

    Parameters
    ----------
    builds
        Whether to measure ``"build"``, which needs all pairs on the device at once.
    """
    workload = pairs.workload
    n = len(workload.keys)
    if builds:
        note(f"{n:,} pairs: {setting.label}, build")
        columns, made = pairs.pairs(0, n), list[Any]()
        seconds = lab.timed(
            lambda: made.append(lab.built(columns, setting, load_factor, unique=False, capacity=n, seed=seed)),
            before=made.clear,
        )
        del columns
        probes = made[0].stats().insert_probes
        yield lab.record(workload, made[0], "build", n, seconds, probes, pairs.wrong_pairs(made[0]))
        made.clear()
        lab.release()
    note(f"{n:,} pairs: {setting.label}, insert")
    table = lab.empty(workload, setting, load_factor, seed=seed)
    seconds, wrong = _insert_all(lab, table, pairs, n)
    wrong += pairs.wrong_pairs(table)
    yield lab.record(workload, table, "insert", n, seconds, table.stats().insert_probes, wrong)
    for present in (100, 50, 0):
        note(f"{n:,} pairs: {setting.label}, find {present}")
        asked, wrong_answers = pairs.questions(min(n, PIECE), present / 100)
        yield lab.measure_asked(workload, table, f"find {present}", asked, wrong_answers)


def _insert_all(lab: Lab, table: Any, pairs: Numbered, n: int) -> tuple[list[float], int]:
    """Seconds of each repetition of the inserts of all pairs, and the keys that one did not add."""
    wrong = 0

    def insert_all() -> float:
        nonlocal wrong
        table.clear()
        seconds = 0.0
        for first in range(0, n, PIECE):
            columns, added = pairs.pairs(first, min(PIECE, n - first)), list[Any]()

            def insert(columns: list[Any] = columns, added: list[Any] = added) -> None:
                added.append(table.insert(*columns))

            seconds += lab.time(insert)
            wrong += int((~lab.back(added[0])).sum())
        return seconds

    return lab.repeated(insert_all), wrong
