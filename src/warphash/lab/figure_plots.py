"""A figure drawn as its paper draws it: one panel an operation, one line a series, the paper's numbers as rings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .figure_data import Figure, Point
from .plots import style

__all__ = ["draw"]

_COLOURS = ("#1f77b4", "#e08214", "#2a9d8f", "#8c6bb1", "#c0392b")
_QUIET = "#6e7781"
_TITLES = {
    "build unique": "Insertion",
    "find 100": "Find, all present",
    "find 50": "Find, half present",
    "find 0": "Find, none present",
}
_METRICS = {
    "rate": "million keys per second",
    "mean rate": "million keys per second, mean",
    "probes": "buckets read per key",
    "success": "share of builds that succeed",
}


def draw(figure: Figure, points: list[Point], path: Path, machine: str, n: int) -> None:
    """Draw ``points`` and what the paper published to a PNG file."""
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
            axis.set_title(_TITLES.get(panel, panel))
            axis.set_ylim(bottom=0)
            axis.grid(axis="y", color="#eef0f2", linewidth=0.8)
            axis.set_axisbelow(True)
        axes[0][0].set_ylabel(_METRICS[figure.metric])
        canvas.suptitle(figure.title, x=0.012, ha="left", fontsize=14, fontweight="bold")
        told = f"{machine}, {n:,} keys.  Rings: {figure.source.split(',')[0]}), {figure.paper_device}."
        if figure.note:
            told += ("\n" if alone else "  ") + figure.note
        canvas.text(0.012, 0.925, told, va="top", color=_QUIET, fontsize=8.5)
        handles, labels = axes[0][0].get_legend_handles_labels()
        if sweep:
            canvas.legend(handles, labels, loc="lower left", ncol=len(labels), frameon=False, bbox_to_anchor=(0.005, 0))
        canvas.tight_layout(rect=(0, 0.07 if sweep else 0, 1, 0.88))
        canvas.savefig(path, dpi=150, bbox_inches="tight", pad_inches=0.15)  # a long note widens the picture
        plt.close(canvas)


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
    axis.set_xlabel("load factor" if figure.x == "load_factor" else "keys")
    if figure.x == "keys":
        axis.set_xscale("log")


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
