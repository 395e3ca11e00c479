"""The jobs: all ways agree, and a wrong answer is seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from support.command import run
from warphash.errors import ParameterError
from warphash.lab.jobs import JOBS, chosen
from warphash.lab.jobs.base import OURS, lines_of
from warphash.lab.jobs.run import JobTime, measure
from warphash.lab.ops.libraries import installed
from warphash.lab.report.job_plots import draw_jobs
from warphash.lab.report.job_tables import over_best, render_jobs

for library in ("pandas", "polars", "pyarrow"):
    pytest.importorskip(library)


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("seed", [1, 2])
def test_all_ways_agree(name: str, seed: int) -> None:
    times = list(measure([JOBS[name]], installed("cpu")[0], 1, seed, rows=20_000))
    assert [time.contestant for time in times] == list(JOBS[name].ways)
    assert not any(time.mismatches for time in times)
    assert all(len(time.wall_s) == len(time.cpu_s) == 1 and time.rows == 20_000 for time in times)


@pytest.mark.parametrize("name", JOBS)
def test_ours_has_no_more_lines_than_a_rival(name: str) -> None:
    ours, rivals = (
        [lines_of(way) for key, way in JOBS[name].ways.items() if key.startswith(OURS) == mine]
        for mine in (True, False)
    )
    most = max(rivals) + (1 if name == "sessions" else 0)  # no verb says what came before a row in its group
    assert max(ours) <= most


@pytest.mark.parametrize("name", JOBS)
def test_a_wrong_answer_is_seen(name: str) -> None:
    job = JOBS[name]
    ours = next(key for key in job.ways if key.startswith(OURS))
    half = replace(job, ways={**job.ways, ours: lambda given: job.ways[ours](job.draw(9_000, 3))})
    times = list(measure([half], installed("cpu")[0], 1, rows=20_000))
    assert [time.contestant for time in times if time.mismatches] == [ours]


def test_jobs_are_chosen_by_name() -> None:
    assert [job.name for job in chosen(["group", "texts"])] == ["group", "texts"]
    assert len(chosen([])) == len(JOBS)
    with pytest.raises(ParameterError, match=r"--job must be one of dedupe, .*, got 'dedup'"):
        chosen(["dedup"])


def test_a_report_has_all_contestants(tmp_path: Path) -> None:
    def of(contestant: str, seconds: float, mismatches: int = 0) -> JobTime:
        return JobTime("group", contestant, 100, 2, (seconds, 2 * seconds), (seconds, 3 * seconds), mismatches)

    times = [of("warphash pandas", 1.0), of("pandas", 3.0), of("polars", 0.5, 1)]
    assert over_best(times) == 3.0  # a wrong answer has no time
    assert over_best(times[:1]) == 0
    console = Console(width=100, record=True)
    console.print(render_jobs(times))
    shown = console.export_text()
    assert "1 – 3" in shown and "3.00" in shown and "FAIL" in shown and "100 rows" in shown and "polars" in shown
    draw_jobs(times, tmp_path / "jobs.png", "a machine", complete=False)
    assert (tmp_path / "jobs.png").stat().st_size > 10_000


def warphash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(monkeypatch, "bench", "--n", "5000", "--quick", *arguments)
    said = capsys.readouterr()
    return code, said.out + said.err


def test_the_command_measures_chosen_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = warphash(monkeypatch, capsys, "--jobs", "--job", "group", "--job", "texts", "--device", "cpu")
    assert code == 0, said
    content = json.loads(Path("results.json").read_text())
    assert {row["job"] for row in content["jobs"]} == {"group", "texts"} and content["complete"]
    assert {row["rows"] for row in content["jobs"]} == {5000}
    assert Path("bench.png").exists() and "group" in said and "…" not in said


def test_the_command_fails_by_a_wrong_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lie = replace(JOBS["texts"], ways={**JOBS["texts"].ways, "pandas": lambda given: given.pandas})
    monkeypatch.setitem(JOBS, "texts", lie)
    code, said = warphash(monkeypatch, capsys, "--job", "texts")
    assert code == 1 and "FAIL" in said
