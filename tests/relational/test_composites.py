"""Rows of several columns, against dicts of tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.changing import changed_meanwhile
from support.refusals import refusing
from support.relational import KINDS, NAN, NULL, Kind, canonical, in_order, items_of, lists_of, shown
from warphash import ShapeError
from warphash.runtime.devices import engine_for

WIDE = st.sampled_from([0, 1, -1, 2**62, -(2**63), 2**63 - 1])
COLUMNS: dict[str, tuple[Any, Any]] = {
    "int64": (lambda items: np.array(items, "i8"), st.integers(-3, 3) | WIDE),
    "uint64": (lambda items: np.array(items, "u8"), st.sampled_from([0, 1, 5, 2**64 - 1])),
    "int8": (lambda items: np.array(items, "i1"), st.integers(-128, 127)),
    "bool": (lambda items: np.array(items, bool), st.booleans()),
    "float64": (lambda items: np.array(items, "f8"), st.sampled_from([0.5, 1.5, -2.0])),
    "text": (lambda items: np.array(items, "U3"), st.sampled_from(["", "a", "bcd"])),
    "times": (lambda items: np.array(items, "M8[s]"), st.integers(0, 3)),
}
"""Makes a column of a list, and what its items are drawn from."""

few = settings(max_examples=40)


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    """Columns, and their rows."""
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=5))
    n = draw(st.integers(0, 40))
    lists = [draw(st.lists(COLUMNS[kind][1], min_size=n, max_size=n)) for kind in kinds]
    columns = tuple(COLUMNS[kind][0](items) for kind, items in zip(kinds, lists, strict=True))
    return columns, list(zip(*(column.tolist() for column in columns), strict=True))


def walked(rows: list[tuple[Any, ...]]) -> tuple[list[int], list[int], list[int]]:
    """First positions, codes and counts."""
    number_of: dict[tuple[Any, ...], int] = {}
    firsts, codes, counts = [], [], []
    for position, row in enumerate(rows):
        if row not in number_of:
            number_of[row] = len(number_of)
            firsts.append(position)
            counts.append(0)
        codes.append(number_of[row])
        counts[codes[-1]] += 1
    return firsts, codes, counts


def rows_of(columns: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


@few
@given(table=tables())
def test_unique_rows(table: Any) -> None:
    columns, rows = table
    firsts, codes, counts = walked(rows)
    values, indices, inverse, times = warphash.unique(columns, True, True, True)
    assert isinstance(values, tuple) and [each.dtype for each in values] == [each.dtype for each in columns]
    assert rows_of(values) == [rows[first] for first in firsts]
    assert (indices.tolist(), inverse.tolist(), times.tolist()) == (firsts, codes, counts)
    assert rows_of(warphash.unique(columns)) == rows_of(values)


@few
@given(table=tables())
def test_rows_in_ascending_order(table: Any) -> None:
    columns, rows = table
    values, inverse = warphash.unique(columns, return_inverse=True, sorted=True)
    assert rows_of(values) == sorted(set(rows))
    assert [rows_of(values)[code] for code in inverse.tolist()] == rows


@few
@given(table=tables())
def test_other_verbs_of_rows(table: Any) -> None:
    columns, rows = table
    firsts, codes, counts = walked(rows)
    made, uniques = warphash.factorize(columns)
    assert made.tolist() == codes and rows_of(uniques) == [rows[first] for first in firsts]
    assert warphash.nunique(columns) == len(firsts)
    assert warphash.duplicated(columns).tolist() == [position not in firsts for position in range(len(rows))]
    values, times = warphash.value_counts(columns)
    assert dict(zip(rows_of(values), times.tolist(), strict=True)) == {
        rows[first]: count for first, count in zip(firsts, counts, strict=True)
    }


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_other_libraries_and_nulls(library: str) -> None:
    module = pytest.importorskip(library)
    column = getattr(module, "array" if library == "pyarrow" else "Series")(["p", None, "p", "q", None])
    numbers = np.array([1, 2, 1, 1, 2])
    values, inverse = warphash.unique((column, numbers), return_inverse=True)
    assert type(values[0]) is type(column) and values[1].tolist() == [1, 2, 1]
    assert np.asarray(inverse).tolist() == [0, 1, 0, 2, 1]
    codes, uniques = warphash.factorize((numbers, column))
    assert codes.tolist() == [0, -1, 0, 1, -1] and uniques[0].tolist() == [1, 1]
    assert warphash.factorize((numbers, column), nulls="key")[0].tolist() == [0, 1, 0, 2, 1]


TABLES = st.lists(st.sampled_from([kind for kind in KINDS if kind.library != "list"]), min_size=1, max_size=4)
RULES = {"drop": "dropped", "key": "one"}


class Rows:
    """Columns of all kinds that are drawn, and their distinct rows by a list of Python's."""

    def __init__(self, data: st.DataObject, kinds: list[Kind] | None = None) -> None:
        self.kinds = kinds or data.draw(TABLES)
        n = data.draw(st.integers(1, 10))
        self.lists = [data.draw(lists_of(kind, n, n)) for kind in self.kinds]
        self.columns = tuple(kind.make(items) for kind, items in zip(self.kinds, self.lists, strict=True))

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """The rows, of which equal ones are equal."""
        return [tuple(map(canonical, row)) for row in zip(*self.lists, strict=True)]

    def walked(self, missing: str = "one") -> tuple[list[int], list[int], list[int]]:
        """First positions, codes and counts.

        Parameters
        ----------
        missing
            ``"one"``: NaN and nulls equal their like. ``"apart"``: a row with NaN equals no other. ``"dropped"``: a row
            with NaN, or with a null, is no element.
        """
        keys: list[Any] = []
        for position, items in enumerate(self.keys):
            is_apart = missing == "apart" and NAN in items
            is_dropped = missing == "dropped" and (NAN in items or NULL in items)
            keys.append(None if is_dropped else (None, position) if is_apart else items)
        kept = list(dict.fromkeys(key for key in keys if key is not None))
        codes = [-1 if key is None else kept.index(key) for key in keys]
        return [keys.index(key) for key in kept], codes, [keys.count(key) for key in kept]

    def are_taken(self, values: tuple[Any, ...], firsts: list[int]) -> bool:
        """Whether values are those at some positions, each in the library of its column."""
        libraries = [type(part).__module__.partition(".")[0] for part in values]
        held = [shown(items_of(part)) for part in values]
        return libraries == [kind.library for kind in self.kinds] and held == [
            shown([items[first] for first in firsts]) for items in self.lists
        ]


@few
@given(data=st.data())
def test_unique_rows_of_columns_of_all_kinds(data: st.DataObject) -> None:
    rows, equal_nan = Rows(data), data.draw(st.booleans())
    firsts, codes, counts = rows.walked("one" if equal_nan else "apart")
    values, *made = warphash.unique(rows.columns, True, True, True, equal_nan=equal_nan)
    assert rows.are_taken(values, firsts)
    assert [np.asarray(part).tolist() for part in made] == [firsts, codes, counts]
    assert rows.are_taken(warphash.unique(rows.columns, equal_nan=equal_nan), firsts)
    if not equal_nan:
        made = warphash.unique_all(rows.columns)
        assert rows.are_taken(made.values, firsts)
        assert [np.asarray(part).tolist() for part in made[1:]] == [firsts, codes, counts]
        assert rows.are_taken(warphash.unique_values(rows.columns), firsts)
        assert np.asarray(warphash.unique_counts(rows.columns).counts).tolist() == counts
        assert np.asarray(warphash.unique_inverse(rows.columns).inverse_indices).tolist() == codes


@few
@given(data=st.data())
def test_rows_of_columns_of_all_kinds_in_ascending_order(data: st.DataObject) -> None:
    rows = Rows(data)
    firsts, _, _ = rows.walked()
    ranks = []  # of the items of each column
    for items in rows.lists:
        ordered = [canonical(item) for item in in_order(items)]
        ranks.append([ordered.index(canonical(item)) for item in items])
    expected = sorted(firsts, key=lambda first: [rank[first] for rank in ranks])
    values, indices = warphash.unique(rows.columns, return_index=True, sorted=True)
    assert np.asarray(indices).tolist() == expected and rows.are_taken(values, expected)


@pytest.mark.parametrize("nulls", RULES)
@few
@given(data=st.data())
def test_other_verbs_of_rows_of_all_kinds(nulls: Any, data: st.DataObject) -> None:
    rows = Rows(data)
    firsts, codes, counts = rows.walked(RULES[nulls])
    made, uniques = warphash.factorize(rows.columns, nulls=nulls)
    assert np.asarray(made).tolist() == codes and rows.are_taken(uniques, firsts)
    values, times = warphash.value_counts(rows.columns, sort=False, dropna=nulls == "drop")
    assert np.asarray(times).tolist() == counts and rows.are_taken(values, firsts)
    assert warphash.nunique(rows.columns, dropna=nulls == "drop") == len(firsts)
    firsts, codes, counts = rows.walked()
    lasts = [len(codes) - 1 - codes[::-1].index(code) for code in range(len(firsts))]
    kept = {
        "first": firsts,
        "last": lasts,
        False: [first for first, count in zip(firsts, counts, strict=True) if count == 1],
    }
    for keep, positions in kept.items():
        flags = np.asarray(warphash.duplicated(rows.columns, keep)).tolist()  # type: ignore[arg-type]
        assert flags == [position not in positions for position in range(len(codes))]


@few
@given(data=st.data())
def test_rows_among_others(data: st.DataObject) -> None:
    rows = Rows(data)
    others = Rows(data, rows.kinds)
    equal_nan, invert = data.draw(st.booleans()), data.draw(st.booleans())
    nulls: Any = data.draw(st.sampled_from(["equal", "unequal"]))
    flags = warphash.isin(rows.columns, others.columns, equal_nan=equal_nan, nulls=nulls, invert=invert)
    absent = {NAN: not equal_nan, NULL: nulls == "unequal"}
    expected = [key in others.keys and not any(absent.get(item, False) for item in key) for key in rows.keys]
    assert np.asarray(flags).tolist() == [flag ^ invert for flag in expected]
    assert type(flags).__module__.partition(".")[0] == rows.kinds[0].library


@few
@given(data=st.data())
def test_an_index_of_rows(data: st.DataObject) -> None:
    keys = Rows(data)
    sought = Rows(data, keys.kinds)
    index = warphash.Index(keys.columns)
    assert len(index) == len(keys.keys) and keys.are_taken(index.keys(), list(range(len(index))))
    found = [[at for at, key in enumerate(keys.keys) if key == wanted] for wanted in sought.keys]
    assert np.asarray(index.contains(sought.columns)).tolist() == [bool(each) for each in found]
    positions, missing = index.get_indexer_non_unique(sought.columns)
    assert np.asarray(positions).tolist() == [at for each in found for at in each or [-1]]
    assert np.asarray(missing).tolist() == [at for at, each in enumerate(found) if not each]
    if index.is_unique:
        made = index.get_indexer(sought.columns)
        assert np.asarray(made).tolist() == [each[0] if each else -1 for each in found]


@few
@given(data=st.data())
def test_sets_of_rows(data: st.DataObject) -> None:
    one = Rows(data)
    other = Rows(data, one.kinds)
    firsts, others = one.walked()[0], other.walked()[0]
    common = [at for at in firsts if one.keys[at] in other.keys and NAN not in one.keys[at]]
    only = [at for at in firsts if at not in common]
    only_other = [at for at in others if other.keys[at] not in one.keys or NAN in other.keys[at]]
    arguments = one.columns, other.columns
    assert one.are_taken(warphash.intersect1d(*arguments, sorted=False), common)
    assert one.are_taken(warphash.setdiff1d(*arguments, sorted=False), only)
    keys = [*one.keys, *other.keys]
    for function, expected in (
        (warphash.union1d, list(dict.fromkeys(keys))),
        (warphash.setxor1d, [one.keys[at] for at in only] + [other.keys[at] for at in only_other]),
    ):
        made = function(*arguments, sorted=False)
        assert list(zip(*(map(canonical, items_of(part)) for part in made), strict=True)) == expected
    values, of_first, of_second = warphash.intersect1d(*arguments, return_indices=True)
    assert sorted(np.asarray(of_first).tolist()) == common and one.are_taken(values, np.asarray(of_first).tolist())
    assert [other.keys.index(one.keys[at]) for at in np.asarray(of_first)] == np.asarray(of_second).tolist()


def test_rows_of_other_types_and_in_ascending_order() -> None:
    shops, items = np.array([2, 1, 2, 1]), np.array(["tea", "cup", "cup", "cup"])
    others = (np.array([2.0, 1.5, 1.0], "f4"), ["cup", "cup", "tea"])
    assert warphash.isin((shops, items), (others[0], np.array(others[1]))).tolist() == [False, False, True, False]
    index = warphash.Index((shops[:3], items[:3]))
    assert index.get_indexer((np.array([2**62 + 0.0, 2.0]), np.array(["tea", "tea"], object))).tolist() == [-1, 0]
    assert [part.tolist() for part in warphash.union1d((shops, items), (shops, items))] == [
        [1, 2, 2],
        ["cup", "cup", "tea"],
    ]
    empty = (shops[:0], items[:0])
    assert warphash.isin((shops, items), empty).tolist() == [False] * 4
    assert warphash.Index(empty).get_indexer((shops, items)).tolist() == [-1] * 4
    assert warphash.isin(empty, (shops, items)).tolist() == []


def test_rows_beside_something_else() -> None:
    rows, longer = (np.arange(2), np.arange(2)), (np.arange(2),) * 3
    for call in (
        lambda: warphash.isin(rows, np.arange(2)),
        lambda: warphash.isin([1], rows),
        lambda: warphash.isin(rows, longer),
        lambda: warphash.union1d(rows, [1]),
        lambda: warphash.setdiff1d(rows, longer),
        lambda: warphash.Index(rows).contains([1]),
        lambda: warphash.Index([1]).get_indexer(rows),
    ):
        with pytest.raises(ShapeError, match="of as many columns"):
            call()
    with pytest.raises(warphash.DtypeError, match="at most 16 columns, got 17: name the columns"):
        warphash.Index((np.arange(2),) * 17)
    with pytest.raises(warphash.DtypeError, match="at most 16 columns, got 17: name the columns"):
        warphash.isin((np.arange(2.0),) * 17, (np.arange(2.0),) * 17)


def test_truth_values_of_any_byte() -> None:
    odd = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert warphash.unique((odd, np.zeros(4, "i8")), return_counts=True)[1].tolist() == [1, 3]


def test_matrices_are_numbered_as_their_columns() -> None:
    random = np.random.default_rng(6)
    for dtype in ("i8", "u8", "i4", "M8[s]"):
        rows = random.integers(0, 9, (5_000, 4)).astype(dtype)
        for matrix in (rows, rows.reshape(5_000, 2, 2)):
            values, inverse, counts = warphash.unique(matrix, return_inverse=True, return_counts=True, axis=0)
            expected, _, codes, times = warphash.unique(tuple(rows.T), True, True, True)
            assert np.array_equal(values.reshape(-1, 4), np.stack(expected, 1))
            assert np.array_equal(inverse, codes) and np.array_equal(counts, times)


def test_tuples_of_scalars_of_libraries_are_lists() -> None:
    pandas = pytest.importorskip("pandas")
    times = tuple(pandas.Timestamp(hour) for hour in (1, 2, 1))
    assert len(warphash.unique(times)) == 2
    assert warphash.nunique((np.int64(3), np.int64(3))) == 1
    assert warphash.unique((np.ones((2, 2)), np.ones((2, 2)))).tolist() == [1.0]


@pytest.mark.parametrize("axis", [1, -2, 2])
def test_rows_have_one_axis(axis: int) -> None:
    with pytest.raises(warphash.ParameterError, match=f"axis={axis}"):
        warphash.unique((np.arange(2), np.arange(2)), axis=axis)
    for same in (0, -1):
        assert len(warphash.unique((np.arange(2), np.arange(2)), axis=same)) == 2


def test_ranges_that_have_no_room_together() -> None:
    """Rows so far are numbered, and so is a column of a wide range."""
    random = np.random.default_rng(1)
    wide = [random.integers(-(2**62), 2**62, 30)[random.integers(0, 30, 2000)] for _ in range(4)]
    columns = (*wide, random.integers(0, 3, 2000), wide[0].view("u8"))
    firsts, codes, _ = walked(rows_of(columns))
    values, inverse = warphash.unique(columns, return_inverse=True)
    assert inverse.tolist() == codes and len(values) == 6 and len(values[0]) == len(firsts)


def test_columns_of_several_lengths() -> None:
    with pytest.raises(ShapeError, match="of one length, got 2, 3"):
        warphash.unique((np.arange(2), np.arange(3)))


def test_a_tuple_of_numbers_is_a_list() -> None:
    assert warphash.unique((3, 1, 3)).tolist() == [3, 1]


def test_refused_memory_is_an_error() -> None:
    columns = np.arange(100) // 2, np.array(["a", "b"] * 50)
    for first in range(1, 100):
        with refusing(engine_for("cpu"), first) as refusals:
            try:
                warphash.unique(columns, return_counts=True)
            except MemoryError:
                assert refusals.refused
                continue
        assert not refusals.refused and first > 1
        return
    raise AssertionError("the call still asks for memory")


def test_columns_that_change_meanwhile_break_no_memory() -> None:
    n = 100_000
    columns = tuple(np.random.default_rng(2).integers(0, 50, n) for _ in range(2))

    def change(random: np.random.Generator) -> None:
        columns[0][random.integers(0, n, 500)] = random.integers(-(2**60), 2**60, 500)

    with changed_meanwhile(change):
        for _ in range(5):
            _, inverse = warphash.unique(columns, return_inverse=True)
            assert inverse.min() >= 0 and inverse.max() < n
