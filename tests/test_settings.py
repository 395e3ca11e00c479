"""Settings of the process: threads, folders, and the page that lists all variables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import warphash
from warphash import settings
from warphash.runtime import cpu

ROOT = Path(__file__).parents[1]

OF_TORCHRUN = {
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"),
    *("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT"),
}
"""Which torchrun sets, and `warphash.distributed.init` reads."""


@pytest.fixture(autouse=True)
def as_before() -> Any:
    warphash.set_num_threads(None)  # other tests run the documentation, which sets threads
    yield
    warphash.set_num_threads(None)


def test_threads_are_set_by_the_program_then_by_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.THREADS_VARIABLE, raising=False)
    everyone = warphash.get_num_threads()
    assert everyone >= 1
    monkeypatch.setenv(settings.THREADS_VARIABLE, "3")
    assert warphash.get_num_threads() == 3
    warphash.set_num_threads(5)
    assert warphash.get_num_threads() == 5
    warphash.set_num_threads(None)
    for no_number in ("0", "-2", "many", ""):
        monkeypatch.setenv(settings.THREADS_VARIABLE, no_number)
        assert warphash.get_num_threads() == everyone


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_other_numbers_of_threads_are_refused(threads: Any) -> None:
    with pytest.raises(warphash.ParameterError, match="threads must be an integer of at least 1"):
        warphash.set_num_threads(threads)


def test_a_large_batch_has_that_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    run = cpu._cpu.run

    def noted(*arguments: Any) -> None:
        used.append(arguments[-1])
        run(*arguments)

    table = warphash.HashMap("u8", "u8", device="cpu", capacity=100_000)
    table[1 << 40] = 0  # so the batch is no build, whose kernels have fewer elements
    monkeypatch.setattr(cpu._cpu, "run", noted)
    warphash.set_num_threads(3)
    keys = np.arange(50_000, dtype="u8")
    # Without assume_unique, one thread looks up a sample of the keys first.
    assert table.insert(keys, keys, assume_unique=True).all() and table.contains(keys).all()
    assert set(used) == {3}
    table.contains(keys[:9])
    assert used[-1] == 1


def test_threadpoolctl_shows_and_limits_the_threads() -> None:
    warphash.set_num_threads(3)
    table = warphash.HashMap.from_arrays(np.arange(9), np.arange(9), device="cpu")
    (ours,) = threadpoolctl.ThreadpoolController().select(user_api="warphash").info()
    assert (ours["num_threads"], ours["version"]) == (3, warphash.__version__)
    assert Path(ours["filepath"]).samefile(cpu._cpu.__file__)
    with threadpoolctl.threadpool_limits(limits=2):
        assert warphash.get_num_threads() == 2
        table.copy()
    assert warphash.get_num_threads() == 3
    assert len(threadpoolctl.ThreadpoolController().select(user_api="warphash").info()) == 1


def test_threadpoolctl_is_not_imported_and_may_come_late() -> None:
    program = """
import sys, numpy as np, warphash
one = warphash.HashSet.from_arrays(np.arange(9), device="cpu")
assert "threadpoolctl" not in sys.modules
import threadpoolctl
two = warphash.HashSet.from_arrays(np.arange(9), device="cpu")
assert threadpoolctl.ThreadpoolController().select(user_api="warphash").info()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_kernels_and_data_sets_are_under_one_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(settings.CACHE_VARIABLE, str(tmp_path))
    assert settings.cache_directory() == tmp_path
    monkeypatch.delenv(settings.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert settings.cache_directory() == tmp_path / "warphash"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert settings.cache_directory() == Path("~/.cache/warphash").expanduser()


def test_the_page_lists_every_variable() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(WARPHASH_[A-Z_]+)`", page))
    variables = (name for name in vars(settings) if name.endswith("_VARIABLE"))
    assert told == {getattr(settings, name) for name in variables}
    for path in (ROOT / "src" / "warphash").rglob("*.py"):
        read = re.findall(r'(?:environ\.get\(|environ\[|getenv\()"([A-Z_]+)"', path.read_text(encoding="utf-8"))
        known = {"XDG_CACHE_HOME", "CXX", "PYTHONPATH"} | OF_TORCHRUN
        assert set(read) <= known, f"{path.name} reads {read}: say so on the page"
    assert {name for name in OF_TORCHRUN if f"`{name}`" in page} == OF_TORCHRUN


@pytest.mark.parametrize(
    ("given", "fraction"),
    [("0", 0), ("1", 1), ("0.0625", 0.0625), ("", 0.25), ("much", 0.25), ("-0.1", 0.25), ("1.5", 0.25), ("nan", 0.25)],
)
def test_a_process_chooses_how_much_it_keeps(given: str, fraction: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.KEPT_VARIABLE, given)
    assert settings.kept_fraction() == fraction
    monkeypatch.delenv(settings.KEPT_VARIABLE)
    assert settings.kept_fraction() == 0.25
