"""Draw the picture of a standard run."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import atomic_file
from ...errors import ParameterError
from ..bench.runner import Measurement
from ..rivals.contest import Contest
from .looks import QUIET, stamp
from .tables import label

__all__ = ["INK", "PALETTE", "WRONG", "check_picture", "draw_bench", "save_picture", "style"]

INK, GRID, WRONG = "#1f2328", "#e6e8eb", "#c62828"
PALETTE = {
    "cuckoo": "#8c6bb1",
    "bucketed_cuckoo": "#1f77b4",
    "power_of_two": "#e08214",
    "iceberg": "#2a9d8f",
    "slab": "#c0392b",
    "dynamic_cuckoo": "#d1598b",
    "linear_probing": "#7f6a4f",
    "megakv": "#5b6c9e",
    "warphash": "#1f77b4",
    "warphash for queries": "#1f77b4",
}
"""The colour of each design, the same in every picture; and of this library beside others, which are grey."""

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


@dataclass(frozen=True)
class _Bar:
    """One bar: its row in the panel, its group (a design or a library), and a rate.

    ``spread`` has the rates of the slowest run and of the fastest; zeros if they are not known.
    """

    label: str
    group: str
    operation: str
    rate_per_s: float
    wrong: int
    spread: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class _Row:
    """A row of panels: what is compared, on which keys."""

    title: str
    bars: list[_Bar]

    @property
    def places(self) -> dict[str, float]:
        """Position of each label's bar, from the top, with a gap between groups."""
        places: dict[str, float] = {}
        at, before = -1.0, None
        for bar in self.bars:
            if bar.label not in places:
                at += 1 if bar.group == before or before is None else 1.4
                places[bar.label], before = at, bar.group
        return places


def draw_bench(
    measurements: Sequence[Measurement],
    path: Path,
    machine: str,
    contests: Sequence[Contest] = (),
    made_by: str = "",
) -> None:
    """Draw a row of panels for each data set, a panel for each operation, and a bar for each design.

    A bar is the median of the runs, and a line reaches from the slowest run to the fastest. Below, each data set of
    ``contests`` has a row with a bar for each library. The panels of a row share one scale.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [*_rows_of_designs(measurements), *_rows_of_libraries(contests)]
    panels = [(name, title) for name, title in _PANELS if any(m.operation == name for m in measurements)]
    depths = [max(row.places.values()) + 1 for row in rows]
    unit, unit_name = (1e9, "Billion") if max(m.rate_per_s for m in measurements) >= 1e9 else (1e6, "Million")
    with mpl.rc_context(style()):
        heights, between, head = [0.25 * depth + 0.1 for depth in depths], 0.95, 0.95
        height = sum(heights) + between * len(rows) + head
        width = 2.45 + 2.35 * len(panels)
        figure, axes = plt.subplots(
            len(rows), len(panels), figsize=(width, height), squeeze=False, height_ratios=heights
        )
        figure.subplots_adjust(
            left=2.05 / width,
            right=1 - 0.35 / width,
            top=1 - (head + 0.62) / height,
            bottom=0.2 / height,
            wspace=0.16,
            hspace=between * len(rows) / sum(heights),
        )
        for line, row, depth in zip(axes, rows, depths, strict=True):
            most = max(max(bar.rate_per_s, *bar.spread) for bar in row.bars) / unit
            with_names = True
            for axis, (operation, title) in zip(line, panels, strict=True):
                mine = [bar for bar in row.bars if bar.operation == operation]
                if not mine:
                    axis.remove()
                    continue
                _draw_panel(axis, mine, row.places, unit)
                axis.set(title=title, xlim=(0, most * 1.25), ylim=(depth - 0.4, -0.7))
                axis.tick_params(labelleft=with_names)
                with_names = False
            y = max(axis.get_position().y1 for axis in line) + 0.42 / height
            figure.text(0.25 / width, y, row.title, color=QUIET, fontsize=11)
        wrong = sum(bar.wrong for row in rows for bar in row.bars)
        verdict = f"{wrong:,} WRONG ANSWERS" if wrong else "every answer verified"
        figure.text(0.25 / width, 1 - 0.42 / height, f"{unit_name} keys per second", fontsize=17, weight="bold")
        said = ["warphash on " + machine, verdict]
        if any(_is_spread(bar) for row in rows for bar in row.bars):
            said.append("a line: from the slowest run to the fastest")
        figure.text(0.25 / width, 1 - 0.68 / height, "  ·  ".join(said), color=QUIET)
        stamp(figure, made_by)
        save_picture(figure, path, dpi=160, bbox_inches="tight", pad_inches=0.1)
        plt.close(figure)


def _rows_of_designs(measurements: Sequence[Measurement]) -> Iterator[_Row]:
    for data in dict.fromkeys(m.data for m in measurements):
        mine = [m for m in measurements if m.data == data]
        first = mine[0]
        said = f"{first.n:,} keys, {first.key_dtype} to {first.value_dtype or 'nothing'}"
        bars = [
            _Bar(label(m).replace("_", " "), m.design, m.operation, m.rate_per_s, m.mismatches, m.rates_per_s)
            for m in mine
        ]
        yield _Row(f"{data}  ·  {said}", bars)


def _rows_of_libraries(contests: Sequence[Contest]) -> Iterator[_Row]:
    for data in dict.fromkeys(c.data for c in contests):
        mine = [c for c in contests if c.data == data]
        bars = [
            _Bar(
                *(c.name, c.name, operation, rate),
                wrong=c.mismatches if operation == "find 100" else 0,
                spread=c.spreads.get(operation, (0.0, 0.0)),
            )
            for c in mine
            for operation, rate in c.rates.items()
        ]
        yield _Row(f"{data}  ·  {mine[0].n:,} keys, libraries on {mine[0].threads_told}", bars)


def _is_spread(bar: _Bar) -> bool:
    """Whether there were several runs of different rates."""
    return bar.spread[0] < bar.spread[1]


def _draw_panel(axis: Any, bars: list[_Bar], places: dict[str, float], unit: float) -> None:
    best = max(bar.rate_per_s for bar in bars)
    for bar in bars:
        at, rate, first = places[bar.label], bar.rate_per_s / unit, bar.rate_per_s == best
        axis.barh(at, rate, height=0.74, color=PALETTE.get(bar.group, QUIET), alpha=1 if first else 0.55)
        end = rate
        if _is_spread(bar):
            slowest, end = (one / unit for one in bar.spread)
            axis.hlines(at, slowest, end, color=INK, linewidth=1.2)
        digits = 0 if rate >= 100 else 1 if rate >= 1 else 2
        axis.annotate(
            "FAILED" if bar.wrong else f"{rate:,.{digits}f}",
            (end, at),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            weight="bold" if first or bar.wrong else "normal",
            color=WRONG if bar.wrong else INK,
        )
    axis.set_yticks(list(places.values()), list(places))
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines["bottom"].set_visible(False)
