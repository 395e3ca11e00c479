"""isin, set functions and Index of arrays and columns of all kinds, against dicts and sets of Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.relational import KINDS, Kind, Oracle, canonical, fitting, in_order, is_among, items_of, lists_of, shown
from warphash.relational import membership

few = settings(max_examples=25)
kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture(params=["few", "many"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of isin, whatever the number of elements is."""
    monkeypatch.setattr(membership, "_FEW", 1 << 12 if request.param == "few" else 0)


@kinds
@pytest.mark.usefixtures("way")
@few
@given(data=st.data())
def test_isin(kind: Kind, data: st.DataObject) -> None:
    items, others = data.draw(lists_of(kind)), data.draw(lists_of(kind))
    invert, equal_nan = data.draw(st.booleans()), data.draw(st.booleans())
    nulls: Any = data.draw(st.sampled_from(["equal", "unequal"]))
    made = warphash.isin(kind.make(items), kind.make(others), invert=invert, equal_nan=equal_nan, nulls=nulls)
    expected = [is_among(item, others, equal_nan, nulls == "equal") ^ invert for item in items]
    assert np.asarray(made).dtype == np.bool_ and np.asarray(made).tolist() == expected
    if kind.library != "list":
        assert type(made).__module__.partition(".")[0] == kind.library


TYPES = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float32", "float64", "complex128"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("of_others", TYPES)
@pytest.mark.usefixtures("way")
@pytest.mark.filterwarnings("ignore:invalid value")
def test_numbers_of_two_types_are_compared_by_their_values(dtype: str, of_others: str) -> None:
    items, others = np.array(fitting(dtype), dtype), np.array(fitting(of_others), of_others)
    exact = {other.item() for other in others}
    assert warphash.isin(items, others).tolist() == [item.item() in exact for item in items]


@pytest.mark.usefixtures("way")
def test_other_types() -> None:
    texts = np.array(["a", "bc", "ß", ""])
    assert warphash.isin(texts, np.array([b"bc", b""])).tolist() == [False, True, False, True]
    assert warphash.isin(np.array([b"a", b"bc"]), texts).tolist() == [True, True]
    assert warphash.isin(texts, np.array(["ß" * 40, "bc"])).tolist() == [False, True, False, False]
    assert warphash.isin(np.array([1, 2]), texts).tolist() == [False, False]
    assert warphash.isin(texts, [1, 2], invert=True).tolist() == [True] * 4
    days = np.array(["2020-01-01", "2020-01-02"], "M8[D]")
    assert warphash.isin(days, np.array(["2020-01-02T00:00", "2020-01-01T01:00"], "M8[s]")).tolist() == [False, True]
    assert warphash.isin(days, np.array([18262, 18263])).tolist() == [False, False]
    assert warphash.isin([1, None], ["a", None]).tolist() == [False, True]
    assert warphash.isin([1, None], ["a" * 40, None], nulls="unequal").tolist() == [False, False]
    assert warphash.isin([1, 2], ["a" * 40]).tolist() == [False, False]
    polars = pytest.importorskip("polars")
    column = polars.Series(["a", None, "zz"])
    assert warphash.isin(column, texts).to_list() == [True, False, False]
    assert warphash.isin(texts, column).tolist() == [True, False, False, False]
    assert warphash.isin(column, [b"a"]).to_list() == [True, False, False]
    long = polars.Series(["a" * 40, None, "zz"])
    assert warphash.isin(long, ["a" * 40, "b"]).to_list() == [True, False, False]
    assert warphash.isin(long, ["a" * 40, None]).to_list() == [True, True, False]
    assert warphash.setdiff1d(long, np.array(["a" * 40]), sorted=False).to_list() == [None, "zz"]
    assert warphash.isin(column, polars.Series([b"a"])).to_list() == [False, False, False]
    assert warphash.isin(polars.Series([1, None]), [1, 2]).to_list() == [True, False]


def test_a_table_or_an_index_of_others() -> None:
    items = np.array([[1, 2], [3, 4]])
    for others in (
        warphash.HashSet.from_arrays(np.array([2, 3]), device="cpu"),
        warphash.HashMap.from_arrays(np.array([2, 3]), np.array([0, 0]), device="cpu"),
        warphash.Index([2, 3, 3]),
    ):
        assert warphash.isin(items, others).tolist() == [[False, True], [True, False]]
        assert warphash.isin(items, others, invert=True).tolist() == [[True, False], [False, True]]
    pyarrow = pytest.importorskip("pyarrow")
    assert warphash.isin(pyarrow.array([2, 5]), warphash.Index([2]), invert=True).to_pylist() == [False, True]


# ---- set functions
SORTABLE = [kind for kind in KINDS if kind.dtype != "record"]


@pytest.mark.parametrize("kind", SORTABLE, ids=str)
@few
@given(data=st.data())
def test_set_functions(kind: Kind, data: st.DataObject) -> None:
    one, other = data.draw(lists_of(kind)), data.draw(lists_of(kind))
    first, second = kind.make(one), kind.make(other)
    distinct, others = Oracle(one).values, Oracle(other).values
    only, only_other = (
        [item for item in items if not is_among(item, rest, False, True)]
        for items, rest in ((distinct, other), (others, one))
    )
    common = [item for item in distinct if is_among(item, other, False, True)]
    expected = {
        "intersect1d": common,
        "union1d": Oracle([*one, *other]).values,
        "setdiff1d": only,
        "setxor1d": [*only, *only_other],
    }
    for name, items in expected.items():
        function = getattr(warphash, name)
        assert shown(items_of(function(first, second, sorted=False))) == shown(items), name
        assert shown(items_of(function(first, second))) == shown(in_order(items)), name
    values, of_first, of_second = warphash.intersect1d(first, second, return_indices=True)
    assert shown(items_of(values)) == shown(in_order(common))
    keys, of_other = list(map(canonical, one)), list(map(canonical, other))
    assert np.asarray(of_first).tolist() == [keys.index(canonical(item)) for item in in_order(common)]
    assert np.asarray(of_second).tolist() == [of_other.index(canonical(item)) for item in in_order(common)]


def test_types_of_set_functions() -> None:
    assert warphash.union1d(np.array([1], "i2"), np.array([2], "i8")).dtype == np.int64
    assert warphash.setdiff1d(np.array([1], "i2"), np.array([2.5])).dtype == np.int16
    assert warphash.setdiff1d([3, 1, 2], [1], assume_unique=True).tolist() == [3, 2]
    pandas = pytest.importorskip("pandas")
    assert warphash.union1d(pandas.Series([1, None], dtype="Int64"), [3]).dtype == "Int64"
    assert warphash.union1d([3], pandas.Series([1, 2])).tolist() == [1, 2, 3]
    polars = pytest.importorskip("polars")
    with pytest.raises(warphash.DtypeError, match="convert one of them"):
        warphash.union1d(polars.Series(["a"]), polars.Series([1]))


# ---- an index
@kinds
@few
@given(data=st.data())
def test_index(kind: Kind, data: st.DataObject) -> None:
    items, sought = data.draw(lists_of(kind)), data.draw(lists_of(kind))
    index = warphash.Index(kind.make(items))
    keys, wanted = list(map(canonical, items)), list(map(canonical, sought))
    assert (len(index), index.is_unique) == (len(items), len(set(keys)) == len(items))
    assert shown(items_of(index.keys())) == shown(items)
    assert np.asarray(index.contains(kind.make(sought))).tolist() == [key in keys for key in wanted]
    found = [[at for at, held in enumerate(keys) if held == key] or [-1] for key in wanted]
    positions, missing = index.get_indexer_non_unique(kind.make(sought))
    assert np.asarray(positions).tolist() == [at for each in found for at in each]
    assert np.asarray(missing).tolist() == [at for at, key in enumerate(wanted) if key not in keys]
    if index.is_unique:
        made = np.asarray(index.get_indexer(kind.make(sought)))
        assert made.dtype == np.int64 and made.tolist() == [each[0] for each in found]
    else:
        with pytest.raises(warphash.ParameterError, match="get_indexer_non_unique"):
            index.get_indexer(kind.make(sought))


def test_an_index_and_queries_of_other_types() -> None:
    index = warphash.Index(np.array([10, 20, 2**62], np.int64))
    assert index.get_indexer([20.0, 20.5, 10]).tolist() == [1, -1, 0]
    assert index.get_indexer(np.array([[2**62, 2**64 - 1]], np.uint64)).tolist() == [[2, -1]]
    assert index.get_indexer(["a"]).tolist() == [-1]
    assert index.get_indexer([10, None]).tolist() == [0, -1]
    assert warphash.Index(["a", None]).get_indexer([None, "a", "b"]).tolist() == [1, 0, -1]
    assert warphash.Index(np.empty(0, "i8")).get_indexer([1, 2]).tolist() == [-1, -1]
    assert index.get_indexer(np.empty(0, "i8")).tolist() == []
    assert repr(index) == "<warphash.Index of 3 keys>" and "repeat" in repr(warphash.Index([1, 1]))


TEXTS = [kind for kind in KINDS if None in kind.items and "b" in kind.items]


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_texts_with_nulls_among_keys_of_a_fixed_width(kind: Kind) -> None:
    """A null has no characters, so none are read of it."""
    sought = kind.make(["b", None, None, None, "a"])
    for keys, expected in (
        (np.array(["a", "b"]), [1, -1, -1, -1, 0]),
        (np.array([None], object), [-1, 0, 0, 0, -1]),
        ([3, None], [-1, 1, 1, 1, -1]),
    ):
        assert np.asarray(warphash.Index(keys).get_indexer(sought)).tolist() == expected
        assert np.asarray(warphash.isin(sought, keys)).tolist() == [at >= 0 for at in expected]


def test_an_index_keeps_its_keys() -> None:
    for keys in (np.array([5, 6, 7]), np.array(["a", "b", None], object)):
        index, held = warphash.Index(keys), keys.tolist()
        keys[0] = keys[1]
        assert index.keys().tolist() == held and index.get_indexer(held).tolist() == [0, 1, 2]


def test_many_keys_of_an_index() -> None:
    generator = np.random.default_rng(3)
    for keys in (generator.permutation(1 << 17), generator.permutation(1 << 16).astype("S6")):
        index, sought = warphash.Index(keys), generator.choice(keys, 10_000)
        assert np.array_equal(keys[index.get_indexer(sought)], sought)
        assert np.array_equal(warphash.isin(keys, sought), np.isin(keys, sought))


def test_wide_keys_are_refused_by_an_index() -> None:
    wide = np.array([b"x" * 129, b"y"])
    assert len(warphash.unique(wide)) == 2
    with pytest.raises(warphash.DtypeError, match="128 bytes"):
        warphash.Index(wide)


def test_wide_text_is_refused_with_a_mend_that_works() -> None:
    wide = np.array(["x" * 33, "y"])
    with pytest.raises(warphash.DtypeError, match=r"got 132 of <U33: .*keys\.astype\(numpy\.dtypes\.StringDType\(\)\)"):
        warphash.Index(wide)
    if hasattr(np.dtypes, "StringDType"):
        assert warphash.Index(wide.astype(np.dtypes.StringDType())).get_indexer(wide).tolist() == [0, 1]
    wide_bytes = np.array([b"x" * 129, b"y"])
    with pytest.raises(warphash.DtypeError, match=r"got 129 of .S129: .*keys\.astype\(object\)"):
        warphash.Index(wide_bytes)
    assert warphash.Index(wide_bytes.astype(object)).get_indexer(wide_bytes).tolist() == [0, 1]


@pytest.mark.parametrize(("keys", "kind"), [(np.array(["x" * 33]), "str"), (np.array([b"x" * 129]), "bytes")])
def test_a_table_of_wide_text_names_the_type_of_any_length(keys: Any, kind: str) -> None:
    with pytest.raises(warphash.DtypeError, match=f"make the table of type '{kind}'"):
        warphash.HashSet.from_arrays(keys, device="cpu")
    table: Any = warphash.HashSet(kind, device="cpu")
    table.insert(keys)
    assert table.contains(keys).tolist() == [True]


def test_bad_rule() -> None:
    with pytest.raises(warphash.ParameterError, match="'equal' or 'unequal'"):
        warphash.isin([1], [1], nulls="same")  # type: ignore[call-overload]
