"""Rows whose columns have names on both sides are compared by these names, as the rows of tables are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

MAKERS = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
    "mapping": lambda columns: {name: np.array(items) for name, items in columns.items()},
}
libraries = pytest.mark.parametrize("library", MAKERS)
ROWS: dict[str, list[Any]] = {"x": [1, 3, 1], "y": ["a", "b", "a"]}
TURNED: dict[str, list[Any]] = {"y": ["a", "z"], "x": [1, 3]}


def plain(made: Any) -> list[Any]:
    return made.to_pylist() if hasattr(made, "to_pylist") else np.asarray(made).tolist()


@libraries
def test_frames_are_compared_by_the_names_of_their_columns(library: str) -> None:
    rows, turned = (MAKERS[library](columns) for columns in (ROWS, TURNED))
    assert plain(warphash.isin(rows, turned)) == [True, False, True]
    pairs = warphash.join(rows, turned, "left")
    assert plain(pairs.left) == [0, 1, 2] and plain(pairs.right) == [0, -1, 0]
    index = warphash.Index(turned)
    assert plain(index.get_indexer(rows)) == [0, -1, 0]
    assert plain(index.contains(rows)) == [True, False, True]
    assert plain(warphash.isin(rows, index)) == [True, False, True]
    swapped = MAKERS[library]({"x": [1, 2], "y": [2, 1]})
    assert plain(warphash.isin(swapped, MAKERS[library]({"y": [1], "x": [2]}))) == [False, True]


@libraries
def test_frames_with_other_names_are_refused(library: str) -> None:
    rows, others = MAKERS[library](ROWS), MAKERS[library]({"x": [1], "z": ["a"]})
    calls = (
        lambda: warphash.isin(rows, others),
        lambda: warphash.join(rows, others),
        lambda: warphash.Index(others).contains(rows),
    )
    for call in calls:
        with pytest.raises(warphash.DtypeError, match=r"columns x, z, .* got x, y: .*rename .* tuples of columns"):
            call()
    both = [tuple(np.array(items) for items in columns.values()) for columns in (ROWS, {"x": [1], "z": ["a"]})]
    assert warphash.isin(*both).tolist() == [True, False, True]


def test_names_that_are_positions_and_rows_without_names_go_by_position() -> None:
    rows = pandas.DataFrame(ROWS)
    assert warphash.isin(rows, (np.array([1]), np.array(["a"]))).tolist() == [True, False, True]
    assert warphash.isin(rows, pandas.DataFrame({0: [1], 1: ["a"]})).tolist() == [True, False, True]
    left, right = pandas.DataFrame({"a": [1], "b": [2]}), pandas.DataFrame({"c": [1], "d": [2], "v": [9]})
    assert warphash.merge(left, right, left_on=["a", "b"], right_on=["c", "d"])["v"].tolist() == [9]


@pytest.mark.parametrize("make", [pyarrow.array, polars.Series])
def test_structs_are_compared_by_the_names_of_their_fields(make: Any) -> None:
    given = make([{"x": 1, "y": 2}, {"x": 2, "y": 1}])
    turned = make([{"y": 1, "x": 2}])
    assert plain(warphash.isin(given, turned)) == [False, True]
    assert plain(warphash.Index(turned).get_indexer(given)) == [-1, 0]
    frame = MAKERS["pyarrow" if make is pyarrow.array else "polars"]
    made = warphash.merge(frame({"k": given}), frame({"k": turned, "v": make([9])}), "left")
    assert np.array_equal(np.asarray(made["v"], np.float64), [np.nan, 9], equal_nan=True)
    with pytest.raises(warphash.DtypeError, match=r"must have the columns x, y, .* got x, z: rename"):
        warphash.isin(given, make([{"x": 1, "z": 2}]))
