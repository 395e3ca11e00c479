"""``warphash … --distributed``: the commands on data files as the processes of torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .ranks import free_port

pytest.importorskip("torch")
pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

WORLD = 2


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = str(tmp_path / "sold.parquet")
    shops = [n * n % 23 for n in range(500)]
    pq.write_table(pa.table({"shop": shops, "row": range(500)}), path, row_group_size=60)
    return path


def rows_of(folder: Path) -> list[tuple[Any, ...]]:
    parts = sorted(folder.iterdir())
    assert [part.name for part in parts] == ["part-00000.parquet", "part-00001.parquet"]
    return [tuple(row.values()) for part in parts for row in pq.read_table(part).to_pylist()]


def started(*arguments: str) -> list[tuple[int, str]]:
    """Run the command as both ranks: the exit code of each, and what it printed."""
    port = str(free_port())
    processes = []
    for rank in range(WORLD):
        environment = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(WORLD), "GLOO_SOCKET_IFNAME": "lo"}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, "-m", "warphash", *arguments, "--distributed"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        processes.append(subprocess.Popen(command, env=environment, text=True, **pipes))
    said = [process.communicate(timeout=120)[0] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, said, strict=True)]


def test_torchrun_starts_the_command(file: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(WORLD)]
    command = ["-m", "warphash", "count", file, "--on", "shop", "--out", str(out), "--distributed"]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run([*launcher, *command], env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("distinct keys") == 1
    assert dict(rows_of(out)) == dict(Counter(n * n % 23 for n in range(500)))


@pytest.mark.slow
def test_other_commands_write_their_parts(file: str, tmp_path: Path) -> None:
    assert [code for code, _ in started("unique", file, "--on", "shop", "-o", str(tmp_path / "a"))] == [0, 0]
    assert sorted(rows_of(tmp_path / "a")) == sorted((shop,) for shop in {n * n % 23 for n in range(500)})
    made = started("dedupe", file, "--on", "shop", "--keep", "last", "-o", str(tmp_path / "b"))
    assert [code for code, _ in made] == [0, 0]
    assert "dropped" in made[0][1]
    assert made[1][1] == ""
    assert sorted(rows_of(tmp_path / "b")) == sorted({n * n % 23: n for n in range(500)}.items())
    made = started("join", file, file, "--on", "row", "--how", "semi", "-o", str(tmp_path / "c"))
    assert [code for code, _ in made] == [0, 0]
    assert sorted(rows_of(tmp_path / "c")) == sorted((n * n % 23, n) for n in range(500))


@pytest.mark.slow
def test_exit_codes_are_those_of_one_process(file: str, tmp_path: Path) -> None:
    assert [code for code, _ in started("dedupe", file, "--on", "shop", "--check")] == [1, 1]
    assert [code for code, _ in started("dedupe", file, "--on", "row", "--check")] == [0, 0]
    (code, said), (other_code, nothing) = started("unique", str(tmp_path / "no.parquet"), "-o", str(tmp_path / "d"))
    assert (code, other_code, nothing) == (2, 2, "")
    assert "there is no file" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sold.parquet"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--on", "shop"], "give a new folder by --out"),
        (["--out", "x", "--sort"], "--distributed has no --sort"),
        (["--out", "x"], "start the program by torchrun"),
    ],
)
def test_options_that_do_not_go_together(
    file: str, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from warphash.cli import main

    monkeypatch.setattr(sys, "argv", ["warphash", "unique", file, *arguments, "--distributed"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
