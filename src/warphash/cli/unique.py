"""`warphash unique`: the distinct rows of data files."""

from __future__ import annotations

from typing import Annotated

import typer

from . import data_files
from .data_files import FILES, MEMORY, ON, OUT, STANDARD, TEXT
from .ranks import DISTRIBUTED
from .summary import Work

__all__ = ["unique"]


def unique(
    files: Annotated[list[str], FILES],
    on: Annotated[list[str] | None, ON] = None,
    out: Annotated[str, OUT] = STANDARD,
    sort: Annotated[bool, typer.Option("--sort", help="In ascending order, not in that of first appearance.")] = False,
    text: Annotated[bool, TEXT] = False,
    memory: Annotated[str | None, MEMORY] = None,
    distributed: Annotated[bool, DISTRIBUTED] = False,
) -> None:
    """Print the distinct values of columns of CSV and Parquet files.

    Rows come in the order of first appearance. Several files are read one behind the other.
    """
    from .. import unique as distinct

    work = Work(out)
    if distributed:
        _share(files, on, work, out, memory, sort, text)
        return
    data_files.check_output(out)
    if memory is not None:
        _stream(files, on, work, out, memory, sort, text)
        return
    with work.step("read"):
        table = data_files.read(files, lambda names: data_files.chosen(names, on, "--on"), text=text)
    with work.step("unique"):
        rows = distinct(table.select(data_files.chosen(table.column_names, on, "--on")), sorted=sort)
    with work.step("write"):
        data_files.write(rows, out)
    work.report(rows_in=len(table), distinct_keys=len(rows), rows_out=len(rows))


def _stream(paths: list[str], on: list[str] | None, work: Work, out: str, memory: str, sort: bool, text: bool) -> None:
    from .. import stream
    from .data_streams import Streams, check_order

    check_order(sort)
    with Streams(memory, out) as streams:
        with work.step("look", shown=False):
            source = streams.opened(paths, lambda names: data_files.chosen(names, on, "--on"), text=text)
        with work.step("unique", shown=False):
            rows = streams.write(stream.unique(source, **streams.means))
    work.report(rows_in=source.rows, distinct_keys=rows, rows_out=rows)


def _share(
    paths: list[str], on: list[str] | None, work: Work, out: str, memory: str | None, sort: bool, text: bool
) -> None:
    from .ranks import MEMORY, Ranks

    with Ranks(work, paths, out, sort=sort, text=text) as ranks:
        from ..distributed import datasets

        names, rows = ranks.looked_at(paths)
        with ranks.step("unique"):
            written = datasets.unique(paths, data_files.chosen(names, on, "--on"), out, memory=memory or MEMORY)
        ranks.report(rows_in=rows, distinct_keys=written, rows_out=written)
