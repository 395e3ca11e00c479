"""`warphash count`: how often each key of data files appears."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ..errors import ParameterError
from . import data_files
from .data_files import FILES, MEMORY, ON, OUT, STANDARD, TEXT
from .ranks import DISTRIBUTED
from .summary import Work

__all__ = ["count"]

_BARS = 20
_LONGEST_LABEL = 40


class _Shown(NamedTuple):
    """What is shown of the counts."""

    top: int | None
    name: str
    plot: Path | None


def count(
    files: Annotated[list[str], FILES],
    on: Annotated[list[str] | None, ON] = None,
    out: Annotated[str, OUT] = STANDARD,
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the N most frequent.")] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the column with the counts.")] = "count",
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for a picture of the most frequent, such as x.png.")
    ] = None,
    text: Annotated[bool, TEXT] = False,
    memory: Annotated[str | None, MEMORY] = None,
    distributed: Annotated[bool, DISTRIBUTED] = False,
) -> None:
    """Count how often each value of columns appears, the most frequent first.

    Values that appear equally often come in the order of first appearance. Nulls are a value like others.
    """
    from .. import value_counts

    work = Work(out)
    if distributed:
        _share(files, on, work, out, memory, _Shown(top, name, plot), text)
        return
    data_files.check_output(out)
    if plot:
        from ..lab.report.plots import check_picture

        check_picture(plot)
        if out != STANDARD and plot.resolve() == Path(out).resolve():
            raise ParameterError(f"--out and --plot are both {out}: give two files")
    if memory is not None:
        _stream(files, on, work, out, memory, _Shown(top, name, plot), text)
        return
    with work.step("read"):
        table = data_files.read(files, lambda names: data_files.chosen(names, on, "--on"), text=text)
    keys = data_files.chosen(table.column_names, on, "--on")
    _check_name(name, keys)
    with work.step("count"):
        rows, counts = value_counts(table.select(keys), dropna=False)
        counted = rows.append_column(name, counts).slice(0, top)
    with work.step("write"):
        data_files.write(counted, out)
        if plot:
            _draw(counted, plot)
    work.report(rows_in=len(table), distinct_keys=len(rows), rows_out=len(counted))


def _check_name(name: str, keys: list[str]) -> None:
    if name in keys:
        raise ParameterError(f"a key and the counts would both be named {name!r}: give --name for the counts")


def _stream(
    paths: list[str],
    on: list[str] | None,
    work: Work,
    out: str,
    memory: str,
    shown: _Shown,
    text: bool,
) -> None:
    from .. import stream
    from .data_streams import Streams

    drawn: list[Any] = []

    def seen(table: Any) -> None:
        if not drawn:
            drawn.append(table.slice(0, _BARS))

    with Streams(memory, out) as streams:
        with work.step("look", shown=False):
            source = streams.opened(paths, lambda names: data_files.chosen(names, on, "--on"), text=text)
        _check_name(shown.name, source.schema.names)
        with work.step("count", shown=False):
            answer = stream.count(source, name=shown.name, **streams.means)
            rows = streams.write(answer, shown.top, seen)
            if shown.plot:
                _draw(drawn[0] if drawn else answer.schema.empty_table(), shown.plot)
    work.report(rows_in=source.rows, distinct_keys=rows, rows_out=rows if shown.top is None else min(shown.top, rows))


def _share(
    paths: list[str], on: list[str] | None, work: Work, out: str, memory: str | None, shown: _Shown, text: bool
) -> None:
    from .ranks import MEMORY, Ranks

    with Ranks(work, paths, out, top=shown.top, plot=shown.plot, text=text) as ranks:
        from ..distributed import datasets

        names, rows = ranks.looked_at(paths)
        keys = data_files.chosen(names, on, "--on")
        _check_name(shown.name, keys)
        with ranks.step("count"):
            written = datasets.count(paths, keys, out, name=shown.name, memory=memory or MEMORY)
        ranks.report(rows_in=rows, distinct_keys=written, rows_out=written)


def _draw(counted: Any, path: Path) -> None:
    """Draw a bar for each of the first rows, whose last column has the counts."""
    import matplotlib.pyplot as plt

    from ..lab.report.plots import PALETTE, save_picture, style

    shown = counted.slice(0, _BARS)
    *keys, counts = [column.to_pylist() for column in shown.columns]
    labels = [_label(", ".join(map(str, items))) for items in zip(*keys, strict=True)]
    with plt.rc_context(style()):
        figure, axes = plt.subplots(figsize=(8, 1.2 + 0.28 * len(labels)), layout="constrained")
        bars = axes.barh(range(len(labels)), counts, color=PALETTE["warphash"], height=0.7)
        axes.bar_label(bars, [f"{number:,}" for number in counts], padding=3)
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        axes.margins(x=0.12)
        axes.set_title(f"Rows by {', '.join(shown.column_names[:-1])}: the {len(labels)} most frequent")
        try:
            save_picture(figure, path, dpi=150)
        finally:
            plt.close(figure)


def _label(text: str) -> str:
    """A text for a bar: not too long, and without the signs that matplotlib takes for formulas."""
    text = text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
    return text.replace("$", r"\$")
