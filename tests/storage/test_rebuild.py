"""Rebuilds of a table that moves all its pairs: they end, whatever the hash constants."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.inside import parts_of, storage_of
from support.refusals import held_memory
from warphash import HashMap, TableFull
from warphash.storage.buckets.array import BucketArray
from warphash.storage.buckets.store import BucketSlots
from warphash.storage.scratch import Outcome

KEYS = np.arange(1, 61, dtype="u8")
FAILED = Outcome(0, 1, 0, 0)


def table_of(**options: Any) -> tuple[HashMap, BucketSlots]:
    options = {"design": "bucketed_cuckoo", "device": "cpu", "capacity": 100, "seed": 1, **options}
    table = HashMap("u8", "u8", **options)
    table.insert(KEYS, KEYS)
    return table, storage_of(table).store


def is_as_it_was(table: HashMap) -> None:
    assert len(table) == len(KEYS) and (table.find(KEYS)[0] == KEYS).all()
    table.check()
    assert table.insert(KEYS + np.uint64(100), KEYS).all()


def test_a_rebuild_in_place_for_which_no_constants_will_do_is_given_up() -> None:
    table, store = table_of()
    rehash = mock.patch.object(BucketArray, "rehash", autospec=True, side_effect=BucketArray.rehash)
    with mock.patch.object(BucketArray, "migrate", return_value=FAILED), rehash as tries:
        with pytest.raises(TableFull, match="share their buckets"):
            store.remedy._rebuild_in_place(store, None)
        assert tries.call_count <= 64
    is_as_it_was(table)


def test_a_rebuild_in_place_tries_other_constants() -> None:
    table, store = table_of()
    migrate, calls = BucketArray.migrate, []

    def migrating(self: BucketArray, *given: Any) -> Outcome:
        calls.append(given)
        outcome = migrate(self, *given)
        return FAILED if len(calls) < 9 else outcome

    with mock.patch.object(BucketArray, "migrate", migrating):
        store.remedy._rebuild_in_place(store, None)
    is_as_it_was(table)


@pytest.mark.parametrize("on_full", ["grow", "raise"])
def test_a_rebuild_for_which_no_store_will_do_is_given_up(on_full: str) -> None:
    table, _ = table_of(on_full=on_full)
    with mock.patch.object(BucketArray, "take_over", return_value=FAILED), pytest.raises(TableFull):
        table.shrink()
    is_as_it_was(table)


def test_a_store_that_lacks_pairs_is_never_taken() -> None:
    table, _ = table_of(attempts=20_000)
    take_over, calls = BucketArray.take_over, []

    def taking_over(self: BucketArray, *given: Any) -> Outcome:
        calls.append(given)
        return take_over(self, *given) if len(calls) > 10_000 else FAILED

    with mock.patch.object(BucketArray, "take_over", taking_over):
        table.shrink()
    is_as_it_was(table)


def test_a_store_that_failed_is_given_back_before_the_next_is_made() -> None:
    table, _ = table_of()
    take_over, made = BucketArray.take_over, []

    def taking_over(self: BucketArray, *given: Any) -> Outcome:
        made.append(self.nbytes)
        return FAILED if len(made) < 5 else take_over(self, *given)

    with held_memory(parts_of(table).front.engine) as held, mock.patch.object(BucketArray, "take_over", taking_over):
        table.reserve(20_000)
    assert len(made) == 5 and held.peak < 2 * made[0]
