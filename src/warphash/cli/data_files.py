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
from ..errors import DtypeError, ParameterError, PathError

__all__ = ["FILES", "ON", "OUT", "STANDARD", "TEXT", "check_output", "chosen", "read", "write"]

STANDARD = "-"
"""The name of standard input and of standard output."""

FILES: Any = typer.Argument(metavar="FILE...", help="Files .csv, .csv.gz or .parquet; - is CSV on standard input.")
ON: Any = typer.Option("--on", metavar="NAME", help="Columns that are the key: a,b or one by one; all by default.")
OUT: Any = typer.Option("--out", "-o", metavar="FILE", help="Where to write: .csv, .csv.gz, .parquet, or - for CSV.")
TEXT: Any = typer.Option("--text", help="Take all columns of CSV files as text, numbers too.")

Needed = Callable[[list[str]], list[str]]
"""The columns that are needed, of all names; raises if there is no such column."""

_CSV = (".csv", ".csv.gz")
_PARQUET = ".parquet"
_NO_FLOAT = r"^-?(\+|0[0-9]|[0-9]{16})"
"""Numbers that are not written as usual, with a plus or leading zeros, or that have more digits than float64."""
_BROKEN_PIPE = 128 + 13
"""What a shell reports for a command that SIGPIPE ended."""
_TO_QUOTE = '[",\r\n]|^$'
_ROWS_AT_ONCE = 1 << 16


class _File(Protocol):
    names: list[str]

    def read(self, columns: list[str]) -> Any: ...


class _CsvFile:
    def __init__(self, given: str) -> None:
        import pyarrow as arrow
        from pyarrow import csv as arrow_csv

        self._csv, self._text = arrow_csv, arrow.string()
        # Standard input is read once, and a file twice: first to see the names.
        self._content = arrow.py_buffer(sys.stdin.buffer.read()) if given == STANDARD else None
        self._path, self._buffer_reader = given, arrow.BufferReader
        self._parse = arrow_csv.ParseOptions(newlines_in_values=True)
        with arrow_csv.open_csv(self._source(), parse_options=self._parse) as reader:
            self.names: list[str] = reader.schema.names

    def _source(self) -> Any:
        return self._path if self._content is None else self._buffer_reader(self._content)

    def read(self, columns: list[str]) -> Any:
        """Read columns as text."""
        options = self._csv.ConvertOptions(
            column_types=dict.fromkeys(self.names, self._text),
            include_columns=columns if columns != self.names else [],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=len(self.names) == 1,
        )
        return self._csv.read_csv(self._source(), parse_options=self._parse, convert_options=options)


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
        with _reported(path):
            file = _opened(path)
            names = names or file.names
            _check_names(names, file.names, paths[0], path)
            columns = needed(names) if needed else names
            table = file.read(columns if sorted(names) == sorted(set(names)) else file.names)
        tables.append(table)
        are_csv.append(isinstance(file, _CsvFile))
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

    parts = names if texts is None else [name for text in texts for name in _parts(text, names)]
    return [names[place] for place in named(names, list(dict.fromkeys(parts)), option)]


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
        _check_format(out)
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
    import pyarrow as arrow

    try:
        if out == STANDARD:
            _write_to_standard_output(table)
        else:
            replace(out, lambda file: _write_to(table, file, out))
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        mend = "leave that column out" if out.endswith(_PARQUET) else "give -o FILE.parquet"
        raise DtypeError(f"a column cannot be written to {_shown(out)}: {error}; {mend}") from None


def _parts(text: str, names: list[str]) -> list[str]:
    return [text] if text in names else text.split(",")


def _check_format(path: str) -> None:
    if not path.lower().endswith((*_CSV, _PARQUET)):
        raise ParameterError(f"expected a file .csv, .csv.gz or .parquet, got {path!r}: give it one of these endings")


def _shown(path: str) -> str:
    return "CSV" if path == STANDARD else path


def _opened(path: str) -> _File:
    if path == STANDARD:
        return _CsvFile(path)
    if not Path(path).exists():
        raise PathError(f"there is no file {path!r}: give the path of a file, or - for standard input")
    if Path(path).is_dir():
        raise PathError(f"{path} is a folder: give the path of a file")
    _check_format(path)
    return _ParquetFile(path) if path.lower().endswith(_PARQUET) else _CsvFile(path)


@contextlib.contextmanager
def _reported(path: str) -> Iterator[None]:
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


def _check_names(names: list[str], others: list[str], first: str, path: str) -> None:
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
    import pyarrow as arrow
    from pyarrow import compute

    if column.null_count == len(column):
        return column
    with contextlib.suppress(arrow.ArrowInvalid):
        whole = compute.cast(column, arrow.int64())
        return whole if compute.all(compute.equal(compute.cast(whole, arrow.string()), column)).as_py() else column
    with contextlib.suppress(arrow.ArrowInvalid):
        real = compute.cast(column, arrow.float64())
        return column if compute.any(compute.match_substring_regex(column, _NO_FLOAT)).as_py() else real
    return column


def _write_to_standard_output(table: Any) -> None:
    try:
        sys.stdout.flush()
        _write_csv(table, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes standard output at its end
        raise typer.Exit(_BROKEN_PIPE) from None


def _write_to(table: Any, file: BinaryIO, out: str) -> None:
    from pyarrow import parquet

    if out.lower().endswith(_PARQUET):
        parquet.write_table(table, file)
    elif out.lower().endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", fileobj=file) as compressed:  # leaves the file open
            _write_csv(table, compressed)
    else:
        _write_csv(table, file)


def _write_csv(table: Any, file: Any) -> None:
    """Write CSV. Texts are quoted if one of them has to be.

    A null in a single column is a quoted empty text, as Python's csv and pandas have it: readers skip an empty line.
    """
    import pyarrow as arrow
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(table.column_names)
    if table.num_columns == 1 and table.column(0).null_count:
        table = arrow.table([compute.fill_null(table.column(0).cast(arrow.string()), "")], names=table.column_names)
    quoted = any(_has_to_be_quoted(column) for column in table.columns)
    options = arrow_csv.WriteOptions(
        include_header=False, batch_size=_ROWS_AT_ONCE, quoting_style="needed" if quoted else "none"
    )
    file.write(head.getvalue().encode())
    arrow_csv.write_csv(table, file, options)


def _has_to_be_quoted(column: Any) -> bool:
    import pyarrow as arrow
    from pyarrow import compute

    texts = arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type)
    if not texts:
        return not arrow.types.is_primitive(column.type)
    return bool(compute.any(compute.match_substring_regex(column, _TO_QUOTE)).as_py())
