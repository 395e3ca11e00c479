"""Wrong input: a clear error, or it simply works; never a crash, and never a table that is half changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import design_names, list_designs
from support.model import Model
from warphash import (
    DeviceError,
    DtypeError,
    HashMap,
    HashSet,
    MultiMap,
    ParameterError,
    ShapeError,
    TableFull,
    WarphashError,
)
from warphash.runtime.cpu import CpuEngine

Array = np.ndarray
N = 30
KEYS = np.arange(N, dtype=np.uint32) * 7
VALUES = np.arange(N, dtype=np.uint32)


@pytest.fixture(params=design_names())
def table(request: pytest.FixtureRequest) -> HashMap:
    return HashMap.from_arrays(KEYS, VALUES, device="cpu", design=request.param, seed=3)


def unchanged(table: HashMap) -> None:
    model = Model()
    model.pairs = {key.tobytes(): value.tobytes() for key, value in zip(KEYS, VALUES, strict=True)}
    model.agrees(table, KEYS)


VERBS: dict[str, Callable[[HashMap, Any, Any], Any]] = {
    "insert": lambda m, k, v: m.insert(k, v),
    "assign": lambda m, k, v: m.assign(k, v),
    "upsert": lambda m, k, v: m.upsert(k, v, "add"),
    "find_or_insert": lambda m, k, v: m.find_or_insert(k, v),
    "setitem": lambda m, k, v: m.__setitem__(k, v),
    "find": lambda m, k, v: m.find(k),
    "contains": lambda m, k, v: m.contains(k),
    "erase": lambda m, k, v: m.erase(k),
    "probe_counts": lambda m, k, v: m.probe_counts(k),
    "getitem": lambda m, k, v: m[k],
    "delitem": lambda m, k, v: m.__delitem__(k),
}
WITH_VALUES = ("insert", "assign", "upsert", "find_or_insert", "setitem")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "keys",
    [
        np.array([1.0, np.nan, 3.0], np.float32),
        np.array([1.5]),
        np.array([object(), object()]),
        np.array(["a", "b"]),
        np.array(["a", "b"], "S3"),
        np.array([1 + 2j]),
        np.array(["2026-01-01"], "M8[D]"),
    ],
    ids=["f4", "f8", "object", "unicode", "bytes", "complex", "datetime"],
)
def test_keys_of_another_kind(table: HashMap, verb: str, keys: Array) -> None:
    with pytest.raises(DtypeError):
        VERBS[verb](table, keys, np.zeros(len(keys), np.uint32))
    unchanged(table)


@pytest.mark.parametrize("verb", VERBS)
def test_keys_that_do_not_fit_the_key_type(table: HashMap, verb: str) -> None:
    """Keys are never truncated on the way in."""
    with pytest.raises(WarphashError):
        VERBS[verb](table, np.array([2**40], np.uint64), np.zeros(1, np.uint32))
    unchanged(table)
    with pytest.raises((WarphashError, OverflowError)):
        VERBS[verb](table, [-1, 2**40], [0, 0])
    unchanged(table)


@pytest.mark.parametrize("verb", VERBS)
def test_keys_of_two_dimensions(table: HashMap, verb: str) -> None:
    with pytest.raises(ShapeError):
        VERBS[verb](table, np.zeros((3, 2), np.uint32), np.zeros((3, 2), np.uint32))
    unchanged(table)


@pytest.mark.parametrize("verb", WITH_VALUES)
def test_lengths_that_differ(table: HashMap, verb: str) -> None:
    for values in (np.zeros(2, np.uint32), np.zeros(4, np.uint32), np.zeros(0, np.uint32), np.zeros((3, 2), np.uint32)):
        with pytest.raises(ShapeError):
            VERBS[verb](table, np.arange(1000, 1003, dtype=np.uint32), values)
        unchanged(table)


@pytest.mark.parametrize("verb", WITH_VALUES)
def test_values_of_another_kind(table: HashMap, verb: str) -> None:
    for values in (np.array(["a"]), np.array([object()]), np.array([1j]), np.array([0.5])):
        with pytest.raises(DtypeError):
            VERBS[verb](table, np.array([1000], np.uint32), values)
        unchanged(table)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ("f4", (3,))])
def test_floating_point_keys_say_how_to_view_them(dtype: Any) -> None:
    for make in (lambda: HashMap(dtype, "u4"), lambda: HashSet(dtype)):
        with pytest.raises(DtypeError, match="view"):
            make()
    with pytest.raises(DtypeError, match=r"view\(.?['\"]?uint32|view\(np.uint32"):
        HashSet.from_arrays(np.ones(3, np.float32), device="cpu")
    keys = np.array([0.5, -0.0, np.nan, np.inf], np.float32)
    floats = HashSet.from_arrays(keys.view("uint32"), device="cpu")
    assert floats.contains(keys.view("uint32")).all()


@pytest.mark.parametrize("dtype", ["O", [("a", "O")], "V0", "S0", "c8", "S129", ("u8", (17,)), "nonsense", None])
def test_key_types_that_no_table_takes(dtype: Any) -> None:
    with pytest.raises((DtypeError, TypeError)):
        HashSet(dtype, device="cpu")


@pytest.mark.parametrize("dtype", ["O", [("a", "O")], "nonsense"])
def test_value_types_that_no_table_takes(dtype: Any) -> None:
    with pytest.raises((DtypeError, TypeError)):
        HashMap("u4", dtype, device="cpu")


@pytest.mark.parametrize(
    "options",
    [
        {"capacity": -1},
        {"capacity": 1.5},
        {"capacity": "many"},
        {"capacity": 1 << 63},
        {"capacity": 10**400},
        {"load_factor": 0.0},
        {"load_factor": -0.5},
        {"load_factor": 1.0001},
        {"load_factor": float("nan")},
        {"load_factor": float("inf")},
        {"load_factor": "high"},
        {"design": "no such design"},
        {"design": 4},
        {"hash": "md5"},
        {"on_full": "ignore"},
        {"slots_per_bucket": 16, "design": "cuckoo"},
        {"slots_per_bucket": 7, "design": "bucketed_cuckoo"},
        {"slots_per_bucket": 0, "design": "bucketed_cuckoo"},
        {"hashes": 0, "design": "bucketed_cuckoo"},
        {"hashes": 5, "design": "bucketed_cuckoo"},
        {"placement": "random", "design": "bucketed_cuckoo"},
        {"threshold": 0.0, "design": "iceberg"},
        {"threshold": 1.5, "design": "iceberg"},
        {"threshold": float("nan"), "design": "iceberg"},
        {"no_such_parameter": 1, "design": "iceberg"},
        {"priorities": ("speed",), "design": "auto"},
        {"seed": -1},
        {"seed": "x"},
    ],
    ids=str,
)
def test_parameters_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises((ParameterError, TypeError)):
        HashMap("u4", "u4", device="cpu", **options)
    with pytest.raises((ParameterError, TypeError)):
        HashMap.from_arrays(KEYS, VALUES, device="cpu", **options)


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(ParameterError, match="iceberg"):
        HashMap("u4", "u4", device="cpu", design="icebreg")
    with pytest.raises(ParameterError, match="threshold"):
        HashMap("u4", "u4", device="cpu", design="iceberg", treshold=0.5)


# ---- the parameters of lists
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


@pytest.mark.parametrize("device", ["tpu", "cuda:999", "cuda:-1", "cuda:x", "", 3, "cpu:7"])
def test_unknown_device(device: Any) -> None:
    with pytest.raises((DeviceError, warphash.EngineUnavailable, TypeError)):
        HashMap("u4", "u4", device=device)


def test_no_gpu_says_what_mends_it() -> None:
    try:
        HashMap("u4", "u4", device="cuda")
    except (DeviceError, warphash.EngineUnavailable) as error:
        assert "warphash" in str(error) or "cpu" in str(error)


@pytest.mark.parametrize("op", ["plus", "", None, 3])
def test_unknown_operation(table: HashMap, op: Any) -> None:
    with pytest.raises((ParameterError, TypeError)):
        table.upsert(KEYS, VALUES, op)
    unchanged(table)


def test_operation_that_the_value_type_lacks() -> None:
    for dtype, op in (("f4", "xor"), ("S4", "add"), ("f8", "or"), ("S4", "max")):
        table = HashMap("u4", dtype, device="cpu", capacity=4)
        with pytest.raises(WarphashError):
            table.upsert(np.array([1], np.uint32), np.zeros(1, dtype), op)
        assert len(table) == 0


def test_non_contiguous_and_read_only_arrays(table: HashMap) -> None:
    wide = np.arange(400, dtype=np.uint32).reshape(100, 4) + 5000
    frozen = wide.copy()
    frozen.flags.writeable = False
    for offset, keys in enumerate((wide[:, 1], wide[::-1, 2], frozen[:, 3], frozen[:, 0])):
        values = np.broadcast_to(np.uint32(offset), (100,))
        assert table.insert(keys, values).all()
        assert (table[keys] == offset).all()
    assert len(table) == N + 400
    np.testing.assert_array_equal(wide, frozen)


def test_unaligned_arrays(table: HashMap) -> None:
    raw = np.zeros(4 * 50 + 1, np.uint8)
    keys = raw[1:].view(np.uint32)
    keys[:] = np.arange(9000, 9050)
    assert not keys.flags.aligned
    assert table.insert(keys, keys).all() and (table[keys] == keys).all()


def test_lists_and_scalars(table: HashMap) -> None:
    assert table.insert([1, 2, 3], [4, 5, 6]).tolist() == [True, True, True]
    values, found = table.find([1, 2, 9])
    assert values.tolist() == [4, 5, 0] and found.tolist() == [True, True, False]
    table.assign(8, 80)
    assert table[8] == 80 and bool(np.all(table.contains(8)))
    table.erase(np.uint32(8))
    assert 8 not in table
    table.insert([], [])
    assert len(table) == N + 3
    table.insert(np.array(11, np.uint32), np.array(12, np.uint32))  # 0-d
    assert table[11] == 12


def test_integers_of_another_width(table: HashMap) -> None:
    """Refused, or taken where they fit; never wrapped."""
    for keys, values in (([7], [2]), ([7], [2**40]), ([7], [-1]), ([7 + 2**32], [2]), ([7 - 2**32], [2])):
        wide_keys, wide_values = np.array(keys, np.int64), np.array(values, np.int64)
        try:
            table.assign(wide_keys, wide_values)
        except (WarphashError, OverflowError):
            unchanged(table)
        else:
            assert table[7] == values[0] == 2
            assert keys == [7]
            table[7] = 1


def test_bool_keys_and_values() -> None:
    table = HashMap(bool, bool, device="cpu", capacity=2)
    assert table.insert(np.array([True, False]), np.array([False, True])).all()
    assert table[np.array([True, False])].tolist() == [False, True]
    assert len(table) == 2


@pytest.mark.parametrize("key", [">u4", ">i8", ">u2"])
def test_big_endian_arrays(key: str) -> None:
    keys = np.array([1, 2, 70, 300], key)
    values = np.array([10, 20, 30, 40], ">f8")
    table = HashMap.from_arrays(keys, values, device="cpu")
    assert np.asarray(table[keys]).astype("f8").tolist() == [10, 20, 30, 40]
    assert sorted(np.asarray(table.keys()).tolist()) == [1, 2, 70, 300]


def test_big_endian_array_into_a_native_table(table: HashMap) -> None:
    try:
        there = table.contains(np.array([7, 14, 1000], ">u4"))
    except DtypeError:
        return
    assert there.tolist() == [True, True, False]


def test_structured_keys_with_padding() -> None:
    """Equal fields are equal keys, whatever lies between them."""
    dtype = np.dtype([("a", "u1"), ("b", "i8")], align=True)
    raw = np.random.default_rng(1).integers(0, 256, size=(20, dtype.itemsize), dtype=np.uint8)
    one, two = raw.copy().reshape(-1).view(dtype), np.zeros(20, dtype)
    two["a"], two["b"] = one["a"], one["b"]
    try:
        keys = HashSet.from_arrays(one, device="cpu")
    except DtypeError:
        return
    assert keys.contains(two).all()


def test_nan_values_keep_their_bits() -> None:
    values = np.array([0x7FC00001, 0xFFC00000, 0x7F800001], np.uint32).view(np.float32)
    table = HashMap.from_arrays(np.arange(3, dtype=np.uint32), values, device="cpu")
    np.testing.assert_array_equal(
        np.asarray(table[np.arange(3, dtype=np.uint32)]).view(np.uint32), values.view(np.uint32)
    )


def test_capacity_zero_grows(table: HashMap) -> None:
    empty = HashMap("u4", "u4", capacity=0, device="cpu", design=table.design)
    assert empty.insert(KEYS, VALUES).all()
    unchanged(empty)


def test_capacity_beyond_memory() -> None:
    with pytest.raises((MemoryError, WarphashError)):
        HashMap("u8", "u8", capacity=2**60, device="cpu")
    table = HashMap.from_arrays(KEYS, VALUES, device="cpu")
    with pytest.raises((MemoryError, WarphashError)):
        table.reserve(2**60)
    unchanged(table)


def test_reserve_of_nonsense(table: HashMap) -> None:
    for n in (-1, 1.5, "x", None):
        with pytest.raises((ParameterError, TypeError)):
            table.reserve(n)  # type: ignore[arg-type]
    unchanged(table)


@pytest.mark.parametrize("copies", [2, 9, 40])
def test_a_lie_about_uniqueness_invents_no_key(table: HashMap, copies: int) -> None:
    """The last three patterns of a key are what a slot uses itself, and are kept apart under other names."""
    keys = np.repeat(np.uint32([2**32 - 1, 2**32 - 2, 2**32 - 3]), copies)
    try:
        table.insert(keys, keys, assume_unique=True)
    except TableFull:
        return unchanged(table)
    stored = table.keys()
    assert np.isin(stored, np.concatenate([keys, KEYS])).all()
    assert table.contains(np.concatenate([keys, KEYS])).all()


def test_sets_refuse_values() -> None:
    keys = HashSet("u4", device="cpu")
    with pytest.raises(TypeError):
        keys.insert(KEYS, VALUES)  # type: ignore[call-arg,arg-type]
    with pytest.raises((AttributeError, TypeError)):
        keys.find(KEYS)


def test_sets_of_different_types_do_not_mix() -> None:
    with pytest.raises((WarphashError, TypeError)):
        HashSet("u4", device="cpu") | HashSet("u8", device="cpu")
    with pytest.raises(TypeError):
        HashSet("u4", device="cpu") | {1, 2}


def test_errors_are_also_the_built_in_ones() -> None:
    assert issubclass(DtypeError, TypeError) and issubclass(ShapeError, ValueError)
    assert issubclass(ParameterError, ValueError) and issubclass(warphash.CorruptFile, ValueError)
    for error in (DtypeError, ShapeError, ParameterError, DeviceError, warphash.TableFull, warphash.CorruptFile):
        assert issubclass(error, WarphashError)
