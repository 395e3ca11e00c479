"""unique, factorize, counts and duplicates of arrays and columns of all kinds, against dicts of Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.relational import KINDS, Kind, Oracle, in_order, items_of, lists_of, shown

few = settings(max_examples=25)
kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


def numbers_of(answer: Any) -> list[int]:
    made = np.asarray(answer)
    assert made.dtype == np.int64
    return made.reshape(-1).tolist()


def library_of(made: Any) -> str:
    return type(made).__module__.partition(".")[0]


@kinds
@few
@given(data=st.data())
def test_unique(kind: Kind, data: st.DataObject) -> None:
    items, equal_nan = data.draw(lists_of(kind)), data.draw(st.booleans())
    array = kind.make(items)
    oracle = Oracle(items, nan="one" if equal_nan else "apart")
    values, indices, inverse, counts = warphash.unique(array, True, True, True, equal_nan=equal_nan)
    assert shown(items_of(values)) == shown(oracle.values)
    assert numbers_of(indices) == oracle.firsts
    assert numbers_of(inverse) == oracle.codes
    assert numbers_of(counts) == oracle.counts
    assert shown(items_of(warphash.unique(array, equal_nan=equal_nan))) == shown(oracle.values)
    if kind.library != "list":
        assert {library_of(made) for made in (values, indices, inverse, counts)} == {kind.library}


@kinds
@few
@given(data=st.data())
def test_unique_in_ascending_order(kind: Kind, data: st.DataObject) -> None:
    items = data.draw(lists_of(kind))
    oracle = Oracle(items)
    values, indices, inverse, counts = warphash.unique(kind.make(items), True, True, True, sorted=True)
    expected = in_order(oracle.values)
    assert shown(items_of(values)) == shown(expected)
    assert shown([items[at] for at in numbers_of(indices)]) == shown(expected)
    assert [numbers_of(indices)[code] for code in numbers_of(inverse)] == [oracle.firsts[code] for code in oracle.codes]
    assert sorted(zip(numbers_of(indices), numbers_of(counts), strict=True)) == sorted(
        zip(oracle.firsts, oracle.counts, strict=True)
    )


@kinds
@few
@given(data=st.data())
def test_functions_of_the_array_api(kind: Kind, data: st.DataObject) -> None:
    items = data.draw(lists_of(kind))
    array, oracle = kind.make(items), Oracle(items, nan="apart")
    made = warphash.unique_all(array)
    assert shown(items_of(made.values)) == shown(oracle.values)
    assert numbers_of(made.indices) == oracle.firsts
    assert numbers_of(made.inverse_indices) == oracle.codes
    assert numbers_of(made.counts) == oracle.counts
    assert numbers_of(warphash.unique_counts(array).counts) == oracle.counts
    assert numbers_of(warphash.unique_inverse(array).inverse_indices) == oracle.codes
    for values in (warphash.unique_values(array), warphash.unique_counts(array)[0], warphash.unique_inverse(array)[0]):
        assert shown(items_of(values)) == shown(oracle.values)


@kinds
@pytest.mark.parametrize("nulls", ["drop", "key"])
@few
@given(data=st.data())
def test_factorize(kind: Kind, nulls: Any, data: st.DataObject) -> None:
    items, sort = data.draw(lists_of(kind)), data.draw(st.booleans())
    rule = "dropped" if nulls == "drop" else "one"
    oracle = Oracle(items, rule, rule)
    codes, uniques = warphash.factorize(kind.make(items), sort=sort, nulls=nulls)
    held = items_of(uniques)
    assert shown(held) == shown(in_order(oracle.values) if sort else oracle.values)
    shown_items = [None if code < 0 else shown(held)[code] for code in numbers_of(codes)]
    assert shown_items == [None if code < 0 else shown(oracle.values)[code] for code in oracle.codes]


@kinds
@few
@given(data=st.data())
def test_value_counts(kind: Kind, data: st.DataObject) -> None:
    items = data.draw(lists_of(kind))
    sort, ascending, normalize, dropna = (data.draw(st.booleans()) for _ in range(4))
    rule = "dropped" if dropna else "one"
    oracle = Oracle(items, rule, rule)
    pairs = list(zip(shown(oracle.values), oracle.counts, strict=True))
    if sort:
        pairs.sort(key=lambda pair: pair[1] if ascending else -pair[1])
    made = warphash.value_counts(kind.make(items), sort=sort, ascending=ascending, normalize=normalize, dropna=dropna)
    values, counts = (made.index, made) if kind.library == "pandas" else made
    if kind.library == "pandas":
        assert (made.name, made.index.name) == ("proportion" if normalize else "count", kind.make(items).name)
    total = sum(oracle.counts)
    assert shown(items_of(values)) == [value for value, _ in pairs]
    assert np.asarray(counts).tolist() == [count / total if normalize else count for _, count in pairs]


@kinds
@pytest.mark.parametrize("keep", ["first", "last", False])
@few
@given(data=st.data())
def test_duplicated(kind: Kind, keep: Any, data: st.DataObject) -> None:
    items = data.draw(lists_of(kind))
    codes = Oracle(items).codes
    flags = np.asarray(warphash.duplicated(kind.make(items), keep))
    assert flags.dtype == np.bool_
    before = [code in codes[:at] for at, code in enumerate(codes)]
    behind = [code in codes[at + 1 :] for at, code in enumerate(codes)]
    both = [one or other for one, other in zip(before, behind, strict=True)]
    assert flags.tolist() == {"first": before, "last": behind, False: both}[keep]


@kinds
@few
@given(data=st.data())
def test_nunique(kind: Kind, data: st.DataObject) -> None:
    items, dropna = data.draw(lists_of(kind)), data.draw(st.booleans())
    rule = "dropped" if dropna else "one"
    made = warphash.nunique(kind.make(items), dropna=dropna)
    assert type(made) is int and made == len(Oracle(items, rule, rule).values)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.library in ("numpy", "torch")], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
@few
@given(data=st.data())
def test_rows_and_columns(kind: Kind, axis: int, data: st.DataObject) -> None:
    if kind.dtype == "object":
        with pytest.raises(warphash.DtypeError, match="axis="):
            warphash.unique(np.array([["a", "b"]], object), axis=axis)
        return
    rows = data.draw(st.integers(1, 5))
    items = data.draw(lists_of(kind, 3 * rows, 3 * rows))
    array = kind.make(items).reshape(rows, 3)
    lines = [tuple(items[3 * row : 3 * row + 3]) for row in range(rows)]
    if axis != 0:
        lines = list(zip(*lines, strict=True))
    oracle = Oracle(lines)
    values, indices, inverse, counts = warphash.unique(array, True, True, True, axis=axis)
    held = items_of(values if axis == 0 else values.swapaxes(0, 1))
    assert shown(held) == shown([item for line in oracle.values for item in line])
    assert (numbers_of(indices), numbers_of(inverse), numbers_of(counts)) == (
        oracle.firsts,
        oracle.codes,
        oracle.counts,
    )
    ordered = warphash.unique(array, axis=axis, sorted=True)
    held = items_of(ordered if axis == 0 else ordered.swapaxes(0, 1))
    if kind.dtype not in ("complex128", "record"):
        assert shown(held) == shown([item for line in in_order(oracle.values) for item in line])


def test_answers_have_the_shape_or_the_labels_of_what_was_given() -> None:
    array = np.array([[3, 1], [1, 3], [2, 2]])
    assert warphash.unique_inverse(array).inverse_indices.tolist() == [[0, 1], [1, 0], [2, 2]]
    assert warphash.factorize(array)[0].shape == warphash.duplicated(array).shape == (3, 2)
    assert warphash.unique(np.int64(5), return_inverse=True)[1].shape == ()
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([3, 1, 3], index=["a", "b", "c"], name="n")
    assert warphash.duplicated(column).to_dict() == {"a": False, "b": False, "c": True}
    assert warphash.factorize(column)[0].to_dict() == {"a": 0, "b": 1, "c": 0}
    assert warphash.unique(column).to_dict() == {0: 3, 1: 1}
    assert warphash.unique(pandas.Index([3, 1, 3])).tolist() == [3, 1]


def test_columns_keep_their_types() -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    zoned = pandas.Series(pandas.to_datetime(["2020-01-01", None, "2020-01-01"]).tz_localize("Europe/Berlin"))
    assert warphash.unique(zoned).dtype == zoned.dtype
    decimals = pyarrow.array([1, 2, 1], pyarrow.decimal128(20, 2))
    assert warphash.factorize(decimals)[1].type == decimals.type
    coded = pyarrow.array(["a", "b", "a"]).dictionary_encode()
    assert warphash.unique(coded).type == coded.type


@pytest.mark.parametrize(
    ("dtype", "items"),
    [
        ("string_view", ["b", None, "of more than 12 bytes", "", "b"]),
        ("binary_view", [b"b", None, b"of more than 12 bytes", b"", b"b"]),
        ("halffloat", [2.5, None, -1.0, 0.0, 2.5]),
        ("dictionary", ["b", None, "c", "a", "b"]),
    ],
)
@pytest.mark.parametrize("in_chunks", [False, True])
def test_columns_that_pyarrow_does_not_take_or_sort_itself(dtype: str, items: list[Any], in_chunks: bool) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parts = [pyarrow.array(part) for part in (items[:2], items[2:])] if in_chunks else [pyarrow.array(items)]
    made = [part.dictionary_encode() if dtype == "dictionary" else part.cast(dtype) for part in parts]
    column = pyarrow.chunked_array(made) if in_chunks else made[0]
    distinct = [item for item in dict.fromkeys(items) if item is not None]
    values = warphash.unique(column)
    assert values.type == column.type and values.to_pylist() == list(dict.fromkeys(items))
    assert warphash.unique(column, sorted=True).to_pylist() == [*sorted(distinct), None]
    assert warphash.union1d(column, column).to_pylist() == [*sorted(distinct), None]


@pytest.mark.parametrize("items", [[], [None, None]], ids=str)
@pytest.mark.parametrize("dtype", [object, "int64"], ids=str)
def test_categories_of_which_there_are_none(items: list[None], dtype: Any) -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(pandas.Categorical(items, categories=pandas.Index([], dtype=dtype)))
    assert warphash.unique(column, sorted=True).isna().tolist() == [True][: len(items)]
    assert warphash.isin(["a", "b"], column).tolist() == [False, False]
    assert warphash.isin(column, ["a", None]).tolist() == [True] * len(items)
    assert warphash.Index(column).get_indexer_non_unique(["a", "b"])[0].tolist() == [-1, -1]


@pytest.mark.parametrize("dtype", ["int64", "float64", "U4", "M8[s]"])
def test_no_elements(dtype: str) -> None:
    empty = np.empty(0, dtype)
    assert [len(made) for made in warphash.unique(empty, True, True, True, sorted=True)] == [0, 0, 0, 0]
    assert warphash.unique(empty).dtype == empty.dtype
    assert warphash.nunique(empty) == 0 and len(warphash.duplicated(empty, "last")) == 0
    assert [len(made) for made in warphash.value_counts(empty, normalize=True)] == [0, 0]
    assert warphash.unique([]).dtype == np.float64


def test_many_elements() -> None:
    """More than one way of the kernels."""
    generator = np.random.default_rng(5)
    for distinct in (10, 100_000):
        numbers = generator.integers(0, distinct, 300_000)
        for array in (numbers, numbers.astype("f4"), numbers.astype("S8"), np.repeat(numbers, 3).reshape(-1, 3)):
            axis = 0 if array.ndim == 2 else None
            values, indices, inverse, counts = warphash.unique(array, True, True, True, axis=axis, sorted=True)
            expected = np.unique(array, True, True, True, axis=axis)
            for made, wanted in zip((values, indices, inverse, counts), expected, strict=True):
                np.testing.assert_array_equal(made, wanted)


def test_bool_of_any_byte() -> None:
    odd = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert warphash.unique(odd, return_counts=True)[1].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: warphash.unique(np.array([object()])), warphash.DtypeError, "one type"),
        (lambda: warphash.unique([1, "a"]), warphash.DtypeError, "one kind"),
        (lambda: warphash.unique(np.ma.array([1, 2], mask=[0, 1])), warphash.ShapeError, "mask"),
        (lambda: warphash.unique(np.arange(4), axis=1), warphash.ParameterError, "axis"),
        (lambda: warphash.unique(np.arange(4), axis=0.0), warphash.ParameterError, "axis"),  # type: ignore[arg-type]
        (lambda: warphash.unique(["a", None], axis=1), warphash.ParameterError, "axis"),
        (lambda: warphash.factorize([1], nulls="keep"), warphash.ParameterError, "'drop' or 'key'"),  # type: ignore[arg-type]
        (lambda: warphash.duplicated([1], "none"), warphash.ParameterError, "'first', 'last'"),  # type: ignore[arg-type]
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
