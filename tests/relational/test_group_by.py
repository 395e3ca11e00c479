"""group_by, for keys and values of all kinds, beside lists of Python's."""

from __future__ import annotations

import decimal
import fractions
import importlib
import importlib.util
import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.aggregates import ORACLES, as_shown, place
from support.relational import KINDS, Kind, Oracle, canonical, in_order, items_of, lists_of, shown
from warphash import DtypeError, ParameterError, ShapeError
from warphash.relational.aggregates import AGGREGATES
from warphash.storage.groups import ways

few = settings(max_examples=25, deadline=None)

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


class Column(NamedTuple):
    """Makes a column of values; the kind of their type; what they are drawn from; their library."""

    make: Callable[[list[Any]], Any]
    kind: str
    drawn: list[Any]
    library: str = "numpy"


def edges(dtype: str) -> list[Any]:
    """Values of a type that are equal often, and the ends of its range."""
    if np.dtype(dtype).kind == "b":
        return [True, False]
    if np.dtype(dtype).kind == "f":
        return [0.0, -0.0, 1.5, -2.25, 6e4, math.inf, math.nan]
    info = np.iinfo(dtype)
    return [0, 1, 3, info.max, info.max - 1, info.min]


def numpy_column(dtype: str) -> Column:
    return Column(lambda items: np.array(items, dtype), np.dtype(dtype).kind, edges(dtype))


def library_column(library: str, dtype: str) -> Column:
    name = np.dtype(dtype).name
    types = {
        "pyarrow": {"bool": "bool_", "float64": "float64"}.get(name, name),
        "polars": {"bool": "Boolean", "uint64": "UInt64"}.get(name, name.title()),
        "pandas": {"bool": "BooleanDtype", "uint64": "UInt64Dtype"}.get(name, "Int64Dtype"),
    }

    def make(items: list[Any]) -> Any:
        module = importlib.import_module(library)
        made_type = getattr(module, types[library])
        if library == "pyarrow":
            return module.array(items, made_type())
        return module.Series(items, dtype=made_type() if library == "pandas" else made_type)

    return Column(make, np.dtype(dtype).kind, [*edges(dtype), None], library)


COLUMNS: dict[str, Column] = {dtype: numpy_column(dtype) for dtype in (*INTEGERS, "f2", "f4", "f8", "?")}
COLUMNS |= {
    f"{library} {dtype}": library_column(library, dtype)
    for dtype in ("i8", "u8", "?", "f8")
    for library in ("pyarrow", "polars", "pandas")
    if importlib.util.find_spec(library) and (library, dtype) != ("pandas", "f8")  # in which NaN and null are one
}


def groups_of(codes: list[int], values: list[Any]) -> list[list[Any]]:
    made: list[list[Any]] = [[] for _ in range(max(codes, default=-1) + 1)]
    for code, value in zip(codes, values, strict=True):
        if code >= 0 and value is not None:
            made[code].append(value)
    return made


def python_items(answer: Any) -> list[Any]:
    """An answer as Python's numbers, nulls as None."""
    return [item.item() if hasattr(item, "item") else item for item in items_of(answer)]


def keys_like(column: Column, keys: list[int]) -> Any:
    """Keys in the library of a column."""
    return (np.array if column.library == "numpy" else COLUMNS[f"{column.library} i8"].make)(keys)


@st.composite
def tables(draw: st.DrawFn, items: Any, most: int = 30) -> tuple[list[int], list[Any]]:
    """Keys, and a value for each."""
    n = draw(st.integers(0, most))
    return draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), draw(st.lists(items, min_size=n, max_size=n))


@pytest.mark.parametrize("operation", ORACLES)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@few
@given(data=st.data())
def test_operations(column: Column, operation: str, data: st.DataObject) -> None:
    keys, values = data.draw(tables(st.sampled_from(column.drawn)))
    made = warphash.group_by(keys_like(column, keys)).agg(answer=(column.make(values), operation))
    answers = python_items(made["answer"])
    if column.library == "numpy":
        values = column.make(values).tolist()  # as a narrow type rounds them
    expected = [ORACLES[operation](held, column.kind) for held in groups_of(Oracle(keys).codes, values)]
    if column.library == "numpy":  # which has no nulls
        expected = [math.nan if item is None else item for item in expected]
    assert list(map(as_shown, answers)) == list(map(as_shown, expected))


@pytest.mark.parametrize("operation", ["argmin", "argmax"])
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@few
@given(data=st.data())
def test_positions_of_extremes(column: Column, operation: str, data: st.DataObject) -> None:
    keys, values = data.draw(tables(st.sampled_from(column.drawn)))
    made = warphash.group_by(keys_like(column, keys)).agg(answer=(column.make(values), operation))
    if column.library == "numpy":
        values = column.make(values).tolist()
    codes, expected = Oracle(keys).codes, []
    for group in range(max(codes, default=-1) + 1):
        rows = [row for row, code in enumerate(codes) if code == group and values[row] is not None]
        at = place([values[row] for row in rows], operation == "argmax")
        expected.append(None if at is None else rows[at])
    assert python_items(made["answer"]) == expected


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("operation", ["first", "last", "count", "nunique"])
@few
@given(data=st.data())
def test_operations_of_any_type(kind: Kind, operation: str, data: st.DataObject) -> None:
    keys, items = data.draw(tables(st.sampled_from(kind.items)))
    if not keys:
        return
    column = kind.make(items)
    is_missing = [item is None or (type(item).__module__ == "numpy" and np.isnat(item)) for item in items]
    made = warphash.group_by(keys).agg(answer=(column, operation))["answer"]
    codes = Oracle(keys).codes
    expected: list[Any] = []
    for group in range(max(codes) + 1):
        rows = [row for row, code in enumerate(codes) if code == group]
        there = [row for row in rows if not is_missing[row]]
        if operation == "count":
            expected.append(len(there))
        elif operation == "nunique":
            expected.append(len({canonical(items[row]) for row in there}))
        else:
            expected.append(items[(there or rows)[-1 if operation == "last" and there else 0]])
    assert shown(items_of(made)) == shown(expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("nulls", ["key", "drop"])
@pytest.mark.parametrize("order", ["first", "sorted", "any"])
@few
@given(data=st.data())
def test_keys_of_all_kinds(kind: Kind, nulls: Any, order: Any, data: st.DataObject) -> None:
    items = data.draw(lists_of(kind))
    values = np.arange(len(items))
    rule = "one" if nulls == "key" else "dropped"
    oracle = Oracle(items, rule, rule)
    grouped = warphash.group_by(kind.make(items), nulls=nulls, order=order)
    made = grouped.agg(total=(values, "sum"), least=(values.tolist(), "min"), size="size")
    keys = in_order(oracle.values) if order == "sorted" else oracle.values
    assert shown(items_of(made.keys)) == shown(items_of(grouped.keys)) == shown(keys)
    codes = [-1 if code < 0 else shown(keys).index(shown(oracle.values)[code]) for code in oracle.codes]
    assert python_items(grouped.codes) == codes
    rows = [[row for row, code in enumerate(codes) if code == group] for group in range(len(keys))]
    assert python_items(made["total"]) == list(map(sum, rows))
    assert python_items(made["least"]) == list(map(min, rows))
    assert python_items(made["size"]) == python_items(grouped.size()) == list(map(len, rows))
    offsets, listed = map(python_items, grouped.rows())
    assert [listed[begin:end] for begin, end in pairwise(offsets)] == rows


@few
@given(data=st.data())
@pytest.mark.parametrize("nulls", ["key", "drop"])
def test_rows_of_columns(nulls: Any, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    columns = [
        data.draw(st.lists(st.sampled_from(items), min_size=n, max_size=n)) for items in ([1, 2, None], ["a", "b"])
    ]
    rows = list(zip(*columns, strict=True))
    codes = Oracle([None if nulls == "drop" and row[0] is None else row for row in rows], null="dropped").codes
    values = [float(value) for value in range(n)]
    made = warphash.group_by(tuple(np.array(column, object) for column in columns), nulls=nulls).agg(s=(values, "sum"))
    expected = [sum(held) for held in groups_of(codes, values)]
    assert made["s"].tolist() == expected
    assert len(made.keys) == 2 and len(made.keys[0]) == len(expected)


@pytest.mark.parametrize("operation", ["min", "max", "first", "last", "argmin", "count"])
def test_times(operation: str) -> None:
    times = np.array(["NaT", "2020-03-01", "2019-01-01", "NaT", "2021-01-01"], "M8[s]")
    made = warphash.group_by([1, 1, 1, 2, 3]).agg(answer=(times, operation))["answer"]
    expected = {
        "min": ["2019-01-01T00:00:00", "NaT", "2021-01-01T00:00:00"],
        "max": ["2020-03-01T00:00:00", "NaT", "2021-01-01T00:00:00"],
        "first": ["2020-03-01T00:00:00", "NaT", "2021-01-01T00:00:00"],
        "last": ["2019-01-01T00:00:00", "NaT", "2021-01-01T00:00:00"],
        "argmin": ["2", "None", "4"],
        "count": ["2", "0", "1"],
    }
    assert [str(item) for item in made] == expected[operation]


def test_times_keep_their_zone() -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.Series(pandas.to_datetime(["2020-01-02", "2020-01-01"])).dt.tz_localize("Europe/Berlin")
    made = warphash.group_by([1, 1]).agg(first=(times, "first"), least=(times, "min"))
    assert made["first"].dtype == made["least"].dtype == times.dtype
    assert (made["first"][0], made["least"][0]) == (times[0], times[1])


DECIMALS = {
    "decimal128(9, 2)": 9,
    "decimal128(18, 0)": 18,
    "decimal128(19, 3)": 19,
    "decimal128(38, 2)": 36,
    "decimal128(20, -3)": 20,
    "decimal256(70, 4)": 68,
}
"""Types, and digits of the numbers in columns whose sums have no more than the type of a sum has."""


def test_the_mean_of_a_decimal_number_that_a_scale_makes_long() -> None:
    """2^63 thousands fit into no word."""
    pyarrow = pytest.importorskip("pyarrow")
    value = decimal.Decimal(9223372036854776).scaleb(3)
    table = pyarrow.table({"k": [0], "v": pyarrow.array([value], pyarrow.decimal128(20, -3))})
    assert warphash.group_by(table, "k").agg(mean=("v", "mean"))["mean"].to_pylist() == [float(value)]


@pytest.mark.parametrize("name", DECIMALS)
@few
@given(st.data())
def test_decimal_numbers(name: str, data: st.DataObject) -> None:
    """Sums, extremes and their places are exact, and means are rounded once."""
    pyarrow = pytest.importorskip("pyarrow")
    precision, scale = map(int, re.findall(r"-?\d+", name.partition("(")[2]))
    make = getattr(pyarrow, name.partition("(")[0])
    most = 10 ** DECIMALS[name] - 1
    digits = st.one_of(
        st.none(), st.sampled_from([0, 1, -1, most, -most, 2**32, -(2**32), 2**31]), st.integers(-most, most)
    )
    drawn = data.draw(
        st.lists(
            st.tuples(st.integers(0, 4), digits.map(lambda n: n if n is None or abs(n) <= most else 1)), max_size=60
        )
    )
    with decimal.localcontext(prec=100):
        items = [None if whole is None else decimal.Decimal(whole).scaleb(-scale) for _, whole in drawn]
        table = pyarrow.table(
            {"k": pyarrow.array([k for k, _ in drawn], "int64"), "v": pyarrow.array(items, make(precision, scale))}
        )
        names = ("sum", "mean", "min", "max", "argmin", "argmax", "count", "first")
        made = warphash.group_by(table, "k").agg(**{name: ("v", name) for name in names})
        assert made.schema.field("sum").type == make({"decimal128": 38, "decimal256": 76}[make.__name__], scale)
        assert made.schema.field("min").type == make(precision, scale)
        groups: dict[int, list[int]] = {}
        for row, (k, _) in enumerate(drawn):
            groups.setdefault(k, []).append(row)
        for k, got in zip(groups, made.to_pylist(), strict=True):
            rows = [row for row in groups[k] if items[row] is not None]
            values = [items[row] for row in rows]
            total = sum(values, decimal.Decimal(0))
            assert got["sum"] == total and got["count"] == len(rows)
            if not rows:
                assert [got[name] for name in ("mean", "min", "max", "argmin", "argmax")] == [None] * 5
                continue
            assert got["mean"] == float(fractions.Fraction(total) / len(rows))
            assert (got["min"], got["max"], got["first"]) == (min(values), max(values), values[0])
            assert got["argmin"] == rows[values.index(min(values))] and got["argmax"] == rows[values.index(max(values))]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", ["decimal128", "decimal256"])
def test_a_decimal_sum_of_too_many_digits_is_refused(sign: int, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    digits = {"decimal128": 38, "decimal256": 76}[kind]
    type_ = getattr(pyarrow, kind)(digits, 0)
    with decimal.localcontext(prec=100):
        most = decimal.Decimal(sign * (10**digits - 1))
        for items, fits in (([most - sign, sign], True), ([most, sign], False), ([most] * 9, False)):
            values = pyarrow.array([decimal.Decimal(item) for item in items], type_)
            groups = warphash.group_by(np.zeros(len(items), "i8"))
            if fits:
                assert groups.sum(values).tolist() == [most]
            else:
                with pytest.raises(DtypeError, match=f"more than the {digits} digits of {kind}: cast the column to"):
                    groups.sum(values)
            assert groups.mean(values).tolist() == [float(fractions.Fraction(sum(map(int, items)), len(items)))]


def test_decimal_numbers_of_each_library() -> None:
    items = [decimal.Decimal("1.50"), decimal.Decimal("2.25"), None, decimal.Decimal("-4.25")]
    keys = [7, 3, 7, 3]
    wanted = {
        "sum": [decimal.Decimal("1.50"), decimal.Decimal("-2.00")],
        "min": [items[0], items[3]],
        "mean": [1.5, -1.0],
    }
    frames: dict[str, Callable[[Any], Any]] = {
        "pandas": lambda pandas: pandas.DataFrame({"k": keys, "v": items}),
        "polars": lambda polars: polars.DataFrame({"k": keys, "v": items}),
        "pyarrow": lambda pyarrow: pyarrow.table({"k": keys, "v": items}),
    }
    for library, make in frames.items():
        frame = make(pytest.importorskip(library))
        made = warphash.group_by(frame, "k").agg(**{name: ("v", name) for name in wanted})
        assert type(made) is type(frame)
        for name, answer in wanted.items():
            assert [item.as_py() if library == "pyarrow" else item for item in made[name]] == answer
    for name, answer in wanted.items():
        given = warphash.group_by(np.array(keys)).agg(a=(items, name))["a"]
        assert isinstance(given, np.ndarray) and given.tolist() == answer


@pytest.mark.parametrize("operation", ["prod", "var", "std", "median", "any", "all"])
def test_operations_that_decimal_numbers_have_not(operation: str) -> None:
    items = [decimal.Decimal("1.50"), decimal.Decimal("2.25")]
    with pytest.raises(DtypeError, match=f"for '{operation}', got decimal numbers: cast the column to float64"):
        warphash.group_by([1, 1]).agg(a=(items, operation))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_values_that_are_not_read_are_counted_and_taken(library: str) -> None:
    """Lists and structs, which no table keeps."""
    module = pytest.importorskip(library)
    items: list[Any] = [[1], None, [2, 3], None, []]
    column = {"pandas": "Series", "polars": "Series", "pyarrow": "array"}[library]
    frame = {"k": np.array([7, 3, 7, 3, 9]), "v": getattr(module, column)(items)}
    made = warphash.group_by(frame, "k").agg(a=("v", "first"), b=("v", "last"), n=("v", "count"), m="size")
    assert made["k"].tolist() == [7, 3, 9] and made["n"].tolist() == [2, 0, 1] and made["m"].tolist() == [2, 2, 1]
    found = {name: [None if item is None else list(item) for item in lists_in(made[name])] for name in "ab"}
    assert found == {"a": [[1], None, []], "b": [[2, 3], None, []]}
    for operation in ("nunique", "sum", "min"):
        with pytest.raises((DtypeError, ShapeError), match="expected"):
            warphash.group_by(frame, "k").agg(a=("v", operation))


def lists_in(column: Any) -> list[Any]:
    to_list = next(name for name in ("to_pylist", "to_list", "tolist") if hasattr(column, name))
    made: list[Any] = getattr(column, to_list)()
    return made


def test_an_answer_is_of_the_library_of_the_keys() -> None:
    polars = pytest.importorskip("polars")
    made = warphash.group_by(polars.Series([4, 4])).agg(a=(np.array([1.5, 2]), "sum"), b=([None, None], "nunique"))
    assert made["a"].equals(polars.Series([3.5])) and made["b"].to_list() == [0]
    assert list(made) == ["a", "b"] and len(made) == 2


def test_any_byte_but_0_is_true() -> None:
    values = np.array([0, 2, 255], "u1").view(np.bool_)
    made = warphash.group_by([4, 4, 4]).agg(total=(values, "sum"), most=(values, "max"), all=(values, "all"))
    assert (made["total"].tolist(), made["most"].tolist(), made["all"].tolist()) == ([2], [True], [False])


def test_nulls_without_a_column_library() -> None:
    values = pytest.importorskip("pyarrow").array([None, 5, None, 2**63 - 1])
    made = warphash.group_by(np.array([1, 2, 1, 2])).agg(least=(values, "min"), mean=(values, "mean"))
    assert made["least"].tolist() == [None, 5] and made["least"].dtype == object
    assert np.isnan(made["mean"][0]) and made["mean"][1] == (5 + 2**63 - 1) / 2


@pytest.mark.parametrize(
    "make",
    [np.array, list, lambda items: np.array(items, object), lambda items: np.array(items, np.dtypes.StringDType())],
)
@pytest.mark.parametrize("operation", ["mean", "min", "median", "std"])
def test_floats_without_a_column_library_have_nan_for_nulls(make: Callable[[list[Any]], Any], operation: str) -> None:
    values = pytest.importorskip("pyarrow").array([None, 5.0, 5.0])
    made = warphash.group_by(make(["a", "b", "b"])).agg(it=(values, operation))["it"]
    assert made.dtype == np.float64 and np.isnan(made).tolist() == [True, False]


@pytest.mark.parametrize("of_pandas", ["array", "Index"])
def test_arrays_of_pandas_without_labels_have_nan_for_nulls(of_pandas: str) -> None:
    pandas = pytest.importorskip("pandas")
    values = pandas.array([None, 5.0, 7.0], "Float64")
    made = warphash.group_by(getattr(pandas, of_pandas)([3, 1, 1])).agg(it=(values, "mean"))["it"]
    assert made.dtype == np.float64 and np.isnan(made[0]) and made[1] == 6


def test_an_index_with_levels_in_order() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [(2, 5), (1, 7), (2, 3), (1, 7)]
    grouped = warphash.group_by(pandas.MultiIndex.from_tuples(rows), order="sorted")
    assert grouped.keys.tolist() == [(1, 7), (2, 3), (2, 5)]
    assert grouped.codes.tolist() == [2, 0, 1, 0] and grouped.size().tolist() == [2, 1, 1]


@pytest.mark.parametrize("keys", [[], np.empty(0, "i8"), (np.empty(0, "i8"), np.empty(0))])
def test_no_rows(keys: Any) -> None:
    values = np.empty(0)
    made = warphash.group_by(keys).agg(size="size", **{name: (values, name) for name in AGGREGATES})
    assert {len(made[name]) for name in made} == {0}
    assert warphash.group_by(keys).rows().offsets.tolist() == [0]


def test_one_call_gives_what_many_give() -> None:
    random = np.random.default_rng(3)
    keys, values = random.integers(0, 50, 4000), random.normal(size=4000)
    grouped = warphash.group_by(keys)
    made = grouped.agg(**{name: (values, name) for name in AGGREGATES})
    for name in AGGREGATES:
        assert np.array_equal(made[name], grouped.agg(x=(values, name))["x"], equal_nan=True)
    for name in ("count", "sum", "mean", "min", "max"):
        assert np.array_equal(made[name], getattr(grouped, name)(values))


def test_nulls_beside_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    random = np.random.default_rng(4)
    n = 5000
    keys = pyarrow.array(random.integers(0, 40, n), mask=random.random(n) < 0.1)
    values = pyarrow.array(random.integers(-5, 5, n), mask=(random.random(n) < 0.3) | (random.integers(0, 4, n) == 0))
    asked = "count(*), count(v), coalesce(sum(v), 0), avg(v), min(v), max(v), count(distinct v), median(v), var_samp(v)"
    with duckdb.connect() as database:
        database.register("rows", pyarrow.table({"k": keys, "v": values}))
        expected = database.sql(f"select k, {asked} from rows group by k order by k nulls last").fetchall()
    names = ("count", "sum", "mean", "min", "max", "nunique", "median", "var")
    made = warphash.group_by(keys, order="sorted").agg(size="size", **{name: (values, name) for name in names})
    found = zip(made.keys.to_pylist(), *(made[name].to_pylist() for name in made), strict=True)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine[:3] == theirs[:3]
        assert mine[1:] == pytest.approx(tuple(map(float, theirs[1:])), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: warphash.group_by([1], nulls="skip"), ParameterError, "nulls must be"),
        (lambda: warphash.group_by([1], order="last"), ParameterError, "order must be"),
        (lambda: warphash.group_by([1]).agg(x="total"), ParameterError, "expected \\(column, operation\\) or 'size'"),
        (lambda: warphash.group_by([1]).agg(x=([1], "total")), ParameterError, "expected one of size, count"),
        (
            lambda: warphash.group_by([1]).agg(x=(["a"], "sum")),
            DtypeError,
            "expected numbers .* for 'sum', got <U1",
        ),
        (lambda: warphash.group_by([1]).agg(x=([1j], "min")), DtypeError, "got complex128"),
        (lambda: warphash.group_by([1]).agg(x=(np.array(["2020"], "M8[s]"), "sum")), DtypeError, "for 'sum'"),
        (lambda: warphash.group_by([1]).agg(x=([1, 2], "sum")), ShapeError, "one value for each of 1 keys, got 2"),
        (lambda: warphash.group_by([1]).agg(x=(["a", None], "sum")), ShapeError, "for each of 1 keys, got 2"),
        (lambda: warphash.group_by((np.array([1]), np.array([1, 2]))), ShapeError, "of one length"),
    ],
)
def test_errors(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


# ---- many rows
@pytest.fixture(params=[1, 2, 3, 4])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """That many threads."""
    warphash.set_num_threads(request.param)
    yield request.param
    warphash.set_num_threads(None)


def in_stretches(codes: Any, values: Any, count: int) -> Any:
    """The sums of groups: in stretches of rows, whose sums are added in their order."""
    groups, n = int(codes.max()) + 1, len(codes)
    length = math.ceil(math.ceil(n / count) / 64) * 64
    total = np.zeros(groups)
    for begin in range(0, n, length):
        part = np.zeros(groups)
        np.add.at(part, codes[begin : begin + length], values[begin : begin + length])  # in the order of rows
        total += part
    return total


@pytest.mark.parametrize("keys_of", ["hashed", "of a small span", "of 2 bytes", "rows"])
@pytest.mark.parametrize(("distinct", "stretches"), [(1, 16), (500, 16), (6_000, 1), (40_000, 1), (150_000, 1)])
def test_sums_to_the_bit(
    threads: int, keys_of: str, distinct: int, stretches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "_FEWEST_IN_STRETCH", 1 << 12)
    monkeypatch.setattr(ways, "_MOST_MERGED", 1 << 12)
    random = np.random.default_rng(distinct)
    n = 100_000
    numbers = random.permutation(n) if distinct > n else random.integers(0, distinct, n)
    if keys_of == "of 2 bytes":
        numbers = numbers % 65_536
    keys: Any = {
        "hashed": numbers * 0x9E3779B97F4A7C1,
        "of a small span": numbers - 70,
        "of 2 bytes": numbers.astype("u2"),
        "rows": (numbers % 7, numbers // 7 * 2**50),
    }[keys_of]
    values = random.normal(size=n) * 10.0 ** random.integers(-9, 9, n)
    whole = random.integers(-(2**62), 2**62, n)
    made = warphash.group_by(keys).agg(
        floats=(values, "sum"), integers=(whole, "sum"), least=(values, "min"), squares=(values, "var"), size="size"
    )
    uniques, firsts, codes = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    codes = np.argsort(order)[codes]
    assert np.array_equal(made["floats"].view("u8"), in_stretches(codes, values, stretches).view("u8"))
    total = np.zeros(len(uniques), "i8")
    np.add.at(total, codes, whole)
    assert np.array_equal(made["integers"], total)
    least = np.full(len(uniques), np.inf)
    np.minimum.at(least, codes, values)
    assert np.array_equal(made["least"], least)
    counts = np.bincount(codes)
    assert np.array_equal(made["size"], counts)
    centers = warphash.group_by(keys).mean(values)
    distances = values - centers[codes]
    left = in_stretches(codes, distances, stretches)  # of the rounding of the centers
    squares = (in_stretches(codes, distances**2, stretches) - left * (left / counts)).clip(0)
    variances = np.where(counts > 1, squares / np.maximum(counts - 1, 1), np.nan)
    assert np.array_equal(made["squares"], variances, equal_nan=True)


@pytest.mark.parametrize("operation", ["var", "std"])
def test_the_variance_of_many_large_numbers(operation: str) -> None:
    random = np.random.default_rng(2)
    values, keys = random.random(100_000) + 1e12, np.arange(100_000) % 2  # of which the mean is rounded
    made = warphash.group_by(keys).agg(answer=(values, operation))["answer"]
    exact = [getattr(np, operation)(values[keys == key] - 1e12, ddof=1) for key in (0, 1)]
    assert made == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("operation", ["var", "std"])
def test_the_variance_of_equal_numbers_is_not_below_0(operation: str) -> None:
    values = np.repeat([0.1, 1e12 + 0.1, -7e-310], 1000)
    made = warphash.group_by(np.arange(3000) // 1000).agg(answer=(values, operation))["answer"]
    assert (made >= 0).all() and made == pytest.approx([0, 0, 0], abs=1e-3)


@pytest.mark.parametrize("dtype", [*INTEGERS, "f4", "f8", "?"])
@pytest.mark.parametrize("distinct", [300, 200_000])
def test_values_of_all_widths_in_chunks_and_parts(threads: int, dtype: str, distinct: int) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    random = np.random.default_rng(5)
    n = 50_000
    keys, valid = random.integers(0, distinct, n) * 2**40, random.random(n) < 0.8
    values = random.integers(0, 2, n).astype(dtype) if dtype == "?" else random.integers(0, 100, n).astype(dtype)
    made = warphash.group_by(keys).agg(
        total=(pyarrow.array(values, mask=~valid), "sum"),
        most=(values, "max"),
        count=(pyarrow.array(values, mask=~valid), "count"),
    )
    _, firsts, codes = np.unique(keys, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(firsts))[codes]
    groups = codes.max() + 1
    assert np.array_equal(made["total"], np.bincount(codes[valid], values[valid], groups).astype(made["total"].dtype))
    assert np.array_equal(made["count"], np.bincount(codes[valid], minlength=groups))
    most = np.zeros(groups, dtype)
    np.maximum.at(most, codes, values)
    assert np.array_equal(made["most"], most) and made["most"].dtype == values.dtype
