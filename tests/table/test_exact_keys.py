"""Keys in arrays of another type than the table's: a lookup compares values, and an update takes them if all fit."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from warphash import DtypeError, HashMap, HashSet, MultiMap
from warphash.arrays import cast
from warphash.arrays.view import view

ASKED = np.array([2**40, 1, -1, 2**32 + 2, 3, 2**32])
THERE = [False, True, False, False, True, False]
"""Of `ASKED`, in tables of int32 that hold 0 to 3. What is cut to 32 bits would be there."""


RECORD = [("a", "i4"), ("b", "S2")]


def column(library: str, values: Any) -> Any:
    if library == "numpy":
        return values
    module = pytest.importorskip(library)
    make = {"torch": "tensor", "pandas": "Series", "polars": "Series", "pyarrow": "array"}[library]
    return getattr(module, make)(values)


@pytest.fixture(params=design_names())
def table(request: pytest.FixtureRequest) -> HashMap:
    return HashMap.from_arrays(np.arange(4, dtype="i4"), np.arange(10, 14), device="cpu", design=request.param)


def test_lookups_compare_values(table: HashMap) -> None:
    expected = np.where(THERE, ASKED + 10, -5)
    values, found = table.find(ASKED, -5)
    assert values.tolist() == expected.tolist() and found.tolist() == THERE
    assert table.contains(ASKED.reshape(2, 3)).tolist() == [THERE[:3], THERE[3:]]
    assert table.get(ASKED, -5).tolist() == expected.tolist()
    keys, values, found = table.find(ASKED, -5, order="any")
    assert keys is ASKED and values.tolist() == expected.tolist() and found.tolist() == THERE
    assert (table.probe_counts(ASKED) > 0)[THERE].all() and table.probe_counts(ASKED)[0] == 0
    assert table[ASKED[THERE]].tolist() == [11, 13]
    for verb in (table.__getitem__, table.__delitem__, table.pop):
        with pytest.raises(KeyError, match=r"1099511627776, and \d more"):
            verb(ASKED)
        with pytest.raises(KeyError, match=r"^'?1099511627776'?$"):
            verb(2**40)
    assert table.get(2**40) is None and table.pop(2**40, None) is None and len(table) == 4


def test_erasing_compares_values(table: HashMap) -> None:
    assert table.pop(ASKED[[0, 5]], -1).tolist() == [-1, -1]
    assert table.erase(ASKED[[0, 2, 3, 5]]).tolist() == [False] * 4 and len(table) == 4
    assert table.pop(ASKED, -1).tolist() == np.where(THERE, ASKED + 10, -1).tolist()
    assert sorted(table.keys().tolist()) == [0, 2]
    del table[np.array([0.0, 2.0])]
    table.check()
    assert len(table) == 0


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        (np.array([1.0, 1.5, np.nan, np.inf, -np.inf, -0.0, 1e300, 2.0**31]), [1, 0, 0, 0, 0, 1, 0, 0]),
        (np.array([1.0, 1.5, np.nan, np.inf], "f2"), [1, 0, 0, 0]),
        (np.array([1, 2**64 - 1], "u8"), [1, 0]),
        (np.array([2**63, 3], ">u8"), [0, 1]),
        ([2**40, 1], [0, 1]),
        ([1.5, 1, "x", b"y", 1j, np.float32(2), (datetime.date(2020, 1, 1))], [0, 1, 0, 0, 0, 1, 0]),
        (np.array([], "i8"), []),
    ],
    ids=str,
)
def test_what_equals_an_integer(asked: Any, there: list[int]) -> None:
    given = np.arange(4, dtype="i4")
    for table in (HashSet.from_arrays(given, device="cpu"), MultiMap.from_arrays(given, given, device="cpu")):
        assert table.contains(asked).tolist() == [bool(each) for each in there]


@pytest.mark.parametrize(
    ("key", "held", "asked", "there"),
    [
        ("M8[ns]", ["2024-01-01", "NaT"], np.array(["2024-01-01", "NaT", "2300-01-01"], "M8[us]"), [1, 1, 0]),
        ("M8[D]", ["2024-01-01"], np.array(["2024-01-01T00:00", "2024-01-01T00:01"], "M8[m]"), [1, 0]),
        ("M8[us]", ["2024-01-01"], np.array(["2024", "9999", "300000"], "M8[Y]"), [1, 0, 0]),
        ("m8[s]", [np.timedelta64(1, "s")], np.array([1000, 1001], "m8[ms]"), [1, 0]),
        ("S3", [b"abc", b""], np.array([b"abcd", b"abc", b"", b"ab"]), [0, 1, 1, 0]),
        ("S3", [b"abc", b""], np.array(["abc", "abcd", "é", ""]), [1, 0, 0, 1]),
        ("U3", ["abc", "é"], np.array(["abcd", "é", "abc"]), [0, 1, 1]),
        (("i4", (2,)), [[1, 2]], np.array([[1, 2], [2**32 + 1, 2], [1, 3]]), [1, 0, 0]),
        (RECORD, [(1, b"x")], np.array([(1, b"x"), (2**32 + 1, b"x")], [("a", "i8"), ("b", "S5")]), [1, 0]),
        (RECORD, [(1, b"x")], np.array([(b"x", 1), (b"xyz", 1)], [("b", "S5"), ("a", "u1")]), [1, 0]),
        ([("a", ("i4", (2,)))], [([1, 2],)], np.array([([1, 2],), ([1, 2**40],)], [("a", "i8", (2,))]), [1, 0]),
    ],
    ids=str,
)
def test_other_types(key: Any, held: list[Any], asked: Any, there: list[int]) -> None:
    table = HashSet(key, device="cpu")
    table.insert(held)
    assert table.contains(asked).tolist() == [bool(each) for each in there]
    fits = asked[np.array(there, bool)]
    assert not table.insert(fits).any() and len(table) == len(held)


FAR_UNITS = [
    ("M", "Y", "ps"),
    ("M", "M", "as"),
    *((kind, *pair) for kind in "Mm" for pair in (("W", "ps"), ("D", "fs"), ("h", "as"), ("3D", "7ps"), ("s", "as"))),
]
"""Pairs of units between which NumPy has no factor."""


@pytest.mark.parametrize(("kind", "coarse", "fine"), FAR_UNITS)
@pytest.mark.parametrize("is_up", [True, False])
def test_times_of_far_units(kind: str, coarse: str, fine: str, is_up: bool) -> None:
    """0 of either unit is equal, and NaT is; a second is the only other time that both units can have here."""
    held, asked = (fine, coarse) if is_up else (coarse, fine)
    second = 10**18 if asked == "as" else 1
    given = np.array([0, second, 2**62 + 1, -1, "NaT"], f"{kind}8[{asked}]")
    there = [True, (held, asked) in (("s", "as"), ("as", "s")), False, False, True]
    dtype = np.dtype(f"{kind}8[{held}]")
    seconds = [1 if held == "s" else 10**18] if there[1] else []
    table = HashSet.from_arrays(np.array([0, *seconds, "NaT"], dtype), device="cpu")
    assert table.contains(given).tolist() == [item in table for item in given] == there
    assert HashSet.from_arrays(table.keys(), nulls="key", device="cpu").contains(given).tolist() == there
    rows = HashSet.from_arrays(np.array([[0, 0]], dtype), device="cpu")
    assert rows.contains(np.stack([given, given[[0] * 5]], 1)).tolist() == [True, *[False] * 4]
    records = HashSet.from_arrays(np.array([(0, 1)], [("a", dtype), ("b", "i4")]), device="cpu")
    asked_records = np.array([(0, 1), (given[2], 1)], [("a", given.dtype), ("b", "i8")])
    assert records.contains(asked_records).tolist() == [True, False]
    assert not table.insert(given[there]).any()
    with pytest.raises(DtypeError, match="leave it out"):
        table.insert(given)
    assert table.issuperset(given[there]) and not table.issuperset(given)


@pytest.mark.parametrize("library", ["numpy", "torch", "pandas", "polars", "pyarrow"])
def test_answers_are_of_the_library_of_the_keys(library: str) -> None:
    table = HashMap.from_arrays(np.arange(4, dtype="i4"), np.arange(10, 14), device="cpu")
    asked = column(library, ASKED)
    values, found = table.find(asked, -5)
    assert type(found).__module__.partition(".")[0] == library and np.asarray(found).tolist() == THERE
    assert type(values) is type(asked) and np.asarray(values)[THERE].tolist() == [11, 13]
    with pytest.raises(DtypeError, match="got 1099511627776 in an array of int64"):
        table.insert(asked, 0)
    few = column(library, ASKED[THERE])
    assert len(table.assign(few, column(library, np.array([1, 2])))) == 2 and table[[1, 3]].tolist() == [1, 2]
    many = MultiMap.from_arrays(np.array([0, 1, 1], "i4"), np.array([5, 6, 7]), device="cpu")
    values, offsets = many.find_all(asked)
    assert np.asarray(offsets).tolist() == [0, 0, 2, 2, 2, 2, 2] and sorted(np.asarray(values).tolist()) == [6, 7]
    assert np.asarray(many.count(asked)).tolist() == [0, 2, 0, 0, 0, 0]
    assert np.asarray(many.erase_all(asked)).tolist() == [0, 2, 0, 0, 0, 0] and len(many) == 1


def test_columns_keep_their_labels() -> None:
    pd = pytest.importorskip("pandas")
    table = HashSet.from_arrays(np.arange(4, dtype="i4"), device="cpu")
    found = table.contains(pd.Series(ASKED, index=list("abcdef"), name="asked"))
    assert found.index.tolist() == list("abcdef") and found.name == "asked" and found.tolist() == THERE


def test_set_algebra() -> None:
    table = HashSet.from_arrays(np.array([1, 2], "i4"), device="cpu")
    for other in (np.array([1, 2, 2**40]), [1, 2, 2**40], {1, 2, 2**40}):
        assert table.issubset(other) and not table.issuperset(other)
        assert sorted(table.intersection(other).keys().tolist()) == [1, 2] and len(table.difference(other)) == 0
        for verb in (table.union, table.symmetric_difference, table.update):
            with pytest.raises(DtypeError, match="1099511627776"):
                verb(other)
    assert sorted(table.union(np.array([5])).keys().tolist()) == [1, 2, 5] and table.issuperset(np.array([2.0]))
    wide = HashSet.from_arrays(np.array([1, 2, 2**40]), device="cpu")
    with pytest.raises(DtypeError, match=r"the other table's keys\(\)"):
        table <= wide  # noqa: B015
    assert table.issubset(wide.keys())


def test_a_lookup_of_another_key_is_no_use() -> None:
    """In a bounded table, an element that the type cannot represent is no use of any key."""
    table = HashSet("i4", device="cpu", max_size=2, evict="lru")
    table.insert([0])
    table.insert([1])
    table.contains(np.array([2**32]))
    table.insert([2])
    assert 0 not in table


def test_floats() -> None:
    table = HashMap("f4", "f4", floats="value", device="cpu")
    table.insert([0.5, 0.0, np.nan], [1, 2, 3])
    assert table.contains(np.array([0.5, 0.1, -0.0, np.nan, 1e300])).tolist() == [True, False, True, True, False]
    assert table.contains(np.array([2**24 + 1, 0])).tolist() == [False, True]
    with pytest.raises(DtypeError, match=r"got 0.1 in .*keys.astype\('float32'\)"):
        table.insert(np.array([0.5, 0.1]), 0)
    with pytest.raises(DtypeError, match=r"got 0.1 in .*values.astype\('float32'\)"):
        table.insert([7], np.array([0.1]))
    assert table.assign(np.array([0.5, 1.5]), np.array([0.25, np.inf])).tolist() == [False, True]


def test_nulls_and_strings() -> None:
    table = HashSet("i4", nulls="key", device="cpu")
    table.insert([1, None])
    assert table.contains([1, None, 2**40, 1.5]).tolist() == [True, True, False, False]
    assert table.contains(np.array([2**40, 1])).tolist() == [False, True]
    assert table.insert(np.array([2])).tolist() == [True] and 2**40 not in table
    with pytest.raises(DtypeError, match="1099511627776"):
        table.insert([2**40, None])
    words = HashMap("str", "i4", device="cpu")
    words.insert(["a", "b"], [1, 2])
    assert words.contains(["a", b"a", 5, "\ud800"]).tolist() == [True, False, False, False]
    assert "\ud800" not in words and words.get(b"a") is None and words.get(["b", 5], 9).tolist() == [2, 9]
    with pytest.raises(KeyError, match=r"^'5'$"):
        words[["a", 5]]
    plain = HashSet("i4", device="cpu")
    with pytest.raises(DtypeError, match="1 nulls"):
        plain.contains([1, None])
    assert None not in plain


@pytest.mark.parametrize("key", [["abc", "abc\0"], [b"ab\0", b"cd\0"]], ids=str)
def test_zeros_at_the_end_are_kept(key: list[Any]) -> None:
    table = HashMap.from_arrays(key, [1, 2], device="cpu")
    assert table[key].tolist() == [1, 2] and sorted(table.keys().tolist()) == sorted(key)


def test_wide_integers_and_the_mend() -> None:
    assert HashSet.from_arrays([2**63, 1], device="cpu").key_dtype == np.uint64
    values = [2**63 + 1, -1]
    with pytest.raises(DtypeError, match=r"n\.to_bytes") as refused:
        HashSet.from_arrays(values, device="cpu")
    mended = eval(str(refused.value).partition("as in ")[2], {"numpy": np, "values": values})
    assert len(HashSet.from_arrays(mended, device="cpu")) == 2


def test_times_with_a_zone_are_instants() -> None:
    """As a key, in a list and in a column alike; a time without a zone is as it is."""
    zone = datetime.timezone(datetime.timedelta(hours=9))
    moments = [datetime.datetime(2024, 1, day, 9, tzinfo=zone) for day in (1, 2)]
    instants = np.array(["2024-01-01", "2024-01-02"], "M8[ns]")
    for given in (moments, instants):
        table = HashMap.from_arrays(given, [1, 2], device="cpu")
        assert table.contains(instants).all() and table.contains(moments).all() and table[moments[1]] == 2
        assert "2024-01-01T09:00+09:00" in table and "2024-01-01T00:00Z" in table
        assert datetime.datetime(2024, 1, 1) in table and datetime.datetime(2024, 1, 1, 9) not in table
        assert table.pop(moments[0]) == 1 and table.get(moments[0]) is None


def test_times_with_a_zone_of_pandas_and_pyarrow() -> None:
    pd = pytest.importorskip("pandas")
    series = pd.Series(pd.date_range("2024-01-01", periods=3, tz="Asia/Tokyo"))
    table = HashMap.from_arrays(series, np.arange(3), device="cpu")
    assert all(moment in table for moment in series) and table[series[2]] == 2
    assert table.contains(list(series)).all() and table.contains(series).all()
    assert HashMap.from_arrays(list(series), np.arange(3), device="cpu")[series].tolist() == [0, 1, 2]
    pa = pytest.importorskip("pyarrow")
    arrow = pa.array(series)
    assert all(moment in table for moment in arrow) and table.contains(list(arrow)).all()


INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.mark.parametrize("cast_of", ["numpy", "torch"])
@pytest.mark.parametrize("wanted", [*INTEGERS, "f4", "f8"])
@pytest.mark.parametrize("given", [*INTEGERS, "f2", "f4", "f8"])
def test_every_pair_of_types_of_numbers(given: str, wanted: str, cast_of: str) -> None:
    """Against Python's own comparison; of PyTorch as an adapter does on a GPU."""
    powers = [2**n for n in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64)]
    edges = [sign * power + beside for power in powers for sign in (1, -1) for beside in (-1, 0, 1)]
    kind = np.dtype(given)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            items = np.array([*map(float, edges), 0.5, 1.5, np.nan, np.inf, -np.inf, 1e30, 1e300], given)
    else:
        limits = np.iinfo(kind)
        items = np.array([edge for edge in edges if limits.min <= edge <= limits.max], given)
    made, fits = with_torch(items, np.dtype(wanted)) if cast_of == "torch" else with_numpy(items, np.dtype(wanted))
    pairs = list(zip(items.tolist(), made.tolist(), fits.tolist(), strict=True))
    assert all(item == its or item != item for item, its, fit in pairs if fit)
    held = fitting_numbers(items.tolist(), np.dtype(wanted))
    assert fits.tolist() == held


def fitting_numbers(items: list[Any], wanted: np.dtype[Any]) -> list[bool]:
    if wanted.kind == "f":
        with np.errstate(over="ignore"):
            made = [wanted.type(float(item)).item() for item in items]
        return [number == item or item != item for item, number in zip(items, made, strict=True)]
    limits = np.iinfo(wanted)
    return [item == item and limits.min <= item <= limits.max and int(item) == item for item in items]


def with_numpy(items: Any, wanted: np.dtype[Any]) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        made, fits = cast._cast_items(items, wanted)
    return made, np.ones(len(items), bool) if fits is None else fits


def with_torch(items: Any, wanted: np.dtype[Any]) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    from warphash.arrays.adapters.torch import LIBRARY

    made, fits = cast._cast_numbers(torch.from_numpy(items), items.dtype, wanted, LIBRARY.cast)
    return made.numpy(), np.ones(len(items), bool) if fits is None else fits.numpy()


@pytest.mark.parametrize("dtype", ["?", "u4", "u8", "i2", "f4"])
@pytest.mark.parametrize("row", [(), (2,)])
def test_spread_of_torch(dtype: str, row: tuple[int, ...]) -> None:
    """What a GPU's adapter does, with tensors on the CPU."""
    torch = pytest.importorskip("torch")
    from warphash.arrays.adapters.torch import LIBRARY

    answers = torch.from_numpy(np.ones((2, *row), dtype))
    out, fits = torch.from_numpy(np.zeros((4, *row), dtype)), torch.tensor([False, True, False, True])
    LIBRARY.spread(out, fits, answers, np.full(row, 0, dtype))
    assert (out.numpy().reshape(4, -1) == 1).all(1).tolist() == fits.tolist()
    whole = torch.zeros(5, dtype=torch.int64)
    cast.spread_offsets(view(whole), fits.numpy(), view(torch.tensor([0, 2, 5])))
    assert whole.tolist() == [0, 0, 2, 2, 5]


OBJECTS: dict[str, list[Any]] = {
    "UUID": [uuid.UUID(int=number) for number in range(3)],
    "decimal": [decimal.Decimal("1.50"), decimal.Decimal("2"), decimal.Decimal("-3.25")],
    "date": [datetime.date(2026, 1, day) for day in (1, 2, 3)],
    "int": [1, 2, 2**62],
    "bytes": [b"a", b"bc", b""],
    "rows": [(1, 2), (3, 4), (5, 6)],
}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("form", ["array", "Series", "Index"])
def test_objects_in_an_array_are_keys_as_those_of_a_list(kind: str, form: str) -> None:
    """Columns of frames were taken, and the same column alone was not."""
    items = OBJECTS[kind]
    array = np.empty(3, object)
    array[:] = items
    pandas = pytest.importorskip("pandas") if form != "array" else None
    given = array if pandas is None else getattr(pandas, form)(array, dtype=object)
    if form == "Index" and kind == "rows":
        given = pandas.Index(array, dtype=object, tupleize_cols=False)  # type: ignore[union-attr]
    table, wanted = (HashMap.from_arrays(keys, np.arange(3), device="cpu") for keys in (given, items))
    if kind != "bytes" or form == "array":  # a Series of bytes is of any length
        assert table.key_dtype == wanted.key_dtype
    assert np.asarray(table.contains(given)).all() and np.asarray(table.find(items)[0]).tolist() == [0, 1, 2]
    assert np.asarray(wanted.find(given)[0]).tolist() == [0, 1, 2]
    assert not np.asarray(wanted.insert(given, [7, 7, 7])).any()
    if form == "Series":
        assert table.contains(given[::-1]).index.tolist() == [2, 1, 0]
    multi = MultiMap.from_arrays(given, np.arange(3), device="cpu")
    assert np.asarray(multi.count(given)).tolist() == [1, 1, 1]


def test_nulls_among_objects_follow_the_rule() -> None:
    pandas = pytest.importorskip("pandas")
    keys = [uuid.UUID(int=7), None, uuid.UUID(int=8)]
    for given in (np.array(keys, object), pandas.Series(keys, dtype=object)):
        with pytest.raises(DtypeError):
            HashSet.from_arrays(given, device="cpu")
        assert len(HashSet.from_arrays(given, nulls="drop", device="cpu")) == 2
        table = HashSet.from_arrays(given, nulls="key", device="cpu")
        assert len(table) == 3 and None in table and np.asarray(table.contains(given)).all()


def test_decimals_of_another_scale_in_objects() -> None:
    table = HashMap.from_arrays(OBJECTS["decimal"], np.arange(3), device="cpu")
    asked = [decimal.Decimal("1.5"), decimal.Decimal("2.000"), decimal.Decimal("1.505")]
    for given in (asked, np.array(asked, object)):
        assert table.contains(given).tolist() == [True, True, False]


def test_objects_are_values_too() -> None:
    table = HashMap("int64", "float32", device="cpu")
    table.insert([1, 2], np.array([1.5, 2], object))
    assert table.find([1, 2])[0].tolist() == [1.5, 2.0]
    with pytest.raises(DtypeError, match=r"got 0\.1 .*leave it out"):
        HashMap("int64", "int32", device="cpu").insert([1], np.array([0.1], object))
