"""Types of PyArrow of which PyArrow takes no rows: items in several buffers, as those of Polars, and encoded runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["taken_rows", "without_runs", "without_views"]


def without_views(type_: Any) -> Any:
    """A type of PyArrow for the same items, with text and bytes in one buffer, also inside of lists and structs.

    Dictionaries stay as they are, because rows of their codes can be taken.
    """
    arrow = import_module("pyarrow")
    types = arrow.types
    if types.is_string_view(type_):
        return arrow.large_string()
    if types.is_binary_view(type_):
        return arrow.large_binary()
    if types.is_struct(type_):
        return arrow.struct([_plain(field) for field in type_])
    if types.is_map(type_):
        return arrow.map_(_plain(type_.key_field), _plain(type_.item_field), type_.keys_sorted)
    if types.is_list(type_):
        return arrow.list_(_plain(type_.value_field))
    if types.is_large_list(type_):
        return arrow.large_list(_plain(type_.value_field))
    if types.is_fixed_size_list(type_):
        return arrow.list_(_plain(type_.value_field), type_.list_size)
    return type_


def taken_rows(given: Any, rows: Any) -> Any:
    """Some rows of an Array, a ChunkedArray or a Table, in its types.

    Parameters
    ----------
    rows
        As its ``take`` has them.
    """
    if hasattr(given, "schema"):
        arrow = import_module("pyarrow")
        if any(map(_has_runs, given.schema.types)):
            return arrow.table([taken_rows(column, rows) for column in given.columns], schema=given.schema)
        own, plain = given.schema, arrow.schema([_plain(field) for field in given.schema], given.schema.metadata)
    else:
        if _has_runs(given.type):
            taken = taken_rows(without_runs(given), rows)
            return import_module("pyarrow.compute").run_end_encode(taken, given.type.run_end_type)
        own, plain = given.type, without_views(given.type)
    return given.take(rows) if plain == own else given.cast(plain).take(rows).cast(own)


def without_runs(column: Any) -> Any:
    """A column of PyArrow whose runs are written out; another column as it is."""
    return import_module("pyarrow.compute").run_end_decode(column) if _has_runs(column.type) else column


def _has_runs(type_: Any) -> bool:
    return hasattr(type_, "run_end_type")


def _plain(field: Any) -> Any:
    return field.with_type(without_views(field.type))
