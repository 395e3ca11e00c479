"""Measure and draw a figure or table of a paper from its data file (`figure_data`)."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from .. import atomic_file
from ..errors import PathError
from .experiments import measured
from .figure_data import Point, load
from .figure_plots import draw
from .plots import check_picture
from .ratios import Compared, compare
from .runner import Lab

__all__ = ["Result", "check_targets", "run"]


@dataclass(frozen=True)
class Result:
    """Points, ratios, number of wrong answers and picture of one run."""

    points: list[Point]
    ratios: list[Compared]
    mismatches: int
    picture: Path


def run(
    name: str,
    device: str = "cpu",
    n: int | None = None,
    out: Path = Path(),
    seed: int = 1,
    note: Callable[[str], None] = lambda _: None,
) -> Result:
    """Measure a figure, draw it, and write ``NAME.json`` and ``NAME.png`` into ``out``.

    Parameters
    ----------
    n
        Most keys. The default is the paper's number on a GPU and at most 1 million on a CPU. A sweep over keys or
        buckets ends at ``n``.

    Raises
    ------
    ParameterError
        If there is no such figure.
    PathError
        Before the first measurement, if no file can be written into ``out``.
    """
    figure = load(name)
    check_targets(name, out)
    n = n or (figure.keys if device != "cpu" else min(figure.keys, 1_000_000))
    lab = Lab(device)
    points, wrong = [], 0
    for point, mismatches in measured(figure, lab, n, seed, note):
        points.append(point)
        wrong += mismatches
    if figure.metric == "mean rate":
        points = _means(points)
    ratios = compare(figure, points)
    data, picture = _targets(name, out)
    record = {
        "figure": asdict(figure),
        "command": "warphash " + shlex.join(sys.argv[1:]),
        "machine": lab.machine,
        "keys": n,
        "mismatches": wrong,
        "points": [asdict(p) for p in points],
        "ratios": [asdict(r) for r in ratios],
    }
    text = json.dumps(record, indent=1) + "\n"
    atomic_file.replace(data, lambda file: file.write(text.encode()))
    draw(figure, points, ratios, picture, lab.machine, n)
    return Result(points, ratios, wrong, picture)


def check_targets(name: str, out: Path) -> None:
    """Make the folder ``out``. Raise if the figure's files cannot be written into the folder."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PathError(f"there can be no folder {out} ({error.strerror}): give another") from None
    data, picture = _targets(name, out)
    atomic_file.check(data)
    check_picture(picture)


def _targets(name: str, out: Path) -> tuple[Path, Path]:
    return out / f"{name}.json", out / f"{name}.png"


def _means(points: list[Point]) -> list[Point]:
    groups: dict[tuple[str, str], list[float]] = {}
    for p in points:
        groups.setdefault((p.series, p.panel), []).append(p.value)
    return [Point(series, panel, 0, float(np.mean(values))) for (series, panel), values in groups.items()]
