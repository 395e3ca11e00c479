"""DyHash: what Dynamic Hash Tables on GPUs says of resizing one subtable, and what it leaves open."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from support.inside import parts_of, storage_of
from support.refusals import held_memory
from support.resizes import conflicts, counted_moves
from support.subtables import numbers, scale, sizes_of, store_of, table_of
from warphash import HashMap, HashSet, TableFull
from warphash.runtime.abi import REPORT_WORDS
from warphash.runtime.devices import engine_for
from warphash.storage import policies
from warphash.storage.subtables import store as store_module
from warphash.storage.subtables.array import RESERVE_BYTES, SubtableArray

HERE = one_of_each("cpu", "emulated", "cuda")


# ---- sizes
@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [2, 3, 4, 8])
def test_growing_and_shrinking_keep_to_the_bounds(device: str, subtables: int) -> None:
    """What docs/fidelity.md#dyhash-bounds and the rows behind it say; and no key is lost on the way."""
    n = scale(device, 40_000)
    alpha, beta = 0.4, 0.9
    table = table_of(device, subtables=subtables, alpha=alpha, beta=beta)
    keys = numbers(n)
    first = sum(sizes_of(table))
    moved = 0
    with counted_moves() as moves:
        for part in np.array_split(keys, 40):
            assert table.insert(part, part).all()
            sizes = sizes_of(table)
            assert max(sizes) <= 2 * min(sizes)
            assert table.load_factor <= beta
            if sum(sizes) > first:
                assert table.load_factor >= beta * subtables / (subtables + 1) - len(part) / table.stats().slots
        moved = sum(move.pairs for move in moves)
        assert moved <= 2 * n
        values, found = table.find(keys)
        assert found.all() and (values == keys).all()
        assert table.probe_counts(keys).max() <= subtables
        table.check()
        for part in np.array_split(keys[: n * 99 // 100], 40):
            assert table.erase(part).all()
            sizes = sizes_of(table)
            assert max(sizes) <= 2 * min(sizes)
            assert table.load_factor >= alpha or min(sizes) % 2 or max(sizes) == 1
        assert sum(move.pairs for move in moves) - moved <= 2 * n
    assert sum(sizes_of(table)) < 4 * first + n // 64
    assert (table.contains(keys) == (np.arange(n) >= n * 99 // 100)).all()
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [2, 3, 4, 8])
def test_what_each_resize_moves(device: str, subtables: int) -> None:
    """All pairs of one subtable, which may be more than m / d of them (docs/fidelity.md#dyhash-rehashes)."""
    n, beta = scale(device, 200_000), 0.9
    table = table_of(device, subtables=subtables, beta=beta)
    keys = numbers(n)
    with counted_moves() as moves:
        for part in np.array_split(keys, 100):
            before = len(moves)
            assert table.insert(part, part).all()
            sizes_of(table)  # which ends the batch
            for move in moves[before:]:
                assert move.enlarges and move.smallest and move.pairs <= move.slots <= move.table_slots / subtables
                # The table was about to exceed beta, and a subtable has no more pairs than slots.
                assert move.pairs <= (move.size + len(part)) / (beta * subtables)
            assert table.probe_counts(part).max() <= subtables
        grown, most = len(moves), max(move.pairs * subtables / move.size for move in moves[subtables:])
        assert grown > 3 * subtables and most > 1
        assert sum(move.pairs for move in moves) <= 2 * n
        for part in np.array_split(keys[: n * 99 // 100], 100):
            before = len(moves)
            assert table.erase(part).all()
            sizes_of(table)  # which halves subtables
            for move in moves[before:]:
                assert not move.enlarges and move.largest and move.pairs <= min(move.slots, move.size)
            assert table.probe_counts(keys).max() <= subtables
        halvings = moves[grown:]
        most = max(move.pairs * subtables / move.size for move in halvings)
        assert len(halvings) > 2 * subtables and most > 1.35, "the largest has more than m / d of the pairs"
        assert sum(move.pairs for move in halvings) <= 2 * n
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [2, 3, 4, 8])
def test_conflicts_right_behind_a_doubling(device: str, subtables: int) -> None:
    """C(m, 2) / H in order of magnitude: a resize moves no pair to another subtable, which costs at most an eighth.

    Where all load factors are equal and a subtable with a share s of the slots is doubled, the sum of C(m, 2) / n is
    (1 - s / 2) (1 + s) times the least, which is at most 9 / 8.
    """
    table = table_of(device, subtables=subtables, capacity=scale(device, 20_000), load_factor=0.9)
    n = int(0.89 * table.stats().slots)
    keys = numbers(n)
    table.insert(keys, keys)
    array = store_of(table)
    equal = conflicts(array)
    found = []
    for number in range(subtables):
        array.enlarge(number)
        found.append(conflicts(array) / equal)
    assert found[0] == pytest.approx((1 - 1 / subtables / 2) * (1 + 1 / subtables), rel=0.03)
    assert 1 < max(found) < 1.03 * 9 / 8 and found[-1] == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("device", HERE)
def test_counts_of_subtables_are_those_that_are_there(device: str) -> None:
    table = table_of(device, alpha=0.3)
    keys = numbers(scale(device, 20_000))
    for part in np.array_split(keys, 7):
        table.insert(part, part)
    table.erase(keys[::3])
    table.assign(keys, keys + np.uint64(1))
    table.erase(keys[1::2])
    store = store_of(table)
    for number, subtable in enumerate(store.current.subtables[:-1]):
        rows = store.engine.to_host(subtable.memory.ptr, np.uint64, subtable.buckets * store.spec.slots_per_bucket)
        assert int((rows < np.uint64(2**64 - 2)).sum()) == store.keys[number], number
    assert sum(store.keys) == len(table)


@pytest.mark.parametrize("device", HERE)
def test_a_pair_stays_in_its_half_when_a_subtable_is_enlarged(device: str) -> None:
    """To bucket 2c or 2c + 1, at the same slot; the others untouched (docs/fidelity.md#dyhash-upsizing)."""
    table = table_of(device, capacity=scale(device, 4000))
    keys = numbers(scale(device, 3500))
    table.insert(keys, keys)
    store = store_of(table)

    def lines(number: int) -> np.ndarray:
        subtable = store.current.subtables[number]
        slots = store.spec.slots_per_bucket
        rows = store.engine.to_host(subtable.memory.ptr, np.uint64, subtable.buckets * slots)
        return rows.reshape(subtable.buckets, slots)

    before = [lines(number) for number in range(3)]
    store.enlarge(1)
    after = [lines(number) for number in range(3)]
    assert (before[0] == after[0]).all() and (before[2] == after[2]).all()
    empty, erased = np.uint64(2**64 - 1), np.uint64(2**64 - 2)
    halves = after[1].reshape(len(before[1]), 2, -1)
    held = before[1] < erased
    assert ((halves == before[1][:, None]).sum(axis=1)[held] == 1).all()
    assert ((halves == erased).sum(axis=1)[held] == 1).all()
    assert ((halves == empty).sum(axis=1)[before[1] == empty] == 2).all()
    assert table.contains(keys).all()
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [2, 3])
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", "f8"), ("S20", "S9"), ("S128", "i8"), ("u4", "none")])
def test_what_finds_no_room_in_a_half_goes_elsewhere(device: str, subtables: int, key: str, value: str) -> None:
    """A subtable is halved while it is too full for that, values and all (docs/fidelity.md#dyhash-downsizing)."""
    slots = subtables * scale(device, 5120)
    n = slots * 11 // 20
    options = {"device": device, "design": "dynamic_cuckoo", "subtables": subtables, "seed": 5}
    options |= {"capacity": slots, "load_factor": 1.0}
    ids = np.arange(1, n + 1)
    keys = ids.astype(key)
    table: Any = HashSet(key, **options) if value == "none" else HashMap(key, value, **options)
    pairs = (keys,) if value == "none" else (keys, ids.astype(value))
    assert table.insert(*pairs).all()
    store = storage_of(table).store
    residuals = 0
    for _ in range(2):
        number = policies.subtable_to_halve(store.array.sizes)
        assert number is not None
        if table.load_factor > 0.7:
            break
        before = store.array.keys[number]
        store._halve_subtable(number)
        residuals += before - store.array.keys[number]
        store._place_displaced(None)
        assert table.contains(keys).all() and len(table) == n
        table.check()
    assert residuals > 0
    if value != "none":
        assert (table.find(keys)[0] == pairs[1]).all()


# ---- room
@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("subtables", [3, 4, 8])
def test_nine_tenths_and_more_of_the_slots_are_filled(device: str, subtables: int) -> None:
    """No insert fails at the load factors of Tables 4 to 8 (docs/fidelity.md#dyhash-failures)."""
    n = scale(device, 60_000)
    table = table_of(device, "u4", "u4", subtables=subtables, capacity=n, load_factor=0.95, on_full="raise")
    slots = table.stats().slots
    keys = np.random.default_rng(2).permutation(np.arange(1, slots + 1, dtype=np.uint32)) * np.uint32(0x9E3779B1)
    for load in (0.75, 0.8, 0.85, 0.9, 0.95):
        more = keys[len(table) : int(load * slots)]
        assert table.insert(more, more).all()
    assert table.stats().slots == slots and table.stats().resizes == 0
    assert table.contains(keys[: len(table)]).all()
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", "u8"), ("S16", "S40"), ("S128", "u4")])
@pytest.mark.parametrize("unique", [False, True])
def test_a_batch_that_does_not_fit_changes_nothing(device: str, key: str, value: str, unique: bool) -> None:
    n = scale(device, 2400)
    table = table_of(device, key, value, capacity=n // 2, load_factor=0.9, on_full="raise")
    slots = table.stats().slots
    ids = np.arange(1, 2 * slots + 1)
    keys, values = ids.astype(key), ids.astype(value)
    held = int(0.8 * slots)
    assert table.insert(keys[:held], values[:held]).all()
    for extra in (slots, slots - held + 1):
        some = slice(held, held + extra)
        with pytest.raises(TableFull, match="as it was"):
            table.insert(keys[some], values[some], assume_unique=unique)
        with pytest.raises(TableFull):  # those that are there keep their values
            table.assign(keys[: held + extra], values[: held + extra][::-1].copy())
        assert len(table) == held
        found_values, found = table.find(keys)
        assert (found == (np.arange(len(keys)) < held)).all() and (found_values[:held] == values[:held]).all()
        table.check()
    assert table.erase(keys[:10]).all() and table.insert(keys[-10:], values[-10:]).all()


@pytest.mark.parametrize("device", HERE)
def test_without_memory_for_a_larger_subtable_the_table_is_as_it_was(device: str) -> None:
    n = scale(device, 8000)
    table = table_of(device, capacity=n)
    keys = numbers(3 * n)
    held = int(0.88 * table.stats().slots)
    table.insert(keys[:held], keys[:held])
    sizes = sizes_of(table)
    with mock.patch.object(SubtableArray, "_memory_of", side_effect=MemoryError("none left")):
        more = keys[held : held + table.stats().slots // 50]
        assert table.insert(more, more).all()  # beyond beta, but there is room
        with pytest.raises(TableFull, match="as it was"):
            table.insert(keys[held:], keys[held:])
        assert table.contains(keys).sum() == len(table) == held + len(more)
        assert table.erase(keys[: held * 3 // 4]).all()  # nor for a smaller one
        assert sizes_of(table) == sizes
    assert table.contains(keys).sum() == len(table)
    table.check()
    assert table.insert(keys[:held], keys[:held]).sum() == held * 3 // 4


@pytest.mark.parametrize("device", HERE)
def test_a_resize_holds_two_copies_of_one_subtable_and_no_more(device: str) -> None:
    table = table_of(device, "u4", "u4", capacity=1000, beta=0.9)
    before = table.stats()
    assert before.peak_nbytes == table.nbytes
    keys = np.arange(1, before.slots + 1, dtype=np.uint32)
    table.insert(keys[: int(0.9 * before.slots)], keys[: int(0.9 * before.slots)])
    assert table.stats().resizes == 0
    table.insert(keys, keys)
    after = table.stats()
    assert after.resizes == 1 and after.rebuilds == 0
    # The old copy, half of the new one, goes once the new one is filled.
    assert after.peak_nbytes == table.nbytes + (table.nbytes - before.nbytes)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", "f8"), ("S16", "S40"), ("S128", "none")])
@pytest.mark.parametrize("subtables", [2, 3])
def test_the_peak_is_what_resizes_really_held(device: str, key: str, value: str, subtables: int) -> None:
    """Both copies, and the lists, flags, values and copies of pairs that a resize works with."""
    n = scale(device, 9000)
    options = {"device": device, "design": "dynamic_cuckoo", "subtables": subtables, "seed": 5, "capacity": 64}
    ids = np.arange(1, n + 1)
    keys = ids.astype(key)
    engine = engine_for(device)
    with held_memory(engine) as held:
        table: Any = HashSet(key, **options) if value == "none" else HashMap(key, value, **options)
        store = storage_of(table).store
        real = table.nbytes
        assert table.stats().peak_nbytes == real

        def measured(resize: Any) -> Any:
            """A resize, whose memory is what it allocates beside that of the table."""

            def measure(self: Any, *given: Any) -> Any:
                nonlocal real
                ahead = sum(memory.nbytes for memory in given if hasattr(memory, "nbytes"))
                others = held.now - self.array.nbytes - ahead
                held.peak = held.now
                try:
                    return resize(self, *given)
                finally:
                    real = max(real, held.peak - others)

            return measure

        kind = type(store)
        with mock.patch.multiple(kind, _halve=measured(kind._halve), _enlarge=measured(kind._enlarge)):
            for some in np.array_split(np.arange(n), 9):
                pairs = (keys[some],) if value == "none" else (keys[some], ids[some].astype(value))
                assert table.insert(*pairs).all()
            assert table.stats().peak_nbytes == real
            before = table.nbytes
            for some in np.array_split(keys[: n * 2 // 3], 3):  # of more at once, the rest moves to a smaller table
                assert table.erase(some).all()
            after = table.stats()
            assert after.peak_nbytes == real and before < real and after.nbytes < before
        reports = 6 * 8 * REPORT_WORDS + RESERVE_BYTES  # which are not a resize's
        with mock.patch.object(kind, "_replace", measured(kind._replace)):
            table.reserve(2 * n)
            real = 0
            table.shrink()
        assert real - reports <= max(after.peak_nbytes, table.stats().peak_nbytes)
        assert table.contains(keys).sum() == len(table) == n - n * 2 // 3


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("left", [0, 1])
def test_an_erase_of_nearly_all_keys_moves_the_rest_once(device: str, left: int) -> None:
    """Not subtable by subtable: the table has a size at once that the halvings would have led to."""
    n = scale(device, 40_000)
    table = table_of(device, capacity=n)
    keys = numbers(2 * n)
    table.insert(keys[:n], keys[:n])
    sizes, rebuilds = sizes_of(table), table.stats().rebuilds
    kept = left * n // 100
    with counted_moves() as moves:
        assert table.erase(keys[kept:n]).all() and len(table) == kept
        assert not moves and table.stats().rebuilds == rebuilds + 1
    assert 0.4 <= table.load_factor < 0.5 if kept > 50 else max(sizes_of(table)) == 1
    assert sum(sizes_of(table)) < sum(sizes) // 2
    assert table.contains(keys[:kept]).all() and not table.contains(keys[kept:n]).any()
    with counted_moves() as moves:
        assert table.insert(keys[n:], keys[n:]).all()
        assert not moves and 0.4 < table.load_factor <= 0.9
    assert table.contains(keys[n:]).all()
    table.check()


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_a_batch_behind_an_erase_of_all_keys_finds_the_table_as_large_and_without_tombstones(device: str) -> None:
    n = scale(device, 40_000)
    table = table_of(device, capacity=n)
    keys = numbers(3 * n)
    store, slots = storage_of(table).store, table.stats().slots
    probes = []
    for turn in range(3):
        some, others = keys[turn * n : (turn + 1) * n], keys[(turn - 1) * n :][:n]
        assert table.insert(some, some).all() and store.slots == slots and not store.rebuilds
        probes.append(table.probe_counts(others).mean())
        assert table.contains(some).all() and len(table) == n
        table.check()
        assert table.erase(some).all()
    assert max(probes) < probes[0] + 0.1, "absent keys are looked for behind tombstones"


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("looks", [False, True])
def test_churn_replaces_all_subtables_at_most_once_a_verb_and_resizes_none(device: str, looks: bool) -> None:
    """Batches of several pieces; ``looks``: somebody asks for the size, so that the table shrinks behind each erase."""
    n = scale(device, 400_000)
    table = table_of(device, capacity=n)
    rebuilds = 0
    with counted_moves() as moves, mock.patch.object(store_module, "SETTLED", 3 * n // 7):
        for turn, some in enumerate(np.split(numbers(4 * n), 4)):
            for verb in (lambda some=some: table.insert(some, some), lambda some=some: table.erase(some)):
                assert verb().all()
                assert not looks or len(table) in (0, n)
                assert storage_of(table).store.rebuilds <= rebuilds + 1 and not moves, turn
                rebuilds = storage_of(table).store.rebuilds
            assert not table.contains(some).any()
    waits = looks or not parts_of(table).front.engine.asynchronous
    assert rebuilds == (7 if waits else 0)
    assert table.stats().size == 0 and table.stats().rebuilds == (7 if waits else 1)
    table.check()


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("copies", [1, 4])
def test_a_batch_much_larger_than_the_table_makes_it_large_enough_at_once(device: str, copies: int) -> None:
    n = scale(device, 400_000)
    keys = np.tile(numbers(n // copies), copies)
    table = table_of(device)
    with counted_moves() as moves:
        assert table.insert(keys, keys).sum() == n // copies
    assert not moves and table.stats().rebuilds == 1 and table.load_factor > 0.6
    assert table.contains(keys).all()
    table.check()


def test_reserve_enlarges_and_shrink_packs() -> None:
    table = table_of("cpu", capacity=100)
    table.reserve(10_000)
    assert table.capacity >= 10_000 and table.stats().resizes > 0
    keys = numbers(10_000)
    table.insert(keys, keys)
    table.erase(keys[:5000])
    table.shrink()
    assert table.contains(keys).sum() == len(table) == 5000 and table.load_factor > 0.6
    assert table.stats().rebuilds == 1
