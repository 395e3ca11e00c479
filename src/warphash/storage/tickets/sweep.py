"""Bulk operations on slots in the memory of the host: window by window through the bus, or each element on its own.

Three ways lead to a slot (figures of one H200, PCIe 5):

- One by one, as in the paper (``access="direct"``): 40 million random accesses a second, of any width, in 16 GB; but
  700 million in any 512 MB, since the device keeps the addresses of so many pages at hand (of 768 MB, by a fit).
- In the order of the slots (``"ordered"``): a launch for each 512 MB, which are reached where they lie.
- In windows that are copied to the device and, if the operation writes, back (``"sweep"``): 45 GB/s, however many
  accesses there are. Kernels and the copies in both directions overlap.

Most absent keys end at the tickets, on the device. A sample tells how many elements need a slot (`slot_need`). Few of
them go one by one from the start. Otherwise all elements walk over the tickets first, and those that need a slot wait
for their window. ``access="auto"`` takes what should be fastest.

The kernels, and the protocol of the windows, are those of ``kernels/tickets/sweep.cuh``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ...designs.layout import Tickets
from ...runtime.abi import Launch, Op, SweepBatch, TicketBatch, TicketTable
from ...runtime.engine import Buffer, Engine, KernelSpec, Program
from ..uninterrupted import uninterrupted
from .slot_memory import HeldSlots
from .slot_need import SlotNeed

__all__ = ["SWEPT_ELEMENTS", "SweepingProgram", "sweep_of", "sweeping"]

SWEPT_ELEMENTS = 1 << 28
"""Most elements that go through the slots together: the more, the fewer times the slots cross the bus."""

_WINDOW_BYTES = 128 << 20
"""Of a window. Three of them are on the device."""

_NEAR_BYTES = 512 << 20
"""Of a window that is reached where it lies."""

_REACH_BYTES = 768 << 20
"""Of the pages whose addresses are at hand."""

_NEAR_ACCESS_S, _FAR_S = 1 / 700e6, 1 / 40e6
"""Of one random access through the bus, among many, whose page is at hand; and what it takes longer otherwise."""

_WALK_S = 1 / 2e9
"""Of an element that walks over the tickets first: to write down where it stands, and to go on there."""

_ROUND_S, _UPDATE_S = 170e-6, 350e-6
"""Of the launch of the walk, and of two waits for how many elements are left; and what an update adds, for it has a
thread of its own (`uninterrupted`)."""

_LAUNCH_S, _LOOK_S = 45e-6, 1 / 170e9
"""Of the launch for a window, with its share of all else; and of each element there that waits for another one."""

_COPY_BYTES_PER_S = 45e9
"""Of windows that cross the bus, in both directions at once."""

_LARGEST_SLOT = 1 << 32

_SWEPT = frozenset(["find", "settle", "combine", "erase", "place"])

_SWEEPING = Tickets("tickets/sweep.cuh", claims=False)


@cache
def sweeping(spec: KernelSpec) -> KernelSpec:
    """The kernels of sweeps over the tables of ``spec``."""
    return replace(spec, layout=_SWEEPING)


class _SweepBuffers(NamedTuple):
    """Where the elements of a launch wait, and are counted."""

    targets: Buffer
    tried: Buffer
    waiting: Buffer


class SweepingProgram:
    """The kernels of a table whose slots lie in the memory of the host: a `Program` with the entries of another one.

    Parameters
    ----------
    program
        The table's own kernels, which go through the bus.
    slots
        In the memory of the host.
    access
        One of `ACCESS`, but ``"direct"``.
    """

    block_threads = 0

    def __init__(self, engine: Engine, spec: KernelSpec, program: Program, slots: Buffer, access: str) -> None:
        self._engine, self._own, self._slots, self._access = engine, program, slots, access
        self._program, self._spec = engine.program(sweeping(spec)), spec
        self._needs = {entry: SlotNeed(engine, self._program) for entry in _SWEPT} if access == "auto" else {}
        self._buffers: _SweepBuffers | None = None

    @contextmanager
    def prepared(self, n: int, stream: Any) -> Iterator[None]:
        """Have the memory for launches of up to ``n`` elements, so that none is refused between two of them.

        Of updates alone: their caller holds the table's lock alone.

        Raises
        ------
        MemoryError
            If there is none.
        """
        pays = self._way(n, n, _UPDATE_S) != "direct"
        self._buffers = self._allocated(n, self._engine.allocate(8, stream), stream) if pays else None
        try:
            yield
        finally:
            self._buffers = None

    def _allocated(self, n: int, waiting: Buffer, stream: Any) -> _SweepBuffers:
        allocate = self._engine.allocate
        return _SweepBuffers(allocate(4 * n, stream), allocate(4 * n, stream), waiting)

    def run_blocks(self, entry: str, table: ctypes.Structure, batch: Launch, blocks: int, stream: Any = None) -> None:
        """As `Program.run_blocks`."""
        self._own.run_blocks(entry, table, batch, blocks, stream)

    def expect(self, entries: Sequence[str]) -> None:
        """As `Program.expect`."""
        self._own.expect(entries)

    def is_begun(self, entry: str) -> bool:
        """As `Program.is_begun`."""
        return self._own.is_begun(entry)

    def run(self, entry: str, table: ctypes.Structure, batch: Launch, n: int, stream: Any) -> None:
        """As `Program.run`."""
        waits = self._way(n, n) != "direct" if entry == "find" else self._buffers is not None
        if entry not in _SWEPT or not waits:
            self._own.run(entry, table, batch, n, stream)
            return
        assert isinstance(table, TicketTable) and isinstance(batch, TicketBatch)
        # Lookups never use these buffers: they are for updates, and an interrupted update may leave its own behind.
        if entry == "find":
            for at in range(0, n, SWEPT_ELEMENTS):
                self._find(table, batch, at, min(SWEPT_ELEMENTS, n - at), stream)
        elif self._buffers is not None:
            self._update(entry, table, batch, n, self._buffers, stream)

    def _find(self, table: TicketTable, batch: TicketBatch, at: int, n: int, stream: Any) -> None:
        """Look up the elements from ``at`` on; one by one, if there is no memory to wait in.

        A lookup changes nothing, so its sample for batches to come runs behind it, where nobody waits for the sample.
        """
        part = batch
        if n != batch.n:
            part, spec = TicketBatch.from_buffer_copy(batch), self._spec
            part.n = n
            part.keys += at * spec.word_bytes
            part.out_values = batch.out_values and batch.out_values + at * spec.value_word_bytes
            part.out_flags = batch.out_flags and batch.out_flags + at
        try:
            pays = self._pays("find", table, part, n, stream)
            buffers = self._allocated(n, self._engine.allocate(8, stream), stream) if pays else None
        except MemoryError:
            buffers = None
        if buffers is not None:
            self._rounds("find", table, part, n, buffers, stream)
            return
        self._own.run("find", table, part, n, stream)
        if self._needs:
            self._needs["find"].sample(table, part, n, stream)

    def _update(
        self, entry: str, table: TicketTable, batch: TicketBatch, n: int, buffers: _SweepBuffers, stream: Any
    ) -> None:
        # Each element of `place` needs a slot.
        if entry == "place" or self._pays(entry, table, batch, n, stream):
            # To its caller, an update is one launch.
            uninterrupted(partial(self._rounds, entry, table, batch, n, buffers, stream))
            return
        if self._needs:
            self._needs[entry].sample(table, batch, n, stream)
        self._own.run(entry, table, batch, n, stream)

    def _pays(self, entry: str, table: TicketTable, batch: TicketBatch, n: int, stream: Any) -> bool:
        """Whether elements should wait for windows: if they need slots often enough, or by order."""
        if self._access != "auto":
            return True
        need = self._needs[entry].of(table, batch, n, stream)
        return self._way(_accesses(entry, batch) * need, n, 0 if entry == "find" else _UPDATE_S) != "direct"

    def _counted(self, waiting: Buffer, stream: Any) -> int:
        return int(self._engine.to_host(waiting.ptr, np.uint64, 1, stream)[0])

    def _rounds(
        self, entry: str, table: TicketTable, batch: TicketBatch, n: int, buffers: _SweepBuffers, stream: Any
    ) -> None:
        """Do a launch in rounds."""
        engine, memory, slot_bytes = self._engine, self._slots, self._spec.slot_bytes
        writes, accesses = _writes(entry, batch), _accesses(entry, batch)
        swept = SweepBatch.of(batch, **{name: part.ptr for name, part in buffers._asdict().items()})
        there = TicketTable.from_buffer_copy(table)

        def left(launch: Callable[[], None]) -> int:
            """How many elements wait behind some launches."""
            engine.fill(buffers.waiting.ptr, 0, 8, stream)
            launch()
            return self._counted(buffers.waiting, stream)

        def body(window: int, first_byte: int, size: int) -> None:
            there.slots = window - first_byte
            swept.window_first, swept.window_slots = first_byte // slot_bytes, size // slot_bytes
            self._program.run(entry, there, swept, n, stream)

        def windows(copied: bool) -> None:
            """A launch for each window."""
            size = _WINDOW_BYTES if copied else _NEAR_BYTES
            size = max(1, size // slot_bytes) * slot_bytes
            if copied:
                engine.sweep(memory.ptr, memory.nbytes, size, body, writes, stream)
                return
            for at in range(0, memory.nbytes, size):
                body(memory.ptr + at, at, min(size, memory.nbytes - at))

        engine.fill(buffers.targets.ptr, 0xFF, 4 * n, stream)
        swept.window_first = _LARGEST_SLOT
        waiting = left(lambda: self._program.run(entry, table, swept, n, stream))
        if entry in self._needs:
            self._needs[entry].note(waiting, n)
        while waiting and (way := self._way(accesses * waiting, n, walked=True)) != "direct":
            try:
                waiting = left(partial(windows, way == "sweep"))
            except MemoryError:  # there is no room for windows, and no window was begun
                waiting = left(partial(windows, False))
        if waiting:
            body(memory.ptr, 0, table.buckets * slot_bytes)

    def _way(self, accesses: int, n: int, more_s: float = 0, walked: bool = False) -> str:
        """How so many accesses of ``n`` elements are done: one of `ACCESS`, but ``"auto"``.

        ``more_s`` is what rounds take besides.
        """
        if self._access != "auto":
            return self._access
        nbytes, begin_s = self._slots.nbytes, 0 if walked else _ROUND_S + n * _WALK_S + more_s
        far_share = max(0, 1 - _REACH_BYTES / nbytes)
        seconds = {
            "direct": accesses * (_NEAR_ACCESS_S + far_share * _FAR_S),
            "ordered": begin_s + accesses * _NEAR_ACCESS_S + -(-nbytes // _NEAR_BYTES) * (_LAUNCH_S + n * _LOOK_S),
            "sweep": begin_s + nbytes / _COPY_BYTES_PER_S,
        }
        return min(seconds, key=seconds.__getitem__)


def _writes(entry: str, batch: TicketBatch) -> bool:
    """Whether a kernel writes to slots."""
    return entry in ("place", "combine") or (entry == "settle" and batch.op != Op.KEEP)


def _accesses(entry: str, batch: TicketBatch) -> int:
    """Accesses to its slot of an element that needs a slot: its key may be read before its value is written."""
    return 2 if _writes(entry, batch) and entry != "place" else 1


def sweep_of(
    engine: Engine, spec: KernelSpec, program: Program, slots: HeldSlots, access: str
) -> SweepingProgram | None:
    """The program for slots behind a bus; None where kernels get at them without one, or are to go through the bus.

    An engine that shares the memory of the host has no bus, so it has windows only if it is told to.
    """
    told = access in ("sweep", "ordered")
    by_bus = slots.is_pinned and engine.lanes > 1 and (told or not engine.shares_host_memory)
    return SweepingProgram(engine, spec, program, slots.memory, access) if by_bus and access != "direct" else None
