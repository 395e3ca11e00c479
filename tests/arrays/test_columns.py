"""Answers to columns of pandas, Polars and PyArrow: columns of the same library, with the labels of the keys."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from warphash import DtypeError, HashMap, HashSet, MultiMap

DEVICES = one_of_each("cpu", "emulated", "cuda")
IDS, VALUES = [7, 8, 9], np.array([0.5, 1.5, 2.5], "f4")


@pytest.mark.parametrize("device", DEVICES)
def test_series_of_pandas(device: str) -> None:
    pd = pytest.importorskip("pandas")
    keys = pd.Series(IDS, index=["a", "b", "c"], name="id")
    table = HashMap("i8", "f4", device=device)
    flags = table.insert(keys[:2], pd.Series(VALUES[:2]))
    pd.testing.assert_series_equal(flags, pd.Series([True, True], index=["a", "b"], name="id"))
    values, found = table.find(keys, -1)
    pd.testing.assert_series_equal(values, pd.Series([0.5, 1.5, -1], index=["a", "b", "c"], name="id", dtype="f4"))
    pd.testing.assert_series_equal(found, pd.Series([True, True, False], index=["a", "b", "c"], name="id"))
    assert keys[table.contains(keys)].tolist() == IDS[:2]
    for answer in (
        table[keys[:2]],
        table.get(keys, 0),
        table.pop(keys, 0),
        table.erase(keys),
        table.probe_counts(keys),
    ):
        assert isinstance(answer, pd.Series) and answer.index[0] == "a"
    table.upsert(keys, VALUES, "last")
    table[keys] = pd.Series(VALUES, index=[3, 2, 1])  # by position, as of every library
    assert table[keys].tolist() == VALUES.tolist()
    pd.testing.assert_series_equal(table.keys().sort_values(ignore_index=True), pd.Series(IDS))  # no labels


def test_frames_of_pandas() -> None:
    """A row of a frame is a key that is a row; a row of values is a row of a frame."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1, 2], "y": [3, 4]}, index=[10, 20])
    table = HashMap(("i8", (2,)), ("f4", (3,)), device="cpu")
    rows = np.arange(6, dtype="f4").reshape(2, 3)
    assert table.insert(frame, rows).index.tolist() == [10, 20]
    values, found = table.find(frame)
    pd.testing.assert_frame_equal(values, pd.DataFrame(rows, index=[10, 20]))
    assert isinstance(found, pd.Series) and found.index.tolist() == [10, 20]
    assert type(table[frame.iloc[1]]) is np.ndarray and table[frame.iloc[1]].tolist() == [3, 4, 5]
    grid = HashSet.from_arrays(np.arange(3), device="cpu").contains(frame)  # a table of single numbers
    assert isinstance(grid, pd.DataFrame) and grid.to_numpy().tolist() == [[True, False], [True, False]]
    assert grid.index.tolist() == [10, 20]


def test_an_index_has_no_index() -> None:
    pd = pytest.importorskip("pandas")
    assert type(HashSet.from_arrays(pd.Index(IDS), device="cpu").contains(pd.Index(IDS))) is np.ndarray


@pytest.mark.parametrize("device", DEVICES)
def test_polars(device: str) -> None:
    pl = pytest.importorskip("polars")
    keys = pl.Series("id", IDS)
    table = HashMap.from_arrays(keys[:2], pl.Series(VALUES[:2]), device=device)
    values, found = table.find(keys, -1)
    assert values.equals(pl.Series("id", [0.5, 1.5, -1.0], pl.Float32), check_names=True, check_dtypes=True)
    assert found.equals(pl.Series("id", [True, True, False]), check_names=True, check_dtypes=True)
    assert isinstance(table.keys(), pl.Series) and sorted(table.keys()) == IDS[:2]
    frame = pl.DataFrame({"id": IDS}).filter(pl.col("id").map_batches(table.contains, pl.Boolean))
    assert frame["id"].to_list() == IDS[:2]
    rows = HashMap(("i8", (2,)), ("f4", (2,)), device=device)
    pairs = pl.DataFrame({"x": [1, 2], "y": [3, 4]})
    assert rows.insert(pairs, np.eye(2, dtype="f4")).to_list() == [True, True]
    assert rows[pairs].dtype == pl.Array(pl.Float32, 2) and rows[pairs].to_list() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("device", DEVICES)
def test_pyarrow(device: str) -> None:
    pa = pytest.importorskip("pyarrow")
    table = HashMap.from_arrays(pa.array(IDS[:2]), pa.array(VALUES[:2]), device=device)
    for keys in (pa.array(IDS), pa.chunked_array([IDS[:1], IDS[1:]])):
        values, found = table.find(keys, -1)
        assert values.equals(pa.array([0.5, 1.5, -1], pa.float32())) and found.equals(pa.array([True, True, False]))
        assert table.contains(keys).equals(found)
    assert isinstance(table.keys(), pa.Int64Array) and sorted(table.keys().to_pylist()) == IDS[:2]
    rows = HashMap(("i8", (2,)), ("f4", (2, 1)), device=device)
    pairs = pa.table({"x": [1, 2], "y": [3, 4]})
    assert rows.insert(pairs, np.eye(2, dtype="f4")[..., None]).to_pylist() == [True, True]
    assert rows[pairs].to_pylist() == [[[1], [0]], [[0], [1]]]


def test_all_values_of_keys() -> None:
    """There are as many values as pairs, so these have no labels."""
    pd = pytest.importorskip("pandas")
    keys = pd.Series([1, 2, 1], index=list("abc"))
    table = MultiMap.from_arrays(keys, keys, device="cpu")
    values, offsets = table.find_all(keys)
    assert values.index.tolist() == [0, 1, 2, 3, 4] and offsets.tolist() == [0, 2, 3, 5]
    assert table.count(keys)["c"] == 2 and table.find(keys)[1]["b"]


@pytest.mark.parametrize(
    ("library", "value"),
    [("pandas", [("a", "i4")]), ("polars", "M8[s]"), ("pyarrow", [("a", "i4")]), ("pyarrow", "c8")],
    ids=str,
)
def test_values_of_which_a_library_has_no_column(library: str, value: Any) -> None:
    """Refused before anything is done."""
    module = pytest.importorskip(library)
    keys = module.array(IDS) if library == "pyarrow" else module.Series(IDS)
    table = HashMap("i8", value, device="cpu")
    with pytest.raises(DtypeError, match=f"{library} has no column of"):
        table.find_or_insert(keys, np.zeros(3, value))
    with pytest.raises(DtypeError, match="pass NumPy arrays"):
        table.find(keys)
    assert len(table) == 0 and np.asarray(table.insert(keys, np.zeros(3, value))).all()


@pytest.mark.parametrize("value", ["S3", "U2", "?", "u1", "f8", "M8[ms]", "m8[ns]"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_values_come_back_as_they_were(library: str, value: str) -> None:
    module = pytest.importorskip(library)
    keys = module.array(IDS) if library == "pyarrow" else module.Series(IDS)
    values = np.array([b"a", b"", b"xyz"] if value == "S3" else [1, 0, 1]).astype(value)
    table = HashMap.from_arrays(keys, values, device="cpu")
    held = table[keys]
    assert type(held).__module__.partition(".")[0] == library
    assert np.asarray(held).astype(value).tolist() == values.tolist()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_bytes_of_one_width_come_back_as_they_were(library: str) -> None:
    module = pytest.importorskip(library)
    keys = module.array(IDS) if library == "pyarrow" else module.Series(IDS)
    values = [b"a\0c", b"\0\0\0", b"xyz"]
    held = HashMap.from_arrays(keys, np.array(values, "V3"), device="cpu")[keys]
    assert (held.to_pylist() if library == "pyarrow" else held.to_list()) == values


def test_no_library_is_imported_that_the_caller_did_not() -> None:
    code = (
        "import sys, numpy as np, warphash; "
        "warphash.HashMap.from_arrays(np.arange(3), np.arange(3), device='cpu').find(np.arange(3)); "
        "print([name for name in ('pandas', 'polars', 'pyarrow') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
