"""The data files of a command as streams, for ``--memory``: read in pieces, more than once, and written as rows come.

Columns of CSV files have the types that they have without ``--memory`` (`data_files`). So all rows are looked at once
before the work begins. Standard input is copied to a file first.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from ..errors import DtypeError, ParameterError
from ..relational.frames import named
from ..stream.output import row_groups
from ..stream.progress import counted
from ..stream.sources import Source
from ..stream.sources import opened as opened_source
from ..stream.spill import SpillFolder
from ..stream.workspace import Workspace
from .data_files import (
    STANDARD,
    ColumnKind,
    CsvFile,
    Needed,
    check_file,
    check_names,
    is_csv,
    reported,
    write_tables,
)

__all__ = ["FileSource", "Streams", "check_order"]

_LEAST_BLOCK, _MOST_BLOCK = 1 << 16, 1 << 20
"""Bytes of a CSV file that are parsed at one time."""


def check_order(sort: bool) -> None:
    """Raise `ParameterError` if rows are to be sorted: that takes all of them in memory."""
    if sort:
        raise ParameterError("--sort takes all rows in memory: leave --memory out, or --sort")


class FileSource:
    """Rows of files, one behind the other, as a `Source`.

    Parameters
    ----------
    paths
        What the caller named.
    read_from
        Where it is: the same paths, but for standard input.
    """

    def __init__(
        self, paths: Sequence[str], read_from: Sequence[str], needed: Needed | None, text: bool, work: Workspace
    ) -> None:
        self._paths, self._work = paths, work
        self._files: list[_Csv | Source] = []
        names: list[str] = []
        for path, place in zip(paths, read_from, strict=True):
            with reported(path):
                file = _Csv(place) if is_csv(path) else opened_source(place, work)
            found = file.names if isinstance(file, _Csv) else file.schema.names
            named(found, found, path)  # none repeats
            names = names or found
            check_names(names, found, paths[0], path)
            self._files.append(file)
        columns = needed(names) if needed else names
        self._kinds = {name: ColumnKind() for name in columns}
        self.rows = self._looked_at(columns)
        self.schema = self._schema(columns, text)

    def is_empty(self, name: str) -> bool:
        """Whether a column holds nothing in CSV files, which are all files."""
        return all(isinstance(file, _Csv) for file in self._files) and self._kinds[name].is_empty

    def retype(self, name: str, type_: Any) -> None:
        """Give a column that holds nothing another type."""
        place = self.schema.names.index(name)
        self.schema = self.schema.set(place, self.schema.field(name).with_type(type_))

    def tables(self, columns: list[str], nbytes: int) -> Iterator[Any]:
        """As of `Source`."""
        import pyarrow as arrow

        schema = arrow.schema([self.schema.field(name) for name in columns])
        for path, file in zip(self._paths, self._files, strict=True):
            with reported(path):
                for table in file.tables(columns, nbytes):
                    yield table.cast(schema)

    def _looked_at(self, columns: list[str]) -> int:
        """Look at all rows of CSV files, and return how many rows there are in all files."""
        rows = sum(file.rows or 0 for file in self._files if not isinstance(file, _Csv))
        for path, file in zip(self._paths, self._files, strict=True):
            if not isinstance(file, _Csv):
                continue
            with reported(path):
                for table in counted(self._work.progress, "look", None, file.tables(columns, self._work.share // 4)):
                    rows += len(table)
                    for name in columns:
                        self._kinds[name].see(table[name])
        return rows

    def _schema(self, columns: list[str], text: bool) -> Any:
        import pyarrow as arrow

        of_csv = arrow.schema([(name, arrow.string() if text else self._kinds[name].type) for name in columns])
        schemas = [
            of_csv if isinstance(file, _Csv) else arrow.schema([file.schema.field(name) for name in columns])
            for file in self._files
        ]
        try:
            return arrow.unify_schemas(schemas, promote_options="permissive")
        except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
            shown = ", ".join(self._paths)
            raise DtypeError(f"the columns of {shown} have types that do not go together: {error}") from None


class _Csv:
    def __init__(self, place: str) -> None:
        self._file = CsvFile(place)
        self.names = self._file.names

    def tables(self, columns: list[str], nbytes: int) -> Iterator[Any]:
        import pyarrow as arrow

        for batch in self._file.batches(columns, min(_MOST_BLOCK, max(_LEAST_BLOCK, nbytes))):
            yield arrow.Table.from_batches([batch])


class Streams:
    """The files of one command, in a ``with``.

    Parameters
    ----------
    memory
        Bytes to work in, as of ``--memory``.
    out
        Where the answer goes.

    Attributes
    ----------
    means
        Keywords for the verbs of `warphash.stream`.
    """

    def __init__(self, memory: str, out: str) -> None:
        self._work, self._out = Workspace(memory, progress=True), out
        self._copies = SpillFolder()
        self.means: dict[str, Any] = {"memory": memory, "progress": self._work.progress}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._work.__exit__(*error)
        self._copies.close()

    def opened(self, paths: Sequence[str], needed: Needed | None = None, *, text: bool = False) -> FileSource:
        """Open files, and look at the rows of those of CSV. Arguments and exceptions are those of `data_files.read`."""
        if list(paths).count(STANDARD) > 1:
            raise ParameterError("standard input (-) can be read once, got - twice: give it once")
        for path in paths:
            if path != STANDARD:
                check_file(path)
        read_from = [self._copied() if path == STANDARD else path for path in paths]
        return FileSource(paths, read_from, needed, text, self._work)

    def write(self, reader: Any, top: int | None = None, seen: Callable[[Any], None] = lambda table: None) -> int:
        """Write an answer, of which ``top`` rows, and return how many rows there are.

        Parameters
        ----------
        seen
            Called with each table that is written.
        """
        import pyarrow as arrow

        rows = 0

        def tables() -> Iterator[Any]:
            nonlocal rows
            for batch in reader:
                table = arrow.Table.from_batches([batch]).slice(0, None if top is None else max(0, top - rows))
                rows += len(batch)
                if len(table):
                    seen(table)
                    yield table

        write_tables(reader.schema, row_groups(tables(), self._work), self._out)
        return rows

    def _copied(self) -> str:
        path: Path = self._copies.path()
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return str(path)
