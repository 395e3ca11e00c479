"""The CUDA engine's calls, on a driver that keeps device memory on the host: runs where there is no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warphash.runtime.cuda import nvrtc

HERE = Path(__file__).parent


@pytest.mark.skipif(sys.platform != "linux" or not nvrtc.installed(), reason="needs Linux and NVRTC")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_engine_on_a_fake_driver(tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.1"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, HERE / "fake_driver.c", "-ldl"], check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "WARPHASH_TEST_FAKE_DRIVER": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-n0", "-p", "no:cacheprovider", str(HERE / "test_cuda.py")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout
