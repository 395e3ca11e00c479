"""Tests of ratios: ours are computed over the values of x that both lines have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warphash.lab.figures import catalogue
from warphash.lab.figures.catalogue import Point, Ratio
from warphash.lab.figures.ratios import compare

POINTS = [
    *(Point("cuckoo", "find 0", x, value) for x, value in ((0.1, 8.0), (0.5, 9.0), (0.65, 6.0))),
    *(Point("slab list", "find 0", x, value) for x, value in ((0.1, 4.0), (0.65, 12.0), (0.9, 1.0))),
    Point("slab list", "find 100", 0.1, 1.0),
]


@pytest.mark.parametrize(("at", "value"), [("all", 1.0), ("last", 0.5), (0.1, 2.0), (0.65, 0.5), (0.9, None)])
def test_a_ratio(at: float | str, value: float | None) -> None:
    figure = replace(catalogue.load("slab4"), ratios=[Ratio("find 0", "cuckoo", "slab list", 2.04, at)])
    found = compare(figure, POINTS)
    assert [c.value for c in found] == ([] if value is None else [pytest.approx(value)])


def test_a_ratio_of_several_data_sets_is_their_mean() -> None:
    values = {("DyHash", "re"): 8.0, ("Linear", "re"): 2.0, ("DyHash", "com"): 9.0, ("Linear", "com"): 1.0}
    points = [Point(series, f"dynamic rate of {data}", 0.4, value) for (series, data), value in values.items()]
    points.append(Point("DyHash", "dynamic memory of re", 0.4, 5.0))
    points.append(Point("Linear", "dynamic memory of re", 0.4, 1.0))
    figure = replace(catalogue.load("dyrate"), ratios=[Ratio("dynamic rate", "DyHash", "Linear", 6.62)])
    assert [c.value for c in compare(figure, points)] == [pytest.approx(6.0)]


def test_an_operation_that_was_not_measured_has_none() -> None:
    figure = replace(catalogue.load("slab4"), ratios=[Ratio("find 100", "cuckoo", "slab list", 2.08)])
    assert compare(figure, POINTS) == []
