"""What a row of keys or of values is: a NumPy type and a shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from . import arrays
from .errors import DtypeError, ShapeError

__all__ = ["Column"]

MAX_KEY_BYTES = 128


@dataclass(frozen=True)
class Column:
    """One fixed-width row: ``shape`` items of ``dtype``; ``()`` for plain numbers."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @cached_property
    def nbytes(self) -> int:
        """Bytes of a row."""
        return self.dtype.itemsize * math.prod(self.shape)

    @classmethod
    def of_keys(cls, dtype: npt.DTypeLike) -> Column:
        """Check a key type.

        Raises
        ------
        DtypeError
            For floats, objects, variable widths and more than 128 bytes.
        """
        column = cls._of(dtype, "key")
        if has_padding(column.dtype):
            raise DtypeError(
                f"keys are compared by their bytes, and {column.dtype} has padding between its fields: "
                "make it packed, with align=False"
            )
        if column.dtype.kind in "fc":
            unsigned = f"uint{8 * column.dtype.itemsize}"
            raise DtypeError(
                f"keys must have exact equality, so not {column.dtype}: 0.0 == -0.0 and NaN != NaN. "
                f'View their bits as integers: keys.view("{unsigned}")'
            )
        if column.nbytes > MAX_KEY_BYTES:
            raise DtypeError(
                f"a key has at most {MAX_KEY_BYTES} bytes, and {dtype!r} has {column.nbytes}: hash it first"
            )
        return column

    @classmethod
    def of_values(cls, dtype: npt.DTypeLike) -> Column:
        """Check a value type: any of fixed width."""
        return cls._of(dtype, "value")

    @classmethod
    def _of(cls, dtype: npt.DTypeLike, what: str) -> Column:
        if dtype is None:
            raise DtypeError(f"a {what} type is needed, got None")
        try:
            full = np.dtype(dtype)
        except (TypeError, ValueError, SyntaxError) as error:  # NumPy parses some names as Python
            raise DtypeError(f"{dtype!r} is no {what} type: {error}") from None
        base, shape = full.subdtype or (full, ())
        if base.hasobject or base.kind == "O":
            raise DtypeError(
                f"a {what} needs a fixed width, and {full} holds Python objects: encode them as numbers first"
            )
        if base.itemsize == 0 or 0 in shape:
            raise DtypeError(f"a {what} needs at least one byte, and {full} has none; for a set, use HashSet")
        return cls(base.newbyteorder("="), tuple(shape))

    @classmethod
    def of_array(cls, view: arrays.ArrayView, what: str) -> Column:
        """The rows of an array of ``n`` or ``n x d`` items."""
        if len(view.shape) == 0:
            raise ShapeError(f"{what} must have one row per element, got a single number: give [x]")
        make = cls.of_keys if what == "keys" else cls.of_values
        return make(np.dtype((view.dtype, view.shape[1:])) if view.shape[1:] else view.dtype)

    def view(self, array: Any, what: str) -> arrays.ArrayView:
        """See an array of rows of this column.

        Raises
        ------
        DtypeError, ShapeError
            If it is another kind of row.
        """
        view = arrays.view(array, self.dtype)
        if view.dtype != self.dtype:
            raise DtypeError(
                f"{what} must be {self.dtype}, as the table was made, got {view.dtype}: "
                f"convert them, with .astype({str(self.dtype)!r}) for instance"
            )
        if view.shape == self.shape:
            view = arrays.view(view.owner.reshape((1, *self.shape)), self.dtype)
        if view.shape[1:] != self.shape:
            rows = "(n,)" if not self.shape else f"(n, {', '.join(map(str, self.shape))})"
            raise ShapeError(f"{what} must have shape {rows}, got {view.shape}")
        return view

    def default(self, value: Any) -> bytes:
        """The bytes of one row that a caller gave as a default."""
        if isinstance(value, int) and value == 0:
            return bytes(self.nbytes)
        try:
            row = np.empty(self.shape, self.dtype)
            row[...] = value
            if self.dtype.kind in "biu" and np.any(row != value):
                raise ValueError("it would be cut")
        except (TypeError, ValueError, OverflowError) as error:
            raise DtypeError(f"the default {value!r} is no {self.dtype}: {error}") from None
        return row.tobytes()

    @property
    def numpy(self) -> np.dtype[Any]:
        """As one NumPy type, with the shape in it."""
        return np.dtype((self.dtype, self.shape)) if self.shape else self.dtype


def has_padding(dtype: np.dtype[Any]) -> bool:
    """Whether a structured type has bytes that belong to none of its fields."""
    if dtype.subdtype:
        return has_padding(dtype.subdtype[0])
    if dtype.fields is None:
        return False
    parts = [field[0] for field in dtype.fields.values()]
    return sum(part.itemsize for part in parts) != dtype.itemsize or any(map(has_padding, parts))
