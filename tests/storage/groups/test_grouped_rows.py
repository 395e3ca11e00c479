"""What pairs in groups do at the ends of their numbers, and when they are brought together."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from support.inside import storage_of
from support.refusals import refusing
from warphash import MultiMap, TableFull
from warphash.runtime.devices import engine_for
from warphash.storage.groups import grouped_rows, word_numbers
from warphash.storage.groups.ways import FEWEST_SAMPLED, Way


def filled(batches: int, keys: int) -> tuple[MultiMap[Any, Any], dict[int, list[int]]]:
    """A table after so many batches with one pair of each key, and what it has to hold."""
    table, model = MultiMap("i8", "i8", device="cpu", seed=1), dict[int, list[int]]()
    for batch in range(batches):
        table.insert(np.arange(keys), np.arange(keys) + keys * batch)
    for key in range(keys):
        model[key] = [key + keys * batch for batch in range(batches)]
    return table, model


def agree(table: MultiMap[Any, Any], model: dict[int, list[int]]) -> None:
    values, offsets = table.find_all(np.array([*model, -1]))
    assert [part.tolist() for part in np.split(values, offsets[1:-1])] == [*model.values(), []]
    assert len(table) == sum(map(len, model.values()))
    table.check()


def place_of(table: MultiMap[Any, Any], group: int) -> tuple[bool, int, int]:
    """Whether a group has a list, and its first and last segments."""
    rows = storage_of(table)
    place = rows.engine.to_host(rows.lists.group_records.ptr + 16 * group + 8, np.uint64, 1).tolist()[0]
    return bool(place >> 63), place % 2**31, place >> 31 & 2**31 - 1


def lists_bytes(table: MultiMap[Any, Any]) -> int:
    """Bytes of a table beside its table of keys, without the totals."""
    rows = storage_of(table)
    return int(rows.nbytes) - int(rows.index.nbytes) - 16


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("keys", [1000, 40])
def test_a_fresh_table_has_values_and_a_record_of_16_bytes_for_each_key(device: str, keys: int) -> None:
    random = np.random.default_rng(1)
    pairs = np.concatenate([np.arange(keys), random.integers(0, keys, 4000)]), np.arange(4000 + keys, dtype="i4")
    expected = 4 * (4000 + keys) + 16 * keys
    table: MultiMap[Any, Any] = MultiMap.from_arrays(*pairs, device=device, seed=1)
    assert lists_bytes(table) == lists_bytes(table.copy()) == expected
    table.insert([0], np.zeros(1, "i4"))
    assert lists_bytes(table) > expected
    assert table.flush() == 2
    assert lists_bytes(table) == expected + 4


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_only_groups_of_several_runs_have_segments(device: str) -> None:
    """A second run takes two of them, and each further run one. Keys that are new, or without values, take none."""
    table: MultiMap[Any, Any] = MultiMap("i8", "i8", device=device, seed=1)
    lists, model = [storage_of(table).lists], dict[int, list[int]]()

    def insert(*keys: int) -> int:
        """How many segments a batch takes that adds 2 pairs to each of the keys."""
        values = np.arange(2 * len(keys)) + 100 * len(lists)
        table.insert(np.repeat(keys, 2), values)
        for key, row in zip(keys, values.reshape(-1, 2).tolist(), strict=True):
            model.setdefault(key, []).extend(row)
        agree(table, model)
        lists.append(storage_of(table).lists)
        return int(lists[-1].segments - lists[-2].segments)

    assert insert(*range(8)) == insert(*range(8, 300)) == 0
    assert lists[-1].segment_records is None
    assert insert(400, 3, 401, 299, 402) == 4
    assert insert(7, 500, 3, 299) == 4
    assert [place_of(table, group)[0] for group in (2, 3, 4, 7, 299)] == [False, True, False, True, True]
    table.erase_all([3, 6])
    model[3], model[6] = [], []
    assert insert(6, 3) == 0 and insert(3, 299) == 3


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("erased", [0, 1, 4, 5])
def test_a_run_without_its_first_values_becomes_a_list(device: str, erased: int) -> None:
    table: MultiMap[Any, Any] = MultiMap("i8", "i4", device=device, seed=1)
    table.insert([1, 2, 2, 2, 2, 2, 3], np.arange(7, dtype="i4"))
    for _ in range(erased):
        assert table.erase([2]).all()
    model = {1: [0], 2: list(range(1 + erased, 6)), 3: [6]}
    agree(table, model)
    table.insert([2, 2], np.array([8, 9], "i4"))
    model[2] += [8, 9]
    agree(table, model)
    assert place_of(table, 1)[0] == (erased < 5)
    while model[2]:
        assert table.find([2])[0].tolist() == model[2][:1] and table.erase([2]).all()
        model[2] = model[2][1:]
        agree(table, model)


@pytest.mark.parametrize("known", [0, 100, 200])
def test_a_batch_on_a_gpu_is_numbered_once(monkeypatch: pytest.MonkeyPatch, known: int) -> None:
    """The host waits for how many keys are distinct, for how many are new, and for the table of keys, if any are."""
    engine = engine_for("emulated")
    table: MultiMap[Any, Any] = MultiMap("i8", "i8", device="emulated", capacity=1000, seed=1)
    table.insert(np.arange(600), np.arange(600))
    batch = np.random.default_rng(1).permutation(np.arange(600 - known, 800 - known))
    launched, waits, program, to_host = list[str](), list[int](), engine.program, engine.to_host

    def noted(spec: Any) -> Any:
        made = copy.copy(program(spec))
        made.run = lambda entry, *args: (launched.append(entry), program(spec).run(entry, *args))
        return made

    monkeypatch.setattr(engine, "program", noted)
    monkeypatch.setattr(engine, "to_host", lambda *args: (waits.append(1), to_host(*args))[1])
    table.insert(batch, -batch)
    monkeypatch.undo()
    assert launched.count("claim_words8") == launched.count("needs") == launched.count("link") == 1
    assert len(waits) <= (2 if known == 200 else 4)
    model = {key: [key] for key in range(600)}
    for key in batch.tolist():
        model.setdefault(key, []).append(-key)
    agree(table, model)


def test_segments_without_a_number_are_brought_together_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_rows, "MOST_SEGMENTS", 100)
    table, model = filled(9, 40)  # 360 runs
    assert table.stats().rebuilds >= 3 and storage_of(table).lists.segments <= 100
    agree(table, model)


def test_a_batch_that_needs_more_segments_than_have_numbers_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    table, model = filled(2, 40)
    monkeypatch.setattr(grouped_rows, "MOST_SEGMENTS", 78)
    with pytest.raises(TableFull, match="at most 39 keys that are in the MultiMap: insert it in parts"):
        table.insert(np.arange(40), np.arange(40))
    agree(table, model)
    for first, end in ((0, 39), (39, 40)):  # as the message says
        table.insert(np.arange(first, end), -np.arange(first, end))
    agree(table, {key: [*values, -key] for key, values in model.items()})


def test_groups_without_a_number_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    table, model = filled(2, 40)
    monkeypatch.setattr(grouped_rows, "MOST_GROUPS", 50)
    with pytest.raises(TableFull, match="at most 50 keys; the table is as it was"):
        table.insert(np.arange(30, 60), np.arange(30))
    agree(table, model)


def test_many_short_segments_are_brought_together_each_time_the_pairs_double() -> None:
    table, model = filled(64, 1000)
    assert 2 <= table.stats().rebuilds <= 8
    agree(table, model)
    assert table.flush() > 0 and table.flush() == 0
    agree(table, model)


def test_erased_values_are_dropped() -> None:
    table, model = filled(20, 1000)
    table.flush()
    before = table.nbytes
    table.erase_all(np.arange(100, 1000))
    assert table.nbytes < before / 4
    agree(table, {key: values if key < 100 else [] for key, values in model.items()})


@pytest.mark.parametrize("value", ["u4", "i8", "u2"])
def test_values_that_are_grouped_by_the_parts_of_their_keys(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """In a first batch, and in one with known keys and new ones; refused memory leaves all pairs as they were."""
    monkeypatch.setattr(word_numbers, "way_of", lambda *_: Way(2, 3))
    random, model = np.random.default_rng(1), dict[int, list[int]]()
    table: MultiMap[Any, Any] = MultiMap("i8", value, device="cpu", seed=1)
    for first in (0, 3000):
        keys = random.integers(first, first + 6000, 2 * FEWEST_SAMPLED) << 40
        values = random.integers(0, 9999, len(keys)).astype(value)
        after = {key: list(rows) for key, rows in model.items()}
        for key, row in zip(keys.tolist(), values.tolist(), strict=True):
            after.setdefault(key, []).append(row)
        for refused in range(1, 200):
            tried, is_in = table.copy(), False
            with refusing(engine_for("cpu"), refused) as refusals, suppress(MemoryError):
                tried.insert(keys, values)
                is_in = True
            agree(tried, after if is_in else model)
            if not refusals.refused:
                break
        assert is_in and not refusals.refused and refused > 10
        table, model = tried, after


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("taken", [1, 3])
def test_a_queue_of_one_key_has_a_short_list(device: str, taken: int) -> None:
    """Values come a few at a time, and go from the front."""
    table: MultiMap[Any, Any] = MultiMap("i8", "i8", device=device, seed=1)
    queue = list(range(7))
    table.insert(np.zeros(7, "i8"), queue)
    for value in range(7, 67, taken):
        came = list(range(value, value + taken))
        table.insert(np.zeros(taken, "i8"), came)
        assert table.erase(np.zeros(taken, "i8")).all()
        queue = [*queue, *came][taken:]
        assert table[0].tolist() == queue and table.find([0])[0].tolist() == queue[:1]
    lists = storage_of(table).lists
    is_list, first, last = place_of(table, 0)
    assert is_list and last - first <= 8 and lists.segments > 20  # a segment for each batch, whose numbers ascend
    table.check()


def test_a_fixed_table_takes_as_many_pairs_as_its_capacity_says() -> None:
    for capacity in (0, 1, 5):
        table = MultiMap("i8", "i8", device="cpu", capacity=capacity, on_full="raise")
        room = table.capacity
        assert room == max(1, capacity)
        table.insert(np.zeros(room, "i8"), np.arange(room))
        for each in (table, table.copy()):
            with pytest.raises(TableFull):
                each.insert([1], [1])
        table.shrink()
        assert table.capacity == room and table[0].tolist() == list(range(room))


@pytest.mark.parametrize("shrinks", [False, True])
def test_the_least_capacity_is_one_pair(shrinks: bool) -> None:
    table: MultiMap[Any, Any] = MultiMap("i8", "i8", capacity=5 if shrinks else 0, on_full="raise", device="cpu")
    if shrinks:
        table.shrink()
    assert table.capacity == 1
    table.insert([7], [1])
    with pytest.raises(TableFull):
        table.insert([8], [2])
    assert table[7].tolist() == [1] and len(table) == 1


def test_copies_and_rebuilds_keep_a_shrunk_table_small() -> None:
    table: MultiMap[Any, Any] = MultiMap("i8", "i8", capacity=100_000, device="cpu")
    table.insert([1, 2], [10, 20])
    table.shrink()
    small = table.nbytes
    assert small < 8 * 100_000 and table.copy().nbytes == small
    table.insert([1], [11])
    assert table.flush() == 2 and table.nbytes == small
    agree(table, {1: [10, 11], 2: [20]})


def test_copies_and_rebuilds_keep_reserved_room() -> None:
    table: MultiMap[Any, Any] = MultiMap("i8", "i8", device="cpu")
    table.insert([1, 2], [10, 20])
    table.reserve(100_000)
    table.insert([1], [11])
    assert table.flush() == 2
    for made in (table, table.copy()):
        assert made.capacity >= 100_000
        agree(made, {1: [10, 11], 2: [20]})
