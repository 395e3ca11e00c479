"""Tests of the reference results: one list of commands, made piece by piece, and resumed wherever a call ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

from support.command import run
from warphash.lab.bench import turns
from warphash.lab.figures import catalogue
from warphash.lab.report import reference, results
from warphash.lab.report.reference import Piece, make, pieces, why_due
from warphash.runtime.source import ROWS, source_of

RESULTS = Path(__file__).parents[3] / "results"
FAKE = [Piece(name, f"figure {name}", "--out .") for name in ("a", "b", "c")]
REAL = [
    Piece("bench", "bench --device cpu --quick --n 2000 --design cuckoo", "--json bench.json --plot bench.png"),
    Piece("figures/hh6a", "figure hh6a --device cpu --n 2000", "--out figures"),
]


def fill(path: Path, piece: Piece, **changes: Any) -> None:
    """Write the file of a piece, as its command would."""
    source = source_of(ROWS, "cpu")
    kernels = [{**vars(source), "digest": source.digest()}]
    content = {"kernels": kernels, "seconds": 1.0, "points": [{"mismatches": 0}], **changes}
    results.write(path, f"warphash {piece.whole_command}", "a machine", content)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that were run. Each command of `FAKE` writes its file and does nothing else."""
    commands: list[str] = []

    def run(whole: str, folder: Path, deadline: float, environment: Mapping[str, str]) -> None:
        commands.append(whole)
        for piece in FAKE:
            if piece.whole_command == whole:
                fill(folder / f"{piece.name}.json", piece)

    monkeypatch.setattr(reference, "_run", run)
    return commands


def test_the_list_has_every_figure_and_every_file_that_is_there() -> None:
    names = [piece.name for piece in pieces("cuda")]
    assert len(names) == len(set(names))
    assert {name for name in names if "/" in name} == {f"figures/{name}" for name in catalogue.names()}
    for device, folder in (("cuda", RESULTS / "h200"), ("cpu", RESULTS / "cpu")):
        known = {piece.name: piece.command.split() for piece in pieces(device)}
        for path in folder.rglob("*.json"):
            content, wanted = results.read(path), known[path.relative_to(folder).with_suffix("").as_posix()]
            made_by = content["command"].split()
            assert made_by[1:2] == wanted[:1], f"{path} was made by another command"
            if results.why_stale(content):  # it will be made again, with another --n, too
                continue
            at = [given.index("--n") + 1 if "--n" in given else None for given in (made_by, wanted)]
            assert (at[0] and made_by[at[0]]) == (at[1] and wanted[at[1]]), f"{path} was made for another --n"


def test_the_readme_has_the_list() -> None:
    text = (RESULTS / "README.md").read_text()
    lines = text.partition("\n## ")[0].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert rows == ["| files | command |", "| --- | --- |", *reference.table()]


def test_each_file_is_made_once_and_again_when_it_is_due(tmp_path: Path, ran: list[str]) -> None:
    assert make(tmp_path, FAKE, 600).made == ["a", "b", "c"]
    assert make(tmp_path, FAKE, 600).made == []
    fill(tmp_path / "a.json", replace(FAKE[0], command="figure a --n 10"))
    fill(tmp_path / "c.json", FAKE[2], points=[{"mismatches": 0}, {"mismatches": 1200}])
    said: list[str] = []
    assert make(tmp_path, FAKE, 600, note=said.append).made == ["a", "c"]
    assert said == ["a: another command", "c: 1,200 wrong answers"]
    fill(tmp_path / "b.json", FAKE[1], complete=False)  # a sweep that was stopped
    assert why_due(FAKE[1], tmp_path) == "not all points"
    fill(tmp_path / "b.json", FAKE[1], kernels=[])
    (tmp_path / "a.json").unlink()
    assert [why_due(piece, tmp_path) for piece in FAKE] == ["no file", "no digest recorded", None]
    assert make(tmp_path, FAKE, 600, ["b"]).made == ["b"]
    assert make(tmp_path, FAKE, 600).made == ["a"]
    assert ran == [f"figure {name} --out ." for name in "abcacba"]


def test_a_call_ends_before_a_piece_that_will_not_fit(
    tmp_path: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "time", SimpleNamespace(monotonic=lambda: 30.0 * len(ran)))  # each takes 30 s
    fill(tmp_path / "b.json", FAKE[1], kernels=[], seconds=50.0)
    said: list[str] = []
    made = make(tmp_path, FAKE, 60, note=said.append)
    assert (made.made, made.failed, made.left) == (["a"], [], ["b", "c"])
    assert said[-1] == "no time for b: 30 of 60 s are left, and it took 50" and len(ran) == 1
    assert make(tmp_path, FAKE, 61).made == ["b", "c"]
    (tmp_path / "c.json").unlink()
    (tmp_path / "a.json").unlink()
    assert make(tmp_path, FAKE, 30, note=said.append).left == ["c"] and said[-1] == "no time for c: 0 of 30 s are left"


def test_what_has_to_run_before_runs_once(tmp_path: Path, ran: list[str]) -> None:
    behind = [FAKE[0], *(replace(piece, before=("tune 1", "tune 2")) for piece in FAKE[1:])]
    assert make(tmp_path, behind, 600).made == ["a", "b", "c"]
    assert ran == ["figure a --out .", "tune 1", "tune 2", "figure b --out .", "figure c --out ."]


def test_jobs_run_at_once_and_share_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two commands waits for the other. What runs before them runs once, and what times the host comes last."""
    at_once, shared, ran = threading.Barrier(2), list[str](), list[str]()
    wanted = [replace(piece, before=("tune",), alone=piece.name == "a") for piece in FAKE]

    def run(whole: str, folder: Path, deadline: float, environment: Mapping[str, str]) -> None:
        if whole == "tune":
            assert not ran
        elif whole != FAKE[0].whole_command:
            shared.append(environment[turns.TURNS_VARIABLE])
            at_once.wait(60)
        ran.append(whole)
        for piece in FAKE:
            if piece.whole_command == whole:
                fill(folder / f"{piece.name}.json", piece)

    monkeypatch.setattr(reference, "_run", run)
    made = make(tmp_path, wanted, 600, jobs=2)
    assert sorted(made.made) == ["a", "b", "c"] and made.made[-1] == "a" and not made.left
    assert len(ran) == 4 and len(shared) == 2 and len(set(shared)) == 1


def test_a_piece_runs_the_package_that_is_imported_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first entry of the path has the package. Its own modules would hide those of others."""
    monkeypatch.setattr(reference.subprocess, "run", lambda *_, env, **__: paths.append(env["PYTHONPATH"]))
    paths: list[str] = []
    reference._run("doctor", tmp_path, time.monotonic() + 1, {})
    first = Path(paths[0].partition(os.pathsep)[0])
    assert first / "warphash" / "lab" / "report" / "reference.py" == Path(reference.__file__).resolve()


def test_what_times_the_host_runs_alone() -> None:
    alone = {piece.name.removeprefix("figures/") for piece in pieces("cuda") if piece.alone}
    assert {"bench-uint32", "hh5", "hhtiers", "dy9", "hh1", "stashbus", "stash16"} <= alone
    assert alone.isdisjoint({"bench-dynamic_cuckoo-load80", "dyrate", "fig05", "table3"})


def test_a_command_that_fails_or_does_not_end_leaves_no_file(tmp_path: Path) -> None:
    said: list[str] = []
    made = make(tmp_path, [Piece("nope", "figure nope", "--out .")], 600, note=said.append)
    assert (made.made, made.failed, made.left) == ([], ["nope"], [])
    assert said[1].startswith("nope failed: error: there is no figure 'nope'")
    made = make(tmp_path, [Piece("dy8", "figure dy8 --device cpu", "--out ."), *FAKE], 1, note=said.append)
    assert (made.made, made.failed, made.left) == ([], [], ["dy8", "a", "b", "c"])
    assert said[-1] == "dy8 did not end within 1 s"
    assert [path.name for path in tmp_path.iterdir()] == [reference.UNFINISHED]


def test_what_was_stopped_comes_behind_the_others(tmp_path: Path, ran: list[str]) -> None:
    """The least time first; and behind the others comes what took longer than the call has, too."""
    (tmp_path / reference.UNFINISHED).write_text(json.dumps({"a": 30.0, "b": 20.0}))
    assert make(tmp_path, FAKE, 600).made == ["c", "b", "a"]
    assert not (tmp_path / reference.UNFINISHED).exists()
    fill(tmp_path / "a.json", FAKE[0], kernels=[], seconds=50.0)
    (tmp_path / "c.json").unlink()
    said: list[str] = []
    made = make(tmp_path, FAKE, 40, note=said.append)
    assert (made.made, made.left) == (["c"], ["a"]) and said[-1] == "no time for a: 40 of 40 s are left, and it took 50"


def test_the_longest_time_that_a_piece_had_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(whole: str, folder: Path, deadline: float, environment: Mapping[str, str]) -> None:
        raise subprocess.TimeoutExpired(whole, 0)

    monkeypatch.setattr(reference, "_run", run)
    for seconds in (40, 30):
        assert make(tmp_path, FAKE[:1], seconds).left == ["a"]
        assert 39 < json.loads((tmp_path / reference.UNFINISHED).read_text())["a"] <= 40
    assert make(tmp_path, FAKE, 30).left == ["b", "c", "a"]


@pytest.mark.slow
def test_a_call_goes_on_where_another_was_killed(tmp_path: Path) -> None:
    """The calls are real. The first is killed while it makes the second file."""
    code = f"from pathlib import Path\nfrom warphash.lab.report.reference import Piece, make\nmake(Path(), {REAL}, 600)"
    first, second = (tmp_path / f"{piece.name}.json" for piece in REAL)
    child = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, start_new_session=True)
    try:
        wait_for(first.exists)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert not second.exists() and first.with_suffix(".png").exists()
    before = first.stat().st_mtime_ns
    assert make(tmp_path, REAL, 600).made == ["figures/hh6a"]
    assert first.stat().st_mtime_ns == before and second.with_suffix(".png").exists()
    assert make(tmp_path, REAL, 600).made == []
    assert json.loads(first.read_text())["command"] == f"warphash {REAL[0].whole_command}"
    names = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert names == ["bench.json", "bench.png", "hh6a.json", "hh6a.png"]


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_command_makes_and_lists(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, ran: list[str]
) -> None:
    monkeypatch.setattr(reference, "pieces", lambda device: FAKE if device == "cpu" else [])
    fill(tmp_path / "b.json", FAKE[1], kernels=[], seconds=50.0)
    make_all = ("results", str(tmp_path), "--make", "--device", "cpu")
    assert run(monkeypatch, *make_all, "--seconds", "40") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "2 made, 0 failed, 1 left"
    assert run(monkeypatch, "results", "--stale", str(tmp_path)) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'b.json'}: no digest recorded\n"
    (tmp_path / "c.json").unlink()
    assert run(monkeypatch, *make_all, "--only", "c") == 0
    assert run(monkeypatch, *make_all) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["b: no digest recorded", "1 made, 0 failed, 0 left"]
    assert run(monkeypatch, "results", "--stale", str(tmp_path)) == 0
    assert capsys.readouterr().out == ""
