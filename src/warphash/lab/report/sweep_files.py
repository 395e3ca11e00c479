"""Measure a sweep and keep its files up to date, so whatever stops the run leaves what was measured so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..bench import turns
from ..bench.limits import Limits
from ..bench.runner import Lab, Setting
from ..bench.sweeps import SweepConfig, SweepPoint, run
from . import results
from .sweep_plots import draw_sweep

__all__ = ["measure_to_files"]


def measure_to_files(
    name: str,
    lab: Lab,
    config: SweepConfig,
    settings: Sequence[Setting],
    limits: Limits,
    json: Path,
    plot: Path,
    command: str,
    note: Callable[[str], None],
) -> list[SweepPoint]:
    """Measure a sweep. Write the results file after each point, and the picture when the run ends or is stopped.

    Returns
    -------
    list
        All points. If the run is stopped, the exception goes on to the caller after both files are written.
    """
    points: list[SweepPoint] = []

    with results.recorded(lab) as recording:

        def save(complete: bool) -> None:
            content = {**recording.head(), "limits": limits.content(), "sweep": name, "complete": complete}
            results.write(json, command, lab.machine, {**content, "points": [_row(point) for point in points]})

        complete = False
        try:
            for point in run(name, lab, config, settings, limits, note):
                points.append(point)
                save(complete)
            complete = True
        finally:
            if points:
                with turns.away():
                    draw_sweep(name, points, plot, lab.machine, results.made_by(command), complete)
                save(complete)
    return points


def _row(point: SweepPoint) -> dict[str, Any]:
    """A point in its file: the entries of its measurement, beside its own."""
    return {**asdict(point.measurement), "panel": point.panel, "x": point.x, "limit": point.limit and vars(point.limit)}
