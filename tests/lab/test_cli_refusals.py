"""Tests of refusals: the command prints one line, exits with code 2, measures nothing and leaves no file."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import warphash
from support.command import run
from warphash.lab.bench import ceilings, standard

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
figure_files = pytest.importorskip("warphash.lab.report.figure_files")
sweep_files = pytest.importorskip("warphash.lab.report.sweep_files")
op_files = pytest.importorskip("warphash.lab.report.op_files")

SMALL = ("bench", "--n", "3000", "--data", "random", "--design", "cuckoo", "--device", "cpu")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder, with the files that the arguments below name. Any measurement fails the test."""

    def measure(*_: Any, **__: Any) -> None:
        pytest.fail("it was measured")

    for module, name in (
        (standard, "standard_run"),
        (figure_files, "measured"),
        (ceilings.Ceilings, "rates"),
        (sweep_files, "run"),
        (op_files, "measure"),
    ):
        monkeypatch.setattr(module, name, measure)
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("text").write_text("no Parquet file")
    Path("plots").mkdir()
    Path("plots/fig05.json").mkdir()
    os.mkfifo("pipe.png")
    Path("link.png").symlink_to("pipe.png")
    Path("same.png").symlink_to("results.png")
    columns = {"key": [1, 2], "text": ["a", "b"], "none": pa.array([None, None], pa.int32())}
    pq.write_table(pa.table(columns), "f.parquet")
    whole = Path("f.parquet").read_bytes()
    Path("torn.parquet").write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    return tmp_path


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("compile", "--keys", "float32", "--arch", "sm_90"), "exact equality"),
    (("compile", "--keys", "u4", "--arch", "sm_90", "--parameter", "slots"), "name=value"),
    (("compile", "--keys", "u4", "--arch", "sm_90", "--design", "nope"), "there is no design"),
    (("tune", "--device", "cpu"), "only the lanes of a GPU can collaborate"),
    (("tune", "--device", "cpu", "--ticket-bits", "3"), "ticket_bits must be one of"),
    (("tune", "--device", "cpu", "--design", "iceberg"), "only the lookups of a GPU have two ways"),
    (("tune", "--device", "cpu", "--design", "none"), "design"),
    (("tune", "--device", "cpu", "--design", "slab"), "lookups of slab with these types have one way"),
    (("tune", "--device", "cpu", "--design", "tiered"), "lookups of tiered with these types have one way"),
    (
        ("tune", "--device", "cpu", "--design", "dynamic_cuckoo", "--keys", "S20"),
        "lookups of dynamic_cuckoo with these",
    ),
    # options of bench
    ((*SMALL, "--n", "0"), "'--n'"),
    ((*SMALL, "--n", "-5"), "'--n'"),
    ((*SMALL, "--n", "1.5"), "'--n'"),
    ((*SMALL, "--n", str(10**30)), "'--n'"),
    ((*SMALL, "--load", "0"), "--load must be in (0, 1], got 0"),
    ((*SMALL, "--load", "nan"), "--load must be in (0, 1], got nan"),
    ((*SMALL, "--load", "inf"), "--load must be in (0, 1], got inf"),
    ((*SMALL, "--load", "1e-300"), "--load must be at least 0.01, got 1e-300"),
    ((*SMALL, "--load", "1e-9"), "--load must be at least 0.01, got 1e-09"),
    ((*SMALL, "--load", "full"), "'--load'"),
    ((*SMALL, "--keys", ","), "',' is no NumPy type"),
    ((*SMALL, "--keys", "("), "'(' is no NumPy type"),
    ((*SMALL, "--values", "floot"), "'floot' is no NumPy type"),
    ((*SMALL, "--values", "S3"), "integers of 4 or 8 bytes"),
    ((*SMALL, "--design", ""), "there is no design ''"),
    ((*SMALL, "--data", ""), "data must be random"),
    ((*SMALL, "--data", "f.parquet"), "data must be random"),
    ((*SMALL, "--data", "f.parquet:missing"), "has no column 'missing'; it has: key, text, none"),
    ((*SMALL, "--data", "f.parquet:text"), "must hold integers"),
    ((*SMALL, "--data", "f.parquet:none"), "holds no keys"),
    ((*SMALL, "--data", "torn.parquet:key"), "is no Parquet file"),
    ((*SMALL, "--data", "text:key"), "text is no Parquet file"),
    ((*SMALL, "--data", "folder:key"), "there is no file 'folder'"),
    ((*SMALL, "--device", "cuda:99"), "cuda:99"),
    ((*SMALL, "--device", ""), "device must be"),
    ((*SMALL, "--threads", "0"), "'--threads'"),
    ((*SMALL, "--seed", "-1"), "'--seed'"),
    ((*SMALL, "--seed", str(2**70)), "'--seed'"),
    (
        ("bench", "--sweep", "weight", "--device", "cpu"),
        "--sweep must be one of size, load, hits, skew, batch, got 'weight'",
    ),
    (("bench", "--sweep", "size", "--keys", "float32", "--device", "cpu"), "integers of 4 or 8 bytes"),
    (("bench", "--sweep", "size", "--design", "nope", "--device", "cpu"), "there is no design"),
    ((*SMALL, "--sweep", "size"), "leave --data and --rivals out"),
    (("bench", "--sweep", "size", "--rivals", "--device", "cpu"), "leave --data and --rivals out"),
    (
        ("bench", "--ops", "--op", "joyn", "--device", "cpu"),
        "--op must be one of unique, unique_inverse, unique_inverse_counts, factorize, value_counts, unique_strings, "
        "unique_pairs, isin, multimap_build, multimap_find_all, join, join_repeated, group_sum, group_four, got 'joyn'",
    ),
    (("bench", "--ops", "--design", "slab", "--device", "cpu"), "leave --design out"),
    (("bench", "--jobs", "--ops"), "leave --ops out"),
    (("bench", "--jobs", "--load", "0.8"), "leave --load out"),
    (("bench", "--jobs", "--device", "cuda"), "are done on the CPU"),
    (("bench", "--job", "sort"), "--job must be one of dedupe"),
    (("bench", "--ops", "--load", "0.8", "--device", "cpu"), "leave --load out"),
    (("bench", "--ops", "--values", "uint64", "--device", "cpu"), "leave --values out"),
    (("bench", "--op", "isin", "--data", "random", "--device", "cpu"), "leave --data out"),
    (("bench", "--ops", "--rivals", "--device", "cpu"), "leave --rivals out"),
    (("bench", "--ops", "--limits", "--device", "cpu"), "leave --limits out"),
    (("bench", "--ops", "--sweep", "size", "--device", "cpu"), "leave --sweep out"),
    (("bench", "--ops", "--keys", "float64", "--device", "cpu"), "integers of 4 or 8 bytes"),
    (("bench", "--ops", "--device", "tpu"), "tpu"),
    (("bench", "--ops", "--device", "cpu", "--plot", "x.xyz"), "x.xyz must end in a format of pictures"),
    # paths of bench's files
    ((*SMALL, "--plot", "x.xyz"), "x.xyz must end in a format of pictures"),
    ((*SMALL, "--plot", "bench"), "bench must end in a format of pictures"),
    ((*SMALL, "--plot", "folder"), "folder must end in a format of pictures"),
    ((*SMALL, "--plot", "pipe.png"), "pipe.png is a pipe"),
    ((*SMALL, "--plot", "link.png"), "link.png is a pipe"),
    ((*SMALL, "--plot", "none/x.png"), "there is no folder none to write x.png to"),
    ((*SMALL, "--plot", "text/x.png"), "there is no folder text to write x.png to"),
    ((*SMALL, "--json", "folder"), "folder is a folder"),
    ((*SMALL, "--json", "none/x"), "there is no folder none to write x to"),
    ((*SMALL, "--json", "x.png", "--plot", "./x.png"), "--json and --plot are both x.png"),
    ((*SMALL, "--json", "same.png", "--plot", "results.png"), "--json and --plot are both same.png"),
    # figure
    (("figure", "nope"), "there is no figure 'nope'"),
    (("figure", "nope", "--out", "new"), "there is no figure 'nope'"),
    (("figure", "fig05", "--seed", "-1"), "'--seed'"),
    (("figure", "fig05", "--seed", str(2**70)), "'--seed'"),
    (("figure", "fig05", "--n", "0"), "'--n'"),
    (("figure", "fig05", "--device", "cuda:99"), "cuda:99"),
    (("figure", "fig05", "--device", "tpu"), "tpu"),
    (("figure", "fig05", "--device", "cpu", "--out", "text"), "there can be no folder text (File exists)"),
    (("figure", "fig05", "--device", "cpu", "--out", "text/x"), "there can be no folder text/x (Not a directory)"),
    (("figure", "fig05", "--device", "cpu", "--out", "plots"), "plots/fig05.json is a folder"),
    (("figure", "--all", "--device", "cpu", "--out", "plots"), "plots/fig05.json is a folder"),
    # results
    (("results",), "give --stale to list files, or --make to make them"),
    (("results", "--stale", "--make"), "give --stale to list files, or --make to make them"),
    (("results", "--stale", "none"), "there is no results file in none"),
    (("results", "--make", "--seconds", "0"), "'--seconds'"),
    (("results", "--make", "--device", "tpu"), "tpu"),
    (
        ("results", "--make", "new", "--device", "cpu", "--only", "fig05"),
        "there is no results file 'fig05'; there are:",
    ),
    # the command line itself
    (("bench", "extra"), "unexpected extra argument"),
    (("bench", "--nope"), "--nope"),
    (("bench", "--design"), "'--design' requires an argument"),
    (("nope",), "nope"),
    (("doctor", "gpus"), "did you mean 'gpu'?"),
    (("--nope",), "--nope"),
]


@pytest.mark.parametrize(("arguments", "says"), REFUSED, ids=[" ".join(arguments[-4:]) for arguments, _ in REFUSED])
def test_a_refusal_is_one_line_and_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    arguments: tuple[str, ...],
    says: str,
) -> None:
    before = sorted(folder.rglob("*"))
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and says in said.err
    assert said.err.count("\n") == 1 and "Traceback" not in said.err
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("arguments", [("--json", "x.json"), ("--plot", "x.png")])
def test_a_folder_that_takes_no_files_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, arguments: tuple[str, ...]
) -> None:
    opened = os.open

    def refuse(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, mode, **options)

    monkeypatch.setattr(os, "open", refuse)  # file modes would not stop root
    assert run(monkeypatch, *SMALL, *arguments) == 2
    assert f"the folder {folder} takes no new file (Permission denied)" in capsys.readouterr().err


def test_a_format_that_matplotlib_knows_and_cannot_write_here_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    monkeypatch.setenv("PATH", str(folder))  # .pgf needs LaTeX
    assert run(monkeypatch, *SMALL, "--plot", "x.pgf") == 2
    assert "no picture can be written as .pgf here" in capsys.readouterr().err


def test_no_memory_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(standard, "workload_of", refuse)
    assert run(monkeypatch, *SMALL) == 2
    assert capsys.readouterr().err == "error: out of memory: take fewer keys with --n\n"


def test_the_missing_extension_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    monkeypatch.delitem(sys.modules, "warphash.runtime.cpu", raising=False)
    monkeypatch.delattr(warphash.runtime, "cpu", raising=False)
    monkeypatch.delattr(warphash.runtime, "_cpu", raising=False)
    monkeypatch.setitem(sys.modules, "warphash.runtime._cpu", None)
    assert run(monkeypatch, *SMALL) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "the compiled extension is missing" in said and "pip install" in said


def test_help_and_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--help") == run(monkeypatch) == 0
    said = capsys.readouterr().out
    assert said.count("bench") >= 2 and "--version" in said
    assert run(monkeypatch, "--version", "bench") == 0
    assert capsys.readouterr().out == f"warphash {warphash.__version__}\n"


def test_a_figure_leaves_its_files_with_the_mode_of_any_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(figure_files, "measured", lambda *_: iter(()))
    monkeypatch.setattr(figure_files, "compare", lambda *_: [])
    (tmp_path / "fig05.json").write_text("old")
    (tmp_path / "fig05.json").chmod(0o600)
    before = os.umask(0o022)
    try:
        figure_files.run("fig05", n=10, out=tmp_path)
    finally:
        os.umask(before)
    assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()} == {
        "fig05.json": 0o600,
        "fig05.png": 0o644,
    }
