"""Compiled kernels on disk, and what was measured with them, named by the digest of all that could change them.

An entry is a cubin and a trailer (its length, its SHA-256, a magic word), written beside its place and moved there in
one step: a reader sees a whole entry or none, and processes that race to write one write the same bytes. An entry that
does not match its trailer is dropped and compiled again. A folder that cannot be written is no error: kernels are then
compiled once a process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ...settings import cache_directory

__all__ = [
    "KERNELS_SUFFIX",
    "LIMIT_BYTES",
    "NUMBERS_SUFFIX",
    "CacheUse",
    "CubinCache",
]

LIMIT_BYTES = 512 << 20
"""Past this, the entries used longest ago go."""

KEPT_FRACTION = 0.75
"""Of the limit, after a pruning: so that the next write does not prune again."""

STALE_SECONDS = 3600.0
"""A temporary file this old was left by a process that died."""

KERNELS_SUFFIX, NUMBERS_SUFFIX = ".cubin", ".measured"
"""Of compiled kernels, and of numbers that were measured with them."""

_TEMPORARY = ".writing-"
_TRAILER = struct.Struct("<Q32s8s")
_MAGIC = b"wphash01"


@dataclass(frozen=True)
class CacheUse:
    """What the cache holds."""

    entries: int
    nbytes: int


class CubinCache:
    """Key to cubin, on disk; safe with several threads and processes.

    Parameters
    ----------
    directory
        Made at the first write; `settings.cache_directory` by default.
    limit_bytes
        Size that a write prunes to stay under.
    suffix
        Of the entries' files: other suffixes are other caches.
    """

    def __init__(
        self, directory: Path | None = None, limit_bytes: int = LIMIT_BYTES, suffix: str = KERNELS_SUFFIX
    ) -> None:
        self.directory = cache_directory() if directory is None else directory
        self.limit_bytes, self._suffix = limit_bytes, suffix

    def get(self, key: str) -> bytes | None:
        """The entry, or None if it is absent, damaged or unreadable."""
        path = self._path(key)
        try:
            entry = path.read_bytes()
        except OSError:
            return None
        content = _unseal(entry)
        with contextlib.suppress(OSError):  # in a read-only folder there is nothing to mark or to drop
            if content is None:
                path.unlink()
            else:
                os.utime(path)  # the modification time is the time of last use
        return content

    def put(self, key: str, content: bytes) -> bool:
        """Store an entry whole or not at all; False where the folder takes no files."""
        temporary = ""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=self.directory)
            with os.fdopen(handle, "wb") as file:
                file.write(_seal(content))
            Path(temporary).replace(self._path(key))
        except OSError:
            if temporary:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()
            return False
        self.prune()
        return True

    def prune(self) -> None:
        """Drop the entries used longest ago while there is more than ``limit_bytes``, and abandoned temporary files."""
        for path, status in self._files(_TEMPORARY, ""):
            if time.time() - status.st_mtime > STALE_SECONDS:
                with contextlib.suppress(OSError):
                    path.unlink()
        entries = sorted(self._files("", self._suffix), key=lambda entry: entry[1].st_mtime)
        nbytes = sum(status.st_size for _, status in entries)
        if nbytes <= self.limit_bytes:
            return
        for path, status in entries:
            if nbytes <= KEPT_FRACTION * self.limit_bytes:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            nbytes -= status.st_size

    def use(self) -> CacheUse:
        """Entries and bytes held."""
        sizes = [status.st_size for _, status in self._files("", self._suffix)]
        return CacheUse(len(sizes), sum(sizes))

    def clear(self) -> None:
        """Drop every entry."""
        for path, _ in self._files("", self._suffix):
            with contextlib.suppress(OSError):
                path.unlink()

    def writable(self) -> bool:
        """Whether a new entry would be kept."""
        folder = self.directory
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)

    def _path(self, key: str) -> Path:
        return self.directory / (key + self._suffix)

    def _files(self, prefix: str, suffix: str) -> list[tuple[Path, os.stat_result]]:
        found = []
        with contextlib.suppress(OSError):
            for item in os.scandir(self.directory):
                if item.name.startswith(prefix) and item.name.endswith(suffix):
                    with contextlib.suppress(OSError):  # another process may have dropped it meanwhile
                        found.append((Path(item.path), item.stat()))
        return found


def _seal(content: bytes) -> bytes:
    return content + _TRAILER.pack(len(content), hashlib.sha256(content).digest(), _MAGIC)


def _unseal(entry: bytes) -> bytes | None:
    if len(entry) < _TRAILER.size:
        return None
    content = entry[: -_TRAILER.size]
    return content if entry == _seal(content) else None
