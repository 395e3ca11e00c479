"""The relational verbs of arrays on a GPU: emulated, with arrays of PyTorch and of NumPy that pass for arrays there.

Those of NumPy pass for arrays of CuPy, and refuse arrays of the host (`support.elsewhere`).
"""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.emulated_arrays import LIBRARIES, pass_for_arrays_of
from support.engines import missing
from support.refusals import refusing
from support.relational import FLOATS, INTEGERS, Oracle, canonical, fitting, in_order, is_among, joined, shown
from warphash.runtime.devices import engine_for

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason="needs the emulated engine")
few = settings(max_examples=10)
TYPES = {
    "bool": (True, False),
    "int8": INTEGERS,
    "uint8": (0, 1, 255),
    "int16": INTEGERS,
    "uint16": (0, 1, 2**16 - 1),
    "int32": INTEGERS,
    "int64": INTEGERS,
    "uint32": (0, 1, 2**32 - 1),
    "uint64": (0, 1, 2**63, 2**64 - 1),
    "float16": FLOATS,
    "float32": FLOATS,
    "float64": FLOATS,
}


@pytest.fixture(params=LIBRARIES)
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes an array on the emulated GPU."""
    return pass_for_arrays_of(request.param, monkeypatch)


def items_of(made: Any) -> list[Any]:
    return list(np.asarray(made).reshape(-1))


@pytest.mark.parametrize("dtype", TYPES)
def test_verbs_of_distinct_elements(make: Any, dtype: str) -> None:
    @few
    @given(st.lists(st.sampled_from(TYPES[dtype]), min_size=1, max_size=12))
    def check(items: list[Any]) -> None:
        array = make(items, dtype)
        one, apart, dropped = (Oracle(items, nan=rule) for rule in ("one", "apart", "dropped"))
        made = warphash.unique(array, True, True, True)
        assert all(type(part) is type(array) for part in made)
        assert shown(items_of(made[0])) == shown(one.values)
        assert [items_of(part) for part in made[1:]] == [one.firsts, one.codes, one.counts]
        assert shown(items_of(warphash.unique(array, sorted=True))) == shown(in_order(one.values))
        made = warphash.unique_all(array)
        assert [items_of(part) for part in made[1:]] == [apart.firsts, apart.codes, apart.counts]
        codes, uniques = warphash.factorize(array)
        assert items_of(codes) == dropped.codes and shown(items_of(uniques)) == shown(dropped.values)
        codes, uniques = warphash.factorize(array, sort=True)
        assert shown(items_of(uniques)) == shown(in_order(dropped.values))
        expected = [None if code < 0 else shown(dropped.values)[code] for code in dropped.codes]
        assert [None if code < 0 else shown(items_of(uniques))[code] for code in items_of(codes)] == expected
        values, counts = warphash.value_counts(array, normalize=True)
        pairs = sorted(zip(shown(dropped.values), dropped.counts, strict=True), key=lambda pair: -pair[1])
        assert shown(items_of(values)) == [value for value, _ in pairs]
        assert items_of(counts) == [count / sum(dropped.counts) for _, count in pairs]
        for keep, others in (("first", lambda at: one.codes[:at]), ("last", lambda at: one.codes[at + 1 :])):
            flags = [code in others(at) for at, code in enumerate(one.codes)]
            assert items_of(warphash.duplicated(array, keep)) == flags  # type: ignore[arg-type]
        assert items_of(warphash.duplicated(array, False)) == [one.codes.count(code) > 1 for code in one.codes]
        assert warphash.nunique(array) == len(dropped.values)

    check()


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_of_32_bits(make: Any, dtype: str) -> None:
    def numbers(x: Any, sort: bool, index_dtype: str) -> list[Any]:
        _, *made = warphash.unique(x, True, True, True, sorted=sort, index_dtype=index_dtype)
        return [*made, warphash.factorize(x, sort=sort, index_dtype=index_dtype)[0]]

    @few
    @given(st.lists(st.sampled_from(TYPES[dtype]), min_size=1, max_size=12), st.booleans())
    def check(items: list[Any], sort: bool) -> None:
        array = make(items, dtype)
        for x in (array, (array, array)):
            for made, expected in zip(numbers(x, sort, "int32"), numbers(x, sort, "int64"), strict=True):
                assert type(made) is type(expected) and items_of(made) == items_of(expected)
                assert (np.asarray(made).dtype, np.asarray(expected).dtype) == (np.int32, np.int64)

    check()


@pytest.mark.parametrize("dtype", TYPES)
def test_isin(make: Any, dtype: str) -> None:
    some = st.lists(st.sampled_from(TYPES[dtype]), min_size=1, max_size=8)

    @few
    @given(some, some, st.booleans(), st.booleans())
    def check(items: list[Any], others: list[Any], equal_nan: bool, of_host: bool) -> None:
        array = make(items, dtype)
        there = np.array(others, dtype) if of_host else make(others, dtype)
        made = warphash.isin(array, there, equal_nan=equal_nan)
        keys = [item for item in others if item == item]
        has_nan = equal_nan and any(item != item for item in others)
        expected = [has_nan if item != item else item in keys for item in items]
        assert type(made) is type(array) and items_of(made) == expected
        assert items_of(warphash.isin(array, there, equal_nan=equal_nan, invert=True)) == [
            not flag for flag in expected
        ]

    check()


def test_rows(make: Any) -> None:
    rows = np.array([[3.0, -0.0], [1.0, math.nan], [3.0, 0.0], [1.0, math.nan], [1.0, 2.0]])
    for axis in (0, 1):
        given_array = make(rows if axis == 0 else rows.T.copy(), "f8")
        values, indices, inverse, counts = warphash.unique(given_array, True, True, True, axis=axis)
        assert np.asarray(values).shape == ((3, 2) if axis == 0 else (2, 3))
        assert [items_of(part) for part in (indices, inverse, counts)] == [[0, 1, 4], [0, 1, 0, 1, 2], [2, 2, 1]]
        ordered = np.asarray(warphash.unique(given_array, axis=axis, sorted=True, return_index=True)[1])
        assert ordered.tolist() == [4, 1, 0]
    assert items_of(warphash.unique(make(rows, "f8"), True, axis=0, equal_nan=False)[1]) == [0, 1, 3, 4]
    assert np.asarray(warphash.unique(make(np.zeros((3, 0)), "f8"), axis=0)).shape == (1, 0)


@pytest.mark.parametrize("first", TYPES)
def test_rows_of_columns(make: Any, first: str) -> None:
    @few
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        types = [first, *data.draw(st.lists(st.sampled_from(sorted(TYPES)), max_size=2))]
        n = data.draw(st.integers(1, 12))
        lists = [data.draw(st.lists(st.sampled_from(TYPES[name]), min_size=n, max_size=n)) for name in types]
        columns = tuple(make(items, name) for items, name in zip(lists, types, strict=True))
        rows = list(zip(*lists, strict=True))
        one = Oracle(rows)
        values, *made = warphash.unique(columns, True, True, True)
        assert all(type(part) is type(columns[0]) for part in (*values, *made))
        assert [shown(items_of(part)) for part in values] == [
            shown([items[at] for at in one.firsts]) for items in lists
        ]
        assert [items_of(part) for part in made] == [one.firsts, one.codes, one.counts]
        has_nan = [any(item != item for item in row) for row in rows]
        alone = [at for at, row in enumerate(rows) if has_nan[at] or one.codes.index(one.codes[at]) == at]
        assert items_of(warphash.unique(columns, True, equal_nan=False)[1]) == alone
        ordered = items_of(warphash.unique(columns, True, sorted=True)[1])
        ranks = [[in_order(items).index(item) if item == item else n for item in items] for items in lists]
        assert ordered == sorted(one.firsts, key=lambda at: [rank[at] for rank in ranks])
        codes, uniques = warphash.factorize(columns)
        kept = list(dict.fromkeys(code for code, is_nan in zip(one.codes, has_nan, strict=True) if not is_nan))
        assert items_of(codes) == [kept.index(code) if code in kept else -1 for code in one.codes]
        assert len(uniques[0]) == len(kept) == warphash.nunique(columns)
        lasts = [at for at in range(n) if one.codes[at] not in one.codes[at + 1 :]]
        assert items_of(warphash.duplicated(columns, "last")) == [at not in lasts for at in range(n)]
        assert items_of(warphash.value_counts(columns, sort=False, dropna=False)[1]) == one.counts
        check_rows_looked_up(columns, [tuple(map(canonical, row)) for row in rows])

    def check_rows_looked_up(columns: tuple[Any, ...], keys: list[tuple[Any, ...]]) -> None:
        half = tuple(column[: len(keys) // 2] for column in columns)
        held = keys[: len(keys) // 2]
        has_nan = ["(nan)" in key for key in keys]
        flags = warphash.isin(columns, half)
        assert type(flags) is type(columns[0])
        assert items_of(flags) == [key in held and not is_nan for key, is_nan in zip(keys, has_nan, strict=True)]
        index = warphash.Index(half)
        found = [[at for at, key in enumerate(held) if key == wanted] for wanted in keys]
        assert items_of(warphash.isin(columns, index)) == [bool(each) for each in found]
        positions, _ = index.get_indexer_non_unique(columns)
        assert type(positions) is type(columns[0])
        assert items_of(positions) == [at for each in found for at in each or [-1]]
        made = index.keys()
        assert [len(part) for part in made] == [len(held)] * len(columns)
        distinct = list(dict.fromkeys(keys))
        assert [len(part) for part in warphash.union1d(half, columns)] == [len(distinct)] * len(columns)
        made = warphash.setdiff1d(columns, half, sorted=False)
        expected = [key for key in distinct if key not in held or "(nan)" in key]
        assert list(zip(*(map(canonical, items_of(part)) for part in made), strict=True)) == expected

    check()


def test_columns_on_several_devices(make: Any) -> None:
    with pytest.raises(warphash.DeviceError, match="one device"):
        warphash.unique((make([1, 2], "i8"), np.arange(2)))
    assert [len(part) for part in warphash.unique((make([], "i8"), make([], "f4")))] == [0, 0]


def test_shapes(make: Any) -> None:
    array = make([[3, 1], [1, 3]], "i8")
    assert np.asarray(warphash.unique_inverse(array)[1]).tolist() == [[0, 1], [1, 0]]
    assert np.asarray(warphash.duplicated(array)).tolist() == [[False, False], [True, True]]
    assert np.asarray(warphash.isin(array, [1])).tolist() == [[False, True], [True, False]]
    assert [len(made) for made in warphash.unique(make([], "i8"), True, True, True, sorted=True)] == [0, 0, 0, 0]


def some_of(dtype: str, least: int = 0) -> Any:
    return st.lists(st.sampled_from(TYPES[dtype]), min_size=least, max_size=10)


@pytest.mark.parametrize("dtype", TYPES)
def test_set_functions(make: Any, dtype: str) -> None:
    @few
    @given(some_of(dtype), some_of(dtype))
    def check(one: list[Any], other: list[Any]) -> None:
        first, second = make(one, dtype), make(other, dtype)
        distinct, others = Oracle(one).values, Oracle(other).values
        common = [item for item in distinct if is_among(item, other, False, True)]
        only = [item for item in distinct if not is_among(item, other, False, True)]
        only_other = [item for item in others if not is_among(item, one, False, True)]
        expected = {
            warphash.intersect1d: common,
            warphash.union1d: Oracle([*one, *other]).values,
            warphash.setdiff1d: only,
            warphash.setxor1d: [*only, *only_other],
        }
        for function, items in expected.items():
            made, ordered = function(first, second, sorted=False), function(first, second)
            assert type(made) is type(ordered) is type(first) and made.dtype == first.dtype
            assert shown(items_of(made)) == shown(items), function
            assert shown(items_of(ordered)) == shown(in_order(items)), function
        assert shown(items_of(warphash.setdiff1d(first, other, sorted=False))) == shown(only)
        alone = [item for item in one if not is_among(item, other, False, True)]
        assert shown(items_of(warphash.setdiff1d(first, second, assume_unique=True))) == shown(alone)
        for is_sorted, items in ((True, in_order(common)), (False, common)):
            values, *made = warphash.intersect1d(first, second, return_indices=True, sorted=is_sorted)
            assert shown(items_of(values)) == shown(items)
            for positions, given_items in zip(made, (one, other), strict=True):
                keys = list(map(canonical, given_items))
                assert type(positions) is type(first) and items_of(positions) == [keys.index(item) for item in items]

    check()


@pytest.mark.parametrize("dtype", TYPES)
def test_index(make: Any, dtype: str) -> None:
    @few
    @given(some_of(dtype), some_of(dtype))
    def check(keys: list[Any], sought: list[Any]) -> None:
        array, q = make(keys, dtype), make(sought, dtype)
        index, held = warphash.Index(array), list(map(canonical, keys))
        array[:] = make([TYPES[dtype][0]] * len(keys), dtype)
        assert type(index.keys()) is type(array) and shown(items_of(index.keys())) == shown(keys)
        found = [[at for at, key in enumerate(held) if key == wanted] for wanted in map(canonical, sought)]
        flags = index.contains(q)
        assert type(flags) is type(array) and items_of(flags) == [bool(each) for each in found]
        assert items_of(warphash.isin(q, index, invert=True)) == [not each for each in found]
        positions, missing = index.get_indexer_non_unique(q)
        assert type(positions) is type(missing) is type(array)
        assert items_of(positions) == [at for each in found for at in each or [-1]]
        assert items_of(missing) == [at for at, each in enumerate(found) if not each]
        assert index.is_unique == (len(set(held)) == len(held))
        if index.is_unique:
            made = index.get_indexer(q)
            assert type(made) is type(array) and np.asarray(made).dtype == np.int64
            assert items_of(made) == [each[0] if each else -1 for each in found]

    check()


HOWS = ("inner", "left", "right", "outer", "semi", "anti")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "uint64", "float32", "float64"])
def test_joins(make: Any, dtype: str) -> None:
    some = st.lists(st.sampled_from(TYPES[dtype]), max_size=8)

    @few
    @given(some, some, st.sampled_from(["unequal", "equal"]), st.sampled_from([None, "int32"]))
    def check(items: list[Any], others: list[Any], nulls: Any, index_dtype: Any) -> None:
        left, right = make(items, dtype), make(others, dtype)
        columns = (left, left), (right, right)
        for how in HOWS:
            expected = joined(items, others, how, nulls)
            options: Any = {"nulls": nulls, "index_dtype": index_dtype}
            calls = [warphash.join(*sides, how, **options) for sides in ((left, right), columns)]  # type: ignore[arg-type]
            if nulls == "equal":
                calls.append(warphash.Index(right).join(left, how, index_dtype=index_dtype))  # type: ignore[arg-type]
            for made in calls:
                rows = [part for part in made if part is not None]
                assert all(type(part) is type(left) for part in rows)
                assert {np.asarray(part).dtype for part in rows} == {np.dtype(index_dtype or "int64")}
                assert [items_of(part) for part in rows] == [part for part in expected if part is not None]

    check()


@pytest.mark.parametrize("keys", [40, 4000])
def test_joins_of_many_rows(make: Any, keys: int) -> None:
    generator = np.random.default_rng(9)
    ours, others = (generator.integers(0, keys, 900) * 2**33 for _ in range(2))
    others[:200], ours[5] = ours[5], 7  # one heavy key
    for how in HOWS:
        made = warphash.join(make(ours, "i8"), make(others, "i8"), how)  # type: ignore[arg-type]
        expected = warphash.join(ours, others, how)  # type: ignore[arg-type]
        assert [items_of(part) for part in made if part is not None] == [
            part.tolist() for part in expected if part is not None
        ]
    with pytest.raises(warphash.ParameterError, match="row 1 repeats the key of row 0"):
        warphash.join(make(ours, "i8"), make(others, "i8"), validate="m:1")


def test_shapes_of_an_index(make: Any) -> None:
    with pytest.raises(warphash.ShapeError, match="tuple"):
        warphash.Index(make([[30, 10], [20, 7]], "i4"))
    index = warphash.Index(make([30, 10, 20, 7], "i4"))
    assert len(index) == 4 and "4 keys" in repr(index)
    assert np.asarray(index.get_indexer(make([[7], [8]], "i8"))).tolist() == [[3], [-1]]
    with pytest.raises(warphash.ParameterError, match="get_indexer_non_unique"):
        warphash.Index(make([1, 1], "i4")).get_indexer(make([1], "i4"))


NUMBERS = [dtype for dtype in TYPES if dtype not in ("int16", "uint16", "uint32", "float16")]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("of_others", NUMBERS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_numbers_of_two_types_are_compared_by_their_values(make: Any, dtype: str, of_others: str) -> None:
    items, others = fitting(dtype), fitting(of_others)
    exact = [other.item() for other in others]
    expected = [item.item() in exact for item in items]
    array, there = make(items, dtype), make(others, of_others)
    assert items_of(warphash.isin(array, there)) == expected
    assert items_of(warphash.isin(array, np.array(others, of_others))) == expected
    codes, absent = warphash.Index(there).get_indexer_non_unique(array)
    keys = [[at for at, key in enumerate(exact) if key == item.item()] for item in items]
    assert items_of(codes) == [at for each in keys for at in each or [-1]]
    assert items_of(absent) == [at for at, is_there in enumerate(expected) if not is_there]


def test_others_in_host_memory_of_other_kinds(make: Any) -> None:
    array = make([1, 2, 3], "i4")
    assert items_of(warphash.isin(array, [2.0, 2.5, None])) == [False, True, False]
    assert items_of(warphash.isin(array, ["1"])) == items_of(warphash.isin(array, [])) == [False] * 3
    assert items_of(warphash.setdiff1d(array, [1, 2**70 * 1.0])) == [2, 3]
    wide = make([1, 2**63], "u8")
    assert items_of(warphash.isin(wide, np.array([2**63], np.ulonglong))) == [False, True]
    assert items_of(warphash.isin(wide, np.array([1, 0], ">u8"))) == [True, False]


MARK = 0x5EED << 40
"""Added to keys: no counter and no position is as large."""


def test_many_elements_stay_on_the_gpu(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host reads counters of the engine that are no keys, and no array of the library."""
    engine, read = engine_for("emulated"), []
    to_host = engine.to_host

    def noted(*args: Any) -> Any:
        read.append(to_host(*args))
        return read[-1]

    generator = np.random.default_rng(5)
    one, other = (MARK + generator.integers(low, low + 4000, 5000) for low in (0, 2000))
    keys = np.unique(other)
    sought, order = one[:500], np.argsort(other, kind="stable")
    found = [order[np.searchsorted(other[order], key) :][: (other == key).sum()] for key in sought]
    verbs = (warphash.isin, warphash.intersect1d, warphash.union1d, warphash.setdiff1d, warphash.setxor1d)
    expected = [getattr(np, verb.__name__)(one, other) for verb in verbs]
    expected.append(np.where(np.isin(one, other), np.searchsorted(keys, one), -1))
    expected.append(np.concatenate([each if len(each) else [-1] for each in found]))
    first, second, distinct, some = (make(items, "i8") for items in (one, other, keys, sought))
    with monkeypatch.context() as patched:
        patched.setattr(engine, "to_host", noted)
        for name in ("cpu", "numpy", "tolist", "__array__") if LIBRARIES[0] == "torch" else ():
            patched.setattr(f"torch.Tensor.{name}", None)
        made = [verb(first, second) for verb in verbs]
        made.append(warphash.Index(distinct).get_indexer(first))
        made.append(warphash.Index(second).get_indexer_non_unique(some)[0])
    words = np.concatenate(
        [array.reshape(-1).view(np.uint8)[: array.nbytes // 8 * 8].view(np.uint64) for array in read]
    )
    assert len(words) and not (words >= MARK).any()
    for answer, right in zip(made, expected, strict=True):
        assert type(answer) is type(first) and np.array_equal(np.asarray(answer), right)


REFUSED = {
    "isin": lambda array: warphash.isin(array, array[:3]),
    "setdiff1d": lambda array: warphash.setdiff1d(array, array[:3]),
    "setxor1d": lambda array: warphash.setxor1d(array, array[:3]),
    "get_indexer_non_unique": lambda array: warphash.Index(array).get_indexer_non_unique(array[:4])[0],
    "contains": lambda array: warphash.Index(array).contains(array[:4]),
    "join": lambda array: warphash.join(array, array[:3], "outer", nulls="equal")[1],
    "join of an Index": lambda array: warphash.Index(array).join(array[:4], "right")[0],
}


@pytest.mark.parametrize("verb", REFUSED)
@pytest.mark.parametrize("once", [True, False])
def test_refused_memory_gives_no_wrong_answer(make: Any, verb: str, once: bool) -> None:
    array = make([0.5, math.nan, -0.0, 0.0, 7.0, 0.5], "f8")
    call, refused = REFUSED[verb], 0
    expected = shown(items_of(call(array)))
    for first in count(1):
        with refusing(engine_for("emulated"), first, once=once) as refusals:
            try:
                assert shown(items_of(call(array))) == expected
            except MemoryError:
                refused += 1
        if not refusals.refused:
            break
    assert refused > 0 and shown(items_of(call(array))) == expected


def test_several_devices(make: Any) -> None:
    array, host = make([1, 2], "i8"), np.arange(2)
    for call in (
        lambda: warphash.isin(host, array),
        lambda: warphash.isin([1], array),
        lambda: warphash.setdiff1d(host, array),
        lambda: warphash.union1d(array, host),
        lambda: warphash.intersect1d([1], array),
        lambda: warphash.Index(array).get_indexer([1]),
        lambda: warphash.Index(array).contains(host),
        lambda: warphash.Index(host).get_indexer(array),
        lambda: warphash.isin((array, array), (host, host)),
        lambda: warphash.Index((array, array)).contains((host, host)),
        lambda: warphash.join(host, array),
        lambda: warphash.join(array, host, "anti"),
        lambda: warphash.join((array, array), (host, host), "outer"),
        lambda: warphash.Index(array).join(host, "semi"),
        lambda: warphash.union1d((host, host), (array, array)),
    ):
        with pytest.raises(warphash.DeviceError, match=r"host.*copy"):
            call()


def test_two_libraries_on_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    makers = [pass_for_arrays_of(name, monkeypatch) for name in LIBRARIES]
    if len(makers) < 2:
        pytest.skip("needs PyTorch")
    for make_first, make_second in (makers, makers[::-1]):
        first, second = make_first([3, 3, 5], "i8"), make_second([5, 3], "i4")
        made = warphash.isin(first, second)
        assert type(made) is type(first) and items_of(made) == [True] * 3
        index = warphash.Index(second)
        made = index.get_indexer(first)
        assert type(made) is type(first) and items_of(made) == [1, 1, 0]
        with pytest.raises(warphash.DeviceError, match="one library"):
            warphash.union1d(first, second)
        with pytest.raises(warphash.DeviceError, match="one library"):
            warphash.Index(first).get_indexer_non_unique(second)
        for left, right in ((first, second), (second, first), ((first, first), (second[[0, 0, 1]],) * 2)):
            with pytest.raises(warphash.DeviceError, match="one library"):
                warphash.join(left, right)


def test_what_is_refused(make: Any) -> None:
    for verb in (warphash.unique, warphash.Index):
        with pytest.raises(warphash.DtypeError, match="complex"):
            verb(make([1j], "c16"))


# ---- mappings of names to arrays
@pytest.mark.parametrize("how", ["inner", "left", "right", "outer", "semi", "anti"])
def test_frames_of_arrays(make: Any, how: Any) -> None:
    left = {"key": make([7, 3, 7, 9], "int64"), "price": make([1.5, 4.0, 2.5, 8.0], "float32")}
    right = {"key": make([3, 7, 5], "int64"), "rent": make([100.0, 200.0, 300.0], "float64")}
    made = warphash.merge(left, right, how, on="key")
    rows = joined([7, 3, 7, 9], [3, 7, 5], how, "unequal")
    prices, rents = [1.5, 4.0, 2.5, 8.0], [100.0, 200.0, 300.0]
    keys = [
        [7, 3, 7, 9][at] if at >= 0 else [3, 7, 5][other] for at, other in zip(rows[0], rows[1] or rows[0], strict=True)
    ]
    assert items_of(made["key"]) == keys
    assert shown(items_of(made["price"])) == shown([prices[at] if at >= 0 else math.nan for at in rows[0]])
    if rows[1] is None:
        assert list(made) == ["key", "price"]
    else:
        assert shown(items_of(made["rent"])) == shown([rents[at] if at >= 0 else math.nan for at in rows[1]])
    assert type(made["key"]) is type(left["key"])


def test_rows_and_groups_of_frames_of_arrays(make: Any) -> None:
    frame = {"key": make([7, 3, 7], "int64"), "price": make([1.5, 4.0, 2.5], "float64")}
    made = warphash.drop_duplicates(frame, "key", keep="last")
    assert [items_of(made[name]) for name in frame] == [[3, 7], [4.0, 2.5]]
    totals = warphash.group_by(frame, "key").agg(total=("price", "sum"), sold="size")
    assert {name: items_of(column) for name, column in totals.items()} == {
        "key": [7, 3],
        "total": [4.0, 4.0],
        "sold": [2, 1],
    }
    assert items_of(warphash.unique({"key": frame["key"]})["key"]) == [7, 3]


def test_a_mapping_of_integers_has_no_nulls_on_a_gpu(make: Any) -> None:
    left, right = {"key": make([7, 3], "int64")}, {"key": make([3], "int64"), "rent": make([100], "int64")}
    with pytest.raises(warphash.DtypeError, match="no nulls"):
        warphash.merge(left, right, "left")
