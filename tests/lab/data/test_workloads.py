"""Tests of workloads: keys are distinct and reproducible, and the requested share of lookups is present."""

import numpy as np
import pytest

from warphash.errors import ParameterError
from warphash.lab.data import workloads

KEY_TYPES = ("uint32", "int32", "uint64", "int64")


@pytest.mark.parametrize("dtype", KEY_TYPES)
def test_random_keys_differ_and_are_reproducible(dtype):
    keys = workloads.random_keys(100_000, dtype, seed=3)
    assert keys.dtype == dtype
    assert len(np.unique(keys)) == len(keys)
    assert np.array_equal(keys, workloads.random_keys(100_000, dtype, seed=3))
    assert not np.array_equal(keys, workloads.random_keys(100_000, dtype, seed=4))


@pytest.mark.parametrize("dtype", KEY_TYPES)
def test_random_keys_are_spread_evenly(dtype):
    keys = workloads.random_keys(1 << 16, dtype, seed=5).view(f"uint{8 * np.dtype(dtype).itemsize}")
    counts = np.bincount((keys >> np.uint8(8 * keys.itemsize - 4)).astype(int), minlength=16)
    assert abs(counts - (1 << 12)).max() < 400


@pytest.mark.parametrize("dtype", ["float32", "uint8", "S4"])
def test_random_keys_of_other_types_are_refused(dtype):
    with pytest.raises(ParameterError, match="4 or 8 bytes"):
        workloads.random_keys(10, dtype, seed=0)


def test_absent_keys_are_absent():
    made = workloads.make(50_000, "uint32", "uint64", seed=1)
    assert not np.isin(made.absent, made.keys).any()
    given = workloads.of_keys("given", np.arange(50_000, dtype=np.uint32), None, seed=1)
    assert given.values is None
    assert len(given.absent) == 50_000
    assert not np.isin(given.absent, given.keys).any()


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 1])
def test_queries_have_the_share_that_was_ordered(share):
    workload = workloads.make(20_000, "uint64", "uint32", seed=2)
    asked, expected = workloads.queries(workload, share, 20_000, seed=9)
    assert np.array_equal(np.isin(asked, workload.keys), expected)
    assert abs(expected.mean() - share) < 0.02


@pytest.mark.parametrize("n", [0, 1, 50])
def test_distinct_keys_are_those_of_numpy(n):
    keys = np.random.default_rng(n).integers(0, 20, n)
    assert workloads.distinct(keys).tolist() == np.unique(keys).tolist()
