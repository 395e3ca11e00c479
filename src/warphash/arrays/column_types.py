"""A key type that is a list of columns: what a caller may write for it, and the types that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import DtypeError
from .plain_types import is_class_of_records, plain
from .row_names import Names

__all__ = ["ColumnTypes", "column_types", "text_type"]


@dataclass(frozen=True)
class ColumnTypes:
    """The types of the columns of a key. A pickle has one in place of a NumPy type.

    Attributes
    ----------
    types
        One for each column. ``dtype("U")`` and ``dtype("S")``, of no width, are strings and bytes of any length.
    names
        Of the columns; None if the caller gave none. Types are equal whatever the names are.
    """

    types: tuple[np.dtype[Any], ...]
    names: Names | None = field(default=None, compare=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns of fixed widths together."""
        return sum(dtype.itemsize for dtype in self.types)

    @property
    def has_text(self) -> bool:
        """Whether a column is of strings or bytes of any length."""
        return any(not dtype.itemsize for dtype in self.types)


def text_type(dtype: Any) -> bool | None:
    """Whether a type is strings of any length (True), bytes of any length (False), or neither (None)."""
    if isinstance(dtype, np.dtype):
        any_length = dtype.kind == "T" or (dtype.kind in "US" and not dtype.itemsize)
        return dtype.kind != "S" if any_length else None
    if isinstance(dtype, type | str):
        return True if dtype in (str, "str") else False if dtype in (bytes, "bytes") else None
    return None


def column_types(named: Any) -> ColumnTypes | None:
    """The columns that a key type stands for; None for a type of NumPy's, or of one item.

    A list or a tuple of types is a list of columns, and so is a mapping of names to types. A list of pairs of a name
    and a type is one if a type has no width, such as ``"str"``; else it is NumPy's type of a record.

    Raises
    ------
    DtypeError
        For a list of columns with a type that no column has, and for names that repeat.
    """
    if isinstance(named, np.dtype):
        return None
    if isinstance(named, ColumnTypes) or named is None:
        return named
    if isinstance(named, Mapping):
        if not named or {"names", "formats"} <= named.keys() or any(isinstance(each, tuple) for each in named.values()):
            return None
        return _made(list(named.values()), tuple(named))
    if not isinstance(named, list | tuple) or not named:
        return None
    if isinstance(named, list) and all(map(_is_field, named)):
        names, types = zip(*named, strict=True)
        return _made(types, names) if any(text_type(each) is not None for each in types) else None
    if not all(map(_is_type, named)) or is_class_of_records(named[0]):
        return None
    return _made(named, None)


def _is_field(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and _is_type(given[1])


def _is_type(given: Any) -> bool:
    return isinstance(given, str | type | np.dtype)


def _made(types: Sequence[Any], names: Names | None) -> ColumnTypes:
    if names is not None and len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DtypeError(
            f"expected columns that each have a name of their own, got {repeated!r} twice: rename one of them"
        )
    return ColumnTypes(tuple(_type_of(each, number) for number, each in enumerate(types)), names)


def _type_of(named: Any, number: int) -> np.dtype[Any]:
    text = text_type(named)
    if text is not None:
        return np.dtype("U" if text else "S")
    try:
        dtype: np.dtype[Any] = np.dtype(named)
    except (TypeError, ValueError, SyntaxError) as error:  # NumPy parses some names as Python
        raise DtypeError(f"{named!r} is no type of a column of keys (column {number}): {error}") from None
    if not dtype.itemsize:
        raise DtypeError(
            f"column {number} of the keys needs a length, and {named!r} has none: give the length of the longest item, "
            f"as in {dtype.kind}16, or 'str' or 'bytes' for any length"
        )
    if dtype.subdtype is not None:
        raise DtypeError(
            f"a column of keys has one item for each key, and column {number} would have rows of {dtype}: give each "
            "item a column of its own"
        )
    return plain(dtype)
