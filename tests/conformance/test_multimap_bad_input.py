"""What a MultiMap refuses, and what it takes as it comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.cases import design_names, list_designs, multi_designs
from support.multi_model import MultiModel
from warphash import DtypeError, MultiMap, ParameterError, ShapeError


def test_types_that_are_too_wide() -> None:
    for key, value in (("S9", "u4"), ("u4", "S9"), (("i4", (3,)), "u4"), ("u4", ("f4", (3,))), ("V12", "V3")):
        with pytest.raises(DtypeError, match="at most 8 bytes"):
            MultiMap(key, value, design="slab", device="cpu")
        keys, values = (np.zeros((2, *np.dtype(t).shape), np.dtype(t).base) for t in (key, value))
        with pytest.raises(DtypeError, match="at most 8 bytes"):
            MultiMap.from_arrays(keys, values, design="slab", device="cpu")
    with pytest.raises(DtypeError, match="needs a value type"):
        MultiMap("u4", None, device="cpu")
    with pytest.raises(DtypeError, match="view"):
        MultiMap("f4", "u4", device="cpu")


@pytest.mark.parametrize(("key", "value"), [("S9", "u4"), ("u4", "V3"), (("i4", (3,)), ("f4", (3,))), ("V12", "S20")])
@pytest.mark.parametrize("design", [*sorted(set(design_names()) - set(list_designs()) - {"tiered"}), "auto"])
def test_keys_and_values_of_any_width_in_groups(design: str, key: Any, value: Any) -> None:
    """Behind a table of any design."""
    numbers = np.repeat(np.arange(1, 40, dtype="u8"), 3)
    keys, values = (_rows_like(numbers + first, np.dtype(of)) for first, of in ((0, key), (np.arange(117), value)))
    table = MultiMap.from_arrays(keys, values, design=design, device="cpu", seed=1)
    table.insert(keys[::2], values[::2])
    found, offsets = table.find_all(keys[:1])
    expected = np.concatenate([values[:3], values[:3:2]])
    assert found.tobytes() == expected.tobytes() and offsets.tolist() == [0, 5]
    assert table.erase_all(keys[:3]).sum() == 5 and len(table) == 117 + 59 - 5
    table.check()


def _rows_like(numbers: Any, dtype: np.dtype[Any]) -> Any:
    """Rows of a type that begin with these numbers: rows of different numbers differ."""
    rows = np.zeros((len(numbers), dtype.itemsize), "u1")
    rows[:, : min(8, dtype.itemsize)] = numbers.astype("u8").view("u1").reshape(-1, 8)[:, : dtype.itemsize]
    return rows.view(dtype.base).reshape(len(numbers), *dtype.shape)


def test_two_tiers() -> None:
    with pytest.raises(ParameterError, match="lies in one memory"):
        MultiMap("u4", "u4", design="tiered", device="cpu")


def test_lengths_and_kinds_of_arrays() -> None:
    keys = np.arange(20, dtype=np.uint32)
    table = MultiMap.from_arrays(keys, keys, device="cpu")
    for wrong in (keys[:3], keys[:0], keys.reshape(2, 10)):
        with pytest.raises(ShapeError):
            table.insert(keys, wrong)
    for verb in (table.find_all, table.count, table.erase_all, table.erase, table.find):
        with pytest.raises(DtypeError):
            verb(keys > 0)
    with pytest.raises(DtypeError):
        table.insert(keys, keys + 0.5)
    model = MultiModel()
    model.inserted(keys, keys, table)
    model.agrees(table)
    for name in ("upsert", "assign", "find_or_insert", "get", "pop"):
        assert not hasattr(table, name), f"what {name} means where a key has many values, nobody has said"


@pytest.fixture(params=multi_designs())
def small(request: pytest.FixtureRequest) -> tuple[MultiMap, MultiModel]:
    """Ten keys with three values each."""
    keys, values = np.repeat(np.arange(10, dtype=np.uint32), 3), np.arange(30, dtype=np.uint32)
    table, model = MultiMap("u4", "u4", design=request.param, device="cpu", capacity=30, seed=2), MultiModel()
    table.insert(keys, values)
    model.inserted(keys, values, table)
    return table, model


def asking(table: MultiMap) -> list[Any]:
    """The verbs that take keys alone."""
    return [table.find, table.find_all, table.count, table.contains, table.erase, table.erase_all, table.probe_counts]


def test_keys_and_values_that_do_not_fit(small: tuple[MultiMap, MultiModel]) -> None:
    """Never truncated on the way in: refused by an insert; not there, or of another kind, for the other verbs."""
    table, model = small
    some = np.arange(3, dtype=np.uint32)
    absent: list[Any] = [[-1] * 3, [2**32] * 3, [1.5] * 3, ["a", "b", "c"], np.full(3, 0.5, "f4"), np.full(3, np.nan)]
    absent += [np.full(3, -1, "i4"), np.full(3, 2**32, "u8"), np.full(3, -1, "i2")]
    wrong = [[None] * 3, *(np.ones(3).astype(dtype) for dtype in ("S4", "c16", "M8[s]", bool))]
    for each in (*absent, *wrong):
        for keys, values in ((some, each), (each, some)):
            with pytest.raises(DtypeError):
                table.insert(keys, values)
    for verb in asking(table):
        for each in wrong:
            with pytest.raises(DtypeError):
                verb(each)
        for each in absent:
            answer = verb(each)
            assert not any(made.any() for made in (answer if isinstance(answer, tuple) else (answer,)))
    model.agrees(table)
    for of_other_length in (some[:2], some[:0], [5], some.reshape(3, 1)):
        with pytest.raises(ShapeError):
            table.insert(some, of_other_length)
    with pytest.raises(TypeError):
        table.insert(some)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        table.insert(some, some, assume_unique=True)  # type: ignore[call-arg]
    model.agrees(table)


@pytest.mark.parametrize("default", ["x", None, -1, 2**32, 1.5, float("nan"), [1, 2], 1j, object], ids=str)
def test_defaults_that_are_no_value(small: tuple[MultiMap, MultiModel], default: Any) -> None:
    table, model = small
    with pytest.raises(DtypeError, match="default"):
        table.find([1, 1000], default=default)
    model.agrees(table)


def test_nothing_to_do(small: tuple[MultiMap, MultiModel]) -> None:
    """An empty list is an empty batch; an empty array of another kind is none."""
    table, model = small
    table.insert([], [])
    assert [len(verb([])) for verb in (table.count, table.contains, table.erase, table.erase_all)] == [0] * 4
    values, offsets = table.find_all([])
    assert (values.shape, values.dtype, offsets.tolist()) == ((0,), np.uint32, [0])
    for verb in asking(table):
        with pytest.raises(DtypeError):
            verb(np.zeros(0, bool))
        with pytest.raises(DtypeError):
            verb(np.zeros((0, 2), "U1"))
    for keys, values in (([1], []), ([], [1])):
        with pytest.raises(ShapeError, match="one length"):
            table.insert(keys, values)
    model.agrees(table)


def test_arrays_that_lie_otherwise(small: tuple[MultiMap, MultiModel]) -> None:
    """With steps, backwards, at odd addresses, of one number many times, not to be written: as plain ones do."""
    table, model = small
    keys, values = np.arange(5, 45, dtype=np.uint32), np.arange(100, 140, dtype=np.uint32)
    wide, raw = np.zeros((40, 3), np.uint32), np.zeros(2 * keys.nbytes + 1, np.uint8)
    wide[:, 1] = keys
    odd = raw[1:].view(np.uint32)
    odd[:40], odd[40:] = keys, values
    ways = [
        (wide[:, 1], values.repeat(2)[::2]),
        (keys[::-1], values[::-1]),
        (odd[:40], odd[40:]),
        (keys, np.broadcast_to(np.uint32(7), (40,))),
    ]
    assert not odd.flags.aligned
    for some, brought in ways:
        for array in (some, brought):
            array.flags.writeable = False
        before = some.copy(), brought.copy()
        table.insert(some, brought)
        model.inserted(*before, table)
        model.agrees(table, some)
        np.testing.assert_array_equal((some, brought), before)
    for some, _ in ways[:3]:
        model.erased(some.copy(), table.erase(some))
    model.agrees(table)
    every_other = np.repeat(keys, 2)[::4]
    model.erased_all(every_other.copy(), table.erase_all(every_other))
    model.agrees(table, keys)


@pytest.mark.parametrize("design", list_designs())
def test_from_arrays_of_wrong_arrays(design: str) -> None:
    keys = np.arange(30, dtype=np.uint32)
    options = {"design": design, "device": "cpu"}
    for some, values in ((keys, keys[:4]), (keys[:4], keys), (keys, keys[:0]), (3, 4), (keys, 4), (3, keys)):
        with pytest.raises(ShapeError):
            MultiMap.from_arrays(some, values, **options)
    words = np.array(["a", *keys[1:]], object)
    for some, values in ((keys * 1.5, keys), (words, keys), (keys, words)):
        with pytest.raises(DtypeError):
            MultiMap.from_arrays(some, values, **options)
    for name, wrong in (("capacity", -1), ("capacity", 1.5), ("load_factor", 0), ("buckets", 0), ("no_such", 1)):
        with pytest.raises(ParameterError, match=name):
            MultiMap.from_arrays(keys, keys, **{**options, name: wrong})


# ---- any order of verbs
