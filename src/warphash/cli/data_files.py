"""Read the data files of a command into a Table of PyArrow, and write its answer.

A column of CSV files is int64 or float64 where that loses nothing, and else text. All rows are seen before this is
decided, and the rows of several files together. Integers are those that are written as Python would write them, so 007
stays text, and so does a column with an integer that is too long for int64: float64 would make equal what differs. An
empty field is a null. A field that is quoted and empty is an empty text, and a null in a file of one column. Dates stay
text, as they were written.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import typer

from ..atomic_file import check, replace
from ..errors import DtypeError, ParameterError, PathError, refused_by_system

__all__ = [
    "FILES",
    "MEMORY",
    "ON",
    "OUT",
    "STANDARD",
    "TEXT",
    "ColumnKind",
    "CsvFile",
    "Needed",
    "about_separators",
    "check_file",
    "check_names",
    "check_output",
    "chosen",
    "is_csv",
    "read",
    "reported",
    "write",
    "write_tables",
]

STANDARD = "-"
"""The name of standard input and of standard output."""

FILES: Any = typer.Argument(
    metavar="FILE...", help="Files .csv, .csv.gz, .tsv or .parquet; - is CSV on standard input."
)
ON: Any = typer.Option("--on", metavar="NAME", help="Columns that are the key: a,b or one by one; all by default.")
OUT: Any = typer.Option("--out", "-o", metavar="FILE", help="Where to write: .csv, .csv.gz, .parquet, or - for CSV.")
MEMORY: Any = typer.Option(
    "--memory", metavar="BYTES", help="Work within so many bytes, such as 2GB: files may be larger than memory."
)
TEXT: Any = typer.Option("--text", help="Take all columns of CSV files as text, numbers too.")

Needed = Callable[[list[str]], list[str]]
"""The columns that are needed, of all names; raises if there is no such column."""

_CSV = (".csv", ".csv.gz")
_TABS = (".tsv", ".tsv.gz")
"""CSV files whose fields have tabs between them. They are read alone."""
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_PARQUET = ".parquet"
_NO_FLOAT = r"^-?(\+|0[0-9]|[0-9]{16})"
"""Numbers that are not written as usual, with a plus or leading zeros, or that have more digits than float64."""
_NO_FLOATS_FROM = 10**15
"""Integers from here on have more digits than float64, too."""

_BROKEN_PIPE = 128 + 13
"""What a shell reports for a command that SIGPIPE ended."""
_TO_QUOTE = '[",\r\n]|^$'
_ROWS_AT_ONCE = 1 << 16


class _File(Protocol):
    names: list[str]

    def read(self, columns: list[str]) -> Any: ...


class CsvFile:
    """A CSV file, whose columns are read as text.

    Attributes
    ----------
    names
        Of its columns.
    """

    def __init__(self, given: str) -> None:
        import pyarrow as arrow
        from pyarrow import csv as arrow_csv

        self._csv, self._text = arrow_csv, arrow.string()
        # Standard input is read once, and a file twice: first to see the names.
        self._content = arrow.py_buffer(sys.stdin.buffer.read()) if given == STANDARD else None
        self._path, self._buffer_reader = given, arrow.BufferReader
        separator = "\t" if given.lower().endswith(_TABS) else ","
        self._parse = arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True)
        with arrow_csv.open_csv(self._source(), parse_options=self._parse) as reader:
            self.names: list[str] = reader.schema.names

    def _source(self) -> Any:
        return self._path if self._content is None else self._buffer_reader(self._content)

    def read(self, columns: list[str]) -> Any:
        """Read columns as text."""
        options = self._as_text(columns)
        return self._csv.read_csv(self._source(), parse_options=self._parse, convert_options=options)

    def batches(self, columns: list[str], nbytes: int) -> Iterator[Any]:
        """Read columns as text, about so many bytes of the file at a time."""
        block = self._csv.ReadOptions(block_size=nbytes)
        with self._csv.open_csv(self._source(), block, self._parse, self._as_text(columns)) as reader:
            yield from reader

    def _as_text(self, columns: list[str]) -> Any:
        return self._csv.ConvertOptions(
            column_types=dict.fromkeys(self.names, self._text),
            include_columns=columns if columns != self.names else [],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=len(self.names) == 1,
        )


class _ParquetFile:
    def __init__(self, given: str) -> None:
        from pyarrow import parquet

        self._path, self._parquet = given, parquet
        self.names: list[str] = parquet.read_schema(given).names

    def read(self, columns: list[str]) -> Any:
        """Read columns in their types."""
        with self._parquet.ParquetFile(self._path) as file:
            return file.read(None if columns == self.names else columns)


def read(paths: Sequence[str], needed: Needed | None = None, *, text: bool = False) -> Any:
    """Read files one behind the other.

    Parameters
    ----------
    paths
        Files with columns of the same names; ``"-"`` for CSV on standard input.
    needed
        Which columns to read; all by default.
    text
        Leave all columns of CSV files text.

    Raises
    ------
    ParameterError
        For a file of another format, one that cannot be read, or one with other columns.
    PathError
        For a path that is no file.
    DtypeError
        If a column has types in two files that have no common one.
    """
    if paths.count(STANDARD) > 1:
        raise ParameterError("standard input (-) can be read once, got - twice: give it once")
    import pyarrow as arrow

    tables: list[Any] = []
    are_csv: list[bool] = []
    names: list[str] = []
    for path in paths:
        with reported(path):
            file = _opened(path)
            names = names or file.names
            check_names(names, file.names, paths[0], path)
            columns = needed(names) if needed else names
            table = file.read(columns if sorted(names) == sorted(set(names)) else file.names)
        tables.append(table)
        are_csv.append(isinstance(file, CsvFile))
    if any(are_csv) and not text:
        of_csv = iter(_with_numbers([table for table, is_csv in zip(tables, are_csv, strict=True) if is_csv]))
        tables = [next(of_csv) if is_csv else table for table, is_csv in zip(tables, are_csv, strict=True)]
    if len(tables) == 1:
        return tables[0]
    alike = all(table.schema.equals(tables[0].schema) for table in tables)
    try:
        return arrow.concat_tables(tables, promote_options="none" if alike else "permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise DtypeError(f"the columns of {', '.join(paths)} have types that do not go together: {error}") from None


def chosen(names: list[str], texts: Sequence[str] | None, option: str) -> list[str]:
    """The columns that an option names, each once, in the order of the option; None: all.

    A text is the name of a column, or several names with commas between them.

    Raises
    ------
    ParameterError
        If there is no such column, or more than one.
    """
    from ..relational.frames import named

    if texts is None:
        option = "the file"
    parts = names if texts is None else [name for text in texts for name in _parts(text, names)]
    try:
        return [names[place] for place in named(names, list(dict.fromkeys(parts)), option)]
    except ParameterError as error:
        raise ParameterError(f"{error}{about_separators(names)}") from None


def about_separators(names: list[str]) -> str:
    """What to say of a file that seems to have another separator than commas."""
    used = next((shown for mark, shown in _OTHER_SEPARATORS.items() if len(names) == 1 and mark in names[0]), None)
    if used is None:
        return ""
    tabs = ", or name a file with tabs .tsv" if used == "tabs" else ""
    return f". The fields of a CSV file have commas between them, and these seem to have {used}: write commas{tabs}"


def check_output(out: str) -> None:
    """Raise if no answer can be written to a path. Called before the work.

    Raises
    ------
    ParameterError
        For another format.
    PathError
        If the path takes no file.
    """
    if out != STANDARD:
        _check_format(out, (*_CSV, _PARQUET), ".csv, .csv.gz or .parquet")
        check(out)


def write(table: Any, out: str) -> None:
    """Write an answer. A file is complete or as it was.

    Raises
    ------
    DtypeError
        If a column cannot be written in this format.
    PathError, MemoryError
        As `atomic_file.replace`.
    """
    from pyarrow import parquet

    _write(out, lambda file: parquet.write_table(table, file), lambda file: _write_csv(table, file))


def write_tables(schema: Any, tables: Iterator[Any], out: str) -> None:
    """Write an answer as it comes: as `write`, but texts in CSV are always quoted."""
    from ..stream.output import write_parquet

    def write_csv(file: Any) -> None:
        _write_head(schema.names, file)
        quoted = not all(map(_is_never_quoted, schema.types))
        for table in tables:
            _write_rows(table, file, quoted)

    _write(out, lambda file: write_parquet(schema, tables, file), write_csv)


def _parts(text: str, names: list[str]) -> list[str]:
    return [text] if text in names else text.split(",")


def _write(out: str, write_parquet: Callable[[BinaryIO], object], write_csv: Callable[[Any], object]) -> None:
    import pyarrow as arrow

    def write_to(file: BinaryIO) -> None:
        if out.lower().endswith(_PARQUET):
            write_parquet(file)
        elif out.lower().endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file) as compressed:  # leaves the file open
                write_csv(compressed)
        else:
            write_csv(file)

    try:
        if out == STANDARD:
            _write_to_standard_output(write_csv)
        else:
            replace(out, write_to)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        mend = "leave that column out" if out.endswith(_PARQUET) else "give -o FILE.parquet"
        raise DtypeError(f"a column cannot be written to {_shown(out)}: {error}; {mend}") from None


def _check_format(path: str, endings: tuple[str, ...], shown: str) -> None:
    if not path.lower().endswith(endings):
        raise ParameterError(f"expected a file {shown}, got {path!r}: give it one of these endings")


def _shown(path: str) -> str:
    return "CSV" if path == STANDARD else path


def _opened(path: str) -> _File:
    if path == STANDARD:
        return CsvFile(path)
    check_file(path)
    return CsvFile(path) if is_csv(path) else _ParquetFile(path)


def is_csv(path: str) -> bool:
    """Whether a path is that of a CSV file, also with tabs, by its ending; standard input is one."""
    return path == STANDARD or path.lower().endswith((*_CSV, *_TABS))


def check_file(path: str) -> None:
    """Raise unless there is a file of a format that can be read."""
    if not Path(path).exists():
        raise PathError(f"there is no file {path!r}: give the path of a file, or - for standard input")
    if Path(path).is_dir():
        raise PathError(f"{path} is a folder: give the path of a file")
    _check_format(path, (*_CSV, *_TABS, _PARQUET), ".csv, .csv.gz, .tsv or .parquet")


@contextlib.contextmanager
def reported(path: str) -> Iterator[None]:
    """Errors of PyArrow as errors of the file."""
    import pyarrow as arrow

    try:
        yield
    except (PathError, MemoryError):
        raise
    except (arrow.ArrowException, OSError) as error:
        kind = "Parquet" if path.lower().endswith(_PARQUET) else "CSV"
        shown = "standard input" if path == STANDARD else path
        first_line = str(error).strip().partition("\n")[0]
        raise ParameterError(f"{shown} is no {kind} file that can be read: {first_line}") from None


def check_names(names: list[str], others: list[str], first: str, path: str) -> None:
    """Raise `ParameterError` unless two files have columns of the same names."""
    if sorted(names) != sorted(others) or (names != others and len(set(names)) < len(names)):
        raise ParameterError(
            f"expected the columns of {first} in {path}, too ({', '.join(names)}), got {', '.join(others)}: "
            "give files with the same columns"
        )


def _with_numbers(tables: list[Any]) -> list[Any]:
    """Tables of text whose columns are numbers where all tables hold numbers that are written as text alike."""
    import pyarrow as arrow

    names = tables[0].column_names
    whole = arrow.concat_tables([table if table.column_names == names else table.select(names) for table in tables])
    columns = [_numbers(column) for column in whole.columns]
    typed, begin = arrow.table(columns, names=names), 0
    parts = []
    for table in tables:
        parts.append(typed.slice(begin, len(table)))
        begin += len(table)
    return parts


def _numbers(column: Any) -> Any:
    """A column of text as numbers, if that loses nothing."""
    kind = ColumnKind()
    kind.see(column)
    return column.cast(kind.type)


class ColumnKind:
    """What a column of text is: numbers, if that loses nothing. Told of the column piece by piece.

    Attributes
    ----------
    is_empty
        All items are nulls.
    """

    def __init__(self) -> None:
        self.is_empty = True
        self._are_integers = self._as_written = self._are_floats = True

    def see(self, column: Any) -> None:
        """See a piece."""
        import pyarrow as arrow
        from pyarrow import compute

        if column.null_count == len(column):
            return
        self.is_empty = False
        whole = _cast(column, arrow.int64()) if self._are_integers else None
        if whole is None:
            self._are_integers = False
        elif compute.all(compute.equal(compute.cast(whole, arrow.string()), column)).as_py():
            ends = compute.min_max(whole).as_py()
            self._are_floats &= ends["min"] > -_NO_FLOATS_FROM and ends["max"] < _NO_FLOATS_FROM
            return
        else:
            self._as_written = False
        if self._are_floats:
            has_others = compute.any(compute.match_substring_regex(column, _NO_FLOAT)).as_py()
            self._are_floats = not has_others and _cast(column, arrow.float64()) is not None

    @property
    def type(self) -> Any:
        """Of PyArrow."""
        import pyarrow as arrow

        if not self.is_empty and self._are_integers and self._as_written:
            return arrow.int64()
        is_real = not self.is_empty and not self._are_integers and self._are_floats
        return arrow.float64() if is_real else arrow.string()


def _cast(column: Any, type_: Any) -> Any:
    """A column of text as numbers; None if it is no column of such."""
    import pyarrow as arrow

    try:
        return column.cast(type_)
    except arrow.ArrowInvalid:
        return None


def _write_to_standard_output(write_csv: Callable[[Any], object]) -> None:
    try:
        sys.stdout.flush()
        write_csv(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes standard output at its end
        raise typer.Exit(_BROKEN_PIPE) from None
    except OSError as error:
        raise refused_by_system(error, "standard output", "give -o FILE") from None


def _write_csv(table: Any, file: Any) -> None:
    """Write CSV. Texts are quoted if one of them has to be."""
    _write_head(table.column_names, file)
    _write_rows(table, file, any(map(_has_to_be_quoted, table.columns)))


def _write_head(names: Sequence[str], file: Any) -> None:
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(names)
    file.write(head.getvalue().encode())


def _write_rows(table: Any, file: Any, quoted: bool) -> None:
    """Write rows of CSV.

    A null in a single column is a quoted empty text, as Python's csv and pandas have it: readers skip an empty line.
    """
    import pyarrow as arrow
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    if table.num_columns == 1 and table.column(0).null_count:
        table = arrow.table([compute.fill_null(table.column(0).cast(arrow.string()), "")], names=table.column_names)
        quoted = True
    options = arrow_csv.WriteOptions(
        include_header=False, batch_size=_ROWS_AT_ONCE, quoting_style="needed" if quoted else "none"
    )
    arrow_csv.write_csv(table, file, options)


def _has_to_be_quoted(column: Any) -> bool:
    from pyarrow import compute

    if _is_never_quoted(column.type):
        return False
    if not _is_text(column.type):
        return True
    return bool(compute.any(compute.match_substring_regex(column, _TO_QUOTE)).as_py())


def _is_never_quoted(type_: Any) -> bool:
    import pyarrow as arrow

    return bool(arrow.types.is_primitive(type_))


def _is_text(type_: Any) -> bool:
    import pyarrow as arrow

    return bool(arrow.types.is_string(type_) or arrow.types.is_large_string(type_))
