"""Keys of a fixed width with nulls among them, by the rules ``"key"`` and ``"drop"``."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from warphash import DeviceError, DtypeError, HashMap, HashSet, MultiMap, ShapeError, UnsupportedVerb
from warphash.arrays.decimals import decimal_type

GIVEN: list[Any] = [7, None, -1, 7, None, 0]


def column(library: str, items: list[Any], dtype: str = "Int64") -> Any:
    module = pytest.importorskip(library)
    if library == "pandas":
        return module.Series(items, dtype=dtype)
    return module.Series(items) if library == "polars" else module.array(items)


def items_of(keys: Any) -> list[Any]:
    held = keys.to_pylist() if hasattr(keys, "to_pylist") else keys.tolist() if hasattr(keys, "tolist") else list(keys)
    return [None if item is None or type(item).__name__ == "NAType" else item for item in held]


@pytest.mark.parametrize("design", design_names())
def test_a_null_is_a_key_beside_all_values(design: str) -> None:
    table = HashMap("int64", "int64", nulls="key", design=design)
    assert table.insert(GIVEN, np.arange(6)).sum() == 4
    assert set(table) == {7, None, -1, 0} and len(table) == 4
    assert table[None] in (1, 4) and table[7] in (0, 3) and None in table and 3 not in table and "a" not in table
    assert table.find([None, 5, 0], default=-9)[1].tolist() == [True, False, True]
    table[None] = 100
    assert table.pop(None) == 100 and None not in table and table.get(None) is None
    with pytest.raises(KeyError, match="None"):
        table[None]
    with pytest.raises(KeyError, match="5"):
        table[5]
    table.check()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
class TestColumns:
    def test_as_one_key(self, library: str) -> None:
        given = column(library, GIVEN)
        table = HashSet.from_arrays(given, nulls="key")
        keys = table.keys()
        assert table.key_dtype == np.int64 and type(keys).__module__.split(".")[0] == library
        assert sorted(items_of(keys), key=str) == sorted([7, None, -1, 0], key=str)
        assert np.asarray(table.contains(given)).all() and np.asarray(table.contains(keys)).all()
        assert np.asarray(table.erase(given)).sum() == 4

    def test_dropped(self, library: str) -> None:
        given = column(library, GIVEN)
        table = HashMap.from_arrays(given, np.arange(6), nulls="drop")
        assert set(table) == {7, -1, 0} and table.keys(like="numpy").dtype == np.int64
        assert np.asarray(table.contains(given)).tolist() == [True, False, True, True, False, True]
        assert items_of(table.keys()) == list(table)

    def test_refused_by_default(self, library: str) -> None:
        with pytest.raises(DtypeError, match="2 nulls among them"):
            HashSet.from_arrays(column(library, GIVEN), device="cpu")

    def test_columns_of_nulls_and_without(self, library: str) -> None:
        table = HashSet("int64", nulls="key")
        table.insert(column(library, [1, 2]))
        table.insert(column(library, [3, None])[1:])
        assert set(table) == {1, 2, None}


def test_other_types() -> None:
    times = HashSet("M8[us]", nulls="key")
    times.insert([np.datetime64("2020-01-01"), None])
    assert set(times) == {np.datetime64("2020-01-01"), None}
    floats = HashSet("float64", nulls="key", floats="value")
    floats.insert([0.0, -0.0, None, float("nan"), -float("nan")])
    assert len(floats) == 3 and None in floats and float("nan") in floats and -0.0 in floats
    rows = HashSet(("int32", (2,)), nulls="key")
    rows.insert([(1, 2), None, (1, 2)])
    assert len(rows) == 2 and (1, 2) in rows and (2, 1) not in rows and None in rows


def test_copies(tmp_path: Path) -> None:
    table = HashMap("int64", "int64", nulls="key")
    table.insert(GIVEN, np.arange(6))
    for twin in (table.copy(), pickle.loads(pickle.dumps(table)), table.__replace__(design="slab")):
        assert twin == table and None in twin and twin.key_dtype == np.int64
    assert table.upsert(GIVEN, np.full(6, 9), "last").sum() == 0 and dict(table.items())[None] == 9
    with pytest.raises(UnsupportedVerb, match="pickle the table"):
        table.save(tmp_path / "table")
    assert "key=int64, nulls='key'" in repr(table)


def test_sets() -> None:
    left, right = HashSet("int64", nulls="key"), HashSet("int64", nulls="key")
    left.insert([1, None]), right.insert([None, 2])
    assert set(left & right) == {None} and set(left | right) == {1, 2, None} and set(left.union([5])) == {1, 5, None}
    with pytest.raises(DtypeError, match="one key type, got int64, nulls='key' and int64"):
        _ = left | HashSet("int64", device="cpu")


def test_multimaps() -> None:
    for nulls, counts in (("key", [2, 3, 0]), ("drop", [2, 0, 0])):
        table = MultiMap("int64", "int64", nulls=nulls)
        table.insert([1, None, 1, None, None], np.arange(5))
        assert table.count([1, None, 2]).tolist() == counts and len(table) == sum(counts)


def test_a_bounded_table() -> None:
    table = HashSet("int64", nulls="key", max_size=5, evict="fifo")
    for key in [None, *range(4), None, *range(10, 12)]:
        table.insert([key])
    assert len(table) == 5 and set(table) == {1, 2, 3, 10, 11}
    assert set(table.evict(2).tolist()) == {1, 2}


def test_refusals() -> None:
    with pytest.raises(DeviceError, match="keys of type int64, nulls='key' live on the CPU alone"):
        HashSet("int64", nulls="key", device="cuda")
    table = HashSet("int64", nulls="key")
    with pytest.raises(DtypeError):
        table.insert(["a", None])
    with pytest.raises(ShapeError, match="ask contains"):
        [1, 2] in table  # noqa: B015
    with pytest.raises(DtypeError, match="exact equality"):
        HashSet("float64", nulls="key")


EXTENSIONS: dict[str, Any] = {
    **{name: ([1, None, 1], name) for name in ("Int64", "UInt8", "Float64", "boolean", "int64[pyarrow]")},
    "no nulls": ([1, 2, 1], "Int64"),
    "of numpy": ([1, 2, 1], "int64"),
}


@pytest.mark.parametrize("rule", ["key", "drop"])
@pytest.mark.parametrize("form", ["array", "Series", "Index"])
@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_arrays_of_pandas(name: str, form: str, rule: str) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    items, kind = EXTENSIONS[name]
    given = pd.array(items, dtype=kind if name != "of numpy" else np.dtype(kind))
    given = given if form == "array" else getattr(pd, form)(given)
    options: dict[str, Any] = {"floats": "value"} if "Float" in name else {}
    table = HashSet.from_arrays(given, nulls=rule, **options)
    found = np.asarray(table.contains(given)).tolist()
    assert found == [True, None not in items or rule == "key", True]
    assert len(table) == 2 - (None in items and rule == "drop")
    assert (None in table) == (None in items and rule == "key")
    table.insert(given)
    assert len(table) == 2 - (None in items and rule == "drop")


@pytest.mark.parametrize("rule", ["key", "drop"])
def test_frames_under_a_rule(rule: str) -> None:
    pd = pytest.importorskip("pandas")
    whole = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, dtype="Int64")
    table = HashSet.from_arrays(whole, nulls=rule)
    assert len(table) == 2 and table.contains(whole).tolist() == [True, True]
    with pytest.raises(DtypeError, match="rows without nulls in them, got 1 in column 'b'"):
        HashSet.from_arrays(whole.where(whole < 4), nulls=rule)
    with pytest.raises(ShapeError, match="in one dimension"):
        HashSet("i8", nulls=rule).contains(whole)


@pytest.mark.parametrize("dtype", ["Int64", "boolean"])
def test_single_nulls_of_libraries_are_nulls(dtype: str) -> None:
    """As they are in a column: alone, and in a list."""
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    column = pd.Series([1, None], dtype=dtype)
    table = HashMap.from_arrays(column, [1, 2], nulls="key", device="cpu")
    for null in (None, pd.NA, pa.scalar(None, pa.int64())):
        assert null in table and table[null] == table.get(null) == 2
        assert np.asarray(table.contains([null, column[0]])).all()
    assert np.asarray(table.contains(list(column))).all()
    table[pd.NA] = 3
    assert table[None] == 3 and len(table) == 2
    dropping = HashSet("int64", nulls="drop", device="cpu")
    assert dropping.insert([pd.NA, 1]).tolist() == [False, True] and pd.NA not in dropping
    dropping.add(pd.NA)
    assert len(dropping) == 1


def test_a_missing_time_of_a_column_is_a_null() -> None:
    pd = pytest.importorskip("pandas")
    times = pd.Series(pd.to_datetime(["2024-01-01", None]).tz_localize("Asia/Tokyo"))
    table = HashSet.from_arrays(times, nulls="key", device="cpu")
    assert times[1] in table and np.asarray(table.contains(list(times))).all()


KEYS: dict[str, np.ndarray] = {
    **{dtype: np.array([1, 2], dtype) for dtype in ("i1", "u2", "i4", "u8", "M8[D]", "m8[ms]")},
    **{dtype: np.array([1, "NaN"], dtype) for dtype in ("f2", "f4", "f8")},
    **{dtype: np.array([1, "NaT"], dtype) for dtype in ("M8[ms]", "M8[us]", "M8[ns]", "m8[us]")},
    "M8[D] with NaT": np.array([1, "NaT"], "M8[D]"),
    "decimal": np.arange(4).view(decimal_type(2)),
    "bool": np.array([True, False]),
    **{f"rows of {dtype}": np.array([[0, 1], [1, 1]], dtype) for dtype in ("i4", "?", "f4", "M8[us]")},
}
"""Keys of each kind, of which no library but NumPy has another type."""

ONLY_SOME: dict[str, tuple[np.ndarray, set[str]]] = {
    "V3": (np.array([b"abc", b"de\0"], "V3"), {"pandas", "pyarrow"}),
    "rows of V2": (np.array([[0, 1], [1, 1]], "u2").view("V2"), {"pandas", "pyarrow"}),
    "M8[s]": (np.array([1, "NaT"], "M8[s]"), {"pandas", "pyarrow"}),
    "M8[M]": (np.array([1, "NaT"], "M8[M]"), {"pandas"}),
    "m8[h]": (np.array([1, 2], "m8[h]"), {"pandas"}),
    "M8[ps]": (np.array([1, 2], "M8[ps]"), set()),
    "m8[Y]": (np.array([1, 2], "m8[Y]"), set()),
    "decimal of 256 bits": (np.arange(8).view(decimal_type(2, 32)), {"pandas", "pyarrow"}),
    "record": (np.array([(1, b"x"), (2, b"y")], [("a", "i4"), ("b", "S2")]), set()),
    "boxes": (np.arange(8).reshape(2, 2, 2), {"polars", "pyarrow"}),
}


@pytest.mark.parametrize("has_null", [True, False])
@pytest.mark.parametrize(
    ("kind", "library"),
    [
        (kind, library)
        for kind in (*KEYS, *ONLY_SOME)
        for library in ("pandas", "polars", "pyarrow")
        if library != "polars" or kind not in ("V3", "rows of V2")  # bytes of any length there
    ],
)
def test_a_table_holds_its_own_keys(kind: str, library: str, has_null: bool) -> None:
    """As columns of each library: all of them, with as many nulls."""
    module = pytest.importorskip(library)
    pytest.importorskip("pyarrow")  # for columns of pandas with nulls
    given, libraries = ONLY_SOME.get(kind, (KEYS.get(kind), {library}))
    assert given is not None
    full = np.dtype((given.dtype, given.shape[1:])) if given.shape[1:] else given.dtype
    table = HashSet(full, nulls="key", floats="bits" if given.dtype.kind == "f" else None, device="cpu")
    table.insert(given)
    if has_null:
        table.add(None)
    like = module.array([1]) if library == "pyarrow" else module.Series([1])
    if library not in libraries and not (library == "pandas" and kind == "boxes" and has_null):
        with pytest.raises(DtypeError, match=f"{library} has no column of "):
            table.keys(like=like)
        return
    keys = table.keys(like=like)
    there = np.asarray(table.contains(keys))
    assert there.tolist() == [True] * (2 + has_null)
    copied = HashSet(full, nulls="key", floats="bits" if given.dtype.kind == "f" else None, device="cpu")
    assert np.asarray(copied.insert(keys)).all() and (None in copied) == has_null
