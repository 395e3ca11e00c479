"""Which column a type has, and an array: of a fixed width, floats, strings of any length, or with nulls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ParameterError, ShapeError
from .adapters.columns import library_name
from .adapters.numpy import NUMPY
from .arrow import ArrowData, read_arrow, speaks_arrow
from .column_types import text_type
from .float_column import FloatColumn
from .library import ArrayView
from .nullable_column import NullableColumn, without_nulls
from .row_type import Column
from .string_column import StringColumn
from .strings import ROW, holds_text
from .view import known_libraries, view

__all__ = ["NULLS", "column_and_view", "key_column", "plain_view", "text_of", "value_column", "values_and_view"]

NULLS = ("raise", "drop", "key")
"""What may become of nulls among keys: an error; no keys; or one key, None."""


def key_column(dtype: Any, nulls: str = "raise", floats: str | None = None) -> Column:
    """Check a key type: ``str`` and ``bytes`` are strings of any length; others are as for `Column.of_keys`.

    Parameters
    ----------
    nulls
        Rule for nulls: one of `NULLS`.
    floats
        Rule for floating-point keys (`FloatColumn`); None to refuse them.

    Raises
    ------
    ParameterError
        If there is no such rule.
    DtypeError
        As `Column.of_keys` and `FloatColumn.of`.
    """
    if nulls not in NULLS:
        raise ParameterError(f"nulls must be one of {NULLS}, got {nulls!r}")
    text = text_type(dtype)
    if text is not None:
        return StringColumn(ROW, (), text, nulls)
    column = Column.of_keys(dtype) if floats is None else FloatColumn.of(dtype, floats)
    return column if nulls == "raise" else NullableColumn(ROW, (), False, nulls, items=column)


def value_column(dtype: Any) -> Column:
    """Check a value type: ``str`` and ``bytes`` are strings of any length; others are as for `Column.of_values`."""
    text = text_type(dtype)
    return Column.of_values(dtype) if text is None else StringColumn(ROW, (), text, what="values")


def _text_with_zeros(keys: Sequence[Any]) -> bool | None:
    """Whether a list is of strings (True) or of bytes (False) of which some end in zeros; None for other lists.

    NumPy's types of a width drop such zeros, so the keys are of any length.
    """
    for kind, end in ((str, "\0"), (bytes, b"\0")):
        if isinstance(next((key for key in keys if key is not None), None), kind):
            of_kind = all(key is None or isinstance(key, kind) for key in keys)
            return kind is str if of_kind and any(key is not None and key[-1:] == end for key in keys) else None
    return None


def text_of(keys: Any) -> bool | None:
    """Whether keys or values are strings of any length (True), bytes of any length (False), or neither (None).

    A list of strings is neither, unless a type of NumPy's would drop zeros at their ends.
    """
    return _text_with_zeros(keys) if isinstance(keys, list | tuple) else holds_text(keys)


def plain_view(array: Any) -> ArrayView | None:
    """See an array whose type says that it is neither a column, a frame nor text; None for all else."""
    library = known_libraries.get(type(array))
    if library is None or (library is NUMPY and array.dtype.kind in "OT"):
        return None
    return library.see(array)


def column_and_view(keys: Any, options: Mapping[str, Any]) -> tuple[Column, ArrayView]:
    """The column that an array of keys is of, in a table with such options, and its view.

    Raises
    ------
    ShapeError
        For a list or a tuple of arrays, which may be meant as rows or as columns; besides what `view` raises.
    """
    _refuse_list_of_arrays(keys)
    nulls, floats = options.get("nulls", "raise"), options.get("floats")
    keys = _readable_twice(keys)
    text = text_of(keys)
    if text is not None:
        column = key_column(str if text else bytes, nulls)
        return column, column.view(keys, "keys")
    seen = view(keys if nulls == "raise" else without_nulls(keys)[0])
    if nulls == "raise" and (floats is None or seen.dtype.kind != "f"):
        return Column.of_array(seen, "keys"), seen
    column = key_column(np.dtype((seen.dtype, seen.shape[1:])), nulls, floats if seen.dtype.kind == "f" else None)
    return column, column.view(keys, "keys")


def values_and_view(values: Any) -> tuple[Column, ArrayView]:
    """The column that an array of values is of, and its view; the values are strings as keys are (`text_of`)."""
    if (plain := plain_view(values)) is not None:
        return Column.of_array(plain, "values"), plain
    values = _readable_twice(values)
    if (text := text_of(values)) is None:
        seen = view(values)
        return Column.of_array(seen, "values"), seen
    column = value_column(str if text else bytes)
    return column, column.view(values, "values")


def _readable_twice(given: Any) -> Any:
    """An array, or what was read of it, since the result of a query can be read only once."""
    if speaks_arrow(given) and library_name(given) is None and (chunks := read_arrow(given)) is not None:
        return ArrowData(chunks)
    return given


def _refuse_list_of_arrays(keys: Any) -> None:
    if not isinstance(keys, list | tuple) or not keys:
        return
    first = keys[0]
    if getattr(first, "shape", ()) or speaks_arrow(first):
        raise ShapeError(
            f"expected one array of keys, got a {type(keys).__name__} of {len(keys):,} arrays, which may be columns of "
            "the keys or rows: give tuple(keys) for columns, or numpy.stack(keys) for rows; other array libraries have "
            "this function, too"
        )
