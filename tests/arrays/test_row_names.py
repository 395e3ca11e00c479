"""Rows are matched by the names of their items: of the columns of frames, and of the fields of structs and records."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from support.inside import parts_of
from warphash import CorruptFile, DtypeError, HashMap, HashSet, MultiMap

ROWS = {"a": [1, 5], "b": [2, 6]}
TURNED = {"b": [2, 6], "a": [1, 5]}
SWAPPED = {"b": [1, 5], "a": [2, 6]}
OTHERS = {"a": [1, 5], "c": [2, 6]}

Make = Callable[[dict[str, list[int]]], Any]


def pandas_frame(columns: dict[str, list[int]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


def pandas_nullable(columns: dict[str, list[int]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns, dtype="Int64")


def polars_frame(columns: dict[str, list[int]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def polars_struct(columns: dict[str, list[int]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns).to_struct()


def arrow_table(columns: dict[str, list[int]]) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


def arrow_batch(columns: dict[str, list[int]]) -> Any:
    return pytest.importorskip("pyarrow").record_batch(columns)


def arrow_struct(columns: dict[str, list[int]]) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.StructArray.from_arrays([pyarrow.array(column) for column in columns.values()], list(columns))


def relation(columns: dict[str, list[int]]) -> Any:
    duckdb, table = pytest.importorskip("duckdb"), arrow_table(columns)
    return duckdb.connect().from_arrow(table)


MAKERS = [
    *(pandas_frame, pandas_nullable, polars_frame, polars_struct, arrow_table, arrow_batch, arrow_struct),
    relation,
]


def found(table: Any, rows: Any) -> list[bool]:
    return np.asarray(table.contains(rows)).tolist()


def matches_by_name(table: Any, make: Make) -> None:
    assert found(table, make(ROWS)) == found(table, make(TURNED)) == [True, True]
    assert found(table, make(SWAPPED)) == [False, False]
    with pytest.raises(DtypeError, match=r"must have the columns a, b, .*, got a, c: rename the columns"):
        table.contains(make(OTHERS))


@pytest.mark.parametrize("make", MAKERS)
def test_keys(make: Make) -> None:
    table = HashSet.from_arrays(make(ROWS), device="cpu")
    matches_by_name(table, make)
    matches_by_name(table, arrow_batch)  # another library
    assert np.asarray(table.insert(make(TURNED))).tolist() == [False, False]
    assert np.asarray(table.erase(make(SWAPPED))).tolist() == [False, False]
    assert found(table, np.array([[1, 2], [2, 1]])) == [True, False]  # no names: by position
    assert [1, 2] in table and [2, 1] not in table
    with pytest.raises(DtypeError, match="rename"):
        table.insert(make(OTHERS))
    assert len(table) == 2


@pytest.mark.parametrize("make", MAKERS)
def test_values(make: Make) -> None:
    table = HashMap.from_arrays(np.arange(2), make(ROWS), device="cpu")
    table.assign(np.arange(2), make(TURNED))
    assert table[np.arange(2)].tolist() == [[1, 2], [5, 6]]
    table.upsert(np.arange(2), make(SWAPPED), "max")
    assert table[np.arange(2)].tolist() == [[2, 2], [6, 6]]
    assert table.find_or_insert(np.arange(3, 5), make(TURNED))[0].tolist() == [[1, 2], [5, 6]]
    with pytest.raises(DtypeError, match="values must have the columns a, b"):
        table.insert(np.arange(2), make(OTHERS))


@pytest.mark.parametrize("make", MAKERS)
def test_a_declared_table_learns_the_names_of_the_first_rows_that_it_keeps(make: Make) -> None:
    table = HashSet(("i8", 2), device="cpu")
    assert found(table, make(SWAPPED)) == [False, False]  # a lookup teaches nothing
    table.insert(np.array([[1, 2]]))
    table.insert(make(ROWS))
    assert len(table) == 2
    matches_by_name(table, make)


@pytest.mark.parametrize("make", MAKERS)
def test_frames_for_records(make: Make) -> None:
    """The fields of a structured type are found by name, whatever their order and types."""
    table = HashMap([("b", "i8"), ("a", "i8")], [("a", "f8"), ("b", "i8")], device="cpu")
    values = np.array([(2, 0.5), (6, 1.5)], [("b", "i8"), ("a", "f8")])
    table.insert(make(ROWS), values)
    assert len(table) == 2 and (2, 1) in table and (1, 2) not in table
    assert found(table, make(TURNED)) == [True, True] and found(table, make(SWAPPED)) == [False, False]
    assert table[np.array([(2, 1)], table.key_dtype)].tolist() == [(0.5, 2)]
    with pytest.raises(DtypeError, match="rename the columns"):
        table.contains(make(OTHERS))


def test_mixed_columns_follow_the_advice() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": np.arange(2, dtype="i4"), "b": pd.to_datetime(["2024-01-01", "2024-01-02"])})
    with pytest.raises(DtypeError, match="of a structured type, such as") as refused:
        HashMap.from_arrays([1, 2], frame, device="cpu")
    advised = str(refused.value).partition("such as ")[2].partition(", which")[0]
    table = HashSet(eval(advised), device="cpu")
    table.insert(frame)
    assert table.contains(frame[["b", "a"]]).all()
    wider = HashSet(("i8", 2), device="cpu")
    wider.insert(pd.DataFrame({"a": np.arange(2, dtype="i4"), "b": np.arange(2, dtype="u1")}))
    assert sorted(map(tuple, wider)) == [(0, 0), (1, 1)]


def test_records_with_fields_in_another_order() -> None:
    given, turned = [("a", "i4"), ("b", "i8")], [("b", "i4"), ("a", "i4")]
    table = HashMap.from_arrays(np.array([(1, 2)], given), np.array([(3, 4)], given), device="cpu")
    same, other = np.array([(2, 1)], turned), np.array([(1, 2)], turned)
    assert table.contains(same).all() and not table.contains(other).any()
    assert same[0] in table and other[0] not in table and table.get(same[0]).item() == (3, 4)
    table.assign(same, other)
    assert table[same].tolist() == [(2, 1)]
    assert table.find(other, default=other[0])[0].tolist() == [(2, 1)]
    with pytest.raises(DtypeError):
        table.contains(np.array([(1, 2)], [("a", "i4"), ("c", "i8")]))
    nested = HashSet.from_arrays(np.array([((1, 2), 3)], [("x", given), ("y", "u1")]), device="cpu")
    assert nested.contains(np.array([(3, (2, 1))], [("y", "u1"), ("x", turned)])).all()


def test_rows_of_a_frame_have_names() -> None:
    frame, turned = pandas_frame(ROWS), pandas_frame(TURNED)
    table = HashSet.from_arrays(frame, device="cpu")
    assert turned.iloc[0] in table and frame.iloc[0] in table and pandas_frame(SWAPPED).iloc[0] not in table
    assert frame.iloc[0].reset_index(drop=True) in table


def test_answers_of_pandas_have_the_names() -> None:
    frame = pandas_frame(ROWS)
    table = HashMap.from_arrays(frame, frame, device="cpu")
    for rows in (
        *table.to_arrays(),
        table.keys(),
        table.values(),
        table.find(frame)[0],
        table.pop(pandas_frame(TURNED)),
    ):
        assert rows.columns.tolist() == ["a", "b"] and sorted(rows["b"]) == [2, 6]
    bounded = HashSet.from_arrays(frame, device="cpu", max_size=10)
    assert bounded.evict(2).columns.tolist() == ["a", "b"]


def test_numbers_of_columns_are_positions() -> None:
    pd = pytest.importorskip("pandas")
    plain = pd.DataFrame([[1, 2], [5, 6]])
    table = HashSet.from_arrays(plain, device="cpu")
    assert found(table, plain[[1, 0]]) == [True, True]
    table.insert(pandas_frame(ROWS))  # whose names are the first
    matches_by_name(table, pandas_frame)
    assert found(table, plain) == [True, True] and len(table) == 2


def test_two_columns_of_one_name_are_refused() -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for frame in (pd.DataFrame(np.eye(2, dtype=int), columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])):
        with pytest.raises(DtypeError, match="'a' twice: rename"):
            HashSet.from_arrays(frame, device="cpu")


def test_a_frame_of_single_keys_needs_no_names() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [0, 9], "b": [1, 2]})
    table = HashSet.from_arrays(np.arange(3), device="cpu")
    assert table.contains(frame).to_numpy().tolist() == [[True, True], [False, True]]


class Row(NamedTuple):
    """A row with names, in another order than ROWS."""

    b: int
    a: int


def turned_rows(kind: str, columns: dict[str, list[int]]) -> list[Any]:
    """The rows of some columns as objects of one kind, in the order of the columns."""
    if kind == "mapping":
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == "named tuple":
        return [Row(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    if kind == "struct":
        return list(pytest.importorskip("pyarrow").Table.from_pydict(columns).to_struct_array().chunk(0))
    frame = pandas_frame(columns)
    return [frame.iloc[number] for number in range(len(frame))]


@pytest.mark.parametrize("rule", ["raise", "key", "drop"])
@pytest.mark.parametrize("kind", ["mapping", "named tuple", "struct", "row of pandas"])
def test_rows_that_are_objects_have_names(kind: str, rule: str) -> None:
    """One by one, in a list, as a key to be kept, as a value and as a default."""
    turned, others = turned_rows(kind, TURNED), turned_rows(kind, {"b": [1], "a": [2]})
    keys = HashSet(("int64", 2), nulls=rule, device="cpu")
    keys.insert(turned_rows(kind, TURNED))
    assert keys.contains([[2, 1], [6, 5]]).all() and keys.contains(turned).all()
    pairs = HashMap(("int64", 2), "int64", nulls=rule, device="cpu")
    pairs.insert(turned[:1], [7])
    assert turned[0] in keys and others[0] not in keys and pairs[turned[0]] == pairs.get(turned[0]) == 7
    pairs.update([(turned[1], 8)])
    pairs[turned[0]] = 9
    assert len(pairs) == 2 and pairs[turned[0]] == 9
    keys.discard(others[0])
    keys.add(turned[0])
    assert len(keys) == 2
    keys.remove(turned[0])
    assert len(keys) == 1


@pytest.mark.parametrize("kind", ["mapping", "named tuple", "struct", "row of pandas"])
def test_rows_of_values_that_are_objects_have_names(kind: str) -> None:
    table = HashMap("int64", ("int64", 2), device="cpu")
    table[1] = turned_rows(kind, {"b": [2], "a": [1]})[0]
    table[2] = turned_rows(kind, {"b": [4], "a": [3]})[0]
    assert table[[1, 2]].tolist() == [[2, 1], [4, 3]]
    other = dict(zip("ab", (5, 6), strict=True))
    table.update({3: other})
    assert table[3].tolist() == table.find([9], other)[0][0].tolist() == table.get([9], other)[0].tolist() == [6, 5]
    assert table.copy().pop([9], other)[0].tolist() == [6, 5]


def test_rows_of_one_list_have_the_same_names() -> None:
    keys = HashSet(("int64", 2), device="cpu")
    assert keys.insert([{"a": 1, "b": 2}, {"b": 4, "a": 3}]).all() and keys.contains([[1, 2], [3, 4]]).all()
    named, renamed, plain = {"a": 1, "b": 2}, {"a": 1, "c": 2}, (1, 2)
    for rows, got in (
        ([named, renamed], "a, b and a, c"),
        ([named, plain], "a, b and no names"),
        ([plain, plain, named], "no names and a, b"),
    ):
        with pytest.raises(DtypeError, match=f"same names in a list, got {got}: give"):
            keys.contains(rows)
    with pytest.raises(DtypeError, match="give a DataFrame"):
        keys.contains({"a": [1, 2], "b": [3, 4]})


def test_single_records_are_matched_by_their_fields() -> None:
    table = HashSet([("a", "i8"), ("b", "i4")], device="cpu")
    table.insert([(1, 2)])
    for kind in ("mapping", "named tuple", "struct", "row of pandas"):
        right, wrong = (turned_rows(kind, columns)[0] for columns in ({"b": [2], "a": [1]}, {"b": [1], "a": [2]}))
        assert right in table and wrong not in table
        if kind in ("mapping", "named tuple"):
            assert table.contains([right, wrong]).tolist() == [True, False]


def test_a_name_that_differs_from_itself_is_refused() -> None:
    frame = pandas_frame(ROWS).set_axis([float("nan"), "a"], axis=1)
    with pytest.raises(DtypeError, match="rename the columns"):
        HashSet.from_arrays(frame, device="cpu")


@pytest.mark.parametrize("rule", ["key", "drop"])
def test_rows_that_may_be_null(rule: str) -> None:
    pa = pytest.importorskip("pyarrow")

    def make(columns: dict[str, list[int]]) -> Any:
        arrays = [pa.array([*column, None]) for column in columns.values()]
        return pa.StructArray.from_arrays(arrays, list(columns), mask=pa.array([False, False, True]))

    table = HashSet.from_arrays(make(ROWS), nulls=rule)
    assert found(table, make(TURNED)) == [True, True, rule == "key"] and found(table, make(SWAPPED))[:2] == [False] * 2
    table.insert(make(TURNED))
    assert len(table) == 2 + (rule == "key")
    with pytest.raises(DtypeError, match="rows without nulls in them, got 1 in column 'b'"):
        table.insert(pa.array([{"a": 1, "b": None}], pa.struct({"a": pa.int64(), "b": pa.int64()})))
    with pytest.raises(DtypeError, match="rename"):
        table.insert(make(OTHERS))


def test_tables_made_of_a_table_know_the_names(tmp_path: Path) -> None:
    table = HashMap.from_arrays(pandas_frame(ROWS), pandas_frame(ROWS), device="cpu")
    table.save(tmp_path / "t")
    copies = (
        *(table.copy(), copy.deepcopy(table), pickle.loads(pickle.dumps(table)), table | table),
        *(table.__replace__(design="iceberg"), HashMap.load(tmp_path / "t", device="cpu")),
    )
    for made in copies:
        matches_by_name(made, pandas_frame)
        made.assign(pandas_frame(TURNED), pandas_frame(TURNED))
        assert made == table
    lists = MultiMap.from_arrays(pandas_frame(ROWS).astype("i4"), np.arange(2), device="cpu")
    assert pickle.loads(pickle.dumps(lists)).count(pandas_frame(TURNED).astype("i4")).tolist() == [1, 1]


def test_a_table_in_a_file_knows_the_names(tmp_path: Path) -> None:
    with HashSet.from_arrays(pandas_frame(ROWS), design="stadium", memory=tmp_path / "t", device="cpu"):
        pass
    with HashSet.open(tmp_path / "t", device="cpu") as table:
        matches_by_name(table, pandas_frame)


def test_files_without_names_and_with_wrong_ones(tmp_path: Path) -> None:
    table = HashSet.from_arrays(pandas_frame(ROWS), device="cpu")
    table.save(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    n = int.from_bytes(whole[8:16], "little")
    header, rows = json.loads(whole[16 : 16 + n]), whole[16 + n : -32]
    assert header.pop("names") == [["a", "b"], None]

    def load(header: dict[str, Any]) -> HashSet[Any]:
        encoded = json.dumps(header).encode()
        body = whole[:8] + len(encoded).to_bytes(8, "little") + encoded + rows
        (tmp_path / "t").write_bytes(body + hashlib.sha256(body).digest())
        return HashSet.load(tmp_path / "t", device="cpu")

    older = load(header)
    assert found(older, np.array(list(ROWS.values())).T) == [True, True]
    for names in ([["a"], None], [["a", "a"], None], [["a", "b"]], ["ab", None], [["a", {}], None], [1, 2]):
        with pytest.raises(CorruptFile):
            load({**header, "names": names})


def test_names_in_files(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pairs = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    HashSet.from_arrays(pairs, device="cpu").save(tmp_path / "t")
    assert HashSet.load(tmp_path / "t", device="cpu").contains(pairs.iloc[:, ::-1]).all()
    days = pd.DataFrame([[1, 2]], columns=pd.to_datetime(["2024-01-01", "2024-01-02"]))
    with pytest.raises(DtypeError, match="names a file can have"):
        HashSet.from_arrays(days, device="cpu").save(tmp_path / "t")
    for kind in ("dates", "infinite", "in tuples"):
        with pytest.raises(DtypeError, match=r"names a file can have.*rename them"):
            HashSet.from_arrays(frame_of(names_without_a_file()[kind]), device="cpu").save(tmp_path / "t")


def names_without_a_file() -> dict[str, list[Any]]:
    """Names of two columns that the file of a table cannot have."""
    day = np.datetime64("2020-01-01")
    return {
        "dates": [day, day + 1],
        "long": ["a" * 3000, "b" * 3000],
        "infinite": ["a", float("inf")],
        "in tuples": [("a", day), ("b", day)],
    }


def frame_of(names: list[Any]) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame([[1, 2], [5, 6]], columns=pd.Index(names, dtype=object, tupleize_cols=False))


@pytest.mark.parametrize("kind", names_without_a_file())
@pytest.mark.parametrize("verb", ["insert", "execute", "update", "update a map", "values"])
def test_names_that_a_file_cannot_have_are_refused_when_they_come(tmp_path: Path, kind: str, verb: str) -> None:
    given = frame_of(names_without_a_file()[kind])
    options: dict[str, Any] = {"design": "stadium", "memory": tmp_path / "t", "capacity": 100, "device": "cpu"}
    is_map = verb in ("update a map", "values")
    table: Any = HashMap(("i8", 2), ("i8", 2), **options) if is_map else HashSet(("i8", 2), **options)
    plain = np.array([[1, 2], [5, 6]])

    def take(rows: Any) -> None:
        if verb == "execute":
            table.execute(np.array([1, 1], np.uint8), rows)
        elif verb == "update":
            table.update(HashSet.from_arrays(rows, device="cpu"))
        elif verb == "update a map":
            table.update(HashMap.from_arrays(rows, rows, device="cpu"))
        elif verb == "values":
            table.insert(pandas_frame(ROWS), rows)
        else:
            table.insert(rows)

    said = r"4,048 bytes for its types and the names.*shorter names|names a file can have.*rename them"
    for _ in range(2):
        with pytest.raises(DtypeError, match=said):
            take(given)
        assert len(table) == 0 and parts_of(table).copies.names is None
    take(frame_of(["x", "y"]) if verb != "values" else pandas_frame(ROWS))
    table.close()
    with type(table).open(tmp_path / "t", device="cpu") as again:
        assert again.contains(plain).all()
        of = 1 if verb == "values" else 0
        assert parts_of(again).copies.names[of] == (["a", "b"] if verb == "values" else ["x", "y"])


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", ["dates", "long"])
def test_a_table_that_is_made_in_a_file_refuses_names(tmp_path: Path, kind: str) -> None:
    rows = frame_of(names_without_a_file()[kind])
    with pytest.raises(DtypeError, match=r"4,048 bytes|names a file can have"):
        HashSet.from_arrays(rows, design="stadium", memory=tmp_path / "t", device="cpu")
    with HashSet.from_arrays(rows.to_numpy(), design="stadium", memory=tmp_path / "u", device="cpu") as table:
        assert len(table) == 2


def test_names_that_barely_fit_stay_in_the_file(tmp_path: Path) -> None:
    options: dict[str, Any] = {"design": "stadium", "memory": tmp_path / "t", "capacity": 10, "device": "cpu"}
    table = HashSet(("i8", 2), **options)
    for length in range(3200, 0, -1):
        try:
            table.insert(frame_of(["a" * length, "b"]))
        except DtypeError:
            continue
        break
    assert 2000 < length < 3200
    for step in range(4):  # the numbers in the file grow, and it replaces the one before
        table.insert(np.arange(2 * 10**step * 50).reshape(-1, 2))
        table.flush()
    table.close()
    with HashSet.open(tmp_path / "t", device="cpu") as again:
        assert parts_of(again).copies.names == [["a" * length, "b"], None]
    with pytest.raises(DtypeError, match="shorter names"):
        HashMap("i8", [("a" * 4000, "i8")], **{**options, "memory": tmp_path / "u"})


@pytest.mark.parametrize("name", ["\ud800", ("a", "\udfff")])
def test_names_that_are_no_text_are_refused(tmp_path: Path, name: Any) -> None:
    for options in ({}, {"design": "stadium", "memory": tmp_path / "t"}, {"nulls": "key"}):
        table = HashSet(("i8", 2), device="cpu", **options)
        with pytest.raises(DtypeError, match="surrogates: rename the columns"):
            table.insert(frame_of(["b", name]))
        assert len(table) == 0 and parts_of(table).copies.names is None
        table.insert(frame_of(["x", "y"]))
        assert list(table.keys().columns) == ["x", "y"]
        table.close()


def test_two_tables() -> None:
    ours, theirs = (HashSet.from_arrays(pandas_frame(rows), device="cpu") for rows in (ROWS, TURNED))
    more = HashSet.from_arrays(pandas_frame({"b": [2, 8], "a": [1, 7]}), device="cpu")
    other = HashSet.from_arrays(pandas_frame(OTHERS), device="cpu")
    plain = HashSet.from_arrays(np.array([[1, 2], [5, 6]]), device="cpu")
    assert ours == theirs and ours == plain and ours != more and ours != other and not ours.isdisjoint(more)
    assert sorted(map(tuple, ours | more)) == [(1, 2), (5, 6), (7, 8)]
    assert sorted(map(tuple, ours & more)) == [(1, 2)] and sorted(map(tuple, more - ours)) == [(8, 7)]
    for made in (ours | more, plain | ours, plain.union(pandas_frame(ROWS)), ours.difference(plain) | ours):
        assert found(made, pandas_frame(TURNED)) == [True, True]
        assert found(made, pandas_frame(SWAPPED)) == [False, False]
    ours |= more
    assert len(ours) == 3
    for verb in (lambda: ours | other, lambda: ours & other, lambda: ours <= other, lambda: ours.update(other)):
        with pytest.raises(DtypeError, match=r"^keys of the other table must have .*: rename the columns"):
            verb()


def test_two_maps() -> None:
    ours, theirs = (
        HashMap.from_arrays(pandas_frame(rows), pandas_frame(rows), device="cpu") for rows in (ROWS, TURNED)
    )
    assert ours == theirs
    ours.update(theirs)
    assert ours == theirs and len(ours) == 2
    plain = HashMap(("i8", 2), ("i8", 2), device="cpu")
    plain |= theirs
    assert plain == ours and sorted(map(tuple, plain)) == [(2, 1), (6, 5)]
    with pytest.raises(DtypeError, match="rename the columns"):
        ours.update(HashMap.from_arrays(pandas_frame(OTHERS), pandas_frame(ROWS), device="cpu"))


def test_threads_agree_on_the_names() -> None:
    for _ in range(20):
        table = HashSet(("i8", 2), device="cpu")
        start = threading.Barrier(2)

        def insert(rows: Any, table: Any = table, start: Any = start) -> None:
            start.wait()
            table.insert(rows)

        threads = [threading.Thread(target=insert, args=(pandas_frame(rows),)) for rows in (ROWS, TURNED)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(table) == 2


@pytest.mark.parametrize("name", ["name", "index", "shape"])
def test_a_frame_whose_column_has_the_name_of_an_attribute(name: str) -> None:
    """A Series has a name, and a frame may have a column that is called so."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({name: [1, 2], "id": [3, 4]}, index=[7, 8])
    found = HashSet.from_arrays(frame, device="cpu").contains(frame)
    assert found.tolist() == [True, True] and found.index.tolist() == [7, 8] and found.name is None
