"""The cache of compiled kernels: damage, races, pruning, and folders that take no files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warphash.runtime.cuda import cache
from warphash.runtime.cuda.cache import CubinCache
from warphash.settings import CACHE_VARIABLE


@pytest.fixture
def store(tmp_path: Path) -> CubinCache:
    return CubinCache(tmp_path / "made" / "at first write")


def test_an_entry_is_there_until_the_cache_is_cleared(store: CubinCache) -> None:
    assert store.get("k") is None
    assert store.put("k", b"code")
    assert store.get("k") == b"code"
    assert store.use() == cache.CacheUse(1, 4 + cache._TRAILER.size)
    store.clear()
    assert store.get("k") is None


def test_empty_content_is_an_entry(store: CubinCache) -> None:
    store.put("k", b"")
    assert store.get("k") == b""


@pytest.mark.parametrize("kept", [0, 1, 30, -1])
def test_a_truncated_entry_is_dropped(store: CubinCache, kept: int) -> None:
    store.put("k", b"code" * 100)
    path = store._path("k")
    path.write_bytes(path.read_bytes()[:kept])
    assert store.get("k") is None
    assert not path.exists()
    assert store.put("k", b"new") and store.get("k") == b"new"


@pytest.mark.parametrize("position", [0, 399, 400, 410, 440])
def test_an_altered_entry_is_not_read(store: CubinCache, position: int) -> None:
    store.put("k", b"code" * 100)
    path = store._path("k")
    entry = bytearray(path.read_bytes())
    entry[position] ^= 1
    path.write_bytes(entry)
    assert store.get("k") is None


def test_pruning_drops_what_was_used_longest_ago(tmp_path: Path) -> None:
    store = CubinCache(tmp_path, limit_bytes=10_000)
    for age, key in enumerate(["new", "used", "old", "oldest"]):
        store.put(key, bytes(2_000))
        os.utime(store._path(key), (1e9 - age, 1e9 - age))
    assert store.get("used") is not None  # marks it as used now
    store.put("last", bytes(3_000))
    kept = {key for key in ("new", "used", "old", "oldest", "last") if store.get(key) is not None}
    assert kept == {"used", "last", "new"}


def test_abandoned_temporary_files_go(store: CubinCache) -> None:
    store.put("k", b"code")
    abandoned = store.directory / ".writing-abandoned"
    recent = store.directory / ".writing-recent"
    abandoned.touch()
    recent.touch()
    os.utime(abandoned, (1e9, 1e9))
    store.put("l", b"code")
    assert not abandoned.exists() and recent.exists()


def test_folder_that_is_a_file_degrades_to_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = CubinCache(tmp_path / "file")
    assert not store.put("k", b"code")
    assert store.get("k") is None
    assert store.use() == cache.CacheUse(0, 0)
    assert not store.writable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_read_only_folder_still_reads(store: CubinCache) -> None:
    store.put("k", b"code")
    store.directory.chmod(0o500)
    try:
        assert store.get("k") == b"code"
        assert not store.put("l", b"code") and not store.writable()
    finally:
        store.directory.chmod(0o700)


def test_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert CubinCache().directory == tmp_path
    monkeypatch.delenv(CACHE_VARIABLE)
    assert CubinCache().directory.name == "warphash"


RACE = """
import sys
from pathlib import Path
from warphash.runtime.cuda.cache import CubinCache

store, seed = CubinCache(Path(sys.argv[1]), limit_bytes=200_000), int(sys.argv[2])
for i in range(150):
    key = f"key{(i * 7 + seed) % 10}"
    content = key.encode() * 5_000
    assert store.get(key) in (None, content)
    store.put(key, content)
    if i % 50 == 49:
        store.clear()
"""


def test_processes_that_race_see_whole_entries(tmp_path: Path) -> None:
    racers = [subprocess.Popen([sys.executable, "-c", RACE, tmp_path, str(seed)]) for seed in range(3)]
    assert [racer.wait(60) for racer in racers] == [0, 0, 0]
    assert not list(tmp_path.glob(".writing*"))
