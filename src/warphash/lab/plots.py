"""The picture of a standard run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .report import label
from .runner import Measurement

__all__ = ["INK", "PALETTE", "draw_bench", "style"]

INK, QUIET, GRID = "#1f2328", "#6e7781", "#e6e8eb"
PALETTE = {"cuckoo": "#8c6bb1", "bucketed_cuckoo": "#1f77b4", "power_of_two": "#e08214", "iceberg": "#2a9d8f"}
"""One colour a design, in every picture."""

_PANELS = (
    ("build unique", "Build, keys known to differ"),
    ("build", "Build"),
    ("find 100", "Find, all present"),
    ("find 50", "Find, half present"),
    ("find 0", "Find, none present"),
)


def style() -> dict[str, Any]:
    """Settings of matplotlib that all pictures share."""
    return {
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": INK,
        "axes.edgecolor": GRID,
        "axes.labelcolor": QUIET,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": QUIET,
        "ytick.color": INK,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "figure.facecolor": "white",
    }


def draw_bench(measurements: Sequence[Measurement], path: Path, machine: str) -> None:
    """A row of panels for each data set, one for each operation; a bar for each design."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sets = list(dict.fromkeys(m.data for m in measurements))
    panels = [(name, title) for name, title in _PANELS if any(m.operation == name for m in measurements)]
    rows = max(len({label(m) for m in measurements if m.data == data}) for data in sets)
    with plt.rc_context(style()):
        height = len(sets) * (0.30 * rows + 1.15) + 0.9
        figure, axes = plt.subplots(len(sets), len(panels), figsize=(3.0 * len(panels) + 1.2, height), squeeze=False)
        for row, data in zip(axes, sets, strict=True):
            mine = [m for m in measurements if m.data == data]
            names = list(dict.fromkeys(label(m) for m in mine))
            for axis, (operation, title) in zip(row, panels, strict=True):
                _draw_panel(axis, [m for m in mine if m.operation == operation], names, axis is row[0])
                axis.set_title(title)
            first = mine[0]
            row[0].annotate(
                f"{data}  ·  {first.n:,} keys, {first.key_dtype} to {first.value_dtype or 'nothing'}",
                (0, 1),
                xytext=(-150, 24),
                xycoords="axes fraction",
                textcoords="offset points",
                fontsize=11,
                color=QUIET,
            )
        figure.suptitle("warphash: million keys per second", x=0.012, ha="left", fontsize=16, fontweight="bold")
        figure.text(0.012, 1 - 0.55 / height, f"{machine}; every result verified", color=QUIET, va="top")
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.75 / height), h_pad=3.2, w_pad=1.5)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _draw_panel(axis: Any, measurements: list[Measurement], names: list[str], with_names: bool) -> None:
    best = max(m.rate_per_s for m in measurements)
    for m in measurements:
        at = len(names) - 1 - names.index(label(m))
        rate = m.rate_per_s / 1e6
        axis.barh(at, rate, height=0.68, color=PALETTE.get(m.design, QUIET), alpha=1 if m.rate_per_s == best else 0.72)
        text = "FAILED" if m.mismatches else f"{rate:,.0f}" if rate >= 100 else f"{rate:,.1f}"
        weight = "bold" if m.rate_per_s == best else "normal"
        axis.annotate(
            text, (rate, at), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9, weight=weight
        )
    axis.set_yticks(
        range(len(names)), [n.replace("_", " ") for n in reversed(names)] if with_names else [""] * len(names)
    )
    axis.set_xlim(0, best / 1e6 * 1.2)
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines["bottom"].set_visible(False)
