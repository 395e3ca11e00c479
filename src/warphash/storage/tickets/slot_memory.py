"""Where the slots of a table with a ticket board lie: on the device, in the memory of the host, or in a file.

The boards are always in the memory of the device: they decide most questions, and the slots are looked at only for the
rest (Stadium Hashing, section III). So the slots may lie where each look takes long.

  device   the engine's own memory
  host     page-locked memory of the host, which kernels reach at the same address
  file     An engine whose kernels run in the memory of the host maps the file (`table_file`): pages come and go as they
           are used, and the file may be larger than the memory. Any other engine has the slots in page-locked memory,
           reads them from the file, and writes them to a new one at each commit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import PathError
from ...runtime.engine import Buffer, Engine
from ...runtime.memory import bytes_at
from ..file_log import FileLog
from .table_file import Sizes, TableFile

__all__ = ["DEVICE", "HOST", "FileMemory", "HeldSlots", "Keeper", "SlotMemory", "memory_of"]


class Keeper(Protocol):
    """The file that keeps an array of slots."""

    @property
    def file(self) -> TableFile:
        """As it is on the disk."""

    @property
    def mapped(self) -> bool:
        """The slots are the file's own: what kernels write there is in the file."""

    def preserve(self, slots: npt.NDArray[np.uint32]) -> None:
        """Note what these slots hold, before it is changed in place."""

    def commit(self, table: Mapping[str, Any], boards: Sequence[npt.NDArray[np.uint8]]) -> None:
        """Make the slots as they are, with these boards, what the file holds."""


class HeldSlots(NamedTuple):
    """Memory for slots.

    Attributes
    ----------
    keeper
        The file that keeps the memory; None without a file.
    is_pinned
        It is page-locked memory of the host.
    """

    memory: Buffer
    keeper: Keeper | None = None
    is_pinned: bool = False


class SlotMemory(Protocol):
    """A kind of memory for slots."""

    @property
    def beside(self) -> SlotMemory:
        """For a copy of a table, which has a life of its own."""

    def allocate(self, engine: Engine, sizes: Sizes, stream: Any) -> HeldSlots:
        """Memory for slots, with anything in it.

        Raises
        ------
        MemoryError
            If there is none.
        """


class _DeviceMemory:
    """Memory of the device."""

    @property
    def beside(self) -> SlotMemory:
        return self

    def allocate(self, engine: Engine, sizes: Sizes, stream: Any) -> HeldSlots:
        return HeldSlots(engine.allocate(sizes.slots * sizes.slot_bytes, stream))


class _HostMemory:
    """Page-locked memory of the host."""

    @property
    def beside(self) -> SlotMemory:
        return self

    def allocate(self, engine: Engine, sizes: Sizes, stream: Any) -> HeldSlots:
        return HeldSlots(engine.allocate_pinned(sizes.slots * sizes.slot_bytes), is_pinned=True)


DEVICE, HOST = _DeviceMemory(), _HostMemory()


class FileMemory:
    """A file.

    Parameters
    ----------
    path
        Of the table.
    opens
        The next array is the one that the file holds; those behind it take its place.
    log
        What the file keeps beside the slots; None for nothing.

    Attributes
    ----------
    locked
        The file that counts, and a file that is about to take its place: nobody else opens the table meanwhile.
    """

    locked: tuple[TableFile, ...]

    def __init__(self, path: Path, opens: bool = False, log: FileLog | None = None) -> None:
        self._path, self._opened, self._log = path, TableFile.open(path) if opens else None, log
        if self._opened and log is not None:
            try:
                log.load(self._opened.log(), self._opened.identity)
            except BaseException:
                self._opened.close()
                raise
        self.locked = (self._opened,) if self._opened else ()

    @property
    def beside(self) -> SlotMemory:
        return DEVICE

    @property
    def opened(self) -> Mapping[str, Any] | None:
        """What the file holds that the next array opens."""
        return self._opened.description if self._opened else None

    def allocate(self, engine: Engine, sizes: Sizes, stream: Any) -> HeldSlots:
        file, self._opened = self._opened or self.create(sizes), None
        if engine.shares_host_memory:
            mapped = _Mapped(self, file)
            return HeldSlots(mapped, mapped)
        memory = engine.allocate_pinned(sizes.slots * sizes.slot_bytes)
        loaded = _Loaded(self, file, engine, memory)
        if file.description:
            file.read_slots(loaded.bytes)
        return HeldSlots(memory, loaded, is_pinned=True)

    def create(self, sizes: Sizes) -> TableFile:
        """A new file, for a new table or in the place of the file that counts."""
        known = [held for held in self.locked if held.counts] or self.locked
        return TableFile.create(self._path, sizes, known[-1].identity if known else None)

    def commit(self, file: TableFile, table: Mapping[str, Any], boards: Sequence[npt.NDArray[np.uint8]]) -> None:
        """Have a file be the one that counts.

        Raises
        ------
        PathError
            If the one that counted until now was moved or removed, so that nobody would find what is confirmed; or if
            it is that of another process.
        """
        for held in (*self.locked, file):
            held.check_process()
        lost = any(held.description for held in self.locked) and not any(held.counts for held in (*self.locked, file))
        if lost:
            raise PathError(
                f"{self._path} was moved, removed or replaced while the table in it was open: save(path) to another "
                "file keeps what the table holds"
            )
        self.locked = (*self.locked, file)
        file.commit(table, boards, self._log)
        self.locked = (file,)


class _Mapped:
    """Slots in a mapped file: their memory, and their keeper."""

    mapped = True

    def __init__(self, kind: FileMemory, file: TableFile) -> None:
        self._kind, self.file = kind, file
        self._memory = file.map_slots()
        self.ptr, self.nbytes = ctypes.addressof(self._memory), ctypes.sizeof(self._memory)

    def preserve(self, slots: npt.NDArray[np.uint32]) -> None:
        self.file.preserve(slots, self.ptr)

    def commit(self, table: Mapping[str, Any], boards: Sequence[npt.NDArray[np.uint8]]) -> None:
        self._kind.commit(self.file, table, boards)


class _Loaded:
    """Slots in page-locked memory, which each commit writes to a new file."""

    mapped = False

    def __init__(self, kind: FileMemory, file: TableFile, engine: Engine, memory: Buffer) -> None:
        self._kind, self.file, self._engine, self._memory = kind, file, engine, memory

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """The slots."""
        return bytes_at(self._memory.ptr, self._memory.nbytes)

    def preserve(self, slots: npt.NDArray[np.uint32]) -> None:
        """Do nothing: the file has its own copy."""

    def commit(self, table: Mapping[str, Any], boards: Sequence[npt.NDArray[np.uint8]]) -> None:
        self._engine.synchronize(None)
        written = self.file.description or self.file.counts
        new = self._kind.create(self.file.sizes) if written else self.file
        new.write_slots(self.bytes)
        self._kind.commit(new, table, boards)
        self.file = new


def memory_of(place: str | Path, opens: bool = False, log: FileLog | None = None) -> SlotMemory:
    """The memory that ``memory=`` names: ``"device"``, ``"host"``, or the path of a file, which exists if ``opens``."""
    if isinstance(place, Path):
        return FileMemory(place, opens, log)
    return HOST if place == "host" else DEVICE
