"""The value that an update hands on."""

from __future__ import annotations

import numpy as np

from warphash.runtime.abi import Op
from warphash.runtime.devices import engine_for
from warphash.storage.batch import COMBINING, Batch
from warphash.storage.elements import with_flags


def test_operations_that_combine_values_are_those_of_upsert_but_first_and_last() -> None:
    assert sorted(op.name.lower() for op in COMBINING) == ["add", "and", "max", "min", "or", "xor"]


def test_a_piece_has_the_addresses_of_its_elements() -> None:
    whole = Batch(1000, 2000, 90, Op.ADD, 7, 3000, 4000, True, "stream")
    piece = whole.piece(10, 20, key_bytes=16, value_bytes=8)
    assert piece == Batch(1160, 2080, 20, Op.ADD, 7, 3010, 4080, True, "stream")


def test_a_piece_has_no_array_that_the_batch_has_not() -> None:
    assert Batch(1000, 0, 90).piece(10, 20, key_bytes=4, value_bytes=0) == Batch(1040, 0, 20)


def test_a_batch_without_flags_gets_room_for_them() -> None:
    engine = engine_for("cpu")
    batch, held = with_flags(engine, Batch(1000, 0, 90))
    assert batch == Batch(1000, 0, 90, flags=held.ptr)
    engine.fill(batch.flags, 1, 90)
    assert (engine.to_host(batch.flags, np.uint8, 90) == 1).all()
