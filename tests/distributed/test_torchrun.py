"""A program under torchrun whose processes are killed at random: the counts behind all restarts are right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_counts_survive_killed_processes(tmp_path: Path, seed: int) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, str(EXAMPLES / "resume_counts.py"), "--n", "30_000", "--kills", "3", "--seed", str(seed)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    life = int(done.stdout.split("in life ")[1].split()[0])
    assert f"{12 * 30_000:,} keys are counted" in done.stdout and life >= 2, done.stdout
