"""Batches for a quotient table whose elements have a lane each: which ones, and what each element comes to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.faults import all_faults, check_harmless, scenarios
from support.inside import storage_of
from support.passes import in_one_launch
from support.quotients import FORMS, SLOTS, add, array_of, check_combined, entries, held_locks, launches, made, value_of
from support.refusals import refusing
from warphash import TableFull
from warphash.storage.batch import Batch
from warphash.storage.quotient import array as quotient
from warphash.storage.quotient import route
from warphash.storage.quotient.one_launch import _PLACES

DEVICES = one_of_each("emulated", "cuda")


@pytest.fixture(autouse=True)
def no_update_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no update be one launch to its end: `test_quotient_few` is about these."""
    monkeypatch.setattr(route, "MOST_FOR_A_BUCKET", 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value", "slots", "buckets"), [form[:4] for form in FORMS])
def test_keys_that_are_new_and_keys_that_are_there(
    device: str, key: str, value: str | None, slots: int, buckets: int
) -> None:
    table = made(key, value, slots * buckets, device)
    assert storage_of(table).store.spec.slots_per_bucket == slots
    rng = np.random.default_rng(1)
    keys = np.unique(rng.integers(0, np.iinfo(key).max, 1300, key, endpoint=True))
    old, new = keys[::2], keys[1::2]
    assert add(table, old).all()
    batch = rng.permutation(np.concatenate([old[:150], new[:200]]))
    with launches(table) as launched:
        assert (add(table, batch) == np.isin(batch, new)).all() and not add(table, batch).any()
        assert entries(launched).count("update_locked") == 2
        assert entries(launched)[-2:] == ["update_locked", "update_few"]
    assert len(table) == len(old) + 200 and table.contains(batch).all() and not table.contains(new[200:]).any()
    if value:
        assert (table.find(batch)[0] == value_of(batch, value)).all()
        asked = rng.permutation(np.concatenate([batch, batch[:50], new[200:]]))
        there = np.isin(asked, keys[::2]) | np.isin(asked, batch)
        assert np.count_nonzero(table.upsert(asked, np.ones(len(asked), value), "add")) == len(new) - 200
        times = np.array([np.count_nonzero(asked == k) for k in asked])
        before = np.where(there, value_of(asked, value), np.array(0, value))
        assert (table.find(asked)[0] == (before + times.astype(value)).astype(value)).all()
        same = asked.astype(value)
        assert not table.assign(asked, same).any() and (table.find(asked)[0] == same).all()
    left = {*old.tolist(), *batch.tolist(), *(new.tolist() if value else ())}
    assert set(table.keys().tolist()) == left and len(table) == len(left)
    gone = rng.permutation(np.concatenate([old[:100], old[:100], new[-40:], new[:30]]))
    with launches(table) as launched:
        erased = table.erase(gone)
        assert entries(launched) == ["erase_alone", "renew_filters"]
    assert sorted(gone[erased].tolist()) == sorted(left & set(gone.tolist())) and not table.erase(gone).any()
    assert set(keys[table.contains(keys)].tolist()) == left - set(gone.tolist())
    table.check()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["add", "min", "max", "or", "and", "xor"])
def test_one_key_in_a_whole_batch(device: str, op: str) -> None:
    """Locks are not for such a batch: most of its elements are left to one block, and each of them counts."""
    with in_one_launch():
        table = made("u4", "u4", 7 * 100, device)
        add(table, np.arange(40, dtype=np.uint32))
        values = np.random.default_rng(2).integers(0, 1 << 32, 700, np.uint32)
        crowd = np.where(np.arange(700) % 7 > 0, 5, 1000).astype(np.uint32)
        with launches(table) as launched:
            added = table.upsert(crowd, values, op)
            assert entries(launched)[-2:] == ["update_locked", "update_few"]
        assert np.count_nonzero(added) == 1 and crowd[added] == 1000
        check_combined(table, op, crowd, values, {5: ~np.uint32(5)})
        table.check()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value", "slots"), [(*types, 60 * slots) for types, slots in SLOTS.items()])
def test_full_buckets_make_room(device: str, key: str, value: str | None, slots: int) -> None:
    """Keys move for others until a tenth of the slots is left, and no lock is kept."""
    with in_one_launch(1 << 10):
        table = made(key, value, slots, device, on_full="raise")
        added = 0
        keys = np.random.default_rng(3).permutation(np.arange(slots)).astype(key)
        for few in np.split(keys[: slots * 9 // 10], 6):
            assert add(table, few).all()
            added += len(few)
            assert len(table) == added and table.contains(keys[:added]).all()
            table.check()
            assert not len(held_locks(table))
        assert not table.contains(keys[added:]).any() and (
            not value or (table.find(keys[:added])[0] == value_of(keys[:added], value)).all()
        )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value", "slots"), [(*types, 3600 * slots) for types, slots in SLOTS.items()])
def test_guests_leave(device: str, key: str, value: str | None, slots: int) -> None:
    """Many keys are in their second buckets. Some of those that leave have the ranges make their filters anew."""
    with in_one_launch(1 << 10), mock.patch.object(quotient, "MOST_RANGE_BUCKETS", 20):
        table = made(key, value, slots, device)
        keys = np.random.default_rng(3).permutation(np.arange(slots * 7 // 10)).astype(key)
        add(table, keys)
        launched: list[str] = []
        for few in np.array_split(keys[: len(keys) // 2], 8):
            with launches(table) as noted:
                assert table.erase(np.concatenate([few, few[:3]])).sum() == len(few)
                launched += entries(noted)
            assert not table.contains(few).any()
            table.check()
        rest = keys[len(keys) // 2 :]
        assert (
            launched == ["erase_alone", "renew_filters"] * 8 and table.contains(rest).all() and len(table) == len(rest)
        )
        assert not value or (table.find(rest)[0] == value_of(rest, value)).all()


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_that_does_not_fit_is_taken_back(device: str) -> None:
    with in_one_launch():
        table = made("u4", "u4", 7 * 20, device, on_full="raise")
        keys = np.arange(300, dtype=np.uint32)
        add(table, keys[:60])
        with pytest.raises(TableFull):
            add(table, keys)
        assert len(table) == 60 and (table.find(keys[:60])[0] == ~keys[:60]).all()
        assert not table.contains(keys[60:]).any()
        table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_table_of_one_bucket(device: str) -> None:
    """The second bucket of each key is its home."""
    table = made("u4", "u4", 7, device, on_full="raise")
    assert array_of(table).buckets == 1
    for k in range(7):
        assert add(table, np.array([k], np.uint32)).all()
    with pytest.raises(TableFull):
        add(table, np.array([7], np.uint32))
    assert sorted(table.keys().tolist()) == list(range(7))
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_which_batches_are_one_launch(device: str) -> None:
    table = made("u4", "u4", 7 * 600, device)
    array = array_of(table)
    keys = np.arange(3000, dtype=np.uint32)
    for first, end, locked in ((0, 10, False), (10, 20, True), (20, 20 + array.buckets, True), (700, 2000, False)):
        with launches(table) as launched:
            add(table, keys[first:end])
            assert ("update_locked" in entries(launched)) == locked, (first, end)
    for first, end, alone in ((0, 2, True), (2, 2 + array.buckets, True), (700, 2000, False)):
        with launches(table) as launched:
            there = table.contains(keys[first:end])
            assert (table.erase(keys[first:end]) == there).all() and ("erase_alone" in entries(launched)) == alone
    table.clear()
    with launches(table) as launched:
        assert add(table, keys[:10]).all() and "build" in entries(launched)  # without pairs, there is more to gain
    table.check()


@contextmanager
def stopped_behind(table: Any, launched: int, fault: type[BaseException]) -> Iterator[None]:
    """Raise an error instead of the launch that follows so many."""
    program, so_far = array_of(table).program, count()
    run = program.run

    def launch(*arguments: Any) -> None:
        if next(so_far) == launched:
            raise fault
        run(*arguments)

    with mock.patch.object(program, "run", launch):
        yield


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestEmulated:
    def test_without_memory_nothing_is_launched(self) -> None:
        with in_one_launch():
            table = made("u4", "u4", 7 * 100, "emulated")
            array = array_of(table)
            add(table, np.arange(40, dtype=np.uint32))
            rows = array.engine.from_host(np.repeat(np.arange(100, 103, dtype=np.uint32), 30))
            for left in (2, 1):
                with refusing(array.engine, left), launches(table) as launched, pytest.raises(MemoryError):
                    array.update(Batch(rows.ptr, rows.ptr, 90))
                assert not launched.called
            assert array.update(Batch(rows.ptr, rows.ptr, 90)).changed == 3

    @pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError])
    @pytest.mark.parametrize(
        "form", [pytest.param(FORMS[4], id="locks"), pytest.param(FORMS[0], id="no locks", marks=pytest.mark.slow)]
    )
    @pytest.mark.parametrize("verb", ["insert", "erase"])
    def test_a_fault_between_launches(self, verb: str, form: tuple[Any, ...], fault: type[BaseException]) -> None:
        """Behind batches that were left, some kernels of one more are launched, and the others are not."""
        key, value, slots, buckets, _ = form
        keys = np.arange(300, dtype=key)
        old, batch, legal = keys[:200], keys[150:250], keys[:250] if verb == "insert" else keys[:200]
        sure = old if verb == "insert" else keys[:150]
        for launched in count():
            with in_one_launch():
                table = made(key, value, slots * buckets, "emulated")
                add(table, keys[:100])
                for _ in range(_PLACES):  # an answer that does not come leaves an older one in its place
                    add(table, keys[:2])
                add(table, keys[100:200])
                assert storage_of(table).store.state.left, "nobody has waited"
                call = partial(add, table) if verb == "insert" else table.erase
                try:
                    with stopped_behind(table, launched, fault):
                        call(batch)
                except fault:
                    there = table.contains(keys)
                else:
                    break
                assert len(table) == np.count_nonzero(there), launched
                assert set(sure.tolist()) <= set(keys[there].tolist()) <= set(legal.tolist())
                assert (table.find(keys[there])[0] == ~keys[there]).all() and not len(held_locks(table))
                call(batch)
                assert len(table) == np.count_nonzero(table.contains(keys)) == (250 if verb == "insert" else 150)
        assert launched == (3 if form is FORMS[0] and verb == "insert" else 2)

    @pytest.mark.parametrize("lines", ["some", pytest.param("more", marks=pytest.mark.slow)])
    @pytest.mark.parametrize("verb", ["insert", "assign", "upsert", "erase"])
    def test_a_fault_leaves_the_table_whole(self, verb: str, lines: str) -> None:
        with in_one_launch():
            for scenario in scenarios("emulated", ["quotients"], [verb]):
                check_harmless(all_faults(scenario, every=31 if lines == "some" else 5))
