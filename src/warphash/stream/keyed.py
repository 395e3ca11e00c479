"""The key columns of a source, and values beside them, by names of our own, which no name of a caller can meet."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ..relational.frames import named
from .key_hash import forms_of
from .partition import Keys
from .sources import Source, passes
from .workspace import Workspace

__all__ = ["ROW", "chosen", "in_type", "key_names", "keyed", "keyed_rows", "keys_of", "value_names"]

ROW = "row"
"""The column with the number of a row in its source, int64."""


def key_names(n: int) -> list[str]:
    """The names of so many key columns."""
    return [f"key{place}" for place in range(n)]


def value_names(n: int) -> list[str]:
    """The names of so many other columns."""
    return [f"value{place}" for place in range(n)]


def chosen(source: Source, on: Hashable | Sequence[Hashable] | None, parameter: str = "on") -> list[str]:
    """The names of the columns that a caller chose; None: all. Raises as `frames.named`."""
    names: list[str] = source.schema.names
    return names if on is None else [names[place] for place in named(names, on, parameter)]


def keys_of(source: Source, on: Sequence[str], other: Source | None = None, other_on: Sequence[str] = ()) -> Keys:
    """How rows are divided by some columns of a source; ``other`` is the other side of a join."""
    types = [source.schema.field(name).type for name in on]
    others = [other.schema.field(name).type for name in other_on] if other is not None else None
    return Keys(key_names(len(on)), forms_of(types, others))


def keyed(source: Source, on: Sequence[str], values: Sequence[str], step: str, work: Workspace) -> Iterator[Any]:
    """One pass: tables of keys, of other columns, and of the numbers of rows."""
    begin = 0
    for table in passes(source, list(dict.fromkeys([*on, *values])), step, work):
        yield keyed_rows(table, on, values, begin)
        begin += len(table)


def keyed_rows(table: Any, on: Sequence[str], values: Sequence[str], begin: int) -> Any:
    """The keys of a table, other columns of it, and the numbers of its rows, the first of which is ``begin``."""
    import pyarrow as arrow

    rows = arrow.array(np.arange(begin, begin + len(table)))
    names = [*key_names(len(on)), *value_names(len(values)), ROW]
    return arrow.table([*(_decoded(table[name]) for name in (*on, *values)), rows], names=names)


def in_type(column: Any, type_: Any) -> Any:
    """A column in the type that it has in an answer. Those that `keyed` decoded have a dictionary again.

    PyArrow casts strings to dictionaries, and nothing else. Where a dictionary has more items than the type of its
    indices has numbers, pieces of the column have one each.
    """
    import pyarrow as arrow

    if not arrow.types.is_dictionary(type_) or arrow.types.is_dictionary(column.type):
        return column.cast(type_)
    encoded = column.dictionary_encode()
    index = type_.index_type
    most = 1 << (index.bit_width - arrow.types.is_signed_integer(index))
    if all(len(chunk.dictionary) <= most for chunk in encoded.chunks):
        return encoded.cast(type_)
    pieces = (chunk.slice(at, most) for chunk in column.chunks for at in range(0, len(chunk), most))
    return arrow.chunked_array([piece.dictionary_encode().cast(type_) for piece in pieces], type_)


def _decoded(column: Any) -> Any:
    """A column whose chunks need no dictionary, as those of two tables may differ."""
    import pyarrow as arrow

    return column.cast(column.type.value_type) if arrow.types.is_dictionary(column.type) else column
