"""Run the experiments that a figure's panels name, and yield points with their numbers of wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from ... import TableFull
from ...designs import registry
from ..bench import turns
from ..bench.ceilings import reads_of
from ..bench.runner import Lab, Measurement, Setting
from ..data.dynamic_sets import pairs_of
from ..data.workloads import Workload
from ..rivals.contest import contest_of
from ..rivals.python_dict import RIVAL as PYTHON_DICT
from .allocators import measure_allocator
from .batches import add_in_batches
from .boards import Drawn, draw_boards, measure_boards
from .bus import measure_bus
from .catalogue import Figure, Point, Series, operation_of
from .chunks import measure_chunks
from .dynamic import CallSequence, Dynamic, draw
from .dynamic_run import VERBS, Run, bounded, measure_dynamic
from .failures import measure_failures
from .fill import MEASURES, Fill
from .lossy import measure_lossy
from .mixes import measure_mix
from .profiles import OPERATIONS, Profile, measure_profile
from .rejected import measure_orders, measure_sorted
from .resizes import measure_resize, measure_wait
from .routing import measure_routing
from .sectors import sectors_per_key
from .slices import Operations, Slices, draw_operations, measure_slices
from .tiers import measure_tiers
from .traces import measure_contest, measure_trace
from .widths import measure_widths

__all__ = ["ACCESSES", "BUILDS", "EXPERIMENTS", "FEWEST_BUILDS", "PANEL_METRICS", "measured", "panel_metric"]

BUILDS = 200
"""Number of builds for one success rate with as many keys as in the paper. With fewer keys, there are fewer builds."""

FEWEST_BUILDS = 10
"""Least number of builds for one success rate. If all of so many fail, no other is tried."""

ACCESSES = {"read": "read", "swap": "read_and_swap", "exchange": "read_and_exchange"}
"""Plain memory accesses that a figure may time instead of a table, with their kernels in ``ceiling.cuh``."""

_OTHER_BYTES = 8
"""Bytes of a value where those of a key are swept, and the other way round."""

_AT_MOST_KEYS = ("keys", "buckets", "places")

Points = Iterator[tuple[Point, int]]


@dataclass(frozen=True)
class _Spot:
    """One series of a figure at one x."""

    figure: Figure
    panels: list[str]
    series: Series
    x: float
    fill: Fill
    n: int
    draw: Callable[[], Workload]
    lab: Lab
    seed: int
    share: float
    sequences: dict[tuple[float, ...], CallSequence]
    drawn: dict[tuple[float, ...], Operations]
    boards: Callable[[], Drawn]

    @property
    def workload(self) -> Workload:
        """The pairs, which are drawn once; some experiments have their own."""
        return self.draw()

    @property
    def setting(self) -> Setting:
        """The series' design and parameters, with the memory that the figure names and the parameter that it sweeps."""
        swept = self.figure.x not in MEASURES and any(
            parameter.name == self.figure.x for parameter in registry.get(self.series.design).parameters
        )
        memory = {"memory": self.figure.memory} if self.figure.memory else {}
        value = {self.figure.x: self.x} if swept else {}
        return Setting(self.series.design, self.series.parameters | memory | value)

    def table(self) -> tuple[Setting, float | None]:
        """The setting and load factor of the tables at this spot."""
        setting = self.setting
        return self.fill.applied(setting, len(self.workload.keys), self.workload.pair_bytes)

    @property
    def load_factor(self) -> float:
        """That of the tables, in a figure that sets it."""
        assert self.fill.measure == "load_factor"
        return self.fill.value

    def point(self, panel: str, value: float | None, x: float | None = None, part: str = "") -> Point:
        return Point(self.series.label, panel, self.x if x is None else x, float(value or 0), part)


def measured(figure: Figure, lab: Lab, n: int, seed: int, note: Callable[[str], None]) -> Points:
    """Every point of the figure, each with the wrong answers of the measurement that it comes from.

    Points of one measurement share its wrong answers, because these make all of them void.
    """
    # A smaller run has fewer keys. A sweep of keys, buckets or places stops there.
    xs = ([x for x in figure.values if x <= n] or [n]) if figure.x in _AT_MOST_KEYS else figure.values
    for data, panels in figure.by_data().items():
        draw_pairs = cache(turns.away()(partial(pairs_of, data, n, seed)))
        sequences: dict[tuple[float, ...], CallSequence] = {}
        drawn: dict[tuple[float, ...], Operations] = {}
        boards = cache(turns.away()(partial(draw_boards, n, seed)))
        failed: set[str] = set()  # series of which no build succeeds any more: a fuller table takes much longer to fail
        for x in xs:
            fill = figure.fill(x)
            here = int(x) if figure.x == "keys" else n
            for series in figure.series:
                if series.label in failed or not series.reaches(fill.value):
                    continue
                note(f"{data}: {series.label} at {x:,}")
                pairs, share = cache(partial(_drawn, draw_pairs, here, series.value)), min(1, n / figure.keys)
                spot = _Spot(figure, panels, series, x, fill, here, pairs, lab, seed, share, sequences, drawn, boards)
                by_metric = {"success": _success, "failures": _failures}
                experiment = by_metric.get(figure.metric) or EXPERIMENTS[panels[0].split()[0]]
                for point, wrong in experiment(spot):
                    if figure.metric == "success" and not point.value:
                        failed.add(series.label)
                    yield point, wrong


def _tables(spot: _Spot) -> Points:
    """Measure builds, inserts and finds. No points if no build succeeds: a larger table would not be as full."""
    if spot.series.drops:
        yield from _lossy(spot)
        return
    if spot.series.design == PYTHON_DICT.name:
        yield from _dictionary(spot)
        return
    counts = spot.figure.metric in ("probes", "sectors")
    options: dict[str, Any] = {"hash": "universal", "count_probes": True} if counts else {}
    operations = tuple(map(operation_of, spot.panels))
    try:
        found = spot.lab.measure(spot.workload, *spot.table(), operations, seed=spot.seed, on_full="raise", **options)
    except TableFull:
        return
    for panel, m in zip(spot.panels, found, strict=True):
        yield spot.point(panel, _value(spot.figure.metric, m)), m.mismatches


def _lossy(spot: _Spot) -> Points:
    """Builds and finds of a table that drops pairs."""
    made = measure_lossy(spot.lab, spot.workload, *spot.table(), spot.seed)
    rates = {"build": made.build_per_s, "find": made.find_per_s}
    for panel in spot.panels:
        yield spot.point(panel, rates[panel.split()[0]] / 1e6), made.mismatches * (panel is spot.panels[0])


def _dictionary(spot: _Spot) -> Points:
    """Builds and finds of Python's dict on the host, of as many pairs as it takes. Its load factor is its own."""
    if spot.x != spot.figure.values[0]:
        return
    made = contest_of(PYTHON_DICT, _first(spot.workload, min(len(spot.workload.keys), PYTHON_DICT.most_keys)))
    rates = {"build": made.build_per_s or 0.0, "find": made.present_per_s}
    for x in spot.figure.values:
        for panel in spot.panels:
            wrong = made.mismatches * (panel is spot.panels[0] and x == spot.x)
            yield spot.point(panel, rates[panel.split()[0]] / 1e6, x), wrong


def _mixes(spot: _Spot) -> Points:
    n = int(spot.figure.operations_per_key * len(spot.workload.keys))
    for panel in spot.panels:
        m = measure_mix(spot.lab, spot.workload, *spot.table(), panel, n, seed=spot.seed)
        yield spot.point(panel, _value(spot.figure.metric, m)), m.mismatches


def _batches(spot: _Spot) -> Points:
    for panel in spot.panels:
        batches = int(panel.split()[1])
        steps = add_in_batches(
            spot.lab, spot.workload, *spot.table(), batches, rebuilds=spot.series.rebuilds, seed=spot.seed
        )
        for step in steps:
            yield spot.point(panel, step.seconds * 1e3, step.keys), step.mismatches


def _allocators(spot: _Spot) -> Points:
    for panel in spot.panels:
        made = measure_allocator(spot.lab, spot.series.design, len(spot.workload.keys))
        yield spot.point(panel, made.rate_per_s / 1e6), made.mismatches


def _success(spot: _Spot) -> Points:
    columns, (setting, load_factor) = spot.lab.columns(spot.workload), spot.table()
    options: dict[str, Any] = {"hash": "universal", "on_full": "raise", "attempts": 1}
    builds = max(FEWEST_BUILDS, round(BUILDS * spot.share))
    succeeded = wrong = 0
    for seed in range(builds):
        if seed == FEWEST_BUILDS and not succeeded:
            break
        try:
            table = spot.lab.built(columns, setting, load_factor, seed=seed, **options)
        except TableFull:
            continue
        succeeded += 1
        wrong += spot.lab.wrong_pairs(table, columns)
    yield spot.point(spot.panels[0], succeeded / builds), wrong


def _failures(spot: _Spot) -> Points:
    for panel in spot.panels:
        made = measure_failures(spot.lab, spot.workload, *spot.table(), seed=spot.seed)
        yield spot.point(panel, 100 * made.failed / made.keys), made.mismatches


def _profiles(spot: _Spot) -> Points:
    """Run one process for each operation that the panels name: ``"insert"``, ``"unique"`` or ``"find"``."""
    made: dict[str, Profile] = {}
    for panel in spot.panels:
        words = operation_of(panel).split()
        operation = words[1] if words[1] in OPERATIONS else "insert"
        if operation not in made:
            made[operation] = measure_profile(
                spot.workload, *spot.table(), spot.lab.device, operation=operation, seed=spot.seed
            )
        profile = made[operation]
        yield spot.point(panel, profile.counts[panel_metric(panel)]), profile.mismatches


def _accesses(spot: _Spot) -> Points:
    place_bytes = spot.series.parameters["bytes"]
    entry = ACCESSES[spot.series.design]
    (rate_per_s,) = spot.lab.memory.rates([entry], place_bytes, place_bytes * int(spot.x))
    wrong = spot.lab.memory.wrong_places(entry, place_bytes)
    for panel in spot.panels:
        yield spot.point(panel, rate_per_s / 1e6), wrong


def _widths(spot: _Spot) -> Points:
    names = {panel: panel.removeprefix("wide ").replace(" ", "_") for panel in spot.panels}
    made = measure_widths(spot.lab, spot.setting, spot.load_factor, spot.n, int(spot.x), names.values(), spot.seed)
    for panel, name in names.items():
        value = made.measured[name]
        yield spot.point(panel, value if panel_metric(panel) == "share" else value / 1e6), made.mismatches


def _sizes(spot: _Spot) -> Points:
    panels: dict[tuple[int, int], list[str]] = {}
    for panel in spot.panels:
        swept = panel.split()[1]
        widths = (int(spot.x), _OTHER_BYTES) if swept == "keys" else (_OTHER_BYTES, int(spot.x))
        panels.setdefault(widths, []).append(panel)
    for (key_bytes, value_bytes), its in panels.items():
        wanted = [panel_metric(panel) for panel in its]
        made = measure_widths(
            spot.lab,
            spot.setting,
            spot.load_factor,
            spot.n,
            key_bytes,
            wanted,
            spot.seed,
            value_bytes=value_bytes,
        )
        for panel, name in zip(its, wanted, strict=True):
            yield spot.point(panel, made.measured[name] / 1e6), made.mismatches


def _boards(spot: _Spot) -> Points:
    made = measure_boards(spot.lab, spot.boards(), spot.setting, spot.load_factor, spot.seed)
    for panel in spot.panels:
        rate_per_s = getattr(made, panel.removeprefix("board ").replace(" ", "_"))
        yield spot.point(panel, rate_per_s / 1e6), made.mismatches


def _bus(spot: _Spot) -> Points:
    panels = {panel.split()[1]: panel for panel in spot.panels}
    for made in measure_bus(spot.lab, spot.setting, spot.load_factor, spot.n):
        if made.operation in panels:
            yield spot.point(panels[made.operation], made.rate_per_s / 1e6, made.batch), made.mismatches


def _slices(spot: _Spot) -> Points:
    made: dict[tuple[float, ...], Slices] = {}
    for panel in spot.panels:
        _, operations, asked, metric = operation_of(panel).split()
        which = int(operations), {"present": 1.0, "half": 0.5}[asked]
        if which not in spot.drawn:
            pairs = spot.workload
            with turns.away():
                spot.drawn[which] = draw_operations(pairs, *which, spot.seed)
        if which not in made:
            made[which] = measure_slices(spot.lab, spot.drawn[which], spot.setting, spot.load_factor, spot.seed)
        found = made[which]
        value = getattr(found, "find" if metric in ("present", "half") else metric)
        per_cent = metric in ("concurrency", "mixing")
        yield spot.point(panel, value if per_cent else value / 1e6), found.mismatches


def _chunks(spot: _Spot) -> Points:
    """One measurement has the lines of all series. Their labels are the keys of ``lines``."""
    if spot.series is not spot.figure.series[0]:
        return
    made = measure_chunks(spot.lab, spot.setting, spot.load_factor, spot.n, spot.seed)
    lines = {
        "time": {"Stash": made.stash, "clStash": made.clstash},
        "gain": {"difference": made.stash - made.clstash, "fit": made.fit},
    }
    for panel in spot.panels:
        for label, seconds in lines.get(panel_metric(panel), {}).items():
            for x, value in zip(made.load_factors.tolist(), (1e3 * seconds).tolist(), strict=True):
                yield Point(label, panel, x, value), made.mismatches
        if panel_metric(panel) == "threshold":
            yield Point("fit", panel, spot.x, made.threshold), made.mismatches


def _resizes(spot: _Spot) -> Points:
    shape = _shape(spot)
    for direction in ("up", "down"):
        metrics = {panel: panel_metric(panel) for panel in spot.panels if panel.split()[1] == direction}
        common = spot.lab, spot.workload, spot.setting, shape
        found: dict[str, tuple[float, int]] = {}  # values with wrong answers, by metric
        if {"moved", "stall"} & set(metrics.values()):
            made = measure_resize(*common, up=direction == "up", by_insert=spot.series.rebuilds, seed=spot.seed)
            if made:
                found["moved"] = made.moved / made.seconds / 1e6, made.mismatches
                found["stall"] = made.seconds * 1e3, made.mismatches
        if {"wait", "usual"} & set(metrics.values()) and not spot.series.rebuilds:
            waited = measure_wait(*common, up=direction == "up", seed=spot.seed)
            if waited:
                found["wait"] = waited.longest_s * 1e3, waited.mismatches
                found["usual"] = waited.usual_s * 1e3, waited.mismatches
        for panel, metric in metrics.items():
            if metric in found:
                value, wrong = found[metric]
                yield spot.point(panel, value), wrong


def _routing(spot: _Spot) -> Points:
    shape = _shape(spot)
    setting = bounded(Setting(spot.series.design, spot.series.parameters), shape.alpha, shape.beta)
    batches = round(spot.figure.keys / shape.pairs_per_batch)
    steps = measure_routing(spot.lab, spot.workload, setting, batches, spot.seed)
    for panel in spot.panels:
        for number, step in enumerate(steps, 1):
            value = getattr(step, panel_metric(panel))
            if value is not None:
                yield spot.point(panel, value, number), step.mismatches


def _traces(spot: _Spot) -> Points:
    made = measure_trace(spot.lab, spot.setting, spot.load_factor, spot.n)
    for panel in spot.panels:
        yield spot.point(panel, getattr(made, panel_metric(panel)) / 1e6), made.mismatches


def _contest(spot: _Spot) -> Points:
    made = measure_contest(spot.lab, spot.series.design, spot.series.parameters, spot.n)
    for panel in spot.panels if made else ():
        assert made is not None
        yield spot.point(panel, made[0] / 1e6), made[1]


def _tiers(spot: _Spot) -> Points:
    made = measure_tiers(spot.lab, spot.setting, spot.x, spot.n, spot.seed)
    tiered = made.oracle > 0
    values = {"tiers find": made.find / 1e6, "tiers cached": 100 * made.hits, "tiers oracle": 100 * made.share}
    for panel in spot.panels:
        if tiered or panel == "tiers find":
            yield spot.point(panel, values[panel]), made.mismatches


def _orders(spot: _Spot) -> Points:
    """One measurement has both lines. Their labels are those of the figure's series."""
    if spot.series is not spot.figure.series[0]:
        return
    made = measure_orders(spot.lab, spot.setting, spot.load_factor, spot.n, int(spot.x), spot.seed)
    for panel in spot.panels:
        yield Point("in rounds", panel, spot.x, 100 * made.in_rounds), made.mismatches
        yield Point("random order", panel, spot.x, 100 * made.random), made.mismatches


def _sorted(spot: _Spot) -> Points:
    made = measure_sorted(spot.lab, spot.setting, spot.load_factor, spot.n, spot.seed)
    values = {
        "sorted build": made.with_sort / 1e6,
        "unsorted build": made.without_sort / 1e6,
        "sorted sort": 100 * made.sort_share,
    }
    for panel in spot.panels:
        yield spot.point(panel, values[panel]), made.mismatches


def _dynamic(spot: _Spot) -> Points:
    shape = _shape(spot)
    if shape.drawn_of not in spot.sequences:
        spot.sequences.clear()  # a sequence is as large as the data set, so only one is kept
        batch = max(1, round(shape.pairs_per_batch * spot.share))
        spot.sequences[shape.drawn_of] = draw(spot.lab, spot.workload, shape, batch, spot.seed)
    setting = Setting(spot.series.design, spot.series.parameters)
    run = measure_dynamic(spot.lab, spot.workload, spot.sequences[shape.drawn_of], setting, shape, spot.seed)
    for panel in spot.panels:
        for point in _dynamic_points(spot, panel, run):
            yield point, run.mismatches


def _dynamic_points(spot: _Spot, panel: str, run: Run) -> Iterator[Point]:
    metric = panel_metric(panel)
    if metric == "time":
        resizing = {verb: run.resizing(verb) for verb in VERBS}
        for verb in VERBS:
            seconds = sum(lap.seconds for lap in run.of(verb)) - resizing[verb]
            yield spot.point(panel, seconds * 1e3, part=verb)
        yield spot.point(panel, sum(resizing.values()) * 1e3, part="resize")
        yield spot.point(panel, run.seconds * 1e3)
    elif metric in ("rate", "finds"):
        yield spot.point(panel, run.rate_per_s("find" if metric == "finds" else None) / 1e6)
    elif metric == "memory":
        yield spot.point(panel, run.laps[-1].nbytes / run.laps[-1].size)
    else:
        for number, laps in enumerate(run.batches(), 1):
            seconds = sum(lap.seconds for lap in laps)
            yield spot.point(panel, seconds * 1e3 if metric == "batches" else laps[-1].load_factor, number)


def panel_metric(panel: str) -> str:
    """The metric of a panel that names its own: a key of `PANEL_METRICS`."""
    return operation_of(panel).split()[-1]


def _shape(spot: _Spot) -> Dynamic:
    """The dynamic workload at this spot, with the swept parameter."""
    swept: dict[str, Any] = {spot.figure.x: spot.x} if spot.figure.x in vars(spot.figure.dynamic) else {}
    return replace(spot.figure.dynamic, **swept)


PANEL_METRICS = {
    "time": "milliseconds",
    "rate": "million operations per second",
    "finds": "million finds per second",
    "memory": "bytes for each key at the end",
    "batches": "milliseconds of a batch",
    "load": "load factor after a batch",
    "conflicts": "conflicts, per cent beyond the least",
    "found": "lines read per present key",
    "missed": "lines read per absent key",
    "words": "words of filters read per absent key",
    "added": "lines read per inserted key",
    "resizes": "resizes so far",
    "moved": "million pairs moved per second",
    "stall": "milliseconds of the batch that resizes",
    "wait": "milliseconds of the longest lookup of 1,000 keys beside a resize",
    "usual": "milliseconds of a usual lookup of 1,000 keys",
    "build": "million pairs built per second",
    "insert": "million pairs inserted per second",
    "lookup": "million keys looked up per second",
    "find": "million keys found per second",
    "cached": "per cent of the keys that the cache has",
    "oracle": "per cent of the hits of a cache that knows all frequencies",
    "layouts": "per cent of the buckets that find a layout",
    "sort": "per cent of the time that the sort takes",
    "present": "million present keys found per second",
    "half": "million keys looked up per second, half of them present",
    "erase": "million keys erased per second",
    "absent": "million absent keys looked up per second",
    "share": "share of the memory's ceiling for such finds",
    "ceiling": "million random reads of slots per second, without a table",
    "gain": "milliseconds that clStash saves",
    "threshold": "load factor from which clStash is faster",
    "concurrency": "efficiency in per cent, apart in one launch",
    "mixing": "efficiency in per cent, apart in slices",
    "efficiency": "per cent of a warp's lanes that work",
    "hits": "per cent of the sectors found in the second-level cache",
    "bandwidth": "per cent of the memory's bandwidth",
    "throughput": "GiB per second between memory and second-level cache",
    "sectors": "sectors of 32 bytes per key, to and from memory",
    "requests": "sectors of 32 bytes per key, to and from the second-level cache",
}
"""Units by the last word of a panel ``"dynamic ..."``, ``"resize ..."``, ``"wide ..."``, ``"sizes ..."``,
``"profile ..."``, ``"board ..."``, ``"bus ..."``, ``"chunk ..."``, ``"slices ..."``, ``"trace ..."``, ``"order ..."``,
``"routing ..."``, ``"sorted ..."`` or ``"tiers ..."``."""

EXPERIMENTS: dict[str, Callable[[_Spot], Points]] = {
    "build": _tables,
    "insert": _tables,
    "find": _tables,
    "mix": _mixes,
    "batches": _batches,
    "allocate": _allocators,
    "access": _accesses,
    "profile": _profiles,
    "resize": _resizes,
    "routing": _routing,
    "wide": _widths,
    "sizes": _sizes,
    "board": _boards,
    "bus": _bus,
    "chunk": _chunks,
    "slices": _slices,
    "trace": _traces,
    "contest": _contest,
    "tiers": _tiers,
    "order": _orders,
    "sorted": _sorted,
    "unsorted": _sorted,
    "dynamic": _dynamic,
}
"""Experiments by the first word of a panel. All panels of a figure belong to one experiment."""


def _value(metric: str, m: Measurement) -> float | None:
    if metric == "sectors" and m.probes_per_key is not None:
        value_bytes = np.dtype(m.value_dtype).itemsize if m.value_dtype else 0
        reads = reads_of(np.dtype(m.key_dtype).itemsize, value_bytes, m.design, m.parameters)
        return sectors_per_key(m.operation, m.probes_per_key, reads)
    return {"probes": m.probes_per_key, "utilisation": m.utilisation}.get(metric, m.rate_per_s / 1e6)


def _drawn(draw_pairs: Callable[[], Workload], n: int, value: str) -> Workload:
    """The first ``n`` pairs that are drawn, or their keys."""
    pairs = draw_pairs()
    pairs = pairs if n >= len(pairs.keys) else _first(pairs, n)
    return replace(pairs, values=None) if value == "none" else pairs


def _first(workload: Workload, n: int) -> Workload:
    values = None if workload.values is None else workload.values[:n]
    return replace(workload, keys=workload.keys[:n], values=values, absent=workload.absent[:n])
