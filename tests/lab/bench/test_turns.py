"""Turns at a GPU: one process at a time works on it, and the others go on when it is away."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from warphash.lab.bench import turns

WORKER = """
import sys, time
from pathlib import Path
from warphash.lab.bench import turns

log, finished = Path(sys.argv[1]), []
say = lambda text: log.open("a").write(f"{sys.argv[2]} {text}\\n")
turns.take(lambda: finished.append(True))
for turn in range(20):
    say("begins")
    time.sleep(0.002)
    say("ends")
    with turns.away():
        assert len(finished) == turn + 1  # the GPU has nothing left to do
        with turns.away():
            time.sleep(0.002)
"""


def test_processes_work_one_at_a_time_and_take_turns(tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {**os.environ, turns.TURNS_VARIABLE: str(tmp_path / "turns")}
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(log), name], env=environment) for name in ("a", "b", "c")
    ]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == 3 * 40
    for (who, begins), (same, ends) in zip(lines[::2], lines[1::2], strict=True):
        assert (begins, ends) == ("begins", "ends") and who == same
    order = [who for who, _ in lines[::2]]
    assert sum(a != b for a, b in pairwise(order)) > 20, "no process went on while another was away"


ONE_TURN = """
import sys, time
from pathlib import Path
from warphash.lab.bench import turns

log, name = Path(sys.argv[1]), sys.argv[2]
log.with_name(f"wants-{name}").touch()
turns.take(lambda: None)
log.open("a").write(f"{name}\\n")
while name == "first" and not log.with_name("end").exists():
    time.sleep(0.01)
"""


@pytest.mark.parametrize("names", [("9", "2", "10"), ("10", "9", "2")])
def test_the_lowest_rank_goes_first(tmp_path: Path, names: tuple[str, ...]) -> None:
    log = tmp_path / "log"

    def start(name: str, rank: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, turns.TURNS_VARIABLE: str(tmp_path / "turns"), turns.RANK_VARIABLE: rank}
        worker = subprocess.Popen([sys.executable, "-c", ONE_TURN, str(log), name], env=environment)
        while not (log if name == "first" else tmp_path / f"wants-{name}").exists():
            time.sleep(0.005)
        time.sleep(0.25)  # until it waits
        return worker

    workers = [start("first", "20"), *(start(name, name) for name in names)]
    (tmp_path / "end").touch()
    assert [worker.wait(60) for worker in workers] == [0] * 4
    assert log.read_text().split() == ["first", "2", "9", "10"]


def test_without_the_variable_nobody_waits(tmp_path: Path) -> None:
    code = WORKER.replace("len(finished) == turn + 1", "not finished")
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "log"), "a"], env=turns.without(), check=True)
