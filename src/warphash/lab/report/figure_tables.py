"""Print the numbers of a figure in a terminal: a table for each panel, with the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rich import box
from rich.table import Table

from ..figures.catalogue import Figure, Point
from ..figures.experiments import PANEL_METRICS, panel_metric
from .figure_plots import METRICS

__all__ = ["render_figure"]

_MOST_ROWS = 20
"""Most rows for values of x. With more values, such as a hundred batches, the table has the least, median and greatest
value instead."""


def render_figure(figure: Figure, points: list[Point]) -> Iterator[Table]:
    """Tables with a row for each x and a column for each series. The paper's value, if there is one, is in brackets."""
    for panel in figure.panels:
        mine = [p for p in points if p.panel == panel]
        if not mine:
            continue
        metric = PANEL_METRICS[panel_metric(panel)] if figure.metric == "panel" else METRICS[figure.metric]
        table = Table(
            title=f"[bold]{panel}[/]: {metric}",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=0,
            title_justify="left",
            min_width=72,
        )
        series = [s.label for s in figure.series if any(p.series == s.label for p in mine)]
        spread = len({p.x for p in mine}) > _MOST_ROWS
        table.add_column(figure.x.replace("_", " ") if not spread else "", no_wrap=True)
        for name in series:
            table.add_column(name.replace(", ", "\n"), justify="right")
        for row in _spread(mine, series) if spread else _values(figure, panel, mine, series):
            table.add_row(*row)
        yield table


def _values(figure: Figure, panel: str, points: list[Point], series: list[str]) -> Iterator[list[str]]:
    ours = {(p.series, p.x, p.part): p.value for p in points}
    papers = {(p.series, p.x): p.value for p in figure.published if p.panel == panel}
    parts = list(dict.fromkeys(p.part for p in points if p.part))
    for x in sorted({p.x for p in points}):
        for part in (*parts, ""):
            cells = []
            for name in series:
                value = ours.get((name, x, part))
                paper = f" ({papers[name, x]:g})" if (name, x) in papers and not part else ""
                cells.append("" if value is None else _number(value) + paper)
            yield [f"  {part}" if part else f"{x:,g}" if x < 1e6 else f"{x:,.0f}", *cells]


def _spread(points: list[Point], series: list[str]) -> Iterator[list[str]]:
    values = [[p.value for p in points if p.series == name] for name in series]
    yield ["least", *(_number(min(its)) for its in values)]
    yield ["median", *(_number(median(its)) for its in values)]
    yield ["most", *(_number(max(its)) for its in values)]
    yield ["most / median", *(_number(max(its) / median(its)) if median(its) else "" for its in values)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
