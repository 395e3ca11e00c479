"""The file of a table with a ticket board: its slots, its boards, and a header that says which of them count.

Layout, in pages of 4096 bytes:
    page 0, page 1   the header, twice. Of those that are whole, the one with the higher sequence counts.
    slots            as the kernels have them (``kernels/tickets/pairs.cuh``)
    boards, twice    the ticket board, then the board of emptied slots if there is one. A header with an even sequence
                     names the first copy, one with an odd sequence the second.
    log              strings of any length, if the table has any (``storage/strings/string_log.py``)

A header:
    8 bytes   magic, with the version of this layout
    4 bytes   CRC-32 of the length and the description
    4 bytes   length n of the description, little-endian
    n bytes   description, JSON: the identity of the file, that of the file whose place it took, the sequence, the sizes
              of the parts, the CRC-32 of the boards, where the log begins and its bytes, and what the table is
    ...       zeros
    32 bytes  the mark of a journal, at the end of the page; zeros if there is no journal

A mark says that slots were changed in place since the commit of a sequence, so that the slots are nothing without the
journal:
    4 bytes   CRC-32 of the rest
    4 bytes   number of records of the journal behind which slots were changed
    8 bytes   the sequence
    16 bytes  the name of the journal, which is drawn at random when the journal is made

The journal, ``.NAME.journal`` beside the file, has the contents that slots had before an update changed them in place.
    8 bytes   magic
    16, 8, 16 the identity and the sequence that the journal belongs to, and its name
    4 bytes   CRC-32 of these
    records, which are numbered from 1:
        16 bytes  the name of the journal
        4 bytes   CRC-32 of the rest, and of the name
        4 bytes   number of the record
        4 bytes   number n of slots
        4n bytes  numbers of the slots
        n slots   their contents

Protocol. What counts is the table as it was at the last commit. A slot that was free then may be written at any time. A
slot that was not free is written only behind these steps; and it is not given to another key.
  preserve  1. A record with its contents goes to the journal, and to the disk.
            2. The number of records goes to both marks. The first marks of a journal go to the disk. The next ones are
               in the memory of the system when the process is killed; a loss of power may take the last one.
  commit    slots to disk; boards to the copy that does not count; what is new in the log; all to disk; the header to
            the page that does not count; to disk. Now the marks, which belong to the sequence before, count no longer.
            The header goes to the other page as well, so a header that is damaged later is no loss; and the journal is
            removed.
  open      If there is a mark, the records of the journal, last one first, are written back. Both headers are written
            again if they differ, or have marks; a damaged mark goes first. Then the boards are read.
A process may be killed at any point. Before the header is whole, the older one counts, with its boards and its journal.
  replace   a table that moves to other slots makes another file, ``.NAME.HEX.table``, which takes the name of the first
            one when it is committed. Until then the first one counts.

What is damaged, and what is a torn tail? A record that is not whole, and that no mark counts, was being written when
the process was stopped: its slots were not changed, and nothing is lost without it. `open` refuses every other journal
as damaged: one that is missing or belongs to another state of the file, one with fewer whole records than a mark
counts, and one with a record behind a damaged record.

What is a damaged mark? A mark is zeros, or whole; anything else is damaged. Marks are written to one page after the
other, and no slot is changed before both are written. So a kill may leave these states, with a mark that is torn:
  - The mark of one page is torn, and that of the other is whole: the whole one counts, as always.
  - It was the first mark of a journal: the other page has zeros. No slot was changed yet.
  - A commit was stopped at the end of a page: that page has the new header, and a mark that is half zeros. The other
    page has the header and the mark of the sequence before. No slot was changed since the new header.
  - `open` was stopped while it wrote a page again: it writes that of a damaged mark first, so the other page is in one
    of the states above.
So two damaged marks are damage, and `open` refuses them. If no mark of the present sequence is whole, and one page at
least has zeros or an older mark, no slot was changed in place; unless marks were lost. The journal tells: if it belongs
to the present sequence, its records are what the slots hold. If they are not, or if the journal is damaged before its
last record, `open` refuses the file, and leaves the journal where it is.

The log. The part of it that a header names is not overwritten while the header counts. A commit adds records behind
that part; or it writes a log that replaces it, in front of it if there is room, and otherwise behind it. So the bytes
that a killed process has written outside of the part count for nothing, and the next commit writes there.

A file that is open is locked (``flock``), so that no second process opens it. The system releases the lock of a killed
process. So a file that was not yet committed and can be locked is abandoned, and the next one who comes removes it.
The child of a fork has the lock and the mapped slots of its parent, so it may read the table, and not change it.

Names. The path is that behind all symbolic links. A file with several names (hard links) is refused: a larger table
would replace it under one name alone. The journal of another file is never removed: that file may need it.

The header, the boards and the journal have checksums. The slots have none, since `open` would have to read all slots to
compare it. A damaged slot is taken as it is. `BaseTable.check` sees it if the key no longer fits its ticket.

Why no journal of everything that changes: an insert writes to slots that were free, and needs none. Only a value that
is changed in place costs a line in the journal. Why the marks are in the file, and not in the journal: a file that was
renamed or copied without its journal, or with that of another day, has to say so.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import re
import stat
import struct
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...atomic_file import sync_folder
from ...errors import CorruptFile, DtypeError, PathError, is_lack_of_room, refused_by_system
from ...runtime.memory import bytes_at
from ..file_log import FileLog

__all__ = ["Sizes", "TableFile", "check_describable", "describe"]

_MAGIC = b"warphtb2"
_OLDER_MAGIC = b"warphtb1"
"""Of a layout whose headers have no marks. Files of this layout become files of today's layout when they are opened."""

_JOURNAL_MAGIC = b"warphjr2"
_PAGE = 4096
_HEADERS = 2
_MARK_BYTES = 32
_OPENING_BYTES = 52  # of a journal
_FIRST = 16  # of the description in its page
_FLUSH_AGAIN = "flush again, or save(path) to another disk"

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
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for a writer
        try:
            return _newest(_header_pages(handle, path), path)
        finally:
            os.close(handle)
    except PathError:
        raise
    except OSError as error:
        raise refused_by_system(error, f"reading {path}", "give the path of a table's file") from None


def _header_pages(handle: int, path: Path) -> bytes:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise PathError(f"{path} is no file: give the path of a table's file")
    return os.pread(handle, _HEADERS * _PAGE, 0)


def _newest(pages: bytes, path: Path) -> dict[str, Any]:
    found = [made for page in _split_pages(pages) if (made := _parse(page))]
    if not found:
        raise CorruptFile(
            f"{path} is no file of a table of this version: neither of its headers is whole; load(path) reads what "
            "save(path) wrote"
        )
    return max(found, key=lambda description: description["sequence"])


def _split_pages(pages: bytes) -> list[bytes]:
    return [pages[number * _PAGE :][:_PAGE] for number in range(_HEADERS)]


def _parse(page: bytes) -> dict[str, Any] | None:
    """The description in a page; None if the page is not whole."""
    length = int.from_bytes(page[12:_FIRST], "little")
    checked = page[12 : _FIRST + length]
    if page[:8] not in (_MAGIC, _OLDER_MAGIC) or length > _PAGE - _FIRST:
        return None
    if zlib.crc32(checked) != int.from_bytes(page[8:12], "little"):
        return None
    description: dict[str, Any] = json.loads(checked[4:])
    return description


def _page_of(description: Mapping[str, Any]) -> bytes:
    encoded = json.dumps(description).encode()
    if len(encoded) > (room := _PAGE - _FIRST - _MARK_BYTES):
        raise DtypeError(
            f"the file of a table has {room:,} bytes for its types and the names of its columns, and these take "
            f"{len(encoded):,}: give shorter names to columns and fields, or rows without names, as a NumPy array"
        )
    checked = len(encoded).to_bytes(4, "little") + encoded
    return (_MAGIC + zlib.crc32(checked).to_bytes(4, "little") + checked).ljust(_PAGE, b"\0")


def check_describable(table: Mapping[str, Any]) -> None:
    """Raise `DtypeError` unless a file can describe a table, now and when its numbers have become larger.

    Parameters
    ----------
    table
        As for `TableFile.commit`, without the numbers that change.
    """
    numbers = (
        *Sizes._fields,
        "log_at",
        "log_bytes",
        "sequence",
        "used_board_bytes",
        "boards_crc",
        "size",
        "tombstones",
        "slots_seed",
        "more",
    )
    identity = "0" * 32
    _page_of({"identity": identity, "replaces": identity, **dict.fromkeys(numbers, 1 << 64), "table": dict(table)})


class _Mark(NamedTuple):
    """What a header says of a journal. Slots may have been changed in place behind the first ``records`` records."""

    records: int
    sequence: int
    name: bytes

    def packed(self) -> bytes:
        """The mark, as it is in a page."""
        packed = struct.pack("<IQ16s", *self)
        return zlib.crc32(packed).to_bytes(4, "little") + packed

    @classmethod
    def of(cls, page: bytes) -> _Mark | None:
        """The mark in a page; None if there is no whole one."""
        packed = page[_PAGE - _MARK_BYTES : _PAGE]
        if zlib.crc32(packed[4:]) != int.from_bytes(packed[:4], "little"):
            return None
        return cls(*struct.unpack("<IQ16s", packed[4:]))

    @classmethod
    def is_damaged(cls, page: bytes) -> bool:
        """Whether a page has a mark that is neither whole nor zeros."""
        has_marks = not page.startswith(_OLDER_MAGIC)  # the older layout may have a description in its place
        return has_marks and any(page[_PAGE - _MARK_BYTES : _PAGE]) and cls.of(page) is None


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
    identity
        Drawn at random when the file is made.
    """

    def __init__(
        self,
        path: Path,
        handle: int,
        own_name: Path,
        sizes: Sizes,
        description: dict[str, Any] | None = None,
        replaces: str | None = None,
    ) -> None:
        self.path, self.sizes, self.description = path, sizes, description
        self._handle, self._name, self._process = handle, own_name, os.getpid()
        self._close = _when_collected(self, os.close, handle)
        if description is None:
            _when_collected(self, _abandon, own_name, os.getpid())  # a commit renames the file
        self.identity: str = description["identity"] if description else os.urandom(16).hex()
        self._replaces = description.get("replaces") if description else replaces
        self._journal: _Journal | None = None
        self._durable_mark: bytes | None = None  # name of the journal whose marks are on the disk
        self._map: mmap.mmap | None = None
        self._imaged: npt.NDArray[np.bool_] | None = None

    # ---- making and opening
    @classmethod
    def create(cls, path: Path, sizes: Sizes, replaces: str | None) -> TableFile:
        """Make a file that is called ``path`` when it is committed.

        Parameters
        ----------
        replaces
            Identity of the file at ``path``, which is open, and whose place the new file then takes. None if there must
            be no file.

        Raises
        ------
        PathError
            If there can be no such file.
        MemoryError
            If there is no room for it, or the folder takes no file beside the one that is open.
        """
        _sweep(path)
        try:
            name, handle = _new_file(path)
        except OSError as error:
            said = f"the folder {path.parent} takes no new file ({error.strerror})"
            if replaces is not None or is_lack_of_room(error):
                raise MemoryError(said) from None
            raise PathError(f"{said}: give another path") from None
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
            if handle is None:
                raise PathError(f"{path} is open already, here or in another process: close that table first")
            try:
                _sweep(path)
                description, sizes = _checked(handle, path)
            except BaseException:
                os.close(handle)
                raise
            file = cls(path, handle, path, sizes, description)
            try:
                file._roll_back()
            except BaseException as error:
                file.close()
                raise error
        except PathError:
            raise
        except OSError as error:
            mend = "give the path of a table's file that may be written"
            raise refused_by_system(error, f"opening {path} to read and to write", mend) from None
        return file

    def close(self) -> None:
        """Close a file that cannot be used: the traceback keeps it, and the mend may be to open it again."""
        self._close()

    @property
    def is_inherited(self) -> bool:
        """Whether the file was opened by the process that this one was forked from."""
        return os.getpid() != self._process

    def check_process(self) -> None:
        """Raise `PathError` in the child of a fork: the slots and the lock are those of its parent."""
        if self.is_inherited:
            raise PathError(
                f"{self.path} is open in the process that this one was forked from, and only that one may change it: "
                "change a copy() of the table"
            )

    # ---- parts
    def map_slots(self) -> ctypes.Array[ctypes.c_char]:
        """The slots in memory, shared with the file. A page is read when somebody looks there.

        Raises
        ------
        MemoryError
            If there is no address space for them.
        """
        nbytes = self.sizes.slots * self.sizes.slot_bytes
        try:
            self._map = mmap.mmap(self._handle, _in_pages(nbytes), offset=self.sizes.slots_at)
        except OSError as error:
            said = f"{nbytes:,} bytes of {self.path} in the address space"
            raise refused_by_system(error, said, "move the file to a file system that can map files") from None
        if hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_RANDOM)  # the next slot that is wanted lies in any other page
        memory: ctypes.Array[ctypes.c_char] = (ctypes.c_char * nbytes).from_buffer(self._map)
        return memory

    def read_slots(self, into: Bytes) -> None:
        """Read all slots."""
        self._read(into, self.sizes.slots_at)

    def write_slots(self, slots: Bytes) -> None:
        """Write all slots of a file that was never committed."""
        try:
            self._write(slots, self.sizes.slots_at)
        except OSError as error:
            raise refused_by_system(error, f"writing {self.path}", _FLUSH_AGAIN) from None

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

    def log(self) -> Bytes:
        """The log of the last commit."""
        assert self.description is not None
        at, nbytes = _log_in(self.description)
        content = np.empty(nbytes, np.uint8)
        self._read(content, self.sizes.nbytes + at)
        return content

    def _read(self, into: Bytes, at: int) -> None:
        view = into.data.cast("B")
        done = 0
        while done < len(view):
            try:
                count = os.preadv(self._handle, [view[done : done + (1 << 30)]], at + done)
            except OSError as error:
                raise refused_by_system(error, f"reading {self.path}", "open the file again") from None
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
            Numbers of different slots.
        memory
            Address of the mapped slots.
        """
        if not len(slots) or (self.description is None and not self.counts):
            return  # there is nothing to go back to
        if self._imaged is None:
            self._imaged = np.zeros(self.sizes.slots, np.bool_)
        new = slots[~self._imaged[slots]]
        if not len(new):
            return
        whole = bytes_at(memory, self.sizes.slots * self.sizes.slot_bytes).reshape(-1, self.sizes.slot_bytes)
        try:
            if self._journal is None:
                self._journal = _Journal(self._journal_name, self._opening(), self.sizes, self._own_identities)
            self._journal.append(new, whole[new])
            self._mark(self._journal.mark)
        except OSError as error:
            raise MemoryError(f"the disk does not take the journal of {self.path} ({error.strerror})") from None
        self._imaged[new] = True

    def _mark(self, mark: _Mark) -> None:
        """Write the mark of a journal to both headers; the first one of a journal to the disk, too."""
        for number in range(_HEADERS):
            _write_at(self._handle, mark.packed(), (number + 1) * _PAGE - _MARK_BYTES)
        if self._durable_mark != mark.name:
            with mmap.mmap(self._handle, _HEADERS * _PAGE) as headers:
                headers.flush()  # of these pages alone
            self._durable_mark = mark.name

    @property
    def _journal_name(self) -> Path:
        return self.path.with_name(f".{self.path.name}.journal")

    @property
    def _own_identities(self) -> tuple[str, ...]:
        """Of journals that count for nothing unless there is a mark: this file's, and those of the file it replaced."""
        return (self.identity, self._replaces) if self._replaces else (self.identity,)

    def _opening(self) -> _Opening:
        """Of a new journal."""
        return _Opening(bytes.fromhex(self.identity), self._sequence(), os.urandom(16))

    def _roll_back(self) -> None:
        """Undo what was changed in place since the last commit, and have both headers say so."""
        assert self.description is not None
        pages = _split_pages(_header_pages(self._handle, self.path))
        if any(page.startswith(_OLDER_MAGIC) for page in pages):
            self._refuse_older_journal()
        marks = [mark for mark in map(_Mark.of, pages) if mark and mark.sequence == self.description["sequence"]]
        if marks:
            for _, slots, contents in reversed(self._records(max(marks))):
                for slot, held in zip(slots.tolist(), contents, strict=True):
                    self._write(held, self.sizes.slots_at + slot * self.sizes.slot_bytes)
            os.fsync(self._handle)
        else:
            self._refuse_lost_marks(pages)
        whole, sequences = _page_of(self.description), self._sequences()
        order = [(not _Mark.is_damaged(pages[number]), sequences[number], number) for number in range(_HEADERS)]
        for *_, number in sorted(order):
            if pages[number] != whole:
                _write_at(self._handle, whole, number * _PAGE)
                os.fsync(self._handle)
        _remove_journal(self._journal_name, self._own_identities)

    def _refuse_lost_marks(self, pages: Sequence[bytes]) -> None:
        """Raise `CorruptFile` if no mark of the present sequence is whole, and there may have been one."""
        assert self.description is not None
        name, lost = self._journal_name, all(map(_Mark.is_damaged, pages))
        if not lost:
            with suppress(PermissionError, IsADirectoryError):  # of somebody else
                opening = _Opening.of(_opening_of(name))
                present = bytes.fromhex(self.identity), self.description["sequence"]
                lost = opening is not None and opening[:2] == present and self._differs_from(_content_of(name) or b"")
        if lost:
            raise CorruptFile(
                f"{self.path} has lost what both of its headers said of its journal, and may have values that no flush "
                f"confirmed: take {self.path} and {name} from a copy of yours; or, if {self.path} is such a copy, made "
                f"when the table was closed, move {name} to another folder"
            )

    def _differs_from(self, content: bytes) -> bool:
        """Whether the slots hold anything else than a whole journal says, or the journal is damaged."""
        opening = _Opening.of(content)
        if opening is None:
            return False
        records = list(_records_in(content, opening, self.sizes))
        held = np.empty(self.sizes.slot_bytes, np.uint8)
        first: dict[int, Bytes] = {}
        for _, slots, contents in records:
            for slot, image in zip(slots.tolist(), contents, strict=True):
                first.setdefault(slot, image)
        for slot, image in first.items():
            self._read(held, self.sizes.slots_at + slot * self.sizes.slot_bytes)
            if not np.array_equal(held, image):
                return True
        return _goes_on(content, opening, records)

    def _records(self, mark: _Mark) -> list[_Record]:
        """The records of the journal that a mark names.

        Raises
        ------
        CorruptFile
            If it is not there, or damaged.
        """
        said = f"{self.path} has values that no flush confirmed, and goes back to the last flush by its journal"
        opening = _Opening(bytes.fromhex(self.identity), mark.sequence, mark.name)
        name = self._journal_name
        content = _content_of(name)
        if content is None or not content.startswith(opening.packed()):
            is_damaged = content is not None and (opening.name in content or len(content) < _OPENING_BYTES)
            what = "missing" if content is None else "damaged" if is_damaged else "not this one"
            found = next((other for other in _journals_in(name.parent) if _is_journal(other, opening)), None)
            mend = f"rename {found} to {name}" if found else f"put the journal that lay beside the file back as {name}"
            raise CorruptFile(f"{said}, which is {what}: {mend}, or take both files from a copy of yours")
        records = list(_records_in(content, opening, self.sizes))
        if len(records) < mark.records or _goes_on(content, opening, records):
            raise CorruptFile(
                f"{said}, which is damaged from byte {_end_of(records):,} on, as its {len(content):,} bytes have "
                f"{len(records):,} whole records of {mark.records:,}: take {self.path} and {name} from a copy of yours"
            )
        return records

    def _refuse_older_journal(self) -> None:
        """Raise `CorruptFile` if a file of the older layout has a journal that counts: its layout is another one."""
        assert self.description is not None
        opening = _OLDER_MAGIC + bytes.fromhex(self.identity) + self.description["sequence"].to_bytes(8, "little")
        if (_content_of(self._journal_name) or b"").startswith(opening):
            raise CorruptFile(
                f"{self.path} and its journal were left behind by a process that was killed, with an older version of "
                "warphash: open and close the table once with that version"
            )

    # ---- commits
    def commit(self, table: Mapping[str, Any], boards: Sequence[Bytes], log: FileLog | None = None) -> None:
        """Make the table what counts: its slots as they are now, these boards, and a log.

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
            self._commit(table, boards, log)
        except PathError:
            raise
        except OSError as error:
            raise refused_by_system(error, f"a commit of {self.path}", _FLUSH_AGAIN) from None

    def _commit(self, table: Mapping[str, Any], boards: Sequence[Bytes], log: FileLog | None) -> None:
        # After an interrupt, only the disk knows whether the last commit was one.
        self._journal = self._imaged = self._durable_mark = None
        headers = self._headers()
        sequences = [description["sequence"] if description else -1 for description in headers]
        sequence = max(sequences) + 1
        if self._map is not None:
            self._map.flush()
        at, crc = self.sizes.boards_at(sequence % 2), 0
        for board in boards:
            self._write(board, at)
            crc = zlib.crc32(board.data, crc)
            at += board.nbytes
        log_at, log_bytes = (0, 0) if log is None else self._write_log(log, headers[int(np.argmax(sequences))])
        description = {
            "identity": self.identity,
            "replaces": self._replaces,
            "sequence": sequence,
            **self.sizes._asdict(),
            "used_board_bytes": sum(board.nbytes for board in boards),
            "boards_crc": crc,
            **({} if log is None else {"log_at": log_at, "log_bytes": log_bytes}),
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
        if log is not None:
            log.confirmed()
            with suppress(OSError):  # what is behind the log counts for nothing
                os.ftruncate(self._handle, self.sizes.nbytes + log_at + log_bytes)
        _remove_journal(self._journal_name, self._own_identities)

    def _write_log(self, log: FileLog, newest: Mapping[str, Any] | None) -> tuple[int, int]:
        """Write what a log lacks: where the log begins then, and its bytes."""
        at, nbytes = (0, 0) if newest is None else _log_in(newest)
        part = log.due(self.identity)
        begin, end = at, at + nbytes
        if part.replaces:
            begin = end = 0 if part.nbytes <= at else end
        for piece in part.pieces:
            self._write(piece, self.sizes.nbytes + end)
            end += piece.nbytes
        return begin, end - begin

    @property
    def counts(self) -> bool:
        """Whether this is the file that `open` opens. After an interrupt, only the disk knows."""
        return _is_named(self._handle, self.path)

    def _take_name(self) -> None:
        if self._replaces is None:
            try:
                os.link(self._name, self.path)  # which fails if somebody else has made a file there
            except FileExistsError:
                raise PathError(f"{self.path} was made meanwhile, by somebody else: give another path") from None
            except OSError:  # this file system has no links
                self._name.replace(self.path)
            else:
                self._name.unlink()
        else:
            _refuse_more_names(self.path.stat(), self.path)
            self._name.replace(self.path)
        with suppress(OSError):  # the commit counts, even where a loss of power may take the new name
            sync_folder(self.path.parent)

    def _sequence(self) -> int:
        """That of the last commit; -1 before the first one."""
        return max(self._sequences())

    def _sequences(self) -> list[int]:
        """That of each header; -1 for a header that is not whole."""
        return [description["sequence"] if description else -1 for description in self._headers()]

    def _headers(self) -> list[dict[str, Any] | None]:
        """The description in each header; None for a header that is not whole."""
        return list(map(_parse, _split_pages(_header_pages(self._handle, self.path))))


def _log_in(description: Mapping[str, Any]) -> tuple[int, int]:
    """Where the log begins behind the boards, and its bytes; zeros without a log."""
    return description.get("log_at", 0), description.get("log_bytes", 0)


def _checked(handle: int, path: Path) -> tuple[dict[str, Any], Sizes]:
    """What an open file describes, and the sizes of its parts.

    Raises
    ------
    PathError
        If it is no file, or has several names.
    CorruptFile
        If it is no file of a table, or was cut or extended.
    """
    description = _newest(_header_pages(handle, path), path)
    known = os.fstat(handle)
    _refuse_more_names(known, path)
    sizes = Sizes(*(description[name] for name in Sizes._fields))
    has_log, log_end = "log_at" in description, sum(_log_in(description))
    if known.st_size < sizes.nbytes + log_end or (not has_log and known.st_size != sizes.nbytes):
        raise CorruptFile(
            f"{path} has {known.st_size:,} bytes, and a table of {sizes.slots:,} slots has "
            f"{sizes.nbytes + log_end:,}: it was cut or extended"
        )
    return description, sizes


def _refuse_more_names(known: os.stat_result, path: Path) -> None:
    """Raise `PathError` for a file with several names: its journal has one name, and growth replaces it under one."""
    if known.st_nlink > 1:
        raise PathError(
            f"{path} is a file with {known.st_nlink} names (hard links), and a table that grows replaces it under one "
            "name alone: copy the file and open the copy, or remove the other names"
        )


def _when_collected(owner: object, call: Callable[..., object], *args: object) -> Callable[[], object]:
    """Call when ``owner`` is collected, or when the result is called; once.

    The end of the process does not count: the table of the owner may be flushed then.
    """
    ended = weakref.finalize(owner, call, *args)
    ended.atexit = False
    return ended


def _abandon(name: Path, process: int) -> None:
    """Remove a file that was never committed. The child of a fork leaves that to its parent."""
    if os.getpid() == process:
        name.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove the files that killed processes had not committed. Nobody holds the lock of such a file.

    A process that was killed while a new file took its name has left the first name as well, which is removed, too.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.table")  # and no other: it may be somebody's table
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), Path(entry.path).open("rb") as abandoned:
                    if not _is_named(abandoned.fileno(), path):
                        fcntl.flock(abandoned, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    Path(entry.path).unlink()


def _new_file(path: Path) -> tuple[Path, int]:
    """Make and lock a file beside ``path``. If another process removes it before it is locked, make another one."""
    while True:
        name = path.with_name(f".{path.name}.{os.urandom(8).hex()}.table")
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            if _locked(handle) and _is_named(handle, name):
                return name, handle
        except BaseException:
            os.close(handle)
            name.unlink(missing_ok=True)
            raise
        os.close(handle)


def _open_locked(path: Path) -> int | None:
    """Open and lock the file of a table; None if it is locked. If another file takes its name meanwhile, open that."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            locked = _locked(handle)
            if locked and _is_named(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if not locked:
            return None


def _locked(handle: int) -> bool:
    """Lock a file, if nobody else has locked it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
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
        raise refused_by_system(error, f"{nbytes:,} bytes of {path} on the disk", "give another path") from None


class _Opening(NamedTuple):
    """How a journal begins."""

    identity: bytes
    sequence: int
    name: bytes

    def packed(self) -> bytes:
        """The opening, as it is in the file."""
        packed = struct.pack("<8s16sQ16s", _JOURNAL_MAGIC, *self)
        return packed + zlib.crc32(packed).to_bytes(4, "little")

    @classmethod
    def of(cls, content: bytes) -> _Opening | None:
        """The opening of a journal; None if it is not whole."""
        packed, crc = content[: _OPENING_BYTES - 4], content[_OPENING_BYTES - 4 : _OPENING_BYTES]
        if not content.startswith(_JOURNAL_MAGIC) or zlib.crc32(packed).to_bytes(4, "little") != crc:
            return None
        return cls(*struct.unpack("<16sQ16s", packed[8:]))


class _Record(NamedTuple):
    """A record of a journal: where it ends, its slots, and what they held."""

    end: int
    slots: npt.NDArray[np.uint32]
    contents: Bytes


class _Journal:
    """The contents that slots had at a commit.

    Parameters
    ----------
    path
        Its name.
    opening
        That of a new one. If an interrupt has left a journal of the same identity and sequence, that one is continued.
    disposable
        Identities of files whose journals of another sequence count for nothing.
    """

    def __init__(self, path: Path, opening: _Opening, sizes: Sizes, disposable: Sequence[str]) -> None:
        content = _content_of(path) or b""
        found = _Opening.of(content)
        is_ours = found is not None and found[:2] == opening[:2]
        self._opening = found if found is not None and is_ours else opening
        if not is_ours:
            _remove_journal(path, disposable)
            _set_aside(path)
        new = 0 if is_ours else os.O_CREAT | os.O_EXCL
        self._handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | new, 0o666)
        _when_collected(self, os.close, self._handle)
        if not is_ours:
            _write_at(self._handle, opening.packed(), 0)
            os.fsync(self._handle)
            with suppress(OSError):  # without that, a loss of power may take the name
                sync_folder(path.parent)
        records = list(_records_in(content, self._opening, sizes)) if is_ours else []
        self._end_and_count = _end_of(records), len(records)

    @property
    def mark(self) -> _Mark:
        """What the headers have to say before a slot of the last record is changed."""
        return _Mark(self._end_and_count[1], self._opening.sequence, self._opening.name)

    def append(self, slots: npt.NDArray[np.uint32], contents: Bytes) -> None:
        """Write a record, which is on disk when this returns."""
        end, count = self._end_and_count
        name = self._opening.name
        body = struct.pack("<II", count + 1, len(slots)) + slots.astype("<u4").tobytes() + contents.tobytes()
        record = name + zlib.crc32(body, zlib.crc32(name)).to_bytes(4, "little") + body
        _write_at(self._handle, record, end)
        os.fsync(self._handle)
        self._end_and_count = end + len(record), count + 1  # in one assignment: an interrupt may come anywhere


def _records_in(content: bytes, opening: _Opening, sizes: Sizes) -> Iterator[_Record]:
    """Yield the records of a journal, up to the first one that is not whole."""
    at, seed = _OPENING_BYTES, zlib.crc32(opening.name)
    for number in range(1, 1 << 32):
        checked, slots_at = at + 20, at + 28
        if slots_at > len(content) or content[at : at + 16] != opening.name:
            return
        found, count = struct.unpack_from("<II", content, checked)
        end = slots_at + count * (4 + sizes.slot_bytes)
        crc = int.from_bytes(content[checked - 4 : checked], "little")
        if found != number or end > len(content) or zlib.crc32(content[checked:end], seed) != crc:
            return
        slots = np.frombuffer(content, "<u4", count, slots_at)
        images = np.frombuffer(content, np.uint8, count * sizes.slot_bytes, slots_at + 4 * count)
        yield _Record(end, slots, images.reshape(count, sizes.slot_bytes))
        at = end


def _end_of(records: Sequence[_Record]) -> int:
    """Where the whole records of a journal end."""
    return records[-1].end if records else _OPENING_BYTES


def _goes_on(content: bytes, opening: _Opening, records: Sequence[_Record]) -> bool:
    """Whether a journal has another record behind the one that is not whole."""
    return content.find(opening.name, _end_of(records) + 1) >= 0


def _content_of(path: Path) -> bytes | None:
    """What a file holds; None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _journals_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that are named as journals are."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(".journal") and entry.is_file():
                yield Path(entry.path)


def _opening_of(path: Path) -> bytes:
    """The bytes where a journal has its opening; fewer if the file is shorter, none if there is no such file."""
    try:
        with path.open("rb") as file:
            return file.read(_OPENING_BYTES)
    except FileNotFoundError:
        return b""


def _is_journal(path: Path, opening: _Opening) -> bool:
    with suppress(OSError):
        return _opening_of(path) == opening.packed()
    return False


def _remove_journal(path: Path, identities: Sequence[str]) -> None:
    """Remove a journal that counts no longer, if it belongs to one of these files; or one that was never begun."""
    with suppress(OSError):  # a journal that stays does no harm: it counts if there is a mark
        content = _opening_of(path)
        opening = _Opening.of(content)
        if len(content) < _OPENING_BYTES or (opening and opening.identity.hex() in identities):
            path.unlink()


def _set_aside(path: Path) -> None:
    """Give a journal of another file another name. That file may have been renamed, and needs the journal."""
    opening = _Opening.of(_opening_of(path))
    name = opening.name if opening else os.urandom(16)
    with suppress(FileNotFoundError):
        path.rename(path.with_name(f"{path.name.removesuffix('.journal')}.{name.hex()}.journal"))


def _write_at(handle: int, content: bytes | memoryview, at: int) -> None:
    view = memoryview(content).cast("B")
    done = 0
    while done < len(view):
        done += os.pwrite(handle, view[done : done + (1 << 30)], at + done)
