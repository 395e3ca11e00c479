"""Saved tables: a file of keys and values with a description. The file is complete, or is not there.

Layout
    8 bytes   magic, with the version of this layout
    8 bytes   length h of the header, little-endian
    h bytes   header, JSON: what the table is, types and shapes of its rows, their number
    keys, then values, then ranks, packed rows
              keys of type str or bytes: their lengths, int64, -1 of a null; then their bytes
    32 bytes  SHA-256 of all that comes before

The file holds the pairs and not the slots. So the file is as small as the pairs, any device can read it, and a design
may change how it lays out its memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from ..arrays.key_column import key_column
from ..arrays.row_type import Column
from ..arrays.strings import StringArray

# By name: `from .. import` asks the package, which imports the tables.
from ..atomic_file import replace
from ..designs import registry
from ..errors import CorruptFile, DtypeError, is_lack_of_room
from ..storage.bounded.bound import EVICT, RANKED_ROWS
from .copies import TableContents

__all__ = ["header_of", "read", "table_of", "write"]

_MAGIC = b"warphsh1"
_DIGEST_BYTES = 32
_PIECE_BYTES = 1 << 24

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

_STRINGS: tuple[dict[str, Any], ...] = ({"dtype": "str", "shape": []}, {"dtype": "bytes", "shape": []})
"""How keys of any length are described: strings, and bytes."""

_SCALAR = re.compile(r"[<>|][biufcmMSUV][1-9][0-9]*(\[[0-9]*[A-Za-z]+\])?")
"""NumPy's name of a type without fields. ``np.dtype`` takes other strings, too, and parses some of them as Python."""


def write(path: str | os.PathLike[str], contents: Callable[[], TableContents]) -> None:
    """Write a table; an older file of that name stays until the new one is complete and on disk.

    Parameters
    ----------
    path
        As `atomic_file.replace` takes it.
    contents
        Returns what the table holds. Called only when it is certain that ``path`` takes a file.

    Raises
    ------
    PathError
        If no file can be written to ``path``.
    """

    def write_to(file: BinaryIO) -> None:
        description, *held = contents()
        columns = [array for array in held if array is not None]
        header = header_of(description, columns)
        encoded = json.dumps(header).encode()
        digest = hashlib.sha256()
        for part in (_MAGIC, len(encoded).to_bytes(8, "little"), encoded):
            digest.update(part)
            file.write(part)
        for array in (part for column in columns for part in _parts(column)):
            raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            for at in range(0, raw.nbytes, _PIECE_BYTES):
                piece = raw[at : at + _PIECE_BYTES].data
                digest.update(piece)
                file.write(piece)
        file.write(digest.digest())

    replace(path, write_to)


def _parts(column: npt.NDArray[Any] | StringArray) -> list[npt.NDArray[Any]]:
    """The arrays that a file has of a column."""
    return [column.lengths, column.data] if isinstance(column, StringArray) else [column]


def header_of(description: dict[str, Any], columns: Sequence[npt.NDArray[Any] | StringArray]) -> dict[str, Any]:
    """The header of a file: what the table is, with the types of its rows, and their number.

    Raises
    ------
    DtypeError
        If no file can name a type.
    """
    names = description["names"] and [_described_names(known) for known in description["names"]]
    described = [_describe(array) for array in columns]
    return {**description, "names": names, "count": len(columns[0]), "columns": described}


def table_of(header: Any, kind: str) -> dict[str, Any]:
    """The description in a header of `header_of`, with the types of ``key`` and ``value``.

    Raises
    ------
    ValueError, TypeError, OverflowError, RecursionError
        If the header is none of a table of class ``kind``.
    """
    _check_header(header, kind)
    rows = [np.dtype((dtype, shape)) if shape else dtype for dtype, shape in map(_row_type, header["columns"])]
    return {**header, "key": rows[0], "value": rows[1] if len(rows) > 1 else None}


def read(path: str | os.PathLike[str], kind: str) -> TableContents:
    """Read what `write` wrote. The description also has the types of ``key`` and ``value``.

    Whether the options in the description suit a table is checked when the table is made.

    Raises
    ------
    CorruptFile
        If the file is truncated, altered, or holds something else than a table of class ``kind``.
    MemoryError
        If there is no room for what the file holds, or among the open files.
    """
    target = Path(path)
    try:
        content = memoryview(target.read_bytes())
    except OSError as error:
        if is_lack_of_room(error):
            raise MemoryError(f"there is no room for reading {target} ({error.strerror})") from None
        raise
    if content[: len(_MAGIC)] != _MAGIC:
        raise CorruptFile(
            f"{target} is no saved table of this version: it does not begin with {_MAGIC!r}; open(path) opens what was "
            "made with memory=path"
        )
    body, stored = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if len(content) < 16 + _DIGEST_BYTES or hashlib.sha256(body).digest() != stored:
        raise CorruptFile(
            f"{target} is truncated or altered: its {len(content):,} bytes do not match their digest; save it anew"
        )
    try:
        return _parse(body, kind)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # most are WarphashErrors of these kinds
        raise CorruptFile(f"{target} holds no {kind}: {error}") from None


def _parse(body: memoryview, kind: str) -> TableContents:
    """The contents of a file without its digest. Raises a built-in error that says what is wrong."""
    length, at = int.from_bytes(body[8:16], "little"), 16
    if length > len(body) - at:
        raise ValueError(f"a header of {length:,} bytes is expected, and {len(body) - at:,} are there")
    header = json.loads(bytes(body[at : at + length]), parse_constant=_refuse_constant)
    _check_header(header, kind)
    at += length
    arrays: list[Any] = []
    rows: list[np.dtype[Any]] = []
    columns = header.pop("columns")
    if columns[0] in _STRINGS:
        is_text = columns.pop(0) == _STRINGS[0]
        strings, at = _strings(body, at, header["count"], is_text)
        arrays.append(strings)
        rows.append(np.dtype("U" if is_text else "S"))
    elif header.get("nulls") not in (None, "raise"):
        raise ValueError(f"nulls={_short(header['nulls'])} is for strings in a file")
    for number, column in enumerate(columns, len(rows)):
        dtype, shape = _row_type(column)
        row = np.dtype((dtype, shape)) if shape else dtype
        if number:
            Column.of_values(row)
        else:
            key_column(row, floats=header.get("floats"))
        nbytes = header["count"] * dtype.itemsize * math.prod(shape)
        if nbytes > len(body) - at:
            raise ValueError(f"{header['count']:,} rows of {row} are expected, and {len(body) - at:,} bytes are there")
        array = np.frombuffer(body[at : at + nbytes], dtype).reshape(header["count"], *shape)
        arrays.append(array if dtype.isnative else array.astype(dtype.newbyteorder("=")))
        rows.append(row)
        at += nbytes
    if at != len(body):
        raise ValueError(f"{len(body) - at:,} bytes follow the rows")
    header["key"], header["value"] = rows[0], rows[1] if _COLUMNS[kind] > 1 else None
    ranks = arrays.pop() if _keeps_ranks(header) else None
    if ranks is not None and (ranks.dtype != np.uint64 or ranks.ndim != 1):
        raise ValueError(f"ranks must be of type uint64, got {rows[-1]}")
    return TableContents(header, arrays[0], arrays[1] if len(arrays) > 1 else None, ranks)


def _strings(body: memoryview, at: int, count: int, text: bool) -> tuple[StringArray, int]:
    """The strings of a file from an address on, and where they end."""
    if 8 * count > len(body) - at:
        raise ValueError(f"the lengths of {count:,} strings are expected, and {len(body) - at:,} bytes are there")
    lengths = np.frombuffer(body[at : at + 8 * count], "<i8").astype(np.int64)
    at += 8 * count
    if count and (lengths.min() < -1 or lengths.max() > len(body) - at):
        raise ValueError(f"a string has a length of {lengths.min():,} or {lengths.max():,}")
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    nbytes = int(offsets[-1])
    if nbytes > len(body) - at:
        raise ValueError(f"strings of {nbytes:,} bytes are expected, and {len(body) - at:,} bytes are there")
    data = np.frombuffer(body[at : at + nbytes], np.uint8)
    if text:
        bytes(data).decode()
        first = data[offsets[:-1][lengths > 0]]
        if (first & 0xC0 == 0x80).any():
            raise ValueError("a string begins inside a character of UTF-8")
    valid = lengths >= 0
    return StringArray(offsets, data, text, None if valid.all() else valid), at + nbytes


def _keeps_ranks(header: dict[str, Any]) -> bool:
    return header.get("evict") in RANKED_ROWS


def _check_header(header: Any, kind: str) -> None:
    """Raise `ValueError` unless `write` could have written such a header for a table of class ``kind``."""
    if type(header) is not dict:
        raise ValueError(f"the header must be a JSON object, got {_short(header)}")
    if wrong := (header.keys() | _NEWER_FIELDS) ^ _FIELDS.keys():
        raise ValueError(f"the header must have the fields {', '.join(_FIELDS)}; it differs in {_short(sorted(wrong))}")
    for name, types in _FIELDS.items():
        if type(header.get(name)) not in types:  # a bool is an int to `isinstance`
            expected = " or ".join(t.__name__ for t in types)
            raise ValueError(f"{name} must be of type {expected}, got {_short(header[name])}")
    if header["kind"] != kind:
        raise ValueError(f"it holds a {_short(header['kind'])}")
    if header["design"] not in registry.names():
        raise ValueError(f"there is no design {_short(header['design'])}")
    registry.get(header["design"]).resolve(header["parameters"])
    if any(type(bound) not in (int, float) for bound in header.get("load_bounds") or ()):
        raise ValueError(f"load_bounds must be two numbers, got {_short(header['load_bounds'])}")
    if not 0 < header["load_factor"] <= 1:
        raise ValueError(f"load_factor must be in (0, 1], got {_short(header['load_factor'])}")
    if not 0 <= header["capacity"] <= header["load_factor"] * _MOST_SLOTS:
        raise ValueError(f"no table has a capacity of {_short(header['capacity'])} at its load factor")
    if (header.get("max_size") is None) != (header.get("evict") is None) or header.get("evict") not in (None, *EVICT):
        raise ValueError(f"no table has max_size={_short(header.get('max_size'))} and evict={_short(header['evict'])}")
    if header.get("max_size") is not None and not 0 < header["max_size"] < 1 << 63:
        raise ValueError(f"no table has max_size={_short(header['max_size'])}")
    if header["count"] < 0:
        raise ValueError(f"count must not be negative, got {_short(header['count'])}")
    _check_names(header)
    if len(header["columns"]) != (columns := _COLUMNS[kind] + _keeps_ranks(header)):
        raise ValueError(f"a {kind} has {columns} columns, got {len(header['columns'])}")


def _short(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 70 else f"{value.bit_length():,} bits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"the header holds {name}, which is no JSON")


def _described_names(names: list[Any] | None) -> Any:
    """Names of columns in JSON: text, numbers, and lists in place of tuples."""
    if names is None:
        return None
    plain = [_plain_name(name) for name in names]
    if _names(plain) != tuple(names):
        raise DtypeError(
            f"expected columns whose names a file can have, which are text, numbers and tuples of these, got "
            f"{_short(names)}: rename them in the frame that gives the table its first rows"
        )
    return plain


def _plain_name(name: Any) -> Any:
    if isinstance(name, tuple):
        return [_plain_name(part) for part in name]
    plain = name.item() if isinstance(name, np.generic) else name
    is_json = isinstance(plain, str | int) or (isinstance(plain, float) and math.isfinite(plain))
    return plain if is_json else None


def _names(described: Any) -> tuple[Any, ...]:
    """The names that `_described_names` wrote."""
    if type(described) is not list:
        raise ValueError(f"names must be a list, got {_short(described)}")
    return tuple(_names(name) if type(name) is list else name for name in described)


def _check_names(header: dict[str, Any]) -> None:
    """Make tuples of the names of columns, and raise `ValueError` unless each item of a row has a name of its own."""
    if (described := header.get("names")) is None:
        return
    rows = [column.get("shape") if type(column) is dict else None for column in header["columns"]]
    names = [None if known is None else list(_names(known)) for known in described]
    for known, shape in zip(names, rows, strict=False):
        if known is not None and (shape != [len(known)] or len(set(known)) < len(known)):
            raise ValueError(f"rows of shape {_short(shape)} have no names {_short(known)}")
    if len(names) != 2:
        raise ValueError(f"names must be those of keys and of values, got {_short(described)}")
    header["names"] = names


def _describe(array: npt.NDArray[Any] | StringArray) -> dict[str, Any]:
    if isinstance(array, StringArray):
        return _STRINGS[0] if array.text else _STRINGS[1]
    try:
        described = {"dtype": _described(array.dtype), "shape": list(array.shape[1:])}
        read_back = _row_type(json.loads(json.dumps(described)))[0]
    except ValueError:  # NumPy has no description of fields that overlap
        read_back = None
    if read_back != array.dtype:
        raise DtypeError(
            f"expected a type that a file can name, got {array.dtype}: make a table of the same bytes, "
            f'keys or values.view("V{array.dtype.itemsize}"), and save that'
        )
    return described


def _described(dtype: np.dtype[Any]) -> Any:
    return dtype.descr if dtype.names else dtype.str


def _row_type(column: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The type and the shape that `_describe` tells."""
    if type(column) is not dict or column.keys() != {"dtype", "shape"}:
        raise ValueError(f"a column must have a dtype and a shape, got {_short(column)}")
    shape = column["shape"]
    if type(shape) is not list or any(type(length) is not int or length < 1 for length in shape):
        raise ValueError(f"a shape must be a list of positive integers, got {_short(shape)}")
    dtype = np.dtype(np.lib.format.descr_to_dtype(_descr(column["dtype"])))
    if json.loads(json.dumps(_described(dtype))) != column["dtype"]:  # NumPy takes many names for one type
        raise ValueError(f"{_short(column['dtype'])} is not how {dtype} is written")
    return dtype, tuple(shape)


def _descr(described: Any) -> Any:
    """What ``dtype.str`` or ``dtype.descr`` was before it was JSON, which has lists in place of tuples."""
    if isinstance(described, str):
        if described and not _SCALAR.fullmatch(described):
            raise ValueError(f"there is no NumPy type {_short(described)}")
        return described
    if type(described) is not list or not all(type(field) is list and len(field) in (2, 3) for field in described):
        raise ValueError(f"a type must be a name or a list of fields, got {_short(described)}")
    return [
        (tuple(name) if isinstance(name, list) else name, _descr(dtype), *map(tuple, shape))
        for name, dtype, *shape in described
    ]
