"""`HashMap.number`: dense numbers in the order of first appearance, beside a walk by a dict of Python's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import warphash
from support.engines import one_of_each
from support.faults import at_each_allocation, at_each_line
from support.types import Array
from warphash import DtypeError, HashMap, ParameterError, TableFull, UnsupportedVerb
from warphash.designs import registry

ENGINES = one_of_each("cpu", "emulated", "cuda")
DESIGNS = [name for name in registry.names() if "number" in registry.get(name).capabilities]
TYPES = [("i8", "i8"), ("u4", "i4"), ("u8", "u1"), ("i2", "u2"), ("V24", "i8"), ("S3", "u4"), ("datetime64[s]", "i2")]


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """That many threads."""
    warphash.set_num_threads(request.param)
    yield request.param
    warphash.set_num_threads(None)


def keys_of(ids: Array, key: str) -> Array:
    """A key for each number, and another one for each other number below 200."""
    if key == "V24":
        return np.repeat(ids.astype("u8"), 3).view("V24")
    return ids.astype("S3") if key == "S3" else ids.astype("i8").astype(key)


class Walk:
    """What a walk from the front answers, batch by batch."""

    def __init__(self, first: int = 0) -> None:
        self.number_of: dict[Any, int] = {}
        self._first = first

    def number(self, keys: Any) -> tuple[list[int], list[bool]]:
        numbers, new = [], []
        for key in keys:
            new.append(key not in self.number_of)
            numbers.append(self.number_of.setdefault(key, self._first + len(self.number_of)))
        return numbers, new

    def check(self, answer: tuple[Any, Any], keys: Any) -> None:
        numbers, new = (np.asarray(each) for each in answer)
        assert (numbers.tolist(), new.tolist()) == self.number(keys)


# ---- the same numbers everywhere
@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("device", ENGINES)
def test_numbers_of_designs_and_types(device: str, design: str, key: str, value: str, rng: np.random.Generator) -> None:
    table, walk = HashMap(key, value, capacity=8, design=design, device=device), Walk()
    for most, n in ((20, 1), (20, 30), (20, 0), (200, 100), (10, 50), (200, 300)):
        ids = rng.integers(0, most, n)
        numbers, new = table.number(keys_of(ids, key))
        assert numbers.dtype == np.dtype(value) and new.dtype == np.bool_
        walk.check((numbers, new), ids.tolist())
        assert len(table) == len(walk.number_of)
    table.check()
    held = np.array(list(walk.number_of))
    assert table[keys_of(held, key)].tolist() == list(walk.number_of.values())


@pytest.mark.parametrize("key", ["u4", "i8", "V24"])
@pytest.mark.parametrize("repeated", [1, 5], ids=["different", "repeated"])
def test_large_batches_of_several_threads(key: str, repeated: int, threads: int, rng: np.random.Generator) -> None:
    n = 60_000
    table, walk = HashMap(key, "i8", device="cpu"), Walk()
    for first in (0, n // 3, 0):  # new keys, some new keys, and none
        ids = rng.permutation(first + np.arange(n) // repeated)
        walk.check(table.number(keys_of(ids, key)), ids.tolist())
    table.check()


@pytest.mark.parametrize("device", ENGINES)
def test_the_first_number(device: str) -> None:
    table, walk = HashMap("i8", "i4", device=device), Walk(-2)
    for keys in ([5, 6, 5], [7, 5, 8]):
        walk.check(table.number(np.array(keys), first=-2), keys)
    assert table[np.array([5, 8])].tolist() == [-2, 1]


def test_values_of_other_verbs_are_numbers() -> None:
    table = HashMap.from_arrays(np.array([5, 6]), np.array([70, 71]), device="cpu")
    numbers, new = table.number(np.array([6, 9, 5]))
    assert numbers.tolist() == [71, 2, 70] and new.tolist() == [False, True, False]


@pytest.mark.parametrize("shape", [(), (2, 3), (0,)])
def test_shapes(shape: tuple[int, ...]) -> None:
    table = HashMap("i8", "i8", device="cpu")
    numbers, new = table.number(np.arange(np.prod(shape, dtype=int)).reshape(shape))
    expected = shape or (1,)
    assert numbers.shape == new.shape == expected


def test_lists_and_other_types_of_keys() -> None:
    table = HashMap("i8", "i8", device="cpu")
    assert table.number([7, 5, 7])[0].tolist() == [0, 1, 0]
    assert table.number(np.array([5, 9], "u2"))[0].tolist() == [1, 2]
    with pytest.raises(DtypeError, match="int64"):
        table.number(np.array([1 << 63], "u8"))
    assert len(table) == 3


@pytest.mark.parametrize("design", ["bucketed_cuckoo", "slab", "stadium"])
def test_threads_that_share_a_table(design: str, rng: np.random.Generator) -> None:
    table = HashMap("i8", "i8", capacity=8, design=design, device="cpu")
    batches = [rng.integers(0, 500, 200) for _ in range(24)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(table.number, batches))
    distinct = np.unique(np.concatenate(batches))
    assert np.sort(table.values()).tolist() == list(range(len(distinct)))
    assert sum(int(new.sum()) for _, new in answers) == len(distinct)
    assert all((table[keys] == numbers).all() for keys, (numbers, _) in zip(batches, answers, strict=True))


# ---- strings, nulls and floats
@pytest.mark.parametrize("design", ["bucketed_cuckoo", "slab", "quotient_cuckoo"])
def test_strings(design: str, rng: np.random.Generator) -> None:
    table, walk = HashMap("str", "i4", design=design, device="cpu"), Walk()
    for most in (5, 300, 300, 40):
        words = [f"{number} {'x' * (number % 40)}" for number in rng.integers(0, most, 200).tolist()]
        walk.check(table.number(words), words)
    table.check()


@pytest.mark.parametrize("key", ["str", "int64"])
def test_nulls_are_one_key(key: str) -> None:
    table, walk = HashMap(key, "i8", nulls="key", device="cpu"), Walk()
    batches: list[list[Any]] = [[7, None, 8], [None, 9, 7]]
    for keys in batches:
        given = keys if key == "int64" else [None if item is None else str(item) for item in keys]
        walk.check(table.number(given), given)


@pytest.mark.parametrize("key", ["str", "int64"])
def test_nulls_that_are_dropped_have_no_number(key: str) -> None:
    table = HashMap(key, "i8", nulls="drop", device="cpu")
    for given, numbers, added in (([7, None, 8, 7], [0, 0, 1, 0], 2), ([None, 9, 8, None], [0, 2, 1, 0], 1)):
        keys = given if key == "int64" else [None if item is None else str(item) for item in given]
        answer, new = table.number(keys)
        assert answer.tolist() == numbers and new.sum() == added and not new[[k is None for k in keys]].any()
    assert len(table) == 3


def test_floats_by_value() -> None:
    table = HashMap("f8", "i8", floats="value", device="cpu")
    numbers, new = table.number(np.array([0.0, -0.0, np.nan, 1.5, -np.nan]))
    assert numbers.tolist() == [0, 0, 1, 2, 1] and new.tolist() == [True, False, True, True, False]


# ---- what cannot be
@pytest.mark.parametrize(("value", "shape"), [("f8", ()), ("S4", ()), ("bool", ()), ("i4", (2,)), ("V16", ())])
def test_values_that_are_no_integers(value: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(DtypeError, match=r"number gives integers.*such as int64"):
        HashMap("i8", (value, shape), device="cpu").number([1])


@pytest.mark.parametrize("device", ENGINES)
@pytest.mark.parametrize(("value", "first"), [("u1", 0), ("i1", 0), ("i1", -128), ("u2", 65_400)])
def test_numbers_that_the_values_cannot_be(device: str, value: str, first: int) -> None:
    room = int(np.iinfo(value).max) - first + 1
    table = HashMap("i8", value, device=device)
    table.number(np.arange(room - 1), first=first)
    with pytest.raises(DtypeError, match=f"up to {first + room:,}, and .* at most .*wider type"):
        table.number(np.arange(room - 3, room + 1), first=first)
    assert len(table) == room - 1
    last = first + room - 1
    assert table.number(np.array([room - 1, 0, room - 1]), first=first)[0].tolist() == [last, first, last]
    table.check()


@pytest.mark.parametrize("first", [-1, 256, 1.5, True, None, "0"])
def test_first_numbers_that_the_values_cannot_be(first: Any) -> None:
    with pytest.raises(ParameterError, match="first must be"):
        HashMap("i8", "u1", device="cpu").number([1], first=first)


@pytest.mark.parametrize("key", ["i8", "str"])
def test_a_bounded_table_has_no_numbers(key: str) -> None:
    table = HashMap(key, "i8", max_size=100, device="cpu")
    with pytest.raises(UnsupportedVerb, match=r"bounded table.*without max_size"):
        table.number(["a"] if key == "str" else [1])


@pytest.mark.parametrize("key", ["i8", "V24"])
@pytest.mark.parametrize("device", ENGINES)
def test_a_full_table_names_the_keys(device: str, key: str) -> None:
    ids = np.arange(100)
    table = HashMap(key, "i8", capacity=100, on_full="raise", device=device)
    table.number(keys_of(ids, key))
    given = keys_of(np.repeat(np.arange(50, 2050) % 2000, 2), key)
    with pytest.raises(TableFull) as caught:
        table.number(given)
    assert len(table) == 100 and table[keys_of(ids, key)].tolist() == ids.tolist()
    named = caught.value.keys
    assert named is not None and len(np.unique(named)) == len(named) > 1
    assert np.isin(named, given).all() and not np.isin(named, keys_of(ids, key)).any()
    table.check()


# ---- faults
def small(design: str, key: str) -> HashMap:
    table = HashMap(key, "i8", capacity=64, design=design, device="cpu", seed=3)
    table.number(keys_of(np.arange(50), key))
    return table


@pytest.mark.parametrize("key", ["i8", "V24"])
@pytest.mark.parametrize("design", ["bucketed_cuckoo", "slab", "stadium", "quotient_cuckoo"])
@pytest.mark.parametrize("fault", ["refused", "refused once", "interrupted"])
def test_numbers_are_dense_after_a_fault(fault: str, design: str, key: str) -> None:
    given = keys_of(np.array([100, 7, 101, 100, *range(200, 500)]), key)
    after = keys_of(np.array([900, 101, 8]), key)

    def call(table: HashMap) -> None:
        table.number(given)

    if fault == "interrupted":
        calls = at_each_line(lambda: small(design, key), call, every=13)
    else:
        calls = at_each_allocation(lambda: small(design, key), call, once=fault != "refused")
    sizes = set()
    for table, place, _ in calls:
        size = len(table)
        sizes.add(size)
        assert np.sort(table.values()).tolist() == list(range(size)), place
        numbers, new = table.number(after)
        assert numbers.tolist() == [size, 51 if size > 50 else size + 1, 8] and new[0], place
    assert sizes == {50, 352}
