"""Draw the picture of a sweep: a row for each design, a panel for each operation, and the limits above the rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..bench.limits import Limit
from ..bench.sweeps import SWEEPS, SweepPoint
from .looks import QUIET, stamp
from .plots import INK, PALETTE, WRONG, save_picture, style
from .tables import label

__all__ = ["draw_sweep"]

_TITLES = {
    "build unique": "Build, keys distinct",
    "build": "Build",
    "find 100": "Find, all present",
    "find 50": "Find, half present",
    "find 0": "Find, none present",
    "find": "Find",
    "insert": "Insert new keys",
    "erase": "Erase",
    "upsert add": "Upsert, add",
}

_LIMITS: tuple[tuple[str, Callable[[Limit], float], Any], ...] = (
    ("random limit", lambda limit: limit.random_per_s, (5, 2)),
    ("stream limit", lambda limit: limit.stream_per_s, (1, 1.5)),
)
"""Name, height and dashes of each limit."""


def draw_sweep(
    name: str, points: Sequence[SweepPoint], path: Path, machine: str, made_by: str = "", complete: bool = True
) -> None:
    """Draw the points of a sweep to a file. All panels share their axes; that of the rates is logarithmic.

    Parameters
    ----------
    complete
        Whether all points were measured. The picture says so if not.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sweep = SWEEPS[name]
    rows = list(dict.fromkeys(label(point.measurement) for point in points))
    panels = [panel for panel in _TITLES if any(point.panel == panel for point in points)]
    with mpl.rc_context(style()):
        width, height = 0.9 + 2.6 * max(2, len(panels)), 1.65 + 2.5 * len(rows)
        figure, axes = plt.subplots(
            len(rows), len(panels), figsize=(width, height), squeeze=False, sharex=True, sharey=True
        )
        figure.subplots_adjust(
            left=0.75 / width,
            right=1 - 0.2 / width,
            top=1 - 1.5 / height,
            bottom=0.55 / height,
            wspace=0.08,
            hspace=0.5,
        )
        for line, row in zip(axes, rows, strict=True):
            for axis, panel in zip(line, panels, strict=True):
                mine = [p for p in points if p.panel == panel and label(p.measurement) == row]
                _draw_panel(axis, sorted(mine, key=lambda p: p.x))
                axis.set_title(_TITLES[panel], fontsize=10)
            line[0].set_ylabel("million keys per second")
            y = line[0].get_position().y1 + 0.28 / height
            figure.text(0.75 / width, y, row.replace("_", " "), color=QUIET, fontsize=11)
        for axis in axes[-1]:
            axis.set_xlabel(sweep.axis)
        axes[0][0].set_yscale("log")
        if sweep.is_logarithmic:
            axes[0][0].set_xscale("log")
        wrong = sum(point.measurement.mismatches for point in points)
        verdict = f"{wrong:,} WRONG ANSWERS" if wrong else "every answer verified"
        rest = "" if complete else "  ·  the run was stopped early"
        figure.text(0.25 / width, 1 - 0.4 / height, sweep.title, fontsize=17, weight="bold")
        figure.text(0.25 / width, 1 - 0.66 / height, f"{machine}  ·  {verdict}{rest}", color=QUIET)
        above = (1 - 0.2 / width, 1 - 0.72 / height)
        lines = axes[0][0].get_legend_handles_labels()
        figure.legend(*lines, loc="upper right", bbox_to_anchor=above, frameon=False, fontsize=8.5, ncols=len(lines[0]))
        stamp(figure, made_by)
        save_picture(figure, path, dpi=130, bbox_inches="tight", pad_inches=0.1)
        plt.close(figure)


def _draw_panel(axis: Any, points: Sequence[SweepPoint]) -> None:
    """One line for the rate, and one for each limit. A wrong answer is a cross."""
    right = [p for p in points if not p.measurement.mismatches]
    colour = PALETTE.get(points[0].measurement.design, INK) if points else INK
    axis.plot(
        [p.x for p in right],
        [p.measurement.rate_per_s / 1e6 for p in right],
        color=colour,
        linewidth=1.8,
        marker="o",
        markersize=3.5,
        label="measured",
    )
    for name, rate_of, dashes in _LIMITS:
        found = [(p.x, rate_of(p.limit) / 1e6) for p in points if p.limit is not None]
        axis.plot(
            [x for x, _ in found], [rate for _, rate in found], color=QUIET, linewidth=1.2, dashes=dashes, label=name
        )
    wrong = [p for p in points if p.measurement.mismatches]
    if wrong:
        axis.plot(
            [p.x for p in wrong],
            [p.measurement.rate_per_s / 1e6 for p in wrong],
            color=WRONG,
            linestyle="",
            marker="x",
            label="wrong answers",
        )
    axis.grid(axis="y", color="#eef0f2", linewidth=0.8)
    axis.set_axisbelow(True)
