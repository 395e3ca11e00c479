"""Where an answer goes: a Parquet file that is complete or absent, or a reader of batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .. import atomic_file
from ..errors import ParameterError
from .partition import larger_tables
from .workspace import Workspace

__all__ = ["Answer", "answered"]

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
                for table in larger_tables(answer(), work.share // 2, _ROWS_OF_GROUP):
                    rows += len(table)
                    writer.write_table(table, row_group_size=len(table))

        atomic_file.replace(out, write)
    return rows


def _batches(work: Workspace, answer: Answer) -> Iterator[Any]:
    with work:
        for table in answer():
            yield from table.to_batches()
