"""A word for each row of key columns: rows with equal keys have equal words. Words say into which part a row goes.

A table's own hash functions lie in its kernels. They take keys of one width, in the form that they have inside of the
table, and each table draws their constants anew. Here, rows have columns of any types, and the rows of two files that a
join compares have to agree. So this is a function of its own. It needs less of a hash: if words of different
keys are equal, a part becomes larger, and nothing else happens, because keys are compared in each part.

A row's columns are folded one by one: xor, a product with an odd constant, and the high half of the product xored onto
the low one (multiplicative hashing, Knuth, The Art of Computer Programming, volume 3, section 6.4). Parts are numbered
by the high bits, of which each level of partitions takes its own.

Equal keys of different types, as `merge` compares them, have equal words, because `Form` says what the types of both
sides become first. That may round, as int64 does in float64: what is equal stays equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..runtime.devices import engine_for
from ..storage.joins.folded_words import fold_words

__all__ = ["Words", "forms_of", "words_of"]

Words = npt.NDArray[np.uint64]

_ODD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio."""

_LAST_ODD = 0xBF58476D1CE4E5B9
_NULL, _NAN = np.uint64(0x5851F42D4C957F2D), np.uint64(0x7FF8000000000000)
_UNITS = ("s", "ms", "us", "ns")

_DECIMAL_DIGITS = 76
"""Of the widest type of decimals."""

Form = Any
"""The type of PyArrow that keys become before they are words; a list of forms for the fields of a struct; None: as they
are."""


def forms_of(types: Sequence[Any], others: Sequence[Any] | None = None) -> list[Form]:
    """What key columns of some types become.

    Parameters
    ----------
    types
        Of the columns of one side.
    others
        Those of the other side of a join.
    """
    return [_form(*pair) for pair in zip(types, types if others is None else others, strict=True)]


def words_of(columns: Sequence[Any], forms: Sequence[Form]) -> Words:
    """Words for the rows of columns of PyArrow, at least one.

    Columns of a type that has no words here, such as lists of one length, all have one word. Their rows are one part.
    """
    words = np.zeros(len(columns[0]), np.uint64)
    for column, form in zip(columns, forms, strict=True):
        _fold(words, column, form)
    fold_words(engine_for("cpu"), address_of(words), 0, len(words), _LAST_ODD)
    return words


def _form(mine: Any, other: Any) -> Form:
    import pyarrow as arrow

    is_ = arrow.types
    pair = [type_.value_type if is_.is_dictionary(type_) else type_ for type_ in (mine, other)]
    if all(map(is_.is_struct, pair)) and pair[0].num_fields == pair[1].num_fields:
        return [_form(*(type_.field(place).type for type_ in pair)) for place in range(pair[0].num_fields)]
    if all(is_.is_integer(type_) or is_.is_boolean(type_) for type_ in pair):
        return arrow.int64()
    if all(is_.is_integer(type_) or is_.is_floating(type_) or is_.is_boolean(type_) for type_ in pair):
        return arrow.float64()
    for is_kind, make in ((is_.is_timestamp, arrow.timestamp), (is_.is_duration, arrow.duration)):
        if all(map(is_kind, pair)):
            return make(max((type_.unit for type_ in pair), key=_UNITS.index))
    if any(map(is_.is_date, pair)) and all(is_.is_date(type_) or is_.is_timestamp(type_) for type_ in pair):
        units = ["s" if is_.is_date32(type_) else "ms" if is_.is_date64(type_) else type_.unit for type_ in pair]
        return arrow.timestamp(max(units, key=_UNITS.index))
    if all(map(is_.is_decimal, pair)) and pair[0].scale != pair[1].scale:
        # What is equal has no digits behind those of the smaller scale, and that cuts the others off.
        return arrow.decimal256(_DECIMAL_DIGITS, min(type_.scale for type_ in pair))
    if all(map(is_.is_time, pair)):
        return arrow.time64("ns")
    return pair[0] if pair[0] != mine else None


def _fold(words: Words, column: Any, form: Form) -> None:
    """Fold the items of a column in some form into the words of its rows, in place."""
    import pyarrow as arrow

    is_ = arrow.types
    chunk = _one_chunk(column) if isinstance(column, arrow.ChunkedArray) else column
    if isinstance(chunk, arrow.ChunkedArray):  # as it does not fit into one chunk
        begin = 0
        for part in chunk.chunks:
            _fold(words[begin : begin + len(part)], part, form)
            begin += len(part)
        return
    if is_.is_struct(chunk.type):
        fields = chunk.flatten()
        for field, its_form in zip(fields, form if isinstance(form, list) else [None] * len(fields), strict=True):
            _fold(words, field, its_form)
        return
    chunk = chunk if form is None else chunk.cast(form, safe=False)
    type_ = chunk.type
    if any(is_kind(type_) for is_kind in _text_tests(is_)):
        _fold_texts(words, chunk.cast(arrow.large_binary()))
    elif (found := _numbers(chunk)) is not None:
        if chunk.null_count:
            found = np.where(chunk.is_valid().to_numpy(zero_copy_only=False), found, _NULL)
        _fold_words(words, found)


def _one_chunk(column: Any) -> Any:
    """The chunks of a column as one, if they fit into one."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which copies a single one, too


def _fold_words(words: Words, found: Words) -> None:
    fold_words(engine_for("cpu"), address_of(words), address_of(np.ascontiguousarray(found)), len(words), _ODD)


def _text_tests(is_: Any) -> tuple[Any, ...]:
    return is_.is_string, is_.is_large_string, is_.is_binary, is_.is_large_binary, is_.is_fixed_size_binary


def _numbers(chunk: Any) -> Words | None:
    """A word for each item of fixed width, of any value for a null; None if the type has none."""
    import pyarrow as arrow

    is_, type_, n = arrow.types, chunk.type, len(chunk)
    if is_.is_floating(type_):
        with np.errstate(invalid="ignore"):  # a NaN may be a signal
            floats = _values(chunk.cast(arrow.float64()), np.dtype(np.float64)) + 0.0  # -0.0 becomes 0.0
        found: Words = floats.view(np.uint64)
        found[floats != floats] = _NAN
        return found
    if is_.is_boolean(type_):
        return _numbers(chunk.cast(arrow.int64()))
    if is_.is_decimal(type_):  # the lowest word of the number
        if type_.bit_width == 32:
            return _values(chunk, np.dtype(np.int32)).astype(np.int64).view(np.uint64)
        lowest = _values(chunk, np.dtype((np.int64, (type_.bit_width // 64,))))[:, 0]
        return np.ascontiguousarray(lowest).view(np.uint64)
    if is_.is_integer(type_) or is_.is_temporal(type_):
        if type_.bit_width not in (8, 16, 32, 64):
            return None
        signed = not is_.is_unsigned_integer(type_)
        found = _values(chunk, np.dtype(f"{'i' if signed else 'u'}{type_.bit_width // 8}"))
        return found.astype(np.int64, copy=False).view(np.uint64)
    return np.zeros(n, np.uint64) if is_.is_null(type_) else None


def _values(chunk: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values of a chunk as they lie in memory, those of nulls included."""
    n, base = len(chunk), dtype.base
    each = dtype.itemsize // base.itemsize
    if not n:
        return np.empty((0, *dtype.shape), base)
    items = np.frombuffer(chunk.buffers()[1], base, n * each, chunk.offset * dtype.itemsize)
    return items.reshape((n, *dtype.shape))


def _fold_texts(words: Words, chunk: Any) -> None:
    """Fold strings: their lengths, and then their bytes, eight at a time, while there are strings with more."""
    n = len(chunk)
    if not n:
        return
    _, offsets_at, data_at = chunk.buffers()
    offsets = np.frombuffer(offsets_at, np.int64, n + 1, 8 * chunk.offset)
    begin, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros(end - begin + 8, np.uint8)  # eight bytes can be read at each place
    if end > begin:
        data[: end - begin] = np.frombuffer(data_at, np.uint8, end - begin, begin)
    at_each = np.lib.stride_tricks.as_strided(data.view(), (len(data) - 7, 8), (1, 1), writeable=False)
    lengths = np.diff(offsets)
    if chunk.null_count:
        valid = chunk.is_valid().to_numpy(zero_copy_only=False)
        lengths = np.where(valid, lengths, -1)
    _fold_words(words, lengths.view(np.uint64))
    rows = np.flatnonzero(lengths > 0)
    starts, lengths = offsets[:-1][rows] - begin, lengths[rows]
    done = 0
    while len(rows):
        found = at_each[starts + done].view(np.uint64)[:, 0]
        short = np.minimum(lengths - done, 8).astype(np.uint64)
        found &= np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(8) * (np.uint64(8) - short))
        some = words[rows]
        _fold_words(some, found)
        words[rows] = some
        done += 8
        more = lengths > done
        if not more.all():
            rows, starts, lengths = rows[more], starts[more], lengths[more]
