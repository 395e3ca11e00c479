"""Strings of any length, in all forms: what a table takes for keys of type ``str`` or ``bytes``, and gives back.

A table takes a row of 16 bytes for each string: its address and its length. `StringRows` are such rows, with whatever
keeps the bytes alive. `StringArray` has strings in memory of its own, as offsets and bytes.

Kernels read a string more than once: for its hash, and to compare or keep it. Other threads may write to the memory of
a column meanwhile. So the bytes of a column are copied first, and rows lead to the copy. Offsets, views and codes are
read once, and what they lead to is checked before it is read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ShapeError
from .arrow import Chunk, check_codes, check_extension, give_strings, read_arrow, speaks_arrow
from .library import MAX_ROWS, dtype_of, refuse_rows, shown
from .plain_array import WITHOUT_UNIT, gives_array, is_missing, numpy_of, plain_array, python_value, refuse_unit
from .threads import in_threads

__all__ = ["NULL_LENGTH", "ROW", "StringArray", "StringRows", "holds_text", "rows_of"]

ROW = np.dtype([("address", np.uint64), ("length", np.uint64)])
"""``StringRow`` of ``kernels/strings/abi.cuh``."""

NULL_LENGTH = 2**64 - 1
"""The length of a null."""

_TEXT, _BINARY = ("u", "U", "vu"), ("z", "Z", "vz")
"""Arrow's formats: with offsets of 32 and 64 bits, and of views."""

_PIECE = 1 << 14
"""Elements of a column that become rows together, in a cache."""

_OF_A_THREAD = 1 << 20
"""Fewest elements of a column for which a thread is started."""

_MOST_PADDED = 4
"""Bytes of strings of one width for each byte of the strings themselves."""

_MOST_SPARSE = 8
"""Bytes of buffers that are copied for each byte of the strings there. Where it would be more, strings are copied one
by one."""

Bytes = npt.NDArray[np.uint8]
"""Bytes of strings."""


class StringRows:
    """Rows of strings whose bytes others keep.

    Parameters
    ----------
    rows
        `ROW` items, an array of any shape.
    text
        The strings are UTF-8; otherwise they are bytes.
    owner
        Keeps the bytes alive.
    nulls
        Nulls among the strings.

    Attributes
    ----------
    given
        What a caller gave: a lookup answers with columns of its library.
    names
        Of the items of a key that is a row; None if these have no names.
    """

    given: Any = None
    names: tuple[Any, ...] | None = None

    def __init__(self, rows: npt.NDArray[Any], text: bool, owner: Any, nulls: int = 0) -> None:
        self.rows, self.text, self.owner, self.nulls = rows, text, owner, nulls

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the rows."""
        return self.rows.shape


class StringArray:
    """Strings or bytes of any length, in memory of their own. Any library that speaks Arrow takes the memory over.

    ``pyarrow.array(a)``, ``polars.Series(a)``, and ``pandas.Series(a.tolist())``.

    Parameters
    ----------
    offsets
        int64[n + 1]: where each string begins, and where the last one ends.
    data
        The bytes of all strings, uint8.
    text
        The strings are UTF-8, and items are ``str``; otherwise items are ``bytes``.
    valid
        Which strings are no null, bool[n]; None if all are.
    """

    def __init__(
        self,
        offsets: npt.NDArray[np.int64],
        data: npt.NDArray[np.uint8],
        text: bool,
        valid: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.offsets, self.data, self.text, self.valid = offsets, data, text, valid

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Bytes of each string, int64[n]; -1 of a null."""
        lengths = np.diff(self.offsets)
        return lengths if self.valid is None else np.where(self.valid, lengths, -1)

    def __repr__(self) -> str:
        return f"<warphash.StringArray of {len(self):,} {'strings' if self.text else 'bytes'}>"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.tolist()[index]
        number = range(len(self))[index]
        if self.valid is not None and not self.valid[number]:
            return None
        made = self.data[self.offsets[number] : self.offsets[number + 1]].tobytes()
        return made.decode() if self.text else made

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The items, ``str`` or ``bytes``, and None for a null."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        if self.text and data.isascii():
            whole = data.decode()
            items: list[Any] = [whole[at:end] for at, end in pairwise(ends)]
        else:
            items = [data[at:end] for at, end in pairwise(ends)]
            if self.text:
                items = [item.decode() for item in items]
        if self.valid is not None:
            for number in np.flatnonzero(~self.valid):
                items[number] = None
        return items

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The items as a NumPy array: of ``StringDType`` where NumPy has it, and of objects otherwise."""
        if dtype is None:
            dtype = _string_dtype(self.valid is not None) if self.text else np.dtype(object)
        if np.dtype(dtype).kind == "T" and (padded := self._padded()) is not None:
            return padded.astype(dtype)
        return np.array(self.tolist(), dtype)

    def _padded(self) -> npt.NDArray[np.bytes_] | None:
        """Strings of ASCII as NumPy's of one width, which become its strings in 0.4 of the time of a list.

        None if a string has other characters, a zero or is null, or if most of the width would be zeros.
        """
        lengths, data = np.diff(self.offsets), self.data[self.offsets[0] : self.offsets[-1]]
        width = int(lengths.max(initial=0))
        if not self.text or self.valid is not None or not width or len(self) * width > _MOST_PADDED * len(data):
            return None
        if data.max() > 127 or not data.all():
            return None
        made = np.zeros((len(self), width), np.uint8)
        made[np.arange(width) < lengths[:, None]] = data
        return made.view(f"S{width}").reshape(-1)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """The capsules of a column of type ``large_string`` or ``large_binary``."""
        return give_strings(self.offsets, self.data, self.valid, self.text)

    @property
    def rows(self) -> StringRows:
        """The strings as rows."""
        rows = np.empty(len(self), ROW)
        _fill(rows, self.data.ctypes.data, self.offsets, len(self.data))
        return StringRows(rows, self.text, self, _note_nulls(rows, self.valid))


def _string_dtype(has_nulls: bool) -> Any:
    kind = getattr(getattr(np, "dtypes", None), "StringDType", None)
    if kind is None:
        return np.dtype(object)
    return kind(na_object=None) if has_nulls else kind()


# ---- any form of strings to rows
def holds_text(array: Any) -> bool | None:
    """Whether the items of an array are strings of any length (True), bytes of any length (False), or neither (None).

    A column of Arrow data, of pandas or of Polars is such an array, and one of NumPy's StringDType. So is a column of
    codes whose dictionary, or categories, are strings. A list is none: its strings may as well be keys of a fixed
    width.
    """
    if isinstance(array, StringArray | StringRows):
        return array.text
    dtype = dtype_of(array)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return True if dtype.kind == "T" else None
    if _is_pandas(array):
        if (coded := _categorical(array)) is not None:
            return holds_text(coded.categories)
        if isinstance(dtype, np.dtype):
            first = next((item for item in array if not is_null(item)), None)
            return True if isinstance(first, str) else False if isinstance(first, bytes) else None
        if getattr(dtype, "name", "") in ("str", "string"):
            return True
        if not _has_arrow_memory(array):
            return None
    kind = _format_of(array)
    return True if kind in _TEXT else False if kind in _BINARY else None


def rows_of(value: Any, text: bool, name: str = "keys") -> StringRows:
    """The rows of strings in any form: of shape ``()`` for one string, ``(n,)`` for a batch.

    Raises
    ------
    DtypeError
        For what is no string; for bytes where ``text`` is True, and for strings where it is False.
    ShapeError
        For arrays of more than one axis, and for more than `MAX_ROWS` strings.
    """
    if isinstance(value, StringRows):
        if value.text != text:
            _refuse(f"{'strings' if value.text else 'bytes'}", text, name, str if value.text else bytes)
        return value
    if isinstance(value, StringArray):
        return rows_of(_copy_of(value).rows, text, name)
    value = python_value(value)
    if is_null(value) or isinstance(value, str | bytes):
        one = _of_items([value], text, name)
        one.rows = one.rows.reshape(())
        return one
    if isinstance(value, np.ndarray):
        value = plain_array(value)
        if value.ndim > 1:
            raise ShapeError(f"{name} must have shape (n,), got {value.shape}: strings come one by one")
        if value.dtype.kind not in "TUSO":
            _refuse(f"an array of {value.dtype}", text, name, value.dtype.type)
        items = value.tolist()
        return rows_of(items, text, name) if value.ndim == 0 else _of_items(items, text, name)
    if isinstance(value, list | tuple):
        return _of_items(value, text, name)
    refuse_unit(value, WITHOUT_UNIT)
    if _is_pandas(value) and hasattr(value, "__len__"):  # no single value
        if hasattr(value, "columns"):
            raise ShapeError(f"{name} must be one column, got a frame: strings come one by one, as in frame['a']")
        if (coded := _categorical(value)) is not None:
            return _of_codes(np.array(coded.codes), rows_of(coded.categories, text, name))
        if not _has_arrow_memory(value):
            return _of_items(list(value), text, name)
    chunks = read_arrow(value)
    if chunks is None:
        if gives_array(type(value)):
            return rows_of(numpy_of(value), text, name)
        _refuse(type(value).__name__, text, name, type(value))
    return _of_chunks(chunks, text, name)


def _refuse(got: str, text: bool, name: str, came: type) -> NoReturn:
    """Raise for what is no string, or no bytes; ``came`` is its class, or that of its items."""
    of_this_type = ", or make a table of that type"
    if issubclass(came, bytearray | memoryview):
        mend, of_this_type = ("decode them, as bytes(x).decode() does" if text else "give bytes(x) of each"), ""
    elif issubclass(came, bytes if text else str):
        mend = "decode them" if text else "encode them"
    else:
        mend = f"convert them to {'strings' if text else 'bytes'}"
    wanted = "strings" if text else "bytes"
    raise DtypeError(f"{name} must be {wanted}, as the table was made, got {got}: {mend}{of_this_type}")


def _of_items(items: Sequence[Any], text: bool, name: str) -> StringRows:
    """Rows of a list. The strings are encoded into one array."""
    if len(items) > MAX_ROWS:
        refuse_rows(len(items))
    kinds = set(map(type, items))
    if any(hasattr(kind, "as_py") for kind in kinds):
        items = list(map(python_value, items))
        kinds = set(map(type, items))
    valid = None
    if not all(issubclass(kind, str if text else bytes) for kind in kinds):
        valid = np.array([not is_null(item) for item in items], np.bool_)
        empty: Any = "" if text else b""
        items = [empty if is_null(item) else item for item in items]
        for item in items:
            if not isinstance(item, str if text else bytes):
                _refuse(f"{shown(item)} ({type(item).__name__})", text, name, type(item))
    encoded: Sequence[Any] = items
    if text and not (joined := "".join(items)).isascii():
        try:
            encoded = [item.encode() for item in items]
        except UnicodeEncodeError as error:
            raise DtypeError(f"{name} must be text that UTF-8 has, got a lone surrogate: {error}") from None
    elif text:
        data = joined.encode()
    if not text or encoded is not items:
        data = b"".join(encoded)
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(items)), out=offsets[1:])
    return StringArray(offsets, np.frombuffer(data, np.uint8), text, valid).rows


def is_string(item: Any, text: bool) -> bool:
    """Whether an item is a string that UTF-8 has; or bytes."""
    if not text:
        return isinstance(item, bytes)
    if not isinstance(item, str):
        return False
    try:
        item.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def is_null(item: Any) -> bool:
    """None, NaN, and pandas' NA and NaT."""
    return is_missing(item) or (isinstance(item, float) and item != item)


def _categorical(column: Any) -> Any:
    """What has the codes and the categories of a pandas column; None if the column has none."""
    if not hasattr(getattr(column, "dtype", None), "categories"):
        return None
    return getattr(column, "cat", column)


def _of_codes(codes: npt.NDArray[Any], words: StringRows) -> StringRows:
    """Rows of categories; a code of -1 is a null."""
    rows, valid = np.empty(len(codes), ROW), codes != -1
    check_codes(codes, len(words.rows), valid)
    return StringRows(rows, words.text, words, _fill_coded(rows, codes, valid, words.rows))


def _is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"


def _has_arrow_memory(column: Any) -> bool:
    """Whether a pandas column lies in Arrow's memory, so that giving it out copies nothing."""
    dtype = getattr(column, "dtype", None)
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"


def _format_of(array: Any) -> str:
    """Arrow's name of the type of a column; "" for what is no column of Arrow data."""
    if not speaks_arrow(array) or hasattr(array, "columns"):  # or a frame
        return ""
    chunks = read_arrow(array)
    return _values_of(chunks[0]).format if chunks else ""


def _values_of(chunk: Chunk) -> Chunk:
    """Where the values of a column are: in its dictionary, in its runs, or in the column itself."""
    if chunk.dictionary is not None:
        return _values_of(chunk.dictionary)
    return _values_of(chunk.children[1]) if chunk.format == "+r" else chunk


# ---- columns of Arrow data
def _of_chunks(chunks: list[Chunk], text: bool, name: str) -> StringRows:
    n = sum(chunk.length for chunk in chunks)
    if n > MAX_ROWS:
        refuse_rows(n)
    rows, at, nulls = np.empty(n, ROW), 0, 0
    copies: list[Bytes] = []
    for chunk in chunks:
        part = rows[at : at + chunk.length]
        nulls += _fill_from(part, chunk, text, name, copies)
        at += chunk.length
    return StringRows(rows, text, copies, nulls)


def _fill_from(rows: npt.NDArray[Any], chunk: Chunk, text: bool, name: str, copies: list[Bytes]) -> int:
    """Write the rows of a piece, and append copies of its bytes to ``copies``; how many rows are nulls."""
    kind = chunk.format
    if chunk.dictionary is not None:
        words = np.empty(chunk.dictionary.length, ROW)
        _fill_from(words, chunk.dictionary, text, name, copies)
        return _fill_coded(rows, chunk.codes, chunk.valid, words)
    if kind == "+r":
        values = chunk.children[1]
        words = np.empty(values.length, ROW)
        _fill_from(words, values, text, name, copies)
        return _fill_coded(rows, chunk.runs, None, words)
    if kind == "n":
        rows["address"] = 0
        return _note_nulls(rows, chunk.valid)
    check_extension(chunk.extension)
    if kind not in (_TEXT if text else _BINARY):
        came = str if kind in _TEXT else bytes if kind in _BINARY else object
        _refuse(f"Arrow data of format {kind!r}", text, name, came)
    if not chunk.length:
        return 0
    if kind[0] == "v":
        _fill_views(rows, chunk, copies)
    else:
        wide = kind in "UZ"
        offsets = _copied(chunk.at(1, np.int64 if wide else np.int32, chunk.length + 1, chunk.offset))
        low, high = int(offsets.min()), int(offsets.max())
        data = _bytes_at(chunk.buffers[2], low, high)
        copies.append(data)
        _fill(rows, data.ctypes.data - low, offsets, high)
    return _note_nulls(rows, chunk.valid)


def _copied(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of an array of one axis, by several threads."""
    made = np.empty_like(array)

    def copy(begin: int, end: int) -> None:
        made[begin:end] = array[begin:end]

    in_threads(len(array), _OF_A_THREAD, copy)
    return made


def _bytes_at(address: int, begin: int, end: int) -> Bytes:
    """A copy of some bytes of a buffer at an address."""
    if begin < 0:
        _refuse_places("offsets of 0 or more", f"an offset of {begin:,}")
    if begin == end:
        return np.empty(0, np.uint8)
    memory: Any = (ctypes.c_uint8 * (end - begin)).from_address(address + begin)
    return _copied(np.frombuffer(memory, np.uint8))


def _copy_of(array: StringArray) -> StringArray:
    """The strings in memory that no caller has."""
    valid = None if array.valid is None else array.valid.copy()
    return StringArray(_copied(array.offsets), _copied(array.data), array.text, valid)


def _refuse_places(wanted: str, got: str) -> NoReturn:
    raise DtypeError(
        f"a column of strings must have {wanted}, got {got}: the column is damaged, or another thread writes to it "
        "while it is read; give a copy"
    )


def _fill(rows: npt.NDArray[Any], address: int, offsets: npt.NDArray[Any], most: int) -> None:
    """Rows of strings that lie one behind the other, at offsets of at most ``most``. Nobody writes to the offsets.

    Raises
    ------
    DtypeError
        If offsets fall, or exceed ``most``.
    """
    words = rows.view(np.uint64).reshape(-1, 2)
    base = np.uint64(address % 2**64)

    def fill(begin: int, end: int) -> None:
        for at in range(begin, end, _PIECE):
            part = words[at : min(at + _PIECE, end)]
            ends = offsets[at : at + len(part) + 1].astype(np.int64, copy=False).view(np.uint64)
            np.add(ends[:-1], base, out=part[:, 0])
            np.subtract(ends[1:], ends[:-1], out=part[:, 1])
            if part[:, 1].max() > most or ends.max() > most:
                _refuse_places(f"offsets that rise to at most {most:,}", "others")

    in_threads(len(rows), _OF_A_THREAD, fill)


def _fill_views(rows: npt.NDArray[Any], chunk: Chunk, copies: list[Bytes]) -> None:
    """Rows of Arrow's views: a length, and the number of a buffer with a place there; or up to 12 bytes themselves.

    A view is two words: ``length | prefix << 32`` and ``buffer | place << 32``.
    """
    words = rows.view(np.uint64).reshape(-1, 2)
    pool = len(chunk.buffers) - 3  # the last buffer has the sizes of these
    homes = np.array(chunk.buffers[2 : 2 + pool] or [0], np.uint64)
    sizes = chunk.at(2 + pool, np.uint64, pool).copy() if pool else np.zeros(1, np.uint64)
    views = _copied(chunk.at(1, np.uint64, 2 * chunk.length, 2 * chunk.offset)).reshape(-1, 2)
    copies.append(views.view(np.uint8))
    first, low, half, valid = views.ctypes.data + 4, np.uint64(2**32 - 1), np.uint64(32), chunk.valid
    outside: list[tuple[int, int, int, int]] = []  # in each piece of a buffer: number, first and last place, bytes
    whole: dict[int, int] = {}  # where a piece begins whose strings are all in one buffer, and the number of the buffer

    def buffers_of(piece: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        numbers: npt.NDArray[np.uint64] = np.minimum(piece[:, 1] & low, np.uint64(len(homes) - 1))
        return numbers.view(np.int64)

    def note(number: int, there: npt.NDArray[np.uint64]) -> None:
        ends = there[:, 0] + there[:, 1]
        last = int(ends.max())
        if last > int(sizes[number]):
            _refuse_places("views that lead into its buffers", "others")
        outside.append((number, int(there[:, 0].min()), last, int(there[:, 1].sum())))

    def fill(begin: int, end: int) -> None:
        for at in range(begin, end, _PIECE):
            part = words[at : min(at + _PIECE, end)]
            piece = views[at : at + len(part)]
            np.bitwise_and(piece[:, 0], low, out=part[:, 1])
            np.right_shift(piece[:, 1], half, out=part[:, 0])
            if valid is not None:
                part[~valid[at : at + len(part)], 1] = 0
            of = buffers_of(piece)
            if part[:, 1].min() > 12 and of.min() == of.max():
                whole[at] = int(of[0])
                note(whole[at], part)
                continue
            is_inside = part[:, 1] <= 12
            (inside,) = np.nonzero(is_inside)
            if len(inside) < len(part):
                there, of = part[~is_inside], of[~is_inside]
                for number in np.unique(of).tolist():
                    note(number, there[of == number])
            part[inside, 0] = inside.astype(np.uint64) * np.uint64(16) + np.uint64(first + 16 * at)

    in_threads(len(rows), _OF_A_THREAD, fill)
    if not outside:
        return
    spans = {number: (min(some), max(more)) for number, some, more in _by_buffer(outside)}
    if sum(end - begin for begin, end in spans.values()) > _MOST_SPARSE * sum(nbytes for *_, nbytes in outside):
        _gather_views(words, homes.take(buffers_of(views)), copies)
        return
    moves = np.zeros(len(homes), np.uint64)
    for number, (begin, end) in spans.items():
        data = _bytes_at(int(homes[number]), begin, end)
        copies.append(data)
        moves[number] = (data.ctypes.data - begin) % 2**64

    def move(begin: int, end: int) -> None:
        for at in range(begin, end, _PIECE):
            part = words[at : min(at + _PIECE, end)]
            if at in whole:
                part[:, 0] += moves[whole[at]]
                continue
            (there,) = np.nonzero(part[:, 1] > 12)
            part[there, 0] += moves.take(buffers_of(views[at : at + len(part)][there]))

    in_threads(len(rows), _OF_A_THREAD, move)


def _by_buffer(pieces: list[tuple[int, int, int, int]]) -> Iterator[tuple[int, list[int], list[int]]]:
    """Of each buffer its number, and the first and last places of all pieces."""
    for number in {number for number, *_ in pieces}:
        mine = [piece for piece in pieces if piece[0] == number]
        yield number, [first for _, first, *_ in mine], [last for *_, last, _ in mine]


def _gather_views(words: npt.NDArray[np.uint64], homes: npt.NDArray[np.uint64], copies: list[Bytes]) -> None:
    """Copy strings that lie far from each other in their buffers one by one; ``homes`` are the buffers of all rows."""
    (there,) = np.nonzero(words[:, 1] > 12)
    lengths = words[there, 1]
    addresses = (homes[there] + words[there, 0]).tolist()
    data = np.frombuffer(b"".join(map(ctypes.string_at, addresses, lengths.tolist())), np.uint8)
    copies.append(data)
    words[there, 0] = np.cumsum(lengths) - lengths + np.uint64(data.ctypes.data)


def _fill_coded(
    rows: npt.NDArray[Any], codes: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None, words: npt.NDArray[Any]
) -> int:
    """Write the row of each code; how many are nulls."""
    if len(words):
        whole = np.complex128  # of 16 bytes, as a row: NumPy takes these faster than records
        words.view(whole).take(codes, mode="clip", out=rows.view(whole))  # the code of a null may be any number
    elif len(rows):
        rows["address"] = 0
    _note_nulls(rows, valid)
    return int(np.count_nonzero(rows["length"] == NULL_LENGTH))


def _note_nulls(rows: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None) -> int:
    """Give nulls their length; how many they are."""
    if valid is None:
        return 0
    rows["length"][~valid] = NULL_LENGTH
    return int(len(valid) - valid.sum())
