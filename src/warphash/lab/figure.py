"""Figures and tables of the papers, measured: the one interpreter of their data files (`figure_data`)."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import HashMap, TableFull
from .figure_data import Figure, Point, load
from .figure_plots import draw
from .runner import Lab, Setting
from .workloads import Workload, make

__all__ = ["Result", "run"]

BUILDS = 10
"""Builds behind one success rate."""


@dataclass(frozen=True)
class Result:
    """What a run made."""

    points: list[Point]
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
        Most keys; the paper's number on a GPU and 1 million on a CPU by default. A sweep over keys stops there.
    """
    figure = load(name)
    n = n or (figure.keys if device != "cpu" else min(figure.keys, 1_000_000))
    lab = Lab(device)
    points, wrong = [], 0
    for point, mismatches in _measured(figure, lab, n, seed, note):
        points.append(point)
        wrong += mismatches
    if figure.metric == "mean rate":
        points = _means(points)
    out.mkdir(parents=True, exist_ok=True)
    picture = out / f"{name}.png"
    record = {
        "figure": asdict(figure),
        "command": "warphash " + shlex.join(sys.argv[1:]),
        "machine": lab.machine,
        "keys": n,
        "mismatches": wrong,
        "points": [asdict(p) for p in points],
    }
    (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    draw(figure, points, picture, lab.machine, n)
    return Result(points, wrong, picture)


def _measured(figure: Figure, lab: Lab, n: int, seed: int, note: Callable[[str], None]) -> Iterator[tuple[Point, int]]:
    """Every point of the figure, and how many answers behind it were wrong."""
    workload = make(n, "uint32", "uint32", seed)
    by_keys = figure.x == "keys"
    for x in ([x for x in figure.values if x <= n] or [n]) if by_keys else figure.values:
        load_factor = figure.load_factor if by_keys else x
        chosen = _first(workload, int(x)) if by_keys else workload
        for series in figure.series:
            if load_factor > series.most:
                continue
            note(f"{series.label} at {x:,}")
            setting = Setting(series.design, series.parameters)
            if figure.metric == "success":
                yield Point(series.label, figure.panels[0], x, _success(chosen, setting, load_factor, lab)), 0
                continue
            options: dict[str, Any] = {"hash": "universal", "count_probes": True} if figure.metric == "probes" else {}
            for m in lab.measure(chosen, setting, load_factor, tuple(figure.panels), seed=seed, **options):
                value = m.probes_per_key if figure.metric == "probes" else m.rate_per_s / 1e6
                yield Point(series.label, m.operation, x, float(value or 0)), m.mismatches


def _success(workload: Workload, setting: Setting, load_factor: float, lab: Lab) -> float:
    keys, values = lab.here(workload.keys), lab.here(workload.values if workload.values is not None else workload.keys)
    succeeded = 0
    for seed in range(BUILDS):
        try:
            HashMap.from_arrays(
                keys,
                values,
                assume_unique=True,
                design=setting.design,
                device=lab.device,
                load_factor=load_factor,
                hash="universal",
                on_full="raise",
                attempts=1,
                seed=seed,
                **setting.parameters,
            )
        except TableFull:
            continue
        succeeded += 1
    return succeeded / BUILDS


def _means(points: list[Point]) -> list[Point]:
    groups: dict[tuple[str, str], list[float]] = {}
    for p in points:
        groups.setdefault((p.series, p.panel), []).append(p.value)
    return [Point(series, panel, 0, float(np.mean(values))) for (series, panel), values in groups.items()]


def _first(workload: Workload, n: int) -> Workload:
    values = None if workload.values is None else workload.values[:n]
    return replace(workload, keys=workload.keys[:n], values=values, absent=workload.absent[:n])
