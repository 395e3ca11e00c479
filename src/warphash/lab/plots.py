"""Draw the picture of a standard run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import atomic_file
from ..errors import ParameterError
from .report import label
from .runner import Measurement

__all__ = ["INK", "PALETTE", "check_picture", "draw_bench", "save_picture", "style"]

INK, QUIET, GRID = "#1f2328", "#6e7781", "#e6e8eb"
PALETTE = {
    "cuckoo": "#8c6bb1",
    "bucketed_cuckoo": "#1f77b4",
    "power_of_two": "#e08214",
    "iceberg": "#2a9d8f",
    "slab": "#c0392b",
    "dynamic_cuckoo": "#d1598b",
    "linear_probing": "#7f6a4f",
    "megakv": "#5b6c9e",
}
"""The colour of each design, the same in every picture."""

_PANELS = (
    ("build unique", "Build, keys distinct"),
    ("build", "Build"),
    ("find 100", "Find, all present"),
    ("find 50", "Find, half present"),
    ("find 0", "Find, none present"),
)


def style() -> Any:
    """The settings of matplotlib that all pictures share."""
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


def check_picture(path: Path) -> None:
    """Raise if no picture can be written to a path. Called before the measurements, which take long.

    Raises
    ------
    ParameterError
        If the suffix names no format that matplotlib can write here.
    PathError
        If the path takes no file.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    canvas = plt.figure(figsize=(1, 1))
    canvas.text(0, 0, "a")
    try:
        kinds = canvas.canvas.get_supported_filetypes()
        if _format(path) not in kinds:
            raise ParameterError(
                f"{path.name} must end in a format of pictures (.{', .'.join(kinds)}), got {str(path)!r}"
            )
        canvas.savefig(io.BytesIO(), format=_format(path))
    except ParameterError:
        raise
    except Exception as error:  # matplotlib lists formats that need a program, such as LaTeX, that may be missing
        raise ParameterError(f"no picture can be written as .{_format(path)} here: {error}; take .png") from None
    finally:
        plt.close(canvas)
    atomic_file.check(path)


def save_picture(figure: Any, path: Path, **options: Any) -> None:
    """Write a figure of matplotlib in the format of the path's suffix. ``options`` go to ``savefig``."""
    atomic_file.replace(path, lambda file: figure.savefig(file, format=_format(path), **options))


def _format(path: Path) -> str:
    return path.suffix.removeprefix(".").lower()


def draw_bench(measurements: Sequence[Measurement], path: Path, machine: str) -> None:
    """Draw a row of panels for each data set, a panel for each operation, and a bar for each design.

    The panels of a row share one scale.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sets = list(dict.fromkeys(m.data for m in measurements))
    panels = [(name, title) for name, title in _PANELS if any(m.operation == name for m in measurements)]
    places = {data: _places([m for m in measurements if m.data == data]) for data in sets}
    depth = max(max(p.values()) for p in places.values()) + 1
    with mpl.rc_context(style()):
        row_height, head = 0.25 * depth + 0.95, 0.95
        height = len(sets) * row_height + head
        width = 2.45 + 2.35 * len(panels)
        figure, axes = plt.subplots(len(sets), len(panels), figsize=(width, height), squeeze=False)
        figure.subplots_adjust(
            left=2.05 / width,
            right=1 - 0.35 / width,
            top=1 - (head + 0.62) / height,
            bottom=0.2 / height,
            wspace=0.16,
            hspace=0.95 / (row_height - 0.85),
        )
        for row, data in zip(axes, sets, strict=True):
            mine = [m for m in measurements if m.data == data]
            most = max(m.rate_per_s for m in mine) / 1e6
            for axis, (operation, title) in zip(row, panels, strict=True):
                _draw_panel(axis, [m for m in mine if m.operation == operation], places[data], axis is row[0])
                axis.set(title=title, xlim=(0, most * 1.18), ylim=(depth - 0.4, -0.7))
            first, top = mine[0], row[0].get_position().y1
            said = f"{first.n:,} keys, {first.key_dtype} to {first.value_dtype or 'nothing'}"
            y = top + 0.42 / height
            figure.text(0.25 / width, y, f"{data}  ·  {said}", color=QUIET, fontsize=11)
        wrong = sum(m.mismatches for m in measurements)
        verdict = f"{wrong:,} WRONG ANSWERS" if wrong else "every answer verified"
        figure.text(0.25 / width, 1 - 0.42 / height, "Million keys per second", fontsize=17, weight="bold")
        figure.text(0.25 / width, 1 - 0.68 / height, f"warphash on {machine}  ·  {verdict}", color=QUIET)
        save_picture(figure, path, dpi=160)
        plt.close(figure)


def _places(measurements: list[Measurement]) -> dict[str, float]:
    """Position of each label's bar, from the top, with a gap between designs."""
    places: dict[str, float] = {}
    at, before = -1.0, None
    for m in measurements:
        if label(m) not in places:
            at += 1 if m.design == before or before is None else 1.4
            places[label(m)], before = at, m.design
    return places


def _draw_panel(axis: Any, measurements: list[Measurement], places: dict[str, float], with_names: bool) -> None:
    best = max((m.rate_per_s for m in measurements), default=0)
    for m in measurements:
        at, rate, first = places[label(m)], m.rate_per_s / 1e6, m.rate_per_s == best
        axis.barh(at, rate, height=0.74, color=PALETTE.get(m.design, QUIET), alpha=1 if first else 0.55)
        axis.annotate(
            "FAILED" if m.mismatches else f"{rate:,.0f}" if rate >= 100 else f"{rate:,.1f}",
            (rate, at),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            weight="bold" if first or m.mismatches else "normal",
            color="#c62828" if m.mismatches else INK,
        )
    axis.set_yticks(list(places.values()), [name.replace("_", " ") for name in places])
    axis.tick_params(labelleft=with_names)
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines["bottom"].set_visible(False)
