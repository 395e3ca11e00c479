"""What tables of keys with values share."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import array_view as arrays
from ..arrays.row_type import Column, read_only
from .list_verbs import ListVerbs

__all__ = ["ItemsView", "PairTable"]


class PairTable(ListVerbs):
    """Keys, each with one value or more."""

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """Type of a value; of a row of values, with its shape."""
        return self._values.numpy

    @property
    def _values(self) -> Column:
        assert self._value is not None
        return self._value

    def values(self) -> npt.NDArray[Any]:
        """All values, in the order of `keys` if nothing changed between."""
        return self.to_arrays()[1]

    def items(self) -> ItemsView:
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
        return ItemsView(self)

    def to_arrays(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """All keys and their values, as two NumPy arrays of one length; what ``from_arrays`` takes."""
        keys, values = self._items()
        assert values is not None
        return keys, values

    def _find(self, keys: Any, default: Any) -> tuple[Any, Any]:
        view, column = self._view_keys(keys), self._values
        rows = view.shape[:1]
        values = arrays.empty_like_kind(view, rows + column.shape, column.dtype, self._engine)
        found = arrays.empty_like_kind(view, rows, np.bool_, self._engine)
        absent = column.default(default)
        self._reading(lambda: self._look_up_locked(view, values, found, absent))
        return values.export(), found.export()


class ItemsView(Collection[tuple[Any, Any]]):
    """The pairs of a table, each a tuple of two NumPy scalars, or of arrays where keys or values are rows.

    Parameters
    ----------
    table
        Whose pairs. Its later changes are seen by the length, and by every iteration that begins after them.
    """

    def __init__(self, table: PairTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        keys, values = self._table.to_arrays()
        return zip(read_only(keys), values, strict=True)

    def __contains__(self, pair: object) -> bool:
        """Whether a pair is there. Reads the whole table: `find` of its key is faster."""
        if not (isinstance(pair, tuple) and len(pair) == 2):
            return False
        return any(all(map(np.array_equal, pair, held)) for held in self)

    def __repr__(self) -> str:
        return f"<items of {self._table!r}>"
