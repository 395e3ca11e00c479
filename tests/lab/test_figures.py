"""The figures' data files say what can be run, and one of each kind runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warphash.designs import registry
from warphash.errors import ParameterError
from warphash.lab import figure_data
from warphash.lab.bench import OPERATIONS
from warphash.lab.figure import run


def test_every_figure_and_table_of_the_seed_is_there() -> None:
    assert figure_data.names() == [f"fig{i:02}" for i in range(2, 15)] + [f"table{i}" for i in range(1, 6)]


@pytest.mark.parametrize("name", figure_data.names())
def test_a_file_names_what_exists(name: str) -> None:
    found = figure_data.load(name)
    labels = {series.label for series in found.series}
    assert found.metric in ("rate", "mean rate", "probes", "success") and found.x in ("load_factor", "keys")
    assert set(found.panels) <= set(OPERATIONS) and found.values == sorted(found.values)
    assert "S4-" in found.source and len(labels) == len(found.series)
    for series in found.series:
        registry.get(series.design).resolve(series.parameters)
        assert any(value <= series.most for value in found.values) or found.x == "keys"
    for point in found.published:
        assert point.series in labels and point.panel in found.panels and point.value > 0


@pytest.mark.parametrize("name", ["fig02", "fig05", "fig10", "table4"])
def test_one_of_each_kind_runs(name: str, tmp_path: Path) -> None:
    made = run(name, "cpu", 5_000, tmp_path)
    record = json.loads((tmp_path / f"{name}.json").read_text())
    assert made.mismatches == record["mismatches"] == 0
    assert made.picture.stat().st_size > 10_000
    assert {point.series for point in made.points} <= {series.label for series in figure_data.load(name).series}
    assert all(point.value >= 0 for point in made.points) and len(made.points) == len(record["points"]) > 0


def test_an_unknown_figure_is_named() -> None:
    with pytest.raises(ParameterError, match=r"fig99.*fig02"):
        figure_data.load("fig99")
