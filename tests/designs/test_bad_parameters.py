"""Parameters of lists, and parameters of NumPy's types: legal ones are taken whole, others refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.cases import design_names, list_designs
from support.small import KEYS, VALUES, unchanged
from warphash import HashMap, HashSet, MultiMap, ParameterError
from warphash.runtime.cpu import CpuEngine

NO_NUMBER_OF_LISTS: list[Any] = [
    *(0, -1, -(2**40), 2**32 - 15, 2**32, 2**64 + 1, np.int64(0), np.int8(-1)),  # 2**64 + 1 is 1 in a word
    *(1.0, 10.5, np.float64(3), float("nan"), float("inf"), 3 + 0j),
    *(True, False, np.True_, "10", b"10", "", (1,), [1], {"n": 1}, np.array(3), np.array([1, 2]), int),
]
NO_CHOICE: dict[str, list[Any]] = {
    "rebucket": [0, 1, -1, 2.0, None, "yes", "", [True], np.array(True), np.array([True, False]), float("nan")],
    "allocator": ["Slab", "halloc", "slab ", "", b"slab", None, 0, True, ["slab"], np.array(["slab", "slab"])],
}


def list_makers(design: str, **options: Any) -> list[Callable[[], Any]]:
    """Every way to make a table of a design of lists."""
    options = {"design": design, "device": "cpu", **options}
    return [
        lambda: HashMap("u4", "u4", **options),
        lambda: HashMap("S40", "u4", **options),
        lambda: HashSet("u8", **options),
        lambda: MultiMap("u4", "u8", **options),
        lambda: HashMap.from_arrays(KEYS, VALUES, **options),
    ]


def refused(wrong: Any, name: str, design: str, expected: str) -> None:
    """An error says what was expected, and what came."""
    for make in list_makers(design, **{name: wrong}):
        with pytest.raises(ParameterError) as caught:
            make()
        said = str(caught.value)
        assert f"{design!r}: {name} must be {expected}" in said and repr(wrong) in said


@pytest.mark.parametrize("design", list_designs())
@pytest.mark.parametrize("buckets", NO_NUMBER_OF_LISTS, ids=repr)
def test_buckets_that_are_no_number_of_lists(design: str, buckets: Any) -> None:
    refused(buckets, "buckets", design, "an integer in (1, 4294967280)")


@pytest.mark.parametrize("design", list_designs())
@pytest.mark.parametrize("rebucket", NO_CHOICE["rebucket"], ids=repr)
def test_rebucket_that_is_no_bool(design: str, rebucket: Any) -> None:
    refused(rebucket, "rebucket", design, "one of (True, False)")


@pytest.mark.parametrize("allocator", NO_CHOICE["allocator"], ids=repr)
def test_allocators_that_there_are_not(allocator: Any) -> None:
    refused(allocator, "allocator", "slab", "one of ('slab', 'slab_light')")


@pytest.mark.parametrize("name", ["buckets", "rebucket", "allocator"])
@pytest.mark.parametrize("design", ["auto", *design_names()])
def test_parameters_of_lists_where_there_are_none(design: str, name: str) -> None:
    """Refused even with the value that is a list's default; the error has the names that there are."""
    of_lists = {"slab": {"buckets", "rebucket", "allocator"}, "lock_free_chaining": {"buckets", "rebucket"}}
    default = {"buckets": None, "rebucket": True, "allocator": "slab"}[name]
    options = {"device": "cpu", "design": design, name: default}
    if name in of_lists.get(design, set()):
        assert HashMap("u4", "u4", **options).stats().parameters[name] == default
        return
    some_other = {"lock_free_chaining": "buckets, rebucket", "iceberg": "threshold"}.get(design, "")
    for make in (lambda: HashMap("u4", "u4", **options), lambda: HashSet("u8", **options)):
        with pytest.raises(ParameterError, match=rf"has no parameter '{name}'; it has: .*{some_other}"):
            make()


@pytest.mark.parametrize(
    ("design", "has"),
    [
        ("iceberg", "slots_per_bucket, hashes; of papers alone: threshold, early_exit"),
        ("tiered", "device_capacity, write"),
        ("lock_free_chaining", "of papers alone: buckets, rebucket"),
        ("quotient_cuckoo", "none"),
    ],
)
def test_names_of_papers_come_last(design: str, has: str) -> None:
    with pytest.raises(ParameterError) as caught:
        HashSet("u4", design=design, device="cpu", zzz=1)
    assert str(caught.value) == f"design {design!r} has no parameter 'zzz'; it has: {has}"


@pytest.mark.parametrize("design", list_designs())
def test_lists_beyond_memory(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most lists that there may be are asked for as such, and not as what is left of them in fewer bits."""
    asked = []

    def refuse_much(engine: CpuEngine, nbytes: int, stream: Any = None) -> Any:
        if nbytes < 1 << 30:
            return allocate(engine, nbytes, stream)
        asked.append(nbytes)
        raise MemoryError("the system has not so much")

    allocate = CpuEngine.allocate
    monkeypatch.setattr(CpuEngine, "allocate", refuse_much)
    lists = 2**32 - 16
    for make in list_makers(design, buckets=lists):
        with pytest.raises(MemoryError):
            make()
    node_bytes = [128] * 5 if design == "slab" else [16, 32, 16, 32, 16]  # 8 + 8 bytes of 40-byte keys
    assert len(asked) == 5
    assert all(lists * each <= nbytes < (lists + 4) * each for each, nbytes in zip(node_bytes, asked, strict=True))


@pytest.mark.parametrize(
    ("parameters", "capacity"),
    [
        ({"allocator": "slab_light"}, 2**30),
        ({"allocator": "slab_light", "rebucket": False}, 2**30),
        ({"rebucket": False}, 2**40),
        ({"design": "lock_free_chaining", "rebucket": False}, 2**40),
    ],
    ids=str,
)
def test_capacity_beyond_the_addresses_of_nodes(parameters: dict[str, Any], capacity: int) -> None:
    """Few lists for many keys want a pool with more nodes than have an address."""
    options = {"design": "slab", "device": "cpu", "buckets": 3, **parameters}
    for kind in (HashMap, MultiMap):
        with pytest.raises(MemoryError, match="nodes are more than a pool of"):
            kind("u4", "u4", capacity=capacity, **options)
    table = HashMap.from_arrays(KEYS, VALUES, **options)
    if not options.get("rebucket", True):  # else it takes more lists, for which there may be memory
        with pytest.raises(MemoryError, match="nodes are more than a pool of"):
            table.reserve(capacity)
    unchanged(table)


@pytest.mark.parametrize("design", list_designs())
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u8"])
def test_numbers_of_numpy_are_numbers(design: str, dtype: str, tmp_path: Path) -> None:
    """Whatever their bits: with 8 of them, 15 slots in each of 100 lists were too many to count."""
    table = HashMap("u4", "u4", design=design, device="cpu", buckets=np.dtype(dtype).type(100), rebucket=False, seed=3)
    plain = HashMap("u4", "u4", design=design, device="cpu", buckets=100, rebucket=False, seed=3)
    for each in (table, plain):
        assert each.insert(KEYS, VALUES).all()
        unchanged(each)
    assert table.stats() == plain.stats() and table.stats().slots % 100 == 0
    table.save(tmp_path / "table")
    again = HashMap.load(tmp_path / "table", device="cpu")
    assert again.stats().parameters == plain.stats().parameters
    unchanged(again)


@pytest.mark.parametrize(
    ("design", "name", "value"),
    [
        ("bucketed_cuckoo", "slots_per_bucket", np.uint8(16)),
        ("bucketed_cuckoo", "placement", np.str_("least_loaded")),
        ("cuckoo", "hashes", np.int64(3)),
        ("iceberg", "threshold", np.float32(0.5)),
        ("slab", "allocator", np.str_("slab_light")),
    ],
)
def test_parameters_of_numpy_can_be_saved(design: str, name: str, value: Any, tmp_path: Path) -> None:
    table = HashMap.from_arrays(KEYS, VALUES, design=design, device="cpu", **{name: value})
    table.save(tmp_path / "table")
    again = HashMap.load(tmp_path / "table", device="cpu")
    assert again.stats().parameters == table.stats().parameters and again.stats().parameters[name] == value
    unchanged(again)
