"""`warphash dedupe`: the rows of data files, one of each key."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import typer

from . import data_files
from .data_files import FILES, MEMORY, ON, OUT, STANDARD, TEXT
from .ranks import DISTRIBUTED
from .summary import Work

__all__ = ["Keep", "dedupe"]


class Keep(StrEnum):
    """Which of the rows with one key stays."""

    FIRST, LAST, NONE = "first", "last", "none"


_KEEP: dict[Keep, Literal["first", "last", False]] = {Keep.FIRST: "first", Keep.LAST: "last", Keep.NONE: False}


def dedupe(
    files: Annotated[list[str], FILES],
    on: Annotated[list[str] | None, ON] = None,
    out: Annotated[str, OUT] = STANDARD,
    keep: Annotated[
        Keep, typer.Option(help="Of the rows with one key, the first or the last; or none of them.")
    ] = Keep.FIRST,
    check: Annotated[bool, typer.Option("--check", help="Write no rows; exit with 1 if keys repeat.")] = False,
    text: Annotated[bool, TEXT] = False,
    memory: Annotated[str | None, MEMORY] = None,
    distributed: Annotated[bool, DISTRIBUTED] = False,
) -> None:
    """Drop rows whose key another row has. Rows stay whole and in their order."""
    from .. import drop_duplicates
    from ..errors import ParameterError

    work = Work(out)
    if check and out != STANDARD:
        raise ParameterError("--check writes no rows: leave --out out")
    if distributed:
        _share(files, on, _KEEP[keep], work, None if check else out, memory, text)
        return
    data_files.check_output(out)
    if memory is not None:
        _stream(files, on, _KEEP[keep], work, None if check else out, memory, text)
        return
    with work.step("read"):
        table = data_files.read(files, text=text)
    keys = data_files.chosen(table.column_names, on, "--on")
    with work.step("dedupe"):
        rows = drop_duplicates(table, keys, keep=_KEEP[keep])
    if not check:
        with work.step("write"):
            data_files.write(rows, out)
    work.report(rows_in=len(table), rows_out=0 if check else len(rows), dropped=len(table) - len(rows))
    if check and len(rows) < len(table):
        raise typer.Exit(1)


def _stream(
    paths: list[str],
    on: list[str] | None,
    keep: Literal["first", "last", False],
    work: Work,
    out: str | None,
    memory: str,
    text: bool,
) -> None:
    from .. import stream
    from .data_streams import Streams

    with Streams(memory, out or STANDARD) as streams:
        with work.step("look", shown=False):
            source = streams.opened(paths, text=text)
        keys = data_files.chosen(source.schema.names, on, "--on")
        with work.step("dedupe", shown=False):
            answer = stream.dedupe(source, keys, keep, **streams.means)
            rows = streams.write(answer) if out else sum(map(len, answer))
    work.report(rows_in=source.rows, rows_out=rows if out else 0, dropped=source.rows - rows)
    if out is None and rows < source.rows:
        raise typer.Exit(1)


def _share(
    paths: list[str],
    on: list[str] | None,
    keep: Literal["first", "last", False],
    work: Work,
    out: str | None,
    memory: str | None,
    text: bool,
) -> None:
    from .ranks import MEMORY, Ranks

    with Ranks(work, paths, out, text=text) as ranks:
        from ..distributed import datasets

        names, rows = ranks.looked_at(paths)
        keys = data_files.chosen(names, on, "--on")
        with ranks.step("dedupe"):
            kept = datasets.dedupe(paths, keys, keep, out, memory=memory or MEMORY)
            written = kept if out else ranks.total(len(kept))
        ranks.report(rows_in=rows, rows_out=written if out else 0, dropped=rows - written)
        if out is None and written < rows:
            raise typer.Exit(1)
