"""Columns of all types of keys, in the forms of each library, and what their equal items share."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from warphash.arrays.decimals import decimal_of, decimal_type

__all__ = ["KINDS", "LIBRARIES", "NAN", "Kind", "canonical", "canonical_rows", "kinds_in"]

LIBRARIES = ("list", "numpy", "pandas", "polars", "pyarrow")

UTC, TOKYO = datetime.UTC, datetime.timezone(datetime.timedelta(hours=9))
NOON = datetime.datetime(2024, 1, 1, 12)
IDS = tuple(uuid.UUID(int=number) for number in (0, 7, 2**128 - 1))
PRICES = tuple(map(decimal.Decimal, ("1.50", "-2.25", "0.00")))
TEXTS = ("", "a", "ann", "añ\u00fc", "a\0", "z" * 300)
NAN = math.nan


class Kind(NamedTuple):
    """A type of a column.

    Attributes
    ----------
    spec
        Key type.
    items
        What a column holds.
    makers
        Of each library, what makes a column of a list.
    """

    spec: Any
    items: tuple[Any, ...]
    makers: dict[str, Callable[[list[Any]], Any]]

    def has_nulls_in(self, library: str) -> bool:
        """Whether columns of a library have nulls. NaN and NaT of NumPy's types are values."""
        if library in ("numpy", "pandas"):
            dtype = self.makers[library]([]).dtype
            return not isinstance(dtype, np.dtype) or dtype.kind == "O"
        return True


def of(library: str, make: Callable[[Any, list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda items: make(pytest.importorskip(library), items)


def in_pandas(dtype: Any) -> Callable[[list[Any]], Any]:
    return of("pandas", lambda pd, items: pd.Series(items, range(5, 5 + len(items)), dtype=dtype))


def in_polars(name: str, *arguments: Any) -> Callable[[list[Any]], Any]:
    def make(pl: Any, items: list[Any]) -> Any:
        kind = getattr(pl, name)
        return pl.Series("x", items, kind(*arguments) if arguments else kind)

    return of("polars", make)


def in_arrow(name: str, *arguments: Any) -> Callable[[list[Any]], Any]:
    return of("pyarrow", lambda pa, items: pa.array(items, getattr(pa, name)(*arguments)))


def in_numpy(dtype: Any) -> Callable[[list[Any]], Any]:
    return lambda items: np.array(items, dtype)


def of_decimals(pd: Any, items: list[Any]) -> Any:
    return pd.Series(items, dtype=pd.ArrowDtype(pytest.importorskip("pyarrow").decimal128(10, 2)))


def coded(pa: Any, items: list[Any]) -> Any:
    return pa.array(items, pa.string()).dictionary_encode()


def of_uuids(pa: Any, items: list[Any]) -> Any:
    return pa.array([item and item.bytes for item in items], pa.uuid())


KINDS: dict[str, Kind] = {
    "str": Kind(
        "str",
        TEXTS,
        {
            "numpy": in_numpy(object),
            "pandas": in_pandas(object),
            "polars": in_polars("String"),
            "pyarrow": in_arrow("string"),
        },
    ),
    "str, in other encodings": Kind(
        "str",
        TEXTS,
        {
            "pandas": in_pandas("string"),
            "polars": in_polars("Categorical"),
            "pyarrow": in_arrow("string_view"),
        },
    ),
    "categories": Kind("str", TEXTS, {"pandas": in_pandas("category"), "pyarrow": of("pyarrow", coded)}),
    "bytes": Kind(
        "bytes",
        (b"", b"a", b"\xff\0"),
        {
            "numpy": in_numpy(object),
            "pandas": in_pandas(object),
            "polars": in_polars("Binary"),
            "pyarrow": in_arrow("binary"),
        },
    ),
    "U5": Kind("U5", ("", "ann", "bobby"), {"numpy": in_numpy("U5")}),
    "int64": Kind(
        "int64",
        (0, 1, -1, 2**62),
        {
            "numpy": in_numpy("i8"),
            "pandas": in_pandas("Int64"),
            "polars": in_polars("Int64"),
            "pyarrow": in_arrow("int64"),
        },
    ),
    "int64, of int16": Kind(
        "int64",
        (0, 1, -1, 32767),
        {
            "numpy": in_numpy(">i2"),
            "pandas": in_pandas("Int16"),
            "polars": in_polars("Int16"),
            "pyarrow": in_arrow("int16"),
        },
    ),
    "bool": Kind(
        "bool",
        (True, False),
        {
            "numpy": in_numpy("?"),
            "pandas": in_pandas("boolean"),
            "polars": in_polars("Boolean"),
            "pyarrow": in_arrow("bool_"),
        },
    ),
    "times": Kind(
        "M8[us]",
        (NOON, NOON + datetime.timedelta(microseconds=1)),
        {
            "numpy": in_numpy("M8[us]"),
            "pandas": in_pandas("M8[us]"),
            "polars": in_polars("Datetime", "us"),
            "pyarrow": in_arrow("timestamp", "us"),
        },
    ),
    "instants": Kind(
        "M8[us]",
        (NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=TOKYO), NOON.replace(hour=21, tzinfo=TOKYO)),
        {
            "pandas": in_pandas("datetime64[us, Asia/Tokyo]"),
            "polars": in_polars("Datetime", "us", "Asia/Tokyo"),
            "pyarrow": in_arrow("timestamp", "us", "Asia/Tokyo"),
        },
    ),
    "dates": Kind(
        "M8[D]",
        (NOON.date(), datetime.date(1969, 12, 31)),
        {"numpy": in_numpy("M8[D]"), "polars": in_polars("Date"), "pyarrow": in_arrow("date32")},
    ),
    "spans": Kind(
        "m8[us]",
        (datetime.timedelta(1), datetime.timedelta(-1)),
        {"numpy": in_numpy("m8[us]"), "pandas": in_pandas("m8[us]"), "polars": in_polars("Duration", "us")},
    ),
    "decimals": Kind(
        decimal_type(2),
        PRICES,
        {
            "numpy": in_numpy(object),
            "pandas": of("pandas", of_decimals),
            "polars": in_polars("Decimal", 10, 2),
            "pyarrow": in_arrow("decimal128", 12, 2),
        },
    ),
    "uuid": Kind(
        "V16", IDS, {"numpy": in_numpy(object), "pandas": in_pandas(object), "pyarrow": of("pyarrow", of_uuids)}
    ),
    "float64": Kind(
        "float64",
        (0.0, -0.0, 1.5, NAN),
        {"numpy": in_numpy("f8"), "pandas": in_pandas("f8"), "polars": in_polars("Float64")},
    ),
    "float32": Kind("float32", (0.0, -0.0, 1.5, NAN), {"numpy": in_numpy("f4"), "pyarrow": in_arrow("float32")}),
}
"""Kinds of columns. Each can be given as a list, too."""


def kinds_in(library: str) -> list[str]:
    """The kinds that a library has columns of."""
    return [name for name, kind in KINDS.items() if library == "list" or library in kind.makers]


def canonical(item: Any) -> Any:
    """Of an item of a column, or of a table, what equal items share: nothing of this is the product's."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, np.void):
        return decimal_of(item) if item.dtype.names else item.tobytes()
    if isinstance(item, uuid.UUID):
        return item.bytes
    if isinstance(item, datetime.datetime):
        naive = item.replace(tzinfo=None) - (item.utcoffset() or datetime.timedelta())
        return (naive - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    if isinstance(item, datetime.date):
        return (item - datetime.date(1970, 1, 1)).days
    if isinstance(item, datetime.timedelta):
        return item // datetime.timedelta(microseconds=1)
    if isinstance(item, np.datetime64 | np.timedelta64):
        return int(item.astype(np.int64))
    if isinstance(item, float | np.floating):
        return "NaN" if item != item else float(item) + 0.0
    return item.item() if isinstance(item, np.generic) else item


def canonical_rows(rows: Any) -> list[Any]:
    return [tuple(map(canonical, row)) for row in rows]
