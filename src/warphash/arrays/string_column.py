"""The type ``str`` or ``bytes`` of keys or values: a `Column` whose rows say where strings are.

Such a row is valid while the strings are where they are: those of a caller during a call, those of a table while its
lock is held. What leaves a table is therefore copied into a `StringArray` first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ParameterError, ShapeError
from .adapters.columns import ColumnLibrary, column_library, plain_library
from .adapters.numpy import NUMPY, NumpyLibrary
from .arrow import ArrowData, speaks_arrow
from .batch import ShapedLibrary
from .cast import Fits
from .library import Allocator, ArrayView, Dtype, Library, Shape, dtype_of
from .plain_array import gives_array, python_value
from .row_type import Column
from .strings import NULL_LENGTH, ROW, StringArray, StringRows, is_null, is_string, rows_of
from .view import view

__all__ = ["StringColumn", "StringLibrary", "has_columns_of_strings", "is_one_item", "library_of_strings"]


class StringLibrary(NumpyLibrary):
    """A library with columns of strings.

    Parameters
    ----------
    kind
        Name of its module.
    answers
        The adapter for columns of numbers that go with the strings; by default, for columns without labels.
    """

    def __init__(self, kind: str, answers: Library | None = None) -> None:
        self.kind, self._answers = kind, answers or plain_library(kind)

    @property
    def of_rows(self) -> Library:
        """The adapter for columns without labels."""
        return _LIBRARIES[self.kind]

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new array, of which `export` makes a column; of NumPy's for rows that say where strings are."""
        answers = NUMPY if dtype == ROW else self._answers
        return answers.empty(like, shape, dtype, allocator)._replace(library=self)

    def export(self, made: ArrayView) -> Any:
        """Numbers as a column of the library."""
        return self._answers.export(made)

    def strings(self, made: StringArray) -> Any:
        """Strings as a column of the library."""
        if isinstance(self._answers, ColumnLibrary):
            return self._answers.strings(made)
        return made if self.kind == "warphash" else np.asarray(made)


_LIBRARIES: dict[str, Library] = {
    name: StringLibrary(name) for name in ("numpy", "pandas", "polars", "pyarrow", "warphash")
}


def library_of_strings(like: Any) -> Library:
    """The library of a column of strings, or the one of a name.

    Raises
    ------
    ParameterError
        If the library has no strings that we know, or is not installed.
    """
    name = _name_of(like)
    if name not in _LIBRARIES:
        raise ParameterError(f"strings come back as columns of {', '.join(sorted(_LIBRARIES))}, got like={like!r:.60}")
    try:
        import_module(name)
    except ImportError as error:
        raise ParameterError(f"like={name!r} cannot be met, as {name} cannot be imported ({error})") from None
    return _LIBRARIES[name]


def has_columns_of_strings(like: Any) -> bool:
    """Whether `library_of_strings` knows the library of a column, or of a name, and its columns are no arrays."""
    return _name_of(like) in _LIBRARIES.keys() - {"numpy"}


def _name_of(like: Any) -> str:
    name = like if isinstance(like, str) else type(like).__module__.partition(".")[0]
    return "numpy" if name == "builtins" else name


@dataclass(frozen=True)
class StringColumn(Column):
    """Keys or values of any length: strings, or bytes.

    Attributes
    ----------
    text
        The rows are strings, in UTF-8.
    nulls
        What becomes of nulls: ``"raise"``, ``"drop"`` or ``"key"``. Values have no other rule than ``"raise"``.
    what
        What the rows are, in a message: ``"keys"`` or ``"values"``.
    """

    text: bool = True
    nulls: str = "raise"
    what: str = "keys"

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's type of strings, or bytes, of no width: ``dtype("str")``, or ``dtype("bytes")``."""
        return np.dtype("U" if self.text else "S")

    @property
    def name(self) -> str:
        """``"str"`` or ``"bytes"``, with the rule for nulls if they are not refused."""
        kind = "str" if self.text else "bytes"
        return kind if self.nulls == "raise" else f"{kind}, nulls={self.nulls!r}"

    @property
    def has_any_length(self) -> bool:
        """True."""
        return True

    def see(self, given: Any) -> ArrayView:
        """See one string, or a batch."""
        if isinstance(given, ArrayView):
            return given
        if isinstance(given, np.ndarray) and given.dtype == ROW:
            return view(given)
        return self._checked(rows_of(given, self.text, self.what), given)

    def _checked(self, rows: StringRows, given: Any) -> ArrayView:
        """A view of rows, if the rule for nulls takes them."""
        if rows.nulls and self.nulls == "raise":
            rule = ", or make the table with nulls='drop' or nulls='key'" if self.what == "keys" else ""
            raise DtypeError(
                f"expected {self.what} that are {'strings' if self.text else 'bytes'}, got {rows.nulls:,} nulls among "
                f"them: drop or fill the nulls first{rule}"
            )
        return self.of_rows(rows, given)

    @staticmethod
    def of_rows(rows: StringRows, given: Any) -> ArrayView:
        """A view of rows that were made of an array, whose library gives the answers."""
        if given is rows:  # seen before
            given = rows.given
        rows.given = given
        host, answers, kind = rows.rows, None, "numpy"  # one string is answered with NumPy's items
        if host.shape:
            answers = column_library(given)
            kind = "numpy" if isinstance(given, ArrowData) else type(given).__module__.partition(".")[0]
        library = _LIBRARIES.get(kind, _LIBRARIES["numpy"])
        if answers is not None and isinstance(library, StringLibrary):
            library = StringLibrary(library.kind, answers)
        return ArrayView(host.ctypes.data, host.shape, ROW, "cpu", None, rows, host, library)

    def fitting(self, array: Any) -> tuple[ArrayView, Fits]:
        """See strings to look up, and which items of a list are strings of this kind; None if all are."""
        return self.rows(*self.elements(array))

    def elements(self, given: Any) -> tuple[ArrayView, Fits]:
        """As `fitting`, in the shape of what is given."""
        try:
            return self.see(given), None
        except DtypeError:
            is_one = is_one_item(given)
            has_objects = getattr(dtype_of(given), "kind", "") == "O"
            items = [given] if is_one else given.tolist() if has_objects else given
            if not isinstance(items, list | tuple) or not all(map(is_one_item, items)):
                raise
            fits = np.array([is_string(item, self.text) or (is_null(item) and not is_one) for item in items], np.bool_)
            if fits.all():
                raise
        empty: Any = "" if self.text else b""
        rows = rows_of([item if fit else empty for item, fit in zip(items, fits, strict=True)], self.text)
        if is_one:
            rows.rows, fits = rows.rows.reshape(()), fits.reshape(())
        return self._checked(rows, given), fits

    def rows(self, seen: ArrayView, fits: Fits, what: str = "keys") -> tuple[ArrayView, Fits]:
        """One string as a batch of one."""
        return self.view(seen, what), None if fits is None else fits.reshape(-1)

    def view(self, array: Any, what: str) -> ArrayView:
        """See a batch of strings; one string is a batch of one. An array of values has any number of axes."""
        if self.what == "values" and isinstance(array, np.ndarray) and array.ndim > 1:
            seen = self.see(array.reshape(-1))
            return seen._replace(library=ShapedLibrary(seen.library, array.shape))
        seen = self.see(array)
        if seen.dtype != ROW:
            raise DtypeError(f"{what} must be {self.name}, as the table was made, got {seen.dtype}: give strings")
        if seen.host is None or seen.shape:
            return seen
        return seen._replace(shape=(1,), host=seen.host.reshape(1), owner=_reshaped(seen.owner))

    def view_one(self, key: Any, mend: str) -> ArrayView | None:
        """See one key; None for what is no string of this kind."""
        key = python_value(key)
        if isinstance(key, list) or (isinstance(key, np.ndarray) and key.ndim):
            raise ShapeError(f"expected one key, got {len(key):,}: {mend}")
        if is_null(key):
            return self.view(key, "key") if self.nulls == "key" else None
        return self.view(key, "key") if isinstance(key, StringRows) or is_string(key, self.text) else None

    def default(self, value: Any) -> bytes:
        """As `Column.default`: a row that leads to the string, which the row keeps alive. 0 stands for no character."""
        if isinstance(value, int) and value == 0:
            return self._zeros
        try:
            seen = self.view(value, "the default")
        except DtypeError as error:
            raise DtypeError(f"the default is no {self.name}: {error}") from None
        if seen.host is None or seen.rows != 1:
            raise ShapeError(f"the default is a single {self.name}, got {seen.rows:,}: give one for all absent keys")
        row = _LentRow(seen.host.tobytes())
        row.owner = seen.owner
        return row

    def shown(self, row: Any) -> str:
        """One key, for a message. The bytes have to be in memory still."""
        if int(row["length"]) == NULL_LENGTH:
            return "None"
        held = ctypes.string_at(int(row["address"]), int(row["length"]))
        return held.decode() if self.text else repr(held)

    def named(self, rows: npt.NDArray[Any]) -> Any:
        """Keys for an error, as a NumPy array of objects."""
        held: list[Any] = [
            None if int(row["length"]) == NULL_LENGTH else ctypes.string_at(int(row["address"]), int(row["length"]))
            for row in rows
        ]
        return np.array([item.decode() if item is not None and self.text else item for item in held], object)

    def library_like(self, like: Any) -> Library:
        """The library of the keys that a caller asks for."""
        return library_of_strings(like)

    def exported(self, rows: Any, library: Library | None = None) -> Any:
        """Strings, a `StringArray`, as a column of a library; of NumPy, where the library has no strings."""
        give: Callable[[StringArray], Any] = getattr(library, "strings", np.asarray)
        return give(rows)


class _LentRow(bytes):
    """The bytes of a row, and what keeps its string alive."""

    owner: Any = None


def is_one_item(given: Any) -> bool:
    """Whether an object is one key and no batch, whatever its type is."""
    is_batch = isinstance(given, Iterable) or gives_array(type(given)) or speaks_arrow(given)
    return isinstance(given, str | bytes | np.generic) or not is_batch


def _reshaped(owner: Any) -> Any:
    made = StringRows(owner.rows.reshape(1), owner.text, owner.owner, owner.nulls)
    made.given = owner.given
    return made
