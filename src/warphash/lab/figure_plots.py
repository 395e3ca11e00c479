"""A figure drawn as its paper draws it: one panel an operation, one line a series, the paper's numbers as rings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .figure_data import Figure, Point
from .plots import style
from .ratios import Compared

__all__ = ["draw"]

_COLOURS = ("#1f77b4", "#e08214", "#2a9d8f", "#8c6bb1", "#c0392b")
_QUIET = "#6e7781"
_TITLES = {
    "build unique": "Insertion",
    "find 100": "Find, all present",
    "find 50": "Find, half present",
    "find 0": "Find, none present",
    "allocate": "One slab for each thread",
}
_METRICS = {
    "rate": "million keys per second",
    "mean rate": "million keys per second, mean",
    "operation rate": "million operations per second",
    "allocation rate": "million slabs of 128 bytes per second",
    "time": "milliseconds since the first batch",
    "utilisation": "bytes of pairs over those of slabs",
    "probes": "buckets read per key",
    "success": "share of builds that succeed",
}
_AXES = {
    "load_factor": "load factor",
    "utilisation": "memory utilisation",
    "slab_count": "average slab count",
}
_LOGARITHMIC = {"keys": 10, "slab_count": 10, "buckets": 2}
"""Base of the scale."""


def draw(figure: Figure, points: list[Point], ratios: Sequence[Compared], path: Path, machine: str, n: int) -> None:
    """Draw ``points``, and what the paper published beside them, to a PNG file."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sweep = len({p.x for p in points}) > 1
    with mpl.rc_context(style()):
        alone = len(figure.panels) == 1
        width = 3.3 * len(figure.panels) + (3.3 if alone else 0.4)
        canvas, axes = plt.subplots(1, len(figure.panels), figsize=(width, 4.3), squeeze=False)
        for axis, panel in zip(axes[0], figure.panels, strict=True):
            (_draw_lines if sweep else _draw_bars)(axis, figure, panel, points)
            axis.set_title(_title(panel, n))
            axis.set_xlabel("\n".join([axis.get_xlabel(), *(_told(r) for r in ratios if r.ratio.panel == panel)]))
            if figure.metric != "time":
                axis.set_ylim(bottom=0)
            axis.grid(axis="y", color="#eef0f2", linewidth=0.8)
            axis.set_axisbelow(True)
        axes[0][0].set_ylabel(_METRICS[figure.metric])
        canvas.suptitle(figure.title, x=0.012, ha="left", fontsize=14, fontweight="bold")
        counted = "slabs" if figure.metric == "allocation rate" else "keys"
        told = f"{machine}, {n:,} {counted}."
        if figure.published:
            told += f"  Rings: {figure.source.split(',')[0]}), {figure.paper_device}."
        if figure.note:
            told += ("\n" if alone else "  ") + figure.note
        canvas.text(0.012, 0.925, told, va="top", color=_QUIET, fontsize=8.5)
        handles, labels = axes[0][0].get_legend_handles_labels()
        if sweep:
            canvas.legend(handles, labels, loc="lower left", ncol=len(labels), frameon=False, bbox_to_anchor=(0.005, 0))
        canvas.tight_layout(rect=(0, 0.07 if sweep else 0, 1, 0.88))
        canvas.savefig(path, dpi=150, bbox_inches="tight", pad_inches=0.15)  # a long note widens the picture
        plt.close(canvas)


def _title(panel: str, n: int) -> str:
    """What a panel shows."""
    kind, *numbers = panel.split()
    if kind == "mix":
        return f"Γ = ({', '.join(f'{int(share) / 100:g}' for share in numbers)})"
    if kind == "batches":
        return f"Batches of {n // int(numbers[0]):,}"
    return _TITLES.get(panel, panel)


def _told(compared: Compared) -> str:
    """A ratio in words."""
    ratio = compared.ratio
    where = {"all": ", geometric mean", "last": " at the end"}.get(str(ratio.at), f" at {ratio.at}")
    return f"{ratio.of} / {ratio.over}:\n{compared.value:.2f}{where} (paper: {ratio.published:.2f})"


def _draw_lines(axis: Any, figure: Figure, panel: str, points: list[Point]) -> None:
    for colour, series in zip(_COLOURS, figure.series, strict=False):
        mine = [(p.x, p.value) for p in points if (p.series, p.panel) == (series.label, panel)]
        if mine:
            axis.plot(
                *zip(*mine, strict=True), color=colour, marker="o", markersize=3.5, linewidth=1.8, label=series.label
            )
        theirs = [(p.x, p.value) for p in figure.published if (p.series, p.panel) == (series.label, panel)]
        if theirs:
            rings = {"facecolors": "none", "edgecolors": colour, "s": 58, "linewidths": 1.4, "zorder": 3}
            axis.scatter(*zip(*theirs, strict=True), **rings)
    axis.set_xlabel(_AXES.get(figure.x, figure.x))
    if figure.metric == "time":  # batches are of one size
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.locator_params(axis="x", nbins=4)
        axis.xaxis.set_major_formatter("{x:,.0f}")
    elif figure.x in _LOGARITHMIC:
        axis.set_xscale("log", base=_LOGARITHMIC[figure.x])


def _draw_bars(axis: Any, figure: Figure, panel: str, points: list[Point]) -> None:
    for at, (colour, series) in enumerate(zip(_COLOURS, figure.series, strict=False)):
        for p in points:
            if (p.series, p.panel) == (series.label, panel):
                axis.bar(at, p.value, width=0.62, color=colour)
                text = f"{p.value:,.0f}" if p.value >= 100 else f"{p.value:.2f}"
                axis.annotate(text, (at, p.value), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9)
        for p in figure.published:
            if (p.series, p.panel) == (series.label, panel):
                axis.scatter([at], [p.value], facecolors="white", edgecolors="#1f2328", s=44, zorder=3)
    axis.set_xticks(range(len(figure.series)), [s.label.replace(", ", "\n") for s in figure.series], fontsize=8.5)
    axis.tick_params(length=0)
