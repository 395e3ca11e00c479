"""Arrow's C data interface, by hand: neither side needs pyarrow.

`read_arrow` views a column of any library that speaks the PyCapsule protocol (``__arrow_c_array__`` or
``__arrow_c_stream__``). `give_strings` makes the capsules of a column of strings.

Source: *The Arrow C data interface*, *The Arrow C stream interface* and *The Arrow PyCapsule interface*, of the Arrow
format's documentation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError

__all__ = ["Chunk", "give_strings", "read_arrow"]

_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Release)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_dying_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

_SCHEMA, _ARRAY, _STREAM = b"arrow_schema", b"arrow_array", b"arrow_array_stream"


class Chunk(NamedTuple):
    """A piece of a column.

    Attributes
    ----------
    format
        Arrow's name of the type: ``"u"`` of strings with offsets of 32 bits, and so on.
    length, offset
        Number of elements, and how many of the buffers come before them.
    null_count
        Nulls among the elements; -1 if nobody has counted.
    buffers
        Addresses: of the bits of validity (0 if there are no nulls), then as the format says.
    dictionary
        The values of a dictionary-encoded column, whose buffers have the codes.
    owner
        Keeps the memory alive.
    """

    format: str
    length: int
    offset: int
    null_count: int
    buffers: list[int]
    dictionary: Chunk | None
    owner: Any

    @property
    def valid(self) -> npt.NDArray[np.bool_] | None:
        """Which elements are no null, bool[length]; None if all of them are."""
        if not self.length or self.null_count == 0:
            return None
        if self.format == "n":
            return np.zeros(self.length, np.bool_)
        if not self.buffers[0]:
            return None
        first, end = self.offset // 8, -(-(self.offset + self.length) // 8)
        bits = np.unpackbits(self.at(0, np.uint8, end - first, first), bitorder="little")
        valid = bits[self.offset - 8 * first :][: self.length].view(np.bool_)
        return None if valid.all() else valid

    def at(self, buffer: int, dtype: Any, n: int, first: int = 0) -> npt.NDArray[Any]:
        """``n`` items of a buffer, from one on. Valid while ``owner`` is alive."""
        kind = np.dtype(dtype)
        if not n:
            return np.empty(0, kind)
        memory = (ctypes.c_uint8 * (n * kind.itemsize)).from_address(self.buffers[buffer] + first * kind.itemsize)
        return np.frombuffer(memory, kind)


# ---- columns of others
def read_arrow(column: Any) -> list[Chunk] | None:
    """The pieces of a column; None if the object gives out no Arrow data.

    Raises
    ------
    DtypeError
        If the library fails to give out the column.
    """
    by_array, by_stream = getattr(column, "__arrow_c_array__", None), getattr(column, "__arrow_c_stream__", None)
    if by_array is None and by_stream is None:
        return None
    try:
        if by_array is not None:
            schema, array = by_array()
            return [_chunk_of_capsules(schema, array)]
        assert by_stream is not None
        return _chunks_of_stream(by_stream())
    except (MemoryError, DtypeError):
        raise
    except ImportError:  # pandas gives out Arrow data by way of pyarrow
        return None
    except Exception as error:  # of any type: each library has its own
        raise DtypeError(
            f"expected a column that its library gives out as Arrow data, got {type(column).__name__}, which answers "
            f"{type(error).__name__} ({error}): give column.to_list()"
        ) from None


def _chunk_of_capsules(schema: Any, array: Any) -> Chunk:
    """The capsules keep their contents until they die, so nothing is taken out of them."""
    types = _Schema.from_address(_capsule_pointer(schema, _SCHEMA))
    return _chunk(types, _Array.from_address(_capsule_pointer(array, _ARRAY)), (schema, array))


def _chunk(types: _Schema, array: _Array, owner: Any) -> Chunk:
    dictionary = _chunk(types.dictionary[0], array.dictionary[0], owner) if types.dictionary else None
    buffers = [array.buffers[number] or 0 for number in range(array.n_buffers)]
    return Chunk(
        types.format.decode(), array.length, array.offset, array.null_count, buffers, dictionary, (types, array, owner)
    )


class _Held:
    """A structure of the interface, which is released with the last reference to this object.

    Parameters
    ----------
    struct
        The structure.
    behind
        What is released later.
    """

    def __init__(self, struct: Any, behind: Any = None) -> None:
        self.struct, self.behind = struct, behind

    @property
    def address(self) -> int:
        """Of the structure."""
        return ctypes.addressof(self.struct)

    def __del__(self) -> None:
        if self.struct.release:
            _Release(self.struct.release)(self.address)


def _chunks_of_stream(capsule: Any) -> list[Chunk]:
    stream = _Stream.from_address(_capsule_pointer(capsule, _STREAM))
    at = ctypes.addressof(stream)
    schema = _Held(_Schema())
    _must_succeed(stream, stream.get_schema(at, schema.address))
    chunks = []
    while True:
        array = _Held(_Array())
        _must_succeed(stream, stream.get_next(at, array.address))
        if not array.struct.release:
            break
        chunks.append(_chunk(schema.struct, array.struct, (schema, array)))
    if not chunks:  # an empty column has a type, too
        empty = _Array(length=0, n_buffers=0)
        dictionary = _Array(length=0, n_buffers=0)
        if schema.struct.dictionary:
            empty.dictionary = ctypes.pointer(dictionary)
        chunks.append(_chunk(schema.struct, empty, (schema, dictionary)))
    return chunks


def _must_succeed(stream: _Stream, code: int) -> None:
    if code:
        message = stream.get_last_error(ctypes.addressof(stream))
        raise OSError(code, (message or b"no reason given").decode(errors="replace"))


# ---- a column of ours
_lent: dict[int, Any] = {}
"""What each structure that was given out keeps alive, by the number in its ``private_data``."""


def _lend(struct: Any, held: Any) -> None:
    struct.private_data = id(held)
    struct.release = ctypes.cast(_release_schema if isinstance(struct, _Schema) else _release_array, ctypes.c_void_p)
    _lent[id(held)] = held


def _released(kind: Any) -> Any:
    def release(address: int) -> None:
        struct = kind.from_address(address)
        struct.release = None
        _lent.pop(struct.private_data, None)

    return _Release(release)


_release_schema, _release_array = _released(_Schema), _released(_Array)


def _forget_capsule(capsule: int) -> None:
    """Free the structure of a dying capsule, and what the structure holds unless a consumer has moved it away."""
    name = _dying_name(capsule)
    address = _dying_pointer(capsule, name)
    struct = (_Schema if name == _SCHEMA else _Array).from_address(address)
    if struct.release:
        _Release(struct.release)(address)
    _lent.pop(address, None)


_destroy_capsule = _Release(_forget_capsule)


def _capsule(struct: Any, name: bytes, held: Sequence[Any]) -> Any:
    _lend(struct, [*held])
    address = ctypes.addressof(struct)
    _lent[address] = struct
    return _capsule_new(address, name, _destroy_capsule)


def give_strings(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], valid: npt.NDArray[np.bool_] | None, text: bool
) -> tuple[Any, Any]:
    """The capsules of a column: ``large_string``, or ``large_binary``. The consumer shares the memory."""
    bits = None if valid is None else np.packbits(valid, bitorder="little")
    buffers = (ctypes.c_void_p * 3)(None if bits is None else bits.ctypes.data, offsets.ctypes.data, data.ctypes.data)
    schema = _Schema(format=b"U" if text else b"Z", name=b"", flags=2)
    array = _Array(
        length=len(offsets) - 1,
        null_count=0 if valid is None else int((~valid).sum()),
        n_buffers=3,
        buffers=ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p)),
    )
    return _capsule(schema, _SCHEMA, ()), _capsule(array, _ARRAY, (buffers, bits, offsets, data))
