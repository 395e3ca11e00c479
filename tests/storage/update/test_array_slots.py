"""When a table with one array is replaced, and by what. The array has a number of slots and of keys, and no pairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from support.inside import storage_of
from warphash import HashMap, TableFull
from warphash.runtime.devices import engine_for
from warphash.storage.batch import Batch
from warphash.storage.resize_log import Cause
from warphash.storage.slots import StoreOptions
from warphash.storage.update import array_slots
from warphash.storage.update.array_slots import ArraySlots
from warphash.storage.update.transaction import Undo

DESIGN: Any = SimpleNamespace(
    name="toy",
    safe_load_factor=lambda parameters: 0.9,
    searches_until_unused=True,
)


class Array:
    """Slots that fail to take pairs under some seeds."""

    engine = engine_for("cpu")
    design, parameters, spec, nbytes = DESIGN, dict[str, Any](), None, 0
    bad_seeds = frozenset[int]()

    def __init__(self, slots: int, seed: int = 1) -> None:
        self.slots, self.seed, self.cleared = slots, seed, False

    def sibling(self, slots: int, seed: int, stream: Any = None) -> Array:
        return Array(slots, seed)

    beside = sibling

    def forget(self, stream: Any = None) -> None:
        self.cleared = False

    def clear(self, stream: Any = None) -> None:
        self.cleared = True

    def erase(self, keys: int, n: int, *_: Any) -> int:
        """All keys of a batch but one are there."""
        if n > 100:
            raise MemoryError
        return n - 1


class Remedy:
    """Moves keys that are only counted."""

    leaves_tombstones = True
    leaves_up_to = 0.5
    goes_by_parts = False

    def __init__(self, keeps_constants: bool = False) -> None:
        self.keeps_constants = keeps_constants
        self.tried = list[tuple[int, int]]()

    def move(self, slots: Any, new: Array, stream: Any) -> Any:
        self.tried.append((new.slots, new.seed))
        new.cleared = True
        return None if new.seed in Array.bad_seeds else slots.state._replace(array=new, tombstones=0)


def slots_of(
    slots: int, size: int, *, grows: bool = True, attempts: int = 3, keeps_constants: bool = False
) -> tuple[Any, Remedy]:
    remedy: Any = Remedy(keeps_constants)
    array: Any = Array(slots)
    made: Any = ArraySlots(array, StoreOptions(grows, attempts, 0.8, None, False), remedy)
    made.finish()
    made.state = made.state._replace(size=size)
    return made, remedy


def update(undo: bool = False, attempts: int = 1, tried: int = 1, unique: bool = False) -> Any:
    batch = Batch(0, 0, 10, unique=unique)
    return SimpleNamespace(undo=Undo(None, None) if undo else None, attempts=attempts, tried=tried, batch=batch)


@pytest.fixture
def bad_seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Array, "bad_seeds", frozenset(request.param))


@pytest.mark.parametrize(
    ("keys", "tombstones", "fits"), [(450, 0, True), (451, 0, False), (1, 500, True), (1, 501, False)]
)
def test_keys_surely_fit_if_the_table_is_half_full_with_them(keys: int, tombstones: int, fits: bool) -> None:
    made, _ = slots_of(1000, 0)
    made.state = made.state._replace(tombstones=tombstones)
    assert made.surely_fit(keys) == fits


def test_a_new_array_is_cleared_by_the_first_call_that_needs_it() -> None:
    array: Any = Array(10)
    made: Any = ArraySlots(array, StoreOptions(True, 3, 0.8, None, False), Remedy())
    assert made.pending and not array.cleared
    made.replace(20, Cause.ASKED, None)
    assert made.pending and not made.array.cleared and (made.slots, made.rebuilds) == (20, 0)
    made.finish()
    assert made.array.cleared and not made.pending
    made.clear()
    assert made.pending and not made.array.cleared


@pytest.mark.parametrize("leaves_tombstones", [True, False])
def test_an_erase_counts_keys_and_tombstones(leaves_tombstones: bool) -> None:
    made, remedy = slots_of(1000, 3)
    remedy.leaves_tombstones = leaves_tombstones
    made.erase(0, 3)
    assert made.state[1:3] == (1, 2 if leaves_tombstones else 0) and made.recovery.step is None


def test_a_refused_erase_leaves_nothing_to_recover() -> None:
    made, _ = slots_of(1000, 3)
    with pytest.raises(MemoryError):
        made.erase(0, 101)
    assert made.state.size == 3 and made.recovery.step is None


def test_a_batch_that_may_fail_by_its_size_gets_more_slots() -> None:
    made, remedy = slots_of(1000, 900)
    made.move_for(update(undo=True), 500, 1000)
    assert remedy.tried == [(2000, 2)] and made.slots == 2000 and made.rebuilds == 1


def test_any_other_batch_gets_other_constants_and_more_slots_after_some_attempts() -> None:
    made, remedy = slots_of(1000, 100)
    made.move_for(update(), 5, 1000)
    made.move_for(update(attempts=2), 5, 1000)
    made.move_for(update(attempts=3), 5, 1000)
    assert remedy.tried == [(1000, 2), (1000, 3), (2000, 4)]


def test_sets_of_constants_under_which_pairs_could_not_be_moved_count_as_tried() -> None:
    made, remedy = slots_of(1000, 100)
    made.move_for(update(attempts=2, tried=3), 5, 1000)
    assert remedy.tried == [(2000, 2)]


@pytest.mark.parametrize(
    ("missing", "unique", "tried", "fits"),
    [(1, True, 1, True), (2, True, 1, False), (500, False, 1, True), (1, True, 3, False), (0, False, 1, True)],
)
def test_a_table_of_fixed_size_gives_up_if_the_keys_are_too_many(
    missing: int, unique: bool, tried: int, fits: bool
) -> None:
    """Elements that found no slot may have one key between them, unless they are unique."""
    made, remedy = slots_of(1000, 999, grows=False)
    if fits:
        made.move_for(update(undo=True, tried=tried, unique=unique), missing, 1000)
        assert remedy.tried == [(1000, 2)]
    else:
        with pytest.raises(TableFull, match=rf"{999 + missing:,} keys do not fit into 1,000 slots of design 'toy'"):
            made.move_for(update(undo=True, tried=tried, unique=unique), missing, 1000)
        assert not remedy.tried and made.slots == 1000


def test_a_full_table_of_fixed_size_gives_up_for_a_repeated_key() -> None:
    made, _ = slots_of(1000, 1000, grows=False)
    with pytest.raises(TableFull, match="under one set of hash constants"):
        made.move_for(update(undo=True), 7, 1000)


def test_a_larger_array_keeps_the_constants_of_some_families() -> None:
    made, remedy = slots_of(1000, 100, keeps_constants=True)
    made.replace(2000, Cause.ASKED, None)
    made.replace(2000, Cause.ASKED, None)
    made.replace(4000, Cause.ASKED, None, rehashes=True)
    assert remedy.tried == [(2000, 1), (2000, 2), (4000, 3)]


@pytest.mark.parametrize("bad_seeds", [{2, 3, 4, 5}], indirect=True)
@pytest.mark.usefixtures("bad_seeds")
def test_pairs_without_a_slot_get_other_constants_then_more_slots() -> None:
    made, remedy = slots_of(1000, 100)
    made.replace(1000, Cause.ASKED, None)
    assert remedy.tried == [(1000, 2), (1000, 3), (1000, 4), (2000, 5), (2000, 6)] and made.rebuilds == 1


@pytest.mark.parametrize("bad_seeds", [range(100)], indirect=True)
@pytest.mark.usefixtures("bad_seeds")
def test_a_table_of_fixed_size_keeps_its_array_if_its_pairs_find_no_slot() -> None:
    made, remedy = slots_of(1000, 100, grows=False)
    array = made.array
    with pytest.raises(TableFull, match="100 keys could not be placed anew in 1,000 slots"):
        made.replace(1000, Cause.ASKED, None)
    assert made.array is array and len(remedy.tried) == 3 and made.rebuilds == 0


def test_searches_among_tombstones_get_a_new_array() -> None:
    made, remedy = slots_of(1000, 100, grows=False)
    made.state = made.state._replace(tombstones=501)
    assert made._slots_ahead(Batch(0, 0, 10)) is None
    assert remedy.tried == [(1000, 2)] and made.state.tombstones == 0


@pytest.mark.parametrize(
    ("batches", "n", "estimated"),
    [
        ([100, 100], 100, None),
        ([100], 100, True),
        ([100, 99], 100, False),
        ([99, 100, 100], 100, None),
        ([100, 100], 1_001, False),
        ([], 100, False),
    ],
)
def test_behind_batches_of_new_keys_the_next_ones_keys_are_taken_for_new(
    batches: list[int], n: int, estimated: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an estimate, or by one that knows of the batch before."""
    made, _ = slots_of(1_000, 1_000)
    asked = mock.Mock(return_value=7)
    monkeypatch.setattr(array_slots, "estimate_new_keys", asked)
    for added in batches:
        made._note_share(100, added)
    assert made._new_keys(Batch(0, 0, n), 5) == (n if estimated is None else 7)
    assert [call.kwargs["behind_new"] for call in asked.call_args_list] == [estimated] * (estimated is not None)


def test_an_erase_of_nothing_changes_nothing() -> None:
    made, _ = slots_of(1000, 100)
    made.erase(0, 0)
    assert made.state.size == 100


@pytest.mark.parametrize("design", ["quotient_cuckoo", "bucketed_cuckoo"])
@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_an_interrupted_clear_behind_batches_that_were_left(device: str, design: str) -> None:
    table = HashMap("u8", "u8", capacity=400, design=design, device=device)
    keys = np.arange(1, 81, dtype="u8")
    for part in np.array_split(keys, 2):
        table.insert(part, part)
    store: Any = storage_of(table).store
    array = store.state.array
    forget = array.forget

    def interrupt(stream: Any = None) -> None:
        forget(stream)
        raise KeyboardInterrupt

    with mock.patch.object(array, "forget", interrupt), pytest.raises(KeyboardInterrupt):
        table.clear()
    assert len(table) == table.contains(keys).sum() == 0
    table.check()
