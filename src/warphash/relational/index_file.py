"""Saved keys of an `Index`: a file of columns (`table/column_file.py`) that holds the keys as they are compared.

Columns
    keys     of a fixed width, or strings or bytes of any length, in which nulls have a length of -1
    valid    of keys of a fixed width, if some are nulls: bool, False for a null

The positions of the keys are their places in the file. Nothing of a library's own is in the file, and nothing that runs
code when it is read: so keys come back as items of NumPy, whatever library they came from.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..arrays.decimals import decimal_of, decimal_scale
from ..arrays.library import MAX_ROWS
from ..arrays.strings import StringArray, rows_of
from ..runtime.devices import engine_for
from ..storage.strings.string_table import packed as packed_strings
from ..table.column_file import STRINGS, describe, read_file, rows_at, shown, strings_at, write_file
from .elements import HostElements
from .items import Fixed, Items, Text, text_items
from .numbered import Indices

__all__ = ["StoredKeys", "read", "write"]

_KIND = "Index"
_FIELDS = ("kind", "count", "columns")

_VALID = {"dtype": "|b1", "shape": []}
_BYTE = {"dtype": "|u1", "shape": []}
"""A column of truth values, and the same column as it is read: a file by hand may have any bytes."""


class StoredKeys(HostElements):
    """Keys that were read of a file.

    Parameters
    ----------
    items
        What is compared.
    """

    def __init__(self, items: Items) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items.array)

    @property
    def items(self) -> Items:
        """What is compared."""
        return self._items

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.items, Text):  # which has addresses
            return _stored_strings, (self.taken(self.ranks(len(self))), self.items.text)
        return type(self), (self.items,)

    def taken(self, positions: Indices) -> npt.NDArray[Any]:
        """The keys at some positions: an array of their type; of objects if they are strings of any length, decimal
        numbers, rows, or if some are nulls, which are None."""
        items = self.items
        array = items.array[positions]
        valid = None if items.valid is None else items.valid[positions]
        if isinstance(items, Text):
            return _objects(_strings_of(items._replace(array=array)).tolist())
        if decimal_scale(array.dtype) is not None and array.ndim == 1:
            held: list[Any] = list(map(decimal_of, array))
        elif valid is not None or array.ndim > 1:
            held = list(array)
        else:
            return array
        made = _objects(held)
        if valid is not None:
            made[~valid] = None
        return made


def _stored_strings(keys: npt.NDArray[Any], text: bool) -> StoredKeys:
    """Strings that were pickled: an array of objects, as `StoredKeys.taken` makes it."""
    return StoredKeys(text_items(rows_of(keys, text)))


def _objects(items: list[Any]) -> npt.NDArray[Any]:
    """Items as an array of objects, of one dimension, whatever the items are."""
    return np.array([*items, None], object)[:-1]


def _strings_of(items: Text) -> StringArray:
    """Strings of a caller's in memory of their own."""
    rows = np.ascontiguousarray(items.array)
    offsets, data, valid = packed_strings(engine_for("cpu"), address_of(rows), len(rows))
    return StringArray(offsets, data, items.text, valid)


def write(path: str | os.PathLike[str], items: Callable[[], Items]) -> None:
    """Write keys; an older file of that name stays until the new one is complete and on disk.

    Parameters
    ----------
    path
        As `atomic_file.replace` takes it.
    items
        Returns the keys. Called only when it is certain that ``path`` takes a file.

    Raises
    ------
    PathError
        If no file can be written to ``path``.
    DtypeError
        If no file can name the type of the keys.
    """

    def contents() -> tuple[dict[str, Any], list[npt.NDArray[Any] | StringArray]]:
        keys = items()
        columns: list[npt.NDArray[Any] | StringArray]
        if isinstance(keys, Text):
            columns = [_strings_of(keys)]
        else:
            columns = [keys.array] if keys.valid is None else [keys.array, keys.valid]
        header = {"kind": _KIND, "count": len(keys.array), "columns": [describe(column) for column in columns]}
        return header, columns

    write_file(path, contents)


def read(path: str | os.PathLike[str]) -> StoredKeys:
    """Read what `write` wrote.

    Raises
    ------
    CorruptFile
        If the file is truncated, altered, or holds no keys of an `Index`.
    MemoryError
        If there is no room for what the file holds, or among the open files.
    """
    return StoredKeys(read_file(path, _KIND, _parse))


def _parse(header: dict[str, Any], body: memoryview) -> Items:
    """The keys of a file. Raises a built-in error that says what is wrong."""
    if wrong := header.keys() ^ set(_FIELDS):
        raise ValueError(f"the header must have the fields {', '.join(_FIELDS)}; it differs in {shown(sorted(wrong))}")
    count, columns = header["count"], header["columns"]
    if type(count) is not int or not 0 <= count <= MAX_ROWS:
        raise ValueError(f"count must be a number of keys, got {shown(count)}")
    if type(columns) is not list or len(columns) not in (1, 2) or columns[1:] not in ([], [_VALID]):
        raise ValueError(f"columns must be those of keys and of nulls, got {shown(columns)}")
    items: Items
    if columns[0] in STRINGS:
        strings, at = strings_at(body, 0, count, columns[0] == STRINGS[0])
        items = text_items(strings.rows)
    else:
        array, at = rows_at(body, 0, count, columns[0])
        items = Fixed(np.require(array, requirements="A"))  # the column may lie at any address
    if len(columns) == 2:
        flags, at = rows_at(body, at, count, _BYTE)
        items = items._replace(valid=flags != 0)
    if at != len(body):
        raise ValueError(f"{len(body) - at:,} bytes follow the keys")
    return items
