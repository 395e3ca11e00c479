"""The verbs on streams, beside plain Python: sources, budgets, types of keys, orders."""

from __future__ import annotations

import decimal
import io
import operator
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warphash
from stream import plain
from stream.plain import KEYS, SOURCES, drawn, rows_of
from warphash import stream

BUDGETS = {"fits": "1GB", "parts": 120_000, "tiny": 30_000}
"""Of 1,000 rows: all in memory, in files of one level, and of several levels."""

kinds = pytest.mark.parametrize("kind", KEYS)
sources = pytest.mark.parametrize("source", SOURCES)
budgets = pytest.mark.parametrize("budget", BUDGETS)


@pytest.fixture
def spills(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which paths were made for spill files."""
    made = []
    path = stream.spill.SpillFolder.path

    def noted(self: Any) -> Any:
        made.append(path(self))
        return made[-1]

    monkeypatch.setattr(stream.spill.SpillFolder, "path", noted)
    return made


ON = {"k": operator.itemgetter(0), "ks": operator.itemgetter(0, 1)}


def key_of(on: str) -> Any:
    return (lambda row: row[:1]) if on == "k" else (lambda row: row[:2])


def rows_in(table: pa.Table) -> list[plain.Row]:
    return [tuple(_hashable(item) for item in row) for row in rows_of(table)]


def _hashable(item: Any) -> Any:
    return tuple(item.items()) if isinstance(item, dict) else item


@kinds
@budgets
@pytest.mark.parametrize("on", ["k", "ks"])
def test_unique(kind: str, budget: str, on: str) -> None:
    table = drawn(kind, 1000)
    made = stream.unique(table.to_reader(70), list(on), memory=BUDGETS[budget])
    assert rows_in(made) == list(dict.fromkeys(map(key_of(on), rows_in(table))))


@kinds
@budgets
@pytest.mark.parametrize("on", ["k", "ks"])
def test_count(kind: str, budget: str, on: str) -> None:
    table = drawn(kind, 1000)
    made = stream.count(table.to_reader(70), list(on), memory=BUDGETS[budget])
    assert rows_in(made) == plain.counted(rows_in(table), key_of(on))


@kinds
@budgets
@pytest.mark.parametrize("on", ["k", "ks"])
@pytest.mark.parametrize("keep", ["first", "last", False])
def test_dedupe(kind: str, budget: str, on: str, keep: Any) -> None:
    table = drawn(kind, 1000)
    made = stream.dedupe(table.to_reader(70), list(on), keep, memory=BUDGETS[budget])
    assert rows_in(made) == plain.kept(rows_in(table), key_of(on), keep)


@sources
@budgets
@pytest.mark.parametrize("verb", ["unique", "count", "dedupe", "group_by", "join"])
def test_sources(source: str, budget: str, verb: str, tmp_path: Path) -> None:
    table = drawn("string", 1000)
    rows, src, memory = rows_in(table), SOURCES[source](table, tmp_path), BUDGETS[budget]
    key = key_of("k")
    if verb == "unique":
        assert rows_in(stream.unique(src, "k", memory=memory)) == list(dict.fromkeys(map(key, rows)))
    elif verb == "count":
        assert rows_in(stream.count(src, "k", memory=memory)) == plain.counted(rows, key)
    elif verb == "dedupe":
        assert rows_in(stream.dedupe(src, "k", memory=memory)) == plain.kept(rows, key, "first")
    elif verb == "group_by":
        sums: dict[Any, int] = {}
        for row in rows:
            sums[row[0]] = sums.get(row[0], 0) + row[2]
        assert rows_in(stream.group_by(src, "k", {"sum": ("v", "sum")}, memory=memory)) == list(sums.items())
    else:
        other = drawn("string", 60, seed=2).rename_columns(["k", "t", "w"])
        made = stream.join(src, SOURCES[source](other, tmp_path), "k", "left", memory=memory)
        assert rows_in(made) == plain.joined(rows, rows_in(other), key, lambda row: row[1:], "left", "unequal")


@budgets
def test_what_lies_under_nulls_is_no_key(budget: str) -> None:
    numbers = np.random.default_rng(1).integers(0, 1 << 60, 900)
    keys = pa.array(numbers, mask=np.arange(900) % 3 == 0)
    wanted = list(dict.fromkeys((key,) for key in keys.to_pylist()))
    assert rows_of(stream.unique(pa.table({"k": keys}), memory=BUDGETS[budget])) == wanted


@budgets
def test_what_is_spilled(budget: str, spills: list[str], tmp_path: Path) -> None:
    path = SOURCES["path"](drawn("int64", 3000), tmp_path)
    assert len(rows_of(stream.dedupe(path, ["k", "s"], memory=BUDGETS[budget]))) > 1000
    assert bool(spills) == (budget != "fits")


HOWS = ("inner", "left", "right", "outer", "semi", "anti")
SIZES = {"few": (60, 700), "many": (900, 80), "both": (300, 300)}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("nulls", ["unequal", "equal"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind", ["int64", "float64", "string", "dictionary", "numbers", "zoned", "decimal"])
@pytest.mark.parametrize("budget", ["fits", "parts"])
@pytest.mark.parametrize("on", ["k", "ks"])
def test_join(how: Any, nulls: Any, sizes: str, kind: str, budget: str, on: str) -> None:
    n, m = SIZES[sizes]
    left, right = drawn(kind, n), drawn(kind, m, seed=2).rename_columns(["k", "s", "w"])
    if on == "k":
        right = right.rename_columns(["k", "t", "w"])
    made = stream.join(left, right.to_reader(50), list(on), how, nulls=nulls, memory=BUDGETS[budget])
    wanted = plain.joined(rows_of(left), rows_of(right), key_of(on), lambda row: row[len(on) :], how, nulls)
    assert rows_of(made) == wanted


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("memory", ["1GB", 2_000_000])
@pytest.mark.parametrize("span", [10_000, 400_000])
def test_join_of_many_rows(how: Any, memory: Any, span: int) -> None:
    """Most rows have a partner, or few: then a filter leaves the others out."""
    chance = random.Random(1)
    left, right = ([(chance.randrange(span), chance.randrange(2), n) for n in range(size)] for size in (30_000, 12_000))
    sides = [
        pa.table(dict(zip(("a", "b", name), zip(*rows, strict=True), strict=True)))
        for rows, name in ((left, "v"), (right, "w"))
    ]
    places: dict[Any, list[int]] = {}
    for row in right:
        places.setdefault(row[:2], []).append(row[2])
    seen = {row[:2] for row in left}
    pairs = [(*row, place) for row in left for place in places.get(row[:2], [])]
    lacking = [row for row in left if row[:2] not in places]
    alone = [row for row in right if row[:2] not in seen]
    wanted = {
        "inner": pairs,
        "left": sorted([*pairs, *((*row, None) for row in lacking)], key=operator.itemgetter(2)),
        "right": sorted([*pairs, *((*row[:2], None, row[2]) for row in alone)], key=operator.itemgetter(3)),
        "semi": [row for row in left if row[:2] in places],
        "anti": lacking,
    }
    wanted["outer"] = [*wanted["left"], *((*row[:2], None, row[2]) for row in alone)]
    assert rows_of(stream.join(*sides, ["a", "b"], how, memory=memory)) == wanted[how]


TYPES = [
    (pa.int64(), pa.float64()),
    (pa.int32(), pa.uint64()),
    (pa.float32(), pa.float64()),
    (pa.string(), pa.large_string()),
    (pa.dictionary(pa.int16(), pa.string()), pa.string()),
    (pa.timestamp("s", "UTC"), pa.timestamp("ns", "Europe/Berlin")),
    (pa.date32(), pa.date64()),
    (pa.date32(), pa.timestamp("ns", "UTC")),
    (pa.date64(), pa.timestamp("s")),
    (pa.duration("s"), pa.duration("us")),
    (pa.time32("s"), pa.time64("ns")),
    (pa.decimal128(20, 0), pa.decimal256(50, 0)),
    (pa.decimal128(30, 2), pa.decimal128(38, 4)),
    (pa.decimal128(30, 3), pa.decimal256(50, 1)),
    (pa.binary(), pa.large_binary()),
    (pa.bool_(), pa.int64()),
]


@pytest.mark.parametrize("types", TYPES, ids=lambda types: f"{types[0]}-{types[1]}")
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("how", ["inner", "left", "semi"])
def test_keys_of_two_types_meet(types: tuple[Any, Any], swapped: bool, how: Any) -> None:
    """What `merge` finds equal is in one part."""
    is_flag = pa.types.is_boolean(types[0])
    n = 60 if is_flag else 400
    texts = [str(k % 2 if is_flag else k) for k in range(n)]
    sides = []
    for type_, name in zip(reversed(types) if swapped else types, "vw", strict=True):
        plain_type = type_.value_type if pa.types.is_dictionary(type_) else type_
        keys = pa.array(texts)
        if not (pa.types.is_string(plain_type) or pa.types.is_large_string(plain_type)):
            keys = keys.cast(pa.binary()) if "binary" in str(plain_type) else keys.cast(pa.int64())
            if pa.types.is_time32(plain_type) or pa.types.is_time64(plain_type):
                keys = keys.cast(pa.int32()).cast(pa.time32("s"))
            elif any(map(pa.types.is_date, types)):
                keys = keys.cast(pa.int32()).cast(pa.date32())
            elif pa.types.is_temporal(plain_type):
                unit = pa.duration("s") if pa.types.is_duration(plain_type) else pa.timestamp("s")
                keys = keys.cast(unit)
        sides.append(pa.table({"k": keys.cast(plain_type).cast(type_), name: range(n)}))
    wanted = warphash.merge(*sides, how, on="k")
    made = stream.join(*sides, "k", how, memory=20_000).read_all()
    assert made.schema.equals(wanted.schema)
    assert rows_of(made) == rows_of(wanted)
    assert len(made) >= n


FIELDS = {
    "int32": lambda texts: pa.array(map(int, texts), pa.int32()),
    "float64": lambda texts: pa.array(map(float, texts), pa.float64()),
    "dictionary": lambda texts: pa.array(map(int, texts)).dictionary_encode(),
}


@pytest.mark.parametrize("left", FIELDS)
@pytest.mark.parametrize("right", FIELDS)
def test_structs_of_two_types_meet(left: str, right: str) -> None:
    texts = [str(k) for k in range(400)]
    sides = [
        pa.table({"k": pa.StructArray.from_arrays([FIELDS[kind](texts)], ["x"]), name: range(400)})
        for kind, name in ((left, "v"), (right, "w"))
    ]
    made = stream.join(*sides, "k", memory=20_000).read_all()
    assert made["v"].to_pylist() == made["w"].to_pylist() == list(range(400))


FOLDED = ("size", "count", "sum", "prod", "min", "max", "mean", "first", "last", "any", "all")
OTHERS = ("median", "var", "std", "nunique", "argmin", "argmax")


@budgets
@pytest.mark.parametrize("operation", [*FOLDED, *OTHERS])
@pytest.mark.parametrize("column", ["whole", "real", "flag", "nothing"])
def test_group_by(operation: str, budget: str, column: str) -> None:
    """Numbers are such that their sums are exact, so the order of sums is of no matter."""
    table = drawn("int64", 1500)
    numbers = [None if k % 7 == 0 else k % 5 - 2 for k in range(1500)]
    real = [None if number is None else number / 4 for number in numbers]
    flags = [None if number is None else number > 0 for number in numbers]
    table = table.append_column("whole", pa.array(numbers, pa.int16())).append_column("real", pa.array(real))
    table = table.append_column("flag", pa.array(flags)).append_column("nothing", pa.nulls(1500))
    asked = "size" if operation == "size" else (column, operation)
    made = stream.group_by(table.to_reader(90), ["k", "s"], {"a": asked}, memory=BUDGETS[budget]).read_all()
    wanted = warphash.group_by(table, ["k", "s"]).agg(a=asked)
    assert made.schema.equals(wanted.schema)
    groups: dict[Any, list[Any]] = {}
    places: dict[Any, list[int]] = {}
    for place, row in enumerate(rows_of(table.select(["k", "s", column]))):
        groups.setdefault(row[:2], []).append(row[2])
        places.setdefault(row[:2], []).append(place)
    rows = rows_of(made)
    assert [row[:2] for row in rows] == list(groups)
    for row in rows:
        answer, expected = row[2], ANSWERS[operation](groups[row[:2]], places[row[:2]])
        assert answer == (pytest.approx(expected) if isinstance(expected, float) else expected)


@budgets
@pytest.mark.parametrize("operation", ["sum", "mean", "min", "max", "first", "last", "count", "nunique", "argmax"])
@pytest.mark.parametrize("type_", [pa.decimal128(9, 2), pa.decimal128(30, 2), pa.decimal256(60, 2)], ids=str)
def test_group_by_of_decimal_numbers(operation: str, budget: str, type_: Any) -> None:
    top = 10 ** (type_.precision - 4)
    values = [None if k % 7 == 0 else decimal.Decimal(k * top // 900 - top // 2) for k in range(900)]
    table = pa.table({"k": [k % 130 for k in range(900)], "v": pa.array(values, type_)})
    made = stream.group_by(table.to_reader(90), "k", {"a": ("v", operation)}, memory=BUDGETS[budget]).read_all()
    wanted = warphash.group_by(table, "k").agg(a=("v", operation))
    assert made.schema.equals(wanted.schema)
    assert rows_of(made) == [
        (k, pytest.approx(answer) if isinstance(answer, float) else answer) for k, answer in rows_of(wanted)
    ]


@budgets
@pytest.mark.parametrize("operation", ["first", "last", "count"])
def test_group_by_of_lists_and_structs(operation: str, budget: str) -> None:
    items = [None if k % 7 == 0 else [str(k)] * (k % 3) for k in range(900)]
    table = pa.table({"k": [k % 130 for k in range(900)], "v": items, "s": [{"x": item} for item in items]})
    for name in "vs":
        made = stream.group_by(table.to_reader(90), "k", {"a": (name, operation)}, memory=BUDGETS[budget]).read_all()
        assert made.equals(warphash.group_by(table, "k").agg(a=(name, operation)))


def _values(items: list[Any]) -> list[Any]:
    return [item for item in items if item is not None]


def _of(function: Any, least: int = 1) -> Any:
    def answer(items: list[Any], places: list[int]) -> Any:
        values = _values(items)
        return function(values) if len(values) >= least else None

    return answer


def _var(values: list[Any]) -> float:
    mean = sum(values) / len(values)
    return float(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _prod(values: list[Any]) -> Any:
    made: Any = 1
    for value in values:
        made *= value
    return made


def _median(values: list[Any]) -> float:
    values = sorted(values)
    return float(values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def _position(pick: Any) -> Any:
    def answer(items: list[Any], places: list[int]) -> Any:
        values = [(item, place) for item, place in zip(items, places, strict=True) if item is not None]
        best = pick((item for item, _ in values), default=None)
        return next((place for item, place in values if item == best), None)

    return answer


ANSWERS: dict[str, Any] = {
    "size": lambda items, places: len(items),
    "count": lambda items, places: len(_values(items)),
    "sum": _of(sum, 0),
    "prod": _of(_prod, 0),
    "min": _of(min),
    "max": _of(max),
    "mean": _of(lambda values: sum(values) / len(values)),
    "first": _of(operator.itemgetter(0)),
    "last": _of(operator.itemgetter(-1)),
    "any": _of(any, 0),
    "all": _of(all, 0),
    "median": _of(_median),
    "var": _of(_var, 2),
    "std": _of(lambda values: _var(values) ** 0.5, 2),
    "nunique": _of(lambda values: len(set(values)), 0),
    "argmin": _position(min),
    "argmax": _position(max),
}


def test_one_heavy_key_fits_where_states_fold() -> None:
    table = pa.table({"k": [7] * 5000 + [8], "v": range(5001)})
    assert rows_of(stream.count(table, "k", memory=40_000)) == [(7, 5000), (8, 1)]
    assert rows_of(stream.dedupe(table, "k", "last", memory=40_000)) == [(7, 4999), (8, 5000)]
    assert rows_of(stream.group_by(table, "k", {"a": ("v", "sum")}, memory=40_000)) == [(7, 4999 * 2500), (8, 5000)]


def test_one_heavy_key_is_an_error_where_its_rows_are_needed() -> None:
    table = pa.table({"k": [7] * 5000 + [8], "v": range(5001)})
    with pytest.raises(MemoryError, match=r"rows with one key.*give more memory="):
        stream.group_by(table, "k", {"a": ("v", "median")}, memory=40_000).read_all()


@pytest.mark.parametrize("how", HOWS)
def test_one_heavy_key_on_both_sides_of_a_join(how: Any) -> None:
    """In blocks: pairs of one row lie in several runs."""
    left = pa.table({"k": [*range(9), *[7] * 40], "v": range(49)})
    right = pa.table({"k": [*[7] * 700, 3, 12], "w": range(702)})
    made = stream.join(left, right, "k", how, memory=30_000)
    wanted = plain.joined(rows_of(left), rows_of(right), lambda row: row[:1], lambda row: row[1:], how, "unequal")
    assert rows_of(made) == wanted


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("empty", ["left", "right", "both"])
def test_a_side_without_rows(how: Any, empty: str) -> None:
    table = pa.table({"k": [3, 4], "v": [1, 2]})
    left = table[:0] if empty in ("left", "both") else table
    right = (table[:0] if empty in ("right", "both") else table).rename_columns(["k", "w"])
    assert rows_of(stream.join(left, right, "k", how)) == rows_of(warphash.merge(left, right, how, on="k"))


@pytest.mark.parametrize("budget", ["fits", "parts"])
def test_names_of_the_answer_of_a_join(budget: str) -> None:
    left = pa.table({"v": range(900), "a": range(900), "row": range(900)})
    right = pa.table({"b": range(0, 1800, 2), "v": range(900), "key0": range(900)})
    rules: dict[str, Any] = {"left_on": "a", "right_on": "b", "suffixes": ("_l", "_r")}
    wanted = warphash.merge(left, right, "outer", **rules)
    made = stream.join(left, right, how="outer", **rules, memory=BUDGETS[budget]).read_all()
    assert made.equals(wanted)


@pytest.mark.parametrize("verb", ["unique", "count", "dedupe"])
def test_a_source_without_rows(verb: str) -> None:
    table = pa.table({"a": pa.array([], pa.int64())})
    assert getattr(stream, verb)(table, memory=100).read_all().num_rows == 0


def test_out_is_a_file_with_the_rows(tmp_path: Path) -> None:
    table, path = drawn("string", 900), tmp_path / "out.parquet"
    assert stream.dedupe(table, "k", out=path, memory=90_000) == len(pq.read_table(path))
    assert rows_of(pq.read_table(path)) == plain.kept(rows_of(table), key_of("k"), "first")
    with pytest.raises(warphash.ParameterError, match=r"out= to be a path \.parquet, got 'a\.csv'"):
        stream.dedupe(table, "k", out="a.csv")


def test_a_file_may_be_replaced_by_what_is_made_of_it(tmp_path: Path) -> None:
    path = SOURCES["path"](drawn("int64", 900), tmp_path)
    wanted = plain.kept(rows_of(pq.read_table(path)), key_of("k"), "first")
    stream.dedupe(path, "k", out=path, memory=90_000)
    assert rows_of(pq.read_table(path)) == wanted


cells = st.one_of(st.none(), st.integers(-3, 3), st.just(2**53 + 1))
words = st.one_of(st.none(), st.text("ab\0", max_size=12))
rows = st.lists(st.tuples(cells, words), max_size=60)
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
memories = st.sampled_from([1_000, 10_000, 1_000_000])


def _table(given_rows: list[Any], *names: str) -> pa.Table:
    columns = {"a": pa.array([row[0] for row in given_rows], pa.int64())}
    columns["b"] = pa.array([row[1] for row in given_rows], pa.string())
    columns[names[0]] = pa.array(range(len(given_rows)), pa.int64())
    return pa.table(columns)


@few
@given(rows, memories, st.sampled_from(["first", "last", False]), st.integers(1, 9))
def test_dedupe_of_any_rows(given_rows: list[Any], memory: int, keep: Any, size: int) -> None:
    table = _table(given_rows, "v")
    made = stream.dedupe(table.to_reader(size), ["a", "b"], keep, memory=memory)
    assert rows_of(made) == plain.kept(rows_of(table), lambda row: row[:2], keep)


@few
@given(rows.filter(len), rows.filter(len), memories, st.sampled_from(HOWS), st.sampled_from(["unequal", "equal"]))
def test_join_of_any_rows(left: list[Any], right: list[Any], memory: int, how: Any, nulls: Any) -> None:
    sides = _table(left, "v"), _table(right, "w")
    made = stream.join(*sides, ["a", "b"], how, nulls=nulls, memory=memory)
    wanted = plain.joined(*map(rows_of, sides), lambda row: row[:2], lambda row: row[2:], how, nulls)
    assert rows_of(made) == wanted


REFUSALS = [
    (lambda: stream.unique(5), warphash.DtypeError, "expected paths of Parquet files"),
    (lambda: stream.unique(iter([])), warphash.ParameterError, "at least one path or batch, got an empty list_iter"),
    (lambda: stream.unique(iter([5])), warphash.DtypeError, "batches, tables or frames from the iterator, got int"),
    (lambda: stream.unique([]), warphash.ParameterError, "at least one path or batch, got an empty list"),
    (lambda: stream.unique(["a.parquet", 5]), warphash.DtypeError, "got str: give a list of paths"),
    (lambda: stream.unique(iter(["a.parquet"])), warphash.DtypeError, "got str: give a list of paths"),
    (lambda: stream.unique([{"a": 1}]), warphash.DtypeError, r"got dict: give pyarrow\.Table\.from_pylist"),
    (lambda: stream.unique(np.arange(3)), warphash.DtypeError, "got ndarray: give a mapping"),
    (lambda: stream.unique(pa.array([1])), warphash.DtypeError, "got Int64Array: give a mapping"),
    (lambda: stream.unique(pa.chunked_array([[1]])), warphash.DtypeError, "got ChunkedArray: give a mapping"),
    (lambda: stream.unique(io.BytesIO()), warphash.DtypeError, "got BytesIO: give the path"),
    (lambda: stream.unique({5: [1]}), warphash.ParameterError, "names of columns as texts, got 5"),
    (lambda: stream.unique({"a": 5}), warphash.DtypeError, "mapping has no table.*not iterable"),
    (lambda: stream.unique({"a": [2**70]}), warphash.DtypeError, "mapping has no table.*too large"),
    (lambda: stream.unique({"a": np.zeros(2, complex)}), warphash.DtypeError, "mapping has no table.*Unsupported"),
    (lambda: stream.unique(["no.parquet"]), warphash.PathError, "no.parquet is not there"),
    (lambda: stream.unique("no/*.parquet"), warphash.PathError, r"no file matches no/\*\.parquet: see the folder"),
    (lambda: stream.unique("s3://a/b.parquet"), warphash.PathError, r"give pyarrow\.dataset\.dataset\('s3://a/b"),
    (lambda: stream.unique("."), warphash.PathError, r"is a folder: give pyarrow\.dataset"),
    (lambda: stream.unique(pa.table({"a": [1]}), "b"), warphash.ParameterError, "no column 'b'"),
    (lambda: stream.unique(pa.table({"a": [1]}), memory="2 apples"), warphash.ParameterError, "got '2 apples'"),
    (lambda: stream.unique(pa.table({"a": [1]}), memory=0), warphash.ParameterError, "got 0"),
    (lambda: stream.unique(pa.table({"a": [1]}), memory=True), warphash.ParameterError, "got True"),
    (lambda: stream.count(pa.table({"a": [1]}), name="a"), warphash.ParameterError, "both be named 'a'"),
    (lambda: stream.count(pa.table({"a": [1]}), name=3), warphash.ParameterError, "name= to be a text.*got 3"),  # type: ignore[arg-type]
    (lambda: grouped("sum"), warphash.ParameterError, r'agg to be as \{"total": \("price", "sum"\)\}, got \'sum\''),
    (
        lambda: grouped({"b": "sum"}),
        warphash.ParameterError,
        r"expected \(name of a column, operation\).* for b, got 'sum",
    ),
    (lambda: grouped({3: ("b", "sum")}), warphash.ParameterError, "names of answers as texts.*got 3"),
    (lambda: grouped({"c": ([1], "sum")}), warphash.ParameterError, r"for c, got \(\[1\], 'sum'\)"),
    (lambda: stream.unique(pa.table({"a": [1]}), progress="x"), warphash.ParameterError, "progress=.*close, got 'x'"),  # type: ignore[arg-type]
    (lambda: stream.unique(pa.table({"a": [1]}), out=5), warphash.ParameterError, r"path \.parquet, got 5"),  # type: ignore[arg-type]
    (lambda: stream.unique(pa.table({"a": [1]}), folder="no"), warphash.PathError, "folder no is not there: make it"),
    (lambda: stream.unique(pa.table({"a": [1]}), folder=__file__), warphash.PathError, "is no folder: make it"),
    (lambda: stream.unique(pa.table({"a": [1]}), folder=5), warphash.ParameterError, "path of a folder.*got 5"),  # type: ignore[arg-type]
    (lambda: stream.dedupe(pa.table({"a": [1]}), keep="none"), warphash.ParameterError, "keep must be"),  # type: ignore[arg-type]
    (lambda: stream.dedupe(pa.table({"a": [[1]]})), warphash.DtypeError, "lists of any length"),
    (lambda: stream.group_by(pa.table({"a": [1], "b": ["x"]}), "a", {"c": ("b", "sum")}), warphash.DtypeError, "sum"),
    (lambda: stream.join(pa.table({"a": [1]}), pa.table({"b": [1]})), warphash.ParameterError, "no column in common"),
    (lambda: stream.unique(pa.table({"a": [1]}), memory="9" * 400 + "?"), warphash.ParameterError, r"got '9+\?'"),
    (lambda: stream.unique({"a": [1, "x"]}), warphash.DtypeError, "mapping has no table of PyArrow.*Could not convert"),
    (lambda: stream.unique({"a": [1, 2], "b": [1]}), warphash.DtypeError, "mapping has no table.*expected length 2"),
    (lambda: join_of_one(iter([pa.table({"a": [1]})])), warphash.ParameterError, "both sides.*iterator.*read once"),
    (lambda: join_of_one(pa.table({"a": [1]}).to_reader()), warphash.ParameterError, "both sides.*read once"),
]


def grouped(agg: Any) -> Any:
    return stream.group_by(pa.table({"a": [1], "b": [2]}), "a", agg)


def join_of_one(rows: Any) -> Any:
    return stream.join(rows, rows, "a")


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal[2])
def test_refusals_come_at_once(refusal: tuple[Any, type[Exception], str]) -> None:
    call, kind, words = refusal
    with pytest.raises(kind, match=words):
        call()


def test_columns_and_plans_of_frames_are_refused() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for column in (pandas.Series([1]), pandas.Index([1]), polars.Series([1])):
        with pytest.raises(warphash.DtypeError, match=r"got (Series|Index): give \.to_frame\(\) of it"):
            stream.unique(column)
    with pytest.raises(warphash.DtypeError, match=r"got LazyFrame: give \.collect\(\) of it, or the path"):
        stream.unique(polars.LazyFrame({"a": [1]}))


def test_columns_of_pandas_that_pyarrow_has_not_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    for column in ([2**70], [1j], pandas.arrays.SparseArray([0, 1]), [object()]):
        with pytest.raises(warphash.DtypeError, match=r"DataFrame has no table of PyArrow: .*: convert its columns"):
            stream.unique(pandas.DataFrame({"a": column}))


def test_columns_of_a_frame_may_be_named_as_the_means_of_sources() -> None:
    pandas = pytest.importorskip("pandas")
    for names in (["schema", "rows", "tables"], ["schema", "scanner"], ["collect", "to_frame"]):
        frame = pandas.DataFrame([range(len(names))] * 2, columns=names)
        assert stream.unique(frame).read_all().column_names == names


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("kind", ["text", "categories", "lists", "structs", "arrays"])
def test_columns_of_polars_with_text_in_views(kind: str, budget: str) -> None:
    polars = pytest.importorskip("polars")
    words = [f"a word of more than twelve bytes {k}" for k in range(300)]
    column = {
        "text": polars.Series(words),
        "categories": polars.Series(words, dtype=polars.Categorical),
        "lists": polars.Series([words[k : k + k % 3] for k in range(300)]),
        "structs": polars.Series([{"x": word} for word in words]),
        "arrays": polars.Series([[word] for word in words], dtype=polars.Array(polars.String, 1)),
    }[kind]
    frame = polars.DataFrame({"k": range(300), "c": column})
    if kind in ("text", "categories"):
        assert stream.unique(frame, "c", memory=BUDGETS[budget]).read_all()["c"].to_pylist() == words
    rows, items = polars.concat([frame, frame]), column.to_list()
    assert stream.dedupe(rows, "k", memory=BUDGETS[budget]).read_all()["c"].to_pylist() == items
    made = stream.join(pa.table({"k": range(300)}), rows, "k", memory=BUDGETS[budget]).read_all()
    assert made["c"].to_pylist() == [item for item in items for _ in range(2)]


@pytest.mark.parametrize(
    ("text", "nbytes"), [("2GB", 2 * 10**9), ("512MiB", 512 << 20), ("1.5 kB", 1500), ("7", 7), ("3g", 3 * 10**9)]
)
def test_memory_as_text(text: str, nbytes: int) -> None:
    from warphash.stream.memory import bytes_of

    assert bytes_of(text) == nbytes


def test_batches_with_other_columns_are_refused() -> None:
    batches = iter([pa.table({"a": [1]}), pa.table({"b": [1]})])
    with pytest.raises(warphash.ParameterError, match="expected the columns a in each batch, got b"):
        stream.unique(batches).read_all()


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (pa.table({"a": ["x"]}), "expected a: int64 in each batch, got a: string.*parse"),
        (pa.table({"a": [1.5]}), "expected a: int64 in each batch, got a: double.*truncated"),
        (5, "expected batches, tables or frames from the iterator, got int"),
    ],
)
def test_batches_that_do_not_go_with_the_first_are_refused(second: Any, words: str) -> None:
    with pytest.raises(warphash.DtypeError, match=words):
        stream.unique(iter([pa.table({"a": [1]}), second])).read_all()


def test_files_whose_columns_repeat_are_refused(tmp_path: Path) -> None:
    path = SOURCES["path"](pa.table([[1], [2]], ["a", "a"]), tmp_path)
    with pytest.raises(warphash.ParameterError, match=r"expected one column 'a' in .*\.parquet, got 2: rename"):
        stream.unique(path)


def test_memory_is_any_integer() -> None:
    table = pa.table({"a": [1]})
    assert rows_of(stream.unique(table, memory=np.int64(10**9))) == [(1,)]  # type: ignore[arg-type]
    assert rows_of(stream.unique(table, memory="9" * 400)) == [(1,)]


def test_keep_may_be_a_zero() -> None:
    assert rows_of(stream.dedupe(pa.table({"a": [1, 2, 1]}), keep=np.False_)) == [(2,)]  # type: ignore[arg-type]


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    paths = [SOURCES["path"](pa.table({name: [1]}), tmp_path) for name in "ab"]
    with pytest.raises(warphash.ParameterError, match="expected the columns of"):
        stream.unique(paths)


def test_a_pattern_is_all_files_that_match_it(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for name, row in {"b.parquet": 2, "a.parquet": 1, "more/c.parquet": 3, "[x].parquet": 4}.items():
        pq.write_table(pa.table({"k": [row]}), tmp_path / name)
    (tmp_path / "folder.parquet").mkdir()
    wanted = {
        "?.parquet": [1, 2],
        "*.parquet": [4, 1, 2],
        "**/*.parquet": [4, 1, 2, 3],
        "[ab].parquet": [1, 2],
        "[x].parquet": [4],  # a file of this name
    }
    for pattern, rows in wanted.items():
        assert stream.unique(tmp_path / pattern).read_all()["k"].to_pylist() == rows
        assert stream.unique(str(tmp_path / pattern)).read_all()["k"].to_pylist() == rows
    made = stream.unique([tmp_path / "more" / "*", tmp_path / "a.parquet"])
    assert made.read_all()["k"].to_pylist() == [3, 1]


def test_an_iterator_of_frames() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    chunks = pandas.read_csv(io.StringIO("k,v\n7,1\n3,2\n7,3\n"), chunksize=2)
    assert rows_of(stream.dedupe(chunks, "k")) == [(7, 1), (3, 2)]
    frames = [polars.DataFrame({"k": ["b"]}), polars.DataFrame({"k": ["a", "b"]})]
    assert rows_of(stream.unique(frames)) == [("b",), ("a",)]


def test_a_key_that_is_named_twice_is_there_once() -> None:
    table = pa.table({"k": [7, 3, 7]})
    assert stream.unique(table, ["k", "k"]).read_all().column_names == ["k"]
    assert stream.count(table, ["k", "k"]).read_all().column_names == ["k", "count"]


def test_files_of_two_types_go_together(tmp_path: Path) -> None:
    paths = [SOURCES["path"](pa.table({"a": pa.array([1], type_)}), tmp_path) for type_ in (pa.int32(), pa.float64())]
    assert rows_of(stream.unique(paths)) == [(1.0,)]


@pytest.mark.parametrize("budget", ["1GB", 10_000])
@pytest.mark.parametrize("index", ["int8", "uint8"])
def test_dictionaries_of_more_words_than_an_index_has_numbers(index: str, budget: Any) -> None:
    """Each batch has a dictionary of its own, and all together have more words than one of them can have."""
    kind = pa.dictionary(getattr(pa, index)(), pa.string())

    def batches() -> Any:
        for at in range(0, 300, 100):
            words = pa.array([str(word) for word in range(at, at + 100)])
            yield pa.table({"k": words.dictionary_encode().cast(kind), "v": range(100)})

    every = [str(word) for word in range(300)]
    for made in (stream.unique(batches(), "k", memory=budget), stream.join(batches(), batches(), "k", memory=budget)):
        table = made.read_all()
        assert table.schema.field("k").type == kind and table["k"].to_pylist() == every


@pytest.mark.parametrize("how", ["inner", "left", "outer", "right"])
@pytest.mark.parametrize("repeats", [False, True])
def test_the_other_side_stays_in_memory_if_no_key_repeats(how: Any, repeats: bool, spills: list[str]) -> None:
    """Keys that repeat take more memory to look up. That they do is seen when they are all read."""
    n = 4_000
    numbers = np.arange(n)
    numbers[-1] = 0 if repeats else n
    other = pa.table({"a": numbers % 50, "b": numbers // 50, "w": np.arange(n) + 0.5})
    asked = np.random.default_rng(3).integers(0, 2 * n, 1_200)
    lead = pa.table({"a": asked % 50, "b": asked // 50, "v": np.arange(1_200)})
    sides = (other, lead) if how == "right" else (lead, other)
    made = rows_of(stream.join(*sides, ["a", "b"], how, memory=900_000))
    wanted = plain.joined(*map(rows_of, sides), lambda row: row[:2], lambda row: row[2:], how, "unequal")
    assert made == wanted
    assert bool(spills) == repeats
