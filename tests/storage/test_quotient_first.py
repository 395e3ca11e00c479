"""First updates of a process whose cache has no kernels: they do without those that a compiler takes longest for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.faults import all_faults, check_harmless, scenarios
from support.inside import storage_of
from support.quotients import FORMS, SLOTS, add, array_of, check_combined, entries, held_locks, launches, made, value_of
from support.refusals import refusing
from warphash import HashMap, TableFull
from warphash.runtime.cuda.program import CudaProgram
from warphash.runtime.emulated.engine import EmulatedProgram
from warphash.storage.batch import Batch
from warphash.storage.quotient import array as quotient
from warphash.storage.quotient import route
from warphash.storage.quotient.route import Facts, Way, is_for_first

DEVICES = one_of_each("emulated", "cuda")


@contextmanager
def without(*kernels: str) -> Iterator[None]:
    """Let no compilation of some kernels have begun."""
    with (
        mock.patch.object(route, "is_for_first", is_for_first),
        mock.patch.object(EmulatedProgram, "is_begun", lambda self, entry: entry not in kernels),
        mock.patch.object(CudaProgram, "is_begun", lambda self, entry: entry not in kernels),
    ):
        yield


@pytest.fixture
def first() -> Iterator[None]:
    with without("update_few", "build"):
        yield


def begun(*kernels: str) -> Any:
    return lambda entry: entry in kernels


@pytest.mark.parametrize(
    ("way", "n", "is_blank", "kernels", "first"),
    [
        (Way.FEW, 10, True, (), True),
        (Way.FEW, 10, False, ("build",), True),
        (Way.FEW, 10, True, ("update_few",), False),
        (Way.ONE_LAUNCH, 10, False, (), True),
        (Way.ONE_LAUNCH, 10, False, ("update_few",), False),
        (Way.RANGES, route.MOST_FIRST, True, ("update_few",), True),
        (Way.RANGES, route.MOST_FIRST, True, ("build",), False),
        (Way.RANGES, route.MOST_FIRST + 1, True, (), False),
        (Way.RANGES, 10, False, (), False),
    ],
)
def test_which_updates_are_for_first(way: Way, n: int, is_blank: bool, kernels: tuple[str, ...], first: bool) -> None:
    facts = Facts(True, 1000, 2, 4, 8)
    assert is_for_first(facts, way, n, is_blank=is_blank, is_begun=begun(*kernels)) == first
    assert not is_for_first(facts._replace(on_gpu=False), way, n, is_blank=is_blank, is_begun=begun(*kernels))


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value", "slots", "buckets"), [form[:4] for form in FORMS])
def test_every_form(device: str, key: str, value: str | None, slots: int, buckets: int) -> None:
    """New keys, known ones and repeated ones, in a table without pairs and in one with pairs."""
    rng = np.random.default_rng(3)
    keys = np.unique(rng.integers(0, np.iinfo(key).max, 2000, key, endpoint=True))
    old, new = rng.permutation(keys[::2]), keys[1::2]
    table = made(key, value, slots * buckets, device)
    assert storage_of(table).store.spec.slots_per_bucket == slots
    with launches(table) as launched:
        assert add(table, old).all()
        batch = rng.permutation(np.concatenate([old[:150], new[:200], new[:50]]))
        added = add(table, batch)
        assert not storage_of(table).store.state.left and "build" not in entries(launched)
        assert set(entries(launched)) <= {"update_locked", "update_few"}
    assert sorted(batch[added].tolist()) == new[:200].tolist() and len(table) == len(old) + 200
    assert table.contains(old).all() and table.contains(new[:200]).all() and not table.contains(new[200:]).any()
    if value:
        assert (table.find(batch)[0] == value_of(batch, value)).all()
        assert not table.assign(batch, batch.astype(value)).any()
        assert (table.find(batch)[0] == batch.astype(value)).all()
    assert not len(held_locks(table))
    table.check()


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("alike", [10, 700])
@pytest.mark.parametrize("op", ["add", "min", "max", "or", "and", "xor"])
def test_one_key_in_many_elements(device: str, op: str, alike: int) -> None:
    """Rounds do some of them, each once; a block does the rest, if there are many."""
    table = made("u4", "u4", 7 * 300, device)
    values = np.random.default_rng(2).integers(0, 1 << 32, 900, np.uint32)
    crowd = np.where(np.arange(900) < alike, np.uint32(5), np.arange(900, dtype=np.uint32))
    with launches(table) as launched:
        added = table.upsert(crowd, values, op)
        assert entries(launched)[:2] == 2 * ["update_locked"] and ("update_few" in entries(launched)) == (alike > 500)
    assert np.count_nonzero(added) == len(table) == len(np.unique(crowd))
    check_combined(table, op, crowd, values, {})
    table.check()


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value"), SLOTS)
def test_a_full_table(device: str, key: str, value: str | None) -> None:
    """Keys for which lanes find no room go to a block. If it finds none, a table grows, or the batch is taken back."""
    slots = SLOTS[key, value] * 40
    keys = np.arange(slots, dtype=key)
    full = made(key, value, slots, device, on_full="raise")
    n = slots - 3
    with launches(full) as launched:
        assert add(full, keys[:n]).all() and "update_few" in entries(launched)
    assert full.contains(keys[:n]).all() and len(full) == n
    full.check()
    with pytest.raises(TableFull):
        add(full, np.arange(n - 10, n + slots, dtype=key))
    assert len(full) == n and full.contains(keys[:n]).all()
    grown = made(key, value, slots // 4, device)
    assert add(grown, keys).all() and grown.contains(keys).all() and len(grown) == slots
    for table in (full, grown):
        table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_that_a_build_would_take(device: str) -> None:
    """It takes locks if the build is not compiled. The next one, of a table without keys, is a build."""
    keys = np.arange(4000, dtype=np.uint32)
    with without("build"):
        table = HashMap.from_arrays(keys, ~keys, design="quotient_cuckoo", device=device)
        assert (table.find(keys)[0] == ~keys).all() and len(table) == len(keys)
        table.check()
        first = made("u4", "u4", 6000, device)
        with launches(first) as launched:
            add(first, keys)
            assert set(entries(launched)) <= {"update_locked", "update_few"}
    for kernels in ((), ("update_few",)):
        with without(*kernels):
            table = made("u4", "u4", 6000, device)
            with launches(table) as launched:
                assert add(table, keys).all() and "build" in entries(launched)
            table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_begin_in_the_order_in_which_they_are_needed(device: str) -> None:
    keys = np.arange(4000, dtype=np.uint32)
    for kernels in (("update_locked", "find", "update_few", "build"), ("update_few", "build"), ("build",)):
        for n in (100, 4000):
            wanted = list(kernels) if n == 4000 else [name for name in kernels if name != "build"]
            with without(*kernels):
                table = made("u4", "u4", 6000, device)
                with mock.patch.object(array_of(table).program, "expect") as expected:
                    add(table, keys[:n])
            assert [call.args[0] for call in expected.call_args_list] == [wanted] * bool(wanted)


@pytest.mark.usefixtures("first")
@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestFaults:
    @pytest.mark.parametrize("lines", ["some", pytest.param("more", marks=pytest.mark.slow)])
    @pytest.mark.parametrize("rounds", [8, 1])
    @pytest.mark.parametrize("verb", ["insert", "assign", "upsert"])
    def test_a_fault_leaves_the_table_whole(
        self, verb: str, rounds: int, lines: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(quotient, "_MOST_ROUNDS", rounds)
        for scenario in scenarios("emulated", ["quotients"], [verb]):
            check_harmless(all_faults(scenario, every=31 if lines == "some" else 5))

    def test_without_memory_nothing_is_launched(self) -> None:
        table = made("u4", "u4", 7 * 100, "emulated")
        array = array_of(table)
        rows = array.engine.from_host(np.repeat(np.arange(100, 103, dtype=np.uint32), 30))
        for allocation in (2, 1):  # of the answers, which stay, and of the lists
            with refusing(array.engine, allocation), launches(table) as launched, pytest.raises(MemoryError):
                array.update(Batch(rows.ptr, rows.ptr, 90))
            assert not launched.called
        assert array.update(Batch(rows.ptr, rows.ptr, 90)).changed == 3
