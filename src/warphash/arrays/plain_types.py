"""NumPy types as tables keep them: each part has a width, and nothing is in a type that its equality ignores.

Types that differ in their metadata, in the class of their records or in the flag for alignment are equal to NumPy. So a
cache with types as keys would answer with the type of another caller. Tables therefore make every type plain first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Part", "is_class_of_records", "pair_of_types", "parts", "plain", "record_of_types"]

Dtype = np.dtype[Any]

_SCALARS = "biufcmMSU"
"""The kinds of types whose name, ``dtype.str``, says everything that tables keep."""


class Part(NamedTuple):
    """A part of a type that has no fields of its own.

    Attributes
    ----------
    name
        Of its field, with those of the fields around it: ``"a.b"``; empty for a type without fields.
    dtype
        The type.
    items
        How many of the type are in the part.
    """

    name: str
    dtype: Dtype
    items: int

    @property
    def nbytes(self) -> int:
        """Bytes of the part."""
        return self.dtype.itemsize * self.items


def plain(dtype: Dtype) -> Dtype:
    """The type of native byte order, without metadata, records of a class, and a flag for alignment.

    Offsets, padding and titles of fields stay: they are parts of NumPy's equality.
    """
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.dtype((plain(base), shape))
    if dtype.kind in _SCALARS:  # an integer with fields for its halves is an integer
        return np.dtype(dtype.str).newbyteorder("=")
    if dtype.kind != "V" or not issubclass(dtype.type, np.void):  # a type that a library has added
        return dtype
    if dtype.names is None:
        return np.dtype(f"V{dtype.itemsize}")
    fields = [_field(dtype, name) for name in dtype.names]
    layout = {
        "names": list(dtype.names),
        "formats": [plain(field[0]) for field in fields],
        "offsets": [field[1] for field in fields],
        "titles": [field[2] if len(field) > 2 else None for field in fields],
        "itemsize": dtype.itemsize,
    }
    made: Dtype = np.dtype(layout)  # type: ignore[call-overload]
    return made


def _field(dtype: Dtype, name: str) -> tuple[Any, ...]:
    """Type, offset and perhaps title of a field."""
    assert dtype.fields is not None
    return tuple(dtype.fields[name])


def parts(dtype: Dtype, name: str = "", items: int = 1) -> Iterator[Part]:
    """The parts of a type: itself, or those of its fields."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        yield from parts(base, name, items * int(np.prod(shape, dtype=np.int64)))
    elif dtype.names:
        for field in dtype.names:
            yield from parts(dtype[field], f"{name}.{field}" if name else field, items)
    else:
        yield Part(name, dtype, items)


def pair_of_types(named: Any) -> tuple[Any, Any] | None:
    """The first pair of types in what a caller gives for a type; None if there is none.

    NumPy reads a pair of types as one of them, or as text with the other's number of bytes.
    """
    if isinstance(named, dict):
        formats = named.get("formats", [field[0] for field in named.values() if isinstance(field, tuple | list)])
        return _first_pair(formats)
    if isinstance(named, list):
        return _first_pair(field[1] for field in named if isinstance(field, tuple) and len(field) > 1)
    if not isinstance(named, tuple) or len(named) != 2:
        return None
    first, second = named
    if isinstance(second, str | type | np.dtype) and not is_class_of_records(first):
        return first, second
    return _first_pair(named)


def _first_pair(formats: Iterable[Any]) -> tuple[Any, Any] | None:
    return next((pair for each in formats if (pair := pair_of_types(each)) is not None), None)


def record_of_types(named: Any) -> list[tuple[str, str]] | None:
    """The fields of a record in place of a list or a mapping of types; None for what is neither.

    Text without a width has 16 characters there.
    """
    if isinstance(named, Mapping):
        names, types = [str(name) for name in named], list(named.values())
    elif isinstance(named, list | tuple):
        names, types = [f"f{number}" for number in range(len(named))], list(named)
    else:
        return None
    try:
        fields = [np.dtype(each) for each in types]
    except (TypeError, ValueError, SyntaxError):
        return None
    shown = [str(dtype) if dtype.itemsize else f"{dtype.kind}16" for dtype in fields]
    return list(zip(names, shown, strict=True)) or None


def is_class_of_records(named: Any) -> bool:
    """Whether a type is ``numpy.record`` or its like, which a pair gives to records."""
    return isinstance(named, type) and issubclass(named, np.void)
