"""Tests of results files: they round-trip, name their command and kernels, and replace an older file when complete."""

import json
import shutil

import pytest

from support.engines import one_of_each
from warphash import __version__
from warphash.errors import ParameterError
from warphash.lab.bench.ceilings import CEILING
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data import workloads
from warphash.lab.report import results
from warphash.runtime import source
from warphash.runtime.source import ROWS, kernel_root, source_of


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


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("value", ["uint32", None])
def test_lost_changed_and_invented_pairs_are_counted(device, value):
    lab, workload = Lab(device), workloads.make(2_000, "uint32", value, seed=1)
    columns = lab.columns(workload)
    table = lab.built(columns, Setting("iceberg", {}), 0.7, capacity=3_000)
    assert lab.wrong_pairs(table, columns) == 0
    table.erase(columns[0][:5])
    assert lab.wrong_pairs(table, columns) == 5 + 5  # the keys, and the number of pairs
    table.insert(lab.here(workload.absent[:3]), *(column[:3] for column in columns[1:]))
    assert lab.wrong_pairs(table, columns) == 5 + 2
    if value:
        table.assign(columns[0][10:17], columns[1][17:24])
        assert lab.wrong_pairs(table, columns) == 5 + 2 + 7


def test_a_benchmark_names_the_kernels_that_it_ran(measurements, tmp_path):
    lab, path = Lab("cpu", repetitions=1, with_ceilings=True), tmp_path / "results.json"
    workload = workloads.make(500, "uint32", "uint32", seed=1)
    with results.recorded(lab) as run:
        lab.measure(workload, Setting("iceberg", {}), 0.7, ("build", "find 100"))
    results.save(path, measurements, "a command", "a machine", **run.head(), contests=[])
    about, _ = results.load(path)
    assert {"iceberg", "rows", "ceiling"} <= {entry["program"] for entry in about["kernels"]}
    assert not {"cuckoo", "slab"} & {entry["program"] for entry in about["kernels"]}
    assert about["clocks_mhz"] == {} and about["seconds"] > 0
    assert {c["bucket_bytes"] for c in about["ceilings"]} == {128}


def file_of(path, **kernels):
    """A results file whose programs have these digests; None stands for today's."""
    sources = {spec.design: source_of(spec, "cpu") for spec in (ROWS, CEILING)}
    entries = [{**vars(sources[name]), "digest": digest or sources[name].digest()} for name, digest in kernels.items()]
    results.write(path, "a command", "a machine", {"kernels": entries})


def test_stale_files_are_found_with_the_reason(tmp_path):
    (tmp_path / "deeper").mkdir()
    file_of(tmp_path / "fresh.json", rows=None, ceiling=None)
    file_of(tmp_path / "deeper" / "other.json", rows=None, ceiling="0" * 32)
    file_of(tmp_path / "both.json", rows="1" * 32, ceiling="0" * 32)
    (tmp_path / "old.json").write_text(json.dumps({"schema": 1}))
    (tmp_path / "strange.json").write_text("[1, 2]")
    (tmp_path / "torn.json").write_text("{")
    assert list(results.stale(tmp_path)) == [
        (tmp_path / "both.json", "other kernels: rows, ceiling"),
        (tmp_path / "deeper" / "other.json", "other kernels: ceiling"),
        *((tmp_path / f"{name}.json", "no digest recorded") for name in ("old", "strange", "torn")),
    ]


def test_a_change_of_a_header_makes_its_files_stale(tmp_path, monkeypatch):
    """The headers are copied and changed, one family at a time."""
    lab = Lab("cpu", repetitions=1)
    workload = workloads.make(500, "uint32", "uint32", seed=1)
    for name in ("iceberg", "slab"):
        with results.recorded(lab) as run:
            lab.measure(workload, Setting(name, {}), 0.7, ("build", "find 100"))
        results.save(tmp_path / f"{name}.json", [], "a command", "a machine", **run.head(), contests=[])
    assert list(results.stale(tmp_path)) == []
    root = tmp_path / "kernels"
    shutil.copytree(str(kernel_root()), root)
    monkeypatch.setattr(source, "kernel_root", lambda package="warphash": root)
    changed = {"designs/iceberg.cuh": ["iceberg.json"], "chains/slab_slots.cuh": ["iceberg.json", "slab.json"]}
    for header, names in changed.items():
        with (root / header).open("a") as file:
            file.write("int one_more;\n")
        results._digest.cache_clear()
        assert [path.name for path, _ in results.stale(tmp_path)] == names
    results._digest.cache_clear()


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="no results file"):
        list(results.stale(tmp_path))
