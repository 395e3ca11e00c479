"""Columns of any library that gives out Arrow data: every value exactly, or refused with a mend that works."""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warphash import DtypeError, HashMap, HashSet, ShapeError, WarphashError

pa = pytest.importorskip("pyarrow")

D, DAY = decimal.Decimal, datetime.date(2024, 5, 6)
ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2**127)


class ArrayOnly:
    """What speaks Arrow by the protocol alone."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._column.__arrow_c_array__(requested_schema)


class StreamOnly:
    """What gives its data out once, as the result of a query does."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        column, self._column = self._column, None
        return column.__arrow_c_stream__(requested_schema)


def in_pieces(column: Any) -> Any:
    return pa.chunked_array([column[:1], column[1:]])


def sliced(column: Any) -> Any:
    return pa.concat_arrays([column[-1:], column, column[:1]])[1:-1]


def encoded(column: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(column)), pa.int16()), column)


def in_runs(column: Any) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(column) + 1), pa.int16()), column)


FORMS: dict[str, Callable[[Any], Any]] = {
    "column": lambda column: column,
    "sliced": sliced,
    "pieces": in_pieces,
    "array only": ArrayOnly,
    "sliced array only": lambda column: ArrayOnly(sliced(column)),
    "stream only": lambda column: StreamOnly(in_pieces(column)),
    "dictionary": encoded,
    "dictionary by array": lambda column: ArrayOnly(encoded(column)),
    "runs": in_runs,
    "sliced runs": lambda column: ArrayOnly(in_runs(sliced(column))),
}

COLUMNS = {
    **{str(kind): pa.array([3, 5, 0], kind) for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.int64())},
    "bool": pa.array([True, False, True]),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([2, 0, 1], pa.int8())),
    "binary(2)": pa.array([b"ab", b"\0\0", b"c\0"], pa.binary(2)),
    "uuid": pa.array([ONE.bytes, TWO.bytes], pa.uuid()),
    "decimal32": pa.array([D("1.50"), D("-0.01")], pa.decimal32(5, 2)),
    "decimal64": pa.array([D("1.50"), D("-0.01")], pa.decimal64(12, 2)),
    "decimal128": pa.array([D("1.50"), D("-0.01"), D("9" * 30)], pa.decimal128(38, 2)),
    "decimal256": pa.array([D("1.50"), D("-0.01"), D("9" * 60)], pa.decimal256(70, 2)),
    "date32": pa.array([DAY, datetime.date(1969, 1, 1)]),
    "date64": pa.array([DAY, datetime.date(1969, 1, 1)], pa.date64()),
    **{f"time32[{unit}]": pa.array([1, 86399], pa.time32(unit)) for unit in ("s", "ms")},
    **{f"time64[{unit}]": pa.array([1, 2**35], pa.time64(unit)) for unit in ("us", "ns")},
    **{f"duration[{unit}]": pa.array([1, -5], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp[{unit}]": pa.array([1, -5], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "timestamp of a zone": pa.array([1, -5], pa.timestamp("us", "Asia/Tokyo")),
    "list(2)": pa.array([[1, 2], [2, 1], [0, 0]], pa.list_(pa.int32(), 2)),
    "list(2) of decimal": pa.array([[D(1), D(2)], [D(2), D(1)]], pa.list_(pa.decimal128(5, 0), 2)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COLUMNS)
def test_each_type_in_each_form(name: str, form: str) -> None:
    column = COLUMNS[name]
    # Nanoseconds have no text where pandas is missing.
    distinct = len({item.value if name.endswith("[ns]") else str(item) for item in column})
    if form in ("sliced", "sliced array only") and name in ("bool8", "uuid"):
        column = pa.ExtensionArray.from_storage(column.type, sliced(column.storage))
        form = {"sliced": "column", "sliced array only": "array only"}[form]
    table = HashMap.from_arrays(FORMS[form](column), np.arange(len(column)), device="cpu")
    assert len(table) == distinct
    other = HashSet.from_arrays(column, device="cpu")
    assert other.key_dtype == table.key_dtype
    assert np.asarray(other.contains(FORMS[form](column))).all()
    assert np.asarray(table.contains(column)).all()
    assert np.asarray(table.contains(list(column))).all() and all(item in table for item in column)
    values = HashMap.from_arrays(np.arange(len(column)), FORMS[form](column), device="cpu")
    assert np.asarray(values[np.arange(len(column))] == other.keys(like="numpy")[0]).shape[0] == len(column)


@pytest.mark.parametrize("name", ["int64", "binary(2)", "decimal128", "decimal256", "list(2)", "list(2) of decimal"])
def test_answers_of_pyarrow_are_of_the_type(name: str) -> None:
    column = COLUMNS[name]
    table = HashMap.from_arrays(column, column, device="cpu")
    assert sorted(map(str, table.keys().to_pylist())) == sorted(map(str, column.to_pylist()))
    assert table[column].to_pylist() == column.to_pylist()
    if not name.startswith("list"):
        nulls = pa.concat_arrays([column, pa.nulls(1, column.type)])
        keys = HashSet.from_arrays(nulls, nulls="key").keys().to_pylist()
        assert set(keys) == set(nulls.to_pylist())


def test_the_scale_of_decimal_numbers_belongs_to_the_type() -> None:
    table = HashSet.from_arrays(pa.array([D("1.50"), D("-2.25")], pa.decimal128(10, 2)), device="cpu")
    assert table.contains(pa.array([D("1.5"), D("150")], pa.decimal64(12, 2))).to_pylist() == [True, False]
    for given in (pa.array([D("1.500")], pa.decimal128(10, 3)), pa.array([D("15")], pa.decimal128(10, 0))):
        with pytest.raises(DtypeError, match=r"2 digits behind the point, such as .* decimal128\(38, 2\)"):
            table.contains(given)
        assert table.contains(given.cast(pa.decimal128(38, 2))).to_pylist() == [given[0].as_py() == D("1.5")]
    assert D("1.5") in table and D("-2.250") in table and D("1.501") not in table and D("NaN") not in table
    assert table.contains([D("1.5"), 2, D("-2.25")]).tolist() == [True, False, True]
    with pytest.raises(DtypeError, match=r"1\.555"):
        table.insert([D("1.555")])
    assert HashSet.from_arrays(pa.array([D("1.5")]), device="cpu") != table
    assert (table | table) == table


def test_single_values() -> None:
    times = HashSet.from_arrays(pa.array([datetime.time(1, 2, 3)], pa.time64("us")), device="cpu")
    assert datetime.time(1, 2, 3) in times and datetime.time(1, 2) not in times
    ids = HashSet.from_arrays(COLUMNS["uuid"], device="cpu")
    assert ONE in ids and ONE.bytes in ids and uuid.UUID(int=3) not in ids
    text = HashSet.from_arrays(pa.array(["a", "b"]))
    assert pa.scalar("a") in text and text.contains(list(pa.array(["b", "c"]))).tolist() == [True, False]


REFUSED = {
    "list": (pa.array([[1], [2, 3]]), "lists of any length"),
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "maps"),
    "union": (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]), "unions"),
    "interval": (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "intervals"),
    "opaque": (pa.ExtensionArray.from_storage(pa.opaque(pa.int32(), "t", "v"), pa.array([1], pa.int32())), "storage"),
    "nulls": (pa.array([1, None]), "1 nulls among them"),
    "only nulls": (pa.nulls(2), "2 nulls among them"),
    "null values of a dictionary": (encoded(pa.array([5, None])), "1 nulls among them"),
    "nulls in lists": (pa.array([[1, None]], pa.list_(pa.int32(), 2)), "lists without nulls"),
    "code too large": (
        pa.DictionaryArray.from_arrays(pa.array([7], pa.int8()), pa.array([5]), safe=False),
        "the code 7",
    ),
    "code below 0": (
        pa.DictionaryArray.from_arrays(pa.array([-1], pa.int8()), pa.array([5]), safe=False),
        "the code -1",
    ),
    "code of text": (
        pa.DictionaryArray.from_arrays(pa.array([7], pa.int8()), pa.array(["a"]), safe=False),
        "the code 7",
    ),
    "code of no values": (
        pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([], pa.string()), safe=False),
        "the code 0",
    ),
}


@pytest.mark.parametrize("wrap", [lambda column: column, ArrayOnly])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, wrap: Any) -> None:
    column, message = REFUSED[name]
    with pytest.raises(DtypeError, match=message):
        HashSet.from_arrays(wrap(column), device="cpu")


def test_the_storage_of_an_extension_type() -> None:
    column = REFUSED["opaque"][0]
    assert len(HashSet.from_arrays(column.storage, device="cpu")) == 1


WIDTHS = [pa.decimal32(9, 2), pa.decimal64(10, 2), pa.decimal128(38, 2), pa.decimal256(60, 2)]


@pytest.mark.parametrize("held", WIDTHS, ids=str)
def test_decimal_numbers_of_other_widths(held: Any) -> None:
    """Of one scale: a lookup compares the numbers, and an update takes those that fit."""
    numbers = [D("1.50"), D("-2.25"), D("0.00")]
    table = HashSet.from_arrays(pa.array(numbers, held), device="cpu")
    nullable = HashSet.from_arrays(pa.array([*numbers, None], held), nulls="key", device="cpu")
    for width in WIDTHS:
        given = pa.array([*numbers, D("3.00")], width)
        assert table.contains(given).to_pylist() == nullable.contains(given).to_pylist() == [True] * 3 + [False]
        assert nullable.contains(pa.array([None, numbers[0]], width)).to_pylist() == [True, True]
        items = HashSet.from_arrays(given, device="cpu").keys(like="numpy")
        there = table.contains(items).tolist()
        assert sorted(there) == [False, True, True, True] and there == table.contains(list(items)).tolist()
        assert there == [item in table for item in items]
        rows = HashSet.from_arrays(pa.array([numbers[:2]], pa.list_(held, 2)), device="cpu")
        assert rows.contains(pa.array([numbers[:2], numbers[1:]], pa.list_(width, 2))).to_pylist() == [True, False]
        record = [("a", "i4"), ("b", table.key_dtype)]
        records = HashSet(record, device="cpu")
        records.insert(np.zeros(1, record))
        assert records.contains(np.zeros(1, [("a", "i8"), ("b", items.dtype)])).all()
        assert not table.insert(pa.array(numbers, width)).to_numpy(zero_copy_only=False).any()
    for whole in (10**45, -(10**45), 2**127, -(2**127) - 1):
        wide = pa.array([numbers[0], D(f"{whole}e-2")], WIDTHS[-1])
        assert table.contains(wide).to_pylist() == [True, False]
        if held != WIDTHS[-1]:
            with pytest.raises(DtypeError, match="leave it out"):
                table.insert(wide)


@pytest.mark.parametrize("make", [pa.decimal128, pa.decimal256])
@pytest.mark.parametrize("scale", [-2, 0, 18, 19, 30, 38])
def test_the_mend_for_numbers_in_a_table_of_decimal_numbers(make: Any, scale: int) -> None:
    table = HashSet.from_arrays(pa.array([D(0)], make(38, scale)), device="cpu")
    integers = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    for kind in [*integers, pa.float32(), pa.float64(), pa.bool_(), pa.decimal128(38, scale - 1)]:
        given = pa.array([D(0)], kind) if pa.types.is_decimal(kind) else pa.array([0]).cast(kind)
        with pytest.raises(DtypeError, match=f"give decimal numbers with {scale} digits") as caught:
            table.insert(given)
        cast = re.search(r"cast to (decimal\d+)\((\d+), ", str(caught.value))
        mended = [D(0)] if cast is None else given.cast(getattr(pa, cast[1])(int(cast[2]), scale))
        assert (cast is None) == (kind == pa.bool_() or (scale < 0 and pa.types.is_integer(kind)))
        assert not np.asarray(table.insert(mended)).any()


def test_single_values_of_an_extension_type() -> None:
    """Alone, in lists, and as parts of other types."""
    opaque, n = REFUSED["opaque"][0], pa.array([1])
    parts = pa.FixedSizeListArray.from_arrays(opaque, 1), pa.StructArray.from_arrays([n, opaque], ["a", "b"])
    tables = [HashSet("i4", device="cpu"), HashSet("i4", nulls="key"), HashSet(("i4", 1), device="cpu")]
    verbs = [HashSet("str").insert, *(verb for table in tables for verb in (table.contains, table.insert))]
    for item in (opaque[0], *(part[0] for part in parts)):
        for verb in verbs:
            for given in (item, [item], [item, item]):
                with pytest.raises(DtypeError, match=r"extension type 'arrow\.opaque'.*storage"):
                    verb(given)
    known = [COLUMNS["uuid"][0], pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))[0]]
    assert HashSet("V16", device="cpu").insert(known[:1]).all() and HashSet("?", device="cpu").insert(known[1:]).all()


def test_codes_of_nulls_may_be_any() -> None:
    codes = pa.Array.from_buffers(pa.int8(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(b"\x00\x7f")])
    for values in (pa.array([5]), pa.array(["a"])):
        column = pa.DictionaryArray.from_arrays(codes, values, safe=False)
        assert (
            len(HashSet.from_arrays(column, nulls="key")) == 2 and len(HashSet.from_arrays(column, nulls="drop")) == 1
        )


def test_categories_of_pandas_that_point_nowhere() -> None:
    pd = pytest.importorskip("pandas")
    for values in ([5, 6], ["a", "b"]):
        column = pd.Series(pd.Categorical.from_codes([0, 1], pd.Index(values)))
        column.array._codes[...] = [0, 9]  # what damaged memory would have
        with pytest.raises(DtypeError, match="the code 9"):
            HashSet.from_arrays(column, device="cpu")


def test_streams_of_several_columns() -> None:
    table = pa.table({"a": [1, 5], "b": [2, 6]})
    made = HashSet.from_arrays(StreamOnly(table), device="cpu")
    assert made.contains(StreamOnly(table.select(["b", "a"]))).all()
    made.insert(table.to_reader())
    assert len(made) == 2
    with pytest.raises(DtypeError, match="got none: give a table"):
        HashSet.from_arrays(pa.table({}), device="cpu")
    with pytest.raises(DtypeError, match=r"column 1 of the keys: .* give floats='value'"):
        HashSet.from_arrays(StreamOnly(pa.table({"a": [1], "b": [0.5]})), device="cpu")


def test_text_that_is_given_out_once() -> None:
    words = pa.chunked_array([["a", "b"], ["a"]])
    table = HashSet.from_arrays(StreamOnly(words))
    assert len(table) == 2 and isinstance(table.contains(StreamOnly(words)), np.ndarray)
    assert table.key_dtype == np.dtype("U") and len(HashSet.from_arrays(in_runs(pa.array(["a", "b"])))) == 2


def test_empty_streams_have_a_type() -> None:
    for kind in (pa.int32(), pa.decimal128(5, 1), pa.list_(pa.int8(), 3)):
        empty = HashSet.from_arrays(StreamOnly(pa.chunked_array([], kind)), device="cpu")
        assert len(empty) == 0 and empty.key_dtype == HashSet.from_arrays(pa.array([], kind), device="cpu").key_dtype


def test_relations_of_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    table = HashSet.from_arrays(connection.sql("select 3 a, 4 b"), device="cpu")
    assert table.contains(connection.sql("select 4 b, 3 a")).all()
    result = connection.sql("select 3 a")
    connection.close()
    for verb in (HashSet.from_arrays, table.contains, table.insert):
        with pytest.raises(WarphashError):
            verb(result)
    assert HashSet("i8").contains([result]).tolist() == [False]


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    with pytest.raises(DtypeError, match=r"call \.collect\(\)"):
        HashSet.from_arrays(pl.LazyFrame({"a": [1]}))
    with pytest.raises(DtypeError, match="Python objects"):
        HashSet.from_arrays(pl.Series([1, 2], dtype=pl.Object))
    with pytest.raises(DtypeError, match="_pli128"):
        HashSet.from_arrays(pl.Series([1], dtype=pl.Int128))
    prices = pl.Series("price", [D("1.50"), D("2.25")], dtype=pl.Decimal(10, 2))
    table = HashMap.from_arrays(prices, prices, device="cpu")
    assert table[prices].to_list() == prices.to_list() and table[prices].name == "price"
    assert sorted(table.keys()) == prices.to_list()
    times = pl.Series([datetime.time(1), datetime.time(2)])
    assert HashSet.from_arrays(times, device="cpu").contains(times).all()
    frame = pl.DataFrame({"from": times, "to": times})
    assert HashSet.from_arrays(frame, device="cpu").keys().dtype == pl.Array(pl.Duration("ns"), 2)


def test_pandas_in_arrow_memory() -> None:
    pd = pytest.importorskip("pandas")
    column = pd.Series(COLUMNS["decimal128"], dtype=pd.ArrowDtype(COLUMNS["decimal128"].type))
    table = HashMap.from_arrays(column, column, device="cpu")
    assert table[column].tolist() == column.tolist() and sorted(table.keys()) == sorted(column)


def test_what_fails_to_give_its_data_out() -> None:
    class Failing:
        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            raise self.error

        error: Exception = RuntimeError("no more")

    given = Failing()
    with pytest.raises(DtypeError, match=r"RuntimeError \(no more\): give a list of its values"):
        HashSet.from_arrays(given)
    given.error = MemoryError()
    with pytest.raises(MemoryError):
        HashSet.from_arrays(given)


def test_text_in_frames_is_refused() -> None:
    """The names of its columns would be as many strings."""
    pd = pytest.importorskip("pandas")
    with pytest.raises(ShapeError, match="got a frame"):
        HashSet("str").contains(pd.DataFrame({"a": ["x", "y"], "b": ["z", "w"]}))


def test_a_single_decimal_of_another_scale() -> None:
    table = HashMap.from_arrays(pa.array([D("1.50")], pa.decimal128(10, 2)), [1], device="cpu")
    for scale, item in ((1, D("1.5")), (2, D("1.50")), (5, D("1.50000"))):
        scalar = pa.array([item], pa.decimal128(10, scale))[0]
        assert scalar in table and table.contains([scalar]).all() and table[scalar] == 1
        table[scalar] = 1
    assert len(table) == 1
