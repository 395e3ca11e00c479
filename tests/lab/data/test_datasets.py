"""Tests of data sets: LINE keys are packed exactly, and Parquet columns are read or refused with a message."""

import subprocess

import numpy as np
import pytest

from warphash.errors import ParameterError, WarphashError
from warphash.lab.data import datasets

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def test_a_packed_line_can_be_unpacked():
    rng = np.random.default_rng(1)
    order = rng.integers(0, 1 << 33, 1000)
    line = rng.integers(1, 8, 1000)
    part = rng.integers(0, 1 << 28, 1000)
    packed = datasets.pack_line(order, line, part)
    assert packed.dtype == np.uint64
    assert np.array_equal(packed >> np.uint64(31), order)
    assert np.array_equal(packed >> np.uint64(28) & np.uint64(7), line)
    assert np.array_equal(packed & np.uint64((1 << 28) - 1), part)


@pytest.mark.parametrize(
    ("row", "name"),
    [((1 << 33, 1, 1), "orderkey"), ((1, 8, 1), "linenumber"), ((1, 1, 1 << 28), "partkey"), ((-1, 1, 1), "orderkey")],
)
def test_what_does_not_fit_is_refused(row, name):
    with pytest.raises(ParameterError, match=name):
        datasets.pack_line(*(np.array([number]) for number in row))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "things.parquet"
    columns = {
        "small": pa.array([3, None, 5], pa.int16()),
        "wide": pa.array([1, 2, 2**63], pa.uint64()),
        "text": ["a", "b", "c"],
    }
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_a_column_of_integers_is_read_without_nulls(file):
    small = datasets.parquet_column(file, "small")
    assert small.dtype == np.int32
    assert small.tolist() == [3, 5]
    assert datasets.parquet_column(file, "wide").tolist() == [1, 2, 2**63]


@pytest.mark.parametrize(
    ("column", "says"), [("text", "must hold integers"), ("none", "has no column 'none'; it has: small")]
)
def test_other_columns_are_refused(file, column, says):
    with pytest.raises(ParameterError, match=says):
        datasets.parquet_column(file, column)


def test_a_missing_or_broken_file_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="there is no file"):
        datasets.parquet_column(str(tmp_path / "no.parquet"), "x")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no such thing")
    with pytest.raises(ParameterError, match="is no Parquet file"):
        datasets.parquet_column(str(tmp_path / "broken.parquet"), "x")


def test_line_items_are_generated_once(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPHASH_CACHE_DIR", str(tmp_path))
    if not datasets.generator():
        pytest.skip("tpchgen-cli is not installed")
    keys = datasets.tpch_line(0.001)
    assert len(keys) > 5000
    assert len(np.unique(keys)) == len(keys)
    assert len(list(tmp_path.rglob("*"))) == len([*tmp_path.rglob("tpch")]) + 1 + len([*tmp_path.glob("warphash")])

    def never(*_, **__):
        raise AssertionError("generated twice")

    monkeypatch.setattr(subprocess, "run", never)
    assert np.array_equal(datasets.tpch_line(0.001), keys)


def test_a_missing_generator_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPHASH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(datasets, "generator", lambda: None)
    with pytest.raises(WarphashError, match=r"pip install 'warphash\[bench\]'"):
        datasets.tpch_line(0.001)


def test_line_keys_of_32_bits_are_distinct_and_those_of_tpch():
    n = 50_000
    keys = datasets.hashed_line(n)
    assert keys.dtype == np.uint32
    assert len(np.unique(keys)) == n
    packed = datasets.tpch_line(0.01)
    hashed = [(key ^ key >> 29) * 0x9E3779B97F4A7C15 % 2**64 >> 32 for key in map(int, packed)]
    assert keys.tolist() == list(dict.fromkeys(hashed))[:n]  # each at its first row
    assert np.array_equal(datasets.hashed_line(n // 2), keys[: n // 2])


def test_more_line_keys_than_tpch_has_are_refused():
    with pytest.raises(ParameterError, match=r"no 60,000,000 distinct LINE keys"):
        datasets.hashed_line(60_000_000)
