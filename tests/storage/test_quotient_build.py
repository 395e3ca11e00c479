"""The build of a quotient table on a CPU: by groups, in the memory of the lines, from keys that others write to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from support.inside import storage_of
from support.quotients import SLOTS, add, array_of, made, value_of
from warphash import HashMap, set_num_threads
from warphash.arrays.adapters.numpy import address_of
from warphash.runtime.abi import Op, QuotientTable
from warphash.storage.batch import Batch
from warphash.storage.quotient import array as quotient
from warphash.storage.quotient import group_build, route
from warphash.storage.quotient.array import geometry_for
from warphash.storage.word_rows import FEWEST_BUILT
from warphash.table.updates import Updates


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a table of a few hundred lines have several groups of several ranges, and a batch several parts."""
    monkeypatch.setattr(quotient, "MOST_RANGE_BUCKETS", 16)
    monkeypatch.setattr(route, "FEW_GROUPS", 3)
    monkeypatch.setattr(route, "MOST_GROUP_RANGES", 8)
    monkeypatch.setattr(route, "FEWEST_OF_PART", 100)
    quotient._form_of.cache_clear()  # a form does not tell how many groups are few
    set_num_threads(3)
    yield
    set_num_threads(None)
    quotient._form_of.cache_clear()


def noted_batches(
    table: Any, entry: str, monkeypatch: pytest.MonkeyPatch, ahead: Callable[[], Any] = lambda: None
) -> list[dict[str, int]]:
    """The batches that a kernel is given from now on. Calls ``ahead`` before each of its launches."""
    noted, program = list[dict[str, int]](), array_of(table).program
    run = program.run

    def launch(name: str, of: QuotientTable, batch: Any, *rest: Any) -> None:
        if name == entry:
            fields = ("parts", "groups", "group_ranges", "capacity", "left")
            noted.append({field: getattr(batch, field, 0) for field in fields})
            ahead()
        run(name, of, batch, *rest)

    monkeypatch.setattr(program, "run", launch)
    return noted


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize(("key", "value"), SLOTS)
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("op", [Op.KEEP, Op.REPLACE])
def test_groups_of_ranges_have_each_key_once(
    key: str, value: str | None, copies: int, op: Op, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    keys = rng.permutation(np.repeat(np.arange(6000 // copies, dtype=key) * np.dtype(key).type(7), copies))
    table = made(key, value, 9000, device="cpu", load_factor=0.9)
    noted = noted_batches(table, "build_groups", monkeypatch)
    added = (table.assign if op == Op.REPLACE and value else table.insert)(
        keys, *([value_of(keys, value)] if value else [])
    )
    assert [(batch["group_ranges"], batch["parts"] > 1, batch["groups"] > 1) for batch in noted] == [(8, True, True)]
    assert noted[0]["capacity"] > 0
    array = array_of(table)
    assert noted[0]["groups"] * 8 == array.ranges and len(table) == 6000 // copies
    assert (np.sort(keys[added]) == np.unique(keys)).all()
    if value:
        values, found = table.find(keys)
        assert found.all() and (values == value_of(keys, value)).all()
    assert table.contains(keys).all() and not table.contains(keys + np.dtype(key).type(1)).any()
    table.check()


def test_lines_so_full_that_keys_move_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys find both of their buckets full, and a key in the way goes to its other one."""
    table = made("u8", "u8", 20_000, device="cpu", load_factor=0.9, on_full="raise")
    keys = np.random.default_rng(3).integers(0, 1 << 63, int(0.87 * array_of(table).slots), np.uint64)
    noted = noted_batches(table, "build_groups", monkeypatch)
    assert add(table, keys).all() and len(noted) == 1
    assert (table.find(keys)[0] == ~keys).all()
    table.check()


@pytest.mark.usefixtures("small_groups")
def test_a_group_with_more_elements_than_its_lines_have_room_for_has_memory_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = made("u4", "u4", 7000, device="cpu")
    noted = noted_batches(table, "build_groups", monkeypatch)
    keys = np.concatenate([np.full(5000, 9, np.uint32), np.arange(1000, dtype=np.uint32)])
    added = add(table, keys)
    assert [(batch["capacity"], batch["left"] > 0) for batch in noted] == [(0, True)]
    assert added.sum() == len(table) == 1000 and (table.find(keys)[0] == ~keys).all()
    table.check()


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("free", [1 << 10, 1 << 30])
def test_where_memory_is_short_a_crowded_batch_is_applied(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "LAUNCH_ELEMENTS", 1000)
    monkeypatch.setattr(group_build, "available_bytes", lambda: free)
    table = made("u4", "u4", 7000, device="cpu")
    built = noted_batches(table, "build_groups", monkeypatch)
    applied = [noted_batches(table, entry, monkeypatch) for entry in ("build", "apply")]
    keys = np.concatenate([np.full(5000, 9, np.uint32), np.arange(1000, dtype=np.uint32)])
    held = [array_of(table).engine.from_host(column) for column in (keys, ~keys)]
    storage_of(table).update(Batch(held[0].ptr, held[1].ptr, len(keys)))
    assert (len(built), sum(map(len, applied))) == ((1, 0) if free > 1 << 20 else (0, 6))
    assert len(table) == 1000 and (table.find(keys)[0] == ~keys).all()
    table.check()


@pytest.mark.parametrize("moment", ["place_parts", "scatter_parts", "build_groups"])
def test_keys_that_others_write_to_meanwhile_are_read_once(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a part has other elements than were counted, nothing is built: the batch is copied, and done again."""
    n = 2 * FEWEST_BUILT
    firsts, others = np.arange(n, dtype=np.uint64), np.arange(n, dtype=np.uint64) + np.uint64(1 << 40)
    keys, values, table = firsts.copy(), firsts.copy(), made("u8", "u8", 2 * n, device="cpu")
    noted = noted_batches(table, moment, monkeypatch, lambda: np.copyto(keys, others))
    assert table.insert(keys, values).all()
    has_copied = moment != "build_groups"
    assert len(noted) == 1 + has_copied and len(table) == n
    assert (table.find(others if has_copied else firsts)[0] == values).all()
    table.check()


def test_where_keys_change_meanwhile_the_table_holds_what_it_held(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 5000
    keys, table = np.arange(n, dtype=np.uint64), made("u8", "u8", 2 * n, device="cpu")
    noted_batches(table, "scatter_parts", monkeypatch, lambda: np.copyto(keys, keys + np.uint64(1)))
    batch = Batch(address_of(keys), address_of(keys), n)
    assert not storage_of(table).store.build(batch)
    assert len(table) == 0 and not table.contains(np.arange(2 * n, dtype=np.uint64)).any()
    table.check()


def test_a_batch_is_not_copied_ahead_of_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.arange(2 * FEWEST_BUILT, dtype=np.uint64)
    table = made("u8", "u8", 2 * len(keys), device="cpu")
    monkeypatch.setattr(Updates, "_private_pairs", None)  # a call would raise
    assert table.insert(keys, keys).all() and (table.find(keys)[0] == keys).all()


def test_where_no_thread_has_memory_for_lines_a_batch_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made("u4", "u4", 7000, device="cpu")
    built = noted_batches(table, "build_groups", monkeypatch)
    read, times = group_build.read_report, iter(range(9))

    def reported(*arguments: Any) -> Any:
        return read(*arguments)._replace(mismatches=next(times) == 2)  # behind place_parts, scatter_parts, build_groups

    monkeypatch.setattr(group_build, "read_report", reported)
    keys = np.arange(5000, dtype=np.uint32)
    assert add(table, keys).all() and len(built) == 1
    assert len(table) == 5000 and (table.find(keys)[0] == ~keys).all()
    table.check()


@pytest.mark.parametrize("has_values", [True, False])
def test_a_batch_for_which_no_memory_is_left_leaves_no_line(has_values: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread has no memory for lines that wait, and then there is none to bring the elements one by one."""
    table = made("u4", "u4" if has_values else None, 3000, device="cpu")
    engine, scatter = array_of(table).engine, group_build.GroupBuild.scatter

    def refused(*given: Any) -> Any:
        raise MemoryError("none left")

    def failed(build: group_build.GroupBuild) -> bool:
        assert scatter(build)
        monkeypatch.setattr(engine, "allocate", refused)
        return False

    monkeypatch.setattr(group_build.GroupBuild, "scatter", failed)
    given = np.arange(1, 3001, dtype="u4")
    with pytest.raises(MemoryError):
        table.insert(given, given) if has_values else table.insert(given)
    monkeypatch.undo()
    assert len(table) == 0 and not table.contains(np.arange(1 << 21, dtype="u4")).any()
    table.check()


@pytest.mark.parametrize("slots", [4 * 512 * 4096, 4 * 512 * 4096 + 1, 30_000_000, 417_000_001])
def test_many_ranges_are_whole_groups(slots: int) -> None:
    layout: Any = array_of(made("u8", "u8", 100)).spec.layout
    each, ranges, buckets = geometry_for(slots, layout, 8, 8, in_groups=True)
    assert ranges <= route.FEW_GROUPS or ranges % route.MOST_GROUP_RANGES == 0
    assert ranges % route.group_ranges(ranges) == 0 and slots <= each * ranges * buckets < 1.005 * slots + 512 * each
    assert geometry_for(each * ranges * buckets, layout, 8, 8, in_groups=True) == (each, ranges, buckets)


@pytest.mark.parametrize("n", [1, 100, 1 << 14, 1 << 20, 300_000_000])
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_parts_have_all_elements_of_a_batch(n: int, threads: int) -> None:
    parts, length = route.parts_of(n, threads)
    assert (parts - 1) * length < n <= parts * length and length % 64 == 0
    assert parts == 1 if threads == 1 or n < 2 * route.FEWEST_OF_PART else 1 < parts <= route.PARTS_OF_THREAD * threads


def test_a_build_needs_little_memory_beside_that_of_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1 << 18
    table = HashMap("u8", "u8", capacity=n, design="quotient_cuckoo", device="cpu")
    engine, asked = array_of(table).engine, list[int]()
    allocate = engine.allocate
    monkeypatch.setattr(engine, "allocate", lambda nbytes, stream=None: (asked.append(nbytes), allocate(nbytes))[1])
    keys = np.arange(n, dtype=np.uint64)
    held = [engine.from_host(column) for column in (keys, keys)]
    asked.clear()
    storage_of(table).update(Batch(held[0].ptr, held[1].ptr, n))
    assert sum(asked) < n and len(table) == n
