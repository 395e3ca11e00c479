"""Tables in files: what a flush has confirmed is there, whatever happens afterwards."""

from __future__ import annotations

import copy
import errno
import fcntl
import itertools
import mmap
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from support.cases import only
from support.engines import ENGINES, missing, one_of_each
from support.inside import storage_of
from warphash import (
    CorruptFile,
    DtypeError,
    HashMap,
    HashSet,
    Operation,
    ParameterError,
    PathError,
    TableFull,
    UnsupportedVerb,
    WarphashError,
)
from warphash.runtime.devices import engine_for
from warphash.storage.strings import held_strings
from warphash.storage.tickets import table_file
from warphash.storage.tickets.table_file import Sizes, TableFile

HERE = [engine for engine in ENGINES if not missing(engine)]
Array = np.ndarray
Oracle = dict[int, int]

TYPES = [("u4", "u4"), ("u8", "u8"), ("V24", "V40")]
STRING_TYPES = [("str", "str"), ("bytes", "u8"), ("u8", "str")]


def rows(numbers: Any, dtype: str) -> Any:
    if dtype in ("str", "bytes"):
        texts = [f"{number} {'x' * (number % 40)}" for number in map(int, numbers)]
        return texts if dtype == "str" else [text.encode() + b"\xff\0" for text in texts]
    words = np.asarray(numbers, np.uint64)
    width = np.dtype(dtype).itemsize
    return words.astype(dtype) if width <= 8 else np.repeat(words, width // 8).view(dtype)


def numbers(array: Array) -> list[int]:
    if array.dtype.kind in "OT":
        return [int(text.split()[0]) for text in array.tolist()]
    if array.dtype.itemsize <= 8:
        return [int(number) for number in array]
    words = np.ascontiguousarray(array).view(np.uint64).reshape(len(array), array.dtype.itemsize // 8)
    assert (words == words[:, :1]).all(), "a row is torn"
    return [int(number) for number in words[:, 0]]


def pairs_of(table: Any) -> Oracle:
    keys, values = table.to_arrays()
    return dict(zip(numbers(keys), numbers(values), strict=True))


def abandon(table: Any) -> None:
    """Leave the file as a kill would: no flush."""
    table.__exit__(KeyboardInterrupt, None, None)


def change(table: Any, oracle: Oracle, step: int, rng: np.random.Generator, types: tuple[str, str]) -> None:
    """One update of a table and of a dict, both drawn from ``rng``."""
    key, value = types
    ids = rng.permutation(500)[: rng.integers(1, 120)]
    new = ids + 1000 * step
    verb = rng.integers(0, 8)
    if verb <= 1:
        table.insert(rows(ids, key), rows(new, value))
        oracle |= {int(i): int(v) for i, v in zip(ids, new, strict=True) if int(i) not in oracle}
    elif verb == 2:
        table.assign(rows(ids, key), rows(new, value))
        oracle |= {int(i): int(v) for i, v in zip(ids, new, strict=True)}
    elif verb == 3:
        table.upsert(rows(ids, key), rows(new, value), "add" if value.startswith("u") else "last")
        held = {int(i): oracle.get(int(i), 0) if value.startswith("u") else 0 for i in ids}
        oracle |= {int(i): held[int(i)] + int(v) for i, v in zip(ids, new, strict=True)}
    elif verb <= 5:
        table.erase(rows(ids, key))
        for i in ids:
            oracle.pop(int(i), None)
    elif verb == 6:
        operations = rng.choice([Operation.INSERT, Operation.ASSIGN, Operation.ERASE], len(ids)).astype("u1")
        table.execute(operations, rows(ids, key), rows(new, value))
        for operation, i, v in zip(operations.tolist(), ids.tolist(), new.tolist(), strict=True):
            if operation == Operation.ERASE:
                oracle.pop(i, None)
            elif operation == Operation.ASSIGN or i not in oracle:
                oracle[i] = v
    elif rng.random() < 0.3:
        table.clear()
        oracle.clear()
    else:
        table.shrink()
        table.reserve(520)  # for all keys, as some tables may not grow


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
@pytest.mark.parametrize("types", [*TYPES, *STRING_TYPES], ids="-".join)
@pytest.mark.parametrize("on_full", ["grow", "raise"])
@only(lambda device, types: device == "cpu" or types in TYPES)
def test_a_file_holds_what_the_last_flush_confirmed(
    tmp_path: Path, device: str, types: tuple[str, str], on_full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_strings, "FEWEST_TO_COLLECT", 100)
    rng = np.random.default_rng(7)
    path = tmp_path / "table"
    capacity = 40 if on_full == "grow" else 520
    table = HashMap(*types, design="stadium", memory=path, device=device, capacity=capacity, on_full=on_full)
    oracle: Oracle = {}
    confirmed: Oracle = {}
    steps = 25 if device == "emulated" else 120
    for step in range(1, steps):
        change(table, oracle, step, rng, types)
        if rng.random() < 0.2:
            table.flush()
            confirmed = dict(oracle)
        if rng.random() < 0.2:
            assert pairs_of(table) == oracle
            table.check()
        if rng.random() < 0.2:
            abandon(table)
            table, oracle = HashMap.open(path, device=device), dict(confirmed)
            assert pairs_of(table) == oracle
            table.check()
    table.close()
    with HashMap.open(path, device=device) as again:
        assert pairs_of(again) == oracle
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["table"]


def test_an_engine_with_memory_of_its_own_writes_the_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_for("cpu"), "shares_host_memory", False)
    for types, on_full in itertools.product([("u4", "u4"), ("str", "str")], ["grow", "raise"]):
        test_a_file_holds_what_the_last_flush_confirmed(tmp_path, "cpu", types, on_full, monkeypatch)
        (tmp_path / "table").unlink()


KILLED = """
import sys
from pathlib import Path
import numpy as np
from warphash import HashMap
sys.path.insert(0, {tests!r})
from storage.test_table_file import change
from warphash.storage.strings import held_strings
held_strings.FEWEST_TO_COLLECT = 100
path, seed = Path({path!r}), {seed}
table = HashMap.open(path, device="cpu")
rng, oracle = np.random.default_rng(seed), {{}}
for step in range(1, 100_000):
    change(table, oracle, step, rng, {types!r})
    if step % 3 == 0:
        table.flush()
        print(step, flush=True)
"""


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 15))])
@pytest.mark.parametrize("types", [("u8", "V40"), ("str", "str")], ids="-".join)
def test_a_killed_process_loses_nothing_that_was_confirmed(tmp_path: Path, seed: int, types: tuple[str, str]) -> None:
    path = tmp_path / "table"
    HashMap(*types, design="stadium", memory=path, device="cpu", capacity=30).close()
    code = KILLED.format(tests=str(Path(__file__).parents[1]), path=str(path), seed=seed, types=types)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = [child.stdout.readline()]
    time.sleep(0.05 + 0.05 * seed)
    child.send_signal(signal.SIGKILL)
    said += child.stdout.readlines()
    child.wait()
    last = int([line for line in said if line.endswith("\n")][-1])

    class Nothing:
        """Takes every call."""

        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    rng = np.random.default_rng(seed)
    oracle: Oracle = {}
    legal: list[Oracle] = []
    for step in range(1, last + 4):
        change(Nothing(), oracle, step, rng, types)
        if step in (last, last + 3):  # the next flush may be done, and not yet said
            legal.append(dict(oracle))
    with HashMap.open(path, device="cpu") as table:
        table.check()
        assert pairs_of(table) in legal
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["table"]


@pytest.mark.parametrize("kind", ["u8", "str"])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 17])
def test_a_process_that_is_stopped_at_any_call_of_the_system(tmp_path: Path, step: int, kind: str) -> None:
    tests = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "support.stopped_files", str(tmp_path), str(step), kind]
    said = subprocess.run(command, capture_output=True, text=True, env=os.environ | tests, timeout=500)
    assert said.returncode == 0, said.stdout + said.stderr
    assert int(said.stdout.split()[-1]) > 200 // step


def made(path: Path, n: int = 1000) -> None:
    keys = np.arange(n, dtype=np.uint64)
    with HashMap("u8", "u8", design="stadium", memory=path, device="cpu", capacity=n, seed=3) as table:
        table.insert(keys, keys)
        table.flush()
        table.erase(keys[:10])


def test_what_is_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    made(path)
    whole = path.read_bytes()
    description = table_file.describe(path)
    boards_at = Sizes(*(description[name] for name in Sizes._fields)).boards_at(description["sequence"] % 2)
    for damaged, said in (
        (whole[:-1], "cut or extended"),
        (b"x" * len(whole), "neither of its headers"),
        (b"", "neither of its headers"),
        (whole[:boards_at] + bytes([whole[boards_at] ^ 4]) + whole[boards_at + 1 :], "checksum"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(CorruptFile, match=said):
            HashMap.open(path, device="cpu")
    for page in (0, 4096):  # each commit writes two headers, so one of them may be damaged
        path.write_bytes(whole[: page + 100] + b"??" + whole[page + 102 :])
        with HashMap.open(path, device="cpu") as table:
            assert len(table) == 990
            table.check()
    with pytest.raises(CorruptFile, match="HashMap"):
        HashSet.open(path, device="cpu")
    with pytest.raises(PathError, match="No such file"):
        HashMap.open(tmp_path / "none", device="cpu")


def test_errors_of_a_file_that_cannot_be_opened_say_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, saved = tmp_path / "table", tmp_path / "saved"
    made(path)
    with HashMap.open(path, device="cpu") as table:
        table.save(saved)
    with pytest.raises(CorruptFile, match=r"load\(path\)"):
        HashMap.open(saved, device="cpu")
    assert len(HashMap.load(saved, device="cpu")) == 990
    with pytest.raises(CorruptFile, match=r"open\(path\)"):
        HashMap.load(path, device="cpu")

    original = os.open

    def refuse(path: Any, flags: int, *more: Any) -> int:
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, "Read-only file system")
        return original(path, flags, *more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PathError, match=r"Read-only file system.*may be written"):
        HashMap.open(path, device="cpu")


@pytest.mark.parametrize("written", [0, 50, 4080, 4096])
def test_a_commit_that_was_stopped_in_its_header(tmp_path: Path, written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is killed while the kernel writes the first header of a commit, or before it writes the second one."""
    path = tmp_path / "table"
    made(path)

    class Killed(BaseException):
        pass

    def write(handle: int, content: Any, at: int) -> int:
        if at >= 2 * 4096:
            return original(handle, content, at)
        original(handle, content[:written], at)
        raise Killed

    original = os.pwrite
    for turn in range(1, 4):  # so either page is the first one
        table = HashMap.open(path, device="cpu")
        size = len(table)
        table.insert(np.array([5000 + turn], np.uint64), np.array([1], np.uint64))
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(os, "pwrite", write)
            table.flush()
        abandon(table)
        table = HashMap.open(path, device="cpu")
        assert len(table) == size + (written >= 4080)
        table.check()
        abandon(table)


def test_a_file_is_open_once(tmp_path: Path) -> None:
    path = tmp_path / "table"
    made(path)
    table = HashMap.open(path, device="cpu")
    with pytest.raises(PathError, match="open already"):
        HashMap.open(path, device="cpu")
    table.reserve(100_000)  # another file, which is not committed yet
    with pytest.raises(PathError, match="open already"):
        HashMap.open(path, device="cpu")
    table.flush()
    with pytest.raises(PathError, match="open already"):
        HashMap.open(path, device="cpu")
    table.close()
    table.close()
    with pytest.raises(WarphashError, match="closed"):
        table.find(np.arange(3, dtype=np.uint64))
    assert "closed" in repr(table)
    HashMap.open(path, device="cpu").close()
    with pytest.raises(PathError, match="there already"):
        HashMap("u8", "u8", design="stadium", memory=path, device="cpu")


def test_a_block_that_fails_confirms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "table"
    made(path)
    with pytest.raises(ZeroDivisionError), HashMap.open(path, device="cpu") as table:
        table.clear()
        _ = 1 // 0
    with HashMap.open(path, device="cpu") as table:
        assert len(table) == 990


def test_a_full_disk_leaves_the_table_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table"
    made(path)
    table = HashMap.open(path, device="cpu")
    before = pairs_of(table)
    keys = np.arange(5000, 9000, dtype=np.uint64)

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(MemoryError, match="no room"):
            table.reserve(100_000)
        with pytest.raises((MemoryError, WarphashError)):
            table.insert(keys, keys)
        assert pairs_of(table) == before
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        with pytest.raises(MemoryError, match="journal"):
            table.assign(np.arange(100, dtype=np.uint64), keys[:100])
    assert pairs_of(table) == before
    table.check()
    table.insert(keys, keys)
    assert pairs_of(table) == before | {int(key): int(key) for key in keys}


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("fate", ["removed", "replaced"])
@pytest.mark.parametrize("grows", [False, True])
def test_a_file_that_lost_its_name_confirms_nothing(
    tmp_path: Path, fate: str, grows: bool, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_for("cpu"), "shares_host_memory", mapped)
    path, moved = tmp_path / "table", tmp_path / "moved"
    made(path)
    table = HashMap.open(path, device="cpu")
    table.assign(np.arange(20, 30, dtype=np.uint64), np.zeros(10, np.uint64))
    if grows:
        table.reserve(5000)
    path.rename(moved)
    before = moved.read_bytes()
    if fate == "replaced":
        path.write_bytes(b"of somebody else")
    for confirm in (table.flush, table.close):
        with pytest.raises(PathError, match=r"moved, removed or replaced.*save"):
            confirm()
    if fate == "replaced":
        assert path.read_bytes() == b"of somebody else"
    if not mapped:
        assert moved.read_bytes() == before
    held = pairs_of(table)
    table.save(tmp_path / "saved")
    assert pairs_of(HashMap.load(tmp_path / "saved", device="cpu")) == held
    path.unlink(missing_ok=True)
    moved.rename(path)
    table.close()
    with HashMap.open(path, device="cpu") as again:
        assert pairs_of(again) == held


def test_a_folder_that_takes_no_file_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    folder, gone = tmp_path / "folder", tmp_path / "gone"
    folder.mkdir()
    options: dict[str, Any] = {"capacity": 1000, "load_bounds": (0.2, 0.9), "device": "cpu"}
    table = HashMap("u8", "u8", design="stadium", memory=folder / "table", **options)
    keys = np.arange(3000, dtype=np.uint64)
    table.insert(keys[:900], keys[:900])
    table.flush()
    folder.rename(gone)
    with pytest.raises((MemoryError, TableFull), match="takes no new file"):
        table.reserve(10_000)
    folder.write_bytes(b"no folder")
    with pytest.raises(PathError, match="moved, removed or replaced"):
        table.flush()
    folder.unlink()
    before = pairs_of(table)
    with pytest.raises((MemoryError, TableFull), match="takes no new file"):
        table.insert(keys, keys)
    with pytest.raises(MemoryError, match="journal"):
        table.upsert(keys, keys, "add")
    assert pairs_of(table) == before
    assert table.erase(keys[:800]).all(), "a table that cannot be made smaller is right as it is"
    assert len(table) == 100
    gone.rename(folder)
    table.close()
    with HashMap.open(folder / "table", device="cpu") as again:
        assert len(again) == 100


def test_errors_of_the_disk_in_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table"
    made(path)
    table = HashMap.open(path, device="cpu")
    keys = np.arange(20, 40, dtype=np.uint64)
    table.assign(keys, keys + 1)

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(PathError, match=r"Input/output error.*flush"):
            table.flush()
    table.assign(keys, keys + 2)
    abandon(table)
    with HashMap.open(path, device="cpu") as table:
        assert table.find(keys)[0].tolist() in ([*keys], [*keys + 1])
        assert len(table) == 990
        table.check()


def test_a_file_that_is_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the opening and the lock, the process that had the table commits another file, and ends."""
    path = tmp_path / "table"
    made(path)
    other = [HashMap.open(path, device="cpu")]
    original = fcntl.flock

    def flock(handle: Any, operation: int) -> None:
        if other:
            table = other.pop()
            table.reserve(5000)
            table.insert(np.arange(5000, 6000, dtype=np.uint64), np.zeros(1000, np.uint64))
            table.close()
        original(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with HashMap.open(path, device="cpu") as table:
        assert len(table) == 1990
        table.clear()
    with HashMap.open(path, device="cpu") as table:
        assert len(table) == 0


def test_a_new_file_that_is_swept_before_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes the file for one that a killed process has left."""
    path = tmp_path / "table"
    swept: list[None] = []
    original = fcntl.flock

    def flock(handle: Any, operation: int) -> None:
        if not swept:
            swept.append(None)
            table_file._sweep(path)
        original(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    made(path)
    with HashMap.open(path, device="cpu") as table:
        assert len(table) == 990
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("grown", [False, True])
def test_a_forked_child_reads_a_table_in_a_file_and_changes_nothing_there(tmp_path: Path, grown: bool) -> None:
    path = tmp_path / "table"
    made(path)
    table = HashMap.open(path, device="cpu")
    if grown:
        table.reserve(20_000)  # another file, which is not committed yet
    held = pairs_of(table)
    keys = np.arange(100, 200, dtype=np.uint64)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def child(table: Any) -> None:
        said = [pairs_of(table) == held]
        for change in (
            lambda: table.insert(keys + 10_000, keys),
            lambda: table.assign(keys, keys + 1),
            lambda: table.execute(np.full(100, Operation.ASSIGN, "u1"), keys, keys + 2),
            table.flush,
            lambda: (table.reserve(50_000), table.flush()),
        ):
            try:
                change()
            except PathError as error:
                said.append("forked" in str(error) and "copy()" in str(error))
        twin = table.copy()
        twin.assign(keys, keys + 3)
        said.append(twin.find(keys)[0].tolist() == (keys + 3).tolist())
        theirs.send(said)
        tables.clear()  # with which the child forgets the table

    tables = [table]
    process = context.Process(target=lambda: child(tables[0]))
    process.start()
    assert ours.poll(60) and ours.recv() == [True] * 7
    process.join()
    assert process.exitcode == 0
    assert pairs_of(table) == held
    table.insert(keys + 10_000, keys)
    table.close()
    with HashMap.open(path, device="cpu") as again:
        assert pairs_of(again) == held | {int(key) + 10_000: int(key) for key in keys}
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


class Left(NamedTuple):
    """A file and its journal, as a killed process leaves them, and what the last flush confirmed."""

    path: Path
    journal: Path
    file_bytes: bytes
    journal_bytes: bytes
    confirmed: Oracle

    @classmethod
    def in_folder(cls, folder: Path, updates: int = 3, n: int = 60) -> Left:
        path = folder / "table"
        keys = np.arange(n, dtype=np.uint64)
        with HashMap("u8", "u8", design="stadium", memory=path, device="cpu", capacity=n, seed=3) as table:
            table.insert(keys, keys)
        table = HashMap.open(path, device="cpu")
        for part in np.array_split(keys, updates):
            table.assign(part, part + np.uint64(700))
        abandon(table)
        journal = folder / ".table.journal"
        return cls(path, journal, path.read_bytes(), journal.read_bytes(), {int(key): int(key) for key in keys})

    def put_back(self, file_bytes: bytes | None = None, journal_bytes: bytes | None = None) -> None:
        self.path.write_bytes(self.file_bytes if file_bytes is None else file_bytes)
        self.journal.write_bytes(self.journal_bytes if journal_bytes is None else journal_bytes)

    def is_right_or_refused(self) -> bool:
        """Whether `open` finds what was confirmed; a refusal is no."""
        try:
            table = HashMap.open(self.path, device="cpu")
        except CorruptFile:
            return False
        held = pairs_of(table)
        abandon(table)
        assert held == self.confirmed, "values that no flush confirmed"
        return True


def flipped(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def flips(length: int, every: int) -> Iterator[tuple[int, int]]:
    """Positions, and a bit of each; all bits of all positions if ``every`` is 1."""
    return ((number // 8, number % 8) for number in range(0, 8 * length, every))


EVERY = [pytest.param(3, marks=pytest.mark.slow, id="many"), pytest.param(101, id="some")]


@pytest.mark.parametrize("every", EVERY)
def test_a_flipped_bit_of_a_journal_is_told(tmp_path: Path, every: int) -> None:
    left = Left.in_folder(tmp_path, updates=3, n=12)
    assert left.is_right_or_refused()
    for at, bit in flips(len(left.journal_bytes), every):
        left.put_back(journal_bytes=flipped(left.journal_bytes, at, bit))
        assert not left.is_right_or_refused(), f"a wrong byte {at} passes"


@pytest.mark.parametrize("every", EVERY)
def test_a_flipped_bit_of_headers_and_boards_is_told(tmp_path: Path, every: int) -> None:
    left = Left.in_folder(tmp_path, updates=2, n=12)
    sizes = Sizes(*(table_file.describe(left.path)[name] for name in Sizes._fields))
    used = [*range(600), *range(4096, 4096 + 600), *range(4096 - 40, 4096), *range(8192 - 40, 8192)]
    used += [*range(sizes.boards_at(0), sizes.boards_at(0) + 64), *range(sizes.boards_at(1), sizes.boards_at(1) + 64)]
    told = [0, 0]
    for number, bit in flips(len(used), every):
        left.put_back(flipped(left.file_bytes, used[number], bit))
        told[left.is_right_or_refused()] += 1
    assert all(told), "some are mended by the other header, and some are refused"


def unchanged(left: Left) -> bytes:
    """The file before its slots were changed in place."""
    opening = table_file._Opening.of(left.journal_bytes)
    assert opening is not None
    sizes = Sizes(*(table_file.describe(left.path)[name] for name in Sizes._fields))
    content = bytearray(left.file_bytes)
    for _, slots, contents in reversed(list(table_file._records_in(left.journal_bytes, opening, sizes))):
        for slot, held in zip(slots.tolist(), contents, strict=True):
            at = sizes.slots_at + sizes.slot_bytes * slot
            content[at : at + sizes.slot_bytes] = held.tobytes()
    return bytes(content)


def with_marks(content: bytes, *marks: str) -> bytes:
    """A file with the marks of both pages as they are (``whole``), flipped, zeroed, or torn as by a stopped write."""
    made = bytearray(content)
    for end, mark in zip((4096, 8192), marks, strict=True):
        if mark == "flipped":
            made[end - 10] ^= 1
        elif mark != "whole":
            made[end - (32 if mark == "zeros" else 16) : end] = bytes(32 if mark == "zeros" else 16)
    return bytes(made)


LOST_MARKS = [("flipped", "flipped"), ("zeros", "zeros"), ("flipped", "zeros"), ("zeros", "torn"), ("torn", "torn")]


@pytest.mark.parametrize("marks", LOST_MARKS, ids="-".join)
def test_marks_that_were_lost_in_both_headers_are_told(tmp_path: Path, marks: tuple[str, str]) -> None:
    left = Left.in_folder(tmp_path, n=12)
    left.put_back(with_marks(left.file_bytes, *marks))
    for _ in range(2):
        with pytest.raises(CorruptFile, match=r"lost what both of its headers said.*from a copy of yours") as refused:
            HashMap.open(left.path, device="cpu")
    assert left.journal.read_bytes() == left.journal_bytes
    # The mend for a copy that was put in the place of the file.
    left.put_back(with_marks(unchanged(left), "zeros", "zeros"), left.journal_bytes)
    assert left.is_right_or_refused()
    left.put_back(with_marks(left.file_bytes, *marks))
    assert f"move {left.journal} to another folder" in str(refused.value)
    if marks == ("zeros", "zeros"):
        left.journal.unlink()
        HashMap.open(left.path, device="cpu").check()


def test_two_damaged_marks_are_told_without_a_journal(tmp_path: Path) -> None:
    left = Left.in_folder(tmp_path, n=12)
    clean = with_marks(unchanged(left), "zeros", "zeros")
    left.journal.unlink()
    left.path.write_bytes(with_marks(clean, "flipped", "flipped"))
    assert not left.is_right_or_refused()
    for marks in (("flipped", "zeros"), ("zeros", "flipped")):  # one page is lost, and the other one says all
        left.path.write_bytes(with_marks(clean, *marks))
        assert left.is_right_or_refused()


def test_a_journal_with_a_damaged_record_and_without_marks_is_told(tmp_path: Path) -> None:
    left = Left.in_folder(tmp_path, n=12)
    damaged = flipped(left.journal_bytes, 52 + 40, 3)  # of the first record
    left.put_back(with_marks(left.file_bytes, "zeros", "zeros"), damaged)
    assert not left.is_right_or_refused() and left.journal.read_bytes() == damaged


@pytest.mark.parametrize("marks", [("flipped", "whole"), ("whole", "flipped"), ("whole", "zeros"), ("whole", "torn")])
def test_one_whole_mark_is_enough(tmp_path: Path, marks: tuple[str, str]) -> None:
    left = Left.in_folder(tmp_path, n=12)
    left.put_back(with_marks(left.file_bytes, *marks))
    assert left.is_right_or_refused() and not left.journal.exists()


def open_and_stop(path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Open a file, and be stopped in a mark of the header that is written as number ``at``; whether there was one."""

    class Killed(BaseException):
        pass

    def write(handle: int, content: Any, position: int) -> int:
        nonlocal at
        at -= position < 2 * 4096
        if at or position >= 2 * 4096:
            return original(handle, content, position)
        original(handle, content[: len(content) - 16], position)
        raise Killed

    original = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write)
        try:
            abandon(HashMap.open(path, device="cpu"))
        except Killed:
            return True
    return False


@pytest.mark.parametrize("marks", [("torn", "zeros"), ("whole", "torn"), ("whole", "zeros"), ("whole", "whole")])
def test_marks_that_a_stopped_process_left_torn(
    tmp_path: Path, marks: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first marks of a journal, and pages that are written again, may be torn: no slot was changed since."""
    left = Left.in_folder(tmp_path, updates=1, n=12)
    before = unchanged(left) if marks != ("whole", "whole") else left.file_bytes
    stopped = 0
    for first in (1, 2):
        for second in (1, 2):
            left.put_back(with_marks(before, *marks))
            stopped += open_and_stop(left.path, first, monkeypatch)
            stopped += open_and_stop(left.path, second, monkeypatch)
            assert left.is_right_or_refused(), f"stopped in the headers {first} and {second}"
            assert not left.journal.exists()
    assert stopped >= 2


@pytest.mark.parametrize("again", [1, 2])
def test_a_commit_that_was_stopped_in_a_mark(tmp_path: Path, again: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path, keys = tmp_path / "table", np.arange(12, dtype=np.uint64)
    table = HashMap("u8", "u8", design="stadium", memory=path, device="cpu", capacity=12)
    table.insert(keys, keys)
    table.flush()
    table.assign(keys, keys + np.uint64(7))
    original = os.pwrite

    def write(handle: int, content: Any, at: int) -> int:
        if at >= 2 * 4096:
            return original(handle, content, at)
        original(handle, content[:4080], at)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "pwrite", write)
        table.flush()
    abandon(table)
    assert open_and_stop(path, again, monkeypatch)
    with HashMap.open(path, device="cpu") as table:
        assert (table.find(keys)[0] == keys + np.uint64(7)).all()


def test_a_journal_that_was_cut_short_is_told(tmp_path: Path) -> None:
    left = Left.in_folder(tmp_path)
    for length in range(0, len(left.journal_bytes), 29):
        for rest in (b"", bytes(len(left.journal_bytes) - length)):  # or zeros, as after a loss of power
            if left.journal_bytes[:length] + rest != left.journal_bytes:
                left.put_back(journal_bytes=left.journal_bytes[:length] + rest)
                assert not left.is_right_or_refused()
    left.put_back(journal_bytes=left.journal_bytes + left.journal_bytes[-100:])
    assert left.is_right_or_refused()


@pytest.mark.parametrize("rest", ["cut", "zeros", "whole"])
def test_a_record_that_was_being_written_counts_for_nothing(tmp_path: Path, rest: str) -> None:
    """A process is killed, or the power fails, in a record or behind it, before the slots are changed."""
    left = Left.in_folder(tmp_path, updates=3)
    opening = table_file._Opening.of(left.journal_bytes)
    assert opening is not None
    sizes = Sizes(*(table_file.describe(left.path)[name] for name in Sizes._fields))
    records = list(table_file._records_in(left.journal_bytes, opening, sizes))
    assert len(records) == 3 and records[-1].end == len(left.journal_bytes)

    def marked(count: int) -> bytearray:
        """The file when the marks counted so many records."""
        content = bytearray(left.file_bytes)
        for end in (4096, 8192):
            mark = content[end - 4096 : end]
            assert table_file._Mark.of(bytes(mark)) == (3, *opening[1:])
            content[end - table_file._MARK_BYTES : end] = table_file._Mark(count, *opening[1:]).packed()
        return content

    before = marked(2)
    for slot, content in zip(records[2].slots.tolist(), records[2].contents, strict=True):
        at = sizes.slots_at + sizes.slot_bytes * slot
        before[at : at + sizes.slot_bytes] = content.tobytes()
    for at in range(records[1].end, records[2].end, 31):
        written = left.journal_bytes[: records[2].end if rest == "whole" else at]
        zeros = bytes(records[2].end - at) if rest == "zeros" else b""
        left.put_back(bytes(before), written + zeros)
        assert left.is_right_or_refused()
    # Whole records behind a damaged one are no torn tail, also if the power failed before a mark was on the disk.
    left.put_back(bytes(marked(1)), flipped(left.journal_bytes, records[0].end + 40, 3))
    assert not left.is_right_or_refused()


LINKS: dict[str, Callable[[Path, Path], Path]] = {
    "link": lambda folder, file: symlink(folder / "l", file),
    "chain": lambda folder, file: symlink(folder / "second", symlink(folder / "first", file)),
    "relative": lambda folder, file: symlink(folder / "l", Path("../real") / file.name),
    "folder": lambda folder, file: symlink(folder / "f", file.parent) / file.name,
}


def symlink(link: Path, target: Path) -> Path:
    link.symlink_to(target)
    return link


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("mapped", [True, False])
def test_a_table_file_behind_a_link(
    tmp_path: Path, kind: str, there: bool, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_for("cpu"), "shares_host_memory", mapped)
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "real" / "table"
    link = LINKS[kind](tmp_path / "links", file)
    listed = sorted(os.listdir(link.parent if kind != "folder" else tmp_path / "links"))  # noqa: PTH208
    keys = np.arange(1000, dtype=np.uint64)
    monkeypatch.chdir(tmp_path / "links")
    if there:
        made(file)
        table = HashMap.open(link.relative_to(tmp_path / "links"), device="cpu")
    else:
        link = link.relative_to(tmp_path / "links")
        table = HashMap("u8", "u8", design="stadium", memory=link, device="cpu", capacity=1000)
        table.insert(keys[10:], keys[10:])
        table.flush()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert table.memory == file
    with pytest.raises(PathError, match="open already"):
        HashMap.open(file, device="cpu")
    table.assign(keys[10:], keys[10:] + np.uint64(5))
    assert (tmp_path / "real" / ".table.journal").exists() is mapped
    abandon(table)
    with HashMap.open(file, device="cpu") as table:
        assert pairs_of(table) == {key: key for key in range(10, 1000)}
        table.reserve(20_000)  # another file takes the name
        table.insert(keys, keys)
    with HashMap.open(file, device="cpu") as table:
        assert len(table) == 1000
    assert sorted(os.listdir(tmp_path / "links")) == listed and os.listdir(tmp_path / "real") == ["table"]  # noqa: PTH208
    assert os.listdir(tmp_path / "elsewhere") == []  # noqa: PTH208


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    loop = symlink(tmp_path / "loop", tmp_path / "loop")
    deep = symlink(tmp_path / "deep", tmp_path / "none" / "table")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (loop, deep, fifo, tmp_path):
        with pytest.raises(PathError):
            HashMap("u8", "u8", design="stadium", memory=path, device="cpu")
        with pytest.raises(PathError):
            HashMap.open(path, device="cpu")


def test_a_file_with_two_names_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "table", tmp_path / "other"
    made(path)
    other.hardlink_to(path)
    for name in (path, other):
        with pytest.raises(PathError, match=r"2 names.*copy"):
            HashMap.open(name, device="cpu")
    other.unlink()
    table = HashMap.open(path, device="cpu")
    other.hardlink_to(path)
    keys = np.arange(5000, dtype=np.uint64)
    table.assign(keys[:20], keys[:20])
    table.flush()  # which changes the file under both names
    table.insert(keys, keys)
    with pytest.raises(PathError, match="remove the other names"):
        table.flush()
    other.unlink()
    table.flush()
    abandon(table)
    with HashMap.open(path, device="cpu") as again:
        assert len(again) == 5000
    # A process that is killed when a new file takes its name leaves two names. The first one goes.
    path.with_name(".table.0123456789abcdef.table").hardlink_to(path)
    HashMap.open(path, device="cpu").close()
    assert os.listdir(tmp_path) == ["table"]  # noqa: PTH208


@pytest.mark.parametrize("fate", ["renamed", "copied", "moved away", "other journal", "older journal"])
def test_a_file_without_its_journal_is_refused(tmp_path: Path, fate: str) -> None:
    left = Left.in_folder(tmp_path)
    file, journal = tmp_path / "moved", tmp_path / ".moved.journal"
    if fate == "renamed":
        left.path.rename(file)
    elif fate == "copied":
        shutil.copy(left.path, file)
    elif fate == "moved away":
        (tmp_path / "away").mkdir()
        file, journal = tmp_path / "away" / "table", tmp_path / "away" / ".table.journal"
        left.path.rename(file)
    else:
        file, journal = left.path, left.journal
        kept = left.journal.rename(tmp_path / "kept")
        if fate == "other journal":
            (tmp_path / "others").mkdir()
            Left.in_folder(tmp_path / "others").journal.rename(journal)
        else:  # of the same file and the same flush
            left.put_back()
            HashMap.open(file, device="cpu").close()
            with HashMap.open(file, device="cpu") as table:
                assert pairs_of(table) == left.confirmed
            left.put_back(journal_bytes=kept.read_bytes().replace(left.journal_bytes[32:48], os.urandom(16)))
    for _ in range(2):
        with pytest.raises(CorruptFile, match=r"journal, which is (missing|damaged|not this one)"):
            HashMap.open(file, device="cpu")
    if fate in ("renamed", "copied"):
        with pytest.raises(CorruptFile, match=f"rename {left.journal} to {journal}"):
            HashMap.open(file, device="cpu")
        left.journal.rename(journal)
    elif fate == "moved away":
        left.journal.rename(journal)
    else:
        kept.rename(journal) if kept.exists() else None
        left.put_back()
    with HashMap.open(file, device="cpu") as table:
        assert pairs_of(table) == left.confirmed
        table.check()


def test_a_journal_of_another_file_is_not_removed(tmp_path: Path) -> None:
    left = Left.in_folder(tmp_path)
    moved = left.path.rename(tmp_path / "moved")
    made(left.path)
    table = HashMap.open(left.path, device="cpu")
    assert left.journal.read_bytes() == left.journal_bytes
    table.assign(np.arange(50, dtype=np.uint64), np.zeros(50, np.uint64))
    abandon(table)
    assert len(HashMap.open(left.path, device="cpu")) == 990
    with pytest.raises(CorruptFile, match=r"rename \S+ to \S+") as refused:
        HashMap.open(moved, device="cpu")
    mend = re.search(r"rename (\S+) to (\S+?),", str(refused.value))
    assert mend is not None
    Path(mend[1]).rename(mend[2])
    with HashMap.open(moved, device="cpu") as table:
        assert pairs_of(table) == left.confirmed


def test_a_file_that_is_renamed_while_it_is_open_has_a_journal(tmp_path: Path) -> None:
    path, moved = tmp_path / "table", tmp_path / "moved"
    made(path)
    table = HashMap.open(path, device="cpu")
    path.rename(moved)
    keys = np.arange(20, 40, dtype=np.uint64)
    table.assign(keys, keys + np.uint64(1))
    abandon(table)
    with pytest.raises(CorruptFile, match=r"rename .*\.table\.journal to .*\.moved\.journal"):
        HashMap.open(moved, device="cpu")
    (tmp_path / ".table.journal").rename(tmp_path / ".moved.journal")
    with HashMap.open(moved, device="cpu") as table:
        assert (table.find(keys)[0] == keys).all()


def test_a_copy_of_an_open_file_that_nobody_changes(tmp_path: Path) -> None:
    path, twin = tmp_path / "table", tmp_path / "twin"
    made(path)
    table = HashMap.open(path, device="cpu")
    held = pairs_of(table)
    table.insert(np.arange(2000, 2010, dtype=np.uint64), np.zeros(10, np.uint64))  # in slots that were free
    shutil.copy(path, twin)
    with HashMap.open(twin, device="cpu") as again:
        assert pairs_of(again) == held
    keys = np.arange(20, 40, dtype=np.uint64)
    table.assign(keys, keys + np.uint64(1))
    shutil.copy(path, twin)
    with pytest.raises(CorruptFile, match="missing"):
        HashMap.open(twin, device="cpu")
    shutil.copy(tmp_path / ".table.journal", tmp_path / ".twin.journal")
    with HashMap.open(twin, device="cpu") as again:
        assert pairs_of(again) == held
    table.close()


def test_a_file_of_the_older_layout(tmp_path: Path) -> None:
    path = tmp_path / "table"
    made(path)
    older = bytearray(path.read_bytes())
    older[:8] = older[4096:4104] = b"warphtb1"
    path.write_bytes(older)
    with HashMap.open(path, device="cpu") as table:
        assert len(table) == 990
        table.check()
    assert path.read_bytes()[:8] == b"warphtb2"
    path.write_bytes(older)
    description = table_file.describe(path)
    opening = b"warphtb1" + bytes.fromhex(description["identity"]) + description["sequence"].to_bytes(8, "little")
    (tmp_path / ".table.journal").write_bytes(opening)
    with pytest.raises(CorruptFile, match="older version"):
        HashMap.open(path, device="cpu")


class Refusal:
    """Has the calls of the system fail at one place, as if there were no room."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, number: int) -> None:
        self.calls, self._at, self._number = 0, at, number
        for owner, name in (
            (os, "open"),
            (os, "pwrite"),
            (os, "fsync"),
            (os, "link"),
            (os, "posix_fallocate"),
            (os, "preadv"),
            (os, "pread"),
            (Path, "replace"),
            (mmap, "mmap"),
            (fcntl, "flock"),
        ):
            patch.setattr(owner, name, self._of(getattr(owner, name)))

    def _of(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self._at:
                raise OSError(self._number, os.strerror(self._number))
            return original(*args, **options)

        return call


ROOM = [errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG]


@pytest.mark.parametrize("kind", ["u8", "str"])
@pytest.mark.parametrize("verb", ["make", "open", "assign", "grow", "flush", "flush a larger one"])
def test_no_room_at_any_call_of_the_system(tmp_path: Path, verb: str, kind: str) -> None:
    keys = rows(range(100), kind)
    held: Oracle = dict(zip(range(100), range(100), strict=True))

    def prepared(path: Path) -> Any:
        if verb == "make":
            return None
        table = HashMap(kind, kind, design="stadium", memory=path, device="cpu", capacity=100)
        table.insert(keys, keys)
        if verb == "open":
            return table.close()
        if verb == "flush a larger one":
            table.reserve(3000)
        elif verb != "flush":
            table.flush()
        return table

    def act(path: Path, table: Any) -> Any:
        if verb == "make":
            return HashMap(kind, kind, design="stadium", memory=path, device="cpu", capacity=100)
        if verb == "open":
            return HashMap.open(path, device="cpu")
        if verb == "assign":
            return table.assign(keys, keys)
        return table.reserve(3000) if verb == "grow" else table.flush()

    for number in ROOM if verb == "grow" else ROOM[:2]:
        at, refused = 1, True
        while refused:
            path = tmp_path / f"table-{number}-{at}"
            table = prepared(path)
            with pytest.MonkeyPatch.context() as patch:
                refusal = Refusal(patch, at, number)
                try:
                    made_or_opened = act(path, table)
                except (MemoryError, PathError) as error:
                    assert isinstance(error, MemoryError) or "room" in str(error), repr(error)
                    made_or_opened = None
                refused = refusal.calls == at
            if verb in ("make", "open"):
                if made_or_opened is not None:
                    made_or_opened.close()
                elif verb == "make":
                    assert not list(tmp_path.glob(f"*{path.name}*"))
            if verb == "make":
                path.unlink(missing_ok=True)
            else:
                if table is not None:
                    assert pairs_of(table) == held
                    table.check()
                    table.close()
                with HashMap.open(path, device="cpu") as again:
                    assert pairs_of(again) == held
            at += 1
        assert at > 3


LIMITED = """
import resource, sys, pathlib
import numpy as np, warphash as wh
keys = np.arange(15_000, dtype="u8")
path = pathlib.Path(sys.argv[1])
table = wh.HashMap("u8", "u8", design="stadium", memory=path, capacity=15_000, device="cpu")
table.insert(keys, keys)
table.flush()
used = int(open("/proc/self/statm").read().split()[0]) * 4096
for what, limit, verb in (
    (resource.RLIMIT_NOFILE, 4, lambda: table.assign(keys[:9], keys[:9])),
    (resource.RLIMIT_NOFILE, 4, lambda: table.reserve(30_000)),
    (resource.RLIMIT_NOFILE, 4, lambda: table.save(path.with_name("saved"))),
    (resource.RLIMIT_AS, used + (1 << 20), lambda: table.reserve(480_000)),
    (resource.RLIMIT_FSIZE, 4096, lambda: table.assign(keys, keys)),
    (resource.RLIMIT_FSIZE, 4096, lambda: table.save(path.with_name("saved"))),
):
    before = resource.getrlimit(what)
    resource.setrlimit(what, (limit, before[1]))
    try:
        verb()
        print("no error", what)
    except MemoryError:
        pass
    finally:
        resource.setrlimit(what, before)
    table.check()
    assert (table.find(keys)[0] == keys).all()
table.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")
def test_limits_of_the_system_are_memory_errors(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "table")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (said.returncode, said.stdout) == (0, ""), said.stdout + said.stderr
    assert os.listdir(tmp_path) == ["table"]  # noqa: PTH208


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("end", ["close", "collect", "exit"])
@pytest.mark.parametrize("mapped", [True, False])
def test_the_end_of_a_forked_child_leaves_the_file_alone(
    tmp_path: Path, end: str, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_for("cpu"), "shares_host_memory", mapped)
    path = tmp_path / "table"
    made(path)
    table = HashMap.open(path, device="cpu")
    keys = np.arange(100, 200, dtype=np.uint64)
    table.assign(keys, keys + np.uint64(1))
    held = pairs_of(table)

    def left() -> dict[str, bytes]:
        return {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}

    before = left()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert pairs_of(table) == held
            for change in (
                lambda: table.insert(keys, keys),
                lambda: table.assign(keys, keys),
                lambda: table.erase(keys),
                lambda: table.upsert(keys, keys, "add"),
                lambda: table.execute(np.full(100, Operation.ERASE, "u1"), keys, keys),
                lambda: table.reserve(90_000),
                table.clear,
                table.shrink,
                table.flush,
            ):
                with pytest.raises(PathError, match=r"forked from.*copy\(\)"):
                    change()
            assert pairs_of(table) == held
            if end == "close":
                table.close()
                with pytest.raises(WarphashError, match="closed"):
                    len(table)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    if end == "collect":
                        del change, table
                    else:
                        table._unclosed()  # type: ignore[misc]
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert left() == before
    with pytest.raises(PathError, match="open already"):
        HashMap.open(path, device="cpu")
    table.erase(keys[:10])
    table.flush()
    table.close()
    with HashMap.open(path, device="cpu") as again:
        assert pairs_of(again) == {key: value for key, value in held.items() if key not in range(100, 110)}
    assert list(left()) == ["table"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_undo_an_update_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update that was interrupted is undone in the slots, which a child shares."""
    path = tmp_path / "table"
    table = HashMap("u8", "u8", design="stadium", memory=path, device="cpu", capacity=100, on_full="raise")
    keys = np.arange(100, dtype=np.uint64)
    table.insert(keys, keys)
    array: Any = type(storage_of(table).store.state.array)  # type: ignore[attr-defined]
    original = array.update

    def update(self: Any, *args: Any, **options: Any) -> Any:
        original(self, *args, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(array, "update", update)
        table.assign(keys, keys + np.uint64(1))
    child = os.fork()
    if child == 0:
        try:
            table.find(keys)
        except PathError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (table.find(keys)[0] == keys).all()
    table.close()


def test_an_emptied_slot_is_not_booked_again_before_a_rebuild(tmp_path: Path) -> None:
    """Plants what `TicketTable.keeps_emptied` prevents: the file then loses keys that a flush has confirmed."""
    keys = np.arange(2000, dtype=np.uint64)
    for planted in (False, True):
        path = tmp_path / f"table-{planted}"
        made(path)
        table: Any = HashMap.open(path, device="cpu")
        before = pairs_of(table)
        if planted:
            storage_of(table).store.array.table.keeps_emptied = 0
        table.erase(keys[:400])
        table.insert(keys[1000:1100] + np.uint64(5000), keys[:100])
        abandon(table)
        with HashMap.open(path, device="cpu") as again:
            assert (pairs_of(again) == before) is not planted


def test_what_memory_can_be(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="stadium"):
        HashMap("u8", "u8", design="cuckoo", memory="host", device="cpu")
    assert HashMap("u8", "u8", design="stadium", memory=None, device="cpu").memory == "device"
    for wrong in ("disk", str(tmp_path / "table"), 3):
        with pytest.raises(ParameterError, match="memory must be"):
            HashMap("u8", "u8", design="stadium", memory=wrong, device="cpu")
    with pytest.raises(PathError, match="takes no new file"):
        HashMap("u8", "u8", design="stadium", memory=tmp_path / "none" / "table", device="cpu")
    with pytest.raises(UnsupportedVerb, match="flush"):
        HashMap("u8", "u8", design="stadium", device="cpu").flush()
    overlapping = np.dtype({"names": ["a", "b"], "formats": ["u4", "u4"], "offsets": [0, 2]})
    with pytest.raises(DtypeError):
        HashMap(overlapping, "u8", design="stadium", memory=tmp_path / "table", device="cpu")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
def test_slots_in_the_memory_of_the_host(device: str) -> None:
    rng, oracle = np.random.default_rng(3), dict[int, int]()
    table = HashMap("u8", "u8", design="stadium", memory="host", device=device, capacity=40)
    for step in range(1, 15 if device == "emulated" else 60):
        change(table, oracle, step, rng, ("u8", "u8"))
    assert pairs_of(table) == oracle
    table.check()
    twin = table.copy()
    assert pairs_of(twin) == oracle and table.memory == "host"


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
def test_a_copy_lies_in_memory(tmp_path: Path, device: str) -> None:
    path = tmp_path / "table"
    made(path)
    with HashMap.open(path, device=device) as table:
        twin = table.copy()
        twin.erase(np.arange(500, dtype=np.uint64))
        assert len(table) == 990 and len(twin) == 500
        assert twin.memory == "device" and table.memory == path
    twin.check()


COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "copy": lambda table, folder: copy.copy(table),
    "deepcopy": lambda table, folder: copy.deepcopy(table),
    "pickle": lambda table, folder: pickle.loads(pickle.dumps(table)),
    "replace": lambda table, folder: table.__replace__(attempts=3),
    "load": lambda table, folder: table.save(folder / "saved") or HashMap.load(folder / "saved", device=table.device),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("device", one_of_each(*ENGINES))
def test_a_copy_of_a_table_in_the_memory_of_the_host_lies_there_too(device: str, way: str, tmp_path: Path) -> None:
    keys = np.arange(500, dtype=np.uint64)
    table = HashMap.from_arrays(keys, keys, design="stadium", memory="host", device=device)
    twin = COPIES[way](table, tmp_path)
    assert twin.memory == "host" and pairs_of(twin) == pairs_of(table)
    on_device = table.__replace__(memory="device")
    assert on_device.memory == "device" and pairs_of(on_device) == pairs_of(table)
    assert COPIES[way](on_device, tmp_path).memory == "device"
    assert table.__replace__(design="cuckoo").memory == "device"
    assert HashMap.from_arrays(keys, keys, device=device).__replace__(design="tiered").memory == "host"
    with pytest.raises(ParameterError, match=r"from_arrays.*memory="):
        table.__replace__(memory=tmp_path / "table")


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_table_in_a_file_lies_in_the_first_memory_of_its_design(way: str, tmp_path: Path) -> None:
    keys = np.arange(500, dtype=np.uint64)
    for design, memory in (("stadium", "device"), ("tiered", "host")):
        with HashMap.from_arrays(keys, keys, design=design, memory=tmp_path / design, device="cpu") as table:
            twin = COPIES[way](table, tmp_path)
            assert twin.memory == memory and pairs_of(twin) == pairs_of(table)


def test_a_set_in_a_file(tmp_path: Path) -> None:
    keys = np.arange(5000, dtype=np.uint32)
    with HashSet.from_arrays(keys, design="stadium", memory=tmp_path / "set", device="cpu") as table:
        assert len(table) == 5000
    with HashSet.open(tmp_path / "set", device="cpu") as table:
        assert table.contains(keys).all() and not table.contains(keys + np.uint32(5000)).any()


def test_a_file_of_another_process_that_was_not_committed_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "table"
    made(path)
    left = tmp_path / ".table.0123456789abcdef.table"
    left.write_bytes(b"left by a killed process")
    locked = TableFile.create(path, Sizes(11, 16, 16), replaces="0" * 32)
    HashMap.open(path, device="cpu").close()
    assert not left.exists() and len(list(tmp_path.glob(".table.*.table"))) == 1
    del locked
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


def test_a_table_of_a_similar_name_is_not_removed(tmp_path: Path) -> None:
    names = ["table", ".table.mine.table", ".table.table", "table.2", ".table.2.0123.table"]
    for name in names:
        made(tmp_path / name)
    HashMap.open(tmp_path / "table", device="cpu").close()
    made(tmp_path / "table.3")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*names, "table.3"])


def test_a_table_that_was_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "table"
    late = TableFile.create(path, Sizes(11, 16, 16), replaces=None)
    made(path)
    with pytest.raises(PathError, match="meanwhile"):
        late.commit({}, [np.zeros(12, np.uint8)])
    del late
    with HashMap.open(path, device="cpu") as table:
        assert len(table) == 990
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


def test_a_file_goes_from_engine_to_engine(tmp_path: Path) -> None:
    path, oracle = tmp_path / "table", dict[int, int]()
    rng = np.random.default_rng(1)
    HashMap("u8", "V40", design="stadium", memory=path, device="cpu", capacity=600).close()
    for step, device in enumerate(2 * HERE, 1):
        with HashMap.open(path, device=device) as table:
            assert pairs_of(table) == oracle
            for part in range(4):
                change(table, oracle, 10 * step + part, rng, ("u8", "V40"))
            table.check()
