"""The type of a row of keys or values: a NumPy type and a shape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, ShapeError
from .adapters.columns import name_items
from .adapters.numpy import NUMPY, address_of
from .batch import as_rows
from .cast import Fits, cast, first_unfit, is_comparable, per_row
from .decimals import decimal_scale, type_to_cast_to
from .exact import exactly, fitting
from .key_types import check_key_type
from .library import ArrayView, Library
from .plain_array import listed_objects, python_value
from .plain_types import Part, pair_of_types, parts, plain, record_of_types
from .row_names import Names, RowNames, is_row_of_frame, named_rows, names_of, names_of_one, with_names
from .view import known_libraries, view, view_array

__all__ = ["Column", "known_names", "read_only", "view_pair"]

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

    @cached_property
    def _zeros(self) -> bytes:
        return bytes(self.nbytes)

    @classmethod
    def of_keys(cls, dtype: npt.DTypeLike) -> Column:
        """Check a key type.

        Raises
        ------
        DtypeError
            For what `key_types.check_key_type` refuses, objects, variable widths and more than 128 bytes.
        """
        column = cls.of_part(dtype)
        if column.nbytes > MAX_KEY_BYTES:
            kind = column.dtype.kind
            text = {"U": "str", "S": "bytes"}.get(kind, "")
            mend = text and f"make the table of type {text!r}, whose keys have any length, or "
            raise DtypeError(
                f"a key has at most {MAX_KEY_BYTES} bytes, and {dtype!r} has {column.nbytes}: {mend}take a hash of "
                "each as its key, which loses the difference between two keys of one hash"
            )
        return column

    @classmethod
    def of_part(cls, dtype: npt.DTypeLike) -> Column:
        """Check the type of a part of a key: as `of_keys`, of any width."""
        return _key_column(_full_type(dtype, "key"))

    @classmethod
    def of_values(cls, dtype: npt.DTypeLike) -> Column:
        """Check a value type: any of fixed width."""
        return _column(_full_type(dtype, "value"), "value")

    @classmethod
    def of_array(cls, seen: ArrayView, what: str) -> Column:
        """The rows of an array of ``n`` or ``n x d`` items."""
        if len(seen.shape) == 0:
            raise ShapeError(f"{what} must have one row per element, got a single number: give [x]")
        make = cls.of_keys if what == "keys" else cls.of_values
        return make(np.dtype((seen.dtype, seen.shape[1:])) if seen.shape[1:] else seen.dtype)

    def own(self) -> Self:
        """The same column, with names that no other table learns."""
        return replace(self) if self.shape else self

    @cached_property
    def names(self) -> RowNames:
        """The names of the items of a row, as far as the table of this column knows any."""
        return RowNames()

    @property
    def has_any_length(self) -> bool:
        """Whether rows are strings of any length (`string_column.StringColumn`)."""
        return False

    @property
    def is_of_columns(self) -> bool:
        """Whether a row consists of columns, each of a type of its own (`table/key_columns.py`)."""
        return False

    @property
    def spec(self) -> Any:
        """The type that makes such a column again, if the rules are the same."""
        return self.numpy

    @property
    def name(self) -> str:
        """The type of a row, in a message."""
        return str(self.numpy)

    def see(self, given: Any) -> ArrayView:
        """See one row or a batch of rows; a list or a single value in the type of the column."""
        return view(given, self.dtype)

    def shown(self, row: Any) -> str:
        """One row, in a message."""
        return str(row)

    def named(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows, for an error that names them."""
        return rows

    def view(self, array: Any, what: str) -> ArrayView:
        """See an array of rows of this column, or a copy in its type if that type has every value of the array.

        The array has any number of axes, the last of which are the row's: the view has one axis in their place.
        A mask is no array of numbers: bool is not taken for integers. Fields of records, and items of rows with names,
        come in the order of the column, by their names.

        Raises
        ------
        DtypeError, ShapeError
            If it is another kind of row, or the type does not have a value.
        """
        library, names = known_libraries.get(type(array)), None
        if library is None:
            array, names = self._plain(array)
        return self._of_seen(view(array, self.dtype) if library is None else library.see(array), names, array, what)

    def _of_seen(self, seen: ArrayView, names: Names | None, array: Any, what: str) -> ArrayView:
        """As `view`, of an array that was seen, and of the names of the items of its rows."""
        if seen.dtype != self.dtype:
            given = seen
            seen, fits = self._cast(given, array, what)
            if fits is not None:
                raise self._unfit(given, fits, what)
        if not self.shape and len(seen.shape) == 1:
            return seen
        return Column.rows(self, seen if names is None else with_names(seen, names), None, what)[0]

    def fitting(self, array: Any) -> tuple[ArrayView, Fits]:
        """See rows to look up, in the type of the column, and which of them that type has; None if it has all.

        Raises
        ------
        DtypeError, ShapeError
            If it is another kind of row.
        """
        library = known_libraries.get(type(array))
        if library is not None and not self.shape:
            seen = library.see(array)
            if seen.dtype == self.dtype and len(seen.shape) == 1:
                return seen, None
        return Column.rows(self, *self.elements(array))

    def elements(self, given: Any) -> tuple[ArrayView, Fits]:
        """See one row or a batch, in its own shape, and which of its items the type has; None if it has all."""
        given, names = self._plain(given)
        seen = view_array(given, self.dtype)
        if seen is None:
            made, fits = fitting(given, self.dtype)
            return with_names(NUMPY.see(made), names), fits
        if seen.dtype == self.dtype:
            return seen, None
        if not seen.shape and seen.host is not None:  # an item, as a value of Python's is one
            made, fits = fitting(seen.host[()], self.dtype)
            return NUMPY.see(made)._replace(library=seen.library, place=seen.place), fits
        return self._cast(seen, given, "keys")

    def _plain(self, given: Any) -> tuple[Any, Names | None]:
        """A row or rows that are objects of Python, as `named_rows`; single values of other libraries as Python's."""
        if self.shape:
            return named_rows(given)
        if isinstance(given, np.ndarray | ArrayView | list):
            return given, None
        if self.dtype.names is not None and is_row_of_frame(given, self.dtype.names):
            return dict(given), None
        value = python_value(given)
        is_row = isinstance(value, list) or (isinstance(value, Mapping) and self.dtype.names is None)
        return given if is_row else value, None

    def view_one(self, key: Any, mend: str) -> ArrayView | None:
        """See one key, as an array of any type or a value; None if the type does not represent it exactly.

        Parameters
        ----------
        mend
            What a caller should do that has a batch.

        Raises
        ------
        ShapeError
            For a batch.
        DtypeError
            If its items have names that the table does not know.
        """
        try:
            seen, fits = self.elements(key)
        except DtypeError:
            if isinstance(key, Mapping):
                raise
            return None
        except ShapeError:
            if isinstance(key, list | tuple):  # ragged
                return None
            raise
        if len(seen.shape) > len(self.shape) and not isinstance(key, tuple):
            raise ShapeError(f"expected one key, of shape {self.shape}, got an array of shape {seen.shape}: {mend}")
        if seen.shape != self.shape or fits is not None:
            return None
        return self.rows(seen, None, "the key")[0]

    def rows(self, seen: ArrayView, fits: Fits, what: str = "keys") -> tuple[ArrayView, Fits]:
        """The rows of `elements`, their items in the order of the column; and which of them the type has.

        Raises
        ------
        ShapeError
            If they are rows of another shape.
        """
        if seen.shape and seen.shape[1:] == self.shape:
            ordered = self._in_order(seen, names_of(seen), what) if self.shape else seen
            return ordered, per_row(fits, ordered)
        rows = as_rows(seen, self.shape)
        if rows is None:
            expected = ", ".join(map(str, self.shape))
            raise ShapeError(f"{what} must have shape (..., {expected}), got {seen.shape}: give one row for each key")
        if self.shape and seen.shape == self.shape and (names := names_of_one(seen)) is not None:
            rows = self._in_order(with_names(rows, names), names, what)
        return rows, per_row(fits, rows)

    def _in_order(self, seen: ArrayView, given: Names | None, what: str) -> ArrayView:
        """Rows with their items in the order of the column, if the items have names."""
        order = None if given is None else self.names.order(given, what)
        if order is None or seen.host is None:
            return seen
        made = np.ascontiguousarray(seen.host[:, order])
        assert given is not None
        ordered = seen._replace(ptr=address_of(made), host=made, capsule=made)
        return with_names(ordered, tuple(given[number] for number in order))

    def names_given(self, seen: ArrayView) -> Names | None:
        """The names of the items of rows that a caller gave; None if they have none."""
        return names_of(seen) if self.shape else None

    def learn(self, seen: ArrayView, what: str) -> ArrayView:
        """Learn the names of rows that the table is about to keep: the rows, in the order of the table."""
        if (given := self.names_given(seen)) is None:
            return seen
        self.names.learn(given)
        return self._in_order(seen, given, what)  # another thread's names may have come first

    def one_by_one(self, rows: Any) -> Iterator[Any]:
        """Rows in host memory that were exported, to be given out one by one."""
        return iter(read_only(rows))

    def for_file(self, rows: Any) -> Any:
        """Rows in host memory as a file has them."""
        return rows

    def exported(self, rows: Any, library: Library | None = None) -> Any:
        """Rows as their library's own array or column, with the names of their items where that library has names."""
        made = (library or rows.library).export(rows)
        return made if not self.shape or (known := self.names.known) is None else name_items(made, known)

    def _cast(self, seen: ArrayView, given: Any, what: str) -> tuple[ArrayView, Fits]:
        """A copy of an array in the type of the column, and which of its items fit. Objects fit as those of a list."""
        if (objects := listed_objects(given)) is not None:
            items, fits = fitting(objects, self.dtype)
            return NUMPY.see(items)._replace(library=seen.library), fits
        made = cast(seen, self.dtype) if is_comparable(seen.dtype, self.dtype) else None
        if made is None:
            raise DtypeError(
                f"{what} must be {self.dtype}, as the table was made, got {seen.dtype}: "
                f"{_conversion(what, given, seen, self.dtype)}"
            )
        return made

    def _unfit(self, seen: ArrayView, fits: Fits, what: str) -> DtypeError:
        """The error for an array with an item that the type of the column does not have."""
        mend = f"leave it out, or make the table of {seen.dtype}"
        if seen.dtype.kind in "fc" and self.dtype.kind in "fc":
            mend = f"round them, as in {what}{_conversion_of(seen, self.dtype)}, or make the table of {seen.dtype}"
        return DtypeError(
            f"{what} must be values that {self.dtype} has, as the table was made, got {first_unfit(seen, fits)} "
            f"in an array of {seen.dtype}: {mend}"
        )

    def default(self, value: Any) -> bytes:
        """The bytes of the row that a caller gave as a default. 0 stands for zeros, and a single item fills a row."""
        if isinstance(value, int) and value == 0:
            return self._zeros
        try:
            seen, fits = self.elements(value)
            if fits is not None or seen.host is None:
                exactly(value, self.dtype)  # which says what does not fit
            if self.shape and seen.shape[-len(self.shape) :] == self.shape:
                seen, _ = self.rows(seen, None, "the default")
        except DtypeError as error:
            raise DtypeError(f"the default is no {self.numpy}: {error}") from None
        made = np.asarray(seen.host)
        while made.ndim > len(self.shape) and len(made) == 1:
            made = made[0]
        try:
            return np.broadcast_to(made, self.shape).tobytes()
        except ValueError:
            raise DtypeError(
                f"the default is a single item or a row of shape {self.shape}, got shape {made.shape}: give one row"
            ) from None

    @property
    def numpy(self) -> np.dtype[Any]:
        """The type of a row as one NumPy type, with the shape in it."""
        return np.dtype((self.dtype, self.shape)) if self.shape else self.dtype


def view_pair(keys: Column, values: Column, given_keys: Any, given_values: Any) -> tuple[ArrayView, ArrayView]:
    """See the keys and the values of a batch, each as `Column.view` does."""
    library = known_libraries.get(type(given_keys))
    plain_types = type(keys) is Column is type(values)
    if library is None or not plain_types or known_libraries.get(type(given_values)) is not library:
        return keys.view(given_keys, "keys"), values.view(given_values, "values")
    seen, beside = library.see(given_keys), library.see(given_values)
    if seen.dtype != keys.dtype or keys.shape or len(seen.shape) != 1:
        seen = keys._of_seen(seen, None, given_keys, "keys")
    if beside.dtype != values.dtype or values.shape or len(beside.shape) != 1:
        beside = values._of_seen(beside, None, given_values, "values")
    return seen, beside


def known_names(columns: Sequence[Column | None]) -> list[Names | None]:
    """The names of the items of rows, as far as columns know any."""
    return [None if column is None else column.names.known for column in columns]


def _full_type(dtype: npt.DTypeLike, what: str) -> np.dtype[Any]:
    """A type that a caller named, with the shape of a row."""
    if isinstance(dtype, np.dtype):
        return dtype
    if dtype is None:
        raise DtypeError(f"a {what} type is needed, got None")
    try:
        full = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError) as error:  # NumPy parses some names as Python
        if (record := record_of_types(dtype)) is not None:
            raise DtypeError(
                f"expected one {what} type, got {dtype!r}: for a record of several items, give {record}"
            ) from None
        mend = "give a type of NumPy, such as 'int64', or 'str' for strings of any length"
        if isinstance(dtype, list | set | dict):
            mend = "a table of given keys is made by from_arrays"
        raise DtypeError(f"{dtype!r} is no {what} type: {error}; {mend}") from None
    if (pair := pair_of_types(dtype)) is not None:
        raise DtypeError(
            f"expected one {what} type, got the pair {pair!r}, which NumPy reads as {np.dtype(pair)}: name the parts "
            "of a record, and give a length to text, as in [('name', 'U16'), ('id', 'int64')]"
        )
    return full


@lru_cache(256)  # as every table is made of two: 0.3 us, and 4 us without
def _key_column(full: np.dtype[Any]) -> Column:
    column = _column(full, "key")
    check_key_type(column.dtype)
    return column


@lru_cache(256)  # types that differ in what equality ignores are one key of the cache, and have one plain type
def _column(full: np.dtype[Any], what: str) -> Column:
    base, shape = full.subdtype or (full, ())
    if base.hasobject or base.kind == "O":
        raise DtypeError(
            f"a {what} needs a fixed width, and {full} has none: take a type as wide as the longest {what}, "
            "such as S16 or U16, or 'str' for strings of any length"
        )
    for part in parts(full):
        if part.nbytes == 0:
            raise DtypeError(_without_bytes(full, part, what))
    return Column(plain(base), tuple(shape))


def _without_bytes(full: np.dtype[Any], part: Part, what: str) -> str:
    """The message for a part of a type that keeps nothing of what a caller gives."""
    where = f"field {part.name!r}" if part.name else f"a {what}"
    if part.dtype.kind not in "SU" or not part.items:
        mend = (
            "leave the field out"
            if part.name
            else f"give a {what} of one byte or more, or make a HashSet of keys alone"
        )
        return f"{where} needs at least one byte, and has none in {full}: {mend}"
    kind = part.dtype.kind
    any_length = "" if part.name or what != "key" else f", or {'str' if kind == 'U' else 'bytes'!r} for any length"
    return (
        f"{where} needs a length, and has none in {full}, so nothing of its text would be kept: give the length of the "
        f"longest text, as in {kind}16{any_length}"
    )


def _conversion(what: str, given: Any, seen: ArrayView, wanted: np.dtype[Any]) -> str:
    """How a caller makes an array of the wanted type out of one that is not converted."""
    if (scale := decimal_scale(wanted)) is not None:
        kind = type_to_cast_to(seen.dtype, scale)
        example = "a list of decimal.Decimal" if kind is None else f"a column of pyarrow's cast to {kind}"
        return f"give decimal numbers with {scale} digits behind the point, such as {example}"
    if seen.dtype.kind == "b" and wanted.kind in "iuf":
        is_array = isinstance(given, np.ndarray) or seen.kind != "numpy"
        array = what if is_array else f"numpy.asarray({what})"
        return f"if they are numbers, convert them: {array}{_conversion_of(seen, wanted)}"
    if seen.host is None and is_comparable(seen.dtype, wanted):
        return f"convert them, or give {what} in an array of PyTorch, of CuPy or in host memory, which is converted"
    if seen.dtype.kind + wanted.kind == "SU":
        return f"decode them, as in numpy.char.decode({what}, 'ascii')"
    return f"give {what} of that type"


def _conversion_of(seen: ArrayView, wanted: np.dtype[Any]) -> str:
    """The method of an array that makes another type of it, as source."""
    return f".to(torch.{wanted.name})" if seen.kind == "torch" else f".astype({wanted.name!r})"


def read_only(keys: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """``keys``, made read-only, to be given out one by one: NumPy hashes a key with fields only if it is read-only."""
    keys.flags.writeable = False
    return keys
