"""Distinct items, numbered in the order of first appearance: what all verbs of this package are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..arrays.arrow_values import Valid
from ..errors import ParameterError
from ..runtime.abi import KeyColumn
from ..runtime.devices import engine_for
from ..runtime.engine import Buffer, Engine
from ..runtime.memory import bytes_at
from ..storage.groups.column_numbers import key_column, number_columns, number_matrix, pack_columns
from ..storage.groups.numbering import Numbered, number
from ..storage.groups.order import ordered
from .items import Items, Missing, may_be_nan, nan_among, packed

__all__ = [
    "FIRSTS",
    "INT64",
    "Asked",
    "Indices",
    "Int64s",
    "KeyRows",
    "Numbers",
    "copied_numbers",
    "index_type",
    "key_rows",
    "narrowest_index_type",
    "number_items",
    "number_rows",
    "number_tuples",
    "stable_order",
]

Int64s = npt.NDArray[np.int64]
Indices = npt.NDArray[np.signedinteger[Any]]
"""Positions, codes and counts: int32 or int64."""

INT64, _INT32 = np.dtype(np.int64), np.dtype(np.int32)

_FEWEST_COUNTED = 1 << 12
"""Integers that a counting sort orders faster than a merge sort."""


class Numbers(NamedTuple):
    """The distinct items of an array. All numbers are int64, or int32 if the caller asked for that.

    Attributes
    ----------
    firsts
        The position at which each first appears, ascending.
    codes
        The number of each item: the place of its first position in ``firsts``; -1 for an item that was dropped. None
        unless asked for.
    counts
        How often each appears; None unless asked for.
    """

    firsts: Indices
    codes: Indices | None
    counts: Indices | None

    @property
    def code_of_each(self) -> Indices:
        """``codes``, of a call that asked for them."""
        assert self.codes is not None
        return self.codes

    @property
    def count_of_each(self) -> Indices:
        """``counts``, of a call that asked for them."""
        assert self.counts is not None
        return self.counts


class Asked(NamedTuple):
    """What is asked about distinct items beside their first positions, and by which rules items are distinct.

    Attributes
    ----------
    codes, counts
        Whether to answer these `Numbers`, too.
    nan, null
        What items are that are NaN or NaT, and that are null.
    dtype
        Of the answers: int64, or int32, which is written as such.
    """

    codes: bool = False
    counts: bool = False
    nan: Missing = "one"
    null: Missing = "one"
    dtype: np.dtype[Any] = INT64


FIRSTS = Asked()
"""First positions alone, where NaN equals NaN and a null equals a null."""


def index_type(given: Any, n: int) -> np.dtype[Any]:
    """The type that a caller chose for the numbers of ``n`` elements; None stands for int64.

    Raises
    ------
    ParameterError
        If it is neither int32 nor int64, or int32 has no number for so many elements.
    """
    try:
        dtype = INT64 if given is None else np.dtype(given)
    except TypeError:
        dtype = None
    if dtype not in (INT64, _INT32):
        raise ParameterError(f"index_dtype must be 'int32' or 'int64', got {given!r}")
    if dtype == _INT32 and n > np.iinfo(_INT32).max:
        raise ParameterError(
            f"index_dtype='int32' takes at most {np.iinfo(_INT32).max:,} elements, got {n:,}: leave index_dtype= out"
        )
    return dtype


def narrowest_index_type(n: int) -> np.dtype[Any]:
    """The narrowest type of numbers of ``n`` elements."""
    return _INT32 if n <= np.iinfo(_INT32).max else INT64


def number_items(items: Items, asked: Asked) -> Numbers:
    """Number the distinct items.

    Raises
    ------
    DtypeError
        For a type whose items cannot be compared (`items.packed`).
    MemoryError
        If there is no room.
    """
    engine = engine_for("cpu")
    rows = packed(engine, items, asked.nan)
    made = number_rows(engine, rows.rows, rows.width, asked)
    if rows.kept is None:
        return made
    is_null = np.zeros(len(rows.kept), np.bool_) if items.valid is None else ~items.valid
    return _with_missing(made, is_null, rows.kept, asked)


def number_tuples(columns: Sequence[Items], asked: Asked) -> Numbers:
    """Number the distinct rows of columns of one length, at least one column.

    Parameters
    ----------
    asked
        Its rules are those of rows with an item that is NaN or NaT, and of rows with a null. ``"one"``: such an item
        equals its like, and the row is compared as others are.

    Raises
    ------
    DtypeError, MemoryError
        As `number_items`.
    """
    nulls = [~items.valid for items in columns if items.valid is not None and asked.null != "one"]
    kept = _kept(columns, asked, nulls)
    if kept is None:
        return _number_all(columns, asked)
    made = _number_all([_some(items, kept) for items in columns], asked)
    is_null = np.logical_or.reduce(nulls) if nulls else np.zeros(len(kept), np.bool_)
    return _with_missing(made, is_null, kept, asked)


def _kept(columns: Sequence[Items], asked: Asked, nulls: Sequence[npt.NDArray[np.bool_]]) -> Valid:
    """Which rows are compared as they are, of columns with some nulls that are not; None if all are."""
    missing = [*nulls, *(nan_among(items) for items in columns if asked.nan != "one" and may_be_nan(items))]
    kept = ~np.logical_or.reduce(missing) if missing else None
    return None if kept is None or kept.all() else kept


def _number_all(columns: Sequence[Items], asked: Asked) -> Numbers:
    """Number the distinct rows of columns; those that miss something, too."""
    engine = engine_for("cpu")
    arrays, keys = _key_columns(engine, columns)
    first, n = arrays[0], len(arrays[0])
    if len(keys) == 1:
        return number_rows(engine, first, keys[0].width, asked)
    return _made(partial(number_columns, engine, keys, n), n, asked)


def _key_columns(engine: Engine, columns: Sequence[Items]) -> tuple[list[npt.NDArray[Any]], list[KeyColumn]]:
    """Columns of keys whose rows are equal exactly if those of the items are; and the arrays that they lie in."""
    arrays = [array for items in columns for array in _keys_of(engine, items)]
    widths = [array.dtype.itemsize * math.prod(array.shape[1:]) for array in arrays]
    return arrays, [key_column(address_of(array), width) for array, width in zip(arrays, widths, strict=True)]


class KeyRows(NamedTuple):
    """Keys that adjoin, of ``width`` bytes each, and what they lie in."""

    ptr: int
    width: int
    held: Any


def key_rows(columns: Sequence[Items], missing: Missing) -> KeyRows | None:
    """Rows of bytes that are equal exactly if the rows of columns are. None if some rows are no keys.

    Parameters
    ----------
    columns
        At least one, with at least one row.
    missing
        What rows are with an item that is null, NaN or NaT.

    Raises
    ------
    DtypeError, MemoryError
        As `number_items`.
    """
    nulls = [~items.valid for items in columns if items.valid is not None and missing != "one"]
    if _kept(columns, Asked(nan=missing), nulls) is not None:
        return None
    engine = engine_for("cpu")
    arrays, keys = _key_columns(engine, columns)
    if len(keys) == 1:
        return KeyRows(keys[0].integers, keys[0].width, arrays)
    words = pack_columns(engine, keys, len(arrays[0]))
    return KeyRows(words.ptr, words.width, (arrays, words))


def _some(items: Items, kept: npt.NDArray[np.bool_]) -> Items:
    return items._replace(array=items.array[kept], valid=None if items.valid is None else items.valid[kept])


def _keys_of(engine: Engine, items: Items) -> list[npt.NDArray[Any]]:
    """Arrays with a row for each item; of equal items all rows are equal. If there are nulls, the last says which."""
    rows = packed(engine, items)
    if rows.kept is None:
        return [rows.rows]
    keys = np.zeros((len(rows.kept), *rows.rows.shape[1:]), rows.rows.dtype)
    if len(rows.rows):
        keys[...] = rows.rows[0]  # nulls have a key of the others, so they do not widen the span of integers
        keys[rows.kept] = rows.rows
    return [keys, rows.kept]


def number_rows(engine: Engine, rows: npt.NDArray[Any], width: int, asked: Asked) -> Numbers:
    """Number the distinct rows of a contiguous array, each of ``width`` bytes. Raises as `numbering.number`."""
    at, n, item_bytes = address_of(rows), len(rows), rows.dtype.itemsize
    if rows.ndim > 1 and rows.dtype.kind in "iumM":
        return _made(partial(number_matrix, engine, at, item_bytes, (n, width // item_bytes)), n, asked)
    return _made(partial(number, engine, at, width, n), n, asked)


def _made(number_all: Callable[..., Numbered], n: int, asked: Asked) -> Numbers:
    """The numbers of ``n`` rows by a function of ``storage/groups/``."""
    dtype = asked.dtype
    code = np.empty(n, dtype) if asked.codes else None
    if not n:
        return Numbers(np.empty(0, dtype), code, np.empty(0, dtype) if asked.counts else None)
    numbers = 0 if code is None else address_of(code)
    made = number_all(numbers=numbers, number_bytes=dtype.itemsize, counts=asked.counts)
    count = None if made.counts is None else copied_numbers(made.counts, made.size, dtype)
    return Numbers(copied_numbers(made.firsts, made.size, dtype), code, count)


def copied_numbers(buffer: Buffer, size: int, dtype: np.dtype[Any] = INT64) -> Any:
    """Numbers of 4 bytes of the engine's as an array."""
    return bytes_at(buffer.ptr, 4 * size).view(np.uint32).astype(dtype)


def _with_missing(made: Numbers, is_null: npt.NDArray[np.bool_], kept: npt.NDArray[np.bool_], asked: Asked) -> Numbers:
    """The numbers of all items, of those for the items that are ``kept``.

    Missing items become keys among the others, each in the place that its first position has.
    """
    dtype = asked.dtype
    groups = [(np.flatnonzero(is_null), asked.null), (np.flatnonzero(~kept & ~is_null), asked.nan)]
    groups = [(positions, rule) for positions, rule in groups if len(positions) and rule != "dropped"]
    keys = [positions[:1] if rule == "one" else positions for positions, rule in groups]  # the first position of each
    sizes = [[len(positions)] if rule == "one" else np.ones(len(positions), np.int64) for positions, rule in groups]
    unordered = np.concatenate([np.empty(0, np.int64), *keys])
    order = np.argsort(unordered)
    extra = unordered[order]
    at = np.flatnonzero(kept)
    firsts = at[made.firsts]
    behind = np.searchsorted(firsts, extra)  # how many of the other keys come before each of these
    counts = made.counts
    if counts is not None and groups:
        counts = np.insert(counts, behind, np.concatenate(sizes)[order])
    code = None
    if made.codes is not None:
        code = np.full(len(kept), -1, dtype)
        code[at] = (np.arange(len(firsts)) + np.searchsorted(extra, firsts)).astype(dtype)[made.codes]
        places = np.empty(len(extra), np.int64)
        places[order] = behind + np.arange(len(extra))
        for positions, rule in groups:
            n = 1 if rule == "one" else len(positions)
            code[positions], places = places[:n], places[n:]
    return Numbers(np.insert(firsts, behind, extra).astype(dtype, copy=False), code, counts)


def stable_order(numbers: Indices) -> Int64s:
    """The positions of integers in ascending order of these; those of equal ones in ascending order.

    O(n), if the integers span less than 2^32.

    Raises
    ------
    MemoryError
        If there is no room.
    """
    n = len(numbers)
    if n < _FEWEST_COUNTED:
        return np.argsort(numbers, kind="stable")
    least, greatest = int(numbers.min()), int(numbers.max())
    if greatest - least >= 1 << 32:
        return np.argsort(numbers, kind="stable")
    words = (numbers - least).astype(np.uint32)
    order: Int64s = copied_numbers(ordered(engine_for("cpu"), address_of(words), n, greatest - least + 1, None), n)
    return order
