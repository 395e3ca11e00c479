"""Draw the picture of operations: a row for each, a panel for each group of inputs, a line for each contestant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..ops import OPS
from ..ops.libraries import LIBRARIES
from ..ops.run import OURS, OpRate
from .looks import LOOKS, QUIET, stamp
from .op_tables import group_title, thousands
from .plots import PALETTE, WRONG, save_picture, style

__all__ = ["draw_ops"]

_FEW_DECADES = 20
"""Highest over lowest rate of an axis that would show one decade or none."""


def draw_ops(rates: Sequence[OpRate], path: Path, machine: str, made_by: str = "", complete: bool = True) -> None:
    """Draw rates over the number of distinct keys, both on logarithmic axes, and the rates of tiny calls as bars.

    A band, or a stroke on a bar, reaches from the rate of the slowest run to that of the fastest one.

    Parameters
    ----------
    complete
        Whether all rates were measured. The picture says so if not.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = {op: [rate for rate in rates if rate.op == op] for op in dict.fromkeys(rate.op for rate in rates)}
    columns = max(len({group_title(rate) for rate in mine}) for mine in rows.values())
    with mpl.rc_context(style()):
        width, height = 0.9 + 2.8 * max(2, columns), 1.75 + 2.6 * len(rows)
        figure, axes = plt.subplots(len(rows), columns, figsize=(width, height), squeeze=False)
        figure.subplots_adjust(
            left=0.75 / width,
            right=1 - 0.2 / width,
            top=1 - 1.75 / height,
            bottom=0.6 / height,
            wspace=0.28,
            hspace=0.72,
        )
        lines: dict[str, Any] = {}
        for line, (op, mine) in zip(axes, rows.items(), strict=True):
            groups = list(dict.fromkeys(map(group_title, mine)))
            for axis, title in zip(line, groups, strict=False):
                group = [rate for rate in mine if group_title(rate) == title]
                if len({rate.distinct for rate in group}) > 1:
                    lines |= _draw_lines(axis, group)
                else:
                    _draw_bars(axis, group)
                axis.set_title(title, fontsize=10)
            for axis in line[len(groups) :]:
                axis.remove()
            line[0].set_ylabel("million rows per second")
            y = line[0].get_position().y1 + 0.3 / height
            most = max(rate.rows for rate in mine)
            figure.text(0.75 / width, y, f"{OPS[op].title}  ·  {most:,} rows", color=QUIET, fontsize=11)
        wrong = sum(rate.mismatches for rate in rates)
        verdict = f"{wrong:,} WRONG ANSWERS" if wrong else "every answer verified"
        rest = "" if complete else "  ·  the run was stopped early"
        heading = "Rows per second, with the building of every table"
        figure.text(0.25 / width, 1 - 0.4 / height, heading, fontsize=17, weight="bold")
        figure.text(0.25 / width, 1 - 0.66 / height, f"{machine}  ·  {verdict}{rest}", color=QUIET)
        lines = dict(sorted(lines.items(), key=lambda line: not line[0].startswith(OURS)))
        above = (0.25 / width, 1 - 0.72 / height)
        figure.legend(
            lines.values(), lines, loc="upper left", bbox_to_anchor=above, frameon=False, fontsize=8.5, ncols=len(lines)
        )
        stamp(figure, made_by)
        save_picture(figure, path, dpi=130, bbox_inches="tight", pad_inches=0.1)
        plt.close(figure)


def _look(rate: OpRate) -> dict[str, Any]:
    """The look of a contestant's line: our colour, or that of the library; the marker and dashes of the library."""
    same_device = [name for name, kind in LIBRARIES.items() if kind.device_kind == LIBRARIES[rate.library].device_kind]
    look = LOOKS[1 + same_device.index(rate.library)].line(with_markers=True)
    if not rate.is_ours:
        return {**look, "linewidth": 1.4}
    plain = {"linestyle": "-", "marker": "o"} if rate.contestant == OURS else {}
    return {**look, **plain, "color": PALETTE[OURS], "linewidth": 2.4}


def _draw_lines(axis: Any, rates: Sequence[OpRate]) -> dict[str, Any]:
    """One line for each contestant, by name. A wrong answer is a cross in place of a rate."""
    lines = {}
    for name in dict.fromkeys(rate.contestant for rate in rates):
        mine = [rate for rate in rates if rate.contestant == name]
        right = [rate for rate in mine if not rate.mismatches]
        counts, look = [rate.distinct for rate in right], _look(mine[0])
        (lines[name],) = axis.plot(counts, [rate.rows_per_s / 1e6 for rate in right], label=name, **look)
        slowest, fastest = zip(*map(_spread, right), strict=True) if right else ((), ())
        axis.fill_between(counts, slowest, fastest, color=look["color"], alpha=0.15, linewidth=0)
    axis.set(xscale="log", yscale="log", xlabel="distinct keys")
    axis.grid(axis="y", color="#eef0f2", linewidth=0.8)
    axis.set_axisbelow(True)
    counts = sorted({rate.distinct for rate in rates})
    behind = [*counts[1:], float("inf")]
    has_room = [after / count >= 3 for count, after in zip(counts, behind, strict=True)]
    axis.set_xticks(counts, [thousands(count) if room else "" for count, room in zip(counts, has_room, strict=True)])
    _finish_axis(axis)
    _draw_wrong(axis, [(rate.distinct, rate) for rate in rates])
    return lines


def _draw_bars(axis: Any, rates: Sequence[OpRate]) -> None:
    """One bar for each contestant, with the microseconds of a call."""
    for at, rate in enumerate(rates):
        if not rate.mismatches:
            axis.bar(at, rate.rows_per_s / 1e6, color=_look(rate)["color"])
            axis.vlines(at, *_spread(rate), color=QUIET, linewidth=1)
            micros = 1e6 * rate.seconds_per_call
            said, (_, top) = f"{micros:,.{int(micros < 10)}f} µs", _spread(rate)
            axis.annotate(said, (at, top), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=7)
    _draw_wrong(axis, list(enumerate(rates)))
    axis.set_xticks(range(len(rates)), [rate.contestant for rate in rates], rotation=30, ha="right", fontsize=8)
    axis.set_yscale("log")
    axis.margins(y=0.15)
    _finish_axis(axis)


def _spread(rate: OpRate) -> tuple[float, float]:
    """Million rows per second in the slowest run, and in the fastest one."""
    return rate.rows / rate.most_seconds / 1e6, rate.rows / rate.least_seconds / 1e6


def _finish_axis(axis: Any) -> None:
    """Plain numbers at the decades of the rates; at round rates, if these lie close together."""
    from matplotlib.ticker import MaxNLocator

    low, high = axis.get_ylim()
    if high < _FEW_DECADES * low:
        axis.yaxis.set_major_locator(MaxNLocator(3))
    axis.yaxis.set_major_formatter(lambda rate, _: f"{rate:,g}")
    axis.minorticks_off()


def _draw_wrong(axis: Any, places: Sequence[tuple[float, OpRate]]) -> None:
    wrong = [(at, rate.rows_per_s / 1e6) for at, rate in places if rate.mismatches]
    if wrong:
        axis.plot(*zip(*wrong, strict=True), color=WRONG, linestyle="", marker="x", label="wrong answers")
