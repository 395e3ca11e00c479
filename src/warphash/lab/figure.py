"""Figures and tables of the papers: data files in ``figures/``, and the one interpreter of them all.

A file names what is built and measured (`Figure`); what the paper reports in numbers stands in it too, to be drawn
beside ours. It holds no program: a new figure is a new file.
"""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from .. import HashMap, TableFull
from ..errors import ParameterError
from .runner import Lab, Setting
from .workloads import Workload, make

__all__ = ["Figure", "Point", "Result", "load", "names", "run"]

BUILDS = 10
"""Builds behind one success rate."""


@dataclass(frozen=True)
class Series:
    """One line: a design with its parameters, up to the load factor ``most``."""

    label: str
    design: str
    parameters: dict[str, Any]
    most: float


@dataclass(frozen=True)
class Point:
    """One number: ours or the paper's. Rates in million keys per second."""

    series: str
    panel: str
    x: float
    value: float


@dataclass(frozen=True)
class Figure:
    """One data file.

    Attributes
    ----------
    metric
        ``"rate"``, ``"mean rate"`` (over all x), ``"probes"`` (buckets read per key), ``"success"`` (share of builds).
    x, values
        What is swept: ``"load_factor"`` or ``"keys"``.
    keys, load_factor
        What stays.
    panels
        Operations, as `lab.runner.Measurement` names them.
    """

    title: str
    source: str
    metric: str
    x: str
    values: list[float]
    keys: int
    load_factor: float
    panels: list[str]
    paper_device: str
    series: list[Series]
    published: list[Point]
    note: str = ""


@dataclass(frozen=True)
class Result:
    """What a run made."""

    points: list[Point]
    mismatches: int
    picture: Path


def names() -> list[str]:
    """All figures, in the order of the paper."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def load(name: str) -> Figure:
    """Read one data file.

    Raises
    ------
    ParameterError
        If there is none of that name.
    """
    if name not in names():
        raise ParameterError(f"there is no figure {name!r}; there are: {', '.join(names())}")
    content = tomllib.loads((_folder() / f"{name}.toml").read_text())
    content["series"] = [Series(**s) for s in content["series"]]
    content["published"] = [Point(**p) for p in content.get("published", [])]
    return Figure(**content)


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
    from .figure_plots import draw

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


def _folder() -> Any:
    return resources.files(__package__) / "figures"
