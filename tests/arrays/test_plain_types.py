"""Types as tables keep them: a width for each part, and nothing that the equality of types ignores."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warphash import DtypeError, HashMap, HashSet, MultiMap
from warphash.arrays.plain_types import plain
from warphash.arrays.row_type import Column

WITHOUT_A_LENGTH: list[Any] = [
    *([("name", text), ("id", "i8")] for text in ("U", "S", np.str_, "V0")),
    [("id", "i8"), ("person", [("name", "U"), ("age", "i4")])],
    np.dtype([("pair", np.dtype([("name", "U0"), ("id", "i4")]), (2,))]),
    {"names": ["id", "name"], "formats": ["i8", "S0"]},
    {"name": ("S", 0), "id": ("i8", 0)},
    "i4,U",
    "str,int64",
    [("id", "i8"), ("none", "i4", (0,))],
    [("id", "i8"), ("none", [])],
    "U",
    "S",
    "V",
]

PAIRS: list[Any] = [
    [("both", ("str", "int64"))],
    [("outer", [("both", ("S", "int64"))])],
    {"names": ["both"], "formats": [("str", "int64")]},
    (("str", "int64"), (2,)),
]

MAKERS: list[Callable[[Any], Any]] = [
    lambda dtype: HashSet(dtype, device="cpu"),
    lambda dtype: HashMap(dtype, "i4", device="cpu"),
    lambda dtype: HashMap("i4", dtype, device="cpu"),
    lambda dtype: MultiMap("i4", dtype, device="cpu"),
]


OF_COLUMNS: list[tuple[Any, str]] = [
    *(([("name", text), ("id", "i8")], "needs a length") for text in ("str", "bytes")),
    *((pair, "name the parts of a record") for pair in (("str", "int64"), ("bytes", "int32"), (str, int))),
    (("int64", "int64"), "name the parts of a record"),
    (("int64", np.dtype("M8[s]")), "name the parts of a record"),
]
"""Types of keys of two columns, and the error for values of such a type."""


@pytest.mark.parametrize(("dtype", "refusal"), OF_COLUMNS, ids=str)
def test_types_of_two_columns_are_types_of_keys(dtype: Any, refusal: str) -> None:
    assert len(HashSet(dtype, device="cpu").key_dtype) == 2
    for make in MAKERS[2:]:
        with pytest.raises(DtypeError, match=refusal):
            make(dtype)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dtype", WITHOUT_A_LENGTH, ids=str)
def test_a_part_without_a_length_is_refused(dtype: Any, make: Callable[[Any], Any]) -> None:
    with pytest.raises(DtypeError, match=r"needs a length|needs at least one byte"):
        make(dtype)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dtype", PAIRS, ids=str)
def test_a_pair_of_types_is_refused(dtype: Any, make: Callable[[Any], Any]) -> None:
    with pytest.raises(DtypeError, match="name the parts of a record"):
        make(dtype)


def test_an_array_of_records_with_text_without_a_length() -> None:
    given = np.zeros(2, [("name", "U"), ("id", "i8")])
    with pytest.raises(DtypeError, match="field 'name' needs a length"):
        HashSet.from_arrays(given, device="cpu")
    with pytest.raises(DtypeError, match="field 'name' needs a length"):
        HashMap.from_arrays(np.arange(2), given, device="cpu")


def test_the_mends_keep_every_text() -> None:
    table = HashSet([("name", "U16"), ("id", "int64")], device="cpu")
    assert table.insert([("ada", 1), ("bob", 1)]).all()
    people = HashMap("int64", [("name", "U16"), ("age", "int64")], device="cpu")
    people[7] = ("Ada", 36)
    assert people[7].tolist() == ("Ada", 36)


def test_other_pairs_are_types() -> None:
    for dtype in (("i4", (3,)), ("i4", 3), ("S", 16), (np.void, 5), (("i4", 2), 3), (np.record, [("x", "i4")])):
        assert Column.of_keys(dtype).numpy == np.dtype(dtype)


def marked(dtype: Any) -> np.dtype[Any]:
    made: np.dtype[Any] = np.dtype(dtype, metadata={"of": "another"})  # type: ignore[call-overload]
    return made


PACKED = np.dtype([("a", "u4"), ("b", "u4")])

SPECIAL: list[np.dtype[Any]] = [
    *map(marked, ("i4", "S3", "U2", "M8[us]", "m8[s]", "V5", ">i2")),
    np.dtype((np.record, PACKED)),
    np.dtype([("a", marked("u2")), ("b", marked("S3"))]),
    np.dtype([("outer", np.dtype((np.record, [("a", marked("i4"))]))), ("b", "i4")]),
    np.dtype([("rows", marked("u2"), (3,))]),
    np.dtype((marked("u2"), (3,))),
    np.dtype([("a", "u4"), ("b", "u4")], align=True),
    np.dtype([(("title", "a"), marked("u4"))]),
]


def is_plain(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype:
        return is_plain(dtype.subdtype[0])
    fields = [dtype[name] for name in dtype.names or ()]
    return (
        not dtype.metadata and dtype.type is not np.record and not dtype.isalignedstruct and all(map(is_plain, fields))
    )


@pytest.mark.parametrize("dtype", SPECIAL, ids=str)
def test_types_of_others_do_not_leak(dtype: np.dtype[Any], tmp_path: Path) -> None:
    """Into results, copies, pickles and files: of the table with the type, and of those that come after."""
    base, row = dtype.base, dtype.shape
    for given in (np.zeros((3, *row), base), np.zeros((3, *row), plain(base))):
        table = HashMap.from_arrays(given, given, device="cpu")
        MultiMap.from_arrays(np.arange(3), np.zeros(3, marked("u2")), device="cpu")
        table.save(tmp_path / "table")
        twins = [table, table.copy(), copy.deepcopy(table), pickle.loads(pickle.dumps(table))]
        for twin in [*twins, HashMap.load(tmp_path / "table", device="cpu")]:
            assert twin.key_dtype == np.dtype((plain(base), row)) and is_plain(twin.key_dtype)
            keys, values = twin.to_arrays()
            answers = [keys, values, twin.keys(), twin.values(), twin.find(given)[0], twin[given], twin.get(given, 0)]
            assert len(twin) == 1 and all(is_plain(made.dtype) for made in answers)


def test_the_class_of_records_and_metadata_are_all_that_is_lost() -> None:
    titled = np.dtype([(("title", "a"), "i4"), ("b", "S3")])
    spread = np.dtype({"names": ["b", "a"], "formats": ["i4", "u1"], "offsets": [4, 1], "itemsize": 12})
    for dtype in (titled, spread, np.dtype((spread, (2,)))):
        assert plain(dtype) == dtype
    assert plain(np.dtype(("i4", [("low", "i2"), ("high", "i2")]))).names is None
