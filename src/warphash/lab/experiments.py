"""What a figure's panels name, run: from its data to points, each with the number of wrong answers behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .. import TableFull
from .allocators import measure_allocator
from .batches import add_in_batches
from .figure_data import Figure, Point, Series
from .fill import Fill
from .mixes import measure_mix
from .runner import Lab, Measurement, Setting
from .workloads import Workload, make

__all__ = ["BUILDS", "EXPERIMENTS", "measured"]

BUILDS = 10
"""Builds behind one success rate."""

Points = Iterator[tuple[Point, int]]


@dataclass(frozen=True)
class _Spot:
    """One series of a figure at one x."""

    figure: Figure
    series: Series
    x: float
    fill: Fill
    workload: Workload
    lab: Lab
    seed: int

    def table(self) -> tuple[Setting, float | None]:
        """What tables here are made with."""
        setting = Setting(self.series.design, self.series.parameters)
        return self.fill.applied(setting, len(self.workload.keys), self.workload.pair_bytes)

    def point(self, panel: str, value: float | None, x: float | None = None) -> Point:
        return Point(self.series.label, panel, self.x if x is None else x, float(value or 0))


def measured(figure: Figure, lab: Lab, n: int, seed: int, note: Callable[[str], None]) -> Points:
    """Every point of the figure, and how many answers behind it were wrong."""
    pairs = make(n, "uint32", "uint32", seed)
    workloads = {"uint32": pairs, "none": replace(pairs, values=None)}
    # More buckets than keys tell nothing, and a smaller run has fewer keys.
    for x in ([x for x in figure.values if x <= n] or [n]) if figure.x in ("keys", "buckets") else figure.values:
        fill = figure.fill(x)
        here = {name: _first(w, int(x)) if figure.x == "keys" else w for name, w in workloads.items()}
        for series in figure.series:
            if series.most is not None and fill.value > series.most:
                continue
            note(f"{series.label} at {x:,}")
            spot = _Spot(figure, series, x, fill, here[series.value], lab, seed)
            experiment = _success if figure.metric == "success" else EXPERIMENTS[figure.panels[0].split()[0]]
            yield from experiment(spot)


def _tables(spot: _Spot) -> Points:
    """Builds, inserts and finds."""
    probes = spot.figure.metric == "probes"
    options: dict[str, Any] = {"hash": "universal", "count_probes": True} if probes else {}
    for m in spot.lab.measure(spot.workload, *spot.table(), tuple(spot.figure.panels), seed=spot.seed, **options):
        yield spot.point(m.operation, _value(spot.figure.metric, m)), m.mismatches


def _mixes(spot: _Spot) -> Points:
    n = int(spot.figure.operations_per_key * len(spot.workload.keys))
    for panel in spot.figure.panels:
        m = measure_mix(spot.lab, spot.workload, *spot.table(), panel, n, seed=spot.seed)
        yield spot.point(panel, _value(spot.figure.metric, m)), m.mismatches


def _batches(spot: _Spot) -> Points:
    for panel in spot.figure.panels:
        batches = int(panel.split()[1])
        steps = add_in_batches(
            spot.lab, spot.workload, *spot.table(), batches, rebuilds=spot.series.rebuilds, seed=spot.seed
        )
        for step in steps:
            yield spot.point(panel, step.seconds * 1e3, step.keys), step.mismatches


def _allocators(spot: _Spot) -> Points:
    for panel in spot.figure.panels:
        made = measure_allocator(spot.lab, spot.series.design, len(spot.workload.keys))
        yield spot.point(panel, made.rate_per_s / 1e6), made.mismatches


def _success(spot: _Spot) -> Points:
    columns, (setting, load_factor) = spot.lab.columns(spot.workload), spot.table()
    options: dict[str, Any] = {"hash": "universal", "on_full": "raise", "attempts": 1}
    succeeded = 0
    for seed in range(BUILDS):
        try:
            spot.lab.built(columns, setting, load_factor, seed=seed, **options)
        except TableFull:
            continue
        succeeded += 1
    yield spot.point(spot.figure.panels[0], succeeded / BUILDS), 0


EXPERIMENTS: dict[str, Callable[[_Spot], Points]] = {
    "build": _tables,
    "insert": _tables,
    "find": _tables,
    "mix": _mixes,
    "batches": _batches,
    "allocate": _allocators,
}
"""By the first word of a panel; all panels of a figure are of one experiment."""


def _value(metric: str, m: Measurement) -> float | None:
    return {"probes": m.probes_per_key, "utilisation": m.utilisation}.get(metric, m.rate_per_s / 1e6)


def _first(workload: Workload, n: int) -> Workload:
    values = None if workload.values is None else workload.values[:n]
    return replace(workload, keys=workload.keys[:n], values=values, absent=workload.absent[:n])
