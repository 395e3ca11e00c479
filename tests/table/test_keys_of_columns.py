"""Keys of several columns of any types, in the forms of each library, against dicts of tuples."""

from __future__ import annotations

import ast
import copy
import datetime
import decimal
import pickle
import re
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.archives import archive, parts_of
from support.cases import design_names
from support.changing import changed_meanwhile
from support.columns import KINDS, LIBRARIES, NAN, canonical, canonical_rows, kinds_in
from warphash import (
    CorruptFile,
    DeviceError,
    DtypeError,
    HashMap,
    HashSet,
    MultiMap,
    Operation,
    ParameterError,
    ShapeError,
    TableFull,
    UnsupportedVerb,
)
from warphash.arrays.decimals import decimal_type
from warphash.designs import registry

few = settings(max_examples=30)


class Columns(NamedTuple):
    """Some columns of a library, and their rows."""

    given: tuple[Any, ...]
    rows: list[Any]


class Case:
    """Kinds of columns that were drawn, and a table of these.

    Parameters
    ----------
    has_nulls
        Columns have nulls among their items.
    """

    def __init__(self, data: Any, library: str, *, has_nulls: bool = False) -> None:
        self.data, self.library, self.has_nulls = data, library, has_nulls
        kinds = st.lists(st.sampled_from(kinds_in(library)), min_size=1, max_size=4)
        self.kinds = [KINDS[name] for name in data.draw(kinds)]
        self.types = [kind.spec for kind in self.kinds]
        has_floats = any(kind.spec in ("float64", "float32") for kind in self.kinds)
        self.options: dict[str, Any] = {"floats": "value"} if has_floats else {}

    def columns(self, least: int = 0) -> Columns:
        n = self.data.draw(st.integers(least, 12))
        lists = []
        for kind in self.kinds:
            takes_none = self.has_nulls and kind.has_nulls_in(self.library)
            items = st.sampled_from((*kind.items, None) if takes_none else kind.items)
            lists.append(self.data.draw(st.lists(items, min_size=n, max_size=n)))
        given = tuple(
            kind.makers[self.library](items) if self.library != "list" else items
            for kind, items in zip(self.kinds, lists, strict=True)
        )
        return Columns(given, canonical_rows(zip(*lists, strict=True)))


def pairs_of(table: Any) -> dict[Any, int]:
    return {tuple(map(canonical, key)): int(value) for key, value in table.items()}


def as_list(answers: Any) -> list[Any]:
    return answers.to_pylist() if hasattr(answers, "to_pylist") else np.asarray(answers).tolist()


@pytest.mark.parametrize("library", LIBRARIES)
class TestVerbs:
    """The verbs of tables, of columns of all kinds."""

    @few
    @given(data=st.data())
    def test_maps(self, library: str, data: st.DataObject) -> None:
        case = Case(data, library)
        table = HashMap(case.types, "int64", device="cpu", **case.options)
        model: dict[Any, int] = {}
        for step in range(3):
            columns, values = case.columns(), np.arange(12) + 100 * step
            verb = data.draw(st.sampled_from(["insert", "upsert", "erase", "find_or_insert"]))
            n = len(columns.rows)
            if verb == "erase":
                erased = as_list(table.erase(columns.given))
                assert sum(erased) == len(set(columns.rows) & model.keys())
                model = {key: value for key, value in model.items() if key not in columns.rows}
            elif verb == "upsert":
                table.upsert(columns.given, values[:n], "last")
                model |= dict(zip(columns.rows, values[:n].tolist(), strict=True))
            else:
                new = table.insert(columns.given, 7) if verb == "insert" else table.find_or_insert(columns.given, 7)[1]
                assert sum(as_list(new)) == len(set(columns.rows) - model.keys())
                model = {**dict.fromkeys(columns.rows, 7), **model}
            asked = case.columns()
            found, flags = table.find(asked.given, default=-1)
            assert as_list(found) == [model.get(row, -1) for row in asked.rows]
            assert as_list(flags) == as_list(table.contains(asked.given)) == [row in model for row in asked.rows]
        assert pairs_of(table) == model and len(table) == len(model)
        assert sorted(map(str, canonical_rows(table))) == sorted(map(str, model))
        table.check()

    @few
    @given(data=st.data())
    def test_nulls(self, library: str, data: st.DataObject) -> None:
        case = Case(data, library, has_nulls=True)
        columns, asked = case.columns(), case.columns()
        for rule in ("key", "drop"):
            kept = {row for row in columns.rows if rule == "key" or None not in row}
            table = HashSet(case.types, device="cpu", nulls=rule, **case.options)
            assert sum(as_list(table.insert(columns.given))) == len(kept)
            assert set(canonical_rows(table)) == kept
            assert as_list(table.contains(asked.given)) == [row in kept for row in asked.rows]
            table.check()
        table = HashSet(case.types, device="cpu", **case.options)
        if any(None in row for row in columns.rows):
            with pytest.raises(DtypeError, match=r"without nulls in them, got .* in column"):
                table.insert(columns.given)
        else:
            table.insert(columns.given)
        assert len(table) == (len(set(columns.rows)) if not any(None in row for row in columns.rows) else 0)

    @few
    @given(data=st.data())
    def test_multimaps_numbers_and_sets(self, library: str, data: st.DataObject) -> None:
        case = Case(data, library)
        columns, others = case.columns(), case.columns()
        pairs = MultiMap(case.types, "int64", device="cpu", **case.options)
        pairs.insert(columns.given, np.arange(len(columns.rows)))
        values, offsets = pairs.find_all(others.given)
        of_each = np.split(np.asarray(values), np.asarray(offsets)[1:-1]) if others.rows else []
        expected = [[at for at, row in enumerate(columns.rows) if row == asked] for asked in others.rows]
        assert [each.tolist() for each in of_each] == expected
        assert as_list(pairs.count(others.given)) == list(map(len, expected))
        numbers = HashMap(case.types, "int64", device="cpu", **case.options)
        order = list(dict.fromkeys(columns.rows))
        assert as_list(numbers.number(columns.given)[0]) == [order.index(row) for row in columns.rows]
        left, right = (HashSet(case.types, device="cpu", **case.options) for _ in range(2))
        left.insert(columns.given), right.insert(others.given)
        ours, theirs = set(columns.rows), set(others.rows)
        for made, model in (
            (left | right, ours | theirs),
            (left & right, ours & theirs),
            (left - right, ours - theirs),
            (left ^ right, ours ^ theirs),
            (left.union(others.given), ours | theirs),
        ):
            assert set(canonical_rows(made)) == model
        assert (left == right) == (ours == theirs) and (left <= right) == (ours <= theirs)

    @few
    @given(data=st.data())
    def test_copies_pickles_and_files(self, library: str, data: st.DataObject, tmp_path_factory: Any) -> None:
        case = Case(data, library, has_nulls=library in ("list", "pyarrow"))
        rule = data.draw(st.sampled_from(["key", "drop"])) if case.has_nulls else "raise"
        table = HashMap(case.types, "int32", device="cpu", nulls=rule, **case.options)
        columns, asked = case.columns(), case.columns()
        table.insert(columns.given, np.arange(len(columns.rows), dtype="i4"))
        path = tmp_path_factory.mktemp("files") / "table"
        table.save(path)
        for twin in (
            table.copy(),
            copy.deepcopy(table),
            pickle.loads(pickle.dumps(table)),
            HashMap.load(path),
            table.__replace__(design="slab"),
        ):
            assert twin == table and twin.key_dtype == table.key_dtype
            assert pairs_of(twin) == pairs_of(table)
            assert as_list(twin.contains(asked.given)) == as_list(table.contains(asked.given))
            twin.check()

    @few
    @given(data=st.data())
    def test_keys_that_come_back_are_those_of_the_table(self, library: str, data: st.DataObject) -> None:
        case = Case(data, library)
        columns = case.columns()
        table = HashSet(case.types, device="cpu", **case.options)
        table.insert(columns.given)
        for keys in (table.keys(), table.keys(like="numpy"), table.keys(like="pyarrow")):
            assert isinstance(keys, tuple) and len(keys) == len(case.types)
            assert all(as_list(table.contains(keys)))
            again = HashSet(case.types, device="cpu", **case.options)
            assert all(as_list(again.insert(keys))) and again == table


# ---- forms of keys
class Person(NamedTuple):
    name: str
    id: int


ROWS = [("ann", 3), ("bob", 3), ("ann", 4)]
ABSENT = ("bob", 4)
NAMES = ("name", "id")


def columns_of(rows: list[Any]) -> tuple[Any, ...]:
    return tuple(map(list, zip(*rows, strict=True)))


def frame(library: str, rows: list[Any], names: tuple[str, ...] = NAMES) -> Any:
    module = pytest.importorskip(library)
    data = dict(zip(names, columns_of(rows), strict=True))
    if library == "pandas":
        return module.DataFrame(data, index=range(10, 10 + len(rows)))
    return module.table(data) if library == "pyarrow" else module.DataFrame(data)


def turned(library: str, rows: list[Any]) -> Any:
    return frame(library, [row[::-1] for row in rows], NAMES[::-1])


def structs(rows: list[Any]) -> Any:
    return frame("pyarrow", rows).to_struct_array()


def chunks(rows: list[Any]) -> Any:
    return pytest.importorskip("pyarrow").chunked_array([structs(rows[:1]), structs(rows[1:])])


def of_two_libraries(rows: list[Any]) -> Any:
    names, numbers = columns_of(rows)
    return pytest.importorskip("pyarrow").array(names), np.array(numbers)


def records(rows: list[Any]) -> Any:
    return np.array([row[::-1] for row in rows], [("id", "i4"), ("name", "U3")])


def levels(rows: list[Any]) -> Any:
    return pytest.importorskip("pandas").MultiIndex.from_tuples(rows, names=NAMES)


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "a tuple of lists": columns_of,
    "a tuple of arrays": lambda rows: tuple(map(np.array, columns_of(rows))),
    "a tuple of two libraries": of_two_libraries,
    "a list of tuples": list,
    "a list of lists": lambda rows: list(map(list, rows)),
    "a list of mappings": lambda rows: [dict(zip(NAMES, row, strict=True)) for row in rows],
    "a list of named tuples": lambda rows: [Person(*row) for row in rows],
    "a mapping of lists": lambda rows: dict(zip(NAMES, columns_of(rows), strict=True)),
    "an array of objects": lambda rows: np.array(rows, object),
    "records": lambda rows: np.array(rows, [("name", "U3"), ("id", "i4")]),
    "records with other fields first": records,
    **{f"a frame of {library}": partial(frame, library) for library in LIBRARIES[2:]},
    **{f"a turned frame of {library}": partial(turned, library) for library in LIBRARIES[2:]},
    "structs": structs,
    "chunks of structs": chunks,
    "structs of Polars": lambda rows: frame("polars", rows).to_struct("x"),
    "a batch": lambda rows: frame("pyarrow", rows).to_batches()[0],
    "an index with levels": levels,
    "a slice of a frame": lambda rows: frame("pyarrow", [ABSENT, *rows]).slice(1),
}
UNNAMED = ("a tuple of lists", "a tuple of arrays", "a tuple of two libraries", "a list of tuples", "a list of lists")


@pytest.mark.parametrize("types", [["str", "int64"], {"name": "str", "id": "int64"}], ids=["list", "mapping"])
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_batches(form: str, types: Any) -> None:
    table = HashMap(types, "int64")
    if (isinstance(types, list) and "other" in form) or "turned" in form:
        table.insert(FORMS["a list of named tuples"]([ABSENT]), 0)  # from which the table learns the names
        del table[ABSENT]
    added = table.insert(FORMS[form](ROWS), [0, 1, 2])
    assert as_list(added) == [True] * 3 and dict(table.items()) == {row: at for at, row in enumerate(ROWS)}
    values, found = table.find(FORMS[form]([*ROWS[1:], ABSENT]), default=-1)
    assert as_list(values) == [1, 2, -1] and as_list(found) == [True, True, False]
    assert as_list(table[FORMS[form](ROWS)]) == [0, 1, 2]
    with pytest.raises(KeyError, match=r"\('bob', 4\)"):
        table[FORMS[form]([ROWS[0], ABSENT])]
    assert as_list(table.erase(FORMS[form]([ROWS[0], ABSENT]))) == [True, False] and len(table) == 2


OF_ROWS = ("a tuple of lists", "records", "records with other fields first", "an array of objects")
"""Forms of which `from_arrays` makes rows of items, or records of a fixed width, or which it refuses."""


@pytest.mark.parametrize("form", [form for form in FORMS if "a list of" not in form and form not in OF_ROWS])
def test_tables_of_arrays(form: str) -> None:
    """The types are those of the columns; the names are those of a frame, which comes back from `keys`."""
    made = FORMS[form](ROWS)
    table = HashMap.from_arrays(made, np.arange(3), device="cpu")
    rows = {row[::-1] for row in ROWS} if "turned" in form else set(ROWS)
    assert set(table) == rows
    assert as_list(table[made]) == [0, 1, 2]
    pairs = HashSet.from_arrays(made, device="cpu"), MultiMap.from_arrays(made, np.arange(3), device="cpu")
    assert all(len(other) == 3 and all(as_list(other.contains(made))) for other in pairs)
    keys = table.keys()
    library = type(keys).__module__.partition(".")[0]
    if "frame" in form:
        names = list(keys.columns if library != "pyarrow" else keys.column_names)
        assert library == type(made).__module__.partition(".")[0]
        assert names == list(NAMES[::-1] if "turned" in form else NAMES)
    assert all(as_list(table.contains(keys)))


SINGLES: dict[str, Callable[[Any], Any]] = {
    "a tuple": tuple,
    "a named tuple": lambda row: Person(*row),
    "a mapping": lambda row: dict(zip(NAMES, row, strict=True)),
    "a mapping with other names first": lambda row: {"id": row[1], "name": row[0]},
    "NumPy's items": lambda row: (np.str_(row[0]), np.int16(row[1])),
    "a record": lambda row: np.array([row], [("name", "U3"), ("id", "i8")])[0],
    "a row of a frame": lambda row: frame("pandas", [row]).iloc[0],
    "a struct": lambda row: structs([row])[0],
    "PyArrow's items": lambda row: tuple(map(pytest.importorskip("pyarrow").scalar, row)),
}


@pytest.mark.parametrize("form", SINGLES)
def test_forms_of_one_key(form: str) -> None:
    one = SINGLES[form]
    table = HashMap({"name": "str", "id": "int64"}, "float64")
    table[one(("ann", 3))] = 2.0
    assert table[one(("ann", 3))] == table["ann", 3] == 2.0
    assert one(("ann", 3)) in table and one(("bob", 3)) not in table and one(("ann", 4)) not in table
    assert table.get(one(("ann", 4))) is None and table.get(one(("ann", 4)), 9) == 9
    with pytest.raises(KeyError):
        table[one(("bob", 3))]
    assert table.setdefault(one(("bob", 3)), 5.0) == 5.0 and table.pop(one(("bob", 3))) == 5.0
    del table[one(("ann", 3))]
    assert not len(table)
    names = HashSet({"name": "str", "id": "int64"})
    names.add(one(("ann", 3)))
    names.discard(one(("bob", 3)))
    assert list(names) == [("ann", 3)]
    names.remove(one(("ann", 3)))
    assert not len(names)


def test_what_is_no_key_is_not_there() -> None:
    table = HashMap(["str", "int8"], "int64")
    table["ann", 3] = 1
    for absent in (
        ("ann", 300),
        ("ann", "3"),
        (3, "ann"),
        ("ann",),
        ("ann", 3, 4),
        "ann",
        3,
        None,
        ("ann", None),
        (b"ann", 3),
    ):
        assert absent not in table
    assert ("ann", 3.0) in table and ("ann", True) not in table
    assert table.contains([("ann", 3), ("ann", 300), ("ann",), None, ("ann", "x")]).tolist() == [True, *[False] * 4]
    assert table.contains((["ann", 5], [3, 3])).tolist() == [True, False]
    assert table.find((["ann", "ann"], np.array([3, 2**40])), default=-1)[0].tolist() == [1, -1]
    assert table.erase((["ann", "ann"], np.array([3, 2**40]))).tolist() == [True, False]
    table["ann", 3] = 1
    with pytest.raises(KeyError, match="row 1 of the keys"):
        table[[("ann", 3), ("ann", 300)]]


def test_verbs_of_dicts_and_sets() -> None:
    table = HashMap(["str", "int64"], "int64")
    table.update({("ann", 3): 1, ("bob", 3): 2})
    table.update([(("ann", 3), 5), (("ann", 3), 6)])
    table |= HashMap.from_arrays((["cy"], np.array([4])), [7], device="cpu")
    model = {("ann", 3): 6, ("bob", 3): 2, ("cy", 4): 7}
    assert dict(table.items()) == model and dict((table | {("dan", 1): 8}).items()) == {**model, ("dan", 1): 8}
    assert (("ann", 3), 6) in table.items() and (("ann", 3), 5) not in table.items()
    assert table.get([("ann", 3), ("ann", 4)], 0).tolist() == [6, 0]
    keys, values, found = table.find([("ann", 3)], order="any")
    assert keys == [("ann", 3)] and values.tolist() == [6] and found.all()
    names = HashSet(["str", "int64"])
    names.update({("ann", 3), ("bob", 3)})
    assert names.issubset({("ann", 3), ("bob", 3), ("cy", 4)}) and not names.issuperset([("cy", 4)])
    assert set(names.difference([("ann", 3), ("ann", 2**70), 7])) == {("bob", 3)}
    assert names.isdisjoint(HashSet(["str", "int64"])) and names != HashSet("str")
    names.clear()
    assert not len(names) and names.keys()[0].shape == (0,)


# ---- errors
def refusals() -> dict[str, tuple[Any, type[Exception], str]]:
    return {
        "too few columns": ((["ann"],), ShapeError, r"keys of 2 columns, got 1: give a tuple"),
        "too many columns": ((["ann"], [1], [2]), ShapeError, r"keys of 2 columns, got 3"),
        "other lengths": ((["ann", "bob"], [1]), ShapeError, r"of one length, got 2, 1: give one item"),
        "a value beside columns": ((["ann", "bob"], 1), ShapeError, r"a single value for column 1 .* numpy.full"),
        "one array": (np.arange(3), ShapeError, r"one array of shape \(3,\): give a tuple with one array for each"),
        "single items": (
            ["ann", 3],
            ShapeError,
            r"rows of 2 items, got one that begins with str: give a",
        ),
        "text for numbers": ((["ann"], np.array(["x"])), DtypeError, r"column 1 of the keys: .* must be int64"),
        "numbers for text": ((np.arange(2), np.arange(2)), DtypeError, r"column 0 of the keys: .* must be strings"),
        "a value that does not fit": ((["ann"], np.array([0.5])), DtypeError, r"column 1 .* values that int64 has"),
        "an item that does not fit": ([("ann", 3), ("ann", "x")], DtypeError, r"column 1 of the keys: "),
        "a row of other length": ([("ann", 3), ("ann",)], ShapeError, r"rows of 2 items, got another number in row 1"),
        "a null": (
            (["ann", None], [1, 2]),
            DtypeError,
            r"nulls in them, got 1 in column 0: .* nulls='drop' or",
        ),
        "names": (
            {"name": ["ann"], "idd": [1]},
            DtypeError,
            r"name, id, .* got name, idd: did you mean 'idd'\?",
        ),
        "no rows": (3, DtypeError, r"keys of several columns, got int: give a tuple"),
        "a box": (np.zeros((1, 2, 3)), ShapeError, r"shape \(1, 2, 3\)"),
    }


@pytest.mark.parametrize("name", refusals())
def test_refused_keys(name: str) -> None:
    keys, error, match = refusals()[name]
    table = HashMap({"name": "str", "id": "int64"}, "int64")
    table["ann", 3] = 7
    with pytest.raises(error, match=match):
        table.insert(keys, 1)
    assert dict(table.items()) == {("ann", 3): 7}


@pytest.mark.parametrize(
    ("types", "options", "error", "match"),
    [
        (["str", "nothing"], {}, DtypeError, r"'nothing' is no type of a column of keys \(column 1\)"),
        (["str", "U"], {}, DtypeError, r"column 1 of the keys needs a length"),
        (["str", object], {}, DtypeError, r"column 1 of the keys: a key needs a fixed width"),
        (["str", "float64"], {}, DtypeError, r"column 1 of the keys: .* give floats='value'"),
        (["str", "int64"], {"floats": "bits"}, DtypeError, r"floats='bits' is for columns of floats"),
        (["str", np.dtype(("i4", 2))], {}, DtypeError, r"column 1 would have rows"),
        ([("a", "str"), ("a", "int64")], {}, DtypeError, r"'a' twice"),
        (["str", "int64"], {"nulls": "none"}, ParameterError, r"nulls must be one of"),
        (["str", "int64"], {"device": "cuda"}, DeviceError, r"keys of type \[str, int64\] live on the CPU alone"),
        (
            ["str", "int64"],
            {"memory": Path("x"), "design": "stadium"},
            ParameterError,
            r"no keys of type \[str, int64\]",
        ),
        (
            ["int32", "int64"],
            {"memory": Path("x"), "design": "stadium"},
            ParameterError,
            r"no keys of type \[int32, int64\]",
        ),
    ],
)
def test_refused_types(types: Any, options: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        HashSet(types, **options)


@pytest.mark.parametrize("types", [["int32", "int64"], ["str", "int64", "bytes"], ["str"], [np.dtype("M8[s]"), "U3"]])
@pytest.mark.parametrize("nulls", ["raise", "key"])
def test_the_record_that_a_refusal_names_is_taken(types: Any, nulls: Any, tmp_path: Path) -> None:
    file: dict[str, Any] = {"design": "stadium", "memory": tmp_path / "table", "device": "cpu"}
    with pytest.raises(ParameterError, match=r"give keys as records of one type, such as .*or save") as caught:
        HashSet(types, nulls=nulls, **file)
    record = re.search(r"such as (\[.*\]), ", str(caught.value))
    assert record and ("without nulls=" in str(caught.value)) == (nulls == "key")
    with HashSet(ast.literal_eval(record[1]), **file) as table:
        assert len(table.key_dtype) == len(types)


def test_refused_verbs() -> None:
    for types in (["str", "int64"], ["int32", "int64"]):
        table = HashMap(types, "int64", device="cpu")
        with pytest.raises(UnsupportedVerb, match="a plan is for"):
            table.plan(3)
        with pytest.raises(DtypeError, match="erase_if compares single numbers"):
            table.erase_if("keys", "<", 3)
        with pytest.raises(DtypeError, match="update takes a HashMap of"):
            table.update(HashMap("int64", "int64", device="cpu"))
        with pytest.raises(ParameterError, match="like="):
            table.keys(like="nothing")
    left, right = HashSet(["str", "int64"]), HashSet(["str", "int32"])
    with pytest.raises(DtypeError, match=r"one key type, got \[str, int64\] and \[str, int32\]"):
        _ = left | right
    assert left != right and left == HashSet({"name": "str", "id": "int64"})


# ---- tables
@pytest.mark.parametrize("types", [["str", "int64"], ["int16", "int64"], ["U40", "int8"]], ids=str)
@pytest.mark.parametrize("design", design_names())
def test_designs(design: str, types: Any) -> None:
    table = HashMap(types, "int64", design=design, device="cpu")
    numbers, text = np.arange(2000), types[0] in ("str", "U40")
    columns = ([f"name {number}" for number in numbers % 700] if text else numbers % 700, numbers // 700)
    assert table.insert(columns, numbers).all()
    rows = zip(np.asarray(columns[0]).tolist(), columns[1].tolist(), strict=True)
    assert {key: int(value) for key, value in table.items()} == dict(zip(rows, range(2000), strict=True))
    assert table.find(columns)[0].tolist() == numbers.tolist()
    if "erase" in registry.get(design).capabilities:
        assert table.erase(columns).all() and not len(table)
    table.check()


def test_mixed_batches() -> None:
    table = HashMap(["str", "int64"], "int64", design="slab")
    table["ann", 3] = 1
    operations = [Operation.FIND, Operation.INSERT, Operation.ERASE, Operation.FIND]
    held, done = table.execute(operations, (["ann", "bob", "cy", "dan"], [3, 3, 3, 3]), [0, 5, 0, 0])
    assert held.tolist() == [1, 0, 0, 0] and done.tolist() == [True, True, False, False] and table["bob", 3] == 5


def test_bounded_tables() -> None:
    for types in (["str", "int64"], ["int32", "int64"]):
        table = HashMap(types, "int64", max_size=5, evict="fifo", device="cpu")
        for number in range(8):
            table[("x" if types[0] == "str" else 1), number] = number
        assert len(table) == 5 and {int(key[1]) for key in table} == {3, 4, 5, 6, 7}
        keys, values = table.evict(2)
        assert keys[1].tolist() == values.tolist() == [3, 4]
        twin = pickle.loads(pickle.dumps(table))
        assert twin == table and twin.evict(1)[1].tolist() == [5]


def test_a_full_table_names_rows() -> None:
    table = HashMap(["str", "int64"], "int64", capacity=4, on_full="raise", design="linear_probing")
    with pytest.raises(TableFull) as error:
        table.insert((["x"] * 100, np.arange(100)), 1)
    assert error.value.keys is not None and all(row[0] == "x" for row in error.value.keys.tolist())
    assert not len(table)


def test_rows_of_fixed_widths_are_keys_of_that_width() -> None:
    """So such tables are not those of strings: they live in every memory, and on every device."""
    table = HashMap(["int32", "bool", "M8[us]"], "int64", device="cpu")
    assert table._parts.front.key.dtype == np.dtype("V13") and not table._parts.front.key.has_any_length
    wide = HashMap(["U30", "U30"], "int64")
    wide["a", "b"] = 3
    assert wide._parts.front.key.has_any_length and wide["a", "b"] == 3


def test_strings_that_share_bytes_are_other_rows() -> None:
    table = HashMap(["str", "str", "bytes"], "int64", nulls="key")
    rows = [("ab", "", b""), ("a", "b", b""), ("", "ab", b""), ("", "", b"ab"), (None, "ab", b""), ("", None, b"ab")]
    assert table.insert(rows, np.arange(6)).all()
    assert {key: int(value) for key, value in table.items()} == {row: at for at, row in enumerate(rows)}


@pytest.mark.parametrize("rule", ["raise", "key", "drop"])
def test_many_rows(rule: str) -> None:
    """More than are packed together, with strings of many lengths."""
    n, random = 40_000, np.random.default_rng(3)
    first = [None if rule != "raise" and number % 7 == 0 else "x" * (number % 50) for number in range(n)]
    second, numbers = random.integers(0, 90, n).astype("U2"), random.integers(0, 9, n)
    rows = list(zip(first, second.tolist(), numbers.tolist(), strict=True))
    table = HashMap(["str", "str", "int16"], "int64", nulls=rule)
    table.upsert((first, second, numbers), np.arange(n), "min")
    model: dict[Any, int] = {}
    for at, row in enumerate(rows):
        if rule == "key" or row[0] is not None:
            model.setdefault(row, at)
    assert {(text, word, int(number)): int(at) for (text, word, number), at in table.items()} == model
    assert table.find((first, second, numbers), default=-1)[0].tolist() == [model.get(row, -1) for row in rows]


@pytest.mark.parametrize("types", [["str", "int64"], ["int64", "int64"]], ids=str)
def test_columns_that_change_during_a_call(types: Any) -> None:
    """Each item is one that its column had, so the table has rows of such items, each once."""
    numbers, others = np.zeros(5000, np.int64), np.arange(5000)
    text = types[0] == "str"
    first: Any = [f"name {number}" for number in range(5000)] if text else others
    table = HashMap(types, "int64", device="cpu")

    def change(random: np.random.Generator) -> None:
        numbers[:] = random.integers(0, 3, 5000)

    with changed_meanwhile(change):
        for _ in range(20):
            table.insert((first, numbers), others)
            table.find((first, numbers))
    table.check()
    rows = list(table)
    assert len(set(rows)) == len(rows) == len(table) and {int(number) for _, number in rows} <= {0, 1, 2}
    assert {name for name, _ in rows} == set(first.tolist() if not text else first)


def test_structs_that_are_null_have_nulls_in_all_columns() -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [{"name": "ann", "id": 3}, None, {"name": "bob", "id": None}]
    given = pa.array(rows, pa.struct([("name", pa.string()), ("id", pa.int64())]))
    held = {"key": {("ann", 3), (None, None), ("bob", None)}, "drop": {("ann", 3)}}
    for rule, expected in held.items():
        table = HashSet.from_arrays(given, nulls=rule)
        assert set(table) == expected and as_list(table.contains(given)) == [True, rule == "key", rule == "key"]
    assert (None, None) in HashSet.from_arrays(given, nulls="key")
    with pytest.raises(DtypeError, match="got 1 in column 'name'"):
        HashSet.from_arrays(given)


def test_types_and_values_of_other_bytes() -> None:
    """Foreign byte order in a type, and truth values of any byte."""
    table = HashMap([">i4", "?"], "int64", device="cpu")
    odd = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert table.insert((np.arange(4) % 2, odd), 1).sum() == 3
    assert {tuple(map(int, key)) for key in table} == {(0, 0), (1, 1), (0, 1)} and table.key_dtype[0] == np.int32


def test_decimal_numbers_of_other_scales() -> None:
    pa = pytest.importorskip("pyarrow")
    table = HashSet(["str", decimal_type(2)])
    prices = pa.array(list(map(decimal.Decimal, ("1.500", "2.250", "0.125"))), pa.decimal128(12, 3))
    assert as_list(table.insert((pa.array(["a", "b"]), prices[:2]))) == [True, True]
    assert as_list(table.contains((pa.array(["a", "b", "c"]), prices))) == [True, True, False]
    assert ("a", decimal.Decimal("1.5")) in table and ("a", 1.5) in table
    with pytest.raises(DtypeError, match="column 1 of the keys: "):
        table.insert((pa.array(["a", "b", "c"]), prices))
    assert len(table) == 2


@pytest.mark.parametrize(
    "items", [[uuid.UUID(int=7), None], [decimal.Decimal("1.5"), None], [datetime.date(2024, 1, 2), None]]
)
def test_tables_of_columns_of_objects(items: list[Any]) -> None:
    """A column of Python objects has the type that a list of them has."""
    pandas = pytest.importorskip("pandas")
    given = pandas.DataFrame({"name": ["ann", "ann"], "item": pandas.Series(items, dtype=object)})
    table = HashMap.from_arrays(given, np.arange(2), nulls="key", device="cpu")
    assert table.key_dtype[1] == HashSet.from_arrays((given["name"], items), nulls="key").key_dtype[1]
    assert as_list(table[given]) == [table["ann", items[0]], table["ann", None]] == [0, 1]
    objects = HashSet.from_arrays((given["name"], np.array(items[:1], object).repeat(2)), device="cpu")
    assert len(objects) == 1 and ("ann", items[0]) in objects


def test_a_tuple_of_lists_may_be_rows() -> None:
    for lists in ((["ann", "bob"], [3, 4]), ([decimal.Decimal(1)], [3])):
        with pytest.raises(DtypeError, match=r"for columns, give one of them as an array, or .* mapping"):
            HashSet.from_arrays(lists, device="cpu")


def test_floats_by_rule() -> None:
    rows = [("a", 0.0), ("a", -0.0), ("a", NAN), ("a", -NAN)]
    assert len(HashSet(["str", "float64"], floats="value")) == 0
    for rule, count in (("value", 2), ("bits", 4)):
        table = HashSet(["str", "float64"], floats=rule)
        assert table.insert((["a"] * 4, np.array([0.0, -0.0, NAN, -NAN]))).sum() == count
        assert table.contains(rows[:2]).tolist() == [True, True]


# ---- names
@pytest.mark.parametrize("library", LIBRARIES[2:])
def test_names(library: str, tmp_path: Path) -> None:
    table = HashMap.from_arrays(frame(library, ROWS), np.arange(3))
    table.save(tmp_path / "table")
    for twin in (table, table.copy(), pickle.loads(pickle.dumps(table)), HashMap.load(tmp_path / "table")):
        assert as_list(twin[turned(library, ROWS)]) == [0, 1, 2]
        assert twin.key_dtype.names == NAMES
        with pytest.raises(DtypeError, match=r"did you mean 'nam'\? If so, rename"):
            twin.contains(frame(library, ROWS, ("nam", "id")))
        keys = twin.keys(like=library)
        assert type(keys).__module__.partition(".")[0] == library and hasattr(keys, "columns")
        assert isinstance(twin.keys(like="numpy"), tuple)
    found = table.find(frame("pandas", ROWS))
    assert found[0].index.tolist() == [10, 11, 12]


def test_columns_in_another_order_in_two_tables() -> None:
    left = HashMap.from_arrays(frame("pyarrow", [("a", "b"), ("c", "d")], ("x", "y")), [1, 2])
    right = HashMap.from_arrays(frame("pyarrow", [("b", "a"), ("d", "e")], ("y", "x")), [3, 4])
    left.update(right)
    assert dict(left.items()) == {("a", "b"): 3, ("c", "d"): 2, ("e", "d"): 4}
    first, second = (HashSet(["str", "str"]) for _ in range(2))
    first.insert(frame("pyarrow", [("a", "b"), ("c", "d")], ("x", "y")))
    second.insert(frame("pyarrow", [("b", "a"), ("d", "e")], ("y", "x")))
    assert set(first | second) == {("a", "b"), ("c", "d"), ("e", "d")} and set(first & second) == {("a", "b")}


def test_frames_of_one_type_stay_rows_of_items() -> None:
    rows = HashSet.from_arrays(frame("pandas", [(1, 2)], ("x", "y")), device="cpu")
    assert rows.key_dtype == np.dtype(("i8", 2))


# ---- files
def test_a_file_with_other_bytes_of_equal_values(tmp_path: Path) -> None:
    """Rows of a file become rows of the table's form: -0.0 as 0.0, and whatever lies where a null is."""
    table = HashSet(["float64", "str", "int64"], floats="value", nulls="key")
    table.insert([(0.0, "a", None), (1.0, "b", 7)])
    table.save(tmp_path / "table")
    header, body = parts_of(tmp_path / "table")
    held = np.frombuffer(body, np.uint8).copy()
    zero = int(np.flatnonzero(held[:16].view("f8") == 0.0)[0])
    held[:16].view("f8")[zero] = -0.0
    end = len(held) - 2
    held[end - 16 : end].view("i8")[zero] = 99  # of the null, behind which the flags lie
    (tmp_path / "table").write_bytes(archive(header, held.tobytes()))
    loaded = HashSet.load(tmp_path / "table")
    assert (
        loaded == table and (0.0, "a", None) in loaded and (-0.0, "a", None) in loaded and (0.0, "a", 99) not in loaded
    )


def test_files_that_no_table_has_written(tmp_path: Path) -> None:
    table = HashMap(["str", "int64"], "int64", nulls="key")
    table.insert([("a", 1), (None, 2), ("b", None)], [1, 2, 3])
    path = tmp_path / "table"
    table.save(path)
    assert HashMap.load(path) == table
    for change in (
        lambda header: header["columns"][0]["columns"].pop(),
        lambda header: header["columns"][0].pop("nulls"),
        lambda header: header["columns"][0].update(nulls=[True, 1]),
        lambda header: header["columns"][0].update(columns=[]),
        lambda header: header["columns"][0]["columns"][1].update(dtype="<f8"),
        lambda header: header["columns"][0]["columns"][1].update(shape=[2]),
        lambda header: header["columns"][0]["columns"][1].update(dtype="|O"),
        lambda header: header.update(nulls="raise"),
        lambda header: header.update(count=4),
        lambda header: header.update(names=[["a"], None]),
    ):
        header, body = parts_of(path)
        change(header)
        (tmp_path / "other").write_bytes(archive(header, body))
        with pytest.raises(CorruptFile):
            HashMap.load(tmp_path / "other")
