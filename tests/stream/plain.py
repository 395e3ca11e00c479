"""The verbs in plain Python, for rows that are tuples, and sources of such rows in all forms that are taken."""

from __future__ import annotations

import collections
import datetime
import decimal
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

Row = tuple[Any, ...]

NAN = math.nan


def plain(item: Any) -> Any:
    """An item that equals its like: NaN is a text here, and a null is None."""
    return "NaN" if isinstance(item, float) and math.isnan(item) else item


def rows_of(table: Any) -> list[Row]:
    """The rows of a table, or of a reader."""
    table = table.read_all() if hasattr(table, "read_all") else table
    columns = [[plain(item) for item in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def kept(rows: Sequence[Row], key: Callable[[Row], Any], keep: Any) -> list[Row]:
    places: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(key(row), []).append(place)
    at = -1 if keep == "last" else 0
    stay = {found[at] for found in places.values() if keep or len(found) == 1}
    return [row for place, row in enumerate(rows) if place in stay]


def counted(rows: Sequence[Row], key: Callable[[Row], Row]) -> list[Row]:
    return [(*found, n) for found, n in collections.Counter(map(key, rows)).most_common()]


def is_missing(key: Row) -> bool:
    return any(item is None or item == "NaN" for item in key)


def joined(
    left: Sequence[Row],
    right: Sequence[Row],
    key: Callable[[Row], Row],
    rest: Callable[[Row], Row],
    how: str,
    nulls: str,
) -> list[Row]:
    """Rows of both sides, each with the key in front; ``rest`` has the right side's columns beside the key."""
    width, n = len(rest(right[0])), len(left[0])

    def partners(one: Row, others: Sequence[Row]) -> list[int]:
        if nulls == "unequal" and is_missing(key(one)):
            return []
        return [place for place, other in enumerate(others) if key(other) == key(one)]

    found = [partners(row, right) for row in left]
    if how in ("semi", "anti"):
        return [row for row, places in zip(left, found, strict=True) if bool(places) == (how == "semi")]
    if how == "right":
        made = []
        for row in right:
            places = partners(row, left)
            made += [(*left[place], *rest(row)) for place in places]
            if not places:
                made.append((*key(row), *[None] * (n - len(key(row))), *rest(row)))
        return made
    made = []
    for row, places in zip(left, found, strict=True):
        made += [(*row, *rest(right[place])) for place in places]
        if not places and how != "inner":
            made.append((*row, *[None] * width))
    if how == "outer":
        seen = {place for places in found for place in places}
        alone = [row for place, row in enumerate(right) if place not in seen]
        made += [(*key(row), *[None] * (n - len(key(row))), *rest(row)) for row in alone]
    return made


_TIME = datetime.datetime(2026, 3, 29, 1, 30, tzinfo=datetime.UTC)

KEYS: dict[str, tuple[Any, Sequence[Any]]] = {
    "int64": (pa.int64(), [None, *range(150), -(2**63), 2**63 - 1]),
    "uint8": (pa.uint8(), range(200)),
    "bool": (pa.bool_(), [None, True, False]),
    "float64": (pa.float64(), [None, NAN, -NAN, 0.0, -0.0, math.inf, *(k / 8 for k in range(150))]),
    "float32": (pa.float32(), [NAN, -NAN, *(k / 8 for k in range(150))]),
    "string": (pa.string(), [None, "", "a", "a\0", *(f"{k:>{k % 23}}" for k in range(150))]),
    "large_string": (pa.large_string(), ["", *(chr(k) * (k % 40) for k in range(97, 200))]),
    "string_view": (pa.string_view(), [None, *(f"{k}" * 7 for k in range(150))]),
    "binary": (pa.binary(), [None, *(bytes([k, 0]) for k in range(150))]),
    "fixed": (pa.binary(3), [None, *(bytes([k, 0, k]) for k in range(150))]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), [None, *(f"w{k}" for k in range(150))]),
    "numbers": (pa.dictionary(pa.int16(), pa.int64()), [None, *range(150)]),
    "decimal": (pa.decimal128(20, 2), [None, *(decimal.Decimal(k) / 4 for k in range(-75, 75))]),
    "decimal256": (pa.decimal256(50, 2), [decimal.Decimal(k) / 4 for k in range(-75, 75)]),
    "zoned": (pa.timestamp("us", "Europe/Berlin"), [None, *(_TIME + datetime.timedelta(hours=k) for k in range(150))]),
    "date": (pa.date32(), [None, *(datetime.date(2026, 1, 1) + datetime.timedelta(k) for k in range(150))]),
    "time": (pa.time64("us"), [datetime.time(k % 24, k % 60) for k in range(150)]),
    "duration": (pa.duration("ms"), [None, *(datetime.timedelta(seconds=k) for k in range(150))]),
    "struct": (pa.struct({"x": pa.int32(), "y": pa.int32()}), [{"x": k % 9, "y": k % 20} for k in range(150)]),
    "null": (pa.null(), [None]),
}
"""Types of keys, and items that are drawn."""


def drawn(kind: str, n: int, seed: int = 1) -> pa.Table:
    """A table of a key column ``k``, a text ``s`` and a number ``v``, which is that of the row."""
    chance, (type_, items) = random.Random(seed), KEYS[kind]
    texts = [None, "", "x", *map(str, range(30))]
    return pa.table(
        {
            "k": pa.array(chance.choices(items, k=n), pa.string() if kind == "string_view" else type_).cast(type_),
            "s": chance.choices(texts, k=n),
            "v": pa.array(range(n), pa.int64()),
        }
    )


def _path(table: pa.Table, folder: Path) -> str:
    path = str(folder / f"{random.randrange(1 << 60)}.parquet")
    pq.write_table(table, path, row_group_size=100)
    return path


def _paths(table: pa.Table, folder: Path) -> list[str]:
    third = len(table) // 3
    return [_path(part, folder) for part in (table[:third], table[third:third], table[third:])]


def _data_set(table: pa.Table, folder: Path) -> Any:
    return pyarrow.dataset.dataset(_paths(table, folder))


def _pandas(table: pa.Table, folder: Path) -> Any:
    pandas = pytest.importorskip("pandas")
    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def _polars(table: pa.Table, folder: Path) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def _duckdb(table: pa.Table, folder: Path) -> Any:
    return pytest.importorskip("duckdb").connect().from_arrow(table)


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "path": _path,
    "paths": _paths,
    "data set": _data_set,
    "reader": lambda table, folder: table.to_reader(70),
    "batches": lambda table, folder: iter(table.to_batches(70)),
    "tables": lambda table, folder: (table[at : at + 90] for at in range(0, len(table), 90)),
    "table": lambda table, folder: table,
    "batch": lambda table, folder: table.combine_chunks().to_batches()[0],
    "pandas": _pandas,
    "polars": _polars,
    "duckdb": _duckdb,
    "mapping": lambda table, folder: {name: table[name] for name in table.column_names},
}
"""Forms of a source, of a table."""
