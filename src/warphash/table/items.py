"""Tables of keys with values: the verbs that read all values, and the view of all pairs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any, Generic, Never, overload

import numpy as np
import numpy.typing as npt

from ..arrays.cast import Fits
from ..arrays.exact import item_at
from ..arrays.library import ArrayView
from ..arrays.row_type import Column, read_only
from ..arrays.view import view, view_array
from .array_types import A, K, Like, V
from .base import BaseTable

__all__ = ["ItemsView", "PairTable"]


class PairTable(BaseTable[K], Generic[K, V]):
    """Keys, each with one value or more."""

    __slots__ = ()

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """Type of a value; of a row of values, with its shape."""
        return self._values.numpy

    @property
    def _values(self) -> Column:
        assert self._value is not None
        return self._value

    @overload
    def values(self: PairTable[Any, Never], *, like: None = None) -> Any: ...

    @overload
    def values(self, *, like: Like = None) -> npt.NDArray[V]: ...

    @overload
    def values(self, *, like: A) -> A: ...

    @overload
    def values(self, *, like: str) -> Any: ...

    def values(self, *, like: Any = None) -> Any:
        """All values, in the order of `keys` if nothing changed between. ``like`` is as for `keys`."""
        self._need("values")
        return self._read_all(like, self._values)[0]

    def items(self) -> ItemsView[K, V]:
        """All pairs, as those of a dict: a view with a length, whose every iteration is a snapshot of the table.

        ``dict(m.items())`` needs keys that Python can hash, so neither rows of numbers nor ``V`` bytes. For work on
        whole arrays, `to_arrays` is many times as fast.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7]), np.array([0.5]), device="cpu")
        >>> dict(m.items())
        {np.int64(7): np.float64(0.5)}
        """
        self._need("items")
        return ItemsView(self)

    @overload
    def to_arrays(self: PairTable[Never, Never], *, like: None = None) -> tuple[Any, Any]: ...

    @overload
    def to_arrays(self, *, like: Like = None) -> tuple[npt.NDArray[K], npt.NDArray[V]]: ...

    @overload
    def to_arrays(self, *, like: A) -> tuple[A, A]: ...

    @overload
    def to_arrays(self, *, like: str) -> tuple[Any, Any]: ...

    def to_arrays(self, *, like: Any = None) -> tuple[Any, Any]:
        """All keys and their values, as two arrays of one length; what ``from_arrays`` takes.

        ``like`` is as for `keys`: it says of which library both arrays are, and where.
        """
        self._need("to_arrays")
        keys, values = self._read_all(like, self._key, self._values)
        return keys, values

    def _raise_missing(self, keys: ArrayView, found: ArrayView, fits: Fits = None, given: Any = None) -> None:
        """Raise `KeyError` unless all keys are there: naming the first that is not, and counting the others.

        Parameters
        ----------
        fits, given
            Which keys the key type represents; and what the caller gave, if there are others.
        """
        there = self._transfer.on_host(found)
        if not there.all():
            missing = np.flatnonzero(~there)
            first = self._shown(keys, fits, given, int(missing[0]))
            others = f", and {len(missing) - 1:,} more keys that are not there" if len(missing) > 1 else ""
            raise KeyError(f"{first}{others}")

    def _shown(self, keys: ArrayView, fits: Fits, given: Any, number: int) -> str:
        """One key of a batch, in a message."""
        if fits is None or fits[number]:
            return self._key.shown(self._transfer.on_host(keys)[number])
        row, array = self._key.shape, view_array(given)
        if array is not None:
            return str(self._transfer.on_host(array).reshape(-1, *row)[number])
        return str(item_at(given, number, math.prod(row), self._key.dtype))

    def _values_of(self, key: Any) -> npt.NDArray[Any]:
        """The values of one key, in host memory."""
        seen = self._view_one(key)
        if seen is None:
            return np.empty(0, self._values.dtype)
        values, found = (self._transfer.on_host(view(made)) for made in self._look_up(seen, self._values, 0))
        held: npt.NDArray[Any] = values[found]
        return held


class ItemsView(Collection[tuple[K, V]]):
    """The pairs of a table, each a tuple of two NumPy scalars, or of arrays where keys or values are rows.

    Parameters
    ----------
    table
        Whose pairs. Its later changes are seen by the length, and by every iteration that begins after them.
    """

    def __init__(self, table: PairTable[K, V]) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[tuple[K, V]]:
        keys, values = self._table.to_arrays(like="numpy")
        return zip(read_only(keys), values, strict=True)

    def __contains__(self, pair: object) -> bool:
        """Whether a pair is there. Looks its key up."""
        if not (isinstance(pair, tuple) and len(pair) == 2):
            return False
        return any(np.array_equal(pair[1], value) for value in self._table._values_of(pair[0]))

    def __repr__(self) -> str:
        return f"<items of {self._table!r}>"
