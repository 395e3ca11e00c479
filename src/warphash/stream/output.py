"""Where an answer goes: a Parquet file that is complete or absent, or a reader of batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .. import atomic_file
from ..errors import ParameterError
from .partition import joined_tables
from .workspace import Workspace

__all__ = ["Answer", "answered", "larger_tables"]

_ROWS_OF_GROUP = 1 << 20
"""Rows of a row group, if they fit into half of the share of memory."""

Answer = Callable[[], Iterator[Any]]
"""Does the work, and yields tables of the schema of the answer."""


def answered(work: Workspace, schema: Any, answer: Answer, out: str | os.PathLike[str] | None) -> Any:
    """Write an answer, or give it out.

    Parameters
    ----------
    out
        A path .parquet; None: give a reader, whose work begins when it is first read. Files are removed when it ends,
        when an error ends it, and when nobody refers to it any more.

    Returns
    -------
    rows or reader
        How many rows were written; or a ``RecordBatchReader``.

    Raises
    ------
    ParameterError
        For another path.
    PathError, MemoryError
        As `atomic_file.replace`.
    """
    if out is None:
        import pyarrow as arrow

        return arrow.RecordBatchReader.from_batches(schema, _batches(work, answer))
    if Path(out).suffix.lower() != ".parquet":
        raise ParameterError(f"expected out= to be a path .parquet, got {os.fspath(out)!r}: leave it out for a reader")
    with work:
        atomic_file.check(out)
        rows = 0

        def write(file: BinaryIO) -> None:
            nonlocal rows
            from pyarrow import parquet

            with parquet.ParquetWriter(file, schema) as writer:
                for table in larger_tables(answer(), work):
                    rows += len(table)
                    writer.write_table(table, row_group_size=len(table))

        atomic_file.replace(out, write)
    return rows


def larger_tables(tables: Iterator[Any], work: Workspace) -> Iterator[Any]:
    """Tables as large as a row group should be, of smaller ones."""
    held: list[Any] = []
    rows = nbytes = 0
    for table in tables:
        held.append(table)
        rows += len(table)
        nbytes += table.nbytes
        if rows >= _ROWS_OF_GROUP or 2 * nbytes >= work.share:
            yield joined_tables(held)
            held, rows, nbytes = [], 0, 0
    if rows:
        yield joined_tables(held)


def _batches(work: Workspace, answer: Answer) -> Iterator[Any]:
    with work:
        for table in answer():
            yield from table.to_batches()
