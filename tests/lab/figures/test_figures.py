"""Tests of the figures: every data file names experiments that exist, and one figure of each kind runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warphash.designs import registry
from warphash.errors import ParameterError, TableFull
from warphash.lab.bench.ceilings import Ceilings
from warphash.lab.bench.oracle import Answers
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data.dynamic_sets import pairs_of
from warphash.lab.figures import catalogue, experiments
from warphash.lab.figures.catalogue import Point
from warphash.lab.figures.experiments import EXPERIMENTS, PANEL_METRICS, panel_metric
from warphash.lab.figures.fill import MEASURES
from warphash.lab.figures.profiles import AMOUNTS, SHARES, Profile
from warphash.lab.figures.rejected import Orders
from warphash.lab.report import figure_files, figure_plots
from warphash.lab.report.figure_files import run
from warphash.lab.report.figure_tables import render_figure
from warphash.lab.report.results import SCHEMA, why_stale

METRICS = (
    *("rate", "mean rate", "operation rate", "allocation rate", "time", "probes", "success", "utilisation"),
    *("sectors", "failures", "access rate", "contest rate", "panel"),
)
NO_TABLES = ("allocation rate", "access rate", "contest rate")
SLABS = ["slab4", "slab4c", "slab5", "slab6", "slab7a", "slab7b", "slaballoc"]
DYHASH = [
    *(f"dy{number}" for number in (10, 3, 7, 8, 9)),
    *(f"dy{of}" for of in ("alpha", "batch", "beta", "fail", "grow", "r", "rate", "route", "stable", "voter", "wide")),
]
STASH = [
    *("stash1", "stash13", "stash14", "stash16", "stash17"),
    *("stash18a", "stash18b", "stash19a", "stash19b", "stashbus"),
]
HH = ["hh1", "hh2", "hh3", "hh4", "hh5", "hh6a", "hh6b", "hhtiers"]
KINDS = [
    *("fig02", "fig05", "fig10", "figsectors", "figthreshold", "table4", *SLABS),
    *("dy3", "dy7", "dy8", "dyroute", "dystable", "dyvoter", "dywide"),
    *STASH[1:],
    *HH,
]
TAKES_LONG = ("dywide", "dyroute", "dy3", "slab6", "stash14", "stash19a", "stash19b")


def test_every_figure_and_table_of_the_papers_is_there() -> None:
    at_90 = ["fig04b", "fig07b", "fig10b", "fig13b"]
    ours = ["figchoices", "figsectors", "figthreshold", "figthresholdb"]
    tables = ["table1", "table2", *(f"table{number}{row}" for number in (3, 4, 5) for row in ("", "b", "c"))]
    better = sorted([*(f"fig{i:02}" for i in range(2, 16)), *at_90, *ours]) + tables
    assert catalogue.names() == better + SLABS + DYHASH + STASH + HH
    assert {catalogue.load(name).paper for name in better} == {
        "Better GPU Hash Tables (Awad et al., 2021, arXiv 2108.07232)"
    }
    assert {catalogue.load(name).paper for name in SLABS} == {
        "A Dynamic Hash Table for the GPU (Ashkiani et al., 2018)"
    }
    assert {catalogue.load(name).paper for name in STASH} == {"Stadium Hashing (Khorasani et al., 2015)"}
    assert {catalogue.load(name).paper for name in HH} == {"HH Hash (write-up of two-level cuckoo hashing)"}
    assert {catalogue.load(name).paper for name in DYHASH} == {"Dynamic Hash Tables on GPUs (draft, 2018)"}


@pytest.mark.parametrize("name", catalogue.names())
def test_a_file_names_what_exists(name: str) -> None:
    found = catalogue.load(name)
    labels = {series.label for series in found.series}
    swept, of_tables = found.x in ("keys", "buckets", "places"), found.metric not in NO_TABLES
    tables = [series for series in found.series if of_tables and series.design != "dict"]  # Python's has no parameters
    parameters = [{p.name for p in registry.get(series.design).parameters} for series in tables]
    assert found.metric in METRICS
    of_hh = ("range_slots", "rounds", "exponent")
    if found.metric == "panel":
        assert found.x in ("keys", "key_bytes", "row_bytes", "load_factor", "ticket_bits", *vars(found.dynamic), *of_hh)
        assert {panel_metric(panel) for panel in found.panels} <= set(PANEL_METRICS)
    elif of_tables:
        assert found.x in ("keys", *MEASURES) or all(found.x in known for known in parameters)
        assert found.x in MEASURES or {found.load_factor, found.utilisation} > {None}
    for data in found.by_data():
        assert len(pairs_of(data, 1000, seed=1).keys)
    assert {panel.split()[0] for panel in found.panels} <= set(EXPERIMENTS) and found.values == sorted(found.values)
    assert found.values[-1] <= found.keys or not swept
    numbered = r"\), (Figure|Table|section|chart)s? [\dIVF]|\), the (first|second) attempt"  # of HH Hash
    assert re.search(numbered, found.source) and len(labels) == len(found.series)
    for series in tables:
        registry.get(series.design).resolve(series.parameters)
    for series in found.series:
        assert any(map(series.reaches, found.values)) or found.x == "keys"
    for point in found.published:
        assert point.series in labels and point.panel in found.panels
        assert point.value > 0 or found.metric == "failures"
    for ratio in found.ratios:
        panels = {*found.panels, *(panel.partition(" of ")[0] for panel in found.panels)}
        assert {ratio.of, ratio.over} <= labels and ratio.panel in panels and ratio.published > 0
        assert ratio.at in ("all", "last", *found.values)


def safe_load_of(series: catalogue.Series) -> float:
    design = registry.get(series.design)
    return design.safe_load_factor(design.resolve(series.parameters))


@pytest.mark.parametrize("name", ["fig04", "fig07", "fig10", "fig13"])
def test_figures_over_keys_are_drawn_at_both_loads(name: str) -> None:
    """At 0.9 there are the lines that can be so full, with the paper's numbers for that load."""
    lower, higher = catalogue.load(name), catalogue.load(f"{name}b")
    assert (lower.load_factor, higher.load_factor) == (0.8, 0.9)
    assert (lower.values, lower.panels, lower.paper) == (higher.values, higher.panels, higher.paper)
    assert [s.label for s in higher.series] == [s.label for s in lower.series if safe_load_of(s) > 0.85]
    at_80 = {(point.series, point.panel): point.value for point in lower.published}
    for point in higher.published:
        assert 0.7 * at_80[point.series, point.panel] < point.value < 1.02 * at_80[point.series, point.panel]
    assert len(higher.published) == len(higher.series) * len(higher.panels)


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (f"table{number}{row}", f"fig{name}{load}")
        for number, name in ((3, "04"), (4, "07"), (5, "10"))
        for row, load in (("b", ""), ("c", "b"))
    ],
)
def test_tables_have_the_means_of_figures_over_keys(table: str, name: str) -> None:
    mean, rates = catalogue.load(table), catalogue.load(name)
    assert (mean.metric, mean.series, mean.values) == ("mean rate", rates.series, rates.values)
    assert mean.load_factor == rates.load_factor
    assert mean.published == [replace(point, x=0) for point in rates.published]


@pytest.mark.parametrize("name", ["fig05", "fig08", "fig11", "fig14", "table2"])
def test_lines_of_probes_reach_the_published_loads(name: str) -> None:
    """Each line ends at the highest load for which the paper has a number, but of buckets that fail there often."""
    found = catalogue.load(name)
    for series in found.series:
        published = [point.x for point in found.published if point.series == series.label]
        if safe_load_of(series) > 0.85:
            reached = [x for x in found.values if series.reaches(x)]
            assert set(published) <= set(reached)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in TAKES_LONG)) for name in KINDS]
)
def test_one_of_each_kind_runs(name: str, tmp_path: Path) -> None:
    made = run(name, "cpu", 5_000, tmp_path)
    found, record = catalogue.load(name), json.loads((tmp_path / f"{name}.json").read_text())
    assert made.mismatches == record["mismatches"] == 0
    assert made.picture.stat().st_size > 10_000
    assert {point.series for point in made.points} <= {series.label for series in found.series}
    assert {point.panel for point in made.points} == set(found.panels)
    assert len(list(render_figure(found, made.points))) == len(found.panels)
    assert all(point.value >= 0 or panel_metric(point.panel) == "gain" for point in made.points)
    assert len(made.points) == len(record["points"]) > 0
    assert len(made.ratios) == len(record["ratios"]) == len(found.ratios)


@pytest.mark.parametrize("name", ["dyalpha", "dybeta", "dyr", "dybatch"])
def test_parts_of_a_time_make_the_whole(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = catalogue.load(name)
    small = replace(
        found, panels=[panel for panel in found.panels if panel.endswith("of com")], values=found.values[:2]
    )
    monkeypatch.setattr(figure_files, "load", lambda _: small)
    made = run(name, "cpu", 3_000, tmp_path)
    assert made.mismatches == 0 and made.picture.stat().st_size > 10_000
    times = [point for point in made.points if point.panel == "dynamic time of com"]
    assert {point.x for point in times} == set(small.values) and len(times) == 2 * 5 * len(small.series)
    for whole in (point for point in times if not point.part):
        parts = [p.value for p in times if (p.series, p.x) == (whole.series, whole.x) and p.part]
        assert sum(parts) == pytest.approx(whole.value) and len(parts) == 4 and min(parts) >= 0
    rows = [table.columns[0]._cells for table in render_figure(small, made.points)]
    assert len(rows) == 2 and rows[0][:5] == ["  insert", "  find", "  erase", "  resize", rows[1][0]]


def test_the_utilisation_of_slabs_is_that_of_the_paper(tmp_path: Path) -> None:
    """The utilisation of random keys does not depend on the device (docs/fidelity.md#slabhash-utilisation)."""
    made = run("slab4c", "cpu", 300_000, tmp_path)
    ours = {(point.series, point.x): point.value for point in made.points}
    for point in catalogue.load("slab4c").published:
        assert ours[point.series, point.x] == pytest.approx(point.value, abs=0.005)


def test_a_load_that_no_build_reaches_has_no_point() -> None:
    """A table that may grow would be measured at half the load."""
    found = replace(catalogue.load("fig08"), values=[0.6, 0.95])
    series = replace(found.series[0], parameters={"slots_per_bucket": 8}, most=None)
    points = list(experiments.measured(replace(found, series=[series]), Lab("cpu"), 5_000, 1, lambda _: None))
    assert {(point.panel, point.x) for point, _ in points} == {(panel, 0.6) for panel in found.panels}


@pytest.mark.parametrize(
    ("keys", "failing", "share", "builds"),
    [
        (100, (), 1.0, 200),
        (50, (), 1.0, 100),
        (2, (3, 4), 0.8, 10),
        (100, range(1, 200), 0.005, 200),
        (100, range(200), 0, 10),
    ],
)
def test_the_share_of_builds_that_succeed(
    keys: int, failing: Sequence[int], share: float, builds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 builds with the paper's keys, fewer with fewer keys, and ten where all of these fail."""
    found = catalogue.load("fig02")
    found = replace(found, values=[0.8], keys=100, series=found.series[:1])
    seeds: list[int] = []

    def build(lab: Lab, *arguments: Any, seed: int, **options: Any) -> None:
        assert options["attempts"] == 1
        seeds.append(seed)
        if seed in failing:
            raise TableFull("planted")

    monkeypatch.setattr(Lab, "built", build)
    monkeypatch.setattr(Lab, "wrong_pairs", lambda lab, table, columns: 2)
    ((point, wrong),) = experiments.measured(found, Lab("cpu"), keys, 1, lambda _: None)
    assert wrong == 2 * round(share * builds)
    assert point.value == pytest.approx(share) and seeds == list(range(builds))


@pytest.mark.parametrize(
    ("name", "operations"), [("fig15", ["unique", "find"]), ("dy10", ["insert"] * 5), ("stash1", ["unique"] * 4)]
)
def test_a_profile_runs_once_for_each_operation(
    name: str, operations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each set of keys of dy10, and for each load of stash1."""
    found, asked = catalogue.load(name), []

    def profile(*arguments: Any, operation: str, **options: Any) -> Profile:
        asked.append(operation)
        return Profile({counter: float(len(operation)) for counter in (*SHARES, *AMOUNTS)}, 0)

    monkeypatch.setattr(experiments, "measure_profile", profile)
    found = replace(found, series=found.series[:1])
    points = [point for point, _ in experiments.measured(found, Lab("cpu"), 1000, 1, lambda _: None)]
    assert asked == operations and len(points) == len(found.panels) * len(found.values if name == "stash1" else [0])
    for point in points:
        assert point.value == (4 if " find " in point.panel else 6)


def test_a_table_that_drops_keys_and_a_dictionary_stand_beside_the_others(tmp_path: Path, monkeypatch: Any) -> None:
    found = catalogue.load("dy9")
    panels = [panel for panel in found.panels if panel.endswith("of com")]
    series = [s for s in found.series if s.drops or s.design in ("dict", "megakv")]
    small = replace(found, panels=panels, values=[0.3, 0.9], series=series)
    monkeypatch.setattr(figure_files, "load", lambda _: small)
    made = run("dy9", "cpu", 50_000, tmp_path)
    assert made.mismatches == 0 and made.picture.stat().st_size > 10_000
    xs = {s.label: sorted(p.x for p in made.points if p.series == s.label and p.panel == panels[0]) for s in series}
    assert xs == {"MegaKV": [0.3], "MegaKV, drops keys": [0.3, 0.9], "Python's dict": [0.3, 0.9]}
    rates = {(p.panel, p.x): p.value for p in made.points if p.series == "Python's dict"}
    assert all(rates[panel, 0.3] == rates[panel, 0.9] > 0 for panel in panels), "measured once"


def test_the_slowest_batch_is_told_of_each_half() -> None:
    found = replace(catalogue.load("dystable"), series=catalogue.load("dystable").series[:1])
    panel, label = found.panels[0], found.series[0].label
    points = [catalogue.Point(label, panel, x, value) for x, value in enumerate([1, 1, 3, 2, 2, 10], 1)]
    assert list(figure_plots._slowest(found, panel, points)) == [f"{label} 3.0 and 5.0"]
    once = replace(found, dynamic=replace(found.dynamic, again=False))
    assert list(figure_plots._slowest(once, panel, points)) == [f"{label} 5.0"]


def test_a_figure_says_where_its_tables_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    measure, memories = experiments.measure_widths, []

    def noting(lab: Lab, setting: Setting, *arguments: Any, **options: Any) -> Any:
        memories.append(setting.parameters.get("memory"))
        return measure(lab, setting, *arguments, **options)

    monkeypatch.setattr(experiments, "measure_widths", noting)
    plain = replace(catalogue.load("stash19a"), values=[8], series=catalogue.load("stash19a").series[:1])
    for found in (plain, replace(plain, memory="host")):
        points = list(experiments.measured(found, Lab("cpu", repetitions=1), 500, 1, lambda _: None))
        assert len(points) == 6 and not any(wrong for _, wrong in points)
    assert memories == [None, "host"]


def test_an_unknown_figure_is_named() -> None:
    with pytest.raises(ParameterError, match=r"fig99.*fig02"):
        catalogue.load("fig99")


SICK = Profile(dict.fromkeys((*SHARES, *AMOUNTS), 50.0), 3)
COUNTED = {
    "fig02": lambda patch: patch.setattr(Lab, "wrong_pairs", lambda *_: 3),
    "dy3": lambda patch: patch.setattr(Ceilings, "wrong_places", lambda *_: 3),
    "dy10": lambda patch: patch.setattr(experiments, "measure_profile", lambda *_, **__: SICK),
    "hh6a": lambda patch: patch.setattr(experiments, "measure_orders", lambda *_: Orders(0.5, 0.4, 3)),
    "table4": lambda patch: patch.setattr(Answers, "mismatches", lambda *_: 3),
}
"""Figures, and how each measurement of one is made to count 3 wrong answers."""


@pytest.mark.parametrize("name", COUNTED)
def test_each_row_has_the_wrong_answers_that_were_counted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    COUNTED[name](monkeypatch)
    made = run(name, "cpu", 2_000, tmp_path)
    record = json.loads((tmp_path / f"{name}.json").read_text())
    found = [row["mismatches"] for row in record["points"]]
    wrong = {"fig02": range(0, 31, 3), "table4": range(0, 1000, 3)}.get(name, (3,))  # builds of a point; means
    assert set(found) <= set(wrong) and max(found) > 0
    assert made.mismatches == record["mismatches"] == sum(found)
    assert [Point(**{k: v for k, v in row.items() if k != "mismatches"}) for row in record["points"]] == made.points


def test_a_figure_names_its_kernels_and_the_ceiling_of_its_run(tmp_path: Path) -> None:
    run("slab5", "cpu", 2_000, tmp_path)
    record = json.loads((tmp_path / "slab5.json").read_text())
    assert {"slab", "ceiling"} <= {entry["program"] for entry in record["kernels"]}
    assert {entry["platform"] for entry in record["kernels"]} == {"cpu"}
    assert "iceberg" not in {entry["program"] for entry in record["kernels"]}
    assert record["schema"] == SCHEMA and record["clocks_mhz"] == {} and record["seconds"] > 0
    assert [(c["bucket_bytes"], c["region_bytes"]) for c in record["ceilings"]] == [(64, 64 << 20)]
    assert record["ceilings"][0]["reads_per_s"] > 0
    assert why_stale(record) is None
