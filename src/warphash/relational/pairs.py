"""Pairs of positions and rows with equal codes, in host memory. They are counted before their memory is taken."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..runtime.abi import ROWS_AT_ONCE
from ..runtime.abi import RowLists as ListsOnCpu
from ..runtime.devices import engine_for
from ..runtime.host_memory import available_bytes
from ..storage.groups.members import mark_codes
from ..storage.joins.pairs import Pairs as PairsOnCpu
from .numbered import Indices, Numbers, stable_order

__all__ = ["Pairs", "RowLists", "check_room", "pairs_of", "row_lists_of", "seen_codes"]

_FEWEST_CHECKED = 1 << 26
"""Bytes of pairs that are compared with the free memory: for fewer, asking takes as long as writing them."""


class RowLists(NamedTuple):
    """The rows of each distinct key.

    Attributes
    ----------
    offsets
        Where the rows of each code begin, and where those of the last one end.
    rows
        The rows: those of a code together, ascending.

    In host memory, both are longer: `abi.RowLists` says what is behind.
    """

    offsets: Any
    rows: Any


class Pairs(NamedTuple):
    """Positions, and a row for each; -1 for one that has none."""

    left: Any
    right: Any


def row_lists_of(numbers: Numbers) -> RowLists:
    """The positions of each distinct item, of their numbers with codes and counts. Rows have the type of the codes."""
    codes, counts = numbers.code_of_each, numbers.count_of_each
    offsets = np.zeros(len(counts) + 2, np.uint32)
    np.cumsum(counts, dtype=np.uint32, out=offsets[1:-1])
    offsets[-1] = len(codes)
    rows = np.full(len(codes) + ROWS_AT_ONCE, -1, codes.dtype)
    rows[: len(codes)] = stable_order(codes)
    return RowLists(offsets, rows)


def pairs_of(codes: Indices, lists: RowLists | None, dtype: np.dtype[Any], *, keeps_all: bool) -> Pairs:
    """Pair positions with the rows of their codes, by positions and then by rows.

    Parameters
    ----------
    codes
        Of each position; -1 for one without a row. Of the type of the rows.
    lists
        The rows of each code; None: the row of a code is the code.
    dtype
        Of the pairs: int32 or int64.
    keeps_all
        A position without a row has a pair, too, with -1.

    Raises
    ------
    MemoryError
        If there is no room for the pairs.
    """
    if lists is None and keeps_all:
        return Pairs(np.arange(len(codes), dtype=dtype), codes.astype(dtype, copy=False))
    held, codes = ListsOnCpu(row_bytes=codes.itemsize), np.ascontiguousarray(codes)
    if lists is not None:
        held.offsets, held.size, held.rows = address_of(lists.offsets), len(lists.offsets) - 2, address_of(lists.rows)
    pairs = PairsOnCpu(engine_for("cpu"), held, address_of(codes), len(codes), keeps_all=keeps_all)
    check_room(pairs.total, 2 * dtype.itemsize)
    left, right = np.empty(pairs.total, dtype), np.empty(pairs.total, dtype)
    pairs.write(address_of(left), address_of(right), dtype.itemsize)
    return Pairs(left, right)


def seen_codes(codes: Indices, size: int) -> npt.NDArray[np.bool_]:
    """Which of the codes below ``size`` are among some codes, of which -1 is none."""
    flags = np.zeros(size, np.bool_)
    mark_codes(engine_for("cpu"), address_of(codes), codes.itemsize, len(codes), address_of(flags), size)
    return flags


def check_room(pairs: int, pair_bytes: int) -> None:
    """Raise `MemoryError` if there is surely no room for a step that takes so many bytes of memory for each pair."""
    nbytes = pairs * pair_bytes
    free = available_bytes() if nbytes >= _FEWEST_CHECKED else None
    if free is not None and nbytes > free:
        raise MemoryError(
            f"the join makes {pairs:,} pairs, for which it takes {nbytes:,} bytes, and {free:,} are available: join "
            "fewer rows at a time, or ask for how='semi'"
        )
