"""Saved tables: a file of keys and values with a description, that is complete or is not there.

Layout
    8 bytes   magic, with the version of this layout
    8 bytes   length h of the header, little-endian
    h bytes   header, JSON: what the table is, types and shapes of its rows, their number
    keys, then values, packed rows
    32 bytes  SHA-256 of all that comes before

The pairs are stored and not the slots: a file is then as small as its pairs, can be read on any device, and does not
tie down how a design lays out its memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from . import atomic_file
from .errors import CorruptFile

__all__ = ["Contents", "read", "write"]

Contents: TypeAlias = tuple[dict[str, Any], npt.NDArray[Any], npt.NDArray[Any] | None]
"""Description, keys, and values if there are any."""

_MAGIC = b"warphsh1"
_DIGEST_BYTES = 32
_PIECE_BYTES = 1 << 24


def write(path: str | os.PathLike[str], contents: Callable[[], Contents]) -> None:
    """Write a table; an older file of that name stays until the new one is complete and on disk.

    Parameters
    ----------
    path
        As `atomic_file.replace` takes it.
    contents
        Gives the description, the keys and the values. Called once it is certain that ``path`` takes a file.

    Raises
    ------
    PathError
        If no file can be written to ``path``.
    """

    def write_to(file: BinaryIO) -> None:
        description, *pair = contents()
        columns = [array for array in pair if array is not None]
        header = {**description, "count": len(columns[0]), "columns": [_describe(array) for array in columns]}
        encoded = json.dumps(header).encode()
        digest = hashlib.sha256()
        for part in (_MAGIC, len(encoded).to_bytes(8, "little"), encoded):
            digest.update(part)
            file.write(part)
        for array in columns:
            raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            for at in range(0, raw.nbytes, _PIECE_BYTES):
                piece = raw[at : at + _PIECE_BYTES].data
                digest.update(piece)
                file.write(piece)
        file.write(digest.digest())

    atomic_file.replace(path, write_to)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Read what `write` wrote: description, keys, and values if there are any.

    Raises
    ------
    CorruptFile
        If the file is truncated, altered, or holds something else than a table of class ``kind``.
    """
    target = Path(path)
    content = target.read_bytes()
    if not content.startswith(_MAGIC):
        raise CorruptFile(f"{target} is no saved table of this version: it does not begin with {_MAGIC!r}")
    body, stored = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if len(content) < 16 + _DIGEST_BYTES or hashlib.sha256(body).digest() != stored:
        raise CorruptFile(
            f"{target} is truncated or altered: its {len(content):,} bytes do not match their digest; save it anew"
        )
    length = int.from_bytes(content[8:16], "little")
    try:
        header = json.loads(content[16 : 16 + length])
        arrays, at = [], 16 + length
        for column in header["columns"]:
            dtype = _dtype(column["dtype"])
            shape = (header["count"], *column["shape"])
            nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            arrays.append(np.frombuffer(body[at : at + nbytes], dtype).reshape(shape))
            at += nbytes
        if at != len(body) or header["kind"] != kind:
            raise ValueError(f"a {header['kind']} of {len(body) - at:,} bytes too many")
    except (KeyError, ValueError, TypeError) as error:
        raise CorruptFile(f"{target} holds no {kind}: {error}") from None
    rows = [np.dtype((a.dtype, a.shape[1:])) if a.ndim > 1 else a.dtype for a in arrays]
    header["key"], header["value"] = rows[0], rows[1] if len(rows) > 1 else None
    return header, arrays[0], arrays[1] if len(arrays) > 1 else None


def _describe(array: npt.NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.descr if array.dtype.names else array.dtype.str, "shape": list(array.shape[1:])}


def _dtype(described: Any) -> np.dtype[Any]:
    if isinstance(described, str):
        return np.dtype(described)
    return np.dtype([tuple(tuple(part) if isinstance(part, list) else part for part in item) for item in described])
