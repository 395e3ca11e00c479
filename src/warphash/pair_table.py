"""What tables of keys with values share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import arrays
from .columns import Column
from .list_verbs import ListVerbs

__all__ = ["PairTable"]


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
        return self.items()[1]

    def items(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """All keys and their values, as two NumPy arrays."""
        keys, values = self._items()
        assert values is not None
        return keys, values

    def _find(self, keys: Any, default: Any) -> tuple[Any, Any]:
        view, column = self._view_keys(keys), self._values
        rows = view.shape[:1]
        values = arrays.empty_like_kind(view, rows + column.shape, column.dtype, self._engine)
        found = arrays.empty_like_kind(view, rows, np.bool_, self._engine)
        absent = column.default(default)
        with self._lock.reading:
            self._look_up_locked(view, values, found, absent)
        return values.export(), found.export()
