"""Pictures: what they say of their origin, units that can be read, and series that differ without colour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")


from warphash.lab.bench.runner import Measurement
from warphash.lab.figures import catalogue
from warphash.lab.figures.catalogue import Point
from warphash.lab.report import figure_plots, plots, results
from warphash.lab.report.looks import LOOKS
from warphash.lab.rivals.contest import Contest

BY = results.made_by("warphash bench --quick")


def texts(canvas: Any) -> list[str]:
    shown = canvas.findobj(match=lambda artist: hasattr(artist, "get_text") and artist.get_visible())
    return [artist.get_text() for artist in shown if artist.get_text()]


def points_of(name: str, value: float) -> tuple[catalogue.Figure, list[Point]]:
    """A figure, and a point of this value at each place."""
    found = catalogue.load(name)
    points = [Point(s.label, panel, x, value) for s in found.series for panel in found.panels for x in found.values]
    return found, points


def draw(name: str, value: float, path: Path, drop: str = "", **changes: Any) -> None:
    found, points = points_of(name, value)
    points = [p for p in points if p.series != drop]
    figure_plots.draw(replace(found, **changes), points, [], path / "x.png", "a machine", 1000, BY)


def test_a_picture_says_what_made_it(tmp_path: Path, drawn: list[Any]) -> None:
    draw("fig05", 1.0, tmp_path)
    assert BY in texts(drawn[0]) and BY.startswith("warphash bench --quick") and "warphash 0" in BY


def test_thousands_of_millions_are_billions(tmp_path: Path, drawn: list[Any]) -> None:
    draw("fig04", 36_846.0, tmp_path)
    assert "billion keys per second" in texts(drawn[0])
    draw("fig04", 846.0, tmp_path)
    assert "million keys per second" in texts(drawn[1])
    highest = [max(max(line.get_ydata()) for line in canvas.axes[0].lines) for canvas in drawn]
    assert highest == [pytest.approx(36.846), 846]


def test_a_bar_that_is_missing_is_said_not_to_be_measured(tmp_path: Path, drawn: list[Any]) -> None:
    found = catalogue.load("dy8")
    draw("dy8", 5.0, tmp_path, drop=found.series[-1].label)
    assert texts(drawn[0]).count("not measured") == len(found.panels)


def test_bars_beside_sweeps_are_of_what_they_show_alone(tmp_path: Path, drawn: list[Any]) -> None:
    found, points = points_of("stash13", 5.0)
    points = [p for p in points if (p.panel == "chunk threshold") == (p.series == "fit") and p.panel != "chunk gain"]
    points += [replace(p, x=p.x + 0.1) for p in points if p.panel == "chunk time"]
    figure_plots.draw(found, points, [], tmp_path / "x.png", "a machine", 1000)
    assert "not measured" not in texts(drawn[0])
    assert [label.get_text() for label in drawn[0].axes[2].get_xticklabels()] == ["fit"]


@pytest.mark.parametrize("name", catalogue.names())
def test_panels_have_titles_of_their_own(name: str) -> None:
    """No reader knows the names that the data files have. Panels of one title show different things of a data set."""
    found = catalogue.load(name)
    titles = [figure_plots._title(panel, 1000) for panel in found.panels]
    names = {panel.partition(" of ")[0] for panel in found.panels}
    assert not names & {part for title in titles for part in title.lower().split(": ")}
    shown = {(title, panel.partition(" of ")[0]) for title, panel in zip(titles, found.panels, strict=True)}
    assert len(shown) == len(found.panels)
    assert len(set(titles)) == len(titles) or all(panel.startswith(("dynamic", "resize")) for panel in found.panels)


def test_markers_of_a_level_line_are_whole(tmp_path: Path, drawn: list[Any]) -> None:
    found, points = points_of("fig04", 5.0)
    figure_plots.draw(found, points, [], tmp_path / "x.png", "a machine", 1000)
    assert all(axis.get_ylim()[1] >= 1.05 * 5 for axis in drawn[0].axes)


def test_bars_of_very_different_height_have_a_logarithmic_axis(tmp_path: Path, drawn: list[Any]) -> None:
    found, points = points_of("dy8", 5.0)
    lowest = [replace(p, value=0.005) if p.series == found.series[0].label else p for p in points]
    for its in (points, lowest):
        figure_plots.draw(found, its, [], tmp_path / "x.png", "a machine", 1000)
    assert [canvas.axes[0].get_yscale() for canvas in drawn] == ["linear", "log"]


def test_labels_of_bars_have_room(tmp_path: Path, drawn: list[Any]) -> None:
    draw("dy8", 5.0, tmp_path)
    assert drawn[0].axes[0].get_ylim()[1] >= 1.1 * 5


def test_values_that_depend_on_no_series_are_one_bar(tmp_path: Path, drawn: list[Any]) -> None:
    found, points = points_of("stashbus", 5.0)
    points[0] = replace(points[0], value=6.0)
    assert points[0].panel == found.panels[0] == "bus ceiling"
    figure_plots.draw(found, points, [], tmp_path / "x.png", "a machine", 1000)
    ceiling, insert = drawn[0].axes[:2]
    assert len(ceiling.patches) == 1 and "5.00 to 6.00" in texts(ceiling)
    assert len(insert.patches) == len(found.series)


def test_keys_of_a_batch_are_not_those_of_the_table(tmp_path: Path, drawn: list[Any]) -> None:
    found, points = points_of("stashbus", 5.0)
    points += [replace(p, x=16384.0) for p in points if p.panel != "bus ceiling"]
    figure_plots.draw(found, points, [], tmp_path / "x.png", "a machine", 1000)
    assert [axis.get_xlabel() for axis in drawn[0].axes[1:]] == ["keys of a batch"] * 4


def test_bits_of_a_ticket_have_ticks(tmp_path: Path, drawn: list[Any]) -> None:
    draw("stash18a", 5.0, tmp_path)
    assert [label.get_text() for label in drawn[0].axes[0].get_xticklabels()] == ["1", "2", "4", "8"]


@pytest.mark.parametrize(("name", "told"), [("dyalpha", "1,000 keys of RAND, the "), ("fig04", "1,000 keys.")])
def test_the_keys_told_are_those_of_the_largest_set(name: str, told: str, tmp_path: Path, drawn: list[Any]) -> None:
    draw(name, 5.0, tmp_path)
    assert any(text.startswith(f"a machine, {told}") for text in texts(drawn[0]))


def test_five_data_sets_stand_side_by_side(tmp_path: Path, drawn: list[Any]) -> None:
    draw("dy10", 5.0, tmp_path)
    titles = [axis.get_title(loc="left") for axis in drawn[0].axes]
    assert len(titles) == 15 and [title.partition(":")[0] for title in titles[:5]] == [
        "TW",
        "RE",
        "LINE",
        "COM",
        "RAND",
    ]
    assert len({title.partition(":")[2] for title in titles[:5]}) == 1


def test_series_differ_without_colour() -> None:
    lines = [(look.marker, look.dashes) for look in LOOKS]
    assert (
        len(set(lines)) == len({look.pattern for look in LOOKS}) == len({look.letter for look in LOOKS}) == len(LOOKS)
    )
    for name in catalogue.names():
        assert len(catalogue.load(name).series) <= len(LOOKS), f"{name} has more series than there are looks"


def test_rivals_are_in_the_picture_of_a_bench(tmp_path: Path, drawn: list[Any]) -> None:
    measurement = Measurement(
        *("random", "iceberg", {}, "cpu", 10, 0.8, "uint32", "uint32", "build", 3e9, 1.0, 1, None, 10.0, 0)
    )
    finds = [replace(measurement, operation=f"find {share}") for share in (100, 50, 0)]
    contests = [
        Contest("random int64", name, 10, build, 2e6, 3e6, 4e6, 0, 2, {"find 100": (1e6, 3e6)})
        for name, build in (("warphash", 5e6), ("polars is_in", None))
    ]
    plots.draw_bench([measurement, *finds], tmp_path / "x.png", "a machine", contests, BY)
    said = texts(drawn[0])
    assert {"polars is_in", "warphash", "iceberg", "Billion keys per second", BY} <= set(said)
    assert any("random int64" in text and "2 threads" in text for text in said)
    assert any("from the slowest run to the fastest" in text for text in said)


def test_a_line_reaches_from_the_slowest_run_to_the_fastest(tmp_path: Path, drawn: list[Any]) -> None:
    old = Measurement(
        *("random", "iceberg", {}, "cpu", 10, 0.8, "uint32", "uint32", "build", 4e6, 2.0, 3, None, 10.0, 0)
    )
    assert old.rates_per_s == (4e6, 4e6)
    new = replace(old, least_seconds=1.0, most_seconds=4.0)
    assert new.rates_per_s == (2e6, 8e6)
    for measurement in (old, new):
        plots.draw_bench([measurement], tmp_path / "x.png", "a machine", (), BY)
    ends = [
        [line.get_segments()[0][:, 0].tolist() for axis in canvas.axes for line in axis.collections] for canvas in drawn
    ]
    assert ends == [[], [[2.0, 8.0]]]
    assert [any("slowest" in text for text in texts(canvas)) for canvas in drawn] == [False, True]
