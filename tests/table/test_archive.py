"""Saved tables: damage anywhere is CorruptFile, and a save that is killed leaves the old file."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import warphash
from support.archives import save_and_kill
from warphash import CorruptFile, DtypeError, HashMap, HashSet

KEYS = np.arange(500, dtype=np.uint32) * 3
VALUES = KEYS.astype(np.float64)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "table.warphash"
    HashMap.from_arrays(KEYS, VALUES, device="cpu", seed=1).save(path)
    return path


def good(path: Path) -> bool:
    table = HashMap.load(path, device="cpu")
    table.check()
    return len(table) == len(KEYS) and bool((table[KEYS] == VALUES).all())


def test_round_trip(saved: Path) -> None:
    assert good(saved)
    assert good(Path(str(saved)))
    assert [entry.name for entry in saved.parent.iterdir()] == [saved.name], "nothing else is left behind"


def test_string_path(saved: Path) -> None:
    assert len(HashMap.load(str(saved), device="cpu")) == len(KEYS)


def test_truncated_anywhere(saved: Path) -> None:
    content = saved.read_bytes()
    for length in {*range(0, 64), *range(64, len(content), max(1, len(content) // 97)), len(content) - 1}:
        saved.write_bytes(content[:length])
        with pytest.raises(CorruptFile):
            HashMap.load(saved, device="cpu")


def test_altered_anywhere(saved: Path) -> None:
    content = saved.read_bytes()
    for position in {*range(0, 256), *range(256, len(content), max(1, len(content) // 211)), len(content) - 1}:
        damaged = bytearray(content)
        damaged[position] ^= 0x41
        saved.write_bytes(damaged)
        with pytest.raises(CorruptFile):
            HashMap.load(saved, device="cpu")


def test_longer_than_it_was(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"\0")
    with pytest.raises(CorruptFile):
        HashMap.load(saved, device="cpu")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"\0" * 4096, b"warphash", os.urandom(10_000)])
def test_foreign_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(CorruptFile):
        HashMap.load(path, device="cpu")


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        HashMap.load(tmp_path / "nothing", device="cpu")
    with pytest.raises(OSError):
        HashMap.load(tmp_path, device="cpu")
    with pytest.raises(OSError):
        HashMap("u4", "u4", device="cpu").save(tmp_path / "no folder" / "table")


def test_a_map_is_no_set(saved: Path, tmp_path: Path) -> None:
    with pytest.raises((CorruptFile, TypeError)):
        HashSet.load(saved, device="cpu")
    HashSet.from_arrays(KEYS, device="cpu").save(tmp_path / "set")
    with pytest.raises((CorruptFile, TypeError)):
        HashMap.load(tmp_path / "set", device="cpu")


def test_save_replaces_the_old_file(saved: Path) -> None:
    HashMap.from_arrays(KEYS[:5], VALUES[:5], device="cpu").save(saved)
    assert len(HashMap.load(saved, device="cpu")) == 5


def test_a_type_that_no_file_can_name(saved: Path) -> None:
    """The table is refused before the older file is touched."""
    overlapping = np.dtype({"names": ["all", "low"], "formats": ["u4", "u2"], "offsets": [0, 0]})
    table = HashSet.from_arrays(np.arange(3, dtype="u4").view(overlapping), device="cpu")
    with pytest.raises(DtypeError, match=r'view\("V4"\)'):
        table.save(saved)
    assert good(saved)
    HashSet.from_arrays(table.keys().view("V4"), device="cpu").save(saved)
    assert len(HashSet.load(saved, device="cpu")) == 3


KILLED = """
import sys, numpy as np, warphash
keys = np.arange(3_000_000, dtype=np.uint32)
table = warphash.HashMap.from_arrays(keys, keys, device="cpu", assume_unique=True)
print("ready", flush=True)
while True:
    table.save(sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("delay_s", [0.005, 0.02, 0.06])
def test_killed_save_leaves_a_whole_file(saved: Path, delay_s: float) -> None:
    save_and_kill(KILLED, saved, delay_s)
    table = HashMap.load(saved, device="cpu")
    assert len(table) in (len(KEYS), 3_000_000)
    table.check()


def test_errors_name_the_file(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:100])
    with pytest.raises(warphash.CorruptFile, match=saved.name):
        HashMap.load(saved, device="cpu")
