"""Tests of the standard run's workloads, and of the check of a table's pairs."""

from __future__ import annotations

import numpy as np
import pytest

from warphash.lab.bench import clocks, runner, standard
from warphash.lab.data import datasets, workloads


def test_line_items_lack_line_0(monkeypatch):
    rng = np.random.default_rng(1)
    order, part = rng.integers(0, 1 << 33, 5000), rng.integers(0, 1 << 28, 5000)
    keys = datasets.pack_line(order, rng.integers(1, 8, 5000), part)
    monkeypatch.setattr(datasets, "tpch_line", lambda: keys)
    for n in (None, 100):
        made = standard.workload_of("tpch", n, "uint32", "uint32", seed=1)
        assert np.array_equal(made.keys, keys[:n])
        assert made.values is not None
        assert len(made.values) == len(made.absent) == len(made.keys)
        assert not np.isin(made.absent, keys).any()
        assert made.absent.dtype == made.keys.dtype
    assert standard.workload_of("tpch", None, "uint32", None, seed=1).values is None


@pytest.fixture(params=["uint32", None], ids=["map", "set"])
def subject(request):
    workload = workloads.make(runner._PIECE + 1000, "uint64", request.param, seed=1)  # several pieces of the sum
    return runner._Subject(workload, clocks.HostClock())


def test_a_table_s_items_are_right_in_any_order(subject, monkeypatch):
    keys, values = subject.workload.keys, subject.workload.values
    order = np.random.default_rng(2).permutation(len(keys))
    monkeypatch.setattr(subject.oracle, "check_items", None)  # fails if the oracle is called
    assert subject.wrong_items(keys[order], None if values is None else values[order]) == 0


def test_wrong_items_are_counted(subject):
    keys, values = subject.workload.keys, subject.workload.values
    lost = keys[1:], None if values is None else values[1:]
    assert subject.wrong_items(*lost) == 1
    doubled = keys.copy()
    doubled[0] = keys[1]
    assert subject.wrong_items(doubled, values) > 0
    if values is not None:
        swapped = values.copy()
        swapped[[3, 5]] = values[[5, 3]]
        assert subject.wrong_items(keys, swapped) == 2


def test_repeated_keys_are_left_to_the_oracle():
    keys = np.array([5, 5, 6], np.uint32)
    workload = workloads.of_keys("repeats", keys, "uint32", seed=1)
    subject = runner._Subject(workload, clocks.HostClock())
    for first in (0, 1):
        assert subject.wrong_items(keys[[first, 2]], workload.values[[first, 2]]) == 0
    assert subject.wrong_items(keys, workload.values) > 0
