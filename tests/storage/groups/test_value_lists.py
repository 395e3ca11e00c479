"""Lists of values, long and short and empty ones side by side, against a dict of lists."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from support.inside import storage_of
from support.types import Array
from warphash import MultiMap

LENGTHS = {
    "one value each": [1] * 300,
    "a heavy key": [1] * 150 + [5000] + [1] * 150,
    "keys without values between long lists": [0, 0, 700, 0, 0, 33, *[0] * 40, 31, 0, 32, 1, 64, 0, 0, 0, 65, 0],
    "values far apart": [2, *[0] * 99] * 40,
    "keys without values at both ends": [0] * 70 + [3] * 50 + [0] * 70,
    "a full tile": [1] * 32,
    "one more than a tile": [1] * 33,
    "no values": [0] * 50,
}
"""How many values each key has, in the order in which a lookup names the keys."""


def agree(table: MultiMap[Any, Any], model: dict[int, list[int]], asked: Array) -> None:
    """Compare every lookup of these keys."""
    held = [model.get(key, []) for key in asked.tolist()]
    values, offsets = table.find_all(asked)
    assert [values[a:b].tolist() for a, b in pairwise(offsets.tolist())] == held
    assert table.count(asked).tolist() == list(map(len, held))
    first, found = table.find(asked, default=-1)
    assert first.tolist() == [values[0] if values else -1 for values in held]
    assert found.tolist() == table.contains(asked).tolist() == list(map(bool, held))


def scanned(table: MultiMap[Any, Any]) -> dict[int, list[int]]:
    """All pairs, by their keys."""
    found = dict[int, list[int]]()
    for key, value in zip(*(array.tolist() for array in table.to_arrays()), strict=True):
        found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("shape", LENGTHS)
def test_lists_of_any_lengths(device: str, batches: int, shape: str) -> None:
    """In one segment or in several ones, and without first values."""
    random, lengths = np.random.default_rng(1), LENGTHS[shape]
    names = random.permutation(len(lengths)) * 1001
    keys = random.permutation(np.repeat(names, lengths))  # groups have their numbers in another order than lookups
    table: MultiMap[Any, Any] = MultiMap("i8", "i4", device=device, seed=1)
    model = dict[int, list[int]]()
    for batch in range(batches):
        mine = keys[batch::batches]
        values = random.integers(0, 1 << 30, len(mine))
        table.insert(mine, values.astype("i4"))
        for key, value in zip(mine.tolist(), values.tolist(), strict=True):
            model.setdefault(key, []).append(value)
    repeated = random.choice(names, 2 * len(names))
    for asked in (names, repeated, np.concatenate([names, names + 1])):
        agree(table, model, asked)
    assert scanned(table) == model
    for _ in range(2):
        erased = table.erase(names)
        assert erased.tolist() == [bool(model.get(key)) for key in names.tolist()]
        model = {key: values[1:] for key, values in model.items()}
        for asked in (names, repeated):
            agree(table, model, asked)
    assert scanned(table) == {key: values for key, values in model.items() if values}
    table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_a_gpu_reads_the_record_of_a_group_of_one_run_once_for_all_its_values(device: str) -> None:
    """To count them. The records are overwritten before the values are copied."""
    table: MultiMap[Any, Any] = MultiMap("i8", "i4", device=device, seed=1)
    keys = np.repeat(np.arange(90), np.arange(90) % 4)
    values = np.arange(len(keys), dtype="i4")
    table.insert(keys, values)
    table.erase(np.arange(50))
    rows = storage_of(table)
    engine, asked = rows.engine, np.arange(89, -9, -1)
    given, offsets = engine.from_host(asked), engine.allocate(8 * (len(asked) + 1))
    found = rows.find_all(given.ptr, len(asked), offsets.ptr, None)
    engine.fill(rows.lists.group_records.ptr, 0xFF, rows.lists.group_records.nbytes)
    out = engine.allocate(4 * found.total)
    found.write(out.ptr)
    held = [values[keys == key][key < 50 :] for key in asked.tolist()]
    assert engine.to_host(out.ptr, np.int32, found.total).tolist() == np.concatenate(held).tolist()


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_first_values_are_erased_beyond_the_first_segment(device: str) -> None:
    """Of lists of several segments of different lengths; then values come again."""
    table: MultiMap[Any, Any] = MultiMap("i8", "i8", device=device, seed=1)
    model, names = dict[int, list[int]](), np.arange(40)
    for batch in range(5):
        mine = np.repeat(names, (names * 7 + batch * 3) % 5)
        values = np.arange(len(mine)) + 10_000 * batch
        table.insert(mine, values)
        for key, value in zip(mine.tolist(), values.tolist(), strict=True):
            model.setdefault(key, []).append(value)
    for times in range(12):
        some = names[names % 3 != times % 3]
        assert table.erase(some).tolist() == [bool(model.get(key)) for key in some.tolist()]
        model = {key: values[1:] if key in some else values for key, values in model.items()}
        agree(table, model, names)
        if times % 4 == 3:
            table.insert(names, names - times)
            model = {key: [*model.get(key, []), key - times] for key in names.tolist()}
            agree(table, model, names)
    assert table.erase_all(names).tolist() == [len(model[key]) for key in names.tolist()]
    agree(table, {}, names)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_more_groups_than_there_is_room_for(device: str) -> None:
    """New records have no values, and old ones are as they were."""
    table: MultiMap[Any, Any] = MultiMap("i8", "i8", device=device, seed=1)
    model = dict[int, list[int]]()
    for first in (0, 5, 50, 500):
        names = np.arange(first, 2 * first + 10)
        table.insert(names, -names)
        for key in names.tolist():
            model.setdefault(key, []).append(-key)
        agree(table, model, np.arange(-3, 1100))
    lists = storage_of(table).lists
    assert lists.groups == len(model) <= lists.group_room
    records = storage_of(table).engine.to_host(lists.group_records.ptr, np.uint64, 2 * lists.group_room)
    assert not records[2 * lists.groups :].any()
