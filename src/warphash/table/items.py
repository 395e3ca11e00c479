"""Tables of keys with values: the verbs that read all values, and the view of all pairs."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator
from typing import Any, Generic, Never, overload

import numpy as np
import numpy.typing as npt

from ..arrays.row_type import Column
from ..arrays.view import view
from .array_types import A, K, Like, V
from .base import BaseTable

__all__ = ["ItemsView", "PairTable"]


class PairTable(BaseTable[K], Generic[K, V]):
    """Keys, each with one value or more."""

    __slots__ = ()

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """Type of a value; of a row of values, with its shape. Of strings of any length, ``dtype("str")``."""
        return self._values.numpy

    @property
    def _values(self) -> Column:
        value = self._parts.front.value
        assert value is not None
        return value

    @overload
    def values(self: PairTable[Any, Never], *, like: None = None) -> Any: ...

    @overload
    def values(self, *, like: Like = None) -> npt.NDArray[V]: ...

    @overload
    def values(self, *, like: A) -> A: ...

    @overload
    def values(self, *, like: str) -> Any: ...

    def values(self, *, like: Any = None) -> Any:
        """All values, in the order of `keys` if nothing changed between.

        Parameters
        ----------
        like
            As for `keys`.

        Returns
        -------
        values[len(table)]
            An array, with the shape of a row behind its length where values are rows.

        Raises
        ------
        DtypeError, DeviceError, ParameterError
            As `keys`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> sorted(m.values().tolist())
        [1, 2]
        """
        self._need("values")
        return self._parts.scans.read(like, self._values)[0]

    def items(self) -> ItemsView[K, V]:
        """All pairs, as those of a dict: a view with a length, whose every iteration is a snapshot of the table.

        ``dict(m.items())`` needs keys that Python can hash, so neither rows of numbers nor ``V`` bytes. For work on
        whole arrays, `to_arrays` is many times as fast.

        Returns
        -------
        ItemsView
            It has a length, iterates over tuples, and answers ``pair in view``.

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

        Parameters
        ----------
        like
            As for `keys`: it says of which library both arrays are, and where.

        Returns
        -------
        keys, values
            Arrays of length ``len(table)``.

        Raises
        ------
        DtypeError, DeviceError, ParameterError
            As `keys`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> keys, values = m.to_arrays()
        >>> dict(zip(keys.tolist(), values.tolist())) == {7: 1, 8: 2}
        True
        """
        self._need("to_arrays")
        parts = self._parts
        keys, values = parts.scans.read(like, *parts.front.stored)
        return keys, values

    def _values_of(self, key: Any) -> npt.NDArray[Any]:
        """The values of one key, in host memory."""
        front, column = self._parts.front, self._values
        seen = front.one_key(key)
        if seen is None:
            return np.empty(0, column.dtype)
        made = self._parts.lookups.look_up("find", seen, column, 0)
        found = front.on_host(view(made[1]))
        held: npt.NDArray[Any] = (made[0] if column.has_any_length else front.on_host(view(made[0])))[found]
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
        return zip(self._table._parts.front.key.one_by_one(keys), values, strict=True)

    def __contains__(self, pair: object) -> bool:
        """Whether a pair is there. Looks its key up."""
        if not (isinstance(pair, tuple) and len(pair) == 2):
            return False
        # NumPy's own types of strings, which its functions make of a single one, drop zeros at the end.
        is_equal = operator.eq if self._table._values.has_any_length else np.array_equal
        return any(is_equal(pair[1], value) for value in self._table._values_of(pair[0]))

    def __repr__(self) -> str:
        return f"<items of {self._table!r}>"
