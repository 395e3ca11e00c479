"""Where rows come from: tables of PyArrow, read in pieces, in one order, as often as a verb needs them.

What can be read once only, such as an iterator, is kept for another pass while it is read: in memory as long as it fits
into the share of the call, and then in a spill file.
"""

from __future__ import annotations

import copy
import glob
import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..arrays.adapters.columns import frame_library
from ..arrays.arrow_views import without_views
from ..errors import DtypeError, ParameterError, PathError
from ..relational.frames import named
from ..settings import get_num_threads
from .ahead import ahead
from .progress import counted
from .spill import SpillFile
from .workspace import Workspace

__all__ = ["ParquetSource", "RowGroup", "Source", "opened", "passes"]

_ROWS_AT_ONCE, _FEWEST_ROWS = 1 << 17, 256
_STREAMED = {"pre_buffer": False, "buffer_size": 1 << 18}
"""How Parquet files are read: so many bytes of a column at one time. By default, a reader keeps all columns of all row
groups that it has read."""

_SOURCES = (
    "paths of Parquet files, a data set, a reader or a table of PyArrow, a frame, a mapping of names to arrays, an "
    "object with __arrow_c_stream__, or an iterator of batches"
)
_MENDS = {
    "collect": "give .collect() of it, or the path of the file that it scans",
    "to_frame": "give .to_frame() of it",
    "iter_batches": "give the path of the file, or .iter_batches() of it",
    "to_reader": "give .to_reader() of it",
    "__array__": "give a mapping of the name of the column to it",
    "readable": "give the path of the file",
}
"""What to give in place of plans of lazy frames, columns and open files, by an attribute of their class."""


class Source(Protocol):
    """Rows that can be read any number of times."""

    @property
    def schema(self) -> Any:
        """Of all columns. Their names differ."""

    @property
    def rows(self) -> int | None:
        """How many there are; None if nobody knows before they are read."""

    def tables(self, columns: list[str], nbytes: int) -> Iterator[Any]:
        """The rows of some columns, piece by piece. Each call reads them in the same order.

        Parameters
        ----------
        columns
            Their names.
        nbytes
            About how many bytes a table may have.
        """


def opened(given: Any, work: Workspace, *, again: bool = False) -> Source:
    """See what a caller gave.

    Parameters
    ----------
    given
        As ``src`` of the verbs.
    again
        There may be another pass. Else nothing is kept of what can be read once.

    Raises
    ------
    PathError
        For a path that is no file, and a pattern that no file matches.
    ParameterError
        For files that cannot be read, or without a common schema; and if columns have one name.
    DtypeError
        For another object, and for one that PyArrow makes no table of.
    """
    source = _opened(given, work, again)
    names = source.schema.names
    if not names:
        raise ParameterError("expected a source with columns, got one without")
    named(names, names, "the source")  # none repeats
    return source


def passes(source: Source, columns: list[str], step: str, work: Workspace) -> Iterator[Any]:
    """One pass over some columns of a source, which the progress shows as a step."""
    return counted(work.progress, step, source.rows, source.tables(columns, max(1, work.share // 4)))


def _opened(given: Any, work: Workspace, again: bool) -> Source:
    import pyarrow as arrow

    kind = type(given)  # whose attributes are no names of columns, as those of a frame may be
    if hasattr(kind, "tables") and hasattr(given, "rows"):
        source: Source = given
        return source
    if isinstance(given, str | os.PathLike):
        return ParquetSource([given])
    if isinstance(given, list | tuple) and given and all(isinstance(path, str | os.PathLike) for path in given):
        return ParquetSource(given)
    if hasattr(kind, "scanner"):
        return _DataSetSource(given)
    if (table := _table_of(given)) is not None:
        return _TableSource(table)
    if isinstance(given, arrow.RecordBatchReader):
        return _ReadOnce(given.schema, iter(given), work, again)
    if (mend := _mend_of(given)) is not None:
        raise DtypeError(f"expected {_SOURCES}, got {kind.__name__}: {mend}")
    if hasattr(given, "__arrow_c_stream__"):
        reader = _made(given, arrow.RecordBatchReader.from_stream)
        return _ReadOnce(reader.schema, iter(reader), work, again)
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        return _of_iterator(given, work, again)
    raise DtypeError(f"expected {_SOURCES}, got {kind.__name__}: convert it to one of these")


def _table_of(given: Any) -> Any:
    """The table of what is one, or a frame of pandas or a mapping; None for another object."""
    import pyarrow as arrow

    if isinstance(given, arrow.Table):
        return given
    if isinstance(given, arrow.RecordBatch):
        return arrow.Table.from_batches([given])
    if isinstance(given, Mapping):
        for name in given:
            if not isinstance(name, str):
                raise ParameterError(f"expected names of columns as texts, got {name!r}: rename it")
        return _made(dict(given), arrow.table, "mapping")
    if frame_library(given) == "pandas":
        return _made(given, lambda frame: arrow.Table.from_pandas(frame, preserve_index=False))
    return None


def _made(given: Any, make: Callable[[Any], Any], kind: str = "") -> Any:
    """What PyArrow makes of an object, which may have columns that it does not know."""
    import pyarrow as arrow

    try:
        return make(given)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError) as error:  # such as columns of objects
        about = ": ".join(map(str, error.args))
        raise DtypeError(
            f"the {kind or type(given).__name__} has no table of PyArrow: {about}: convert its columns"
        ) from None


def _mend_of(given: Any) -> str | None:
    """What to give in place of an object that is often taken for a source; None for another one."""
    kind = type(given)
    for name, mend in _MENDS.items():
        if hasattr(kind, name) and frame_library(given) is None:
            return mend
    return None


def _of_iterator(given: Iterable[Any], work: Workspace, again: bool) -> Source:
    batches = map(_batch_of, given)
    first = next(batches, None)
    if first is None:
        raise ParameterError(
            f"expected at least one path or batch, got an empty {type(given).__name__}: give a RecordBatchReader, "
            "whose columns are known without a batch"
        )
    return _ReadOnce(first.schema, itertools.chain([first], batches), work, again)


def _batch_of(given: Any) -> Any:
    """The table of an item of an iterator."""
    import pyarrow as arrow

    if not isinstance(given, Mapping) and (table := _table_of(given)) is not None:
        return table
    if frame_library(given) is not None:
        return _made(given, lambda frame: arrow.RecordBatchReader.from_stream(frame).read_all())
    mend = "convert each of them"
    if isinstance(given, str | os.PathLike):
        mend = "give a list of paths"
    elif isinstance(given, Mapping):
        mend = "give pyarrow.Table.from_pylist(rows)"
    raise DtypeError(f"expected batches, tables or frames from the iterator, got {type(given).__name__}: {mend}")


class _TableSource:
    def __init__(self, table: Any) -> None:
        self.schema = _without_views(table.schema)
        self._table, self.rows = table, len(table)

    def tables(self, columns: list[str], nbytes: int) -> Iterator[Any]:
        return _cut(self._table.select(columns).cast(_some(self.schema, columns)), nbytes)


class _DataSetSource:
    def __init__(self, given: Any) -> None:
        self._given, self.schema, self.rows = given, _without_views(given.schema), given.count_rows()

    def tables(self, columns: list[str], nbytes: int) -> Iterator[Any]:
        import pyarrow as arrow

        schema = _some(self.schema, columns)
        few = {"batch_size": _ROWS_AT_ONCE, "batch_readahead": 1, "fragment_readahead": 1}
        for batch in self._given.scanner(columns=columns, **few).to_batches():
            yield from _cut(arrow.Table.from_batches([batch]).cast(schema), nbytes)


class RowGroup(NamedTuple):
    """A row group of a Parquet file.

    Attributes
    ----------
    file, number
        The place of the file among those of a source; that of the row group in the file.
    begin, rows
        The number of its first row among all rows; how many rows there are.
    nbytes
        Bytes of its columns.
    """

    file: int
    number: int
    begin: int
    rows: int
    nbytes: int


class ParquetSource:
    """Parquet files one behind the other, with columns of the same names.

    Attributes
    ----------
    schema, rows
        As of `Source`.
    groups
        The row groups that are read.

    Raises
    ------
    PathError
        For a path that is no file.
    ParameterError
        For a file that cannot be read, and for files with different columns.
    DtypeError
        For columns of types that do not go together.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        import pyarrow as arrow
        from pyarrow import parquet

        self._paths, self._parquet = [file for path in paths for file in _files_at(path)], parquet
        schemas, self.rows = [], 0
        self.groups: list[RowGroup] = []
        for place, path in enumerate(self._paths):
            try:
                with parquet.ParquetFile(path) as file:
                    schemas.append(_without_views(file.schema_arrow))
                    about = file.metadata
            except (arrow.ArrowException, OSError) as error:
                raise ParameterError(f"{path} is no Parquet file that can be read: {error}") from None
            named(schemas[-1].names, schemas[-1].names, str(path))  # none repeats
            if sorted(schemas[0].names) != sorted(schemas[-1].names):
                raise ParameterError(
                    f"expected the columns of {self._paths[0]} in {path}, too ({', '.join(schemas[0].names)}), got "
                    f"{', '.join(schemas[-1].names)}: give files with the same columns"
                )
            for number in range(about.num_row_groups):
                group = about.row_group(number)
                self.groups.append(RowGroup(place, number, self.rows, group.num_rows, group.total_byte_size))
                self.rows += group.num_rows
        self._row_bytes = sum(group.nbytes for group in self.groups) // max(1, self.rows) + 1
        try:
            self.schema = arrow.unify_schemas(schemas, promote_options="permissive").remove_metadata()
        except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
            raise DtypeError(f"the columns of the files have types that do not go together: {error}") from None

    def some(self, groups: Sequence[RowGroup]) -> ParquetSource:
        """Some of the row groups, in ascending order."""
        made = copy.copy(self)
        made.groups, made.rows = list(groups), sum(group.rows for group in groups)
        return made

    def tables(self, columns: list[str], nbytes: int) -> Iterator[Any]:
        """As `Source.tables`. If a call may use two threads, one of them reads ahead."""
        tables = self._tables(columns, nbytes)
        return ahead(tables) if get_num_threads() > 1 else tables

    def _tables(self, columns: list[str], nbytes: int) -> Generator[Any, None, None]:
        import pyarrow as arrow

        schema = _some(self.schema, columns)
        rows = min(_ROWS_AT_ONCE, max(_FEWEST_ROWS, nbytes // self._row_bytes))
        for place, groups in itertools.groupby(self.groups, lambda group: group.file):
            with self._parquet.ParquetFile(self._paths[place], **_STREAMED) as file:
                numbers = [group.number for group in groups]
                for batch in file.iter_batches(rows, row_groups=numbers, columns=columns):
                    yield from _cut(arrow.Table.from_batches([batch]).select(columns).cast(schema), nbytes)


def _files_at(given: str | os.PathLike[str]) -> list[Path]:
    """The file at a path, or all files that a pattern matches, in the order of their paths."""
    path, text = Path(given), os.fspath(given)
    if path.is_file():
        return [path]
    if path.is_dir():
        raise PathError(
            f"{path} is a folder: give pyarrow.dataset.dataset(folder), or a pattern such as {path}/*.parquet"
        )
    if "://" in text:
        raise PathError(f"{text} is no path of this machine: give pyarrow.dataset.dataset({text!r})")
    if not any(letter in text for letter in "*?["):
        raise PathError(f"the file {path} is not there")
    found = sorted(found for match in glob.glob(text, recursive=True) if (found := Path(match)).is_file())  # noqa: PTH207
    if not found:
        raise PathError(f"no file matches {text}: see the folder, and the ending of its files")
    return found


class _ReadOnce:
    """What can be read once. If there is another pass, the first one, which goes to the end, keeps all columns."""

    def __init__(self, schema: Any, batches: Iterator[Any], work: Workspace, again: bool) -> None:
        self._is_kept = again
        self.schema, self._batches, self._work = _without_views(schema).remove_metadata(), batches, work
        self.rows: int | None = None
        self._held: list[Any] = []
        self._file: SpillFile | None = None
        self._is_read = False

    def tables(self, columns: list[str], nbytes: int) -> Iterator[Any]:
        for table in self._again() if self._is_read else self._first():
            yield from _cut(table.select(columns), nbytes)

    def _first(self) -> Iterator[Any]:
        import pyarrow as arrow

        self._is_read = True
        size, rows = 0, 0
        for batch in self._batches:
            given = batch if isinstance(batch, arrow.Table) else arrow.Table.from_batches([batch])
            if given.schema.names != self.schema.names:
                expected, got = (", ".join(schema.names) for schema in (self.schema, given.schema))
                raise ParameterError(f"expected the columns {expected} in each batch, got {got}")
            for table in _cut(self._alike(given), max(1, self._work.share // 4)):
                rows += len(table)
                if self._is_kept:
                    size += table.nbytes
                    self._held.append(table)
                    if size > self._work.share or self._file:
                        self._move()
                yield table
        self.rows = rows

    def _alike(self, given: Any) -> Any:
        """A batch in the types of the first one."""
        import pyarrow as arrow

        try:
            return given.cast(self.schema)
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
            pairs = [pair for pair in zip(self.schema, given.schema, strict=True) if pair[0].type != pair[1].type]
            expected, got = (
                ", ".join(f"{field.name}: {field.type}" for field in fields) for fields in zip(*pairs, strict=True)
            )
            raise DtypeError(
                f"expected {expected} in each batch, got {got} ({error}): give batches of one schema"
            ) from None

    def _move(self) -> None:
        """Move what is held to the file."""
        self._file = self._file or self._work.spill.file()
        for table in self._held:
            self._file.write(table)
        self._held = []

    def _again(self) -> Iterator[Any]:
        return iter(self._held) if self._file is None else self._file.read()


def _some(schema: Any, columns: Sequence[str]) -> Any:
    import pyarrow as arrow

    return arrow.schema([schema.field(name) for name in columns])


def _without_views(schema: Any) -> Any:
    """A schema in which text and bytes lie in one buffer: rows of others cannot be taken."""
    import pyarrow as arrow

    def plain(type_: Any) -> Any:
        if arrow.types.is_dictionary(type_):  # whose items become keys
            return arrow.dictionary(type_.index_type, without_views(type_.value_type), type_.ordered)
        return without_views(type_)

    return arrow.schema([field.with_type(plain(field.type)) for field in schema])


def _cut(table: Any, nbytes: int) -> Iterator[Any]:
    """A table in pieces of about so many bytes."""
    if not len(table):
        return
    pieces = -(-table.nbytes // nbytes)
    rows = min(_ROWS_AT_ONCE, max(1, -(-len(table) // max(1, pieces))))
    for begin in range(0, len(table), rows):
        yield table.slice(begin, rows)
