"""Wrong input: a clear error, or it simply works; never a crash, and never a table that is half changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import design_names
from support.inside import parts_of
from support.small import KEYS, VALUES, N, unchanged
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
from warphash.arrays.view import view

Array = np.ndarray


@pytest.fixture(params=design_names())
def table(request: pytest.FixtureRequest) -> HashMap:
    return HashMap.from_arrays(KEYS, VALUES, device="cpu", design=request.param, seed=3)


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
        np.array([True, False, True]),
        np.array([object(), object()]),
        np.array(["a", "b"]),
        np.array(["a", "b"], "S3"),
        np.array([1 + 2j]),
        np.array(["2026-01-01"], "M8[D]"),
    ],
    ids=["mask", "object", "unicode", "bytes", "complex", "datetime"],
)
def test_keys_of_another_kind(table: HashMap, verb: str, keys: Array) -> None:
    with pytest.raises(DtypeError):
        VERBS[verb](table, keys, np.zeros(len(keys), np.uint32))
    unchanged(table)


@pytest.mark.parametrize("verb", VERBS)
def test_keys_that_do_not_fit_the_key_type(table: HashMap, verb: str) -> None:
    """Keys are never truncated on the way in: they are refused, or are not there."""
    for keys in (np.array([2**40], np.uint64), [-1, 2**40], np.array([1.5, np.nan, np.inf]), np.array([-1], "i1")):
        if verb in (*WITH_VALUES, "getitem", "delitem"):
            with pytest.raises(DtypeError if verb in WITH_VALUES else KeyError):
                VERBS[verb](table, keys, np.zeros(len(keys), np.uint32))
        else:
            answer = VERBS[verb](table, keys, None)
            assert not any(made.any() for made in (answer if isinstance(answer, tuple) else (answer,)))
        unchanged(table)


@pytest.mark.parametrize("verb", WITH_VALUES)
def test_keys_and_values_of_two_shapes(table: HashMap, verb: str) -> None:
    for keys, values in (((3, 2), (2, 3)), ((3, 2), 6), (6, (3, 2)), ((3, 2), (3, 2, 1))):
        with pytest.raises(ShapeError):
            VERBS[verb](table, np.zeros(keys, np.uint32), np.zeros(values, np.uint32))
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


@pytest.mark.parametrize("keys", [[1, 2, 3], {1, 2}])
def test_keys_in_place_of_their_type_are_refused_with_the_call_that_takes_them(keys: Any) -> None:
    with pytest.raises(DtypeError, match=r"is no key type: .*; a table of given keys is made by from_arrays"):
        HashSet(keys, device="cpu")


@pytest.mark.parametrize("dtype", ["O", [("a", "O")], "nonsense", ",", "(", "|S99999999999"])
def test_value_types_that_no_table_takes(dtype: Any) -> None:
    with pytest.raises((DtypeError, TypeError)):
        HashMap("u4", dtype, device="cpu")


@pytest.mark.parametrize(
    ("dtype", "record"),
    [
        (["int64", "int32"], [("f0", "int64"), ("f1", "int32")]),
        (("int64", "str"), [("f0", "int64"), ("f1", "U16")]),
        ({"a": "int64", "b": bytes}, [("a", "int64"), ("b", "S16")]),
    ],
)
def test_several_value_types_are_refused_with_the_record_that_has_them(dtype: Any, record: Any) -> None:
    for make in (HashMap, MultiMap):
        with pytest.raises(
            DtypeError, match=r"expected one value type, got .*for a record of several items, give"
        ) as caught:
            make("u4", dtype, device="cpu")
        mend = str(caught.value).rpartition("give ")[2]
        assert ast.literal_eval(mend) == record
        assert make("u4", ast.literal_eval(mend), device="cpu").value_dtype == np.dtype(record)


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
        {"load_factor": 5e-324},
        {"load_factor": 1e-300},
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


@pytest.mark.parametrize("kind", [HashMap, HashSet, MultiMap])
def test_one_key_that_the_type_does_not_represent_is_not_there(kind: type) -> None:
    def of(key: Any, held: list[Any]) -> Any:
        table = kind(key, device="cpu") if kind is HashSet else kind(key, "u4", device="cpu")
        table.insert(held) if kind is HashSet else table.insert(held, [0] * len(held))
        return table

    for key, held, there, absent in (
        ("u4", [1, 2, 2**32 - 1], [1, True, 2.0, np.int64(1), np.array(2, "i8")], [-1, np.int64(-1), 2**70, 2.9, "1"]),
        (
            "u8",
            [2**64 - 1],
            [2**64 - 1, np.uint64(2**64 - 1)],
            [-1, np.int8(-1), np.array(-1), None, "a", b"1", (), (1, 2)],
        ),
        ("S3", [b"abc", b"1"], [b"abc", "abc", np.bytes_(b"1")], [b"abcdef", b"abc\0", 1, None, "é"]),
        ("U2", ["ab"], ["ab", np.str_("ab")], ["abc", b"ab", 12, None]),
        ("?", [True], [True, 1, np.bool_(True)], [5, "x", None, 0.5]),
        ("M8[s]", [np.datetime64(5, "s")], [np.datetime64(5000, "ms")], [np.datetime64(5001, "ms"), 5, None]),
    ):
        table = of(key, held)
        for one in there:
            assert one in table, (key, one)
        for one in absent:
            assert one not in table, (key, one)


def test_rows_and_records_as_one_key() -> None:
    rows = HashSet(("i4", (2,)), device="cpu")
    rows.insert([[1, 2]])
    assert [1, 2] in rows and (1.0, 2) in rows and np.array([1, 2]) in rows
    assert all(key not in rows for key in ([1, 2.5], [1, 2, 3], (1,), 1, [1, [2]], "12"))
    records = HashSet([("a", "i4"), ("b", "S2")], device="cpu")
    records.insert([(1, b"ab")])
    assert (1, b"ab") in records and records.keys()[0] in records
    assert all(key not in records for key in ((1.5, b"ab"), (1, b"abc"), (1,), 1, b"ab"))


def test_a_batch_is_no_key(table: HashMap) -> None:
    for batch in ([7, 14], np.array([7], np.uint32), np.zeros((2, 2))):
        with pytest.raises(ShapeError, match="contains"):
            batch in table  # noqa: B015


def test_nothing_is_cut_on_its_way_in() -> None:
    names = HashSet("U3", device="cpu")
    with pytest.raises(DtypeError, match="U4"):
        names.insert(["abcd", "abce"])
    assert names.contains(["abcd"]).tolist() == [False]
    flags = HashSet(bool, device="cpu")
    with pytest.raises(DtypeError, match="5"):
        flags.insert([5, 0, 7])
    assert len(names) == len(flags) == 0
    numbers = HashMap("i4", "i4", device="cpu")
    for value in (3.9, np.array(3.9), np.int64(2**40), "3", None):
        with pytest.raises(DtypeError):
            numbers[[1, 2, 3]] = value
        with pytest.raises(DtypeError):
            numbers.insert([1, 2, 3], [value] * 3)
    assert len(numbers) == 0
    numbers[[1, 2, 3]] = np.int64(3)
    assert numbers[[3, 2]].tolist() == [3, 3]
    bytes_ = HashMap("i4", "S3", device="cpu")
    for default in (b"abcdef", b"ab\0", 5, None):
        with pytest.raises(DtypeError, match="default"):
            bytes_.find([1], default=default)
    assert bytes_.find([1], default=b"abc")[0].tolist() == [b"abc"]


def test_one_value_for_many_keys() -> None:
    records = HashMap("i4", [("x", "i4"), ("y", "S2")], device="cpu")
    records[[1, 2, 3]] = (7, b"ab")
    assert records[[3, 1]].tolist() == [(7, b"ab")] * 2 and records[2].tolist() == (7, b"ab")
    rows = HashMap([("a", "i4"), ("b", "i4")], ("f4", (2,)), device="cpu")
    rows[[(1, 2), (3, 4)]] = [0.5, 1.5]
    assert rows[(3, 4)].tolist() == [0.5, 1.5] and rows[[(3, 4)]].shape == (1, 2)


def test_the_mend_of_a_mask() -> None:
    """The conversion that the error advises is followed to the letter."""
    keys, table = np.array([True, False]), HashSet("i8", device="cpu")
    with pytest.raises(DtypeError, match=r"keys\.astype\('int64'\)"):
        table.insert(keys)
    assert table.insert(keys.astype("int64")).all() and sorted(table.keys().tolist()) == [0, 1]


@pytest.mark.parametrize(
    ("held", "came", "worse"),
    [
        ("i4", "i8", 2**40),
        ("u4", "i4", -1),
        ("S3", "S4", b"abcd"),
        ("U2", "U3", "abc"),
        ("S2", "U2", "é"),
        ("i8", "f8", 1.5),
        ("M8[s]", "M8[ns]", np.datetime64(1, "ns")),
        ("M8[ns]", "M8[s]", np.datetime64(2**62, "s")),
    ],
)
def test_an_update_takes_another_type_if_every_value_fits(held: str, came: str, worse: Any) -> None:
    keys = np.array([1, 0]).astype(came) if came[0] in "if" else np.array(["1", "2"], came)
    keys = np.array([10**9, 2 * 10**9]).astype(came) if came == "M8[ns]" else keys
    keys = np.array([1, 2], "i8").view(came) if came == "M8[s]" else keys
    table = HashSet(held, device="cpu")
    assert table.insert(keys).all() and sorted(table.keys().astype(came).tolist()) == sorted(keys.tolist())
    assert table.contains(np.append(keys, np.array([worse], came))).tolist() == [True, True, False]
    for container in (np.array, list):
        with pytest.raises(DtypeError, match=re.escape(str(np.array([worse], came)[0]))):
            table.insert(container(np.append(keys, np.array([worse], came))))
    assert len(table) == 2


@pytest.mark.parametrize(
    ("held", "came"),
    [("i8", "i4"), ("i8", "u4"), ("u2", "u1"), ("i4", "i2"), ("S4", "S3"), ("U3", "U2"), (("i8", (2,)), ("i4", (2,)))],
)
def test_a_wider_key_type_takes_the_keys_of_a_narrower_one(held: Any, came: Any) -> None:
    full = np.dtype(came)
    ends = [np.iinfo(full.base).min, np.iinfo(full.base).max] if full.base.kind in "iu" else ["1", "22"]
    keys = np.array([ends, ends[::-1]] if full.shape else ends, full.base)
    table = HashSet(held, device="cpu")
    assert (
        table.insert(keys).all()
        and table.contains(keys).all()
        and table.contains(keys.astype(np.dtype(held).base)).all()
    )
    assert sorted(table.keys().tolist()) == sorted(keys.tolist())
    assert table.erase(keys).all()


@pytest.mark.parametrize(("held", "came"), [("f8", "f4"), ("f8", "i4"), ("f4", "u2"), ("i8", "i1"), ("S5", "S2")])
def test_a_wider_value_type_takes_the_values_of_a_narrower_one(held: str, came: str) -> None:
    values = np.array([b"a", b"bc"], came) if came[0] == "S" else np.array([1, 100], came)
    table = HashMap("u8", held, device="cpu")
    assert table.insert([1, 2], values).all() and table[[1, 2]].tolist() == values.tolist()
    assert not table.assign([2, 1], values).any() and table[2] == values[0]


def test_nulls_and_mixed_columns_are_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    for column in (pa.array([1, None]), pa.chunked_array([[1], [None]]), pa.table({"a": [1, None]})):
        with pytest.raises(DtypeError, match="null"):
            HashSet.from_arrays(column, device="cpu")
    with pytest.raises(DtypeError, match="structured"):
        HashMap.from_arrays([1], pa.table({"a": [1], "b": [0.5]}), device="cpu")
    assert len(HashSet.from_arrays(pa.array([1, 2]), device="cpu")) == 2


def test_more_rows_than_a_batch_has(table: HashMap) -> None:
    """Refused at once: nothing of that size is touched."""
    many = np.broadcast_to(np.uint32(7), (2**31 + 1,))
    for verb in (*VERBS.values(), lambda m, k, v: HashMap.from_arrays(k, v), lambda m, k, v: HashSet.from_arrays(k)):
        with pytest.raises(ShapeError, match=r"2\*\*31"):
            verb(table, many, many)
    unchanged(table)


@pytest.mark.parametrize("tiny", [5e-324, 1e-300, 1e-10])
def test_load_factors_that_no_number_of_slots_has(tiny: float) -> None:
    for options in ({"load_factor": tiny}, {"load_bounds": (0, tiny)}):
        with pytest.raises(ParameterError, match="1e-09"):
            HashMap("u4", "u4", device="cpu", **options)  # type: ignore[arg-type]


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


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("table", [HashMap, HashSet, MultiMap])
def test_keys_that_may_be_columns_or_rows(table: Any, library: str) -> None:
    """A list of arrays is refused; what the error proposes is taken, and means what the error says."""
    made = pytest.importorskip(library)
    column = (made.array if library in ("numpy", "pyarrow") else made.Series)([1, 1, 2])
    values = () if table is HashSet else ([7, 8, 9],)
    with pytest.raises(ShapeError, match=r"a list of 2 arrays, .* tuple\(keys\) for columns, or numpy.stack"):
        table.from_arrays([column, column], *values, device="cpu")
    of_tuples = table.from_arrays((column, column), *values, device="cpu")
    assert set(of_tuples) == {(1, 1), (2, 2)}
    of_columns = table.from_arrays(np.column_stack([column, column]), *values, device="cpu")
    assert sorted(map(tuple, np.unique(of_columns.keys(), axis=0).tolist())) == [(1, 1), (2, 2)]
    of_rows = table.from_arrays(np.stack([column, column]), *(each[:2] for each in values), device="cpu")
    assert np.unique(of_rows.keys(), axis=0).tolist() == [[1, 1, 2]]


def test_lists_of_rows_and_of_single_arrays_of_no_axis_are_keys() -> None:
    assert HashSet.from_arrays([[1, 2], [3, 4], [1, 2]], device="cpu").key_dtype.shape == (2,)
    assert sorted(HashSet.from_arrays([np.array(3), np.int64(5)], device="cpu").keys().tolist()) == [3, 5]


def test_an_error_of_the_table_itself_names_no_keys() -> None:
    table, keys = HashSet("int64", device="cpu"), np.array([100, 101])
    front = parts_of(table).front
    error = TableFull("no room")
    assert front.naming_keys(error, view(keys)) is error
    assert front.naming_keys(TableFull("no room", np.array([1])), view(keys)).keys.tolist() == [101]
