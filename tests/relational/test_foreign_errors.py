"""Columns that another library refuses: they are answered, or refused with an error of warphash that has the mend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")

RUNS = pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([2, 3, 5], pyarrow.int32()), pyarrow.array([5, 1, 5]))
"""5, 5, 1, 5, 5."""


@pytest.mark.parametrize("dtype", ["double[pyarrow]", "float[pyarrow]"])
def test_counts_of_rows_with_both_zeros(dtype: str) -> None:
    frame = pandas.DataFrame({"a": pandas.Series([0.0, -0.0, None, -0.0], dtype=dtype), "b": [1, 2, 3, 2]})
    made = warphash.value_counts(frame)
    assert made.tolist() == [2, 1] and [tuple(label) for label in made.index] == [(0.0, 2), (0.0, 1)]
    assert str(made.index.get_level_values(0).dtype) == dtype
    assert warphash.value_counts(frame, dropna=False).tolist() == [2, 1, 1]


@pytest.mark.parametrize("given", [RUNS, pyarrow.chunked_array([RUNS, RUNS])], ids=["array", "chunks"])
def test_encoded_runs_are_taken(given: Any) -> None:
    values, inverse = warphash.unique(given, return_inverse=True)
    assert values.type == RUNS.type and values.to_pylist() == [5, 1]
    assert inverse.to_pylist()[:5] == [0, 0, 1, 0, 0]
    assert warphash.unique(given, sorted=True).to_pylist() == [1, 5]
    assert warphash.factorize(given)[1].to_pylist() == [5, 1]
    frame = pyarrow.table({"k": given, "v": np.arange(len(given))})
    assert warphash.drop_duplicates(frame, "k").to_pydict() == {"k": [5, 1], "v": [0, 2]}
    assert warphash.drop_duplicates(frame, "k").schema == frame.schema
    made = warphash.merge(pyarrow.table({"k": [1, 7]}), frame.slice(0, 5), "left")
    assert made.to_pydict() == {"k": [1, 7], "v": [2, None]}
    assert warphash.Index(given).contains(np.array([1, 2])).tolist() == [True, False]


@pytest.mark.parametrize(
    "given",
    [
        pyarrow.array([[1, 2], [0, 1]], pyarrow.list_(pyarrow.int64(), 2)),
        pyarrow.array([{"a": 2}, {"a": 1}]),
    ],
    ids=lambda given: str(given.type),
)
def test_values_without_an_order_are_refused_where_they_are_sorted(given: Any) -> None:
    calls = (
        lambda: warphash.unique(given, sorted=True),
        lambda: warphash.factorize(given, sort=True),
        lambda: warphash.group_by(given, order="sorted").agg(n="size"),
        lambda: warphash.union1d(given, given),
    )
    for call in calls:
        with pytest.raises(warphash.DtypeError, match=r"pyarrow does not sort values of type .*sorted=False"):
            call()
    assert warphash.union1d(given, given, sorted=False).to_pylist() == given.to_pylist()


@pytest.mark.parametrize("how", ["right", "outer"])
@pytest.mark.parametrize("library", ["pandas", "polars", "mapping"])
def test_keys_that_a_common_type_lacks_are_refused(library: str, how: Any) -> None:
    make: Any = {"pandas": pandas.DataFrame, "mapping": lambda columns: {"k": np.array(columns["k"])}}.get(library)
    make = make or pytest.importorskip("polars").DataFrame
    halves, large = make({"k": [0.5]}), make({"k": [2**53, 2**53 + 1]})
    for sides in ((halves, large), (large, halves)):
        if how == "outer" or sides[0] is halves:
            with pytest.raises(warphash.DtypeError, match="float64 has no 9007199254740993: convert the keys"):
                warphash.merge(*sides, how)
    exact = make({"k": [2**53, 7]})
    assert list(warphash.merge(halves, exact, "right")["k"]) == [2.0**53, 7.0]
    assert list(warphash.merge(large, halves, "left")["k"]) == [2**53, 2**53 + 1]


def test_items_of_no_width_are_refused() -> None:
    with pytest.raises(warphash.DtypeError, match=r"w:0.*give text or bytes as a single column"):
        warphash.unique(pyarrow.array([b""], pyarrow.binary(0)))
