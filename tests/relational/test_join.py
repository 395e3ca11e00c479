"""`join` and `Index.join` against plain Python, pandas and DuckDB."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.relational import KINDS, Kind, fitting, items_of, joined, lists_of
from warphash.relational import known

few = settings(max_examples=12)
kinds = pytest.mark.parametrize("kind", KINDS, ids=str)
HOWS = ("inner", "left", "right", "outer", "semi", "anti")
PAIRS_OF_TYPES = list(itertools.product(("int8", "int64", "uint64", "float32", "float64", "bool"), repeat=2))
hows = pytest.mark.parametrize("how", HOWS)


def rows_of(made: Any) -> list[int]:
    return [int(row) for row in items_of(made)]


def assert_joined(made: warphash.JoinIndices, expected: tuple[list[int], list[int] | None]) -> None:
    assert type(made) is warphash.JoinIndices
    assert rows_of(made.left) == expected[0]
    assert made.right is None if expected[1] is None else rows_of(made.right) == expected[1]


def read(kind: Kind, side: Any) -> list[Any]:
    """The items of a side, as its type has them."""
    return side if kind.library == "list" else items_of(side)


# ---- every type
@kinds
@few
@given(data=st.data())
def test_every_join_of_every_type(kind: Kind, data: st.DataObject) -> None:
    ours, others = (data.draw(lists_of(kind)) for _ in range(2))
    nulls: Any = data.draw(st.sampled_from(["unequal", "equal"]))
    left, right = kind.make(ours), kind.make(others)
    ours, others = read(kind, left), read(kind, right)
    for how in HOWS:
        assert_joined(warphash.join(left, right, how, nulls=nulls), joined(ours, others, how, nulls))  # type: ignore[arg-type]


@kinds
@few
@given(data=st.data())
def test_every_join_of_an_index(kind: Kind, data: st.DataObject) -> None:
    ours, others = (data.draw(lists_of(kind)) for _ in range(2))
    left, right = kind.make(ours), kind.make(others)
    index = warphash.Index(right)
    ours, others = read(kind, left), read(kind, right)
    for how in HOWS:
        assert_joined(index.join(left, how), joined(ours, others, how, "equal"))  # type: ignore[arg-type]


@few
@given(st.data())
@pytest.mark.parametrize("dtypes", PAIRS_OF_TYPES, ids=str)
@pytest.mark.filterwarnings("ignore:invalid value")  # of `fitting`
def test_numbers_of_two_types(dtypes: tuple[str, str], data: Any) -> None:
    sides = [data.draw(st.lists(st.sampled_from(fitting(dtype)), max_size=8)) for dtype in dtypes]
    left, right = (np.array(side, dtype) for side, dtype in zip(sides, dtypes, strict=True))
    ours, others = ([item.item() for item in side] for side in (left, right))  # Python compares these exactly
    for how in HOWS:
        assert_joined(warphash.join(left, right, how), joined(ours, others, how, "unequal"))  # type: ignore[arg-type]


@pytest.mark.parametrize("nulls", ["unequal", "equal"])
@few
@given(data=st.data())
def test_rows_of_columns(nulls: Any, data: st.DataObject) -> None:
    pairs = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from(["a", "b", None])), max_size=8)
    floats = [1.0, 0.0, -0.0, math.nan]

    def drawn() -> tuple[Any, list[Any]]:
        rows = data.draw(pairs)
        numbers = [data.draw(st.sampled_from(floats)) for _ in rows]
        columns = (np.array([row[0] for row in rows], np.int16), np.array(numbers, np.float64), texts(rows))
        missing = [row[1] is None or number != number for row, number in zip(rows, numbers, strict=True)]
        keys: list[Any] = [(row[0], number, row[1]) for row, number in zip(rows, numbers, strict=True)]
        if nulls == "unequal":
            keys = [None if gone else key for key, gone in zip(keys, missing, strict=True)]
        return columns, keys

    (left, ours), (right, others) = drawn(), drawn()
    for how in HOWS:
        assert_joined(warphash.join(left, right, how, nulls=nulls), joined(ours, others, how, nulls))  # type: ignore[arg-type]
    if nulls == "equal":
        for how in HOWS:
            assert_joined(warphash.Index(right).join(left, how), joined(ours, others, how, nulls))  # type: ignore[arg-type]


def texts(rows: list[Any]) -> Any:
    column = np.empty(len(rows), object)
    column[:] = [row[1] for row in rows]
    return column


@pytest.mark.parametrize(
    ("left", "right"), [(["a", "b"], [1, 2]), ([1.5], ["1.5"]), ([b"a", b"b"], [1]), ([None, None], [1])]
)
@hows
def test_keys_of_kinds_that_cannot_be_equal(left: list[Any], right: list[Any], how: Any) -> None:
    assert_joined(warphash.join(left, right, how), joined(left, right, how, "unequal"))


@hows
@pytest.mark.parametrize("width", [1, 3])
def test_lists_of_one_length_have_no_partner_of_another(width: int, how: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    pairs = [[k, 1] for k in range(3000)]
    others = [[k] * width for k in range(3000)]
    flat = pa.array([k for other in others for k in other], pa.int32())
    sides = [
        pa.array(pairs, pa.list_(pa.int32(), 2)),
        flat if width == 1 else pa.array(others, pa.list_(pa.int32(), width)),
    ]
    for left, right in (sides, sides[::-1]):
        wanted = joined([("left", k) for k in range(3000)], [("right", k) for k in range(3000)], how, "unequal")
        assert_joined(warphash.join(left, right, how), wanted)


# ---- sizes and ways
def generated(rows: int, keys: int, spread: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, keys, rows) * spread


SIDES = {
    "dense": (generated(70_000, 60_000, 1, 1), np.random.default_rng(2).permutation(50_000)),
    "dense, negative": (
        generated(70_000, 60_000, 1, 1) - 30_000,
        np.random.default_rng(2).permutation(50_000) - 25_000,
    ),
    "sparse": (generated(70_000, 60_000, 2**45 + 1, 1), np.random.default_rng(2).permutation(50_000) * (2**45 + 1)),
    "dense, repeated": (generated(40_000, 20_000, 1, 1), generated(40_000, 20_000, 1, 2)),
    "sparse, repeated": (generated(40_000, 20_000, 2**45 + 1, 1), generated(40_000, 20_000, 2**45 + 1, 2)),
    "few right": (generated(70_000, 60_000, 1, 1), np.array([5, 7, 5])),
    "few left": (np.array([5, 7, 5]), generated(70_000, 60_000, 1, 1)),
    "uint8": (generated(70_000, 200, 1, 1).astype("u1"), np.arange(100, dtype="u1")),
    "int32": (generated(70_000, 60_000, 1, 1).astype("i4") - 30_000, np.arange(-20_000, 20_000, dtype="i4")),
    "one heavy key": (
        np.where(generated(20_000, 400, 1, 1) < 2, 7, generated(20_000, 90_000, 1, 3)),
        np.where(generated(20_000, 9, 1, 4) < 1, 7, generated(20_000, 80_000, 1, 5)),
    ),
    "all rows match": (generated(70_000, 50_000, 3, 1), np.arange(50_000) * 3),
    "no row matches": (generated(70_000, 50_000, 3, 1) + 1, np.arange(50_000) * 3),
}


def merged(left: Any, right: Any, how: str) -> tuple[list[int], list[int]]:
    """The same by pandas, in our order."""
    pandas = importlib.import_module("pandas")
    frames = [pandas.DataFrame({"key": side, name: np.arange(len(side))}) for side, name in ((left, "i"), (right, "j"))]
    made = frames[0].merge(frames[1], on="key", how=how)
    i, j = (made[name].fillna(-1).to_numpy(np.int64) for name in ("i", "j"))
    order = np.lexsort((i, j) if how == "right" else (j, i, i < 0))
    return i[order].tolist(), j[order].tolist()


@pytest.mark.skipif(not importlib.util.find_spec("pandas"), reason="needs pandas")
@pytest.mark.parametrize("how", HOWS[:4])
@pytest.mark.parametrize("sides", SIDES.values(), ids=SIDES)
def test_many_rows_beside_pandas(sides: Any, how: Any) -> None:
    expected = merged(*sides, how)
    assert_joined(warphash.join(*sides, how), expected)
    assert_joined(warphash.Index(sides[1]).join(sides[0], how), expected)


@pytest.mark.parametrize("sides", SIDES.values(), ids=SIDES)
def test_semi_and_anti_of_many_rows(sides: Any) -> None:
    is_there = np.isin(*sides)
    for how, flags in (("semi", is_there), ("anti", ~is_there)):
        for made in (warphash.join(*sides, how), warphash.Index(sides[1]).join(sides[0], how)):  # type: ignore[arg-type]
            assert_joined(made, (np.flatnonzero(flags).tolist(), None))


@pytest.mark.skipif(not importlib.util.find_spec("duckdb"), reason="needs DuckDB")
@pytest.mark.parametrize("nulls", ["unequal", "equal"])
@hows
def test_nulls_beside_duckdb(how: Any, nulls: Any) -> None:
    duckdb, pyarrow = (importlib.import_module(name) for name in ("duckdb", "pyarrow"))
    generator = np.random.default_rng(3)

    def side(name: str) -> Any:
        keys = [None if key % 11 == 0 else f"key {key}" for key in generator.integers(0, 200, 300).tolist()]
        return pyarrow.table({"key": pyarrow.array(keys), name: np.arange(300)})

    left, right = side("i"), side("j")
    sql = duckdb.connect()
    sql.register("left_side", left)
    sql.register("right_side", right)
    equal = "is not distinct from" if nulls == "equal" else "="
    columns = "i" if how in ("semi", "anti") else "i, j"
    kind = "full" if how == "outer" else how
    rows = sql.sql(f"select {columns} from left_side {kind} join right_side on left_side.key {equal} right_side.key")
    pairs = sorted(tuple(-1 if row is None else row for row in pair) for pair in rows.fetchall())
    made = warphash.join(left["key"], right["key"], how, nulls=nulls)
    columns_made = [rows_of(part) for part in made if part is not None]
    assert sorted(zip(*columns_made, strict=True)) == pairs


@hows
@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["i8", "f4", "U3", "V24", object])
def test_empty_sides(how: Any, sizes: tuple[int, int], dtype: Any) -> None:
    left, right = (np.zeros(size, dtype) for size in sizes)
    if dtype is object:
        left, right = (np.array(["text"] * size, object) for size in sizes)
    for made in (warphash.join(left, right, how), warphash.Index(right).join(left, how)):
        assert_joined(made, joined([0] * sizes[0], [0] * sizes[1], how, "equal"))


@hows
def test_empty_lists_of_numbers(how: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    keys = pa.array([], pa.list_(pa.float64(), 2))
    assert_joined(warphash.join(keys, keys, how), joined([], [], how, "equal"))


def test_more_pairs_than_memory_has_room_for() -> None:
    same = np.zeros(50_000, np.int64)
    free = warphash.join(same, same, "semi").left
    assert free.tolist() == list(range(50_000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warphash.relational.pairs.available_bytes", lambda: 2**30)
        with pytest.raises(MemoryError, match=r"2,500,000,000 pairs, for which it takes 40,000,000,000 bytes"):
            warphash.join(same, same)
        with pytest.raises(MemoryError, match=r"2,500,000,000 pairs, for which it takes 20,000,000,000 bytes"):
            warphash.join(same, same, index_dtype="int32")


@pytest.mark.parametrize(("how", "steps"), [("inner", 1), ("left", 1), ("outer", 2), ("right", 3)])
def test_each_step_asks_for_room(how: Any, steps: int) -> None:
    """A step is refused before it takes memory, whatever the steps before it have taken."""
    same = np.zeros(3_000, np.int32)
    for asked in range(1, steps + 2):
        free = iter([2**40] * (asked - 1) + [2**20] * steps)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warphash.relational.pairs.available_bytes", lambda free=free: next(free))
            if asked > steps:
                assert len(warphash.join(same, same, how).left) == 9_000_000
            else:
                with pytest.raises(MemoryError, match=r"9,000,000 pairs, .* 1,048,576 are available"):
                    warphash.join(same, same, how)


def test_pairs_of_one_heavy_key() -> None:
    left, right = np.zeros(3_000, np.int64), np.zeros(2_000, np.int64)
    made = warphash.join(left, right, index_dtype="int32")
    assert np.array_equal(made.left, np.repeat(np.arange(3_000), 2_000))
    assert np.array_equal(made.right, np.tile(np.arange(2_000), 3_000))


# ---- order and type of rows
@hows
@pytest.mark.parametrize("sides", SIDES.values(), ids=SIDES)
def test_rows_of_32_bits(sides: Any, how: Any) -> None:
    narrow, wide = (warphash.join(*sides, how, index_dtype=dtype) for dtype in ("int32", None))
    for made, expected in zip(narrow, wide, strict=True):
        if expected is not None:
            assert (made.dtype, expected.dtype) == (np.int32, np.int64) and np.array_equal(made, expected)


@hows
@pytest.mark.parametrize("sides", SIDES.values(), ids=SIDES)
def test_any_order_has_the_same_pairs(sides: Any, how: Any) -> None:
    made, expected = (warphash.join(*sides, how, order=order) for order in ("any", "left"))  # type: ignore[arg-type]
    assert sorted(zip(*(part for part in made if part is not None), strict=True)) == sorted(
        zip(*(part for part in expected if part is not None), strict=True)
    )


def test_rows_come_in_the_library_of_the_left_side() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    made = warphash.join(pyarrow.array([1, 2]), np.array([2, 2]))
    assert made.left.equals(pyarrow.array([1, 1])) and made.right.equals(pyarrow.array([0, 1]))
    assert type(warphash.join([1, 2], pyarrow.array([2])).left) is np.ndarray


# ---- wrong arguments
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"how": "cross"}, "how must be one of 'inner', 'left', 'right', 'outer', 'semi', 'anti', got 'cross'"),
        ({"nulls": "drop"}, "nulls must be 'unequal' or 'equal', got 'drop'"),
        ({"validate": "one_to_one"}, "validate must be '1:1', '1:m', 'm:1', 'm:m' or None, got 'one_to_one'"),
        ({"order": "right"}, "order must be 'left' or 'any', got 'right'"),
        ({"index_dtype": "uint32"}, "index_dtype must be 'int32' or 'int64'"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(warphash.ParameterError, match=message):
        warphash.join([1], [1], **wrong)


@pytest.mark.parametrize(
    ("left", "right", "validate", "message"),
    [
        ([3, 5, 4, 5, 3], [1], "1:m", "expected left keys that differ, and row 3 repeats the key of row 1, which is 5"),
        ([3, 5, 4, 5], [1], "1:1", "expected left keys that differ, and row 3 repeats the key of row 1, which is 5"),
        ([1, 1], ["a", "b", "a"], "m:1", "right keys that differ, and row 2 repeats the key of row 0, which is a"),
        ([1], [2, 2], "1:1", "expected right keys that differ, and row 1 repeats the key of row 0, which is 2"),
    ],
)  # fmt: skip
@hows
def test_keys_that_repeat_against_validate(left: Any, right: Any, validate: Any, message: str, how: Any) -> None:
    with pytest.raises(warphash.ParameterError, match=message):
        warphash.join(left, right, how, validate=validate)


@hows
@pytest.mark.parametrize("repeated", [0, 1, 2_000], ids=["unique", "one repeats", "many repeat"])
@pytest.mark.parametrize("types", [("int64", "int64"), ("int32", "uint64")], ids=str)
def test_many_rows_of_integers(types: tuple[str, str], repeated: int, how: Any, rng: np.random.Generator) -> None:
    """Rows of integers are one key. They go to their table in pieces, and a sample tells whether to try that first."""
    n, shift = 5_000, 2**31 - 2_500
    ids = np.concatenate([np.arange(n), rng.integers(0, n, repeated)])
    other = [(ids % 71 + shift).astype("int64"), (ids // 71).astype("int64")]
    asked = rng.integers(-n, 2 * n, 8_000)
    asked = [(asked % 71 + shift - asked % 2).astype("int64"), (asked // 71).clip(0)]
    left = tuple(column.astype(kind) for column, kind in zip(asked, ("int64", types[1]), strict=True))
    right = tuple(column.astype(kind) for column, kind in zip(other, ("int64", types[0]), strict=True))
    with mock.patch.object(known, "_WORDS_AT_ONCE", 700):
        made = warphash.join(left, right, how)
        found = warphash.Index(right).get_indexer(left) if not repeated else None
    rows, others = [list(zip(*(column.tolist() for column in side), strict=True)) for side in (left, right)]
    assert_joined(made, joined(rows, others, how, "unequal"))
    if found is not None:
        places = {row: place for place, row in enumerate(others)}
        assert found.tolist() == [places.get(row, -1) for row in rows]


@hows
@pytest.mark.parametrize("span", [8, 20], ids=["words differ", "words are shared"])
def test_rows_of_integers_that_share_a_word(span: int, how: Any, rng: np.random.Generator) -> None:
    """Whichever rows have one word, on both sides or on one, rows are compared."""

    def words(arrays: Any, factors: Any) -> Any:
        return (arrays[0].astype("int64") % 8).astype("uint64")

    right = (np.arange(span), np.arange(span) % 3)
    left = (rng.integers(0, 2 * span, 500), rng.integers(0, 3, 500))
    with mock.patch.object(known, "_as_words", words):
        made = warphash.join(left, right, how)
        numbers = warphash.Index(right).get_indexer(left).tolist()
    rows, others = [list(zip(*(column.tolist() for column in side), strict=True)) for side in (left, right)]
    assert_joined(made, joined(rows, others, how, "unequal"))
    assert numbers == [others.index(row) if row in others else -1 for row in rows]
    assert -1 in numbers and len(set(numbers)) > span // 2


def test_words_of_rows_differ() -> None:
    """Also of rows whose items differ in high bits alone, and of rows of the same items in another order."""
    factors = known.random_words(2, 5) | np.uint64(1)
    items = np.arange(300)
    for step in (1, 1 << 20, 1 << 40, 1 << 54):
        sides = [each.reshape(-1) * step for each in np.meshgrid(items, items)]
        assert len(np.unique(known._as_words(sides, factors))) == 300 * 300


def test_rows_of_integers_with_nulls_on_one_side() -> None:
    pandas = pytest.importorskip("pandas")
    right = tuple(np.arange(5_000) // part % 97 for part in (97, 1))
    left = tuple(pandas.array([3, None, 4], "Int64") for _ in range(2))
    for nulls in ("equal", "unequal"):
        assert_joined(warphash.join(left, right, nulls=nulls), ([0, 2], [3 * 97 + 3, 4 * 97 + 4]))  # type: ignore[arg-type]


def test_validated_keys() -> None:
    assert_joined(warphash.join([1, 1], [1], validate="m:1"), ([0, 1], [0, 0]))
    assert_joined(warphash.join([1], [1, 1], validate="1:m"), ([0, 0], [0, 1]))
    assert_joined(warphash.join([1, 2], [2], validate="1:1"), ([1], [0]))
    assert_joined(warphash.join([1, 1], [1, 1], validate="m:m"), ([0, 0, 1, 1], [0, 1, 0, 1]))
    missing = np.array([np.nan, np.nan])  # equal nothing, so they repeat nothing
    assert_joined(warphash.join(missing, [1.0], validate="1:1"), ([], []))
    with pytest.raises(warphash.ParameterError, match="row 1 repeats the key of row 0, which is nan"):
        warphash.join(missing, [1.0], nulls="equal", validate="1:1")
    columns = (np.array([1, 1, 1]), np.array(["a", "b", "a"], object))
    with pytest.raises(warphash.ParameterError, match=r"row 2 repeats the key of row 0, which is \(.*1.*, 'a'\)"):
        warphash.join(columns, columns, validate="1:m")


@hows
def test_rows_beside_single_columns(how: Any) -> None:
    columns = (np.arange(3), np.arange(3))
    for left, right in ((columns, columns[0]), (columns[0], columns), (columns, (*columns, columns[0]))):
        with pytest.raises(warphash.ShapeError, match="give both in one form"):
            warphash.join(left, right, how)


# ---- few of the left keys are there: a filter comes before the probe
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("hits", [0, 0.05, 0.5])
def test_few_hits_of_many_rows(dtype: str, twice: bool, hits: float) -> None:
    random, n, count = np.random.default_rng(7), 300_000, 4_000
    pool = random.permutation(1 << 20)[: 3 * count].astype(dtype) * 997  # too far apart for a place each
    right, absent = pool[:count], pool[count:]
    left = np.where(
        random.random(n) < hits, right[random.integers(0, count, n)], absent[random.integers(0, 2 * count, n)]
    )
    right = np.repeat(right, 2) if twice else right
    made = warphash.join(left, right)
    rows = {key: np.flatnonzero(right == key).tolist() for key in set(left.tolist()) & set(right.tolist())}
    expected = [(row, other) for row, key in enumerate(left.tolist()) for other in rows.get(key, ())]
    assert list(zip(made.left.tolist(), made.right.tolist(), strict=True)) == expected
    found = warphash.Index(right).join(left, index_dtype="int32")
    assert found.left.dtype == np.int32
    assert np.array_equal(found.left, made.left)
    if not twice:
        assert np.array_equal(warphash.Index(right).get_indexer(left) >= 0, np.isin(left, right))


def test_few_hits_of_rows_with_nan_and_nulls() -> None:
    random, n = np.random.default_rng(8), 200_000
    left = random.integers(1 << 40, 1 << 50, n).astype(float)
    right = np.array([*left[:100], np.nan, np.nan])
    left[5] = np.nan
    assert warphash.join(left, right).left.tolist() == [row for row in range(100) if row != 5]
    made = warphash.join(left, right, nulls="equal")
    assert made.left.tolist() == [*range(6), 5, *range(6, 100)]
    assert made.right.tolist() == [*range(5), 100, 101, *range(6, 100)]
