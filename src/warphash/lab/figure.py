"""Figures and tables of the papers, measured: the one interpreter of their data files (`figure_data`)."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from .experiments import measured
from .figure_data import Point, load
from .figure_plots import draw
from .ratios import Compared, compare
from .runner import Lab

__all__ = ["Result", "run"]


@dataclass(frozen=True)
class Result:
    """What a run made."""

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
        Most keys; the paper's number on a GPU and 1 million on a CPU by default. A sweep over keys, or over buckets,
        stops there.
    """
    figure = load(name)
    n = n or (figure.keys if device != "cpu" else min(figure.keys, 1_000_000))
    lab = Lab(device)
    points, wrong = [], 0
    for point, mismatches in measured(figure, lab, n, seed, note):
        points.append(point)
        wrong += mismatches
    if figure.metric == "mean rate":
        points = _means(points)
    ratios = compare(figure, points)
    out.mkdir(parents=True, exist_ok=True)
    picture = out / f"{name}.png"
    record = {
        "figure": asdict(figure),
        "command": "warphash " + shlex.join(sys.argv[1:]),
        "machine": lab.machine,
        "keys": n,
        "mismatches": wrong,
        "points": [asdict(p) for p in points],
        "ratios": [asdict(r) for r in ratios],
    }
    (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    draw(figure, points, ratios, picture, lab.machine, n)
    return Result(points, ratios, wrong, picture)


def _means(points: list[Point]) -> list[Point]:
    groups: dict[tuple[str, str], list[float]] = {}
    for p in points:
        groups.setdefault((p.series, p.panel), []).append(p.value)
    return [Point(series, panel, 0, float(np.mean(values))) for (series, panel), values in groups.items()]
