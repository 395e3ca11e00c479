"""Keys of several columns of any types, in the forms of each library, against dicts of tuples."""

from __future__ import annotations

import copy
import datetime
import decimal
import math
import pickle
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warphash import DtypeError, HashMap, HashSet, MultiMap
from warphash.arrays.decimals import decimal_of, decimal_type

few = settings(max_examples=30)

LIBRARIES = ("list", "numpy", "pandas", "polars", "pyarrow")

UTC, TOKYO = datetime.UTC, datetime.timezone(datetime.timedelta(hours=9))
NOON = datetime.datetime(2024, 1, 1, 12)
IDS = tuple(uuid.UUID(int=number) for number in (0, 7, 2**128 - 1))
PRICES = tuple(map(decimal.Decimal, ("1.50", "-2.25", "0.00")))
TEXTS = ("", "a", "ann", "añ\u00fc", "a\0", "z" * 300)
NAN = math.nan


class Kind(NamedTuple):
    """A type of a column.

    Attributes
    ----------
    spec
        Key type.
    items
        What a column holds.
    makers
        Of each library, what makes a column of a list.
    """

    spec: Any
    items: tuple[Any, ...]
    makers: dict[str, Callable[[list[Any]], Any]]

    def has_nulls_in(self, library: str) -> bool:
        """Whether columns of a library have nulls. NaN and NaT of NumPy's types are values."""
        if library in ("numpy", "pandas"):
            dtype = self.makers[library]([]).dtype
            return not isinstance(dtype, np.dtype) or dtype.kind == "O"
        return True


def of(library: str, make: Callable[[Any, list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda items: make(pytest.importorskip(library), items)


def in_pandas(dtype: Any) -> Callable[[list[Any]], Any]:
    return of("pandas", lambda pd, items: pd.Series(items, range(5, 5 + len(items)), dtype=dtype))


def in_polars(name: str, *arguments: Any) -> Callable[[list[Any]], Any]:
    def make(pl: Any, items: list[Any]) -> Any:
        kind = getattr(pl, name)
        return pl.Series("x", items, kind(*arguments) if arguments else kind)

    return of("polars", make)


def in_arrow(name: str, *arguments: Any) -> Callable[[list[Any]], Any]:
    return of("pyarrow", lambda pa, items: pa.array(items, getattr(pa, name)(*arguments)))


def in_numpy(dtype: Any) -> Callable[[list[Any]], Any]:
    return lambda items: np.array(items, dtype)


def of_decimals(pd: Any, items: list[Any]) -> Any:
    return pd.Series(items, dtype=pd.ArrowDtype(pytest.importorskip("pyarrow").decimal128(10, 2)))


def coded(pa: Any, items: list[Any]) -> Any:
    return pa.array(items, pa.string()).dictionary_encode()


def of_uuids(pa: Any, items: list[Any]) -> Any:
    return pa.array([item and item.bytes for item in items], pa.uuid())


KINDS: dict[str, Kind] = {
    "str": Kind(
        "str",
        TEXTS,
        {
            "numpy": in_numpy(object),
            "pandas": in_pandas(object),
            "polars": in_polars("String"),
            "pyarrow": in_arrow("string"),
        },
    ),
    "str, in other encodings": Kind(
        "str",
        TEXTS,
        {
            "pandas": in_pandas("string"),
            "polars": in_polars("Categorical"),
            "pyarrow": in_arrow("string_view"),
        },
    ),
    "categories": Kind("str", TEXTS, {"pandas": in_pandas("category"), "pyarrow": of("pyarrow", coded)}),
    "bytes": Kind(
        "bytes",
        (b"", b"a", b"\xff\0"),
        {
            "numpy": in_numpy(object),
            "pandas": in_pandas(object),
            "polars": in_polars("Binary"),
            "pyarrow": in_arrow("binary"),
        },
    ),
    "U5": Kind("U5", ("", "ann", "bobby"), {"numpy": in_numpy("U5")}),
    "int64": Kind(
        "int64",
        (0, 1, -1, 2**62),
        {
            "numpy": in_numpy("i8"),
            "pandas": in_pandas("Int64"),
            "polars": in_polars("Int64"),
            "pyarrow": in_arrow("int64"),
        },
    ),
    "int64, of int16": Kind(
        "int64",
        (0, 1, -1, 32767),
        {
            "numpy": in_numpy(">i2"),
            "pandas": in_pandas("Int16"),
            "polars": in_polars("Int16"),
            "pyarrow": in_arrow("int16"),
        },
    ),
    "bool": Kind(
        "bool",
        (True, False),
        {
            "numpy": in_numpy("?"),
            "pandas": in_pandas("boolean"),
            "polars": in_polars("Boolean"),
            "pyarrow": in_arrow("bool_"),
        },
    ),
    "times": Kind(
        "M8[us]",
        (NOON, NOON + datetime.timedelta(microseconds=1)),
        {
            "numpy": in_numpy("M8[us]"),
            "pandas": in_pandas("M8[us]"),
            "polars": in_polars("Datetime", "us"),
            "pyarrow": in_arrow("timestamp", "us"),
        },
    ),
    "instants": Kind(
        "M8[us]",
        (NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=TOKYO), NOON.replace(hour=21, tzinfo=TOKYO)),
        {
            "pandas": in_pandas("datetime64[us, Asia/Tokyo]"),
            "polars": in_polars("Datetime", "us", "Asia/Tokyo"),
            "pyarrow": in_arrow("timestamp", "us", "Asia/Tokyo"),
        },
    ),
    "dates": Kind(
        "M8[D]",
        (NOON.date(), datetime.date(1969, 12, 31)),
        {"numpy": in_numpy("M8[D]"), "polars": in_polars("Date"), "pyarrow": in_arrow("date32")},
    ),
    "spans": Kind(
        "m8[us]",
        (datetime.timedelta(1), datetime.timedelta(-1)),
        {"numpy": in_numpy("m8[us]"), "pandas": in_pandas("m8[us]"), "polars": in_polars("Duration", "us")},
    ),
    "decimals": Kind(
        decimal_type(2),
        PRICES,
        {
            "numpy": in_numpy(object),
            "pandas": of("pandas", of_decimals),
            "polars": in_polars("Decimal", 10, 2),
            "pyarrow": in_arrow("decimal128", 12, 2),
        },
    ),
    "uuid": Kind(
        "V16", IDS, {"numpy": in_numpy(object), "pandas": in_pandas(object), "pyarrow": of("pyarrow", of_uuids)}
    ),
    "float64": Kind(
        "float64",
        (0.0, -0.0, 1.5, NAN),
        {"numpy": in_numpy("f8"), "pandas": in_pandas("f8"), "polars": in_polars("Float64")},
    ),
    "float32": Kind("float32", (0.0, -0.0, 1.5, NAN), {"numpy": in_numpy("f4"), "pyarrow": in_arrow("float32")}),
}
"""Kinds of columns. Each can be given as a list, too."""


def kinds_in(library: str) -> list[str]:
    return [name for name, kind in KINDS.items() if library == "list" or library in kind.makers]


def canonical(item: Any) -> Any:
    """Of an item of a column, or of a table, what equal items share: nothing of this is the product's."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, np.void):
        return decimal_of(item) if item.dtype.names else item.tobytes()
    if isinstance(item, uuid.UUID):
        return item.bytes
    if isinstance(item, datetime.datetime):
        naive = item.replace(tzinfo=None) - (item.utcoffset() or datetime.timedelta())
        return (naive - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    if isinstance(item, datetime.date):
        return (item - datetime.date(1970, 1, 1)).days
    if isinstance(item, datetime.timedelta):
        return item // datetime.timedelta(microseconds=1)
    if isinstance(item, np.datetime64 | np.timedelta64):
        return int(item.astype(np.int64))
    if isinstance(item, float | np.floating):
        return "NaN" if item != item else float(item) + 0.0
    return item.item() if isinstance(item, np.generic) else item


def canonical_rows(rows: Any) -> list[Any]:
    return [tuple(map(canonical, row)) for row in rows]


class Columns(NamedTuple):
    """Some columns of a library, and their rows."""

    given: tuple[Any, ...]
    rows: list[Any]


class Case:
    """Kinds of columns that were drawn, and a table of these.

    Parameters
    ----------
    has_nulls
        Columns have nulls among their items.
    """

    def __init__(self, data: Any, library: str, *, has_nulls: bool = False) -> None:
        self.data, self.library, self.has_nulls = data, library, has_nulls
        kinds = st.lists(st.sampled_from(kinds_in(library)), min_size=1, max_size=4)
        self.kinds = [KINDS[name] for name in data.draw(kinds)]
        self.types = [kind.spec for kind in self.kinds]
        has_floats = any(kind.spec in ("float64", "float32") for kind in self.kinds)
        self.options: dict[str, Any] = {"floats": "value"} if has_floats else {}

    def columns(self, least: int = 0) -> Columns:
        n = self.data.draw(st.integers(least, 12))
        lists = []
        for kind in self.kinds:
            takes_none = self.has_nulls and kind.has_nulls_in(self.library)
            items = st.sampled_from((*kind.items, None) if takes_none else kind.items)
            lists.append(self.data.draw(st.lists(items, min_size=n, max_size=n)))
        given = tuple(
            kind.makers[self.library](items) if self.library != "list" else items
            for kind, items in zip(self.kinds, lists, strict=True)
        )
        return Columns(given, canonical_rows(zip(*lists, strict=True)))


def pairs_of(table: Any) -> dict[Any, int]:
    return {tuple(map(canonical, key)): int(value) for key, value in table.items()}


def as_list(answers: Any) -> list[Any]:
    return answers.to_pylist() if hasattr(answers, "to_pylist") else np.asarray(answers).tolist()


@pytest.mark.parametrize("library", LIBRARIES)
class TestVerbs:
    """The verbs of tables, of columns of all kinds."""

    @few
    @given(data=st.data())
    def test_maps(self, library: str, data: st.DataObject) -> None:
        case = Case(data, library)
        table = HashMap(case.types, "int64", device="cpu", **case.options)
        model: dict[Any, int] = {}
        for step in range(3):
            columns, values = case.columns(), np.arange(12) + 100 * step
            verb = data.draw(st.sampled_from(["insert", "upsert", "erase", "find_or_insert"]))
            n = len(columns.rows)
            if verb == "erase":
                erased = as_list(table.erase(columns.given))
                assert sum(erased) == len(set(columns.rows) & model.keys())
                model = {key: value for key, value in model.items() if key not in columns.rows}
            elif verb == "upsert":
                table.upsert(columns.given, values[:n], "last")
                model |= dict(zip(columns.rows, values[:n].tolist(), strict=True))
            else:
                new = table.insert(columns.given, 7) if verb == "insert" else table.find_or_insert(columns.given, 7)[1]
                assert sum(as_list(new)) == len(set(columns.rows) - model.keys())
                model = {**dict.fromkeys(columns.rows, 7), **model}
            asked = case.columns()
            found, flags = table.find(asked.given, default=-1)
            assert as_list(found) == [model.get(row, -1) for row in asked.rows]
            assert as_list(flags) == as_list(table.contains(asked.given)) == [row in model for row in asked.rows]
        assert pairs_of(table) == model and len(table) == len(model)
        assert sorted(map(str, canonical_rows(table))) == sorted(map(str, model))
        table.check()

    @few
    @given(data=st.data())
    def test_nulls(self, library: str, data: st.DataObject) -> None:
        case = Case(data, library, has_nulls=True)
        columns, asked = case.columns(), case.columns()
        for rule in ("key", "drop"):
            kept = {row for row in columns.rows if rule == "key" or None not in row}
            table = HashSet(case.types, device="cpu", nulls=rule, **case.options)
            assert sum(as_list(table.insert(columns.given))) == len(kept)
            assert set(canonical_rows(table)) == kept
            assert as_list(table.contains(asked.given)) == [row in kept for row in asked.rows]
            table.check()
        table = HashSet(case.types, device="cpu", **case.options)
        if any(None in row for row in columns.rows):
            with pytest.raises(DtypeError, match=r"without nulls in them, got .* in column"):
                table.insert(columns.given)
        else:
            table.insert(columns.given)
        assert len(table) == (len(set(columns.rows)) if not any(None in row for row in columns.rows) else 0)

    @few
    @given(data=st.data())
    def test_multimaps_numbers_and_sets(self, library: str, data: st.DataObject) -> None:
        case = Case(data, library)
        columns, others = case.columns(), case.columns()
        pairs = MultiMap(case.types, "int64", device="cpu", **case.options)
        pairs.insert(columns.given, np.arange(len(columns.rows)))
        values, offsets = pairs.find_all(others.given)
        of_each = np.split(np.asarray(values), np.asarray(offsets)[1:-1]) if others.rows else []
        expected = [[at for at, row in enumerate(columns.rows) if row == asked] for asked in others.rows]
        assert [each.tolist() for each in of_each] == expected
        assert as_list(pairs.count(others.given)) == list(map(len, expected))
        numbers = HashMap(case.types, "int64", device="cpu", **case.options)
        order = list(dict.fromkeys(columns.rows))
        assert as_list(numbers.number(columns.given)[0]) == [order.index(row) for row in columns.rows]
        left, right = (HashSet(case.types, device="cpu", **case.options) for _ in range(2))
        left.insert(columns.given), right.insert(others.given)
        ours, theirs = set(columns.rows), set(others.rows)
        for made, model in (
            (left | right, ours | theirs),
            (left & right, ours & theirs),
            (left - right, ours - theirs),
            (left ^ right, ours ^ theirs),
            (left.union(others.given), ours | theirs),
        ):
            assert set(canonical_rows(made)) == model
        assert (left == right) == (ours == theirs) and (left <= right) == (ours <= theirs)

    @few
    @given(data=st.data())
    def test_copies_pickles_and_files(self, library: str, data: st.DataObject, tmp_path_factory: Any) -> None:
        case = Case(data, library, has_nulls=library in ("list", "pyarrow"))
        rule = data.draw(st.sampled_from(["key", "drop"])) if case.has_nulls else "raise"
        table = HashMap(case.types, "int32", device="cpu", nulls=rule, **case.options)
        columns, asked = case.columns(), case.columns()
        table.insert(columns.given, np.arange(len(columns.rows), dtype="i4"))
        path = tmp_path_factory.mktemp("files") / "table"
        table.save(path)
        for twin in (
            table.copy(),
            copy.deepcopy(table),
            pickle.loads(pickle.dumps(table)),
            HashMap.load(path),
            table.__replace__(design="slab"),
        ):
            assert twin == table and twin.key_dtype == table.key_dtype
            assert pairs_of(twin) == pairs_of(table)
            assert as_list(twin.contains(asked.given)) == as_list(table.contains(asked.given))
            twin.check()

    @few
    @given(data=st.data())
    def test_keys_that_come_back_are_those_of_the_table(self, library: str, data: st.DataObject) -> None:
        case = Case(data, library)
        columns = case.columns()
        table = HashSet(case.types, device="cpu", **case.options)
        table.insert(columns.given)
        for keys in (table.keys(), table.keys(like="numpy"), table.keys(like="pyarrow")):
            assert isinstance(keys, tuple) and len(keys) == len(case.types)
            assert all(as_list(table.contains(keys)))
            again = HashSet(case.types, device="cpu", **case.options)
            assert all(as_list(again.insert(keys))) and again == table
