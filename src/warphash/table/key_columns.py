"""Keys of several columns, each of a type of its own: strings of any length, and all types of a fixed width.

A row of such columns is a string of bytes of one canonical form (``storage/strings/packed_rows.py``): equal rows have
equal bytes, whatever library, width or encoding their columns had. So a table of rows is a table of bytes:

1. Columns of fixed widths together, of up to `MAX_KEY_BYTES`, are keys of that width, in every memory and on every
   device.
2. Rows with strings, wider ones and rows with a rule for nulls are keys of any length, on the CPU.

Each column is read by the `Column` of its type, so by the rules that hold of a table of that type alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.columns import column_library, frame_of_columns
from ..arrays.adapters.numpy import NUMPY, address_of
from ..arrays.arrow import ArrowData, read_arrow, speaks_arrow
from ..arrays.arrow_values import Items, Valid, both
from ..arrays.cast import Fits
from ..arrays.column_types import ColumnTypes, column_types
from ..arrays.float_column import FloatColumn
from ..arrays.given_columns import GivenColumns, are_columns, columns_of, is_table
from ..arrays.key_column import NULLS, column_and_view, key_column, plain_view, text_of
from ..arrays.library import Allocator, ArrayView, Dtype, Library, Shape, dtype_of
from ..arrays.nullable_column import NullableColumn, as_column, without_nulls
from ..arrays.row_names import Names, RowNames
from ..arrays.row_type import MAX_KEY_BYTES, Column, read_only
from ..arrays.string_column import StringLibrary, library_of_strings
from ..arrays.strings import NULL_LENGTH, ROW, StringArray
from ..arrays.view import view
from ..errors import DtypeError, ParameterError, ShapeError
from ..runtime.devices import engine_for
from ..runtime.engine import Engine
from ..storage.strings.packed_rows import RowLayout, Strings
from ..storage.strings.string_table import packed
from .column_file import ColumnsOfFile
from .column_parts import (
    Part,
    check_part,
    encoder_of,
    host_of,
    length_of,
    part_of,
    string_array,
    values_of,
    with_nulls,
)

__all__ = ["CompositeColumn", "key_column_of", "keys_and_column", "stored_type"]

_FRAMES = ("pandas", "polars", "pyarrow")
"""The libraries with frames, by the names of their modules."""


class _Read(NamedTuple):
    """Keys that were read.

    Attributes
    ----------
    parts
        The columns, in the order of the table.
    n
        Number of rows.
    fits
        Which rows the types have, bool[n]; None if they have all.
    dropped
        Which rows are left out for a null, bool[n]; None for none.
    found
        What the caller gave, its names in the order of ``parts``.
    """

    parts: list[Part]
    n: int
    fits: Fits
    dropped: npt.NDArray[np.bool_] | None
    found: GivenColumns


class _Owner(NamedTuple):
    """What a view of keys keeps: the memory, the names of the columns, and what the caller gave."""

    memory: Any
    names: Names | None
    given: Any


class _RowsLibrary(StringLibrary):
    """A library of columns, in which the rows of a table are NumPy's.

    Parameters
    ----------
    kind, answers
        As of `StringLibrary`.
    row
        Type of the rows.
    """

    def __init__(self, kind: str, row: Dtype, answers: Library | None = None) -> None:
        super().__init__(kind, answers)
        self._row = row

    @property
    def of_rows(self) -> Library:
        """The adapter for columns without labels."""
        return _RowsLibrary(self.kind, self._row)

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new array, of which `export` makes a column; of NumPy's for rows of the table."""
        if dtype == self._row:
            return NUMPY.empty(like, shape, dtype, allocator)._replace(library=self)
        return super().empty(like, shape, dtype, allocator)


@dataclass(frozen=True)
class _KeyColumns:
    """The columns of a key, by their types and rules."""

    types: ColumnTypes
    nulls: str
    floats: str | None

    def __len__(self) -> int:
        return len(self.types.types)

    @cached_property
    def items(self) -> tuple[Column, ...]:
        """A column for each, which takes nulls: of fixed widths, a `NullableColumn`.

        Raises
        ------
        DtypeError
            For types that no key has, and for a rule about floats without a column of floats.
        """
        if self.floats is not None and not any(dtype.kind == "f" for dtype in self.types.types):
            raise DtypeError(f"floats={self.floats!r} is for columns of floats, got {self.name}: leave floats out")
        return tuple(self._item(number, dtype) for number, dtype in enumerate(self.types.types))

    def _item(self, number: int, dtype: np.dtype[Any]) -> Column:
        with self._naming(number):
            if not dtype.itemsize:
                return key_column(dtype, "key")
            if dtype.kind == "f" and self.floats is None:
                raise DtypeError(
                    f"keys must have exact equality, so not {dtype}: give floats='value', by which -0.0 is 0.0 and NaN "
                    "is NaN, or floats='bits'"
                )
            column = FloatColumn.of(dtype, str(self.floats)) if dtype.kind == "f" else Column.of_part(dtype)
            return NullableColumn(ROW, (), False, "key", items=column)

    @cached_property
    def layout(self) -> RowLayout:
        """Where the columns lie in a row."""
        return RowLayout([dtype.itemsize for dtype in self.types.types], has_nulls=self.nulls == "key")

    @property
    def name(self) -> str:
        """The types, in a message."""
        shown = [_shown_type(dtype) for dtype in self.types.types]
        rules = [f"{rule}={value!r}" for rule, value in (("nulls", self.nulls), ("floats", self.floats))]
        given = [rule for rule, is_given in zip(rules, (self.nulls != "raise", self.floats), strict=True) if is_given]
        return ", ".join((f"[{', '.join(shown)}]", *given))

    @contextmanager
    def _naming(self, number: int, names: Names | None = None) -> Iterator[None]:
        """Name a column in errors about it."""
        try:
            yield
        except (DtypeError, ShapeError) as error:
            which = number if names is None else repr(names[number])
            raise type(error)(f"column {which} of the keys: {error}") from None

    # ---- a caller's columns to parts
    def read(self, given: Any, names: RowNames) -> _Read:
        """Read one key, or a batch.

        Raises
        ------
        DtypeError
            For columns of other types and names, and for nulls that no rule takes.
        ShapeError
            For another number of columns, and for columns of several lengths.
        """
        found = given if isinstance(given, GivenColumns) else columns_of(given, len(self), names.known)
        order = None if found.names is None else names.order(found.names, "keys")
        if order is not None:
            found = found._replace(columns=[found.columns[place] for place in order], names=names.known)
        fits: Fits = found.are_rows
        parts: list[Part] = []
        for number, column in enumerate(found.columns):
            with self._naming(number, found.names):
                part, fit = part_of(self.items[number], column)
            parts.append(part if found.valid is None else with_nulls(part, found.valid))
            fits = both(fits, fit)
        lengths = [length_of(part) for part in parts]
        if len(set(lengths)) > 1:
            raise ShapeError(
                f"the columns of keys must be of one length, got {', '.join(map(str, lengths))}: give one item of each "
                "column for each key"
            )
        return _Read(parts, lengths[0], fits, self._dropped(parts, fits, found.names), found)

    def _dropped(self, parts: Sequence[Part], fits: Fits, names: Names | None) -> npt.NDArray[np.bool_] | None:
        """Which rows are left out for a null; None for none."""
        if self.nulls == "key" or all(part.valid is None for part in parts):
            return None
        is_null = [np.zeros(length_of(part), np.bool_) if part.valid is None else ~part.valid for part in parts]
        if self.nulls == "drop":
            dropped: npt.NDArray[np.bool_] = np.logical_or.reduce(is_null)
            return dropped
        for number, nulls in enumerate(is_null):
            if count := int((nulls if fits is None else nulls & fits).sum()):
                which = number if names is None else repr(names[number])
                raise DtypeError(
                    f"expected rows without nulls in them, got {count:,} in column {which}: drop or fill the nulls "
                    "first, or make the table with nulls='drop' or nulls='key'"
                )
        return None

    def refuse_unfit(self, read: _Read) -> NoReturn:
        """Raise the error for keys of which some fit into no key of the table."""
        for number, column in enumerate(read.found.columns):
            with self._naming(number, read.found.names):
                check_part(self.items[number], column)
        number = int(np.flatnonzero(~np.asarray(read.fits))[0])
        raise ShapeError(f"expected rows of {len(self)} items, got another number in row {number}: leave it out")

    # ---- parts to columns of a library
    def exported(self, engine: Engine, parts: Sequence[Part], library: Library, names: Names | None) -> Any:
        """A tuple of columns; a frame of a library that has frames, if the columns have names."""
        made = []
        for part, dtype in zip(parts, self.types.types, strict=True):
            if isinstance(part, Strings):
                strings = string_array(engine, part, is_text=dtype.kind == "U")
                made.append(library.strings(strings) if isinstance(library, StringLibrary) else np.asarray(strings))
            else:
                made.append(as_column(values_of(part, dtype), part.valid, library))
        if names is None or library.kind not in _FRAMES:
            return tuple(made)
        return frame_of_columns(library.kind, names, made)

    def for_file(self, engine: Engine, parts: Sequence[Part]) -> ColumnsOfFile:
        """The columns as a file has them."""
        made: list[Any] = []
        for part, dtype in zip(parts, self.types.types, strict=True):
            if isinstance(part, Strings):
                made.append(string_array(engine, part, is_text=dtype.kind == "U"))
            else:
                made.append(values_of(part, dtype))
        return ColumnsOfFile(tuple(made), tuple(None if isinstance(part, Strings) else part.valid for part in parts))


@dataclass(frozen=True)
class CompositeColumn(Column):
    """Keys of several columns.

    Attributes
    ----------
    columns
        The columns; always given.
    """

    columns: _KeyColumns | None = None

    @classmethod
    def of(cls, types: ColumnTypes, nulls: str, floats: str | None) -> CompositeColumn:
        """Check the types, and choose how rows are stored.

        Raises
        ------
        DtypeError
            As `key_column.key_column`.
        ParameterError
            If there is no such rule.
        """
        if nulls not in NULLS:
            raise ParameterError(f"nulls must be one of {NULLS}, got {nulls!r}")
        columns = _KeyColumns(types, nulls, floats)
        _ = columns.items  # which checks the types
        dtype = stored_type(types) if nulls == "raise" else ROW
        return cls(dtype, (), columns)

    @property
    def _columns(self) -> _KeyColumns:
        assert self.columns is not None
        return self.columns

    @cached_property
    def _engine(self) -> Engine:
        return engine_for("cpu")

    @cached_property
    def names(self) -> RowNames:
        """The names of the columns: those of the type, or of the first frame that the table keeps."""
        return RowNames(self._columns.types.names)

    def own(self) -> Self:
        """As `Column.own`."""
        return replace(self)

    @property
    def is_of_columns(self) -> bool:
        """True."""
        return True

    @property
    def has_any_length(self) -> bool:
        """Whether rows are stored as strings."""
        return self.dtype == ROW

    @property
    def text(self) -> bool:
        """False: rows that are stored as strings are bytes."""
        return False

    @property
    def spec(self) -> ColumnTypes:
        """The types of the columns."""
        return self._columns.types

    @property
    def numpy(self) -> np.dtype[Any]:
        """The types of the columns as one of a record, whose strings have no width."""
        types, known = self._columns.types.types, self.names.known or ()
        is_text = len(known) == len(types) and all(isinstance(name, str) and name for name in known)
        names = known if is_text else [f"f{number}" for number in range(len(types))]
        return np.dtype(list(zip(names, types, strict=True)))

    @property
    def name(self) -> str:
        """The types of the columns, and the rules."""
        return self._columns.name

    # ---- rows of a caller
    def see(self, given: Any) -> ArrayView:
        """See one key, or a batch."""
        seen, fits = self.elements(given)
        if fits is not None:
            self._columns.refuse_unfit(self._columns.read(given, self.names))
        return seen

    def elements(self, given: Any) -> tuple[ArrayView, Fits]:
        """As `Column.elements`."""
        if isinstance(given, ArrayView):
            return given, None
        if isinstance(given, StringArray):
            return self._view_of(given, None), None
        if isinstance(given, np.ndarray) and given.dtype == self.dtype:  # rows of a table
            return view(given), None
        if (one := self._one_row(given)) is not None:
            return one, None
        read = self._columns.read(given, self.names)
        seen = self._view_of(self._stored(read.parts, read.n, read.dropped), read.found, given)
        if not read.found.is_one:
            return seen, read.fits
        fits = None if read.fits is None else read.fits.reshape(())
        return seen._replace(shape=(), host=host_of(seen).reshape(())), fits

    def _stored(self, parts: Sequence[Part], n: int, dropped: Valid = None) -> Any:
        """Rows of the table: a `StringArray`, or an array of the type of the rows."""
        layout = self._columns.layout
        if not self.has_any_length:
            return layout.heads(parts, n).view(self.dtype).reshape(n)
        return StringArray(*layout.join(self._engine, parts, n), False, None if dropped is None else ~dropped)

    def _view_of(self, rows: Any, found: GivenColumns | None, given: Any = None) -> ArrayView:
        """A view of rows of the table."""
        held = rows.rows.rows if isinstance(rows, StringArray) else rows
        library = self._of_numpy if found is None or found.is_one else self._library_of(found.like)
        owner = _Owner(rows, None if found is None else found.names, given)
        return NUMPY.see(held)._replace(owner=owner, library=library)

    @cached_property
    def _of_numpy(self) -> Library:
        """The library of NumPy's columns."""
        return _RowsLibrary("numpy", self.dtype)

    def _library_of(self, like: Any) -> Library:
        """The library of an array, with its labels; NumPy's for one that has no columns."""
        name = "numpy" if isinstance(like, ArrowData) else type(like).__module__.partition(".")[0]
        return _RowsLibrary(name, self.dtype, column_library(like)) if name in _FRAMES else self._of_numpy

    @cached_property
    def _encoders(self) -> list[Callable[[Any], bytes | None]]:
        """Of each column, what makes the bytes of a Python value; None for a value that needs another look."""
        return [encoder_of(dtype) for dtype in self._columns.types.types]

    def _one_row(self, key: Any) -> ArrayView | None:
        """See one key of plain Python values; None for all others."""
        if type(key) is not tuple or len(key) != len(self._columns):
            return None
        items = []
        for item, encode in zip(key, self._encoders, strict=True):
            encoded = encode(item)
            if encoded is None:
                return None
            items.append(encoded)
        raw = self._columns.layout.one(items)
        data = np.frombuffer(raw or b"\0", np.uint8) if self.has_any_length else np.frombuffer(raw, self.dtype)
        held = np.array((address_of(data), len(raw)), ROW) if self.has_any_length else data.reshape(())
        return ArrayView(
            address_of(held), (), self.dtype, "cpu", None, _Owner((held, data), None, key), held, self._of_numpy
        )

    def fitting(self, array: Any) -> tuple[ArrayView, Fits]:
        """See keys to look up, and which of them the types have; None if they have all."""
        return self.rows(*self.elements(array))

    def view(self, array: Any, what: str) -> ArrayView:
        """See a batch; one key is a batch of one."""
        return self.rows(self.see(array), None, what)[0]

    def rows(self, seen: ArrayView, fits: Fits, what: str = "keys") -> tuple[ArrayView, Fits]:
        """One key as a batch of one."""
        if seen.dtype != self.dtype:
            raise DtypeError(f"{what} must be {self.name}, as the table was made, got {seen.dtype}: give such columns")
        if not seen.shape:
            seen = seen._replace(shape=(1,), host=None if seen.host is None else seen.host.reshape(1))
        return seen, None if fits is None else fits.reshape(-1)

    def view_one(self, key: Any, mend: str) -> ArrayView | None:
        """See one key; None for what the types do not have."""
        try:
            seen, fits = self.elements(key)
        except DtypeError:
            if isinstance(key, Mapping):
                raise
            return None
        except ShapeError:
            if isinstance(key, tuple):  # of another length, or with batches in it
                return None
            raise
        if seen.shape:
            raise ShapeError(f"expected one key, got {seen.rows:,}: {mend}")
        return None if fits is not None else self.rows(seen, None, "the key")[0]

    # ---- names
    def names_given(self, seen: ArrayView) -> Names | None:
        """As `Column.names_given`."""
        return seen.owner.names if isinstance(seen.owner, _Owner) else None

    def learn(self, seen: ArrayView, what: str) -> ArrayView:
        """As `Column.learn`."""
        given = self.names_given(seen)
        self.names.learn(given)
        if given is None or self.names.order(given, what) is None:
            return seen
        return self.view(seen.owner.given, what)  # another thread's names came first

    def reordered(self, rows: Any, order: Sequence[int]) -> Any:
        """Rows of this table in host memory, or their columns, in another order of the columns."""
        if isinstance(rows, tuple):
            return tuple(rows[place] for place in order)
        parts = self._parts(rows)
        return self._stored([parts[place] for place in order], len(rows))

    # ---- rows of the table
    def _parts(self, rows: Any) -> list[Part]:
        """The columns of rows in host memory: of a `StringArray`, or of an array of the type of the rows."""
        layout = self._columns.layout
        if isinstance(rows, StringArray):
            return layout.split(self._engine, rows.offsets, rows.data)
        heads = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), layout.head_bytes)
        return [part for part in layout.fixed(heads) if part is not None]

    def named(self, rows: npt.NDArray[Any]) -> Any:
        """Keys for an error, as a NumPy array of tuples."""
        held: Any = rows
        if self.has_any_length:
            offsets, data, _ = packed(self._engine, np.ascontiguousarray(rows).ctypes.data, len(rows))
            held = StringArray(offsets, data, False)
        made = np.empty(len(rows), object)
        made[:] = list(self.one_by_one(self.exported(held)))
        return made

    def shown(self, row: Any) -> str:
        """One key, for a message."""
        if self.has_any_length and int(row["length"]) == NULL_LENGTH:
            return "a key with a null in it"
        items = self.named(np.array([row], self.dtype))[0]
        return str(tuple(item.item() if isinstance(item, np.generic) else item for item in items))

    def library_like(self, like: Any) -> Library:
        """The library of the keys that a caller asks for."""
        return _RowsLibrary(library_of_strings(like[0] if are_columns(like) else like).kind, self.dtype)

    def one_by_one(self, rows: Any) -> Iterator[Any]:
        """Rows in host memory that were exported, as tuples."""
        return zip(*map(read_only, rows), strict=True)

    def exported(self, rows: Any, library: Library | None = None) -> Any:
        """Keys as a tuple of columns of a library; a frame of a library that has frames, if the columns have names."""
        held = rows.host if isinstance(rows, ArrayView) else rows
        return self._columns.exported(self._engine, self._parts(held), library or self._of_numpy, self.names.known)

    def for_file(self, rows: Any) -> ColumnsOfFile:
        """Rows in host memory as columns."""
        return self._columns.for_file(self._engine, self._parts(rows))

    def of_file(self, held: ColumnsOfFile) -> Any:
        """The rows of `for_file`."""
        columns = [
            column if isinstance(column, StringArray) else Items(column, valid)
            for column, valid in zip(held.columns, held.valid, strict=True)
        ]
        read = self._columns.read(GivenColumns(columns, None, False, None), self.names)
        return self._stored(read.parts, read.n, read.dropped)


# ---- which column a type, and an array of keys, has
def key_column_of(dtype: Any, nulls: str = "raise", floats: str | None = None) -> Column:
    """Check a key type of a table: a list of columns, or as `key_column.key_column`.

    Raises
    ------
    DtypeError, ParameterError
        As `key_column.key_column`.
    """
    types = column_types(dtype)
    return key_column(dtype, nulls, floats) if types is None else CompositeColumn.of(types, nulls, floats)


def stored_type(types: Any) -> np.dtype[Any]:
    """The type of the rows of a table without nulls; a type of NumPy's is itself."""
    if not isinstance(types, ColumnTypes):
        made: np.dtype[Any] = types
        return made
    return ROW if types.has_text or types.nbytes > MAX_KEY_BYTES else np.dtype(f"V{types.nbytes}")


def keys_and_column(keys: Any, options: Mapping[str, Any]) -> tuple[Column, ArrayView]:
    """The column that keys are of, in a table with such options, and their view.

    Raises
    ------
    DtypeError, ShapeError, ParameterError
        As `key_column.column_and_view`, and as a `CompositeColumn`.
    """
    if options.get("nulls", "raise") == "raise" and options.get("floats") is None:
        seen = plain_view(keys)  # most keys: the questions that follow take as long as the launch of a kernel
        if seen is not None:
            return Column.of_array(seen, "keys"), seen
    if speaks_arrow(keys) and type(keys).__module__.partition(".")[0] not in _FRAMES:
        chunks = read_arrow(keys)  # the result of a query can be read only once
        keys = keys if chunks is None else ArrowData(chunks)
    if not (are_columns(keys) or is_table(keys)):
        with _naming_columns(keys):
            return column_and_view(keys, options)
    found = columns_of(keys, None, None)
    types = [_type_of(column, number, found.names) for number, column in enumerate(found.columns)]
    are_alike = not types or (len(set(types)) == 1 and types[0].itemsize > 0)
    if are_alike and not isinstance(keys, tuple | Mapping):  # rows of items of one type
        return column_and_view(keys, options)
    floats = options.get("floats")
    column = CompositeColumn.of(ColumnTypes(tuple(types)), options.get("nulls", "raise"), floats)
    return column, column.view(keys, "keys")


@contextmanager
def _naming_columns(keys: Any) -> Iterator[None]:
    """Add to an error about a tuple of lists, which are rows, how columns are given."""
    try:
        yield
    except DtypeError as error:
        if not (isinstance(keys, tuple) and keys and all(isinstance(item, list) for item in keys)):
            raise
        mend = "for columns, give one of them as an array, or give a mapping of names to lists"
        raise DtypeError(f"{error}; lists alone are rows of items of one type: {mend}") from None


def _type_of(column: Any, number: int, names: Names | None) -> np.dtype[Any]:
    """The type of the keys that a column holds; of Python objects, the one that a list of them has."""
    text = text_of(column)
    if dtype_of(column) == np.dtype(object):
        column = list(column)
    if text is None and isinstance(column, list):
        first = next((item for item in column if item is not None), None)
        text = True if isinstance(first, str) else False if isinstance(first, bytes) else None
    if text is not None:
        return np.dtype("U" if text else "S")
    try:
        seen = view(without_nulls(_without_items(column))[0])
    except (DtypeError, ShapeError) as error:
        which = number if names is None else repr(names[number])
        raise type(error)(f"column {which} of the keys: {error}") from None
    return np.dtype((seen.dtype, seen.shape[1:])) if seen.shape[1:] else seen.dtype


def _without_items(column: Any) -> Any:
    """An empty column of the same type; the column itself, if its items have the type."""
    if isinstance(column, ArrowData):
        return ArrowData([chunk._replace(length=0, null_count=0) for chunk in column.chunks[:1]])
    if isinstance(column, list) or getattr(dtype_of(column), "kind", "") == "O":
        return column
    return column[:0]


def _shown_type(dtype: np.dtype[Any]) -> str:
    return str(dtype) if dtype.itemsize else "str" if dtype.kind == "U" else "bytes"
