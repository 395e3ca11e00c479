"""Runs of values become lists and lose values right, however the lanes of a GPU take turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from emulated.scenarios import emulation
from support.planting import planted_among
from warphash import MultiMap, WarphashError

Rewrite = Callable[[str], str]
KEYS = np.arange(60)


def first_wrong(rewrite: Rewrite, seed: int) -> str:
    """Insert and erase pairs of few keys. After which step a lookup is wrong in one schedule; empty if none is."""
    random, model = np.random.default_rng(seed), {key: list[int]() for key in KEYS.tolist()}
    with emulation(rewrite, seed):
        table: MultiMap[Any, Any] = MultiMap("i8", "i4", device="emulated", seed=seed)
        for step in range(6):
            keys = random.integers(0, 20 + 8 * step, 50)
            values = np.arange(len(keys), dtype="i4") + 100 * step
            table.insert(keys, values)
            for key, value in zip(keys.tolist(), values.tolist(), strict=True):
                model[key].append(value)
            try:
                if not _agrees(table, model):
                    return f"insert {step}"
                if not _erases(table, model, random.integers(0, 30, 40)) or not _agrees(table, model):
                    return f"erase {step}"
            except WarphashError as error:
                return str(error)
    return ""


def _agrees(table: MultiMap[Any, Any], model: dict[int, list[int]]) -> bool:
    values, offsets = table.find_all(KEYS)
    return [values[a:b].tolist() for a, b in pairwise(offsets.tolist())] == list(model.values())


def _erases(table: MultiMap[Any, Any], model: dict[int, list[int]], keys: np.ndarray[Any, Any]) -> bool:
    """Erase the first pair of each key, as often as it comes; whether as many elements say so as there were pairs."""
    erased = Counter(keys[table.erase(keys)].tolist())
    for key, times in Counter(keys.tolist()).items():
        if erased[key] != min(times, len(model[key])):
            return False
        del model[key][:times]
    return True


@pytest.mark.parametrize("seeds", [range(1, 6), pytest.param(range(6, 60), marks=pytest.mark.slow)], ids=str)
def test_no_schedule_breaks_them(seeds: range) -> None:
    assert [(seed, wrong) for seed in seeds if (wrong := first_wrong(str, seed))] == []


BUGS = {
    "a list has the erased values of the run again": (
        "segments_of(t)[first] = {held.begin(t.row_bytes)",
        "segments_of(t)[first] = {held.place",
    ),
    "a list takes no segment for its next run": ("group.is_list() ? 1 : 2", "group.is_list() ? 0 : 2"),
    "the last segment has no follower": ("last = halves(low_half(last), segment);", ""),
    "the count hands on where erased values begin": (
        "group.is_list() ? group.place : group.begin(t.row_bytes)",
        "group.place",
    ),
    "first segments without values stay counted as erased": ("first = place.segment, erased", "erased"),
    "a pop is no swap": (
        "const u64 before = compare_exchange_word(&groups_of(t)[group_of(b, i)].state, seen, popped);",
        "const u64 before = seen; store_relaxed(&groups_of(t)[group_of(b, i)].state, popped);",
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_seen(name: str) -> None:
    plant = planted_among("struct LinkRuns", *BUGS[name])
    assert any(first_wrong(plant, seed) for seed in range(1, 6))
