"""Files for what does not fit into memory: written once, read once or more, in order. Removed with their run.

The folders
    <temporary folder>/warphash-<user>/run-<random>.lock     locked (``flock``) by the process that runs
    <temporary folder>/warphash-<user>/run-<random>/         its files

Protocol
1. Nothing is made before the first file is needed.
2. A run creates its lock file and locks it. If the file was removed between these two steps, it creates another one.
3. It then removes the folders of runs that died: those whose lock file can be locked, because the system releases the
   lock of a process that dies. The lock file goes last. So a folder never lies without one.
4. It creates its folder, and files in it.
5. At its end, and after an error or an interrupt, it removes its folder and then its lock file.

Where the system has no such locks, step 3 removes nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import ParameterError, PathError, refused_by_system

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["SpillFile", "SpillFolder"]

_NO_ROOM = "make room there, or give folder= on another disk"
_REFUSED = "give folder= where this user may make files"
_LOCK = ".lock"


class SpillFolder:
    """The folder of one run.

    Parameters
    ----------
    folder
        Where to make it; None: in the temporary folder of the system.

    Raises
    ------
    ParameterError
        If it is no path.
    PathError
        If there is no such folder.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        if folder is not None:
            _check_folder(folder)
        self._base = Path(tempfile.gettempdir() if folder is None else folder) / f"warphash-{_user()}"
        self._lock: BinaryIO | None = None
        self._made: Path | None = None
        self._process, self._files = os.getpid(), 0

    @property
    def is_used(self) -> bool:
        """Whether a file was ever asked for."""
        return self._made is not None

    def path(self) -> Path:
        """A new path in the folder, which is made if it is not there yet.

        Raises
        ------
        PathError
            If no folder can be made there, or if that of the user belongs to somebody else.
        MemoryError
            If the disk is full.
        """
        if self._made is None:
            with _reported(self._base):
                self._make()
        assert self._made is not None
        self._files += 1
        return self._made / str(self._files)

    def file(self) -> SpillFile:
        """A new file for tables of one schema. Raises as `path`."""
        return SpillFile(self.path())

    def close(self) -> None:
        """Remove the folder with its files. May be called twice. A forked process removes nothing."""
        if self._lock is None or self._process != os.getpid():
            return
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)
        with contextlib.suppress(OSError):
            Path(self._lock.name).unlink()
        self._lock.close()
        self._lock = None

    def _make(self) -> None:
        self._base.mkdir(mode=0o700, exist_ok=True)
        about = self._base.lstat()
        if not stat.S_ISDIR(about.st_mode) or (os.name == "posix" and about.st_uid != os.getuid()):
            raise PathError(f"{self._base} is no folder of this user: remove it, or give another folder=")
        name = self._base / f"run-{os.urandom(8).hex()}"
        self._lock = _locked(name.with_suffix(_LOCK))
        _remove_dead(self._base, Path(self._lock.name))
        name.mkdir(mode=0o700)
        self._made = name


class SpillFile:
    """Tables of one schema, as a stream of Arrow. First all are written, then they are read, any number of times."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None
        self._sink: Any = None
        self.rows, self.nbytes = 0, 0

    def write(self, table: Any) -> None:
        """Append the rows of a table.

        Raises
        ------
        MemoryError
            If the disk is full.
        PathError
            For another error of the system.
        """
        if not len(table):
            return
        import pyarrow as arrow

        with _reported(self._path.parent):
            if self._writer is None:
                self._sink = arrow.OSFile(str(self._path), "wb")
                self._writer = arrow.ipc.new_stream(self._sink, table.schema)
            self._writer.write_table(table)
        self.rows += len(table)
        self.nbytes += table.nbytes

    def read(self) -> Iterator[Any]:
        """The tables, in the pieces in which they were written. Raises as `write`, for what is still to be written."""
        import pyarrow as arrow

        self.finish()
        if not self.rows:
            return
        with arrow.OSFile(str(self._path), "rb") as file, arrow.ipc.open_stream(file) as stream:
            for batch in stream:
                yield arrow.Table.from_batches([batch])

    def finish(self) -> None:
        """Write what is still to be written, and close the file. Raises as `write`."""
        if self._writer is not None:
            with _reported(self._path.parent):
                self._writer.close()
                self._sink.close()
            self._writer = self._sink = None

    def remove(self) -> None:
        """Remove the file, before the end of the run."""
        self.finish()
        if self.rows:
            with contextlib.suppress(OSError):
                self._path.unlink()


@contextlib.contextmanager
def _reported(folder: Path) -> Iterator[None]:
    """Errors of the system as errors of warphash."""
    try:
        yield
    except PathError:
        raise
    except OSError as error:
        made = refused_by_system(error, f"a spill file in {folder}", _REFUSED)
        if isinstance(made, MemoryError):
            made = MemoryError(f"{made}: {_NO_ROOM}")
        raise made from None


def _check_folder(given: str | os.PathLike[str]) -> None:
    if not isinstance(given, str | os.PathLike):
        raise ParameterError(f"expected folder= to be the path of a folder, or None, got {given!r}")
    if not Path(given).is_dir():
        is_there = "is no folder" if Path(given).exists() else "is not there"
        raise PathError(f"the folder {os.fspath(given)} {is_there}: make it, or give another folder=")


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def _locked(path: Path) -> BinaryIO:
    while True:
        file = path.open("xb")
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists():
            return file
        file.close()


def _remove_dead(base: Path, own: Path) -> None:
    """Remove the folders of runs that died."""
    if fcntl is None:
        return
    for path in base.glob(f"run-*{_LOCK}"):
        if path == own:
            continue
        with contextlib.suppress(OSError), path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                path.unlink()
