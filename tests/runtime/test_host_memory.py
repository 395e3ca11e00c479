"""What Linux reports about free memory, in files of its forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from warphash.runtime import host_memory

SYSTEM = """MemTotal:       24684084 kB
MemFree:            1000 kB
MemAvailable:       2000 kB
SwapFree:            500 kB
HugePages_Total:       0
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of the system, and a folder for each version of control groups."""
    monkeypatch.setattr(host_memory, "_SYSTEM", tmp_path / "meminfo")
    names = [
        (str(tmp_path / folder), *others) for folder, (_, *others) in zip("12", host_memory._CONTAINERS, strict=True)
    ]
    monkeypatch.setattr(host_memory, "_CONTAINERS", names)
    (tmp_path / "meminfo").write_text(SYSTEM)
    for folder in "12":
        (tmp_path / folder).mkdir()
    return tmp_path


def test_free_memory_and_swap(files: Path) -> None:
    assert host_memory.available_bytes() == 2500 * 1024
    (files / "meminfo").write_text("MemAvailable: 7 kB\n")
    assert host_memory.available_bytes() == 7 * 1024


@pytest.mark.parametrize(
    ("folder", "limit", "use", "cached"),
    [("1", "memory.max", "memory.current", "file"), ("2", "memory.limit_in_bytes", "memory.usage_in_bytes", "cache")],
)
def test_limit_of_a_container(files: Path, folder: str, limit: str, use: str, cached: str) -> None:
    (files / folder / limit).write_text("900000\n")
    (files / folder / use).write_text("500000\n")
    (files / folder / "memory.stat").write_text(f"anon 400000\n{cached} 100000\n")
    assert host_memory.available_bytes() == 500_000
    (files / folder / limit).write_text("max\n")
    assert host_memory.available_bytes() == 2500 * 1024
    (files / folder / limit).write_text("100\n")
    assert host_memory.available_bytes() == 0


@pytest.mark.parametrize("text", ["", "MemTotal: 5 kB\n", "MemAvailable: many kB\n"])
def test_a_system_that_reports_nothing(files: Path, text: str) -> None:
    (files / "meminfo").write_text(text)
    assert host_memory.available_bytes() is None
    (files / "meminfo").unlink()
    assert host_memory.available_bytes() is None
