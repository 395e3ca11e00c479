"""Tests of rivals: every installed rival gives right answers, and the contest verifies them."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from warphash import get_num_threads
from warphash.lab.data import workloads
from warphash.lab.rivals import available, contest, missing
from warphash.lab.rivals.cpp_table import cpp_rival

RIVALS = list(available())


@pytest.mark.parametrize("rival", RIVALS, ids=lambda r: r.name)
@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int64"])
def test_a_rival_finds_what_is_there(rival, dtype):
    workload = workloads.make(3_000, dtype, "uint32", seed=1)
    asked, expected = workloads.queries(workload, 0.5, 3_000, seed=2)
    found = rival.find(rival.build(workload.keys, workload.values), asked)
    assert np.array_equal(np.asarray(found), expected)


def test_a_contest_is_held_with_us_first():
    held = list(contest.hold(workloads.make(3_000, "uint32", "uint32", seed=1), 0.8))
    assert [c.name for c in held] == ["warphash", "warphash for queries", *(r.name for r in RIVALS)]
    assert all(c.mismatches == 0 and min(c.rates.values()) > 0 and c.threads == get_num_threads() for c in held)
    assert [("build" in c.rates) for c in held] == [True, True, *(r.builds for r in RIVALS)]


def test_random_keys_are_compared_in_two_types_and_data_as_they_are():
    drawn = workloads.make(100, "uint32", "uint32", seed=1)
    data = replace(drawn, name="TPC-H LINE")
    found = contest.workloads_of([drawn, data], seed=1)
    assert [(w.name, str(w.keys.dtype), len(w.keys)) for w in found] == [
        ("random int32", "int32", 100),
        ("random int64", "int64", 100),
        ("TPC-H LINE", "uint32", 100),
    ]
    assert [w.values.dtype.itemsize for w in found] == [4, 8, 4]


def test_libraries_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "warphash.lab.rivals.polars_join", None)
    monkeypatch.setitem(sys.modules, "warphash.lab.rivals.polars_is_in", None)
    assert missing().count("polars") == 1
    assert "NumPy" not in missing() and not any("polars" in rival.name for rival in available())


def test_a_rival_is_not_asked_for_more_than_it_bears(monkeypatch):
    shy = [rival for rival in RIVALS if rival.most_keys < 1 << 30]
    assert {"dict"} <= {rival.name for rival in shy} <= {"dict", "cereggii AtomicDict"}


def test_a_contest_names_whom_it_leaves_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "warphash.lab.rivals.duckdb_in", None)
    left_out = contest.not_measured((1 << 21) + 1)
    assert left_out["dict"] == "takes 2,097,152 keys at most"
    assert left_out["duckdb"] == "not installed"
    assert "numpy isin" not in left_out


STANDARD_MAP = """
#include <unordered_map>

template <class Key, class Value>
struct Table : std::unordered_map<Key, Value> {
  Table(const Key*, std::size_t n) { this->reserve(n); }
};
"""


@pytest.mark.parametrize(("key", "value"), [("uint32", "uint64"), ("int64", "uint32")])
def test_a_table_of_a_cpp_library_is_compiled_and_right(key, value):
    rival = cpp_rival("std unordered_map", STANDARD_MAP)
    workload = workloads.make(3_000, key, value, seed=1)
    made = contest.contest_of(rival, workload)
    assert made.mismatches == 0
    assert made.spreads.keys() == made.rates.keys()
    for operation, (slowest, fastest) in made.spreads.items():
        assert slowest <= made.rates[operation] <= fastest


def test_a_cpp_library_that_is_not_there_is_not_installed():
    with pytest.raises(ImportError, match="nowhere cannot be compiled"):
        cpp_rival("nowhere", "#include <nowhere/table.hpp>")
