"""Draw a figure as in its paper: a panel for each operation, a line for each series, the paper's numbers as rings."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from textwrap import fill, wrap
from typing import Any

from ..data.dynamic_sets import SETS
from ..figures.catalogue import Figure, Point
from ..figures.experiments import PANEL_METRICS, panel_metric
from ..figures.ratios import Compared
from .figure_stacks import AXES, draw_stacks, tick
from .looks import LOOKS, QUIET, stamp
from .plots import save_picture, style

__all__ = ["METRICS", "draw"]

_ABREAST = 5
"""Most panels in a row."""
_MARKED = 30
"""Most points of a line that are drawn with markers. More markers would hide each other."""
_LOGARITHMIC_FROM = 1000
"""Highest over lowest bar from which an axis of bars is logarithmic."""
_TOLD_PER_INCH = 15
"""Characters of the line below the title."""
_BELOW_CHARACTERS = 44
"""Most in a line below a panel."""
_UNIT_CHARACTERS = 34
"""Most in a line of an axis label: a longer line would reach into other panels."""
_TITLES = {
    "build unique": "Insertion",
    "find 100": "Find, all present",
    "find 50": "Find, half present",
    "find 0": "Find, none present",
    "allocate": "One slab for each thread",
    "access": "Random accesses",
    "build": "Insertion",
    "resize up moved": "Upsizing",
    "resize down moved": "Downsizing",
    "resize up stall": "Upsizing: the batch",
    "resize down stall": "Downsizing: the batch",
    "resize up wait": "Upsizing: longest lookup",
    "resize down wait": "Downsizing: longest lookup",
    "resize up usual": "Upsizing: usual lookup",
    "resize down usual": "Downsizing: usual lookup",
    "wide insert": "Insertion",
    "wide hot insert": "Insertion, one key hot",
    "wide present": "Find, all present",
    "wide present share": "All present, of the ceiling",
    "wide absent share": "None present, of the ceiling",
    "sizes keys insert": "Insertion, by the key",
    "sizes keys present": "Find, by the key",
    "sizes keys erase": "Erasure, by the key",
    "sizes values insert": "Insertion, by the value",
    "sizes values present": "Find, by the value",
    "sizes values erase": "Erasure, by the value",
    "chunk time": "Time of a chunk",
    "chunk gain": "Stash less clStash",
    "chunk threshold": "Threshold of the hybrid",
    "board insert": "Insertion",
    "board present": "Find, all present",
    "board half": "Find, half present",
    "board unaided present": "All present, without tickets",
    "board unaided half": "Half present, without tickets",
    "bus ceiling": "Random reads of host memory",
    "bus insert": "Insertion",
    "bus present": "Find, all present",
    "bus half": "Find, half present",
    "bus absent": "Find, none present",
    "profile efficiency": "Lanes at work",
    "profile hits": "Hits of the cache",
    "profile bandwidth": "Share of the memory",
    "profile unique efficiency": "Insertion: lanes at work",
    "profile unique throughput": "Insertion: bytes moved",
    "profile find throughput": "Find: bytes moved",
    "profile unique bandwidth": "Insertion: share of the memory",
    "profile find bandwidth": "Find: share of the memory",
    "profile unique sectors": "Insertion: sectors of the memory",
    "profile find sectors": "Find: sectors of the memory",
    "profile unique requests": "Insertion: sectors of the cache",
    "profile find requests": "Find: sectors of the cache",
    "tiers find": "Find",
    "tiers cached": "Hits of the cache",
    "tiers oracle": "Hits, beside an oracle's",
    "trace build": "Construction",
    "trace insert": "Insertion",
    "trace lookup": "Lookup",
    "trace erase": "Deletion",
    "contest build": "Construction from arrays of the host",
    "order layouts": "Buckets with a layout",
    "sorted build": "Construction behind a sort by buckets",
    "unsorted build": "Construction without a sort",
    "sorted sort": "The sort",
    "routing conflicts": "Conflicts, Σ C(m, 2) / n",
    "routing found": "Find, all present",
    "routing missed": "Find, none present",
    "routing words": "Find, none present: filters",
    "routing added": "Insertion",
    "routing resizes": "Resizes",
    "dynamic rate": "All batches",
    "dynamic batches": "Time of each batch",
    "dynamic load": "Load factor after each batch",
}
_OF_SLICES = {
    "rate": "",
    "concurrency": "\napart, in one launch each",
    "mixing": "\napart, slice by slice",
    "insert": "\ninsertions",
    "present": "\nfinds",
    "half": "\nfinds",
}
"""What a panel of slices shows."""

METRICS = {
    "rate": "million keys per second",
    "mean rate": "million keys per second, mean",
    "operation rate": "million operations per second",
    "allocation rate": "million slabs of 128 bytes per second",
    "access rate": "million accesses per second",
    "contest rate": "million keys per second",
    "time": "milliseconds since the first batch",
    "utilisation": "bytes of pairs over those of slabs",
    "probes": "buckets read per key",
    "sectors": "sectors of 32 bytes per key",
    "success": "share of builds that succeed",
    "failures": "per cent of the distinct keys",
}
"""Axis labels of the metrics. `PANEL_METRICS` has the labels of the metrics that panels name."""

_LOGARITHMIC = {
    **{"keys": 10, "slab_count": 10, "pairs_per_batch": 10},
    **{"buckets": 2, "places": 2, "key_bytes": 2, "row_bytes": 2, "range_slots": 2, "rounds": 2},
}
"""Swept parameters with a logarithmic axis, and the base of the axis."""

_TICKS_AT_VALUES = ("pairs_per_batch", "ticket_bits")
"""Swept parameters whose axis has a tick at each value. Matplotlib's labels would overlap, or be at other numbers."""

_WITHOUT_TABLE = {"bus ceiling": "a kernel\nwithout a table"}
"""Panels whose values depend on no series, and the label of their bar."""


def draw(
    figure: Figure,
    points: list[Point],
    ratios: Sequence[Compared],
    path: Path,
    machine: str,
    n: int,
    made_by: str = "",
) -> None:
    """Draw the measured points and the paper's numbers to a PNG file, and what made it into its corner."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    units = {
        panel: PANEL_METRICS[panel_metric(panel)] if figure.metric == "panel" else METRICS[figure.metric]
        for panel in figure.panels
    }
    for label in {label for label in units.values() if label.startswith("million ")}:
        mine = {panel for panel in figure.panels if units[panel] == label}
        if max((p.value for p in points if p.panel in mine), default=0) >= 1000:
            points = _in_billions(points, mine)
            figure = replace(figure, published=_in_billions(figure.published, mine))
            units |= dict.fromkeys(mine, label.replace("million", "billion", 1))
    sweeps = {panel for panel in figure.panels if _is_sweep(panel, points)}
    panels = _in_rows(figure)
    rows = -(-len(panels) // _ABREAST)
    with mpl.rc_context(style()):
        alone = len(figure.panels) == 1
        across = -(-len(panels) // rows)
        told_below = max(sum(r.ratio.panel == panel for r in ratios) for panel in panels)
        row_height = 3.1 + 0.35 * max(0, told_below - 1)
        width, height = 3.3 * across + (3.3 if alone else 0.4), 1.2 + row_height * rows
        canvas, axes = plt.subplots(rows, across, figsize=(width, height), squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.remove()
        for number, (axis, panel) in enumerate(zip(axes.flat, panels, strict=False)):
            stacked = any(p.part for p in points if p.panel == panel)
            kind = draw_stacks if stacked else _draw_lines if panel in sweeps else _draw_bars
            kind(axis, figure, panel, points)
            axis.set_title(_title(panel, n))
            axis.set_xlabel("\n".join([axis.get_xlabel(), *(_told(r) for r in ratios if r.ratio.panel == panel)]))
            values = [p.value for p in (*points, *figure.published) if p.panel == panel]
            if axis.get_yscale() == "linear" and all(value >= 0 for value in values):
                # The limit that Matplotlib chose cuts markers off where the lowest value is near the highest one.
                axis.set_ylim(0, max(axis.get_ylim()[1], 1.06 * max(values, default=0)))
            axis.grid(axis="y", color="#eef0f2", linewidth=0.8)
            axis.set_axisbelow(True)
            if number % across == 0 or units[panel] != units[panels[number - 1]]:
                small = figure.metric == "panel"
                unit = fill(units[panel], _UNIT_CHARACTERS) if small else units[panel]
                axis.set_ylabel(unit, fontsize=9 if small else None)
        canvas.suptitle(figure.title, x=0.012, y=1 - 0.086 / height, ha="left", fontsize=14, fontweight="bold")
        keys = "keys" if SETS.keys().isdisjoint(figure.by_data()) else "keys of RAND, the other sets in proportion"
        counted = {"allocation rate": "slabs", "access rate": "accessed places at most"}.get(figure.metric, keys)
        told = f"{machine}, {n:,} {counted}."
        if figure.published:
            told += f"  Rings: {figure.source.split(',')[0]}), {figure.paper_device}."
        if figure.note:
            told += ("\n" if alone else "  ") + figure.note
        for compared in ratios:
            if compared.ratio.panel not in figure.panels:
                told += "  " + _told(compared).replace("\n", " ")
        told = "\n".join(line for part in told.split("\n") for line in wrap(part, round(_TOLD_PER_INCH * width)))
        canvas.text(0.012, 1 - 0.32 / height, told, va="top", color=QUIET, fontsize=8.5)
        handles, labels = _legend(axes)
        if sweeps:
            canvas.legend(handles, labels, loc="lower left", ncol=len(labels), frameon=False, bbox_to_anchor=(0.005, 0))
        top = 0.38 + 0.14 * (1 + told.count("\n"))
        canvas.tight_layout(rect=(0, 0.3 / height if sweeps else 0, 1, 1 - top / height))
        stamp(canvas, made_by)
        save_picture(canvas, path, dpi=150, bbox_inches="tight", pad_inches=0.15)  # a long note widens the picture
        plt.close(canvas)


def _is_sweep(panel: str, points: Sequence[Point]) -> bool:
    """Whether a panel has values at several x, which are lines. Others are bars."""
    return len({p.x for p in points if p.panel == panel}) > 1


def _in_billions(points: Sequence[Point], panels: Container[str]) -> list[Point]:
    """The points, of which those of some panels are divided by a thousand."""
    return [replace(p, value=p.value / 1000) if p.panel in panels else p for p in points]


def _in_rows(figure: Figure) -> list[str]:
    """The panels, row by row. If each of five data sets has the same panels, a row has one panel of each set."""
    by_set = list(figure.by_data().values())
    if len(by_set) == _ABREAST and len({len(panels) for panels in by_set}) == 1:
        return [panel for row in zip(*by_set, strict=True) for panel in row]
    return figure.panels


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    """Handles and labels of all panels, each once."""
    found: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def _title(panel: str, n: int) -> str:
    """Title of a panel."""
    panel, _, data = panel.partition(" of ")
    kind, *numbers = panel.split()
    if kind in ("dynamic", "resize"):
        return data.upper() or _TITLES.get(panel, panel)
    if kind == "mix":
        return f"Γ = ({', '.join(f'{int(share) / 100:g}' for share in numbers)})"
    if kind == "slices":
        size, present, shown = numbers
        each = f"{int(size):,}" if int(size) < 1_000_000 else tick(int(size))
        return f"Slices of {each}, {'all' if present == 'present' else 'half'} present{_OF_SLICES[shown]}"
    if kind == "batches":
        return f"Batches of {n // int(numbers[0]):,}"
    title = _TITLES.get(panel, panel)
    if data.startswith("hot "):
        data = f"One key in {data.removeprefix('hot ')} %"
    return f"{data.upper() if data in SETS else data}: {title.lower()}" if data else title


def _told(compared: Compared) -> str:
    """A ratio in words."""
    ratio = compared.ratio
    where = {"all": ", geometric mean", "last": " at the end"}.get(str(ratio.at), f" at {ratio.at}")
    published = " to ".join(f"{number:.2f}" for number in (ratio.published, ratio.published_most) if number is not None)
    return f"{ratio.of} / {ratio.over}:\n{compared.value:.2f}{where} (paper: {published})"


def _draw_lines(axis: Any, figure: Figure, panel: str, points: list[Point]) -> None:
    for look, series in zip(LOOKS, figure.series, strict=False):
        mine = [(p.x, p.value) for p in points if (p.series, p.panel) == (series.label, panel)]
        if mine:
            axis.plot(*zip(*mine, strict=True), label=series.label, **look.line(len(mine) <= _MARKED))
        theirs = [(p.x, p.value) for p in figure.published if (p.series, p.panel) == (series.label, panel)]
        if theirs:
            rings = {"facecolors": "none", "edgecolors": look.colour, "s": 58, "linewidths": 1.4, "zorder": 3}
            axis.scatter(*zip(*theirs, strict=True), **rings)
    axis.set_xlabel(AXES.get(figure.x, figure.x))
    if panel.startswith("routing"):
        axis.set_xlabel("batch")
        return
    if panel.startswith("bus"):
        axis.set_xlabel("keys of a batch")
    if figure.metric == "panel" and panel_metric(panel) in ("batches", "load"):
        axis.set_xlabel("batch")
        if panel_metric(panel) == "batches":
            slowest = fill(", ".join(_slowest(figure, panel, points)), _BELOW_CHARACTERS)
            axis.set_xlabel(f"batch\nslowest over median, of each half:\n{slowest}")
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("")
        return
    if figure.metric == "failures":  # many values are 0, which a logarithmic axis cannot show
        axis.set_yscale("symlog", linthresh=1e-6)
        axis.set_ylim(bottom=0)
        return
    if figure.metric == "time":  # x is the number of keys so far, in steps of one batch: a linear axis
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.locator_params(axis="x", nbins=4)
        axis.xaxis.set_major_formatter("{x:,.0f}")
    elif figure.x in _LOGARITHMIC:
        axis.set_xscale("log", base=_LOGARITHMIC[figure.x])
        if figure.metric == "panel" and panel_metric(panel) == "lookup":  # as in the chart of HH Hash
            axis.set_yscale("log")
    if figure.x in _TICKS_AT_VALUES:
        axis.minorticks_off()
        axis.set_xticks(figure.values, [tick(x) for x in figure.values])


def _slowest(figure: Figure, panel: str, points: list[Point]) -> Iterator[str]:
    for series in figure.series:
        values = [p.value for p in points if (p.series, p.panel) == (series.label, panel)]
        half = len(values) // 2 if figure.dynamic.again else len(values)
        slowest = [max(part) / median(part) for part in (values[:half], values[half:]) if part]
        yield f"{series.label} {' and '.join(f'{ratio:.1f}' for ratio in slowest)}"


def _draw_bars(axis: Any, figure: Figure, panel: str, points: list[Point]) -> None:
    # A figure of bars has a place for each series. Beside sweeps, bars are of other series than the lines.
    has_sweeps = any(_is_sweep(other, points) for other in figure.panels)
    measured = {p.series for p in points if p.panel == panel}
    looks = zip(LOOKS, figure.series, strict=False)
    shown = [(look, series) for look, series in looks if series.label in measured or not has_sweeps]
    values = [p.value for p in points if p.panel == panel]
    if values and panel in _WITHOUT_TABLE:
        _draw_span(axis, values, _WITHOUT_TABLE[panel])
        return
    if values and min(values) > 0 and max(values) >= _LOGARITHMIC_FROM * min(values):
        axis.set_yscale("log")
    label = {"textcoords": "offset points", "ha": "center"}
    for at, (look, series) in enumerate(shown):
        mine = [p.value for p in points if (p.series, p.panel) == (series.label, panel)]
        for value in mine:
            axis.bar(at, value, width=0.62, **look.bar)
            axis.annotate(_of_bar(value), (at, value), xytext=(0, 3), fontsize=9, **label)
        if not mine:
            place = {"xycoords": axis.get_xaxis_transform(), "xytext": (0, 4), "rotation": 90, "fontsize": 8}
            axis.annotate("not measured", (at, 0), color=QUIET, **place, **label)
        for p in figure.published:
            if (p.series, p.panel) == (series.label, panel):
                axis.scatter([at], [p.value], facecolors="white", edgecolors="#1f2328", s=44, zorder=3)
    axis.margins(y=0.14)  # for the labels of the bars
    axis.set_xticks(range(len(shown)), [s.label.replace(", ", "\n") for _, s in shown], fontsize=8.5)
    axis.tick_params(length=0)


def _draw_span(axis: Any, values: Sequence[float], label: str) -> None:
    """Draw one bar for the median of several measurements, and write their span above it."""
    span = " to ".join(dict.fromkeys(_of_bar(value) for value in (min(values), max(values))))
    axis.bar(0, median(values), width=0.62, color=QUIET)
    axis.annotate(span, (0, max(values)), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9)
    axis.margins(x=0.5, y=0.14)
    axis.set_xticks([0], [label], fontsize=8.5)
    axis.tick_params(length=0)


def _of_bar(value: float) -> str:
    """The text above a bar."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}" if 0 < value < 0.01 else f"{value:.2f}"
