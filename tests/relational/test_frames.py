"""Frames in and out: `drop_duplicates`, `merge`, `group_by` by names, and frames as rows, beside pandas and Polars."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
assert_equal = pytest.importorskip("polars.testing").assert_frame_equal
pyarrow = pytest.importorskip("pyarrow")

few = settings(max_examples=60)
LIBRARIES = ("pandas", "polars", "pyarrow", "mapping")
libraries = pytest.mark.parametrize("library", LIBRARIES)
HOWS = ("inner", "left", "right", "outer", "semi", "anti")
hows = pytest.mark.parametrize("how", HOWS)
KINDS = (
    "int64",
    "int8",
    "float64",
    "bool",
    "str",
    "category",
    "datetime64[ns]",
    "datetime64[ns, UTC]",
    "Int64",
    "string",
    "string[python]",
)
"""Types of columns of pandas."""

FLOATS = (0.0, -0.0, 1.5, float("nan"), 7.0)
DAY = datetime.datetime(2026, 11, 29)


def frame_in(library: str, columns: dict[str, list[Any]]) -> Any:
    if library == "mapping":
        return {name: np.array(items) for name, items in columns.items()}
    return {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.table}[library](columns)


def columns_of(frame: Any) -> dict[Any, list[Any]]:
    """The columns of a frame as lists, with None for nulls and for NaN."""
    if isinstance(frame, pyarrow.Table):
        columns = frame.to_pydict()
    elif isinstance(frame, polars.DataFrame):
        columns = frame.to_dict(as_series=False)
    elif isinstance(frame, dict):
        columns = {name: column.tolist() for name, column in frame.items()}
    else:
        columns = {name: frame[name].tolist() for name in frame}
    return {name: [None if pandas.isna(item) else item for item in items] for name, items in columns.items()}


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return list(zip(*columns_of(frame).values(), strict=True))


def is_of(library: str, frame: Any) -> bool:
    classes = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.Table, "mapping": dict}
    return isinstance(frame, classes[library])


def in_any_order(rows: list[tuple[Any, ...]]) -> list[str]:
    numbers = ([float(item) + 0.0 if isinstance(item, int | float) else item for item in row] for row in rows)
    return sorted(map(repr, numbers))


# ---- frames of all libraries
@hows
@pytest.mark.parametrize("kind", ["string_view", "binary_view", "list", "struct", "map", "array", "dictionary"])
def test_tables_of_pyarrow_with_text_in_views(kind: str, how: Any) -> None:
    """As the tables are that PyArrow makes of frames of Polars."""
    view, plain = pyarrow.string_view(), pyarrow.string()
    words = ["b", None, "of more than 12 bytes"]
    types, items = {
        "string_view": ((plain, view), words),
        "binary_view": ((pyarrow.binary(), pyarrow.binary_view()), [b"b", None, b"of more than 12 bytes"]),
        "list": ((pyarrow.list_(plain), pyarrow.list_(view)), [["b", None], None, ["of more than 12 bytes"]]),
        "struct": ((pyarrow.struct({"x": plain}), pyarrow.struct({"x": view})), [{"x": "b"}, None, {"x": None}]),
        "map": ((pyarrow.map_(plain, plain), pyarrow.map_(view, view)), [[("b", "c")], None, []]),
        "array": ((pyarrow.list_(plain, 1), pyarrow.list_(view, 1)), [["b"], None, ["of more than 12 bytes"]]),
        "dictionary": ((pyarrow.dictionary(pyarrow.int8(), t) for t in (plain, view)), words),
    }[kind]
    of_text, of_views = types
    column = pyarrow.array(items, of_text).cast(of_views)
    left = pyarrow.table({"k": [1, 2, 3, 3], "c": pyarrow.chunked_array([column, column[2:]])})
    assert warphash.drop_duplicates(left, "k")["c"].to_pylist() == items
    made = warphash.merge(left, pyarrow.table({"k": [2, 4]}), how, on="k")
    assert made.schema.field("c").type == of_views
    every = dict(zip([1, 2, 3], items, strict=True))
    assert made["c"].to_pylist() == [every.get(k) for k in made["k"].to_pylist()]


SALES: dict[str, list[Any]] = {"shop": [7, 3, 7, 9], "day": ["mo", "mo", "tu", "mo"], "price": [1.5, 4.0, 2.5, 8.0]}
SHOPS: dict[str, list[Any]] = {"shop": [3, 7, 5], "price": [100, 200, 300], "town": ["Ulm", "Bonn", "Kiel"]}
MERGED = {
    "inner": [(7, "mo", 1.5, 200, "Bonn"), (3, "mo", 4.0, 100, "Ulm"), (7, "tu", 2.5, 200, "Bonn")],
    "left": [
        (7, "mo", 1.5, 200, "Bonn"),
        (3, "mo", 4.0, 100, "Ulm"),
        (7, "tu", 2.5, 200, "Bonn"),
        (9, "mo", 8.0, None, None),
    ],
    "right": [
        (3, "mo", 4.0, 100, "Ulm"),
        (7, "mo", 1.5, 200, "Bonn"),
        (7, "tu", 2.5, 200, "Bonn"),
        (5, None, None, 300, "Kiel"),
    ],
    "outer": [
        (7, "mo", 1.5, 200, "Bonn"),
        (3, "mo", 4.0, 100, "Ulm"),
        (7, "tu", 2.5, 200, "Bonn"),
        (9, "mo", 8.0, None, None),
        (5, None, None, 300, "Kiel"),
    ],
    "semi": [(7, "mo", 1.5), (3, "mo", 4.0), (7, "tu", 2.5)],
    "anti": [(9, "mo", 8.0)],
}


@libraries
@hows
def test_merge_of_each_library(library: str, how: Any) -> None:
    left, right = frame_in(library, SALES), frame_in(library, SHOPS)
    made = warphash.merge(left, right, how, on="shop")
    assert is_of(library, made)
    assert rows_of(made) == MERGED[how]
    both = ["price_x", "price_y"] if library == "pandas" else ["price", "price_right"]
    names = ["shop", "day", "price"] if how in ("semi", "anti") else ["shop", "day", both[0], both[1], "town"]
    assert list(columns_of(made)) == names


@libraries
def test_merge_of_differing_names(library: str) -> None:
    left, right = frame_in(library, SALES), frame_in(library, {"id": [3, 7], "town": ["Ulm", "Bonn"]})
    made = columns_of(warphash.merge(left, right, "left", left_on="shop", right_on="id"))
    assert list(made) == ["shop", "day", "price", "id", "town"]
    assert made["id"] == [7, 3, 7, None]
    assert made["town"] == ["Bonn", "Ulm", "Bonn", None]


@libraries
def test_merge_by_all_common_columns_and_with_suffixes(library: str) -> None:
    left, right = frame_in(library, SALES), frame_in(library, {"shop": [7, 7], "day": ["tu", "we"], "seen": [1, 2]})
    assert rows_of(warphash.merge(left, right)) == [(7, "tu", 2.5, 1)]
    made = warphash.merge(left, frame_in(library, SHOPS), on=["shop"], suffixes=("_mine", ""))
    assert list(columns_of(made)) == ["shop", "day", "price_mine", "price", "town"]


@libraries
@hows
def test_merge_of_no_rows(library: str, how: Any) -> None:
    left, right = frame_in(library, SALES), frame_in(library, {name: items[:0] for name, items in SHOPS.items()})
    if library == "mapping":
        right = {name: column[:0] for name, column in frame_in(library, SHOPS).items()}
    made = rows_of(warphash.merge(left, right, how, on="shop"))
    empty = how in ("inner", "right", "semi")
    assert len(made) == (0 if empty else 4)
    assert not any(item is not None for row in made for item in row[3:])


@libraries
@pytest.mark.parametrize("keep", ["first", "last", False])
def test_drop_duplicates_of_each_library(library: str, keep: Any) -> None:
    frame = frame_in(library, SALES)
    made = warphash.drop_duplicates(frame, "shop", keep=keep)
    expected = {
        "first": [(7, "mo", 1.5), (3, "mo", 4.0), (9, "mo", 8.0)],
        "last": [(3, "mo", 4.0), (7, "tu", 2.5), (9, "mo", 8.0)],
    }
    assert is_of(library, made)
    assert rows_of(made) == (expected[keep] if keep else [(3, "mo", 4.0), (9, "mo", 8.0)])
    assert rows_of(warphash.drop_duplicates(frame, ["shop", "day"], keep=keep)) == rows_of(frame)
    assert rows_of(warphash.drop_duplicates(frame, keep=keep)) == rows_of(frame)


@libraries
def test_group_by_names(library: str) -> None:
    frame = frame_in(library, SALES)
    made = warphash.group_by(frame, "shop").agg(total=("price", "sum"), days=("day", "nunique"), sold="size")
    assert is_of(library, made)
    assert columns_of(made) == {"shop": [7, 3, 9], "total": [4.0, 4.0, 8.0], "days": [2, 1, 1], "sold": [2, 1, 1]}
    made = warphash.group_by(frame, ["day", "shop"], order="sorted").agg(most=("price", "max"))
    assert columns_of(made) == {"day": ["mo", "mo", "mo", "tu"], "shop": [3, 7, 9, 7], "most": [4.0, 1.5, 8.0, 2.5]}
    assert columns_of(warphash.group_by(frame, "day").size()) == {"day": ["mo", "tu"], "size": [3, 1]}
    given = warphash.group_by(frame, "day").agg(total=(np.array([1, 2, 3, 4]), "sum"))
    assert columns_of(given) == {"day": ["mo", "tu"], "total": [7, 3]}


@libraries
def test_a_frame_is_its_rows(library: str) -> None:
    frame = frame_in(library, {"a": [1, 2, 1, 1], "b": ["x", "x", "x", "y"]})
    distinct = warphash.unique(frame)
    assert is_of(library, distinct)
    assert rows_of(distinct) == [(1, "x"), (2, "x"), (1, "y")]
    assert [bool(flag) for flag in np.asarray(warphash.duplicated(frame))] == [False, False, True, False]
    assert warphash.nunique(frame) == 3
    codes, uniques = warphash.factorize(frame)
    assert np.asarray(codes).tolist() == [0, 1, 0, 2]
    assert rows_of(uniques) == rows_of(distinct)
    assert rows_of(warphash.unique(frame, sorted=True)) == [(1, "x"), (1, "y"), (2, "x")]
    index = warphash.Index(frame)
    assert np.asarray(index.get_indexer_non_unique(frame_in(library, {"a": [2, 9], "b": ["x", "x"]}))[0]).tolist() == [
        1,
        -1,
    ]
    inside = warphash.isin(frame, frame_in(library, {"a": [1], "b": ["y"]}))
    assert np.asarray(inside).tolist() == [False, False, False, True]


def test_counts_of_the_rows_of_a_frame() -> None:
    frame = pandas.DataFrame({"a": [1, 2, 1], "b": ["x", "x", "x"]})
    pandas.testing.assert_series_equal(warphash.value_counts(frame), frame.value_counts())
    values, counts = warphash.value_counts(polars.from_pandas(frame))
    assert rows_of(values) == [(1, "x"), (2, "x")]
    assert counts.to_list() == [2, 1]


def test_other_frames_of_arrow_data() -> None:
    table = pyarrow.table(SALES)
    expected = rows_of(warphash.drop_duplicates(table, "shop"))
    batch, reader = table.to_batches()[0], table.to_reader()
    for frame in (batch, reader, Streamed(table)):
        made = warphash.drop_duplicates(frame, "shop")
        assert isinstance(made, pyarrow.Table)
        assert rows_of(made) == expected


class Streamed:
    """A frame of another library."""

    columns = ("shop", "day", "price")

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("verb", [warphash.unique, warphash.factorize, warphash.value_counts, warphash.nunique])
def test_a_stream_that_can_be_read_once_has_all_rows(verb: Any) -> None:
    table = pyarrow.table({"a": [1, 2, 1], "b": ["x", "x", "x"]})
    made, expected = verb(table.to_reader()), verb(table)
    if not isinstance(made, tuple):
        made, expected = (made,), (expected,)
    assert list(map(str, made)) == list(map(str, expected))
    assert warphash.nunique(table) == 2


def test_a_relation_of_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select * from (values (7, 'a'), (3, 'b'), (7, 'c')) t(shop, name)")
    assert rows_of(warphash.drop_duplicates(relation, "shop")) == [(7, "a"), (3, "b")]


def test_labels_of_pandas() -> None:
    frame = pandas.DataFrame(SALES, index=["a", "b", "c", "d"])
    assert list(warphash.drop_duplicates(frame, "shop").index) == ["a", "b", "d"]
    assert list(warphash.merge(frame, pandas.DataFrame(SHOPS), "anti", on="shop").index) == ["d"]
    assert list(warphash.merge(frame, pandas.DataFrame(SHOPS), on="shop").index) == [0, 1, 2]
    assert list(warphash.duplicated(frame[["shop"]]).index) == ["a", "b", "c", "d"]
    twice = frame.set_axis([0, 0, 1, 1])
    assert len(warphash.merge(twice, pandas.DataFrame(SHOPS), "outer", on="shop")) == 5


def test_types_stay() -> None:
    frame = pandas.DataFrame(
        {
            "k": [1, 2, 2],
            "c": pandas.Categorical(["x", "y", "x"]),
            "t": pandas.to_datetime([DAY] * 3).tz_localize("UTC"),
        }
    )
    assert warphash.drop_duplicates(frame, "k").dtypes.equals(frame.dtypes)
    right = pandas.DataFrame({"k": [2, 3], "n": [1, 2], "b": [True, False]})
    for storage, null in (("python", pandas.NA), ("python", np.nan), ("pyarrow", pandas.NA), ("pyarrow", np.nan)):
        right[f"{storage}, {null}"] = pandas.Series(["x", "y"], dtype=pandas.StringDtype(storage, na_value=null))
    made, expected = warphash.merge(frame, right, "left", on="k"), frame.merge(right, "left", on="k")
    pandas.testing.assert_frame_equal(made, expected)


# ---- errors
@libraries
def test_names_that_are_not_there(library: str) -> None:
    frame, other = frame_in(library, SALES), frame_in(library, SHOPS)
    with pytest.raises(warphash.ParameterError, match="did you mean 'shop'"):
        warphash.drop_duplicates(frame, "Shp")
    with pytest.raises(warphash.ParameterError, match="the columns are 'shop', 'day', 'price'"):
        warphash.merge(frame, other, on="zzzzzz")
    with pytest.raises(warphash.ParameterError, match="did you mean 'town'"):
        warphash.merge(frame, other, left_on="day", right_on="towns")
    with pytest.raises(warphash.ParameterError, match=r"total=.* did you mean 'price'"):
        warphash.group_by(frame, "shop").agg(total=("prise", "sum"))
    with pytest.raises(warphash.ParameterError, match="empty list"):
        warphash.drop_duplicates(frame, [])


def test_frames_that_cannot_be_merged() -> None:
    sales, shops = pandas.DataFrame(SALES), pandas.DataFrame(SHOPS)
    for call, error, message in [
        (lambda: warphash.merge(sales, polars.from_pandas(shops)), warphash.DtypeError, "one library"),
        (lambda: warphash.merge(sales, [1, 2]), warphash.DtypeError, "expected a frame"),
        (lambda: warphash.merge(sales, shops, on="shop", left_on="shop"), warphash.ParameterError, "leave on= out"),
        (lambda: warphash.merge(sales, shops, left_on="shop"), warphash.ParameterError, "give both"),
        (lambda: warphash.merge(sales, shops[["town"]]), warphash.ParameterError, "no column in common"),
        (
            lambda: warphash.merge(sales, shops, left_on=["shop"], right_on=["shop", "town"]),
            warphash.ParameterError,
            "1 and 2",
        ),
        (lambda: warphash.merge(sales, shops, on="shop", suffixes=("", "")), warphash.ParameterError, "two columns"),
        (lambda: warphash.merge(sales, shops, "shop"), warphash.ParameterError, "got 'shop': names.*are given as on="),  # type: ignore[arg-type]
        (
            lambda: warphash.group_by(sales, "shop").agg({"price": "sum"}),
            warphash.ParameterError,
            "answers by their names",
        ),
        (
            lambda: warphash.group_by([1]).agg([1]),
            warphash.ParameterError,
            r"as in agg\(total=\('price', 'sum'\)\), got",
        ),
        (
            lambda: warphash.drop_duplicates(pandas.DataFrame()),
            warphash.ParameterError,
            "with columns for subset, got one",
        ),
        (lambda: warphash.merge(sales, shops, on="shop", suffixes=5), warphash.ParameterError, "suffixes=.*got 5"),  # type: ignore[arg-type]
        (lambda: warphash.merge(sales, shops, on="shop", suffixes=("_x",)), warphash.ParameterError, "two texts"),  # type: ignore[arg-type]
        (lambda: warphash.merge(sales, shops, on="shop", suffixes="xy"), warphash.ParameterError, "two texts"),  # type: ignore[arg-type]
        (lambda: warphash.merge(sales, shops, "cross", on="shop"), warphash.ParameterError, "how must be"),  # type: ignore[arg-type]
        (lambda: warphash.merge(sales, shops, on="day"), warphash.ParameterError, "'day'"),
        (
            lambda: warphash.merge(sales, shops, on="shop", validate="1:1"),
            warphash.ParameterError,
            "left keys that differ",
        ),
        (lambda: warphash.drop_duplicates(sales, "shop", keep="none"), warphash.ParameterError, "'first', 'last'"),  # type: ignore[arg-type]
        (lambda: warphash.group_by(sales, "shop").agg(shop="size"), warphash.ParameterError, "both be named"),
        (lambda: warphash.group_by([1, 2], "shop"), warphash.DtypeError, "expected a frame"),
        (lambda: warphash.unique(pandas.DataFrame(index=[1])), warphash.ShapeError, "without"),
    ]:
        with pytest.raises(error, match=message):
            call()
    twice = pandas.concat([sales, sales], axis=1)
    with pytest.raises(warphash.ParameterError, match="got 2: rename"):
        warphash.drop_duplicates(twice, "shop")


# ---- random frames beside pandas
def column_of_pandas(random: np.random.Generator, kind: str, n: int) -> Any:
    picks = random.integers(0, 4, n)
    lacks = random.random(n) < 0.2
    if kind in ("int64", "int8"):
        return pandas.Series(picks.astype(kind))
    if kind == "float64":
        return pandas.Series(np.array(FLOATS)[picks])
    if kind == "bool":
        return pandas.Series(picks % 2 == 0)
    if kind == "Int64":
        return pandas.Series(pandas.arrays.IntegerArray(picks, lacks))
    if kind.startswith("datetime"):
        times = pandas.Series(pandas.to_datetime(DAY) + pandas.to_timedelta(picks, "h")).astype("datetime64[ns]")
        times[lacks] = pandas.NaT
        return times.dt.tz_localize("UTC") if kind.endswith("UTC]") else times
    words = np.array(["", "a", "bb", "ü"], object)[picks]
    words[lacks] = None
    return pandas.Series(words, dtype="category" if kind == "category" else kind)


@st.composite
def frames_of_pandas(draw: st.DrawFn) -> tuple[Any, Any, list[str]]:
    """Two frames, and the names of keys of the same types."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    keys = [(f"k{i}", kind) for i, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)))]
    frames = []
    for side in "lr":
        n = draw(st.integers(0, 12))
        others = draw(st.lists(st.sampled_from(KINDS), max_size=3))
        columns = [*keys, *((f"v{i}", kind) for i, kind in enumerate(others))]
        frame = pandas.DataFrame({name: column_of_pandas(random, kind, n) for name, kind in columns})
        labels = draw(st.sampled_from(["range", "words", "repeated"]))
        if labels == "words":
            frame.index = [f"{side}{i}" for i in range(n)]
        elif labels == "repeated":
            frame.index = [i // 2 for i in range(n)]
        frames.append(frame)
    return frames[0], frames[1], [name for name, _ in keys]


@few
@given(given_frames=frames_of_pandas(), keep=st.sampled_from(["first", "last", False]))
def test_duplicates_are_those_of_pandas(given_frames: Any, keep: Any) -> None:
    frame, _, keys = given_frames
    for subset in (keys, keys[0], None):
        made = warphash.drop_duplicates(frame, subset, keep=keep)
        pandas.testing.assert_frame_equal(made, frame.drop_duplicates(subset, keep=keep))


@few
@given(given_frames=frames_of_pandas(), how=st.sampled_from(["inner", "left", "right", "outer"]))
def test_merges_are_those_of_pandas(given_frames: Any, how: Any) -> None:
    left, right, keys = given_frames
    made, expected = warphash.merge(left, right, how, on=keys, nulls="equal"), left.merge(right, how, on=keys)
    assert list(made.columns) == list(expected.columns)
    if how == "outer":
        assert in_any_order(rows_of(made)) == in_any_order(rows_of(expected))
    else:
        assert rows_of(made) == rows_of(expected)
    others = [name for name in made.columns if name not in keys]
    assert made[others].dtypes.equals(expected[others].dtypes)
    assert isinstance(made.index, pandas.RangeIndex)


@few
@given(given_frames=frames_of_pandas())
def test_groups_are_those_of_pandas(given_frames: Any) -> None:
    frame, _, keys = given_frames
    frame = frame.assign(value=np.arange(len(frame)) * 3)
    made = warphash.group_by(frame, keys).agg(total=("value", "sum"), n="size", least=("value", "min"))
    by_name = {"total": ("value", "sum"), "n": ("value", "size"), "least": ("value", "min")}
    expected = frame.groupby(keys, sort=False, dropna=False, as_index=False, observed=True).agg(**by_name)
    assert in_any_order(rows_of(made)) == in_any_order(rows_of(expected))


# ---- random frames beside Polars
KINDS_OF_POLARS = ("Int64", "UInt8", "Float64", "Boolean", "String", "Categorical", "Datetime", "Date", "Decimal")


def column_of_polars(random: np.random.Generator, kind: str, n: int) -> Any:
    pools: dict[str, list[Any]] = {
        "Int64": [-1, 0, 1, 2**40],
        "UInt8": [0, 1, 2, 255],
        "Float64": [0.0, -0.0, 1.5, 2.0],
        "Boolean": [True, False, True, False],
        "Datetime": [DAY + datetime.timedelta(hours=i) for i in range(4)],
        "Date": [(DAY + datetime.timedelta(days=i)).date() for i in range(4)],
        "Decimal": [0, 1, 2, 3],
    }
    pool = pools.get(kind, ["", "a", "bb", "ü"])
    items = [
        None if lacks else pool[pick]
        for pick, lacks in zip(random.integers(0, 4, n), random.random(n) < 0.2, strict=True)
    ]
    if kind == "Decimal":
        return polars.Series("", items, polars.Int64).cast(polars.Decimal(10, 2))
    return polars.Series("", items, getattr(polars, kind))


@st.composite
def frames_of_polars(draw: st.DrawFn) -> tuple[Any, Any, list[str]]:
    """As `frames_of_pandas`."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.lists(st.sampled_from(KINDS_OF_POLARS), min_size=1, max_size=3))
    keys = [(f"k{i}", kind) for i, kind in enumerate(kinds)]
    frames = []
    for _ in range(2):
        pieces = draw(st.lists(st.integers(0, 8), min_size=1, max_size=2))  # of chunks
        others = draw(st.lists(st.sampled_from(KINDS_OF_POLARS), max_size=3))
        columns = [*keys, *((f"v{i}", kind) for i, kind in enumerate(others))]
        made = [polars.DataFrame({name: column_of_polars(random, kind, n) for name, kind in columns}) for n in pieces]
        frames.append(polars.concat(made, rechunk=False))
    return frames[0], frames[1], [name for name, _ in keys]


@few
@given(given_frames=frames_of_polars(), keep=st.sampled_from(["first", "last", False]))
def test_duplicates_are_those_of_polars(given_frames: Any, keep: Any) -> None:
    frame, _, keys = given_frames
    for subset in (keys, None):
        expected = frame.unique(subset, keep=keep or "none", maintain_order=True)
        for given_frame in (frame, frame.to_arrow()):
            made = warphash.drop_duplicates(given_frame, subset, keep=keep)
            made = made if given_frame is frame else polars.from_arrow(made)
            assert_equal(made, expected, categorical_as_str=True)


@few
@given(given_frames=frames_of_polars(), how=st.sampled_from(HOWS), nulls=st.sampled_from(["equal", "unequal"]))
def test_merges_are_those_of_polars(given_frames: Any, how: Any, nulls: Any) -> None:
    left, right, keys = given_frames
    made = warphash.merge(left, right, how, on=keys, nulls=nulls)
    theirs = "full" if how == "outer" else how
    expected = left.join(
        right, on=keys, how=theirs, nulls_equal=nulls == "equal", coalesce=None if how in ("semi", "anti") else True
    )
    assert sorted(made.columns) == sorted(expected.columns)
    expected = expected.select(made.columns)
    assert in_any_order(rows_of(made)) == in_any_order(rows_of(expected))
    assert made.schema == expected.schema
    of_arrow = warphash.merge(left.to_arrow(), right.to_arrow(), how, on=keys, nulls=nulls)
    assert rows_of(polars.from_arrow(of_arrow)) == rows_of(made)


@few
@given(given_frames=frames_of_polars())
def test_groups_are_those_of_polars(given_frames: Any) -> None:
    frame, _, keys = given_frames
    frame = frame.with_columns(value=polars.int_range(len(frame)) * 3)
    expected = frame.group_by(keys, maintain_order=True).agg(
        total=polars.col("value").sum(), n=polars.len(), least=polars.col("value").min()
    )
    for given_frame in (frame, frame.to_arrow()):
        made = warphash.group_by(given_frame, keys).agg(total=("value", "sum"), n="size", least=("value", "min"))
        assert rows_of(made if given_frame is frame else polars.from_arrow(made)) == rows_of(expected)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@hows
def test_keys_of_two_types_have_the_wider_one(library: str, how: Any) -> None:
    left, right = pandas.DataFrame({"k": np.array([1, 2], "int32")}), pandas.DataFrame({"k": np.array([2, 3], "int64")})
    if library != "pandas":
        make = polars.from_pandas if library == "polars" else pyarrow.Table.from_pandas
        left, right = make(left), make(right)
    made = columns_of(warphash.merge(left, right, how))
    assert made == {"k": {"left": [1, 2], "right": [2, 3], "outer": [1, 2, 3], "anti": [1]}.get(how, [2])}


def test_keys_of_two_kinds_are_one_column_in_no_library() -> None:
    left, right = polars.DataFrame({"k": [1]}), polars.DataFrame({"k": ["1"]})
    assert len(warphash.merge(left, right)) == 0
    for sides in ((left, right), (left.to_arrow(), right.to_arrow())):
        with pytest.raises(warphash.DtypeError, match="of one type"):
            warphash.merge(*sides, "outer")


@libraries
def test_an_error_names_the_column(library: str) -> None:
    ragged = {"a": [1, 2], "ragged": [[1], [2, 3]]}
    if library == "mapping":
        frame: Any = {**ragged, "ragged": pyarrow.array(ragged["ragged"])}
    else:
        frame = frame_in(library, ragged)
    for call in (warphash.drop_duplicates, warphash.unique, warphash.nunique, lambda rows: warphash.merge(rows, rows)):
        if library != "mapping" or call not in (warphash.unique, warphash.nunique):
            with pytest.raises((warphash.DtypeError, warphash.ShapeError), match="column 'ragged': expected"):
                call(frame)


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_sparse_columns_are_those_of_pandas(how: Any) -> None:
    sparse = pandas.arrays.SparseArray
    left = pandas.DataFrame({"k": [1, 2, 3, 3], "n": sparse([0, 0, 5, 6]), "x": sparse([0.0, 1.5, None, 0.0])})
    left["f"] = sparse([True, False, False, True], fill_value=False)
    right = pandas.DataFrame({"k": [3, 1, 9], "m": sparse([0, 7, 8]), "key": sparse([0, 5, 5])})
    for options in ({"on": "k"}, {"left_on": "n", "right_on": "key"}):
        made, wanted = (merge(left, right, how=how, **options) for merge in (warphash.merge, pandas.merge))
        assert made.dtypes.to_dict() == wanted.dtypes.to_dict()
        assert in_any_order(rows_of(made)) == in_any_order(rows_of(wanted))
