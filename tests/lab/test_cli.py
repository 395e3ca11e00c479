"""Tests of the command line: its files, its output and its exit codes."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

SMALL = ("bench", "--n", "3000", "--data", "random", "--device", "cpu")


def warphash(*arguments, cwd, code=None):
    run = [sys.executable, *(("-c", code) if code else ("-m", "warphash")), *arguments]
    return subprocess.run(run, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


def test_bench_writes_results_and_a_picture(tmp_path):
    small = [argument.replace("3000", "3e3") for argument in SMALL]
    done = warphash(*small, "--design", "cuckoo,iht", "--threads", "1", "--rivals", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cuckoo" in done.stdout
    assert "iceberg b=16" in done.stdout
    assert "yes" in done.stdout
    assert "…" not in done.stdout  # nothing is cut at 80 columns
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["command"].startswith("warphash bench --n 3e3")
    assert "1 thread" in content["machine"]
    assert {m["design"] for m in content["measurements"]} == {"cuckoo", "iceberg"}
    assert all(m["ceiling_ratio"] > 0 for m in content["measurements"])
    assert {c["bucket_bytes"] for c in content["ceilings"]} == {8, 128, 256}
    assert all(c["reads_per_s"] >= c["swaps_per_s"] > 0 for c in content["ceilings"])
    assert content["contests"][0]["name"] == "warphash"
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_results_on_standard_output(tmp_path):
    done = warphash(*SMALL, "--design", "cuckoo", "--quick", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {m["design"] for m in json.loads(done.stdout)["measurements"]} == {"cuckoo"}
    assert "Results in standard output, picture in bench.png." in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bench.png"]


ERRORS = [
    (("--design", "nope"), "there is no design 'nope'"),
    (("--load", "1.5"), r"--load must be in (0, 1], got 1.5"),
    (("--keys", "floot"), "'floot' is no NumPy type"),
    (("--keys", "float32"), "integers of 4 or 8 bytes"),
    (("--data", "nothing"), "random, normal, tpch, tw, re, com or FILE.parquet:COLUMN"),
    (("--data", "no.parquet:key"), "there is no file 'no.parquet'"),
    (("--device", "tpu"), "tpu"),
    (("--plot", "nowhere/bench.png"), "there is no folder nowhere"),
    (("--values", "none", "--rivals"), "rivals look values up"),
]
"""Each takes a process of its own; `test_cli_refusals` tries many more in one."""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [pytest.param(*error, marks=[pytest.mark.slow] * (number not in (0, 7))) for number, error in enumerate(ERRORS)],
)
def test_an_error_is_one_line_and_code_2(arguments, says, tmp_path):
    done = warphash(*SMALL, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "results.json").exists()


def test_a_wrong_answer_fails_the_run(tmp_path):
    lie = """
import sys
from warphash import cli
from warphash.lab.bench import oracle
oracle.Answers.mismatches = lambda *_: 7
cli.main()
"""
    done = warphash(*SMALL, "--design", "cuckoo", cwd=tmp_path, code=lie)
    assert done.returncode == 1
    assert "FAIL" in done.stdout
    assert "FAILED: 21 wrong answers" in done.stderr


def test_figures_are_listed_by_paper(tmp_path):
    lines = warphash("figure", "--list", cwd=tmp_path).stdout.splitlines()
    papers = [line for line in lines if not line.startswith("  ")]
    assert [paper.partition(" (")[0] for paper in papers] == [
        "Better GPU Hash Tables",
        "A Dynamic Hash Table for the GPU",
        "Dynamic Hash Tables on GPUs",
        "Stadium Hashing",
        "HH Hash",
    ]
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed[0] == "fig02"
    assert listed[-1] == "hhtiers"
    assert len(listed) == len(set(listed)) == len(lines) - 5  # no line is broken at 80 columns


def test_doctor(tmp_path):
    done = warphash("doctor", cwd=tmp_path)
    assert done.returncode == 0
    assert "numpy" in done.stdout.lower()


def test_doctor_exits_with_1_where_something_asked_for_is_missing(tmp_path):
    assert warphash("doctor", "numpy", "cpu", "lab", cwd=tmp_path).returncode == 0
    hidden = "import sys; sys.modules['warphash.runtime._cpu'] = None; from warphash.__main__ import main; main()"
    done = warphash("doctor", "numpy", "cpu", cwd=tmp_path, code=hidden)
    assert (done.returncode, done.stderr) == (1, "missing: cpu\n") and "CPU engine" in done.stdout


def test_missing_extras_are_named(tmp_path):
    done = warphash("bench", cwd=tmp_path, code="import sys; sys.modules['typer'] = None; import warphash.cli")
    assert done.returncode != 0
    assert "pip install 'warphash[bench]'" in done.stderr


def test_importing_warphash_imports_no_extras(tmp_path):
    said = "print({'numpy', 'typer', 'rich', 'matplotlib', 'pyarrow', 'cupy', 'torch'} & set(sys.modules))"
    assert warphash(cwd=tmp_path, code=f"import sys, warphash; {said}").stdout == "set()\n"
    assert warphash(cwd=tmp_path, code=f"import sys, warphash; warphash.HashMap; {said}").stdout == "{'numpy'}\n"


def test_every_public_name_is_there_when_asked_for(tmp_path):
    code = (
        "import warphash as w; print(sorted(set(w.__all__) - {n for n in dir(w) if getattr(w, n)}), w.designs.registry)"
    )
    assert warphash(cwd=tmp_path, code=code).stdout.startswith("[] <module 'warphash.designs.registry'")
    done = warphash(cwd=tmp_path, code="import warphash; warphash.HashTable")
    assert "module 'warphash' has no attribute 'HashTable'" in done.stderr
