"""Where an answer goes: a Parquet file that is complete or absent, or a reader of batches."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .. import atomic_file
from ..errors import ParameterError
from .partition import larger_tables
from .workspace import Workspace

__all__ = ["Answer", "answered", "row_groups", "write_parquet"]

_ROWS_OF_GROUP = 1 << 20
"""Rows of a row group, if they fit into half of the share of memory."""

_SAMPLED = 1 << 14

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
    if not isinstance(out, str | os.PathLike) or Path(out).suffix.lower() != ".parquet":
        got = os.fspath(out) if isinstance(out, os.PathLike) else out
        raise ParameterError(f"expected out= to be a path .parquet, got {got!r}: leave it out for a reader")
    with work:
        atomic_file.check(out)
        rows = 0

        def write(file: BinaryIO) -> None:
            nonlocal rows
            rows = write_parquet(schema, row_groups(answer(), work), file)

        atomic_file.replace(out, write)
    return rows


def row_groups(tables: Iterator[Any], work: Workspace) -> Iterator[Any]:
    """Tables as large as row groups of a file should be, of smaller ones."""
    return larger_tables(tables, work.share // 2, _ROWS_OF_GROUP)


def write_parquet(schema: Any, tables: Iterator[Any], file: BinaryIO) -> int:
    """Write tables to a Parquet file, each as a row group, and return how many rows these are."""
    from pyarrow import parquet

    first, rows = next(tables, schema.empty_table()), 0
    with parquet.ParquetWriter(file, schema, use_dictionary=_repeating(first)) as writer:
        for table in itertools.chain([first], tables):
            rows += len(table)
            writer.write_table(table, row_group_size=max(1, len(table)))
    return rows


def _repeating(table: Any) -> list[str]:
    """The columns to write by a dictionary: those whose first values repeat.

    The writer begins a dictionary of any column. Of one whose values differ, that takes eight times as long.
    """
    import pyarrow as arrow
    from pyarrow import compute

    names = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        some = column.slice(0, _SAMPLED)
        try:
            repeats = 2 * compute.count_distinct(some).as_py() <= len(some)
        except arrow.ArrowNotImplementedError:  # of a type that holds others
            repeats = True
        if repeats:
            names.append(name)
    return names


def _batches(work: Workspace, answer: Answer) -> Iterator[Any]:
    with work:
        for table in answer():
            yield from table.to_batches()
