"""One update of a table with one array: what is launched, committed, taken back and finished. The array is a dict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warphash import TableFull
from warphash.runtime.abi import Flag, Op
from warphash.runtime.devices import engine_for
from warphash.storage.batch import Batch
from warphash.storage.listed import Listed
from warphash.storage.scratch import Outcome
from warphash.storage.slots import Recovery
from warphash.storage.update.pairs import Pairs
from warphash.storage.update.transaction import (
    LISTED_BYTES,
    ArrayState,
    Transaction,
    Undo,
    may_fail,
    put_back,
    way_back,
)

ENGINE = engine_for("cpu")


class Array:
    """A dict with some slots. A launch takes the elements one by one, and may be stopped behind some of them."""

    def __init__(self, slots: int, seed: int = 1) -> None:
        self.slots, self.seed, self.pairs = slots, seed, dict[int, int]()
        self.stops_after: int | None = None
        self.erased_at_once: list[int] = []

    def clear(self, stream: Any = None) -> None:
        self.pairs = {}

    def snapshot(self, stream: Any = None) -> dict[int, int]:
        return dict(self.pairs)

    def restore(self, saved: Any, stream: Any = None) -> None:
        self.pairs = dict(saved)

    def erase_listed(self, keys: int, numbers: int, n: int, stream: Any = None) -> int:
        which = ENGINE.to_host(numbers, np.uint32, n)
        self.erased_at_once.append(n)
        given = ENGINE.to_host(keys, np.uint64, int(which.max()) + 1)[which].tolist()
        return sum(self.pairs.pop(key, None) is not None for key in given)

    def update(self, batch: Batch, listed: Listed | None) -> Outcome:
        keys, values = (ENGINE.to_host(at, np.uint64, batch.n) for at in (batch.keys, batch.values))
        which = np.arange(batch.n) if listed is None else ENGINE.to_host(listed.numbers.ptr, np.uint32, listed.n)
        added = unplaced = 0
        for done, element in enumerate(which.tolist()):
            if done == self.stops_after:
                self.stops_after = None
                raise KeyboardInterrupt
            key, flag = int(keys[element]), Flag.PRESENT
            if key in self.pairs:
                self.pairs[key] += int(values[element]) if batch.op == Op.ADD else 0
            elif len(self.pairs) < self.slots:
                self.pairs[key], flag, added = int(values[element]), Flag.CHANGED, added + 1
            else:
                flag, unplaced = Flag.UNPLACED, unplaced + 1
            ENGINE.fill(batch.flags + element, flag, 1)
        return Outcome(added, 0, unplaced, probes=3 * len(which))


class Store:
    """A store of such an array, which may take twice the slots so many times."""

    def __init__(self, slots: int, doublings: int = 0) -> None:
        self.engine, self.recovery, self.listed = ENGINE, Recovery(), ENGINE.allocate_pinned(LISTED_BYTES)
        self.state: ArrayState[Array] = ArrayState(Array(slots), 0)
        self.probes, self.inserted, self.safe_load_factor = 0, 0, 1.0
        self.doublings, self.rooms = doublings, list[tuple[int, int, int]]()

    def finish(self, stream: Any = None) -> None:
        self.recovery.run(self.engine, stream)

    def launch(self, batch: Batch, listed: Listed | None) -> Outcome:
        return self.state.array.update(batch, listed)

    def recover(self, stream: Any) -> None:
        self.state = self.state._replace(size=len(self.state.array.pairs))

    def make_room(self, update: Transaction[Array], missing: int) -> None:
        self.rooms.append((missing, update.attempts, update.tried))
        if not self.doublings:
            raise TableFull("no more slots")
        self.doublings -= 1
        old = self.state.array
        new = Array(2 * old.slots, old.seed + 1)
        new.pairs = dict(old.pairs)
        self.state = self.state._replace(array=new)


class Given:
    """Keys and values of an update, and room for its flags."""

    def __init__(self, keys: Any, op: Op = Op.KEEP, *, unique: bool = False) -> None:
        n = len(keys)
        columns = (np.asarray(keys, np.uint64), np.full(n, 10, np.uint64), np.full(n, 9, np.uint8))
        self._held = [ENGINE.from_host(column) for column in columns]
        at_keys, at_values, at_flags = (held.ptr for held in self._held)
        self.batch = Batch(at_keys, at_values, n, op, flags=at_flags, unique=unique)

    @property
    def flags(self) -> list[int]:
        return ENGINE.to_host(self.batch.flags, np.uint8, self.batch.n).tolist()


def do(
    store: Store,
    given: Given,
    undo: Undo[Array] | None = None,
    begin: Callable[[], Listed | None] | None = None,
    **options: bool,
) -> None:
    Transaction(store, given.batch, undo, **options).do(begin)


def test_a_batch_that_fits_is_one_launch_and_a_commit() -> None:
    store, given = Store(10), Given([1, 2, 2], unique=True)
    do(store, given)
    assert store.state == (store.state.array, 2, 0, True, (), None, 0) and store.recovery.step is None
    assert given.flags == [Flag.CHANGED, Flag.CHANGED, Flag.PRESENT] and not store.rooms
    assert store.probes == store.inserted == 0


def test_what_updates_read_is_counted_if_the_store_counts() -> None:
    store = Store(10)
    do(store, Given([1, 2, 2]), counts_probes=True)
    assert (store.probes, store.inserted) == (9, 2)


def test_elements_without_a_slot_are_launched_again_when_there_is_room() -> None:
    store, given = Store(2, doublings=2), Given(range(7))
    do(store, given)
    assert store.state.array.slots == 8 and store.state.size == 7 and set(given.flags) == {Flag.CHANGED}
    assert store.rooms == [(5, 1, 1), (3, 2, 2)]  # missing, launches, sets of hash constants


@pytest.mark.parametrize("keys_before", [[], [50]])
def test_a_batch_that_may_fail_is_put_back(keys_before: list[int]) -> None:
    store, given = Store(3), Given([1, 50, 2, 3, 4], Op.ADD)
    do(store, Given(keys_before))
    before = store.state
    undo = way_back(store, given.batch)
    assert undo is not None and (undo.saved is None) == (not keys_before)
    with pytest.raises(TableFull, match="no more slots; the table is as it was") as error:
        do(store, given, undo)
    assert store.state is before and before.array.pairs == dict.fromkeys(keys_before, 10)
    assert error.value.keys is not None and error.value.keys.tolist() == [3, 4] and store.recovery.step is None


def test_without_a_way_back_the_added_keys_are_erased_a_list_at_a_time() -> None:
    store, n = Store(2500), 2501
    do(store, Given([7]))
    with pytest.raises(TableFull) as error:
        do(store, Given(np.arange(n), unique=True))
    assert store.state.array.pairs == {7: 10} and store.state[1:4] == (1, 0, False)
    assert error.value.keys is not None and error.value.keys.tolist() == [n - 1]
    assert store.state.array.erased_at_once == [1024, 1024, 451]


def test_displaced_pairs_of_the_batch_go_and_the_others_stay() -> None:
    class DisplacingStore(Store):
        def launch(self, batch: Batch, listed: Listed | None) -> Outcome:
            outcome = super().launch(batch, listed)
            del self.state.array.pairs[2]  # its slot goes to a key that has lost its own
            displaced = Pairs(np.array([2, 77], np.uint64), np.array([10, 70], np.uint64))
            self.state = self.state._replace(displaced=displaced)
            return outcome._replace(displaced=2)

    store, given = DisplacingStore(3), Given([1, 2, 3, 4])
    with pytest.raises(TableFull) as error:
        do(store, given)
    left = store.state.displaced
    assert left is not None and left.keys.tolist() == [77] and left.values is not None and left.values.tolist() == [70]
    # As many keys did not fit as pairs have lost their slots.
    assert error.value.keys is not None and error.value.keys.tolist() == [1, 2, 3] and not store.state.array.pairs


def test_a_refusal_before_the_first_kernel_is_raised_as_it_is() -> None:
    store, given = Store(10), Given([1])
    store.recovery.step = step = store.recover

    def refused() -> None:
        raise MemoryError("of the device")

    with pytest.raises(MemoryError, match="of the device"):
        do(store, given, begin=refused)
    assert store.recovery.step is step and store.state.size == 0


def test_a_first_round_leaves_elements_to_the_second() -> None:
    store, given = Store(10), Given([1, 2, 3])
    numbers = ENGINE.from_host(np.array([2], np.uint32))
    do(store, given, begin=lambda: Listed(numbers, 1))
    assert store.state.array.pairs == {3: 10} and given.flags == [9, 9, Flag.CHANGED]


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(("op", "options"), [(Op.KEEP, {}), (Op.ADD, {}), (Op.ADD, {"at_once": True})])
def test_an_interrupted_sum_is_finished_if_it_was_begun(after: int, op: Op, options: dict[str, bool]) -> None:
    store, given = Store(10), Given([1, 1, 1, 2], op)
    store.state.array.stops_after = after
    with pytest.raises(KeyboardInterrupt):
        do(store, given, **options)
    ended = op == Op.ADD and not options
    assert (store.recovery.step is None) == ended
    store.finish()
    assert store.state.array.pairs == (({1: 30, 2: 10} if ended else {1: 20 if op == Op.ADD else 10}) if after else {})
    assert store.state.size == len(store.state.array.pairs)


def test_an_interrupted_batch_with_a_way_back_is_put_back_by_the_recovery() -> None:
    store, given = Store(10), Given([1, 1, 1, 2], Op.ADD)
    do(store, Given([1]))
    store.state.array.stops_after = 2
    with pytest.raises(KeyboardInterrupt):
        do(store, given, Undo(store.state, store.state.array.snapshot()))
    assert store.state.array.pairs == {1: 30} and store.recovery.step is not None
    store.finish()
    assert store.state.array.pairs == {1: 10} and store.state.size == 1 and store.recovery.step is None


def test_a_batch_may_fail_if_it_fills_the_table() -> None:
    store = Store(1000)
    store.state = store.state._replace(size=100)
    assert not may_fail(store, Given(range(700)).batch) and may_fail(store, Given(range(801)).batch)
    assert may_fail(store, Given(range(700), Op.ADD).batch)  # by chance
    assert way_back(store, Given(range(700)).batch) is None


def test_a_table_without_keys_is_put_back_by_clearing_it() -> None:
    store = Store(10)
    empty = store.state
    do(store, Given([1, 2]))
    put_back(store, Undo(empty, None), None)
    assert store.state is empty and not empty.array.pairs
