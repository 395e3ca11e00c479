"""The short way of a small update that is left: when it is taken, and that it does what the usual way does."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.faults import FAMILIES, VERBS, Scenario, check_harmless, interrupts
from support.inside import parts_of, storage_of
from warphash import HashMap
from warphash.runtime.abi import Op
from warphash.runtime.devices import engine_for
from warphash.storage.batch import Batch
from warphash.storage.quotient.one_launch import OneLaunchUpdates
from warphash.storage.result_slot import ResultSlot
from warphash.storage.word_rows import WordRows

N = 60
"""Elements of a batch: few enough for one block of the emulated engine."""


class Prepared:
    """In place of that of ``src/extension/prepared.hpp``."""

    def __init__(self, kernel: Any, table: Any, batch: Any, places: tuple[int, ...]) -> None:
        self._kernel, self._table, self._batch, self._places = kernel, table, batch, places

    def run(self, n: int, stream: Any, *words: int) -> int:
        assert len(words) == len(self._places)
        for place, word in zip(self._places, words, strict=True):
            ctypes.c_uint64.from_buffer(self._batch, place).value = word
        self._kernel.launches.append(self._batch.n)
        if not self._kernel.status:
            self._kernel.program.run("update_few", self._table, self._batch, n, stream)
        return int(self._kernel.status)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The kernel of the short way on the emulated engine, with the elements of its launches, and the next status."""
    engine: Any = engine_for("emulated")
    made = SimpleNamespace(program=None, threads=256, launches=[], status=0)
    prepare, update = OneLaunchUpdates.prepare_few, WordRows.update

    def prepared(updates: OneLaunchUpdates, compiled: Any, program: Any, table: Any) -> Any:
        made.program = program
        return prepare(updates, compiled, SimpleNamespace(kernels={"update_few": made}), table)

    def updated(rows: WordRows, batch: Batch) -> None:
        """An update of arrays on a device tries the short way first."""
        keys, values, n, op, kind, flags, held, unique, stream, _ = batch
        if held or not rows.leave_few(keys, values, n, op, kind, flags, unique, stream):
            update(rows, batch)

    def refused(status: int) -> None:
        raise RuntimeError(f"status {status}")

    monkeypatch.setattr(engine, "compiled", SimpleNamespace(Prepared=Prepared), raising=False)
    monkeypatch.setattr(engine, "refuse_launch", refused, raising=False)
    monkeypatch.setattr(OneLaunchUpdates, "prepare_few", prepared)
    monkeypatch.setattr(WordRows, "update", updated)
    return made


def table(capacity: int = 4000, key: str = "u4", **options: Any) -> HashMap:
    return HashMap(key, "u4", device="emulated", design="quotient_cuckoo", capacity=capacity, seed=5, **options)


def filled(**options: Any) -> HashMap:
    """A table of 100 keys, for which the short way is ready."""
    made = table(**options)
    for at in (0, 50):
        keys = np.arange(at, at + 50).astype(made.key_dtype)
        assert made.insert(keys, keys.astype("u4")).all()
    return made


def array_of(made: HashMap) -> Any:
    return storage_of(made).store.state.array


@pytest.mark.parametrize("key", ["u4", "u8"])
@pytest.mark.parametrize("seed", range(3))
def test_random_updates(kernel: Any, key: str, seed: int) -> None:
    rng, made, model = np.random.default_rng(seed), table(key=key), dict[int, int]()
    for step in range(120):
        ids = rng.integers(0, 1500, int(rng.integers(1, N))).astype(key)
        values = rng.integers(0, 1 << 32, len(ids), dtype=np.uint32)
        fresh, what = set(ids.tolist()) - model.keys(), int(rng.integers(0, 8))
        if what < 6:
            added = (made.insert if what < 3 else made.assign)(ids, values)
            assert added.sum() == len(fresh) and set(ids[added].tolist()) == fresh
            got, found = made.find(ids) if step % 3 else (values, np.ones(1))
            changed = fresh if what < 3 else set(ids.tolist())
            assert found.all()
            if step % 3:
                for k, v in zip(ids.tolist(), got.tolist(), strict=True):
                    assert v in values[ids == k] if k in changed else v == model[k]
            else:
                got = made.find(ids)[0]
            model |= dict(zip(ids.tolist(), got.tolist(), strict=True))
        elif what == 6:
            made.erase(ids)
            for k in ids.tolist():
                model.pop(k, None)
        else:
            made.upsert(ids, values, "max")
            for k, v in zip(ids.tolist(), values.tolist(), strict=True):
                model[k] = max(v, model.get(k, 0))
        if step % 10 == 0:
            assert len(made) == len(model)
    asked = np.fromiter(model, key)
    assert made.find(asked)[0].tolist() == list(model.values()) and len(made) == len(model)
    made.check()
    assert len(kernel.launches) > 30


def test_batches_behind_each_other_wait_for_nothing(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, waits = filled(), list[int]()
    outcome = ResultSlot.outcome
    monkeypatch.setattr(ResultSlot, "outcome", lambda slot, stream: (waits.append(1), outcome(slot, stream))[1])
    for at in range(100, 3000, N):
        keys = np.arange(at, at + N, dtype="u4")
        assert made.insert(keys, keys).all()
    assert not waits and len(kernel.launches) == 49 and len(made) == 100 + 49 * N and len(waits) == 1
    assert made.find(np.arange(3000, dtype="u4"))[1].all()
    made.check()


def test_it_is_taken_only_if_all_else_is_done(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, keys = filled(), np.arange(40, dtype="u4")

    def takes(verb: Any = made.insert, given: Any = keys) -> bool:
        before = len(kernel.launches)
        verb(given, given)
        return len(kernel.launches) > before

    assert takes() and takes(made.assign)
    assert not takes(lambda k, v: made.upsert(k, v, "add"))
    assert not takes(given=np.arange(array_of(made).most_few + 1, dtype="u4"))
    assert takes()
    for verb, usual in ((lambda k, v: made.clear(), 2), (lambda k, v: made.reserve(30_000), 1)):
        assert not takes(verb)  # an array without keys, or another one
        assert [takes() for _ in range(usual + 1)] == [False] * usual + [True]
    len(made)
    monkeypatch.setattr(ResultSlot, "answer", lambda slot, ticket: None)  # the device is behind
    array_of(made).most_left = 2
    assert takes() and takes() and not takes()
    monkeypatch.undo()
    twin = made.copy()
    assert not takes(twin.insert) and len(twin) == len(made)


def test_a_batch_without_room_waits_for_the_first_of_those_under_way(
    kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, keys, looks = filled(), np.arange(40, dtype="u4"), list[int]()
    len(made)
    answer = ResultSlot.answer

    def late(slot: ResultSlot, ticket: int) -> Any:
        looks.append(ticket)
        return answer(slot, ticket) if len(looks) > 3 and ticket == looks[0] else None

    monkeypatch.setattr(ResultSlot, "answer", late)
    array_of(made).most_left = 2
    for _ in range(2):
        made.insert(keys, keys)
    assert not looks
    made.insert(keys, keys)
    assert looks[:4] == [looks[0]] * 4 and len(storage_of(made).store.state.left) == 2 and len(kernel.launches) == 3
    monkeypatch.undo()
    assert len(made) == 100


@pytest.mark.parametrize("options", [{"on_full": "raise"}, {"load_bounds": (0.1, 0.6)}, {"count_probes": True}])
def test_tables_that_need_the_end_of_a_batch_never_take_it(kernel: Any, options: dict[str, Any]) -> None:
    made = filled(**options)
    for _ in range(3):
        made.insert(np.arange(N, dtype="u4"), np.arange(N, dtype="u4"))
    assert not kernel.launches and len(made) == 100


def test_batches_without_flags_go_the_usual_way(kernel: Any) -> None:
    made, keys = filled(), np.arange(80, 80 + N, dtype="u4")
    for _ in range(3):
        parts_of(made).updates.update("insert", keys, keys, Op.KEEP, answers=False)
    assert not kernel.launches and len(made) == 80 + N and made.contains(keys).all()


def test_keys_narrower_than_words_go_the_usual_way(kernel: Any) -> None:
    made = filled(key="u2")
    for _ in range(3):
        made.insert(np.arange(N, dtype="u2"), np.arange(N, dtype="u4"))
    assert not kernel.launches and len(made) == 100


def test_a_launch_that_is_refused_leaves_the_table_whole(kernel: Any) -> None:
    made, keys = filled(), np.arange(90, 150, dtype="u4")
    made.insert(keys[:20], keys[:20])
    kernel.status = 700
    with pytest.raises(RuntimeError, match="status 700"):
        made.insert(keys, keys)
    kernel.status = 0
    assert len(made) == 110 and made.find(np.arange(110, dtype="u4"))[1].all()
    assert made.insert(keys, keys).sum() == 40 and len(made) == 150
    made.check()


def test_the_words_are_those_of_the_usual_way(kernel: Any) -> None:
    made, keys = filled(), np.arange(40, dtype="u4")
    made.insert(keys, keys)  # of which 40 elements are awaited
    updates = array_of(made)._updates
    batch = updates.batch_to_leave(Batch(11, 12, 13, Op.REPLACE, 14, 15), 1, 40)
    usual = {name: getattr(batch, name) for name in ("stuck", "left_out", *(field for field, _ in batch._fields_))}
    seen: list[Any] = []
    kernel.program = SimpleNamespace(run=lambda entry, table, batch, n, stream: seen.append(batch))
    updates.leave_few(11, 12, 13, Op.REPLACE, 14, 15, 40, None)
    names = ("n", "keys", "values", "out_flags", "op", "kind", "indices", "count", "count_probes", "report")
    for name in (*names, *usual):
        word = getattr(seen[0], name)
        if name == "ticket":
            assert word == usual[name] + 1
        elif name == "answer":
            assert word - usual[name] in (64, -64 * 63)
        elif not name.startswith("renew"):
            assert word == getattr(batch, name), name


@pytest.mark.parametrize("verb", ["insert", "assign"])
@pytest.mark.parametrize("lines", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_an_interrupt_leaves_each_key_in_or_out(kernel: Any, verb: str, lines: str) -> None:
    class Ready(Scenario):
        def make(self) -> Any:
            made = super().make()
            for _ in range(2):
                made.assign(self.family.keys(np.arange(11, 15)), self.family.values(np.arange(11, 15)))
            kernel.launches.clear()
            return made

    scenario = Ready(FAMILIES["quotients"], VERBS[verb], "emulated", grows=False)
    scenario.call(scenario.make())
    assert kernel.launches
    check_harmless(interrupts(scenario, every=7 if lines == "some" else 1))
