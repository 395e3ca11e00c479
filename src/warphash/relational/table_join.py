"""`join` with a table on the right side: the values of a key are the rows that have it.

The table answers which keys it has, by its own rules. So no key is numbered, and no table is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ParameterError
from ..table.base import BaseTable
from ..table.maps import HashMap
from ..table.multimap import MultiMap
from .composites import RowElements
from .elements import Elements
from .matches import How, JoinIndices, some_rows

__all__ = ["join_table"]

_HOWS = ("inner", "left", "semi", "anti")


def join_table(left: Any, elements: Elements, table: BaseTable[Any], how: How, dtype: np.dtype[Any]) -> JoinIndices:
    """Join keys with those of a table. Arguments are those of `join`, and answers those of `KeyRows.joined`.

    Parameters
    ----------
    left, elements
        The keys as the caller gave them, and as elements.
    table
        Of integers, which are rows; of any values, and a set, for ``"semi"`` and ``"anti"``.

    Raises
    ------
    ParameterError
        For ``"right"`` and ``"outer"``, for rows of columns, and for a set that is to tell rows.
    DtypeError
        If values are no integers that ``dtype`` has.
    """
    if how not in _HOWS:
        raise ParameterError(
            f"how must be one of {', '.join(map(repr, _HOWS))} for a table on the right side, got {how!r}: a table "
            "cannot tell which of its rows have no partner; join with an Index of the keys"
        )
    if isinstance(elements, RowElements):
        raise ParameterError("a table on the right side takes one array or column of keys, got a tuple of columns")
    if how in ("semi", "anti"):
        return some_rows(elements, _plain(elements, table.contains(left)), how, dtype)
    if not isinstance(table, HashMap | MultiMap):
        raise ParameterError(f"a {type(table).__name__} has no rows: ask for how='semi' or 'anti'")
    _check_values(table.value_dtype, dtype)
    if isinstance(table, HashMap):
        found, rows = _found_in_map(left, elements, table, keeps_all=how == "left")
    else:
        found, rows = _found_in_multimap(left, elements, table, keeps_all=how == "left")
    return JoinIndices(elements.in_type(found, dtype), elements.in_type(rows, dtype))


def _check_values(held: np.dtype[Any], dtype: np.dtype[Any]) -> None:
    if held.kind not in "iu" or not np.can_cast(held, dtype):
        raise DtypeError(
            f"the values of a table on the right side are row numbers that {dtype} has, got {held}: give such values, "
            "or ask for how='semi' or 'anti'"
        )


def _found_in_map(left: Any, elements: Elements, table: HashMap[Any, Any], *, keeps_all: bool) -> tuple[Any, Any]:
    values, flags = (_plain(elements, part) for part in table.find(left))
    if not keeps_all:
        return elements.places_of(flags), values[flags]
    rows = elements.in_type(values, np.dtype(np.int64)) + 0
    rows[~flags] = -1
    return elements.ranks(len(elements)), rows


def _found_in_multimap(left: Any, elements: Elements, table: MultiMap[Any, Any], *, keeps_all: bool) -> tuple[Any, Any]:
    values, offsets = (_plain(elements, part) for part in table.find_all(left))
    total = len(values)
    found = elements.owners(offsets, total)
    if not keeps_all:
        return found, values
    is_alone = elements.in_type(offsets[1:] == offsets[:-1], np.dtype(np.int64))
    alone_before = is_alone.cumsum(0)
    places = elements.ranks(total) + alone_before[found]
    ends = offsets[1:] + alone_before
    whole = total + int(alone_before[-1]) if len(elements) else 0
    rows = elements.ranks(whole) * 0 - 1
    rows[places] = elements.in_type(values, np.dtype(np.int64))
    return elements.owners(elements.xp.concatenate((elements.ranks(1), ends)), whole), rows


def _plain(elements: Elements, answers: Any) -> npt.NDArray[Any]:
    """Answers of a table as an array that elements work with."""
    made: npt.NDArray[Any] = np.asarray(answers) if elements.xp is np else answers
    return made
