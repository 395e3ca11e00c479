"""Tables in files whose keys or values are strings: what ``test_table_file.py`` does not ask of tables of all types."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.inside import storage_of
from warphash import CorruptFile, HashMap, HashSet, MultiMap, ParameterError, PathError, WarphashError
from warphash.storage.strings import held_strings
from warphash.storage.tickets import table_file

TEXTS = ["", "a", "a\0", "\0", "é", "漢" * 40, "x" * 5000, *(f"text {n}" for n in range(50))]
PAIRS = {text: text[::-1].encode() + b"\xff\0" for text in TEXTS}


def made(path: Path, **options: Any) -> None:
    with HashMap("str", "bytes", **{"design": "stadium", "memory": path, "seed": 3, **options}) as table:
        table.update(PAIRS)


def abandon(table: Any) -> None:
    """Leave the file as a kill would: no flush."""
    table.__exit__(KeyboardInterrupt, None, None)


def log_of(path: Path) -> tuple[int, int]:
    """Where the log of a file begins, and where it ends."""
    description = table_file.describe(path)
    begin = table_file.Sizes(*(description[name] for name in table_file.Sizes._fields)).nbytes + description["log_at"]
    return begin, begin + description["log_bytes"]


@pytest.mark.parametrize("design", ["stadium", "tiered"])
def test_a_file_holds_strings(tmp_path: Path, design: str) -> None:
    path = tmp_path / "table"
    made(path, design=design)
    with HashMap.open(path) as table:
        assert dict(table.items()) == PAIRS and table.key_dtype == np.dtype("str")
        assert table.value_dtype == np.dtype("bytes") and table.memory == path
        table["a"], table["new"] = b"changed", b""
        assert table.erase(["é"]).all()
        table.check()
        abandon(table)
    with HashMap.open(path) as table:
        assert dict(table.items()) == PAIRS
        table["new"] = b"\0"
    with HashMap.open(path) as table:
        assert dict(table.items()) == PAIRS | {"new": b"\0"}
        for twin in (table.copy(), table.__replace__(capacity=5000)):
            assert twin == table and not isinstance(twin.memory, Path)
    assert os.listdir(tmp_path) == ["table"]  # noqa: PTH208


def test_sets_nulls_and_bounds(tmp_path: Path) -> None:
    with HashSet("bytes", design="stadium", memory=tmp_path / "set", nulls="key") as keys:
        keys.insert([b"", None, b"\xff"])
    with HashSet.open(tmp_path / "set") as keys:
        assert set(keys) == {b"", None, b"\xff"} and None in keys
        assert keys.insert([None, b"", b"more"]).tolist() == [False, False, True]
    options: dict[str, Any] = {"design": "stadium", "memory": tmp_path / "map", "max_size": 30, "evict": "random"}
    with HashMap("str", "str", **options) as table:
        for turn in range(5):
            table.assign([f"{turn} {n}" for n in range(20)], [f"value {turn} {n}" for n in range(20)])
        held = dict(table.items())
        assert len(held) == 30
    with HashMap.open(tmp_path / "map") as table:
        assert dict(table.items()) == held and all(value == f"value {key}" for key, value in held.items())
        table.assign(["new"], ["value new"])
        assert len(table) == 30, "any key leaves, the new one too"
        assert dict(table.items()).items() <= {**held, "new": "value new"}.items()
        table.check()


def test_names_are_kept_beside_strings(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    points = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
    with HashMap(("int64", (2,)), "str", device="cpu", design="stadium", memory=tmp_path / "map") as table:
        table.insert(points, pd.Series(["a", "b"]))
    with HashMap.open(tmp_path / "map", device="cpu") as table:
        assert table.find(points[["y", "x"]])[0].tolist() == ["a", "b"]


def test_the_log_is_written_anew_and_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_strings, "FEWEST_TO_COLLECT", 20)
    path, sizes = tmp_path / "table", list[int]()
    made(path)
    with HashMap.open(path) as table:
        first = path.stat().st_size
        for turn in range(60):
            table.assign(TEXTS, [b"%d %d" % (turn, n) for n in range(len(TEXTS))])
            table.flush()
            sizes.append(path.stat().st_size)
            begin, end = log_of(path)
            assert begin <= end == sizes[-1]
        assert max(sizes) < first + 4 * sum(len(text.encode()) for text in TEXTS)
    with HashMap.open(path) as table:
        assert dict(table.items()) == {text: b"59 %d" % n for n, text in enumerate(TEXTS)}
        table.shrink()
    with HashMap.open(path) as table:
        assert table["é"] == b"59 4" and storage_of(table).strings.used == len(TEXTS)


def test_a_flush_writes_only_new_strings(tmp_path: Path) -> None:
    path = tmp_path / "table"
    made(path)
    with HashMap.open(path) as table:
        before = log_of(path)
        table["new"] = b"value"
        table.flush()
        begin, end = log_of(path)
        assert begin == before[0] and before[1] < end < before[1] + 100
        table["new"] = table["a"]  # a string that is there
        table.flush()
        assert log_of(path) == (begin, end)


def test_bytes_behind_the_log_count_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "table"
    made(path)
    with path.open("ab") as file:
        file.write(b"torn" * 100)
    with HashMap.open(path) as table:
        assert dict(table.items()) == PAIRS
        table["new"] = b"value"
    with HashMap.open(path) as table:
        assert dict(table.items()) == PAIRS | {"new": b"value"}


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 61])
def test_a_damaged_log_is_refused(tmp_path: Path, step: int) -> None:
    path = tmp_path / "table"
    with HashMap("str", "str", design="stadium", memory=path, seed=3) as table:
        table.update({f"key {n}": f"value {n}" for n in range(40)})
    whole, (begin, end) = path.read_bytes(), log_of(path)
    for at in range(begin, end, step):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(CorruptFile, match=r"the log of strings (has a record|ends within)") as kept:
            HashMap.open(path)
    for cut in range(begin, end, step):
        path.write_bytes(whole[:cut])
        with pytest.raises(CorruptFile, match="cut or extended"):
            HashMap.open(path)
    path.write_bytes(whole)
    with HashMap.open(path) as table:  # though the last error keeps what led to it
        assert len(table) == 40 and kept.value.__traceback__


def test_damaged_slots_lead_to_no_string(tmp_path: Path) -> None:
    """The slots have no checksum. A number in them that no string has is told, and leads nowhere."""
    path = tmp_path / "table"
    with HashMap("int64", "str", design="stadium", memory=path, seed=3, device="cpu") as table:
        table.insert(np.arange(100) + (1 << 40), [f"value {n}" for n in range(100)])
    whole, found = bytearray(path.read_bytes()), 0
    slots_at, boards_at = 2 * 4096, log_of(path)[0]
    for at in range(slots_at, boards_at - 12, 4):  # values lie behind their keys
        if 1 << 40 <= struct.unpack_from("<q", whole, at)[0] < 100 + (1 << 40):
            whole[at + 8 : at + 12] = b"\xf0\xff\xff\x7f"
            found += 1
    assert found == 100
    path.write_bytes(whole)
    table = HashMap.open(path, device="cpu")
    for call in (table.values, lambda: table.find([1 << 40]), table.check, table.copy):
        with pytest.raises(WarphashError, match=r"slots name strings that it lacks|100 values are no strings"):
            call()
    abandon(table)


def test_a_full_disk_confirms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table"
    made(path)
    table, (begin, end), write = HashMap.open(path), log_of(path), os.pwrite

    def refuse(handle: int, content: Any, at: int) -> int:
        if at >= begin:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, content, at)

    table.update({f"more {n}": b"more" for n in range(20)})
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        with pytest.raises((PathError, MemoryError), match=r"No space left|room"):
            table.flush()
    assert log_of(path) == (begin, end) and len(table) == len(PAIRS) + 20
    table["last"] = b"value"
    table.flush()
    abandon(table)
    with HashMap.open(path) as table:
        assert dict(table.items()) == PAIRS | {f"more {n}": b"more" for n in range(20)} | {"last": b"value"}


def test_a_forked_child_reads_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "table"
    made(path)
    table = HashMap.open(path)
    table["new"] = b"value"
    if (process := os.fork()) == 0:
        try:
            assert table["new"] == b"value" and table["é"] == PAIRS["é"]
            with pytest.raises(PathError, match="forked"):
                table["more"] = b"value"
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    table.close()
    with HashMap.open(path) as table:
        assert dict(table.items()) == PAIRS | {"new": b"value"}


def test_a_table_that_nobody_closes_is_flushed(tmp_path: Path) -> None:
    path = tmp_path / "table"
    code = (
        f"import warphash, pathlib; t = warphash.HashMap('str', 'str', design='stadium', "
        f"memory=pathlib.Path({str(path)!r})); t['a'] = 'text'"
    )
    said = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and "unclosed table" in said.stderr, said.stderr
    with HashMap.open(path) as table:
        assert dict(table.items()) == {"a": "text"}


def test_a_multi_map_has_no_file(tmp_path: Path) -> None:
    for key in ("str", "int64"):
        with pytest.raises(ParameterError, match="the values of a MultiMap lie in memory, got"):
            MultiMap(key, "int64", design="stadium", memory=tmp_path / "table", device="cpu")
