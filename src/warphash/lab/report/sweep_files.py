"""Measure a sweep to its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ..bench.limits import Limits
from ..bench.runner import Lab, Setting
from ..bench.sweeps import SweepConfig, SweepPoint, run
from . import results
from .kept_files import Files, keep
from .sweep_plots import draw_sweep

__all__ = ["measure_to_files"]


def measure_to_files(
    name: str,
    lab: Lab,
    config: SweepConfig,
    settings: Sequence[Setting],
    limits: Limits,
    files: Files,
    note: Callable[[str], None],
) -> list[SweepPoint]:
    """Measure all points of a sweep. What stops it leaves its files as of `keep`."""
    return keep(
        run(name, lab, config, settings, limits, note),
        lab,
        files,
        lambda points: {"limits": limits.content(), "sweep": name, "points": [_row(point) for point in points]},
        lambda points, complete: draw_sweep(
            name, points, files.plot, lab.machine, results.made_by(files.command), complete
        ),
    )


def _row(point: SweepPoint) -> dict[str, Any]:
    """A point in its file: the entries of its measurement, beside its own."""
    return {**asdict(point.measurement), "panel": point.panel, "x": point.x, "limit": point.limit and vars(point.limit)}
