"""First batches of quotient tables that are built without a wait: what the next calls see, and what they do over."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from support.faults import FAMILIES, OLD, VERBS, FirstBatch, Scenario, all_faults, check_harmless, new_values
from support.hashing import permuted
from support.inside import parts_of, storage_of
from support.passes import in_passes
from support.quotients import array_of, entries, launches, made, value_of
from support.types import Array
from warphash import HashSet
from warphash.runtime.abi import Op
from warphash.storage.quotient import route

DEVICES = one_of_each("emulated", "cuda")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def passes() -> Iterator[None]:
    with in_passes():
        yield


def is_left(table: Any) -> bool:
    return storage_of(table).store._left_build is not None


def build(table: Any, keys: Array, values: Array | None, *, unique: bool = False) -> None:
    """As ``from_arrays`` does it."""
    parts_of(table).updates.update(None, keys, values, Op.KEEP, unique=unique, answers=False)


def put(table: Any, keys: Array) -> None:
    """Add keys without flags, in arrays of the caller's that change behind the call."""
    keys, values = keys.copy(), None if isinstance(table, HashSet) else value_of(keys, table.value_dtype)
    build(table, keys, values)
    for given in (keys, *([] if values is None else [values])):
        given[:] = 0


def many(key: str = "u4", n: int = 500) -> Array:
    return np.random.default_rng(5).permutation(np.arange(1, 2 * n, dtype=key))[:n]


def of_one_range(table: Any, n: int) -> Array:
    """Keys that all have their home in the first range of a table."""
    array, keys = array_of(table), np.arange(1, 400 * n, dtype=table.key_dtype)
    if array.family == "mixer":
        hashes = permuted(array, keys)
    else:
        word = keys.dtype.type
        hashes = keys * word(array.table.multiplier[0] | 1) + word(array.table.addend[0])
    return keys[hashes < np.iinfo(keys.dtype).max // array.ranges][:n]


CALLS: dict[str, Callable[[Any, Array], Any]] = {
    "len": lambda table, keys: len(table),
    "find": lambda table, keys: table.find(keys),
    "contains": lambda table, keys: table.contains(keys),
    "insert": lambda table, keys: table.insert(keys, keys),
    "a first batch again": lambda table, keys: put(table, keys),
    "erase none": lambda table, keys: table.erase(keys + keys.dtype.type(10_000)),
    "copy": lambda table, keys: table.copy(),
    "items": lambda table, keys: table.to_arrays(),
    "reserve": lambda table, keys: table.reserve(5000),
    "shrink": lambda table, keys: table.shrink(),
    "check": lambda table, keys: table.check(),
    "stats": lambda table, keys: table.stats(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("sort", ["different", "one in most", "of one range"])
def test_what_calls_find_behind_a_build(device: str, call: str, sort: str) -> None:
    table = made("u4", "u4", 1500, device)
    seed = array_of(table).seed
    keys = many() if sort != "of one range" else of_one_range(table, 100)
    if sort == "one in most":
        keys = np.concatenate([keys[:200], np.full(300, 7, "u4")])
    put(table, keys)
    assert is_left(table) and storage_of(table).store.pending
    CALLS[call](table, keys)
    assert not is_left(table) and not storage_of(table).store.pending
    assert len(table) == len(np.unique(keys))
    got, found = table.find(keys)
    assert found.all() and (got == value_of(keys, "u4")).all() and not table.contains(keys + np.uint32(10_000)).any()
    if call != "shrink":
        assert (array_of(table).seed > seed) == (sort == "of one range")  # other hash constants
    table.check()


def test_crowded_ranges_are_settled_by_the_next_call(device: str) -> None:
    keys = np.concatenate([many(n=3000), np.full(20_000, 7, "u4")])
    with in_passes(64):
        table = made("u4", "u4", 40_000, device)
        put(table, keys)
        assert is_left(table)
        with launches(table) as launched:
            assert len(table) == len(np.unique(keys))
        assert entries(launched) == ["build_some", "apply_crowds", "apply_some"]
    assert (table.find(keys)[0] == value_of(keys, "u4")).all() and array_of(table).seed == 5
    table.check()


@pytest.mark.parametrize(("key", "value"), [("u4", None), ("u8", "u8"), ("u8", "u4"), ("u4", "u8"), ("i2", "i2")])
@pytest.mark.parametrize("one_range", [False, True])
@pytest.mark.parametrize("hash", ["mixer", "universal"])
def test_types(device: str, key: str, value: str | None, one_range: bool, hash: str) -> None:
    table = made(key, value, 1500, device, hash=hash)
    keys = many(key) if not one_range or key == "i2" else of_one_range(table, 200)
    put(table, keys)
    assert is_left(table)
    assert len(table) == len(keys) and table.contains(keys).all()
    assert value is None or (table.find(keys)[0] == value_of(keys, value)).all()
    table.check()


def test_a_table_that_is_cleared_forgets_the_build(device: str) -> None:
    table, keys = made("u4", "u4", 1500, device), many()
    put(table, keys)
    table.clear()
    assert len(table) == 0 and not table.contains(keys).any()
    put(table, keys[:100])
    assert is_left(table) and len(table) == 100 and table.contains(keys).sum() == 100


def test_keys_that_are_said_to_differ(device: str) -> None:
    table, keys = made("u4", "u4", 1500, device), many()
    build(table, keys, keys, unique=True)
    assert is_left(table) and len(table) == len(keys) and storage_of(table).store.state.vouched


@pytest.mark.parametrize(
    "options", [{"on_full": "raise"}, {"load_bounds": (0.1, 0.8)}, {"count_probes": True}], ids=str
)
def test_tables_that_need_the_end_of_a_build_wait(device: str, options: dict[str, Any]) -> None:
    table = made("u4", "u4", 1500, device, **options)
    put(table, many())
    assert not storage_of(table).store.pending and len(table) == 500


def test_batches_that_need_the_end_of_a_build_wait(device: str) -> None:
    table = made("u4", "u4", 1500, device)
    assert table.insert(many(), many()).all() and not is_left(table)
    full = made("u4", "u4", 510, device)
    put(full, many())
    assert not is_left(full)
    with mock.patch.object(route, "MOST_KEPT", 499):
        large = made("u4", "u4", 1500, device)
        put(large, many())
    assert array_of(large)._updates is not None  # which the host made while it waited
    for other in (full, large):
        assert not storage_of(other).store.pending and len(other) == 500 and other.contains(many()).all()


def test_a_table_with_a_build_that_was_left_is_freed_with_its_last_reference(device: str) -> None:
    table = made("u4", "u4", 1500, device)
    put(table, many())
    assert is_left(table)
    array = weakref.ref(array_of(table))
    gc.disable()
    del table
    gone = array() is None
    gc.enable()
    assert gone


@dataclass(frozen=True)
class BehindABuild(Scenario):
    """A call behind the first batch of a table, which was left. The caller's arrays have changed since."""

    unplaced: bool = False

    def make(self) -> Any:
        table = self.family.table(600, self.device)
        store = storage_of(table).store
        keys, values = self.family.keys(OLD), self.family.values(OLD)
        build(table, keys, values)
        keys[:], values[:] = 0, 0
        assert store._left_build is not None
        if self.unplaced:  # as if some elements had no slot
            end = store._left_build.end
            store._left_build = SimpleNamespace(end=lambda stream: (end(stream), None)[1])
        return table


@pytest.mark.parametrize("verb", ["insert", "find", "erase", "__len__"])
@pytest.mark.parametrize("unplaced", [False, True])
@pytest.mark.parametrize("lines", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_faults_of_calls_behind_a_build(verb: str, unplaced: bool, lines: str) -> None:
    scenario = BehindABuild(FAMILIES["quotients"], VERBS[verb], "emulated", grows=False, unplaced=unplaced)
    check_harmless(all_faults(scenario, every=23 if lines == "some" else 1))


@pytest.mark.parametrize("lines", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_faults_of_a_build_that_is_left(lines: str) -> None:
    call = lambda family, table, ids: build(table, family.keys(ids), family.values(new_values(ids)))  # noqa: E731
    scenario = FirstBatch(FAMILIES["quotients"], replace(VERBS["insert"], call=call), "emulated")
    table = scenario.make()
    scenario.call(table)
    assert is_left(table)
    check_harmless(all_faults(scenario, every=17 if lines == "some" else 1))
