"""Keys whose rows are found again: what `join` and `Index` are made of.

Distinct keys have codes. A lookup gives a code for each row that is joined, or -1. The rows of each key lie together,
in ascending order, and offsets say where those of a code begin. So pairs of rows are counted before any is written.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import DeviceError, ParameterError
from .elements import Elements, KeptElements
from .items import Missing
from .known import Known, known_if_unique, known_of
from .numbered import Asked, Indices, narrowest_index_type
from .pairs import check_room

__all__ = ["HOWS", "How", "JoinIndices", "KeyRows", "Order", "checked_how", "exported", "some_rows"]

How = Literal["inner", "left", "right", "outer", "semi", "anti"]
Order = Literal["left", "any"]

_ORDER_BYTES = 16
"""Of a pair, to sort it: its place in the order, its row as a word, and as a digit of the sort."""

HOWS = ("inner", "left", "right", "outer", "semi", "anti")


class JoinIndices(NamedTuple):
    """The pairs of a join: a row of the left side, and a row of the right side.

    Attributes
    ----------
    left
        Row of the left side; -1 if the right row has no partner.
    right
        Row of the right side; -1 if the left row has no partner. None for ``"semi"`` and ``"anti"``.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> pairs = warphash.join(np.array([10, 20]), np.array([20, 20]))
    >>> pairs.left, pairs.right
    (array([1, 1]), array([0, 1]))
    """

    left: Any
    right: Any


class KeyRows:
    """The rows of each of some keys.

    Parameters
    ----------
    keys
        The keys. They may repeat.
    nan, null
        As of `known.known_of`: ``"dropped"`` keys are found by nothing, and keep their rows.
    known
        As `known.known_if_unique` makes it of the keys; None: not known.

    Raises
    ------
    DtypeError, MemoryError
        As `known.KnownItems`.
    """

    def __init__(
        self, keys: KeptElements, *, nan: Missing = "one", null: Missing = "one", known: Known | None = None
    ) -> None:
        self._keys, self._lists, self._code_of_row = keys, None, None
        dtype = narrowest_index_type(len(keys))  # narrow codes make smaller and faster tables
        known = known or known_if_unique(keys, nan=nan, null=null, dtype=dtype)
        self._distinct = len(keys)
        if known is None:
            numbers = keys.number(Asked(codes=True, counts=True, dtype=dtype))
            known, self._distinct = known_of(keys, numbers.firsts, nan=nan, null=null, dtype=dtype), len(numbers.firsts)
            if self._distinct < len(keys):
                self._code_of_row = numbers.code_of_each
                self._lists = keys.row_lists(numbers)
        self._known = known

    @classmethod
    def if_unique(cls, keys: KeptElements, *, nan: Missing = "one", null: Missing = "one") -> KeyRows | None:
        """The rows of some keys, if none repeats; None if some do, or if that is not known. Raises as the class.

        That takes less memory than keys that repeat: these have numbers and lists of rows.
        """
        known = known_if_unique(keys, nan=nan, null=null, dtype=narrowest_index_type(len(keys)))
        return None if known is None else cls(keys, nan=nan, null=null, known=known)

    @property
    def is_unique(self) -> bool:
        """Whether no key repeats that is found. The code of a key is its row then."""
        return self._lists is None

    def codes_of(self, elements: Elements) -> Any:
        """The code of each element's key; -1 for a key that is not there. Raises as `known.Known.codes_of`."""
        return self._known.codes_of(elements)

    def contains(self, elements: Elements) -> Any:
        """Which elements are among the keys, bool[n]. Raises as `codes_of`."""
        return self._known.contains(elements)

    def counts_of(self, codes: Indices) -> Indices:
        """How many rows each of some codes has; none for -1. In host memory."""
        if self._lists is None:
            return (codes >= 0).astype(np.int64)
        counts = np.diff(self._lists.offsets[: self._distinct + 1].astype(np.int64))
        return np.append(counts, 0)[codes]  # that of -1 is the last one

    def partners(self, elements: Elements, codes: Indices, dtype: np.dtype[Any], *, keeps_all: bool) -> JoinIndices:
        """Pair each element with all rows of its key, by elements and then by rows.

        Parameters
        ----------
        codes
            Of the elements.
        dtype
            Of the rows.
        keeps_all
            An element without a partner has a pair, too, with -1.

        Raises
        ------
        DeviceError
            If keys and elements are of two libraries on a GPU.
        MemoryError
            If there is no room for the pairs.
        """
        self._check_library(elements)
        return JoinIndices(*elements.pairs(codes, self._lists, dtype, keeps_all=keeps_all))

    def joined(self, elements: Elements, how: How, order: Order, dtype: np.dtype[Any]) -> JoinIndices:
        """Join some elements, as the left side, with the keys. Arguments are those of `join`.

        Returns
        -------
        rows
            Arrays of the module of the elements: `exported` makes answers of them.
        """
        if how in ("semi", "anti"):
            return some_rows(elements, self.contains(elements), how, dtype)
        if how == "inner":
            places, codes = self._known.some_codes_of(elements)
            left, right = self.partners(elements, codes, dtype, keeps_all=False)
            return JoinIndices(left if places is None else elements.in_type(places[left], dtype), right)
        codes = self.codes_of(elements)
        left, right = self.partners(elements, codes, dtype, keeps_all=how in ("left", "outer"))
        if how in ("right", "outer"):
            alone = elements.in_type(self._unfound(elements, codes), dtype)
            _check_step(elements, len(left) + len(alone), 2 * dtype.itemsize)
            left = elements.xp.concatenate((left, alone * 0 - 1))
            right = elements.xp.concatenate((right, alone))
        if how == "right" and order == "left":
            _check_step(elements, len(right), 2 * dtype.itemsize + _ORDER_BYTES)
            by_right = elements.argsort(right)
            left, right = left[by_right], right[by_right]
        return JoinIndices(left, right)

    def _unfound(self, elements: Elements, codes: Indices) -> Any:
        """Rows whose key none of the elements has, ascending, in the library of the elements."""
        self._check_library(elements)
        alone = ~elements.seen(codes, self._distinct)
        return elements.places_of(alone if self._code_of_row is None else alone[self._code_of_row])

    def _check_library(self, elements: Elements) -> None:
        if self._lists is not None and elements.xp is not self._keys.xp:
            names = " and ".join(each.xp.__name__ for each in (self._keys, elements))
            raise DeviceError(
                f"expected keys of one library, got some of {names}: convert them, as by torch.from_dlpack(q)"
            )


def _check_step(elements: Elements, pairs: int, pair_bytes: int) -> None:
    """As `pairs.check_room`, if the elements are in host memory. A GPU refuses what it has no memory for."""
    if elements.xp is np:
        check_room(pairs, pair_bytes)


def some_rows(elements: Elements, found: Any, how: How, dtype: np.dtype[Any]) -> JoinIndices:
    """The rows of ``"semi"`` or ``"anti"`` by flags of the elements that have a partner, as of `KeyRows.joined`."""
    rows = elements.places_of(found if how == "semi" else ~found)
    return JoinIndices(elements.in_type(rows, dtype), None)


def exported(elements: Elements, rows: JoinIndices) -> JoinIndices:
    """Rows in the library of the elements."""
    return JoinIndices(elements.apart(rows.left), None if rows.right is None else elements.apart(rows.right))


def checked_how(how: How, order: Order) -> None:
    """Raise `ParameterError` unless there is such a join, and such an order."""
    if how not in HOWS:
        raise ParameterError(f"how must be one of {', '.join(map(repr, HOWS))}, got {how!r}")
    if order not in ("left", "any"):
        raise ParameterError(f"order must be 'left' or 'any', got {order!r}")
