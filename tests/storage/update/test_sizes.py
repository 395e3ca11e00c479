"""How many slots a table should have, from numbers alone."""

from __future__ import annotations

import pytest

from warphash.storage.update.sizes import Growth

GROWTH = Growth(0.8, 0.9, None)
BOUNDED = Growth(0.8, 0.9, (0.2, 0.8))


def never(room: int) -> int:
    raise AssertionError(f"estimated, with room for {room}")


def refused(room: int) -> int:
    raise MemoryError


def test_a_batch_that_fits_is_not_estimated() -> None:
    assert GROWTH.slots_ahead(100, 1000, 0, 500, 1.0, never) is None
    assert BOUNDED.slots_ahead(100, 1000, 0, 500, 1.0, never) is None


def test_a_large_batch_that_brings_few_keys_needs_no_slots() -> None:
    rooms: list[int] = []

    def few(room: int) -> int:
        rooms.append(room)
        return 10

    assert GROWTH.slots_ahead(100, 1000, 0, 5000, 1.0, few) is None
    assert len(rooms) == 1 and 600 <= rooms[0] <= 800


def test_a_large_batch_whose_last_one_brought_few_keys_is_not_estimated() -> None:
    assert GROWTH.slots_ahead(100, 1000, 0, 5000, 0.01, never) is None


def test_a_batch_of_new_keys_has_slots_for_all_of_them() -> None:
    slots = GROWTH.slots_ahead(100, 1000, 0, 5000, 1.0, lambda room: 5000)
    assert slots is not None and 5100 / 0.8 <= slots < 2 * 5100 / 0.8


def test_without_memory_for_an_estimate_the_batch_is_tried() -> None:
    assert GROWTH.slots_ahead(100, 1000, 0, 5000, 1.0, refused) is None


def test_many_tombstones_are_a_reason_for_a_rebuild() -> None:
    assert GROWTH.slots_ahead(100, 1000, 600, 10, 1.0, never) == 1000


@pytest.mark.parametrize(("size", "erased", "changes"), [(500, True, False), (100, False, False), (100, True, True)])
def test_only_an_erase_makes_a_table_smaller(size: int, erased: bool, changes: bool) -> None:
    slots = BOUNDED.slots_after(size, 1000, erased)
    assert (slots is not None) == changes and (slots is None or slots < 1000)
    assert GROWTH.slots_after(size, 1000, erased) is None


def test_a_table_above_its_bounds_gets_larger() -> None:
    slots = BOUNDED.slots_after(900, 1000, erased=False)
    assert slots is not None and 0.2 <= 900 / slots <= 0.8
