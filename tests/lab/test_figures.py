"""The figures' data files say what can be run, and one of each kind runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from warphash.designs import registry
from warphash.errors import ParameterError
from warphash.lab import figure_data
from warphash.lab.experiments import EXPERIMENTS
from warphash.lab.figure import run
from warphash.lab.fill import MEASURES

METRICS = ("rate", "mean rate", "operation rate", "allocation rate", "time", "probes", "success", "utilisation")
SLABS = ["slab4", "slab4c", "slab5", "slab6", "slab7a", "slab7b", "slaballoc"]


def test_every_figure_and_table_of_the_seeds_is_there() -> None:
    better = [f"fig{i:02}" for i in range(2, 15)] + [f"table{i}" for i in range(1, 6)]
    assert figure_data.names() == better + SLABS
    assert {figure_data.load(name).paper for name in better} == {
        "Better GPU Hash Tables (Awad et al., 2021, arXiv 2108.07232)"
    }
    assert {figure_data.load(name).paper for name in SLABS} == {
        "A Dynamic Hash Table for the GPU (Ashkiani et al., 2018)"
    }


@pytest.mark.parametrize("name", figure_data.names())
def test_a_file_names_what_exists(name: str) -> None:
    found = figure_data.load(name)
    labels = {series.label for series in found.series}
    swept = found.x in ("keys", "buckets")
    assert found.metric in METRICS and found.x in ("keys", *MEASURES)
    assert found.x in MEASURES or found.metric == "allocation rate" or {found.load_factor, found.utilisation} > {None}
    assert {panel.split()[0] for panel in found.panels} <= set(EXPERIMENTS) and found.values == sorted(found.values)
    assert found.values[-1] <= found.keys or not swept
    assert re.search(r"\(S[34]-\d\d", found.source) and len(labels) == len(found.series)
    for series in found.series:
        if found.metric != "allocation rate":
            registry.get(series.design).resolve(series.parameters)
        assert series.most is None or any(value <= series.most for value in found.values) or found.x == "keys"
    for point in found.published:
        assert point.series in labels and point.panel in found.panels and point.value > 0
    for ratio in found.ratios:
        assert {ratio.of, ratio.over} <= labels and ratio.panel in found.panels and ratio.published > 0
        assert ratio.at in ("all", "last", *found.values)


@pytest.mark.parametrize("name", ["fig02", "fig05", "fig10", "table4", *SLABS])
def test_one_of_each_kind_runs(name: str, tmp_path: Path) -> None:
    made = run(name, "cpu", 5_000, tmp_path)
    figure, record = figure_data.load(name), json.loads((tmp_path / f"{name}.json").read_text())
    assert made.mismatches == record["mismatches"] == 0
    assert made.picture.stat().st_size > 10_000
    assert {point.series for point in made.points} <= {series.label for series in figure.series}
    assert {point.panel for point in made.points} == set(figure.panels)
    assert all(point.value >= 0 for point in made.points) and len(made.points) == len(record["points"]) > 0
    assert len(made.ratios) == len(record["ratios"]) == len(figure.ratios)


def test_the_utilisation_of_slabs_is_that_of_the_paper(tmp_path: Path) -> None:
    """S3-21, S3-22: exact for keys spread at random, whatever the device."""
    made = run("slab4c", "cpu", 300_000, tmp_path)
    ours = {(point.series, point.x): point.value for point in made.points}
    for point in figure_data.load("slab4c").published:
        assert ours[point.series, point.x] == pytest.approx(point.value, abs=0.005)


def test_an_unknown_figure_is_named() -> None:
    with pytest.raises(ParameterError, match=r"fig99.*fig02"):
        figure_data.load("fig99")
