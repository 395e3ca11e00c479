"""Upserts that combine rows of numbers: number by number, of keys that are new, there already, or repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from support.engines import one_of_each
from support.types import Array
from warphash import HashMap, UnsupportedVerb
from warphash.designs import registry

IN_ROWS = [name for name in design_names() if not registry.get(name).layout.in_place]

OPERATIONS = {"add": np.add, "min": np.minimum, "max": np.maximum, "or": np.bitwise_or, "xor": np.bitwise_xor}


def keys_of(ids: Array, key: Any) -> Array:
    return ids if key == "i8" else np.stack([ids] * 3, axis=-1)


def combined(op: str, held: dict[int, Array], ids: Array, rows: Array) -> None:
    for number, row in zip(ids.tolist(), rows, strict=True):
        held[number] = OPERATIONS[op](held[number], row) if number in held else row


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("key", ["i8", ("i8", (3,))], ids=["i8", "rows"])
@pytest.mark.parametrize(
    ("value", "op"),
    [("f4", "add"), ("f8", "add"), ("i4", "min"), ("u8", "max"), ("i8", "add"), ("u4", "xor"), ("i8", "or")],
)
@pytest.mark.parametrize("width", [2, 3, 16])
def test_rows_are_combined_number_by_number(device: str, key: Any, value: str, op: str, width: int) -> None:
    if np.dtype(value).itemsize * width <= 8 and key == "i8":
        width = 5  # a row that fits in the slot is refused
    rng = np.random.default_rng(3)
    table = HashMap(key, (value, (width,)), device=device, capacity=50, seed=2)
    held: dict[int, Array] = {}
    for count in (40, 60):
        ids = rng.integers(0, count, 64)
        rows = rng.integers(0, 100, (64, width)).astype(value)
        added = table.upsert(keys_of(ids, key), rows, op)
        assert added.sum() == len(set(ids.tolist()) - held.keys())
        combined(op, held, ids, rows)
        names = np.array(sorted(held))
        assert table[keys_of(names, key)].tolist() == [held[number].tolist() for number in names.tolist()]
        table.check()


@pytest.mark.parametrize("design", IN_ROWS)
def test_every_design_with_rows_behind_the_slots(design: str) -> None:
    table = HashMap("u8", ("f4", (8,)), device="cpu", design=design, capacity=500, seed=2)
    ids = np.random.default_rng(1).integers(0, 400, 3000).astype("u8")
    rows = (np.arange(8 * 3000) % 64).reshape(3000, 8).astype("f4")
    table.upsert(ids, rows, "add")
    expected = np.zeros((400, 8), "f4")
    np.add.at(expected, ids, rows)
    assert (table[np.unique(ids)] == expected[np.unique(ids)]).all()


@pytest.mark.parametrize(
    ("value", "design"),
    [(("f4", (2,)), "auto"), (("i2", (8,)), "auto"), (("f4", (4,)), "stadium"), (("f4", (4,)), "dynamic_cuckoo")],
    ids=str,
)
def test_rows_that_are_not_combined(value: Any, design: str) -> None:
    """Rows in the slots, since an atomic there takes the word; and numbers that have no atomic."""
    table = HashMap("u8", value, device="cpu", design=design, capacity=8)
    with pytest.raises(UnsupportedVerb, match=r"take rows of more than 8 bytes|widen them"):
        table.upsert(np.arange(3, dtype="u8"), np.zeros((3, *value[1]), value[0]), "add")
    assert len(table) == 0


def test_the_mend_of_rows_in_slots() -> None:
    """Wider rows, in the design that the error names."""
    table = HashMap("u8", ("f4", (3,)), device="cpu", design="bucketed_cuckoo")
    assert table.upsert(np.array([1, 1], "u8"), np.ones((2, 3), "f4"), "add").sum() == 1
    assert table[1].tolist() == [2, 2, 2]
