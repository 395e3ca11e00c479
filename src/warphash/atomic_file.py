"""Write a file so that its path holds the old content or the new one, never a part: for every file that a caller names.

Protocol
1. Find the target. Links are followed, so the file behind a link is replaced and the link stays. A folder, a device, a
   pipe or a socket is refused.
2. Remove the temporary files of writers of this target that were killed. A writer holds a lock (``flock``) on its
   temporary file, and the system releases the lock when the writer dies: so a file that can be locked is abandoned.
   A later file of the same name stays: its writer made the file anew (step 3) after the abandoned one was opened.
3. Create a temporary file in the folder of the target, and lock it. A writer whose file was removed between these two
   steps creates another.
4. Write. Give the file the owner and the mode of the target. Sync it to the disk.
5. Rename the temporary file to the target, still locked, and sync the folder to the disk.

Whatever goes wrong before step 5 removes the temporary file and leaves the target as it was. Where the system or the
file system has no such locks, steps 2 and 3 lock and remove nothing.

An unnamed file (``O_TMPFILE``) would not do: it cannot take the place of a file that is there without a name of its own
in between, so a kill could leave that one.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from .errors import PathError, is_lack_of_room, refused_by_system

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["check", "replace", "sync_folder"]

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def replace(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a file whole, or leave the path as it was.

    A file that is there keeps its mode, and its owner and group as far as the system lets this process give files away;
    where the group cannot be kept, it gets no permission. What counts is that the folder takes files: a read-only file
    is replaced and stays read-only. A new file has the mode that ``open`` would give it.

    Parameters
    ----------
    path
        The file. If it is a link, the file that it leads to.
    write
        Called with the temporary file, once it is certain that there is a place for it.

    Raises
    ------
    PathError
        If no file can be written there. ``write`` was not called. Or for an error of the disk; the path is as it was.
    MemoryError
        If there is no room, on the disk or among the open files. The path is as it was.
    """
    target, old = _target(path)
    _sweep(target)
    temporary = _temporary(target)
    try:
        with _create(temporary, old) as file:
            write(file)
            file.flush()
            if old and os.name == "posix":
                _keep_owner_and_mode(file.fileno(), old)
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows renames no open file
            temporary.replace(target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, PathError):
            raise refused_by_system(error, f"writing {target}", "give a path on another disk") from None
        raise
    sync_folder(target.parent)


def check(path: str | os.PathLike[str]) -> None:
    """Raise `PathError` if `replace` would, before the work whose result is to be written."""
    target, old = _target(path)
    temporary = _temporary(target)
    try:
        _create(temporary, old).close()
    finally:
        with suppress(OSError):
            temporary.unlink()


def _target(path: str | os.PathLike[str]) -> tuple[Path, os.stat_result | None]:
    """The file to replace, behind all links, and what is known of it if it is there."""
    given = Path(path)
    old = None
    with suppress(FileNotFoundError, NotADirectoryError):
        old = given.stat()
    if old and not stat.S_ISREG(old.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(old.st_mode)), "no file")
        raise PathError(f"{given} is {kind}, which cannot be replaced by a file: give the path of a file")
    target = given
    while True:
        folder = target.parent.resolve()
        if not folder.is_dir():
            raise PathError(f"there is no folder {target.parent} to write {target.name} to")
        if folder.is_relative_to("/proc"):  # /dev/stdout leads there, too
            raise PathError(f"{given} is an open file of a process, which cannot be replaced: give the path of a file")
        target = folder / target.name
        if not target.is_symlink():
            return target, old
        target = folder / target.readlink()


def _temporary(target: Path) -> Path:
    return target.with_name(_prefix(target) + os.urandom(8).hex())


def _prefix(target: Path) -> str:
    """What the temporary files of a target begin with. A digest of its name, which may be as long as a name can be."""
    return f".warphash-{hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()}-"


def _create(temporary: Path, old: os.stat_result | None) -> BinaryIO:
    """Make a temporary file and lock it. Of a file that is there, it shows nothing to others before it is complete."""
    opener = functools.partial(os.open, mode=0o600 if old else 0o666)
    while True:
        try:
            file = cast(BinaryIO, open(temporary, "xb", opener=opener))  # noqa: SIM115
        except OSError as error:
            said = (
                f"the folder {temporary.parent} takes no new file ({error.strerror}), and a file is written beside the "
                "one that it replaces"
            )
            if is_lack_of_room(error):
                raise MemoryError(f"{said}: make room there, or give a path in another folder") from None
            raise PathError(f"{said}: give a path in another folder") from None
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        if temporary.exists():
            return file
        file.close()


def _sweep(target: Path) -> None:
    """Remove the temporary files of writers that died."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(target.parent) as entries:  # a folder that takes files need not be readable
        for entry in entries:
            if entry.name.startswith(_prefix(target)) and entry.is_file(follow_symlinks=False):
                found = Path(entry.path)
                with suppress(OSError), found.open("rb") as abandoned:
                    fcntl.flock(abandoned, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(found.stat(), os.fstat(abandoned.fileno())):
                        found.unlink()


def _keep_owner_and_mode(handle: int, old: os.stat_result) -> None:
    """Give a file the owner, the group and the mode of another, as far as that is allowed."""
    mode = stat.S_IMODE(old.st_mode)
    for owner, group, kept in ((old.st_uid, old.st_gid, 0o7777), (-1, old.st_gid, 0o777), (-1, -1, 0o707)):
        with suppress(PermissionError):
            os.fchown(handle, owner, group)
            os.fchmod(handle, mode & kept)
            return


def sync_folder(folder: Path) -> None:
    """Make the new name of a file in a folder survive a loss of power, where that is possible.

    Raises
    ------
    OSError
        For an error of the disk.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may not be read, or Windows
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a file system whose folders cannot be synced
            raise
    finally:
        os.close(handle)
