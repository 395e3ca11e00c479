"""`warphash group`: sums, means and other aggregates of data files, for each key."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..errors import ParameterError
from . import data_files
from .data_files import FILES, MEMORY, OUT, STANDARD, TEXT
from .summary import Work

__all__ = ["group"]


def group(
    files: Annotated[list[str], FILES],
    on: Annotated[list[str], typer.Option(metavar="NAME", help="Columns that are the key: a,b or one by one.")],
    agg: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=COLUMN:OPERATION",
            help="A column of the answer, such as total=price:sum; NAME=size counts rows. Operations: count, nunique, "
            "sum, prod, mean, median, var, std, min, max, argmin, argmax, first, last, any, all.",
        ),
    ],
    out: Annotated[str, OUT] = STANDARD,
    sort: Annotated[bool, typer.Option("--sort", help="In ascending order, not in that of first appearance.")] = False,
    text: Annotated[bool, TEXT] = False,
    memory: Annotated[str | None, MEMORY] = None,
) -> None:
    """Summarise columns for each key.

    Groups come in the order in which their keys first appear.
    """
    from .. import group_by

    work = Work(out)
    data_files.check_output(out)
    asked = dict(map(_aggregate, agg))
    if len(asked) < len(agg):
        raise ParameterError("two --agg have one name: give each a name of its own")

    def needed(names: list[str]) -> list[str]:
        columns = [column for given in asked.values() if given != "size" for column in given[:1]]
        summarised = data_files.chosen(names, columns, "--agg") if columns else []
        return list(dict.fromkeys(data_files.chosen(names, on, "--on") + summarised))

    if memory is not None:
        from .. import stream
        from .data_streams import Streams, check_order

        check_order(sort)
        with Streams(memory, out) as streams:
            with work.step("look", shown=False):
                source = streams.opened(files, needed, text=text)
            keys = data_files.chosen(source.schema.names, on, "--on")
            with work.step("group", shown=False):
                groups = streams.write(stream.group_by(source, keys, asked, **streams.means))
        work.report(rows_in=source.rows, groups=groups, rows_out=groups)
        return
    with work.step("read"):
        table = data_files.read(files, needed, text=text)
    keys = data_files.chosen(table.column_names, on, "--on")
    with work.step("group"):
        rows = group_by(table, keys, order="sorted" if sort else "first").agg(**asked)
    with work.step("write"):
        data_files.write(rows, out)
    work.report(rows_in=len(table), groups=len(rows), rows_out=len(rows))


def _aggregate(text: str) -> tuple[str, Any]:
    """The name of an answer, and what `group_by` makes it of."""
    name, _, asked = text.partition("=")
    column, _, operation = asked.rpartition(":")
    if name and asked == "size":
        return name, "size"
    if not (name and column and operation):
        raise ParameterError(
            f"expected --agg NAME=COLUMN:OPERATION or NAME=size, such as total=price:sum, got {text!r}"
        )
    if "," in operation:
        raise ParameterError(f"expected one answer in each --agg, got {text!r}: give --agg again for the next one")
    return name, (column, operation)
