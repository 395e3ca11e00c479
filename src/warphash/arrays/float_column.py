"""Floating-point keys, by an explicit rule for the values whose equality is not that of their bits.

``"bits"``: keys are equal if their bits are. -0.0 is not 0.0, and each NaN is the key of its bits. ``"value"``: keys
are equal if NumPy's ``unique`` takes them for equal. -0.0 is 0.0, and NaN is one key, whatever its bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DtypeError, ParameterError
from .adapters.numpy import address_of
from .cast import Fits
from .library import ArrayView
from .row_type import Column

__all__ = ["FLOATS", "FloatColumn"]

FLOATS = ("bits", "value")
"""When floating-point keys are equal."""


@dataclass(frozen=True)
class FloatColumn(Column):
    """Keys of float16, float32 or float64, or rows of them.

    Attributes
    ----------
    rule
        One of `FLOATS`.
    """

    rule: str = "bits"

    @classmethod
    def of(cls, dtype: Any, rule: str) -> FloatColumn:
        """Check a key type.

        Raises
        ------
        DtypeError
            If it is none of these types.
        ParameterError
            If there is no such rule.
        """
        if rule not in FLOATS:
            raise ParameterError(f"floats must be one of {FLOATS}, got {rule!r}")
        column = Column.of_values(dtype)
        if column.dtype.kind != "f" or column.dtype.itemsize > 8:
            raise DtypeError(
                f"floats={rule!r} is for keys of float16, float32 or float64, got {column.name}: leave floats out"
            )
        Column.of_keys(np.dtype((f"V{column.dtype.itemsize}", column.shape)))  # of a width that keys may have
        return cls(column.dtype, column.shape, rule)

    @property
    def name(self) -> str:
        """The type and the rule."""
        return f"{self.numpy}, floats={self.rule!r}"

    def view(self, array: Any, what: str) -> ArrayView:
        """As `Column.view`; by the rule ``"value"``, a copy in which equal keys have equal bits.

        Raises
        ------
        DtypeError
            By the rule ``"value"``, for arrays in GPU memory, too.
        """
        return self._normal(super().view(array, what), what)

    def fitting(self, array: Any) -> tuple[ArrayView, Fits]:
        """As `Column.fitting`, with a copy as that of `view`."""
        seen, fits = super().fitting(array)
        return self._normal(seen, "keys"), fits

    def rows(self, seen: ArrayView, fits: Fits, what: str = "keys") -> tuple[ArrayView, Fits]:
        """As `Column.rows`, with a copy as that of `view`."""
        rows, fits = super().rows(seen, fits, what)
        return self._normal(rows, what), fits

    def _normal(self, seen: ArrayView, what: str) -> ArrayView:
        """By the rule ``"value"``, a copy in which equal keys have equal bits."""
        if self.rule == "bits" or seen.library.kind == "engine":
            return seen
        if seen.host is None:
            raise DtypeError(
                f"floats='value' takes {what} in host memory, got an array on {seen.device}: make the table with "
                "floats='bits', and give x + 0.0 with one NaN for all"
            )
        made = seen.host + seen.host.dtype.type(0)
        made[made != made] = np.nan
        return seen._replace(ptr=address_of(made), host=made, capsule=made)
