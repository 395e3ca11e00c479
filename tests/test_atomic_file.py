"""Files replaced whole: modes, owners and links stay, what is no file is refused, and nothing else is left behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from warphash import HashMap, PathError, WarphashError, atomic_file
from warphash.lab.figures.catalogue import Figure
from warphash.lab.report import plots, results
from warphash.lab.report.figure_plots import draw
from warphash.table.scans import Scans

KEYS = np.arange(100, dtype=np.uint32)
FIGURE = Figure("A figure", "A paper)", "rate", "keys", [1.0], 1, ["build"], "a GPU", [])


def save_table(path: Path) -> None:
    HashMap.from_arrays(KEYS, KEYS, device="cpu").save(path)


def save_results(path: Path) -> None:
    results.save(path, [], "a command", "a machine")


def save_picture(path: Path) -> None:
    draw(FIGURE, [], [], path, "a machine", 1)


WRITERS: dict[str, Callable[[Path], None]] = {"table": save_table, "results": save_results, "picture": save_picture}


@pytest.fixture(params=WRITERS.values(), ids=WRITERS)
def save(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Every writer of the library, each with the same rules."""
    found: Callable[[Path], None] = request.param
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.png"


def put(path: Path, content: bytes) -> None:
    atomic_file.replace(path, lambda file: file.write(content))


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


# ---- mode, owner, links
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_the_umask(save: Any, path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o666, 0o755, 0o444], ids=oct)
def test_a_file_keeps_its_mode_and_a_read_only_one_is_replaced(save: Any, path: Path, mode: int) -> None:
    path.write_bytes(b"old")
    path.chmod(mode)
    save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() != b"old"
    assert names(path.parent) == [path.name]


def test_a_file_keeps_its_owner_and_group(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    path.write_bytes(b"old")
    path.chmod(0o640)
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _, owner, group: asked.append((owner, group)))
    put(path, b"new")
    assert asked == [(path.stat().st_uid, path.stat().st_gid)]


@pytest.mark.parametrize(("gives_group", "mode"), [(True, 0o664), (False, 0o604)])
def test_a_group_that_cannot_be_kept_gets_no_permission(
    monkeypatch: pytest.MonkeyPatch, path: Path, gives_group: bool, mode: int
) -> None:
    path.write_bytes(b"old")
    path.chmod(0o664)

    def fchown(_: int, owner: int, group: int) -> None:
        if owner != -1 or (group != -1 and not gives_group):
            raise PermissionError

    monkeypatch.setattr(os, "fchown", fchown)
    put(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


def test_the_content_is_hidden_until_it_has_the_mode_of_the_old_file(path: Path) -> None:
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen: list[int] = []
    atomic_file.replace(path, lambda file: seen.append(os.fstat(file.fileno()).st_mode))
    assert stat.S_IMODE(seen[0]) == 0o600


@pytest.mark.parametrize("there", [True, False], ids=["there", "dangling"])
def test_a_link_stays_and_its_target_is_replaced(save: Any, tmp_path: Path, there: bool) -> None:
    for folder in ("real", "links"):
        (tmp_path / folder).mkdir()
    target, link = tmp_path / "real" / "file.png", tmp_path / "links" / "first.png"
    link.symlink_to("second.png")
    (tmp_path / "links" / "second.png").symlink_to("../real/file.png")
    if there:
        target.write_bytes(b"old")
    save(link)
    assert link.is_symlink() and (tmp_path / "links" / "second.png").is_symlink()
    assert not target.is_symlink() and target.read_bytes() != b"old"
    assert names(tmp_path / "links") == ["first.png", "second.png"] and names(tmp_path / "real") == ["file.png"]


# ---- what is refused
def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "pipe": (os.mkfifo, "is a pipe"),
    "socket": (make_socket, "is a socket"),
    "device": (lambda path: path.symlink_to(os.ttyname(pty.openpty()[1])), "is a device"),
    "link to a folder": (lambda path: path.symlink_to(path.parent), "is a folder"),
    "open file": (lambda path: path.symlink_to("/proc/self/fd/0"), "is an? (open file of a process|device|pipe)"),
    "link to a missing folder": (lambda path: path.symlink_to("none/x"), "there is no folder .*none to write x to"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_file_is_refused_before_the_content_is_made(path: Path, kind: str) -> None:
    make, says = REFUSED[kind]
    make(path)
    before = path.lstat()
    for attempt in (atomic_file.check, lambda path: atomic_file.replace(path, lambda _: pytest.fail("it was called"))):
        with pytest.raises(PathError, match=says) as refused:
            attempt(path)
        assert isinstance(refused.value, WarphashError) and isinstance(refused.value, OSError)
    assert os.path.samestat(path.lstat(), before)
    assert names(path.parent) == [path.name]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/stdout", "/dev/fd/1"])
def test_devices_are_refused(device: str) -> None:
    with pytest.raises(PathError, match="cannot be replaced"):
        atomic_file.check(device)  # and no more: to replace a device would harm the machine


def test_a_file_behind_an_open_descriptor_is_refused(tmp_path: Path, path: Path) -> None:
    with (tmp_path / "output").open("w") as file:
        path.symlink_to(f"/proc/self/fd/{file.fileno()}")
        with pytest.raises(PathError, match="an open file of a process"):
            atomic_file.check(path)


def test_a_missing_folder_or_one_that_takes_no_files_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: Path
) -> None:
    (tmp_path / "file").touch()
    for missing in (tmp_path / "none" / "x", tmp_path / "file" / "x"):
        with pytest.raises(PathError, match=f"there is no folder {missing.parent} to write x to"):
            atomic_file.check(missing)

    def refuse(*_: Any, **__: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may write everywhere
    with pytest.raises(PathError, match=r"takes no new file \(Permission denied\)"):
        atomic_file.check(path)


def test_a_table_is_not_read_for_a_file_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = HashMap.from_arrays(KEYS, KEYS, device="cpu")
    monkeypatch.setattr(Scans, "on_host_locked", lambda *_, **__: pytest.fail("the table was read"))
    with pytest.raises(PathError):
        table.save(tmp_path)


def test_a_name_may_be_as_long_as_the_system_allows(save: Any, tmp_path: Path) -> None:
    longest = "n" * 251 + ".png"
    save(tmp_path / longest)
    assert names(tmp_path) == [longest]


# ---- failures
def test_an_exception_leaves_the_old_file(path: Path) -> None:
    for old in (None, b"old"):

        def fail(file: Any) -> None:
            file.write(b"half")
            raise RuntimeError("broken")

        with pytest.raises(RuntimeError, match="broken"):
            atomic_file.replace(path, fail)
        assert names(path.parent) == ([path.name] if old else [])
        put(path, b"old")


def test_an_interrupt_at_any_point_leaves_a_whole_file_and_no_other(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # for speed
    interrupted, outcomes = 0, set()
    while True:
        put(path, b"old")
        left = interrupted

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal left
            if frame.f_code.co_filename != atomic_file.__file__:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                if left == 0:
                    left = -1
                    sys.settrace(None)
                    raise KeyboardInterrupt
                left -= 1
            return trace

        sys.settrace(trace)
        try:
            put(path, b"new")
        except KeyboardInterrupt:
            outcomes.add(path.read_bytes())
            assert names(path.parent) == [path.name], f"after {interrupted} steps"
        else:
            break
        finally:
            sys.settrace(None)
        interrupted += 1
    assert outcomes == {b"old", b"new"} and interrupted > 100


def test_file_and_folder_are_on_disk_in_this_order(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    done: list[str] = []

    def fsync(handle: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        done.append(f"{kind} {path.exists()}")

    monkeypatch.setattr(os, "fsync", fsync)
    put(path, b"new")
    assert done == ["file False", "folder True"]


# ---- leftovers
HELD = """
import sys, time
from warphash import atomic_file

def write(file):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()

atomic_file.replace(sys.argv[1], write)
"""


@pytest.fixture
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process in the middle of writing ``path``."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HELD, str(path)], text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def test_the_next_writer_removes_what_a_killed_one_left(writer: subprocess.Popen[str], save: Any, path: Path) -> None:
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert len(names(path.parent)) == 1, "the temporary file of the writer"
    put(path.with_name("another"), b"")
    assert len(names(path.parent)) == 2, "which is left to writers of its path"
    save(path)
    assert names(path.parent) == ["another", path.name]


def test_the_temporary_file_of_a_writer_that_lives_stays(writer: subprocess.Popen[str], path: Path) -> None:
    put(path, b"mine")
    assert len(names(path.parent)) == 2
    writer.communicate("")
    assert writer.returncode == 0
    assert (names(path.parent), path.read_bytes()) == ([path.name], b"half")


def test_a_writer_whose_file_was_removed_before_it_was_locked_makes_another(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    flock, removed = atomic_file.fcntl.flock, []

    def late(file: Any, how: int) -> None:
        if not removed:
            removed.append(file)
            atomic_file._sweep(path)
        flock(file, how)

    monkeypatch.setattr(atomic_file.fcntl, "flock", late)
    put(path, b"new")
    assert removed and (names(path.parent), path.read_bytes()) == ([path.name], b"new")


def test_a_sweep_that_comes_late_leaves_a_later_file_of_the_same_name(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    """Another sweep removes the file that this one has opened, and its writer creates another."""
    flock, temporary = atomic_file.fcntl.flock, atomic_file._temporary(path)
    temporary.touch()

    def late(file: Any, how: int) -> None:
        temporary.unlink()
        temporary.write_bytes(b"later")
        flock(file, how)

    monkeypatch.setattr(atomic_file.fcntl, "flock", late)
    atomic_file._sweep(path)
    assert temporary.read_bytes() == b"later"


def test_without_locks_files_are_replaced_and_nothing_is_removed(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def no_locks(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    other = atomic_file._temporary(path)
    other.touch()
    for locks in (no_locks, None):
        if locks:
            monkeypatch.setattr(atomic_file.fcntl, "flock", locks)
        else:
            monkeypatch.setattr(atomic_file, "fcntl", None)
        put(path, b"new")
        assert names(path.parent) == sorted([other.name, path.name])


def test_writers_of_one_path_beside_each_other(path: Path) -> None:
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for turn in range(20):
                put(path, json.dumps([number, turn]).encode() * 1000)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    content = path.read_bytes()
    assert names(path.parent) == [path.name] and content == content[: len(content) // 1000] * 1000


def test_a_picture_is_of_the_format_that_its_name_says(tmp_path: Path) -> None:
    for suffix, head in ((".svg", b"<?xml"), (".PDF", b"%PDF"), (".png", b"\x89PNG")):
        plots.check_picture(tmp_path / f"x{suffix}")
        save_picture(tmp_path / f"x{suffix}")
        assert (tmp_path / f"x{suffix}").read_bytes().startswith(head)
