"""The report of operations: its files, its tables of 80 columns, its picture, and the command."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

from rich.console import Console

from support.command import run
from warphash.lab.bench.runner import Lab
from warphash.lab.ops import OPS, distinct
from warphash.lab.ops.base import Call, OpsConfig
from warphash.lab.ops.run import OpRate
from warphash.lab.report import op_files, op_plots, op_tables, results
from warphash.lab.report.kept_files import Files

RATE = OpRate(
    op="isin",
    contestant="warphash",
    library="numpy",
    rows=10_000_000,
    distinct=1_000,
    spread="scattered",
    hit_share=0.05,
    key_dtype="int64",
    device="cpu",
    threads=2,
    rows_per_s=80e6,
    seconds_per_call=0.125,
    least_seconds=0.1,
    most_seconds=0.25,
    repetitions=3,
    mismatches=0,
)
RIVAL = replace(RATE, contestant="polars", library="polars", rows_per_s=40e6)


def shown(*rates: OpRate) -> str:
    text = io.StringIO()
    for table in op_tables.render_ops(rates):
        Console(file=text, width=80).print(table)
    return text.getvalue()


def test_a_table_has_the_ratio_to_the_best_rival() -> None:
    slower = replace(RIVAL, contestant="numpy", library="numpy", rows_per_s=5.5e6)
    lines = [line.split() for line in shown(RATE, slower, RIVAL).splitlines()]
    assert ["1", "k", "80.0", "5.50", "40.0", "2.00"] in lines
    assert ["scattered,", "5", "%", "hits"] in lines


def test_a_wrong_answer_is_no_rate() -> None:
    lines = [line.split() for line in shown(RATE, replace(RIVAL, mismatches=3)).splitlines()]
    assert ["1", "k", "80.0", "FAIL"] in lines


@pytest.mark.parametrize("op", OPS)
def test_no_table_is_wider_than_80_columns(op: str) -> None:
    ours = [f"warphash {name}" for name in OPS[op].ours_on] if len(OPS[op].ours_on) > 1 else ["warphash"]
    rivals = [name for name in OPS[op].rivals if name not in ("torch", "cupy")]
    rates = [
        replace(RATE, op=op, contestant=who, hit_share=share, spread=spread, distinct=count, rows_per_s=rate)
        for who in (*ours, *rivals)
        for share in OPS[op].hit_shares
        for spread in OPS[op].spreads
        for count, rate in ((1_000, 1234e6), (10_000_000, 12e3))
    ]
    text = shown(*rates)
    assert "…" not in text and max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_rivals_are_drawn(tmp_path: Path, drawn: list[Any]) -> None:
    rates = [
        replace(rate, rows=rows, distinct=count)
        for rate in (RATE, RIVAL)
        for rows, count in ((10**7, 1_000), (10**7, 10**6), (10, 5))
    ]
    op_plots.draw_ops(rates, tmp_path / "x.png", "a machine", "warphash bench --ops")
    lines, bars = drawn[0].axes
    assert {line.get_label(): list(line.get_ydata()) for line in lines.lines} == {
        "warphash": [80, 80],
        "polars": [40, 40],
    }
    assert [bar.get_height() for bar in bars.patches] == [80, 40]
    bands = [sorted(band.get_paths()[0].vertices[:, 1]) for band in lines.collections]
    assert [(band[0], band[-1]) for band in bands] == [(40, 100)] * 2
    assert (lines.get_title(loc="left"), bars.get_title(loc="left")) == ("scattered, 5 % hits", "10 rows")
    said = [text.get_text() for text in drawn[0].texts]
    assert any("every answer verified" in text for text in said) and "warphash bench --ops" in said
    op_plots.draw_ops([RATE, replace(RIVAL, mismatches=7)], tmp_path / "x.png", "a machine", complete=False)
    said = [text.get_text() for text in drawn[1].texts]
    assert any("7 WRONG ANSWERS" in text and "stopped early" in text for text in said)


def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    files = Files(tmp_path / "r.json", tmp_path / "r.png", "warphash bench --ops")
    lab = Lab("cpu", repetitions=1)
    return op_files.measure_to_files(lab, [OPS["unique"]], OpsConfig(500), files, lambda _: None)


def test_a_file_has_all_rates_and_the_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    rates, not_measured = measure(tmp_path, monkeypatch)
    content = json.loads((tmp_path / "r.json").read_text())
    assert [OpRate(**row) for row in content["ops"]] == rates
    assert content["complete"] and content["schema"] == results.SCHEMA
    assert content["not_measured"] == not_measured and not_measured["polars"] == "not installed"
    assert "numpy" in content["libraries"] and not results.why_stale(content)
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_is_stopped_keeps_what_it_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(np: Any, x: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setitem(OPS, "unique", replace(OPS["unique"], rivals={"numpy": Call(stop)}))
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path, monkeypatch)
    content = json.loads((tmp_path / "r.json").read_text())
    assert [row["contestant"] for row in content["ops"]] == ["warphash"] and not content["complete"]
    assert (tmp_path / "r.png").exists()


def warphash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(monkeypatch, "bench", "--device", "cpu", "--n", "1200", "--quick", *arguments)
    said = capsys.readouterr()
    return code, said.out + said.err


def test_the_command_measures_chosen_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = warphash(monkeypatch, capsys, "--ops", "--op", "isin", "--op", "unique", "--keys", "int32")
    assert code == 0, said
    in_a_line = " ".join(said.split())  # titles are as wide as tables, which have a column for each library
    assert "Distinct elements (unique): 1,200 rows, int32" in in_a_line and "(isin)" in said and "…" not in said
    content = json.loads(Path("results.json").read_text())
    assert {row["op"] for row in content["ops"]} == {"unique", "isin"}
    assert {row["key_dtype"] for row in content["ops"]} == {"int32"}


def test_the_command_fails_by_a_wrong_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lie = replace(distinct.OPS[0], rivals={"numpy": Call(lambda np, x: np.unique(x)[1:])})
    monkeypatch.setitem(OPS, "unique", lie)
    code, said = warphash(monkeypatch, capsys, "--op", "unique")
    assert code == 1 and "FAIL" in said and "wrong answers" in said
    assert any(row["mismatches"] for row in json.loads(Path("results.json").read_text())["ops"])


def test_all_libraries_have_the_threads_of_the_command(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    code = """
import sys
from warphash import cli
try:
    cli.main()
except SystemExit as left:
    assert not left.code, left.code
import polars, pyarrow
print("threads", polars.thread_pool_size(), pyarrow.cpu_count())
"""
    arguments = ["bench", "--op", "unique", "--n", "1000", "--quick", "--device", "cpu", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "threads 1 1"
    content = json.loads((tmp_path / "results.json").read_text())
    assert {row["threads"] for row in content["ops"]} == {1} and "1 thread" in content["machine"]
