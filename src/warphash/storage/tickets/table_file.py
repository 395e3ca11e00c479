"""The file of a table with a ticket board: its slots, its boards, and a header that says which of them count.

Layout, in pages of 4096 bytes:
    page 0, page 1   the header, twice. Of those that are whole, the one with the higher sequence counts.
    slots            as the kernels have them (``kernels/tickets/pairs.cuh``)
    boards, twice    the ticket board, then the board of emptied slots if there is one. A header with an even sequence
                     names the first copy, one with an odd sequence the second.

A header:
    8 bytes   magic, with the version of this layout
    4 bytes   CRC-32 of the rest
    4 bytes   length n of the description, little-endian
    n bytes   description, JSON: the identity of the file, the sequence, the sizes of the parts, the CRC-32 of the
              boards, and what the table is

Beside the file lies its journal, ``.NAME.journal``: the contents that slots had before an update changed them in place.
A journal begins with the identity and the sequence that it belongs to, and counts for no other. A record:
    4 bytes   CRC-32 of the rest
    4 bytes   number n of slots
    4n bytes  numbers of the slots
    n slots   their contents

Protocol. What counts is the table as it was at the last commit. A slot that was free then may be written at any time. A
slot that was not free is written only when the journal has its contents, on disk; and it is not given to another key.
  commit    slots to disk; boards to the copy that does not count; both to disk; the header to the page that does not
            count; to disk. Now the journal, which belongs to the sequence before, counts no longer. The header goes to
            the other page as well, so a header that is damaged later is no loss; and the journal is removed.
  open      the records of the journal, last one first, are written back; then the boards are read.
A process may be killed at any point. Before the header is whole, the older one counts, with its boards and its journal.
  replace   a table that moves to other slots makes another file, ``.NAME.HEX.table``, which takes the name of the first
            one when it is committed. Until then the first one counts.

A file that is open is locked (``flock``), so that no second process opens it. The system releases the lock of a killed
process. So a file that was not yet committed and can be locked is abandoned, and the next one who comes removes it.
The child of a fork has the lock and the mapped slots of its parent, so it may read the table, and not change it.

The header, the boards and the journal have checksums. The slots have none, since `open` would have to read all slots to
compare it. A damaged slot is taken as it is. `BaseTable.check` sees it if the key no longer fits its ticket.

Why no journal of everything that changes: an insert writes to slots that were free, and needs none. Only a value that
is changed in place costs a line in the journal.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import re
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import CorruptFile, PathError
from ...runtime.memory import bytes_at

__all__ = ["Sizes", "TableFile", "describe"]

_MAGIC = b"warphtb1"
_PAGE = 4096
_HEADERS = 2
_FIRST = 16  # of the description in its page

Bytes = npt.NDArray[np.uint8]


class Sizes(NamedTuple):
    """Sizes of the parts of a file.

    Attributes
    ----------
    slots, slot_bytes
        The slots, and bytes of each.
    board_bytes
        Of the largest boards that the table can have.
    """

    slots: int
    slot_bytes: int
    board_bytes: int

    @property
    def slots_at(self) -> int:
        """Where the slots begin."""
        return _HEADERS * _PAGE

    def boards_at(self, copy: int) -> int:
        """Where a copy of the boards begins."""
        return self.slots_at + _in_pages(self.slots * self.slot_bytes) + copy * _in_pages(self.board_bytes)

    @property
    def nbytes(self) -> int:
        """Of the file."""
        return self.boards_at(2)


def _in_pages(nbytes: int) -> int:
    return -(-nbytes // _PAGE) * _PAGE


def describe(path: Path) -> dict[str, Any]:
    """What table a file holds: the description of the last commit.

    Raises
    ------
    PathError
        If the file cannot be read.
    CorruptFile
        If it is no file of a table.
    """
    try:
        with path.open("rb") as file:
            return _newest(file.read(_HEADERS * _PAGE), path)
    except OSError as error:
        raise PathError(f"{path} cannot be read ({error.strerror}): give the path of a table's file") from None


def _newest(pages: bytes, path: Path) -> dict[str, Any]:
    found = [made for number in range(_HEADERS) if (made := _parse(pages[number * _PAGE :][:_PAGE]))]
    if not found:
        raise CorruptFile(
            f"{path} is no file of a table of this version: neither of its headers is whole; load(path) reads what "
            "save(path) wrote"
        )
    return max(found, key=lambda description: description["sequence"])


def _parse(page: bytes) -> dict[str, Any] | None:
    """The description in a page; None if the page is not whole."""
    length = int.from_bytes(page[12:_FIRST], "little")
    checked = page[12 : _FIRST + length]
    if page[:8] != _MAGIC or length > _PAGE - _FIRST or zlib.crc32(checked) != int.from_bytes(page[8:12], "little"):
        return None
    description: dict[str, Any] = json.loads(checked[4:])
    return description


def _page_of(description: Mapping[str, Any]) -> bytes:
    encoded = json.dumps(description).encode()
    if len(encoded) > _PAGE - _FIRST:
        raise PathError(f"a table is described in {_PAGE - _FIRST:,} bytes, and these types take {len(encoded):,}")
    checked = len(encoded).to_bytes(4, "little") + encoded
    return (_MAGIC + zlib.crc32(checked).to_bytes(4, "little") + checked).ljust(_PAGE, b"\0")


class TableFile:
    """An open and locked file of a table. It is closed with the last reference; what was not committed does not count.

    Attributes
    ----------
    path
        The name of the table.
    sizes
        Of the parts.
    description
        That of the last commit; None for a file that was never committed.
    """

    def __init__(
        self,
        path: Path,
        handle: int,
        own_name: Path,
        sizes: Sizes,
        description: dict[str, Any] | None = None,
        replaces: bool = True,
    ) -> None:
        self.path, self.sizes, self.description = path, sizes, description
        self._handle, self._name, self._replaces, self._process = handle, own_name, replaces, os.getpid()
        weakref.finalize(self, os.close, handle)
        if description is None:
            weakref.finalize(self, _abandon, own_name, os.getpid())  # a commit renames the file
        self._identity = description["identity"] if description else os.urandom(16).hex()
        self._journal: _Journal | None = None
        self._map: mmap.mmap | None = None
        self._imaged: npt.NDArray[np.bool_] | None = None

    # ---- making and opening
    @classmethod
    def create(cls, path: Path, sizes: Sizes, replaces: bool) -> TableFile:
        """Make a file that is called ``path`` when it is committed.

        Parameters
        ----------
        replaces
            It then takes the place of the table at ``path``, which is open. Otherwise there must be no file.

        Raises
        ------
        PathError
            If there can be no such file.
        MemoryError
            If the disk has no room for it, or takes no file beside the one that is open.
        """
        _sweep(path)
        try:
            name, handle = _new_file(path)
        except OSError as error:
            said = f"the folder {path.parent} takes no new file ({error.strerror})"
            raise (MemoryError(said) if replaces else PathError(f"{said}: give another path")) from None
        try:
            _reserve(handle, sizes.nbytes, path)
        except BaseException:
            os.close(handle)
            name.unlink()
            raise
        return cls(path, handle, name, sizes, replaces=replaces)

    @classmethod
    def open(cls, path: Path) -> TableFile:
        """Open a file, as it was at the last commit.

        Raises
        ------
        PathError
            If the file cannot be opened, or another process or table has it open.
        CorruptFile
            If it is no file of a table, or is damaged.
        """
        try:
            handle = _open_locked(path)
        except OSError as error:
            said = f"{path} cannot be opened to be read and written ({error.strerror})"
            raise PathError(f"{said}: give the path of a table's file that may be written") from None
        if handle is None:
            raise PathError(f"{path} is open already, here or in another process: close that table first")
        try:
            description = _newest(os.pread(handle, _HEADERS * _PAGE, 0), path)
            sizes = Sizes(*(description[name] for name in Sizes._fields))
            if os.fstat(handle).st_size != sizes.nbytes:
                raise CorruptFile(
                    f"{path} has {os.fstat(handle).st_size:,} bytes, and a table of {sizes.slots:,} slots has "
                    f"{sizes.nbytes:,}: it was cut or extended"
                )
        except BaseException:
            os.close(handle)
            raise
        file = cls(path, handle, path, sizes, description)
        _sweep(path)
        file._roll_back()
        return file

    def check_process(self) -> None:
        """Raise `PathError` in the child of a fork: the slots and the lock are those of its parent."""
        if os.getpid() != self._process:
            raise PathError(
                f"{self.path} is open in the process that this one was forked from, and only that one may change it: "
                "change a copy() of the table"
            )

    # ---- parts
    def map_slots(self) -> ctypes.Array[ctypes.c_char]:
        """The slots in memory, shared with the file. A page is read when somebody looks there."""
        nbytes = self.sizes.slots * self.sizes.slot_bytes
        self._map = mmap.mmap(self._handle, _in_pages(nbytes), offset=self.sizes.slots_at)
        if hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_RANDOM)  # the next slot that is wanted lies in any other page
        memory: ctypes.Array[ctypes.c_char] = (ctypes.c_char * nbytes).from_buffer(self._map)
        return memory

    def read_slots(self, into: Bytes) -> None:
        """Read all slots."""
        self._read(into, self.sizes.slots_at)

    def write_slots(self, slots: Bytes) -> None:
        """Write all slots of a file that was never committed."""
        self._write(slots, self.sizes.slots_at)

    def boards(self) -> Bytes:
        """The boards of the last commit, one behind the other.

        Raises
        ------
        CorruptFile
            If they are damaged.
        """
        assert self.description is not None
        boards = np.empty(self.description["used_board_bytes"], np.uint8)
        self._read(boards, self.sizes.boards_at(self.description["sequence"] % 2))
        if zlib.crc32(boards.data) != self.description["boards_crc"]:
            raise CorruptFile(f"the ticket board in {self.path} does not match its checksum")
        return boards

    def _read(self, into: Bytes, at: int) -> None:
        view = into.data.cast("B")
        done = 0
        while done < len(view):
            count = os.preadv(self._handle, [view[done : done + (1 << 30)]], at + done)
            if not count:
                raise CorruptFile(f"{self.path} ends {len(view) - done:,} bytes too early")
            done += count

    def _write(self, content: Bytes, at: int) -> None:
        _write_at(self._handle, content.data, at)

    # ---- the journal
    def preserve(self, slots: npt.NDArray[np.uint32], memory: int) -> None:
        """Have the contents of slots in the journal, on disk, before they are changed in place.

        Parameters
        ----------
        slots
            Numbers of slots.
        memory
            Address of the mapped slots.
        """
        if not len(slots) or not self.counts:
            return  # there is nothing to go back to
        if self._imaged is None:
            self._imaged = np.zeros(self.sizes.slots, np.bool_)
        new = np.unique(slots)
        new = new[~self._imaged[new]]
        if not len(new):
            return
        whole = bytes_at(memory, self.sizes.slots * self.sizes.slot_bytes).reshape(-1, self.sizes.slot_bytes)
        try:
            if self._journal is None:
                self._journal = _Journal(self._journal_name, self._identity, self._sequence(), self.sizes)
            self._journal.append(new, whole[new])
        except OSError as error:
            raise MemoryError(f"the disk does not take the journal of {self.path} ({error.strerror})") from None
        self._imaged[new] = True

    @property
    def _journal_name(self) -> Path:
        return self.path.with_name(f".{self.path.name}.journal")

    def _roll_back(self) -> None:
        """Undo what was changed in place since the last commit."""
        try:
            content = self._journal_name.read_bytes()
        except FileNotFoundError:
            return
        records = list(_records(content, _opening(self._identity, self._sequence()), self.sizes))
        for _, slots, contents in reversed(records):
            for slot, held in zip(slots.tolist(), contents, strict=True):
                self._write(held, self.sizes.slots_at + slot * self.sizes.slot_bytes)
        if records:
            os.fsync(self._handle)
        _remove(self._journal_name)

    # ---- commits
    def commit(self, table: Mapping[str, Any], boards: Sequence[Bytes]) -> None:
        """Make the table what counts: its slots as they are now, and these boards.

        Parameters
        ----------
        table
            What the table is; JSON.
        boards
            The ticket board, and the board of emptied slots if there is one.

        Raises
        ------
        PathError
            If a new table finds its name taken, or for an error of the disk; and in the child of a fork.
        """
        self.check_process()
        try:
            self._commit(table, boards)
        except PathError:
            raise
        except OSError as error:
            mend = "flush again, or save(path) to another disk"
            raise _refused(error, f"a commit of {self.path}", mend) from None

    def _commit(self, table: Mapping[str, Any], boards: Sequence[Bytes]) -> None:
        # After an interrupt, only the disk knows whether the last commit was one.
        self._journal = self._imaged = None
        sequences = self._sequences()
        sequence = max(sequences) + 1
        if self._map is not None:
            self._map.flush()
        at, crc = self.sizes.boards_at(sequence % 2), 0
        for board in boards:
            self._write(board, at)
            crc = zlib.crc32(board.data, crc)
            at += board.nbytes
        description = {
            "identity": self._identity,
            "sequence": sequence,
            **self.sizes._asdict(),
            "used_board_bytes": sum(board.nbytes for board in boards),
            "boards_crc": crc,
            "table": dict(table),
        }
        page, order = _page_of(description), sorted(range(_HEADERS), key=sequences.__getitem__)
        os.fsync(self._handle)
        _write_at(self._handle, page, order[0] * _PAGE)
        os.fsync(self._handle)
        if not self.counts:
            self._take_name()
        _write_at(self._handle, page, order[1] * _PAGE)
        self.description = description
        _remove(self._journal_name)

    @property
    def counts(self) -> bool:
        """Whether this is the file that `open` opens. After an interrupt, only the disk knows."""
        return _is_named(self._handle, self.path)

    def _take_name(self) -> None:
        if not self._replaces:
            try:
                os.link(self._name, self.path)  # which fails if somebody else has made a file there
            except FileExistsError:
                raise PathError(f"{self.path} was made meanwhile, by somebody else: give another path") from None
            except OSError:  # this file system has no links
                self._name.replace(self.path)
            else:
                self._name.unlink()
        else:
            self._name.replace(self.path)
        _flush_folder(self.path.parent)

    def _sequence(self) -> int:
        """That of the last commit; -1 before the first one."""
        return max(self._sequences())

    def _sequences(self) -> list[int]:
        """That of each header; -1 for a header that is not whole."""
        pages = os.pread(self._handle, _HEADERS * _PAGE, 0)
        found = (_parse(pages[number * _PAGE :][:_PAGE]) for number in range(_HEADERS))
        return [description["sequence"] if description else -1 for description in found]


def _abandon(name: Path, process: int) -> None:
    """Remove a file that was never committed. The child of a fork leaves that to its parent."""
    if os.getpid() == process:
        name.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove the files that killed processes had not committed. Nobody holds the lock of such a file."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.table")  # and no other: it may be somebody's table
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name):
                with suppress(OSError), Path(entry.path).open("rb") as abandoned:
                    fcntl.flock(abandoned, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    Path(entry.path).unlink()


def _new_file(path: Path) -> tuple[Path, int]:
    """Make and lock a file beside ``path``. If another process removes it before it is locked, make another one."""
    while True:
        name = path.with_name(f".{path.name}.{os.urandom(8).hex()}.table")
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if _locked(handle) and _is_named(handle, name):
            return name, handle
        os.close(handle)


def _open_locked(path: Path) -> int | None:
    """Open and lock the file of a table; None if it is locked. If another file takes its name meanwhile, open that."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        locked = _locked(handle)
        if locked and _is_named(handle, path):
            return handle
        os.close(handle)
        if not locked:
            return None


def _locked(handle: int) -> bool:
    """Lock a file, if nobody else has locked it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        os.close(handle)
        raise
    return True


def _is_named(handle: int, name: Path) -> bool:
    """Whether a file has a name."""
    try:
        return os.path.samestat(name.stat(), os.fstat(handle))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _reserve(handle: int, nbytes: int, path: Path) -> None:
    """Give a file its size, and room on the disk: a page that has no room when it is written would kill the process."""
    try:
        os.posix_fallocate(handle, 0, nbytes)
    except OSError as error:
        raise _refused(error, f"{nbytes:,} bytes of {path}", "give another path") from None


def _refused(error: OSError, what: str, mend: str) -> Exception:
    """What to raise for an error of the disk."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return MemoryError(f"the disk has no room for {what} ({error.strerror})")
    return PathError(f"the disk does not take {what} ({error.strerror}): {mend}")


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()


class _Journal:
    """The contents that slots had at a commit."""

    def __init__(self, path: Path, identity: str, sequence: int, sizes: Sizes) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        weakref.finalize(self, os.close, self._handle)
        opening = _opening(identity, sequence)
        self._end = _end_of_records(path.read_bytes(), opening, sizes)
        if not self._end:  # it belongs to an older commit, or is new
            os.ftruncate(self._handle, 0)
            self._append(opening)
            _flush_folder(path.parent)

    def append(self, slots: npt.NDArray[np.uint32], contents: Bytes) -> None:
        """Write a record, which is on disk when this returns."""
        body = len(slots).to_bytes(4, "little") + slots.astype("<u4").tobytes() + contents.tobytes()
        self._append(zlib.crc32(body).to_bytes(4, "little") + body)

    def _append(self, content: bytes) -> None:
        _write_at(self._handle, content, self._end)
        os.fsync(self._handle)
        self._end += len(content)


def _records(content: bytes, opening: bytes, sizes: Sizes) -> Iterator[tuple[int, npt.NDArray[np.uint32], Bytes]]:
    """Yield where each whole record of a journal ends, its slots and what they held. None of another opening's."""
    at = len(opening)
    if content[:at] != opening:
        return
    while at + 8 <= len(content):
        count = int.from_bytes(content[at + 4 : at + 8], "little")
        end = at + 8 + count * (4 + sizes.slot_bytes)
        if end > len(content) or zlib.crc32(content[at + 4 : end]) != int.from_bytes(content[at : at + 4], "little"):
            return  # whoever wrote it was stopped before these slots were changed
        slots = np.frombuffer(content, "<u4", count, at + 8)
        images = np.frombuffer(content, np.uint8, count * sizes.slot_bytes, at + 8 + 4 * count)
        yield end, slots, images.reshape(count, sizes.slot_bytes)
        at = end


def _end_of_records(content: bytes, opening: bytes, sizes: Sizes) -> int:
    """Where the last whole record of a journal ends; 0 for another opening's."""
    end = len(opening) if content.startswith(opening) else 0
    for at, _, _ in _records(content, opening, sizes):
        end = at
    return end


def _opening(identity: str, sequence: int) -> bytes:
    return _MAGIC + bytes.fromhex(identity) + sequence.to_bytes(8, "little")


def _write_at(handle: int, content: bytes | memoryview, at: int) -> None:
    view = memoryview(content).cast("B")
    done = 0
    while done < len(view):
        done += os.pwrite(handle, view[done : done + (1 << 30)], at + done)


def _flush_folder(folder: Path) -> None:
    """Have a new name survive a loss of power, if the file system can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
