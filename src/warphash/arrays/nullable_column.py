"""Keys of a fixed width with nulls among them: columns of pandas, Polars and pyarrow, and lists with None.

A table keeps such keys as it keeps strings: by an address and a length. So a null is a key beside all values of the
type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ShapeError
from .adapters.columns import column_of, name_items
from .adapters.numpy import NUMPY
from .adapters.read_column import read_column, see_items
from .arrow_values import Valid
from .cast import Fits
from .library import ArrayView, Library, dtype_of
from .plain_array import is_missing, listed_objects, python_value
from .row_names import Names, RowNames, names_of
from .row_type import Column
from .string_column import StringColumn
from .strings import NULL_LENGTH, ROW, StringArray, StringRows

__all__ = ["Keys", "NullableColumn", "as_column", "without_nulls"]


class Keys(NamedTuple):
    """The keys of a column in host memory.

    Attributes
    ----------
    values
        Rows of the type, zeros for nulls.
    valid
        Which keys are no nulls, bool[n]; None if all are.
    fits
        Which keys the type has; None if it has all.
    is_one
        It is a single key, and no batch.
    names
        Of the items of a key.
    """

    values: npt.NDArray[Any]
    valid: Valid
    fits: Fits = None
    is_one: bool = False
    names: Names | None = None


@dataclass(frozen=True)
class NullableColumn(StringColumn):
    """Keys of another column, or nulls.

    Attributes
    ----------
    items
        The column of the keys that are no nulls; always given.
    """

    items: Column | None = None

    @property
    def _items(self) -> Column:
        assert self.items is not None
        return self.items

    def own(self) -> Self:
        """As `Column.own`."""
        return replace(self, items=self._items.own())

    @property
    def names(self) -> RowNames:
        """Of the items of a key that is no null."""
        return self._items.names

    def names_given(self, seen: ArrayView) -> Names | None:
        """As `Column.names_given`."""
        names: Names | None = getattr(seen.owner, "names", None)
        return names

    def learn(self, seen: ArrayView, what: str) -> ArrayView:
        """As `Column.learn`."""
        given = self.names_given(seen)
        self.names.learn(given)
        return seen if given is None or self.names.order(given, what) is None else self.see(seen.owner.given)

    @property
    def numpy(self) -> np.dtype[Any]:
        """Type of a key that is no null."""
        return self._items.numpy

    @property
    def name(self) -> str:
        """The type, and the rule for nulls."""
        return f"{self._items.name}, nulls={self.nulls!r}"

    def see(self, given: Any) -> ArrayView:
        """See one key or a batch."""
        seen, fits = self.elements(given)
        if fits is not None:
            self._items.view(without_nulls(given)[0], "keys")  # which says what does not fit
        return seen

    def elements(self, given: Any) -> tuple[ArrayView, Fits]:
        """As `Column.elements`."""
        if isinstance(given, ArrayView | StringRows | StringArray) or dtype_of(given) == ROW:
            return super().see(given), None
        values, valid, fits, is_one, names = self.apart(given)
        rows = np.empty(len(values), ROW)
        rows["length"] = self._items.nbytes
        rows["address"] = np.arange(len(values), dtype=np.uint64) * np.uint64(self._items.nbytes)
        rows["address"] += np.uint64(values.ctypes.data)
        if valid is not None:
            rows["length"][~valid] = NULL_LENGTH
        held = rows.reshape(()) if is_one else rows
        made = StringRows(held, False, values, 0 if valid is None else int((~valid).sum()))
        made.names = names
        return self.of_rows(made, given), fits

    def apart(self, given: Any) -> Keys:
        """The keys of a column, or the one key that is given."""
        items = self._items
        if is_missing(python_value(given)):
            return Keys(np.zeros((1, *items.shape), items.dtype), np.zeros(1, np.bool_), is_one=True)
        kept, valid = without_nulls(given)
        if valid is not None and not valid.any():
            return Keys(np.zeros((len(valid), *items.shape), items.dtype), valid)
        seen, fits = items.elements(kept)
        is_one = valid is None and seen.shape == items.shape
        if len(seen.shape) > 1 + len(items.shape):
            raise ShapeError(
                f"keys must have shape {('n', *items.shape)} in a table with nulls={self.nulls!r}, got {seen.shape}: "
                "give them in one dimension"
            )
        seen, fits = items.rows(seen, fits)
        if seen.host is None:
            raise DtypeError(
                f"keys with nulls and columns of keys lie in host memory, got an array on {seen.device}: copy it there"
            )
        if valid is None:  # a copy, which no other thread writes to: kernels read a key more than once
            values = np.frombuffer(seen.host.tobytes(), seen.dtype).reshape(seen.shape)
            return Keys(values, None, fits, is_one, names_of(seen))
        values = np.zeros((len(valid), *items.shape), items.dtype)
        values[valid] = seen.host
        if fits is not None:
            kept_fits, fits = fits, np.ones(len(valid), np.bool_)
            fits[valid] = kept_fits
        return Keys(values, valid, fits, names=names_of(seen))

    def view_one(self, key: Any, mend: str) -> ArrayView | None:
        """See one key; None for what the type does not hold."""
        if isinstance(key, StringRows):
            return super().view_one(key, mend)
        if is_missing(python_value(key)):
            return super().view_one(None, mend)
        return Column.view_one(self, key, mend)

    def shown(self, row: Any) -> str:
        """One key, for a message."""
        return str(self.named(np.array([row], ROW))[0])

    def named(self, rows: npt.NDArray[Any]) -> Any:
        """Keys for an error, as a NumPy array of objects."""
        held = super().named(rows)
        made = np.empty(len(held), object)
        made[:] = [None if item is None else self._values(np.frombuffer(item, np.uint8))[0] for item in held]
        return made

    def _values(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        return data.view(self._items.dtype).reshape(-1, *self._items.shape)

    def exported(self, rows: Any, library: Library | None = None) -> Any:
        """Keys, a `StringArray`, as a column of a library; of NumPy, an array of objects if one is null."""
        values = self._values(rows.data)
        if rows.valid is not None:
            values = np.zeros((len(rows), *self._items.shape), self._items.dtype)
            values[rows.valid] = self._values(rows.data)
        made = as_column(values, rows.valid, NUMPY if library is None else library)
        return made if (known := self.names.known) is None else name_items(made, known)


def without_nulls(given: Any) -> tuple[Any, Valid]:
    """A column without its nulls, and which of its values are no nulls, bool[n]; None if all are."""
    if isinstance(given, np.ndarray) and (objects := listed_objects(given)) is not None:
        given = objects
    if isinstance(given, list | tuple) and not isinstance(given, ArrayView):
        valid = np.array([not is_missing(python_value(item)) for item in given], np.bool_)
        return (
            (given, None) if valid.all() else ([item for item, held in zip(given, valid, strict=True) if held], valid)
        )
    items = None if isinstance(given, np.ndarray | ArrayView) else read_column(given)
    if items is None:
        return given, None
    kept = items if items.valid is None else items._replace(array=items.array[items.valid])
    return see_items(given, kept), items.valid


def as_column(values: npt.NDArray[Any], valid: Valid, library: Library) -> Any:
    """Values and nulls as a column of a library."""
    if library.kind in ("pyarrow", "polars", "pandas"):
        if valid is None and values.dtype.kind in "Mm" and np.isnat(values).any():
            valid = np.ones(len(values), np.bool_)  # NaT is no null here, as it is where a column has no nulls
        return column_of(library.kind, values, valid)
    if valid is None:
        return values
    items = np.empty(len(values), object)
    items[:] = [item if is_value else None for item, is_value in zip(values, valid, strict=True)]
    return items
