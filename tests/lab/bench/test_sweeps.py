"""Tests of sweeps: what each varies, that every answer is checked, and that a stopped run keeps what it measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")


from support.engines import one_of_each
from warphash import HashMap, HashSet
from warphash.errors import WarphashError
from warphash.lab.bench import ceilings, numbered, sweeps
from warphash.lab.bench.limits import Limits
from warphash.lab.bench.numbered import Numbered
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.bench.sweeps import SweepConfig, SweepPoint
from warphash.lab.data import workloads
from warphash.lab.report import sweep_files
from warphash.lab.report.kept_files import Files

N = 2_000
SLAB = Setting("slab", {})
XS = {
    "size": {1000, 2000},
    "load": {0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95},
    "hits": {0, 10, 25, 50, 75, 90, 100},
    "skew": {0, 0.25, 0.5, 0.75, 1, 1.25, 1.5},
    "batch": {1 / 1024, 1 / 256, 1 / 64, 1 / 16, 1 / 4, 1, 4},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make one short run for each figure of the memory."""
    monkeypatch.setattr(ceilings, "_LINES", {"cpu": 1 << 12, "cuda": 1 << 12})
    monkeypatch.setattr(ceilings, "_LOOKUPS", {"cpu": 1 << 12, "cuda": 1 << 12})
    monkeypatch.setattr(ceilings, "_ENOUGH_S", 0.0)
    monkeypatch.setattr(ceilings, "_FEWEST", 1)


def points_of(
    name: str, n: int = N, value: str | None = "uint32", *settings: Setting, device: str = "cpu"
) -> list[SweepPoint]:
    lab, config = Lab(device, 1), SweepConfig(n, 0.8, "uint32", value, 1)
    limits = Limits(lab.memory)
    return list(sweeps.run(name, lab, config, settings or [sweeps.automatic(config, device)], limits, lambda _: None))


@pytest.mark.parametrize("device", one_of_each("cpu", "cuda"))
@pytest.mark.parametrize("name", list(sweeps.SWEEPS))
def test_a_sweep_measures_all_its_points_beside_their_limits(name: str, device: str) -> None:
    points = points_of(name, device=device)
    assert {point.x for point in points} == XS[name]
    for point in points:
        assert point.measurement.mismatches == 0
        assert point.measurement.rate_per_s > 0
        assert point.limit is not None
        assert point.limit.random_share > 0 and point.limit.stream_share > 0
    finds = {"find 100", "find 50", "find 0"}
    panels = {
        "size": {"build", "insert", *finds},
        "load": {"build unique", "build", *finds},
        "hits": {"find"},
        "skew": {"find 100", "upsert add"},
        "batch": {"find 100", "find 0", "insert", "erase"},
    }
    assert {point.panel for point in points} == panels[name]


def test_what_varies_is_what_was_measured() -> None:
    assert all(p.measurement.n == p.x for p in points_of("size", 1500))
    assert all(p.measurement.load_factor == pytest.approx(p.x, rel=0.05) for p in points_of("load"))
    hits = points_of("hits")
    assert [p.measurement.operation for p in hits] == [f"find {p.x:g}" for p in hits]
    batches = points_of("batch")
    assert all(p.measurement.batch == round(N * p.x) for p in batches)
    assert max(p.x for p in batches if p.panel == "insert") == 1
    assert all(p.measurement.design == "slab" for p in points_of("skew", N, None, SLAB))


def test_skewed_questions_follow_zipf() -> None:
    made = workloads.make(1000, "uint32", "uint32", 1)
    counts = []
    for exponent in (0.0, 1.0, 1.5):
        asked, expected = workloads.queries(made, 1.0, 100_000, 1, exponent)
        assert expected.all() and np.isin(asked, made.keys).all()
        counts.append(int((asked == made.keys[0]).sum()))
    # The most frequent of 1,000 keys: 1 in 1,000, then ln 2 / ln 1001, then (1 - 2 ** -0.5) / (1 - 1001 ** -0.5).
    assert counts == [pytest.approx(100, rel=0.5), pytest.approx(10_033, rel=0.05), pytest.approx(30_245, rel=0.05)]


def test_an_upsert_adds_once_for_each_time_that_its_key_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    true = HashMap.upsert

    def lose(self: Any, keys: Any, values: Any, operator: str) -> Any:
        return np.concatenate([true(self, keys[7:], values[7:], operator), np.zeros(7, bool)])

    monkeypatch.setattr(HashMap, "upsert", lose)
    wrong = {p.x: p.measurement.mismatches for p in points_of("skew") if p.panel == "upsert add"}
    assert wrong[0] == 7 and 1 <= wrong[1.5] <= 7


def test_a_table_that_is_wrong_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warphash.lab.bench.runner._Subject.wrong_items", lambda *_: 3)
    with pytest.raises(WarphashError, match="3 pairs of a table of slab are wrong"):
        points_of("hits", N, "uint32", SLAB)


@pytest.mark.parametrize("verb", ["insert", "erase"])
def test_an_update_that_does_nothing_is_wrong(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true = getattr(HashMap, verb)

    def lie(self: Any, keys: Any, *values: Any, assume_unique: bool = False) -> Any:
        # The batches that fill a table say that their keys differ.
        return true(self, keys, *values, assume_unique=True) if assume_unique else np.ones(len(keys), bool)

    monkeypatch.setattr(HashMap, verb, lie)
    wrong = [p.measurement for p in points_of("batch") if p.panel == verb]
    assert all(m.mismatches == m.batch for m in wrong)


def test_a_flag_that_is_wrong_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    true = HashSet.erase

    def lie(self: Any, keys: Any) -> Any:
        flags = true(self, keys)
        flags[0] = False
        return flags

    monkeypatch.setattr(HashSet, "erase", lie)
    points = points_of("batch", N, None)
    assert {p.panel: p.measurement.mismatches for p in points} == {"find 100": 0, "find 0": 0, "insert": 0, "erase": 1}


def test_sizes_end_with_the_most_that_was_asked_for() -> None:
    assert sweeps.sizes_up_to(100_000) == [1000, 3000, 10_000, 30_000, 100_000]
    assert sweeps.sizes_up_to(123_456)[-2:] == [100_000, 123_456]
    assert sweeps.sizes_up_to(500) == [500]


def test_the_most_keys_are_what_the_memory_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ceilings.Ceilings("cpu")

    def most(free: int, key: str = "uint64", value: str | None = "uint64", load: float = 0.8) -> int:
        monkeypatch.setattr(memory, "free_bytes", lambda: free)
        return sweeps.most_keys(memory, SweepConfig(1, load, key, value, 1))

    assert most(1 << 20) == 4289  # 20 bytes of a slot and 200 of a batch
    assert most(1 << 37) == pytest.approx((0.9 * 2**37 - numbered.PIECE * 200) / 20, rel=1e-6)
    assert most(1 << 37, load=1.0) == pytest.approx((0.9 * 2**37 - numbered.PIECE * 200) / 32, rel=1e-6)  # and a copy
    assert most(1 << 37, "uint32", None) == 1 << 31  # half of all keys of 4 bytes are absent ones
    assert most(0) == 1000


def test_what_the_array_library_keeps_is_given_back_before_each_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Lab, "release", lambda _: asked.append("release"))
    for name in ("built", "empty"):
        true = getattr(Lab, name)
        monkeypatch.setattr(Lab, name, lambda *a, true=true, name=name, **o: (asked.append(name), true(*a, **o))[1])
    points_of("size", 1000)
    assert asked == ["release", "built", "release", "empty"]


def test_a_build_is_left_out_where_it_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_builds", lambda memory, config: config.n < 2000)
    assert {p.x for p in points_of("size") if p.panel == "build"} == {1000}
    monkeypatch.undo()
    memory, config = ceilings.Ceilings("cpu"), SweepConfig(1000, 0.8, "uint64", "uint64", 1)
    for free, fits in ((320_000, True), (310_000, False)):  # 284,000 bytes are needed, of 0.9 of the memory
        monkeypatch.setattr(memory, "free_bytes", lambda free=free: free)
        assert sweeps._builds(memory, config) == fits


@pytest.mark.parametrize(("key", "value"), [("uint32", "uint32"), ("int64", "uint64"), ("uint64", None)])
def test_pairs_follow_from_their_numbers(key: str, value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered, "PIECE", 300)
    lab, n = Lab("cpu", 1), 1000
    pairs = Numbered(lab, key, value, n, seed=3)
    keys, *values = pairs.pairs(0, n)
    assert keys.dtype == key and len(np.unique(keys)) == n
    assert np.array_equal(pairs.pairs(400, 10)[0], keys[400:410])
    for share in (0.0, 0.5, 1.0):
        asked, wrong = pairs.questions(5000, share)
        present = np.isin(asked, keys)
        assert present.mean() == pytest.approx(share, abs=0.05)
        right = [values[0][np.argsort(keys)[np.searchsorted(np.sort(keys), asked) % n]]] if values else []
        assert wrong(*right, present) == 0
        assert wrong(*right, ~present) == 5000
        if values:
            assert wrong(right[0] + 1, present) == present.sum()
    lost = lab.built([column[5:] for column in (keys, *values)], SLAB, 0.8)
    assert pairs.wrong_pairs(lost) == 5 + 5  # keys that are not found, and the wrong number of pairs


def test_inserts_in_pieces_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered, "PIECE", 300)
    found = {p.panel: p.measurement for p in points_of("size", 1000)}
    assert found["insert"].batch == 1000 and found["find 50"].batch == 300
    true = HashMap.insert

    def lose(self: Any, keys: Any, values: Any, **options: Any) -> Any:
        added = true(self, keys[50:], values[50:], **options)  # of each piece, 50 keys are lost
        return np.concatenate([np.ones(50, bool), added])

    monkeypatch.setattr(HashMap, "insert", lose)
    found = {p.panel: p.measurement for p in points_of("size", 1000)}
    assert found["insert"].mismatches == 4 * 50 + 200  # keys, and their number
    assert found["find 100"].mismatches > 0 and found["find 0"].mismatches == 0


def to_files(folder: Path, name: str) -> list[SweepPoint]:
    lab, config = Lab("cpu", 1), SweepConfig(N, 0.8, "uint32", "uint32", 1)
    limits, files = Limits(lab.memory), (folder / "r.json", folder / "r.png")
    return sweep_files.measure_to_files(
        name, lab, config, [SLAB], limits, Files(*files, "warphash bench"), lambda _: None
    )


def test_a_stopped_sweep_keeps_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: list[Any]
) -> None:
    find, calls, at_start = Lab.measure_find, [], []

    def stop(self: Lab, *arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            at_start.append(json.loads((tmp_path / "r.json").read_text()))
            raise KeyboardInterrupt
        return find(self, *arguments, **options)

    monkeypatch.setattr(Lab, "measure_find", stop)
    with pytest.raises(KeyboardInterrupt):
        to_files(tmp_path, "hits")
    content = json.loads((tmp_path / "r.json").read_text())
    for found in (at_start[0], content):  # the file of each moment has all points so far
        assert [point["x"] for point in found["points"]] == [0, 10]
        assert found["complete"] is False
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert any("stopped early" in text.get_text() for text in drawn[0].texts)


def test_a_sweep_s_files(tmp_path: Path, drawn: list[Any]) -> None:
    points = [point for point in to_files(tmp_path, "skew") if point.panel == "find 100"]
    content = json.loads((tmp_path / "r.json").read_text())
    assert (content["sweep"], content["complete"], content["schema"]) == ("skew", True, 2)
    assert content["limits"]["launch_s"] > 0
    assert {source["program"] for source in content["kernels"]} >= {"slab", "ceiling", "lookups"}
    last = content["points"][-1]
    assert last["x"] == 1.5 and last["mismatches"] == 0 and last["limit"]["random_per_s"] > 0
    axis, _ = drawn[0].axes
    lines = {line.get_label(): line for line in axis.lines}
    assert set(lines) == {"measured", "random limit", "stream limit"}
    assert list(lines["measured"].get_ydata()) == [p.measurement.rate_per_s / 1e6 for p in points]
    assert list(lines["random limit"].get_ydata()) == [p.limit.random_per_s / 1e6 for p in points if p.limit]
    assert not any("stopped early" in text.get_text() for text in drawn[0].texts)


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    from warphash import __main__ as main

    monkeypatch.setattr(sys, "argv", ["warphash", "bench", "--device", "cpu", "--n", "2000", *arguments])
    with pytest.raises(SystemExit) as left:
        main.main()
    return int(left.value.code or 0), capsys.readouterr().out


def test_the_command_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("typer")
    monkeypatch.chdir(tmp_path)
    code, said = command(monkeypatch, capsys, "--sweep", "hits", "--limits", "--design", "slab")
    assert code == 0, said
    assert "Share of present keys" in said and "Limits of" in said and "…" not in said
    assert json.loads(Path("results.json").read_text())["sweep"] == "hits"
    monkeypatch.setattr("warphash.lab.bench.oracle.Answers.mismatches", lambda *_: 7)
    code, said = command(monkeypatch, capsys, "--sweep", "hits", "--quick")
    assert code == 1 and "NO" in said
    assert all(p["mismatches"] == 7 for p in json.loads(Path("results.json").read_text())["points"])


def test_the_command_prints_each_rate_beside_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("typer")
    monkeypatch.chdir(tmp_path)
    code, said = command(monkeypatch, capsys, "--limits", "--data", "random", "--design", "slab", "--quick")
    assert code == 0, said
    assert "each rate beside its limits" in said and "A launch: " in said and "…" not in said
    content = json.loads(Path("results.json").read_text())
    assert len(content["shares"]) == len(content["measurements"]) == 5
    for share, m in zip(content["shares"], content["measurements"], strict=True):
        assert share["random_share"] * share["random_per_s"] == pytest.approx(m["rate_per_s"])
    assert content["limits"]["accesses"][0]["bucket_bytes"] == 128
