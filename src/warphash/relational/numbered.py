"""Distinct items, numbered in the order of first appearance: what all verbs of this package are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..runtime.devices import engine_for
from ..runtime.engine import Buffer, Engine
from ..runtime.memory import bytes_at
from ..storage.groups.numbering import number
from ..storage.groups.order import ordered
from .items import Items, Missing, packed

__all__ = ["Int64s", "Numbers", "number_items", "number_rows", "stable_order"]

Int64s = npt.NDArray[np.int64]

_FEWEST_COUNTED = 1 << 12
"""Integers that a counting sort orders faster than a merge sort."""


class Numbers(NamedTuple):
    """The distinct items of an array.

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

    firsts: Int64s
    codes: Int64s | None
    counts: Int64s | None

    @property
    def code_of_each(self) -> Int64s:
        """``codes``, of a call that asked for them."""
        assert self.codes is not None
        return self.codes

    @property
    def count_of_each(self) -> Int64s:
        """``counts``, of a call that asked for them."""
        assert self.counts is not None
        return self.counts


def number_items(
    items: Items, *, codes: bool = False, counts: bool = False, nan: Missing = "one", null: Missing = "one"
) -> Numbers:
    """Number the distinct items.

    Parameters
    ----------
    codes, counts
        What to answer beside first positions.
    nan, null
        What items are that are NaN or NaT, and that are null.

    Raises
    ------
    DtypeError
        For a type whose items cannot be compared (`items.packed`).
    MemoryError
        If there is no room.
    """
    engine = engine_for("cpu")
    rows = packed(engine, items, nan)
    made = number_rows(engine, rows.rows, rows.width, codes=codes, counts=counts)
    return made if rows.kept is None else _with_missing(made, items, rows.kept, nan, null)


def number_rows(
    engine: Engine, rows: npt.NDArray[Any], width: int, *, codes: bool = False, counts: bool = False
) -> Numbers:
    """Number the distinct rows of a contiguous array, each of ``width`` bytes. Raises as `numbering.number`."""
    n = len(rows)
    code = np.empty(n, np.int64) if codes else None
    if not n:
        return Numbers(np.empty(0, np.int64), code, np.empty(0, np.int64) if counts else None)
    numbers = 0 if code is None else address_of(code)
    made = number(engine, address_of(rows), width, n, numbers=numbers, counts=counts)
    count = None if made.counts is None else _as_int64(made.counts, made.size)
    return Numbers(_as_int64(made.firsts, made.size), code, count)


def _as_int64(buffer: Buffer, size: int) -> Int64s:
    return bytes_at(buffer.ptr, 4 * size).view(np.uint32).astype(np.int64)


def _with_missing(made: Numbers, items: Items, kept: npt.NDArray[np.bool_], nan: Missing, null: Missing) -> Numbers:
    """The numbers of all items, of those for the items that are ``kept``.

    Missing items become keys among the others, each in the place that its first position has.
    """
    is_null = np.zeros(len(kept), np.bool_) if items.valid is None else ~items.valid
    groups = [(np.flatnonzero(is_null), null), (np.flatnonzero(~kept & ~is_null), nan)]
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
        code = np.full(len(kept), -1, np.int64)
        code[at] = (np.arange(len(firsts)) + np.searchsorted(extra, firsts))[made.codes]
        places = np.empty(len(extra), np.int64)
        places[order] = behind + np.arange(len(extra))
        for positions, rule in groups:
            n = 1 if rule == "one" else len(positions)
            code[positions], places = places[:n], places[n:]
    return Numbers(np.insert(firsts, behind, extra), code, counts)


def stable_order(numbers: Int64s) -> Int64s:
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
    return _as_int64(ordered(engine_for("cpu"), address_of(words), n, greatest - least + 1, None), n)
