"""Upserts that combine rows of numbers: number by number, of keys that are new, there already, or repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from support.engines import one_of_each
from support.faults import faulty_call
from support.types import Array
from warphash import HashMap, UnsupportedVerb
from warphash.designs import registry

IN_SLOTS = [name for name in design_names() if registry.get(name).layout.in_place]
"""Designs with rows of all widths in the slots. Other designs have rows of up to 8 bytes there."""

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
    combine_batches(HashMap(key, (value, (width,)), device=device, capacity=50, seed=2), key, value, op, width)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("key", ["i8", ("i8", (3,))], ids=["i8", "rows"])
@pytest.mark.parametrize(("value", "op", "width"), [("f4", "add", 16), ("i8", "min", 2), ("u4", "xor", 3)])
@pytest.mark.parametrize("design", IN_SLOTS)
def test_rows_in_slots_are_combined(device: str, key: Any, value: str, op: str, width: int, design: str) -> None:
    table = HashMap(key, (value, (width,)), device=device, design=design, capacity=50, seed=2)
    combine_batches(table, key, value, op, width)


def combine_batches(table: HashMap, key: Any, value: str, op: str, width: int) -> None:
    rng = np.random.default_rng(3)
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


@pytest.mark.parametrize("width", [2, 8])
@pytest.mark.parametrize("design", design_names())
def test_every_design(design: str, width: int) -> None:
    table = HashMap("u8", ("f4", (width,)), device="cpu", design=design, capacity=500, seed=2)
    ids = np.random.default_rng(1).integers(0, 400, 3000).astype("u8")
    rows = (np.arange(width * 3000) % 64).reshape(3000, width).astype("f4")
    table.upsert(ids, rows, "add")
    expected = np.zeros((400, width), "f4")
    np.add.at(expected, ids, rows)
    assert (table[np.unique(ids)] == expected[np.unique(ids)]).all()


@pytest.mark.parametrize("design", ["bucketed_cuckoo", "dynamic_cuckoo"])
def test_a_new_key_keeps_its_bits(design: str) -> None:
    """Nothing is combined with the row of a key that was not there: a NaN and a zero with a sign stay."""
    table = HashMap("u8", ("f4", (2,)), device="cpu", design=design)
    given = np.array([[-0.0, np.nan], [np.inf, -1]], "f4")
    for op, key in (("add", 1), ("min", 3), ("max", 5)):
        keys = np.array([key, key + 1], "u8")
        assert table.upsert(keys, given, op).all() and table[keys].tobytes() == given.tobytes()


@pytest.mark.parametrize("options", [{"max_size": 300, "evict": "lfu"}, {"max_size": 300, "evict": "lru"}], ids=str)
def test_a_bounded_table(options: Any) -> None:
    table = HashMap("u8", ("i4", (2,)), device="cpu", **options)
    for _ in range(3):
        table.upsert(np.arange(200, dtype="u8").repeat(2), np.full((400, 2), 1, "i4"), "add")
    assert (table[np.arange(200, dtype="u8")] == 6).all()


@pytest.mark.parametrize("key", ["u8", "str"])
@pytest.mark.parametrize("kind", ["interrupt", "refusal"])
def test_a_fault_changes_nothing_or_whole_rows(kind: str, key: str) -> None:
    """Each key is left with all its elements or none; a refusal leaves all keys as they were."""
    names = np.arange(60, dtype="u8") if key == "u8" else np.array([f"key {n}" for n in range(60)], object)
    ids = np.random.default_rng(2).integers(0, 60, 150)
    after = (np.arange(60) < 30) + np.bincount(ids, minlength=60)
    for number in range(1, 10_000, 3 if kind == "interrupt" else 1):
        table = HashMap(key, ("u4", (2,)), device="cpu", design="dynamic_cuckoo", capacity=40, seed=3)
        table.insert(names[:30], np.ones((30, 2), "u4"))
        came, done = faulty_call(kind, number, lambda: table.upsert(names[ids], np.ones((150, 2), "u4"), "add"))  # noqa: B023
        if not came:
            break
        held = table.find(names)[0]
        old, new = held == (np.arange(60) < 30)[:, None], held == after[:, None]
        assert new.all() if done else (old.all(axis=1) | new.all(axis=1)).all(), number
        assert kind == "interrupt" or done or old.all()
        table.check()
        missing = len(set(ids[~table.contains(names[ids])].tolist()))
        assert table.upsert(names[ids], np.zeros((150, 2), "u4"), "add").sum() == missing
        table.check()
    assert number > 5


@pytest.mark.parametrize(
    ("value", "design"),
    [(("i2", (8,)), "auto"), (("i2", (2,)), "auto"), (("i1", (4,)), "stadium"), (("f2", (4,)), "dynamic_cuckoo")],
    ids=str,
)
def test_rows_that_are_not_combined(value: Any, design: str) -> None:
    """Numbers that have no atomic."""
    table = HashMap("u8", value, device="cpu", design=design, capacity=8)
    with pytest.raises(UnsupportedVerb, match=r"widen them|keep wider values"):
        table.upsert(np.arange(3, dtype="u8"), np.zeros((3, *value[1]), value[0]), "add")
    assert len(table) == 0
