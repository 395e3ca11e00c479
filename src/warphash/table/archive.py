"""Saved tables: files of columns (`column_file`), of keys, then values, then ranks, and a description of the table.

The file holds the pairs and not the slots. So the file is as small as the pairs, any device can read it, and a design
may change how it lays out its memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays.column_types import ColumnTypes, column_types
from ..arrays.key_column import key_column, value_column
from ..arrays.row_type import Column
from ..arrays.strings import StringArray
from ..designs import registry
from ..errors import DtypeError
from ..storage.bounded.bound import EVICT, RANKED_ROWS
from .column_file import (
    STRINGS,
    ColumnsOfFile,
    Stored,
    columns_at,
    count_of,
    describe,
    read_file,
    row_type,
    rows_at,
    shown,
    strings_at,
    write_file,
)
from .copies import TableContents
from .key_columns import CompositeColumn, key_column_of

__all__ = ["header_of", "read", "stored_columns", "table_of", "type_in_header", "write"]

_FIELDS: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "capacity": (int,),
    "design": (str,),
    "parameters": (dict,),
    "load_factor": (int, float),
    "load_bounds": (list, type(None)),
    "seed": (int,),
    "hash": (str,),
    "on_full": (str,),
    "attempts": (int,),
    "count_probes": (bool,),
    "nulls": (str, type(None)),
    "floats": (str, type(None)),
    "max_size": (int, type(None)),
    "evict": (str, type(None)),
    "score": (str, type(None)),
    "memory": (str, type(None)),
    "names": (list, type(None)),
    "count": (int,),
    "columns": (list,),
}
"""The header: each field, and the exact types of its value."""

_NEWER_FIELDS = {"nulls", "floats", "load_bounds", "max_size", "evict", "score", "memory", "names"}
"""Which older files do not have. A missing field stands for None."""

_COLUMNS = {"HashMap": 2, "HashSet": 1, "MultiMap": 2}
"""Number of columns of each class: keys, and values if the class has values. Ranks follow, if the table keeps ranks."""

_MOST_SLOTS = 1 << 37
"""Most slots of a table of any design: 2^32 buckets of 32 slots."""


def write(path: str | os.PathLike[str], contents: Callable[[], TableContents]) -> None:
    """Write what ``contents`` returns of a table, as `column_file.write_file`."""

    def columns_of() -> tuple[dict[str, Any], list[Stored]]:
        description, *held = contents()
        columns = [array for array in held if array is not None]
        return header_of(description, list(map(describe, columns)), count_of(columns[0])), columns

    write_file(path, columns_of)


def header_of(description: dict[str, Any], columns: Sequence[dict[str, Any]], count: int) -> dict[str, Any]:
    """The header of a file: what the table is, with the types of its rows (`describe`), and their number.

    Raises
    ------
    DtypeError
        If no file can name a type.
    """
    names = description["names"] and [_described_names(known) for known in description["names"]]
    return {**description, "names": names, "count": count, "columns": list(columns)}


def table_of(header: Any, kind: str) -> dict[str, Any]:
    """The description in a header of `header_of`, with the types of ``key`` and ``value``.

    Raises
    ------
    ValueError, TypeError, OverflowError, RecursionError
        If the header is none of a table of class ``kind``.
    """
    _check_header(header, kind)
    rows = [_type_of(column) for column in header["columns"]]
    return {**header, "key": rows[0], "value": rows[1] if _COLUMNS[kind] > 1 else None}


def _type_of(column: Any) -> Any:
    """The type of the rows of a column; of keys of several columns, their `ColumnTypes`."""
    if _has_columns(column):
        return column_types([_type_of(each) for each in column["columns"]])
    if column in STRINGS:
        return np.dtype("U" if column == STRINGS[0] else "S")
    dtype, shape = row_type(column)
    return np.dtype((dtype, shape)) if shape else dtype


def stored_columns(description: dict[str, Any]) -> list[Column]:
    """The columns of keys, and of values if there are any, of a table with a description of `table_of`.

    Raises
    ------
    DtypeError, ParameterError
        If there is no such table.
    """
    key = key_column_of(description["key"], description.get("nulls") or "raise", description.get("floats"))
    return [key] if description["value"] is None else [key, value_column(description["value"])]


def type_in_header(column: Column) -> dict[str, Any]:
    """The type of the rows of a column, as a header has it. Raises `DtypeError` if no file can name it."""
    no_strings = StringArray(np.zeros(1, np.int64), np.empty(0, np.uint8), getattr(column, "text", False))
    if column.is_of_columns:
        return describe(column.for_file(no_strings if column.has_any_length else np.empty(0, column.dtype)))
    if column.spec in (np.dtype("U"), np.dtype("S")):
        return describe(no_strings)
    return describe(np.empty(0, column.spec))


def read(path: str | os.PathLike[str], kind: str) -> TableContents:
    """Read what `write` wrote, as `column_file.read_file`. The description also has the types of ``key`` and ``value``.

    Whether the options in the description suit a table is checked when the table is made.
    """
    mend = "; open(path) opens what was made with memory=path"
    return read_file(path, kind, partial(_parse, kind), mend)


def _parse(kind: str, header: dict[str, Any], body: memoryview) -> TableContents:
    """The contents of a file. Raises a built-in error that says what is wrong."""
    _check_header(header, kind)
    at = 0
    arrays: list[Any] = []
    rows: list[Any] = []
    columns = header.pop("columns")
    has_rule = header.get("nulls") not in (None, "raise")
    if has_rule and columns[0] not in STRINGS and not _has_columns(columns[0]):
        raise ValueError(f"nulls={shown(header['nulls'])} is for strings in a file")
    for number, column in enumerate(columns):
        if number == 0 and _has_columns(column):
            keys, at = columns_at(body, at, header["count"], column)
            types = _types_of(keys)
            of_keys = CompositeColumn.of(types, header.get("nulls") or "raise", header.get("floats"))
            rows.append(types)
            arrays.append(of_keys.of_file(keys))
            continue
        row = _type_of(column)
        if column in STRINGS and number <= (kind == "HashMap"):  # of keys, and of values of a map
            strings, at = strings_at(body, at, header["count"], column == STRINGS[0])
            arrays.append(strings)
            rows.append(row)
            continue
        if number:
            Column.of_values(row)
        else:
            key_column(row, floats=header.get("floats"))
        array, at = rows_at(body, at, header["count"], column)
        arrays.append(array)
        rows.append(row)
    if at != len(body):
        raise ValueError(f"{len(body) - at:,} bytes follow the rows")
    header["key"], header["value"] = rows[0], rows[1] if _COLUMNS[kind] > 1 else None
    ranks = arrays.pop() if _keeps_ranks(header) else None
    if ranks is not None and (ranks.dtype != np.uint64 or ranks.ndim != 1):
        raise ValueError(f"ranks must be of type uint64, got {rows[-1]}")
    return TableContents(header, arrays[0], arrays[1] if len(arrays) > 1 else None, ranks)


def _has_columns(described: Any) -> bool:
    """Whether a description is one of keys of several columns."""
    return type(described) is dict and "columns" in described


def _types_of(keys: ColumnsOfFile) -> ColumnTypes:
    """The types of columns that were read."""
    types: list[Any] = []
    for column in keys.columns:
        if isinstance(column, StringArray):
            types.append(str if column.text else bytes)
        else:
            types.append(np.dtype((column.dtype, column.shape[1:])))
    made = column_types(types)
    assert made is not None
    return made


def _keeps_ranks(header: dict[str, Any]) -> bool:
    return header.get("evict") in RANKED_ROWS


def _check_header(header: Any, kind: str) -> None:
    """Raise `ValueError` unless `write` could have written such a header for a table of class ``kind``."""
    if type(header) is not dict:
        raise ValueError(f"the header must be a JSON object, got {shown(header)}")
    if wrong := (header.keys() | _NEWER_FIELDS) ^ _FIELDS.keys():
        raise ValueError(f"the header must have the fields {', '.join(_FIELDS)}; it differs in {shown(sorted(wrong))}")
    for name, types in _FIELDS.items():
        if type(header.get(name)) not in types:  # a bool is an int to `isinstance`
            expected = " or ".join(t.__name__ for t in types)
            raise ValueError(f"{name} must be of type {expected}, got {shown(header[name])}")
    if header["kind"] != kind:
        raise ValueError(f"it holds a {shown(header['kind'])}")
    if header["design"] not in registry.names():
        raise ValueError(f"there is no design {shown(header['design'])}")
    registry.get(header["design"]).resolve(header["parameters"])
    if any(type(bound) not in (int, float) for bound in header.get("load_bounds") or ()):
        raise ValueError(f"load_bounds must be two numbers, got {shown(header['load_bounds'])}")
    if not 0 < header["load_factor"] <= 1:
        raise ValueError(f"load_factor must be in (0, 1], got {shown(header['load_factor'])}")
    if not 0 <= header["capacity"] <= header["load_factor"] * _MOST_SLOTS:
        raise ValueError(f"no table has a capacity of {shown(header['capacity'])} at its load factor")
    if (header.get("max_size") is None) != (header.get("evict") is None) or header.get("evict") not in (None, *EVICT):
        raise ValueError(f"no table has max_size={shown(header.get('max_size'))} and evict={shown(header['evict'])}")
    if header.get("max_size") is not None and not 0 < header["max_size"] < 1 << 63:
        raise ValueError(f"no table has max_size={shown(header['max_size'])}")
    if header["count"] < 0:
        raise ValueError(f"count must not be negative, got {shown(header['count'])}")
    _check_names(header)
    if len(header["columns"]) != (columns := _COLUMNS[kind] + _keeps_ranks(header)):
        raise ValueError(f"a {kind} has {columns} columns, got {len(header['columns'])}")


def _described_names(names: list[Any] | None) -> Any:
    """Names of columns in JSON: text, numbers, and lists in place of tuples."""
    if names is None:
        return None
    plain = [_plain_name(name) for name in names]
    if _names(plain) != tuple(names):
        raise DtypeError(
            f"expected columns whose names a file can have, which are text, numbers and tuples of these, got "
            f"{shown(names)}: rename them in the frame that gives the table its first rows"
        )
    return plain


def _plain_name(name: Any) -> Any:
    if isinstance(name, tuple):
        return [_plain_name(part) for part in name]
    plain = name.item() if isinstance(name, np.generic) else name
    is_json = isinstance(plain, str | int) or (isinstance(plain, float) and math.isfinite(plain))
    return plain if is_json else None


def _shape_of_row(column: dict[str, Any]) -> Any:
    """The shape of the items that a row has, which may have names."""
    return [len(column["columns"])] if type(column.get("columns")) is list else column.get("shape")


def _names(described: Any) -> tuple[Any, ...]:
    """The names that `_described_names` wrote."""
    if type(described) is not list:
        raise ValueError(f"names must be a list, got {shown(described)}")
    return tuple(_names(name) if type(name) is list else name for name in described)


def _check_names(header: dict[str, Any]) -> None:
    """Make tuples of the names of columns, and raise `ValueError` unless each item of a row has a name of its own."""
    if (described := header.get("names")) is None:
        return
    rows = [_shape_of_row(column) if type(column) is dict else None for column in header["columns"]]
    names = [None if known is None else list(_names(known)) for known in described]
    for known, shape in zip(names, rows, strict=False):
        if known is not None and (shape != [len(known)] or len(set(known)) < len(known)):
            raise ValueError(f"rows of shape {shown(shape)} have no names {shown(known)}")
    if len(names) != 2:
        raise ValueError(f"names must be those of keys and of values, got {shown(described)}")
    header["names"] = names
