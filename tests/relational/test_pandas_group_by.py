"""pandas' own tests of group-by, with the groups and the answers of `warphash.group_by`.

pandas reads the frames, and makes a frame of the answers. Ours numbers the keys, and summarises each column by the
group of each row, in place of pandas' compiled functions. As these do, the functions here write into an array that
pandas makes, with 0 or NaN for a group without rows, and obey ``skipna`` and ``min_count``. pandas keeps what
`group_by` does not have, and sums, extremes and moments of Python objects.

`docs/relational-peers.md` lists the tests that do not apply, with a reason for each. A test in that list has to fail.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import warphash
from support.peers import classes_of, expect_failure, lacking, modules_of, not_applicable

pd = pytest.importorskip("pandas", minversion="3.1", reason="the list is that of pandas 3.1")
lib = pytest.importorskip("pandas._libs.lib")
libgroupby = pytest.importorskip("pandas._libs.groupby")
grouper = pytest.importorskip("pandas.core.groupby.grouper")
ops = pytest.importorskip("pandas.core.groupby.ops")
generic = pytest.importorskip("pandas.core.groupby.generic")
cache_readonly = pytest.importorskip("pandas.util._decorators").cache_readonly
fixtures = pytest.importorskip("pandas.conftest")
their_fixtures = pytest.importorskip("pandas.tests.groupby.conftest")
MODULES = modules_of(
    "pandas.tests.groupby",
    {
        "Reductions": "test_reductions",
        "GroupBy": "test_groupby",
        "Dropna": "test_groupby_dropna",
        "Counting": "test_counting",
        "Missing": "test_missing",
        "Aggregate": "aggregate.test_aggregate",
        "Cython": "aggregate.test_cython",
        "Other": "aggregate.test_other",
        "Nth": "methods.test_nth",
        "Size": "methods.test_size",
        "Compiled": "test_libgroupby",
        "Grouping": "test_grouping",
        "NumericOnly": "test_numeric_only",
        "Indexed": "test_index_as_string",
    },
)
"""pandas' modules with tests of group-by, by the first part of the names that their classes have here."""
LISTED = not_applicable("group-by of pandas")

NAT = np.iinfo(np.int64).min
OPERATIONS = {
    **{
        name: name
        for name in ("sum", "prod", "mean", "median", "var", "std", "min", "max", "first", "last", "any", "all")
    },
    "idxmin": "argmin",
    "idxmax": "argmax",
}
"""Operations of ours by pandas' names."""
OF_TIMES = ("min", "max", "first", "last", "idxmin", "idxmax")
OF_OBJECTS = ("first", "last")

calls: list[str] = []
"""What ours were asked for."""


# ---- groups
def with_nulls(values: Any, nulls: Any) -> Any:
    """Numbers with nulls, as a Series of pandas."""
    made = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}.get(values.dtype.kind, pd.arrays.IntegerArray)
    return pd.Series(made(np.ascontiguousarray(values), np.ascontiguousarray(nulls)))


def grouped_by(ids: Any, order: Any = "first") -> warphash.GroupBy:
    """Rows by the numbers of their groups, which are below 0 for rows that are dropped."""
    return warphash.group_by(with_nulls(ids, ids < 0), nulls="drop", order=order)


def codes_and_uniques(theirs: Any) -> Any:
    """The numbers of a column's keys, and the keys. Categories and bins stay with pandas."""

    def found(self: Any) -> Any:
        if self._passed_categorical or self._uniques is not None or isinstance(self.grouping_vector, ops.BaseGrouper):
            return theirs(self)
        calls.append("codes")
        nulls, order = "drop" if self._dropna else "key", "sorted" if self._sort else "first"
        grouped = warphash.group_by(self.grouping_vector, nulls=nulls, order=order)
        keys = grouped.keys
        if keys.dtype == object and not isinstance(keys, pd.MultiIndex):
            keys = np.where(pd.isna(keys), np.nan, keys)  # as pandas: ours come back as they were given
        return np.asarray(grouped.codes), keys

    return cache_readonly(found)


def compress_group_index(group_index: Any, sort: bool = True) -> Any:
    """The numbers of rows of several columns, of which pandas makes one number each."""
    calls.append("codes")
    grouped = grouped_by(group_index, "sorted" if sort else "first")
    return np.asarray(grouped.codes), np.asarray(grouped.keys, np.int64)


# ---- answers
def nulls_of(column: Any, mask: Any, is_datetimelike: bool) -> Any:
    if mask is not None:
        return mask.astype(bool)
    return column == NAT if is_datetimelike else pd.isna(column)


def read(how: str, column: Any, nulls: Any, is_datetimelike: bool) -> Any:
    """A column as ours read it: of times, of Python objects, or of numbers."""
    if is_datetimelike and how in OF_TIMES:
        return np.where(nulls, NAT, column).view("m8[ns]")
    if column.dtype.kind == "c":
        return column
    return np.where(nulls, None, column) if column.dtype == object else with_nulls(column, nulls)


def written(answers: Any) -> Any:
    """Answers as pandas' functions write them, with anything for a null."""
    answers = pd.Series(answers)
    if answers.dtype.kind == "m":
        return answers.to_numpy().view(np.int64)
    return answers.to_numpy() if isinstance(answers.dtype, np.dtype) else answers.fillna(0).to_numpy()


def reduce(
    how: str,
    out: Any,
    counts: Any = None,
    values: Any = None,
    labels: Any = None,
    min_count: int = -1,
    mask: Any = None,
    result_mask: Any = None,
    is_datetimelike: bool = False,
    skipna: bool = True,
    ddof: int = 1,
    **_: Any,
) -> None:
    """Write an answer for each group and column, as pandas' compiled functions do.

    Parameters
    ----------
    out
        One row for each group, one column for each of the values.
    counts
        How many rows each group has.
    labels
        The group of each row, below 0 for a row that is dropped.
    mask, result_mask
        Which values and which answers are null. None if NaN and NaT are the nulls.
    """
    if ddof != 1:
        raise NotImplementedError("var and std of warphash divide by one less than the count")  # then pandas does it
    calls.append(how)
    grouped = grouped_by(labels)
    groups = np.asarray(grouped.keys, np.int64)
    if counts is not None:
        counts[groups] = grouped.size()
    least = max(min_count, {"sum": 0, "prod": 0, "any": 0, "all": 0, "var": 2, "std": 2}.get(how, 1))
    has_nan = not skipna and result_mask is None  # NaN then are numbers to ours, too
    for j, column in enumerate(values.T):
        nulls = nulls_of(column, None if mask is None else mask[:, j], is_datetimelike)
        if has_nan and (
            how in ("any", "all") or (column.dtype.kind == "f" and how not in OF_TIMES and not is_datetimelike)
        ):
            nulls = np.zeros(len(column), bool)
        given = read(how, column, nulls, is_datetimelike)
        made = grouped.agg(rows="size", held=(given, "count"), answer=(given, OPERATIONS[how]))
        rows, held = (np.zeros(len(out), np.int64) for _ in range(2))
        rows[groups], held[groups] = made["rows"], made["held"]
        gone = held < least if skipna else (held < least) | (held < rows)
        out[:, j] = {"prod": 1, "all": 1}.get(how, 0)
        out[groups, j] = written(made["answer"])
        if how in OF_OBJECTS and not skipna:
            at = np.asarray(grouped.agg(at=(np.arange(len(column)), how))["at"], np.int64)
            out[groups, j], gone[groups] = column[at], nulls[at]
        if how in ("any", "all") and result_mask is not None:
            result_mask[:, j] = gone & (out[:, j] != (how == "any"))
        elif how in ("idxmin", "idxmax"):
            out[gone & (rows > 0), j] = -1
        elif result_mask is not None:
            result_mask[gone, j] = True
        elif out.dtype.kind in "fO" or is_datetimelike:
            out[gone, j] = NAT if is_datetimelike and how not in ("var", "std") else None


def compiled(how: str) -> Any:
    """Ours in place of a compiled function that a test calls itself."""

    def call(out: Any, counts: Any, values: Any, labels: Any, mask: Any = None, **options: Any) -> None:
        reduce(how, out, counts, values, labels, mask=mask, **options)

    return call


def first_last_indexer(labels: Any, mask: Any, ngroups: int, skipna: bool, is_last: bool) -> Any:
    """The first or last row of each group, and which groups have none; for arrays that are no numbers."""
    rows, gone = np.zeros((ngroups, 1), np.intp), np.zeros((ngroups, 1), bool)
    positions, nulls = np.arange(len(labels))[:, None], mask.astype(bool)[:, None]
    reduce("last" if is_last else "first", rows, None, positions, labels, mask=nulls, result_mask=gone, skipna=skipna)
    return rows[:, 0], gone[:, 0].view(np.uint8)


def compiled_functions(theirs: Any) -> Any:
    """What finds the function for an operation: ours if it has the operation, or else that of pandas."""

    def found(kind: str, how: str, dtype: Any, is_numeric: bool) -> Any:
        if how in OPERATIONS and (is_numeric or how in OF_OBJECTS):
            return partial(reduce, how)
        return theirs(kind, how, dtype, is_numeric)

    return found


def size(self: Any) -> Any:
    calls.append("size")
    grouped = grouped_by(self.ids)
    made = np.zeros(self.ngroups, np.int64)
    made[np.asarray(grouped.keys, np.int64)] = grouped.size()
    return pd.Series(made, index=self.result_index)


def count_level_2d(mask: Any, labels: Any, max_bin: int) -> Any:
    """How many values each group has in each row of a mask, which is False for nulls."""
    calls.append("count")
    grouped, made = grouped_by(labels), np.zeros((len(mask), max_bin), np.int64)
    for row, is_value in zip(made, mask, strict=True):
        row[np.asarray(grouped.keys, np.int64)] = grouped.count(with_nulls(is_value, ~is_value))
    return made


def nunique(self: Any, dropna: bool = True) -> Any:
    """How many values each group of a column has that differ, and one more with a null unless ``dropna``."""
    calls.append("nunique")
    ids, nulls = self._grouper.ids, self.obj.isna().to_numpy()
    made = np.zeros(self._grouper.ngroups, np.int64)
    grouped = grouped_by(np.where(nulls, -1, ids))
    made[np.asarray(grouped.keys, np.int64)] = grouped.agg(distinct=(self.obj._values, "nunique"))["distinct"]
    if not dropna:
        grouped = grouped_by(ids)
        made[np.asarray(grouped.keys, np.int64)] += np.asarray(grouped.agg(null=(nulls, "any"))["null"])
    result = self.obj._constructor(made, index=self._grouper.result_index, name=self.obj.name)
    return result if self.as_index else self._insert_inaxis_grouper(result).reset_index(drop=True)


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    codes = codes_and_uniques(vars(grouper.Grouping)["_codes_and_uniques"].fget)
    functions = staticmethod(compiled_functions(ops.WrappedCythonOp._get_cython_function))
    monkeypatch.setattr(grouper.Grouping, "_codes_and_uniques", codes)
    monkeypatch.setattr(ops, "compress_group_index", compress_group_index)
    monkeypatch.setattr(ops.WrappedCythonOp, "_get_cython_function", functions)
    monkeypatch.setattr(ops.BaseGrouper, "_reduceat_aggregate", lambda *args, **options: None)
    monkeypatch.setattr(ops.BaseGrouper, "size", size)
    monkeypatch.setattr(libgroupby, "group_first_last_indexer", first_last_indexer)
    monkeypatch.setattr(lib, "count_level_2d", count_level_2d)
    monkeypatch.setattr(generic.SeriesGroupBy, "nunique", nunique)
    for how in ("mean", "sum", "var"):
        monkeypatch.setattr(MODULES["Compiled"], f"group_{how}", compiled(how))
    calls.clear()
    if request.node.cls is not None:
        expect_failure(request, LISTED)


all_boolean_reductions = fixtures.all_boolean_reductions
any_numeric_ea_dtype = fixtures.any_numeric_ea_dtype
any_real_nullable_dtype = fixtures.any_real_nullable_dtype
any_real_numeric_dtype = fixtures.any_real_numeric_dtype
any_real_numpy_dtype = fixtures.any_real_numpy_dtype
any_string_dtype = fixtures.any_string_dtype
as_index = fixtures.as_index
dropna = fixtures.dropna
float_frame = fixtures.float_frame
float_numpy_dtype = fixtures.float_numpy_dtype
frame_or_series = fixtures.frame_or_series
index = fixtures.index
lexsorted_two_level_string_multiindex = fixtures.lexsorted_two_level_string_multiindex
multiindex_dataframe_random_data = fixtures.multiindex_dataframe_random_data
nulls_fixture = fixtures.nulls_fixture
nulls_fixture2 = fixtures.nulls_fixture2
observed = fixtures.observed
performance_warning = fixtures.performance_warning
rand_series_with_duplicate_datetimeindex = fixtures.rand_series_with_duplicate_datetimeindex
skipna = fixtures.skipna
sort = fixtures.sort
string_dtype_no_object = fixtures.string_dtype_no_object
tz_naive_fixture = fixtures.tz_naive_fixture
unique_nulls_fixture = fixtures.unique_nulls_fixture
unique_nulls_fixture2 = fixtures.unique_nulls_fixture2
unit = fixtures.unit
using_infer_string = fixtures.using_infer_string
using_nan_is_na = fixtures.using_nan_is_na
using_python_scalars = fixtures.using_python_scalars

df = their_fixtures.df
groupby_func = their_fixtures.groupby_func
reduction_func = their_fixtures.reduction_func
slice_test_df = their_fixtures.slice_test_df
slice_test_grouped = their_fixtures.slice_test_grouped
three_group = their_fixtures.three_group
transformation_func = their_fixtures.transformation_func
ts = their_fixtures.ts
tsframe = their_fixtures.tsframe


def is_ours(name: str, test: Any) -> bool:
    """Whether a test calls none of the compiled functions that ours have nothing for."""
    return not name.startswith(("test_group_ohlc", "test_cython_group_transform"))


CLASSES = classes_of(MODULES, is_ours)
globals().update(CLASSES)


@pytest.mark.parametrize("is_monotonic", [True, False])
@pytest.mark.parametrize("keys", ["k", ["k", "l"]], ids=["column", "columns"])
def test_groups_and_answers_come_from_ours(keys: Any, is_monotonic: bool) -> None:
    rows = [1, 1, 2, 2, 2] if is_monotonic else [2, 1, 2, 1, 2]
    grouped = pd.DataFrame({"k": rows, "l": rows, "m": [1.0, 3.0, 5.0, 7.0, None]}).groupby(keys)["m"]
    numbered = ["codes"] * (1 if keys == "k" else 3)
    for how in (*OPERATIONS, "size", "count", "nunique"):
        calls.clear()
        assert len(getattr(grouped, how)()) == 2
        assert calls == [*numbered, how], how
        numbered = []
    assert grouped.sum().tolist() == [4, 12] if is_monotonic else [10, 6]


def test_every_test_that_is_listed_is_there() -> None:
    assert lacking(LISTED, CLASSES) == []
