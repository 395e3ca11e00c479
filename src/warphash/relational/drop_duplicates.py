"""`drop_duplicates`: the rows of a frame, one of each key."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

from .composites import rows_at
from .factors import duplicated_rows
from .frames import frame_of, named

__all__ = ["drop_duplicates"]


def drop_duplicates(
    frame: Any,
    subset: Hashable | Sequence[Hashable] | None = None,
    *,
    keep: Literal["first", "last", False] = "first",
) -> Any:
    """Keep one of the rows of a frame that have equal keys.

    Parameters
    ----------
    frame
        As of `merge`.
    subset
        Names of the columns that are the key; None: all.
    keep
        The ``"first"`` row of each key, the ``"last"``, or (False) only rows whose key no other row has.

    Returns
    -------
    frame
        Of the same library, with its columns and types: the rows in their order, with their labels. Nulls equal each
        other, and so do NaN and NaT.

    Raises
    ------
    ParameterError
        If there is no such column, or more than one, or no such rule.
    DtypeError
        For an object that is no frame, and for columns of a type that cannot be compared.
    ShapeError
        For a mapping of arrays of several lengths, and for a key of several axes.
    MemoryError
        If there is no room.

    Notes
    -----
    O(n) for n rows.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> seen = {"user": np.array([7, 3, 7]), "page": np.array([1, 1, 2])}
    >>> warphash.drop_duplicates(seen, "user")
    {'user': array([7, 3]), 'page': array([1, 1])}
    """
    seen = frame_of(frame)
    elements = rows_at(seen, named(seen.names, seen.names if subset is None else subset, "subset"))
    return seen.taken(elements.places_of(~duplicated_rows(elements, keep)))
