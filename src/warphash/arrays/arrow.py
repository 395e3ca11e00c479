"""Arrow's C data interface, by hand: neither side needs pyarrow.

`read_arrow` views a column, or a table, of any library that speaks the PyCapsule protocol (``__arrow_c_array__`` or
``__arrow_c_stream__``). `give_strings` makes the capsules of a column of strings, and `give_values` those of a column
of values of one width.

Source: *The Arrow C data interface*, *The Arrow C stream interface* and *The Arrow PyCapsule interface*, of the Arrow
format's documentation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, WarphashError

__all__ = [
    "BOOL8",
    "CODES",
    "UUID",
    "ArrowData",
    "Chunk",
    "check_codes",
    "check_extension",
    "give_strings",
    "give_values",
    "read_arrow",
    "speaks_arrow",
]

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


CODES = dict(zip("cCsSiIlL", ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), strict=True))
"""The types of integers, by Arrow's formats."""


UUID, BOOL8 = "arrow.uuid", "arrow.bool8"
"""The extension types whose values a table takes for what they are."""


def check_codes(codes: npt.NDArray[Any], values: int, valid: npt.NDArray[np.bool_] | None) -> None:
    """Raise `DtypeError` for codes, other than those of nulls, that are no numbers of ``values`` values."""
    if not len(codes) or (codes.min() >= 0 and codes.max() < values):
        return
    wrong = (codes < 0) | (codes >= values)
    if valid is not None:
        wrong &= valid
    if wrong.any():
        raise DtypeError(
            f"expected codes of a dictionary of {values:,} values, got the code {codes[wrong][0]}, which none of them "
            "has: make the column anew from its values"
        )


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
    children
        The columns of a struct, the items of lists, or the ends and the values of runs.
    name
        Of a column of a struct.
    extension
        Name of the extension type whose storage this is; "" for a type of Arrow itself.
    """

    format: str
    length: int
    offset: int
    null_count: int
    buffers: list[int]
    dictionary: Chunk | None
    owner: Any
    children: tuple[Chunk, ...] = ()
    name: str = ""
    extension: str = ""

    def child(self, number: int, width: int = 1) -> Chunk:
        """A child's elements for these elements: ``width`` for each."""
        child = self.children[number]
        return child._replace(length=width * self.length, offset=child.offset + width * self.offset, null_count=-1)

    @property
    def codes(self) -> npt.NDArray[Any]:
        """Which value of the dictionary each element has. The code of a null may be any number.

        Raises
        ------
        DtypeError
            If the dictionary has no such value.
        """
        assert self.dictionary is not None
        codes = self.at(1, CODES[self.format], self.length, self.offset)
        check_codes(codes, self.dictionary.length, self.valid)
        return codes

    @property
    def runs(self) -> npt.NDArray[np.intp]:
        """Which value each element of a run-end encoded column has."""
        ends = self.children[0]
        last = ends.at(1, CODES[ends.format], ends.length, ends.offset)
        return np.searchsorted(last, np.arange(self.offset, self.offset + self.length), side="right")

    @property
    def valid(self) -> npt.NDArray[np.bool_] | None:
        """Which elements are no null, bool[length]; None if all of them are."""
        if not self.length or self.null_count == 0:
            return None
        if self.format == "n":
            return np.zeros(self.length, np.bool_)
        if self.format[:2] in ("+r", "+u") or not self.buffers[0]:
            return None
        valid = self.bits(0)
        return None if valid.all() else valid

    def bits(self, buffer: int) -> npt.NDArray[np.bool_]:
        """The bits of a buffer, one for each element."""
        if not self.length:
            return np.empty(0, np.bool_)
        first, end = self.offset // 8, -(-(self.offset + self.length) // 8)
        bits = np.unpackbits(self.at(buffer, np.uint8, end - first, first), bitorder="little")
        return bits[self.offset - 8 * first :][: self.length].view(np.bool_)

    def at(self, buffer: int, dtype: Any, n: int, first: int = 0) -> npt.NDArray[Any]:
        """``n`` items of a buffer, from one on. The array keeps ``owner`` alive."""
        kind = np.dtype(dtype)
        if not n:
            return np.empty(0, kind)
        memory: Any = (ctypes.c_uint8 * (n * kind.itemsize)).from_address(self.buffers[buffer] + first * kind.itemsize)
        memory.owner = self.owner
        return np.frombuffer(memory, kind)


def check_extension(extension: str, *known: str) -> None:
    """Raise `DtypeError` for an extension type that is not known: what its values mean is not theirs to say."""
    if extension not in ("", "arrow.json", *known):
        raise DtypeError(
            f"expected a type of Arrow's own, got the extension type {extension!r}, whose meaning a table does not "
            "keep: give the storage of the column, such as array.storage"
        )


# ---- columns of others
class ArrowData:
    """Arrow data that was read: for what gives its data out once, such as the result of a query.

    Parameters
    ----------
    chunks
        The pieces.
    """

    def __init__(self, chunks: list[Chunk]) -> None:
        self.chunks = chunks


def speaks_arrow(column: Any) -> bool:
    """Whether an object gives out Arrow data in host memory."""
    kind = type(column)  # since attributes of an object may be those of a query that is run now
    if hasattr(kind, "__cuda_array_interface__"):
        return False
    return kind is ArrowData or hasattr(kind, "__arrow_c_array__") or hasattr(kind, "__arrow_c_stream__")


def read_arrow(column: Any) -> list[Chunk] | None:
    """The pieces of a column, or of a table, as those of a struct; None if the object gives out no Arrow data.

    Raises
    ------
    DtypeError
        If the library fails to give out the column.
    """
    if not speaks_arrow(column):
        return None
    if isinstance(column, ArrowData):
        return column.chunks
    try:
        if hasattr(column, "__arrow_c_array__"):
            schema, array = column.__arrow_c_array__()
            return [_chunk_of_capsules(schema, array)]
        return _chunks_of_stream(column.__arrow_c_stream__())
    except (MemoryError, WarphashError):
        raise
    except ImportError:  # pandas gives out Arrow data by way of pyarrow
        return None
    except Exception as error:  # of any type: each library has its own
        raise DtypeError(
            f"expected a column that its library gives out as Arrow data, got {type(column).__name__}, which answers "
            f"{type(error).__name__} ({error}): give a list of its values"
        ) from None


def _chunk_of_capsules(schema: Any, array: Any) -> Chunk:
    """The capsules keep their contents until they die, so nothing is taken out of them."""
    types = _Schema.from_address(_capsule_pointer(schema, _SCHEMA))
    return _chunk(types, _Array.from_address(_capsule_pointer(array, _ARRAY)), (schema, array))


def _chunk(types: _Schema, array: _Array | None, owner: Any) -> Chunk:
    """A piece; one without elements, if there is no array."""
    held = (types, array, owner)
    arrays = [None] * types.n_children if array is None else _structs(array.children, array.n_children, _Array)
    children = zip(_structs(types.children, types.n_children, _Schema), arrays, strict=True)
    dictionary = None
    if types.dictionary:
        dictionary = _chunk(types.dictionary[0], None if array is None else array.dictionary[0], owner)
    return Chunk(
        types.format.decode(),
        0 if array is None else array.length,
        0 if array is None else array.offset,
        0 if array is None else array.null_count,
        [] if array is None else [array.buffers[number] or 0 for number in range(array.n_buffers)],
        dictionary,
        held,
        tuple(_chunk(schema, child, owner) for schema, child in children),
        (types.name or b"").decode(),
        _extension(types.metadata) if types.metadata else "",
    )


def _structs(address: int | None, n: int, kind: Any) -> list[Any]:
    """The structures that an array of ``n`` pointers leads to."""
    if not n:
        return []
    return [pointer[0] for pointer in ctypes.cast(address, ctypes.POINTER(ctypes.POINTER(kind)))[:n]]  # type: ignore[arg-type]


def _extension(address: int) -> str:
    """The name of the extension type among metadata: their number, then the length and the bytes of each word."""

    def number() -> int:
        nonlocal address
        address += 4
        return ctypes.c_int32.from_address(address - 4).value

    def word() -> bytes:
        nonlocal address
        n = number()
        address += n
        return ctypes.string_at(address - n, n)

    pairs = [(word(), word()) for _ in range(number())]
    return dict(pairs).get(b"ARROW:extension:name", b"").decode()


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
    return chunks or [_chunk(schema.struct, None, schema)]  # an empty column has a type, too


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
    return _give("U" if text else "Z", len(offsets) - 1, (offsets, data), valid)


def give_values(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None, form: str) -> tuple[Any, Any]:
    """The capsules of a column of an Arrow format whose values all have one width. The consumer shares the memory."""
    return _give(form, len(values), (values,), valid)


def _give(
    form: str, n: int, arrays: Sequence[npt.NDArray[Any]], valid: npt.NDArray[np.bool_] | None
) -> tuple[Any, Any]:
    bits = None if valid is None else np.packbits(valid, bitorder="little")
    addresses = [None if bits is None else bits.ctypes.data, *(array.ctypes.data for array in arrays)]
    buffers = (ctypes.c_void_p * len(addresses))(*addresses)
    schema = _Schema(format=form.encode(), name=b"", flags=2)
    array = _Array(
        length=n,
        null_count=0 if valid is None else int((~valid).sum()),
        n_buffers=len(addresses),
        buffers=ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p)),
    )
    return _capsule(schema, _SCHEMA, ()), _capsule(array, _ARRAY, (buffers, bits, *arrays))
