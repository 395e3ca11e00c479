"""Files of columns behind a description. A file is complete, or is not there.

Layout
    8 bytes   magic, with the version of this layout
    8 bytes   length h of the header, little-endian
    h bytes   header, JSON: ``"kind"``, what the file holds; ``"count"``, the rows of each column; ``"columns"``, their
              types and shapes; and more, as the kind has it
    columns   one behind the other, each with packed rows
              of strings or bytes of any length: their lengths, int64, -1 of a null; then their bytes
              of keys of several columns: these, one behind the other; behind each whose items are some of them nulls,
              which are none, bool
    32 bytes  SHA-256 of all that comes before
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from ..arrays.arrow_values import Valid
from ..arrays.strings import StringArray

# By name: `from .. import` asks the package, which imports the tables.
from ..atomic_file import replace
from ..errors import CorruptFile, DtypeError, is_lack_of_room

__all__ = [
    "STRINGS",
    "ColumnsOfFile",
    "Stored",
    "columns_at",
    "count_of",
    "describe",
    "read_file",
    "row_type",
    "rows_at",
    "shown",
    "strings_at",
    "strings_of",
    "write_file",
]

_MAGIC = b"warphsh1"
_DIGEST_BYTES = 32
_PIECE_BYTES = 1 << 24

_Made = TypeVar("_Made")

STRINGS: tuple[dict[str, Any], ...] = ({"dtype": "str", "shape": []}, {"dtype": "bytes", "shape": []})
"""How columns of any length are described: strings, and bytes."""

_SCALAR = re.compile(r"[<>|][biufcmMSUV][1-9][0-9]*(\[[0-9]*[A-Za-z]+\])?")
"""NumPy's name of a type without fields. ``np.dtype`` takes other strings, too, and parses some of them as Python."""


class ColumnsOfFile(NamedTuple):
    """Keys of several columns as a file has them.

    Attributes
    ----------
    columns
        Strings with their nulls, and arrays with zeros for nulls.
    valid
        Which items of each array are no nulls; None if all are, and for strings.
    """

    columns: tuple[npt.NDArray[Any] | StringArray, ...]
    valid: tuple[Valid, ...]


Stored = npt.NDArray[Any] | StringArray | ColumnsOfFile
"""A column as it is written."""


def count_of(column: Stored) -> int:
    """The rows of a column."""
    return len(column.columns[0] if isinstance(column, ColumnsOfFile) else column)


def write_file(
    path: str | os.PathLike[str],
    contents: Callable[[], tuple[dict[str, Any], Sequence[Stored]]],
) -> None:
    """Write a file; an older file of that name stays until the new one is complete and on disk.

    Parameters
    ----------
    path
        As `atomic_file.replace` takes it.
    contents
        Returns the header and the columns. Called only when it is certain that ``path`` takes a file.

    Raises
    ------
    PathError
        If no file can be written to ``path``.
    """

    def write_to(file: BinaryIO) -> None:
        header, columns = contents()
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


def _parts(column: Stored) -> list[npt.NDArray[Any]]:
    """The arrays that a file has of a column."""
    if isinstance(column, ColumnsOfFile):
        pairs = zip(column.columns, column.valid, strict=True)
        return [part for each, valid in pairs for part in (*_parts(each), *([] if valid is None else [valid]))]
    return [column.lengths, column.data] if isinstance(column, StringArray) else [column]


def read_file(
    path: str | os.PathLike[str], kind: str, parse: Callable[[dict[str, Any], memoryview], _Made], mend: str = ""
) -> _Made:
    """Read what `write_file` wrote.

    Parameters
    ----------
    kind
        What the file must hold.
    parse
        Makes what is returned of the header and of the bytes of the columns. A built-in error of its own says what is
        wrong with them.
    mend
        What to do with a file that does not begin as those of `write_file`.

    Raises
    ------
    CorruptFile
        If the file is truncated, altered, or holds something else than ``kind``.
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
        raise CorruptFile(f"{target} is no saved {kind} of this version: it does not begin with {_MAGIC!r}{mend}")
    body, stored = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if len(content) < 16 + _DIGEST_BYTES or hashlib.sha256(body).digest() != stored:
        raise CorruptFile(
            f"{target} is truncated or altered: its {len(content):,} bytes do not match their digest; save it anew"
        )
    try:
        length = int.from_bytes(body[8:16], "little")
        if length > len(body) - 16:
            raise ValueError(f"a header of {length:,} bytes is expected, and {len(body) - 16:,} are there")
        header = json.loads(bytes(body[16 : 16 + length]), parse_constant=_refuse_constant)
        if type(header) is not dict:
            raise ValueError(f"the header must be a JSON object, got {shown(header)}")
        if header.get("kind", kind) != kind:
            raise ValueError(f"it holds a {shown(header['kind'])}")
        return parse(header, body[16 + length :])
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # most are WarphashErrors of these kinds
        raise CorruptFile(f"{target} holds no {kind}: {error}") from None


def rows_at(body: memoryview, at: int, count: int, column: Any) -> tuple[npt.NDArray[Any], int]:
    """The rows of a column from an address on, and where they end.

    Raises
    ------
    ValueError, TypeError
        If ``column`` is no description of `describe`, or there are fewer rows.
    """
    dtype, shape = row_type(column)
    nbytes = count * dtype.itemsize * math.prod(shape)
    if nbytes > len(body) - at:
        row = np.dtype((dtype, shape)) if shape else dtype
        raise ValueError(f"{count:,} rows of {row} are expected, and {len(body) - at:,} bytes are there")
    array = np.frombuffer(body[at : at + nbytes], dtype).reshape(count, *shape)
    return array if dtype.isnative else array.astype(dtype.newbyteorder("=")), at + nbytes


def strings_at(body: memoryview, at: int, count: int, text: bool) -> tuple[StringArray, int]:
    """The strings of a column from an address on, and where they end. Raises `ValueError` if they are none."""
    if 8 * count > len(body) - at:
        raise ValueError(f"the lengths of {count:,} strings are expected, and {len(body) - at:,} bytes are there")
    made = strings_of(np.frombuffer(body[at : at + 8 * count], "<i8"), body[at + 8 * count :], text)
    return made, at + 8 * count + len(made.data)


def strings_of(lengths: npt.NDArray[np.int64], body: memoryview, text: bool) -> StringArray:
    """Strings of some lengths, -1 of a null, which lie one behind the other. Raises `ValueError` if there are none."""
    count, lengths = len(lengths), lengths.astype(np.int64)
    if count and (lengths.min() < -1 or lengths.max() > len(body)):
        raise ValueError(f"a string has a length of {lengths.min():,} or {lengths.max():,}")
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    nbytes = int(offsets[-1])
    if nbytes > len(body):
        raise ValueError(f"strings of {nbytes:,} bytes are expected, and {len(body):,} bytes are there")
    data = np.frombuffer(body[:nbytes], np.uint8)
    if text:
        bytes(data).decode()
        first = data[offsets[:-1][lengths > 0]]
        if (first & 0xC0 == 0x80).any():
            raise ValueError("a string begins inside a character of UTF-8")
    valid = lengths >= 0
    return StringArray(offsets, data, text, None if valid.all() else valid)


def columns_at(body: memoryview, at: int, count: int, column: Any) -> tuple[ColumnsOfFile, int]:
    """The columns of keys from an address on, and where they end.

    Raises
    ------
    ValueError, TypeError
        If ``column`` is no description of `describe`, or there are fewer rows.
    """
    described = column["columns"]
    if column.keys() != {"columns", "nulls"} or type(described) is not list or not described:
        raise ValueError(f"keys of several columns must have a list of these, got {shown(column)}")
    if type(column["nulls"]) is not list or [type(each) for each in column["nulls"]] != [bool] * len(described):
        raise ValueError(f"nulls must be a truth for each column, got {shown(column['nulls'])}")
    columns: list[npt.NDArray[Any] | StringArray] = []
    valid: list[Valid] = []
    for each, has_nulls in zip(described, column["nulls"], strict=True):
        made: npt.NDArray[Any] | StringArray
        if each in STRINGS:
            made, at = strings_at(body, at, count, each == STRINGS[0])
        else:
            made, at = rows_at(body, at, count, each)
        flags = None
        if has_nulls:
            flags, at = rows_at(body, at, count, {"dtype": "|b1", "shape": []})
            if (flags.view(np.uint8) > 1).any():
                raise ValueError("flags must be 0 or 1")
        columns.append(made)
        valid.append(flags)
    return ColumnsOfFile(tuple(columns), tuple(valid)), at


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 70 else f"{value.bit_length():,} bits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"the header holds {name}, which is no JSON")


def describe(column: Stored) -> dict[str, Any]:
    """The type and the shape of a column in JSON.

    Raises
    ------
    DtypeError
        If no file can name the type.
    """
    if isinstance(column, ColumnsOfFile):
        has_nulls = [valid is not None for valid in column.valid]
        return {"columns": [describe(each) for each in column.columns], "nulls": has_nulls}
    if isinstance(column, StringArray):
        return STRINGS[0] if column.text else STRINGS[1]
    try:
        described = {"dtype": _described(column.dtype), "shape": list(column.shape[1:])}
        read_back = row_type(json.loads(json.dumps(described)))[0]
    except ValueError:  # NumPy has no description of fields that overlap
        read_back = None
    if read_back != column.dtype:
        raise DtypeError(
            f"expected a type that a file can name, got {column.dtype}: make a table or an index of the "
            f'same bytes, array.view("V{column.dtype.itemsize}"), and save that'
        )
    return described


def _described(dtype: np.dtype[Any]) -> Any:
    return dtype.descr if dtype.names else dtype.str


def row_type(column: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The type and the shape that `describe` tells."""
    if type(column) is not dict or column.keys() != {"dtype", "shape"}:
        raise ValueError(f"a column must have a dtype and a shape, got {shown(column)}")
    shape = column["shape"]
    if type(shape) is not list or any(type(length) is not int or length < 1 for length in shape):
        raise ValueError(f"a shape must be a list of positive integers, got {shown(shape)}")
    dtype = np.dtype(np.lib.format.descr_to_dtype(_descr(column["dtype"])))
    if json.loads(json.dumps(_described(dtype))) != column["dtype"]:  # NumPy takes many names for one type
        raise ValueError(f"{shown(column['dtype'])} is not how {dtype} is written")
    return dtype, tuple(shape)


def _descr(described: Any) -> Any:
    """What ``dtype.str`` or ``dtype.descr`` was before it was JSON, which has lists in place of tuples."""
    if isinstance(described, str):
        if described and not _SCALAR.fullmatch(described):
            raise ValueError(f"there is no NumPy type {shown(described)}")
        return described
    if type(described) is not list or not all(type(field) is list and len(field) in (2, 3) for field in described):
        raise ValueError(f"a type must be a name or a list of fields, got {shown(described)}")
    return [
        (tuple(name) if isinstance(name, list) else name, _descr(dtype), *map(tuple, shape))
        for name, dtype, *shape in described
    ]
