"""Tests of the results file: it round-trips, names its command, and replaces an older file only when complete."""

import json

import pytest

from warphash import __version__
from warphash.errors import ParameterError
from warphash.lab import results, workloads
from warphash.lab.runner import Lab, Setting


@pytest.fixture(scope="module")
def measurements():
    workload = workloads.make(5_000, "uint32", "uint32", seed=1)
    operations = ("build", "build unique", "insert", "insert unique", "find 100", "find 50", "find 0")
    return Lab("cpu", repetitions=2).measure(workload, Setting("bucketed_cuckoo", {}), 0.8, operations)


def test_measurements_are_right_and_complete(measurements):
    assert [m.operation for m in measurements][-1] == "find 0"
    for m in measurements:
        assert m.mismatches == 0
        assert m.n == 5_000
        assert m.rate_per_s == pytest.approx(5_000 / m.seconds)
        assert 0.75 < m.load_factor <= 0.8
        assert m.repetitions == 2
        assert (m.probes_per_key is not None) == m.operation.startswith("find")
    assert measurements[-3].probes_per_key == pytest.approx(1.04, abs=0.03)  # docs/fidelity.md#bght-probes-bcht


def test_round_trip(measurements, tmp_path):
    path = tmp_path / "results.json"
    results.save(path, measurements, "warphash bench --quick", "a machine", contests=[])
    about, loaded = results.load(path)
    assert loaded == measurements
    assert about["warphash"] == __version__
    assert about["command"] == "warphash bench --quick"
    assert about["machine"] == "a machine"
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_a_failed_save_keeps_the_older_file(measurements, tmp_path):
    path = tmp_path / "results.json"
    results.save(path, measurements, "first", "a machine")
    with pytest.raises(TypeError):
        results.save(path, measurements, "second", "a machine", strange=object())
    assert results.load(path)[0]["command"] == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_another_schema_is_refused(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"schema": 0}))
    with pytest.raises(ParameterError, match="schema 0"):
        results.load(path)


def test_a_set_and_repeated_keys_are_measured():
    keys = workloads.random_keys(500, "int64", seed=1).repeat(4)
    for value in (None, "uint32"):
        workload = workloads.of_keys("repeats", keys, value, seed=1)
        for m in Lab("cpu", repetitions=1).measure(workload, Setting("iceberg", {}), 0.7, ("build unique", "find 50")):
            assert m.mismatches == 0
            assert m.value_dtype == value
