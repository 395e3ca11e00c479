"""Bulk operations on slots in the memory of the host: window by window through the bus, or each element on its own.

The bus gives about 45 GB/s to copies of windows, and 40 million random accesses a second to kernels, of any width
(one H200, PCIe 5). So 1 GB of slots crosses the bus whole in the time of a million accesses.

Most absent keys end at the tickets, on the device. A sample of a batch tells how many elements need a slot. Few of them
go through the bus one by one, as in the paper (``access="direct"``). Many walk over the tickets first, and wait until
their window of slots comes by (``access="sweep"``). The windows are copied to the device one after another, and back if
the operation writes. Kernels and the copies in both directions overlap. ``access="auto"`` takes what should be faster.

The kernels, and the protocol of the windows, are those of ``kernels/tickets/sweep.cuh``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ...designs.layout import Tickets
from ...runtime.abi import Launch, Op, SweepBatch, TicketBatch, TicketTable
from ...runtime.engine import Buffer, Engine, KernelSpec, Program
from ..uninterrupted import uninterrupted
from .slot_memory import Slots

__all__ = ["SWEPT_ELEMENTS", "SweepingProgram", "sweep_of", "sweeping"]

SWEPT_ELEMENTS = 1 << 28
"""Most elements that go through the slots together: the more, the fewer times the slots cross the bus."""

_WINDOW_BYTES = 128 << 20
"""Of a window. Three of them are on the device."""

_SAMPLE = 1 << 14
"""Elements of a batch that tell how many need a slot. The share is right to 0.4 % in the mean, or better."""

_ACCESS_S = 1 / 40e6
"""Of one random access through the bus, among many."""

_COPY_BYTES_PER_S = 45e9
"""Of windows that cross the bus, in both directions at once."""

_LARGEST_SLOT = 1 << 32

_SWEPT = frozenset(["find", "settle", "combine", "erase", "place"])

_SWEEPING = Tickets("tickets/sweep.cuh")


@cache
def sweeping(spec: KernelSpec) -> KernelSpec:
    """The kernels of sweeps over the tables of ``spec``."""
    return replace(spec, layout=_SWEEPING)


class _Scratch(NamedTuple):
    """Where the elements of a launch wait."""

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
        ``"auto"`` or ``"sweep"``.
    """

    block_threads = 0

    def __init__(self, engine: Engine, spec: KernelSpec, program: Program, slots: Buffer, access: str) -> None:
        self._engine, self._own, self._slots, self._access = engine, program, slots, access
        self._program, self._spec = engine.program(sweeping(spec)), spec
        self._scratch: _Scratch | None = None

    @contextmanager
    def prepared(self, n: int, stream: Any) -> Iterator[None]:
        """Have the memory for launches of up to ``n`` elements, so that none is refused between two of them.

        Of updates alone: their caller holds the table's lock alone.

        Raises
        ------
        MemoryError
            If there is none.
        """
        self._scratch = self._allocated(n, stream) if self._pays(n) else None
        try:
            yield
        finally:
            self._scratch = None

    def _allocated(self, n: int, stream: Any) -> _Scratch:
        allocate = self._engine.allocate
        return _Scratch(allocate(4 * n, stream), allocate(4 * n, stream), allocate(8, stream))

    def run(self, entry: str, table: ctypes.Structure, batch: Launch, n: int, stream: Any) -> None:
        """As `Program.run`."""
        sweeps = self._pays(n) if entry == "find" else self._scratch is not None
        if entry not in _SWEPT or not sweeps:
            self._own.run(entry, table, batch, n, stream)
            return
        assert isinstance(table, TicketTable) and isinstance(batch, TicketBatch)
        if self._scratch is not None:  # an update is one launch to its caller
            uninterrupted(partial(self._run, entry, table, batch, n, self._scratch, stream))
            return
        for at in range(0, n, SWEPT_ELEMENTS):
            self._find(table, batch, at, min(SWEPT_ELEMENTS, n - at), stream)

    def _find(self, table: TicketTable, batch: TicketBatch, at: int, n: int, stream: Any) -> None:
        """Look up the elements from ``at`` on; one by one, if there is no memory to wait in."""
        part, spec = TicketBatch.from_buffer_copy(batch), self._spec
        part.n = n
        part.keys += at * spec.word_bytes
        part.out_values = batch.out_values and batch.out_values + at * spec.value_word_bytes
        part.out_flags = batch.out_flags and batch.out_flags + at
        try:
            scratch = self._allocated(n, stream)
        except MemoryError:
            self._own.run("find", table, part, n, stream)
        else:
            self._run("find", table, part, n, scratch, stream)

    def _run(self, entry: str, table: TicketTable, batch: TicketBatch, n: int, scratch: _Scratch, stream: Any) -> None:
        """Do a launch in rounds, or one by one."""
        engine, run = self._engine, self._program.run
        swept = SweepBatch(targets=scratch.targets.ptr, tried=scratch.tried.ptr, waiting=scratch.waiting.ptr)
        ctypes.memmove(ctypes.addressof(swept), ctypes.addressof(batch), ctypes.sizeof(TicketBatch))
        slot_bytes = self._spec.slot_bytes
        writes = entry in ("place", "combine") or (entry == "settle" and batch.op != Op.KEEP)

        accesses = 2 if writes and entry != "place" else 1  # the key is read, then the value is written

        def left(launch: Callable[[], None]) -> int:
            """How many elements wait behind some launches."""
            engine.fill(scratch.waiting.ptr, 0, 8, stream)
            launch()
            return int(engine.to_host(scratch.waiting.ptr, np.uint64, 1, stream)[0])

        if entry != "place" and self._access == "auto":  # each element of `place` needs a slot
            swept.n, swept.sampled = min(n, _SAMPLE), n
            waiting = left(lambda: run("sample", table, swept, swept.n, stream))
            if not self._pays(accesses * (waiting * n // swept.n)):
                self._own.run(entry, table, batch, n, stream)
                return
            swept.n = n
        engine.fill(scratch.targets.ptr, 0xFF, 4 * n, stream)
        swept.window_first = _LARGEST_SLOT

        def sweep() -> None:
            there = TicketTable.from_buffer_copy(table)

            def body(window: int, first_byte: int, nbytes: int) -> None:
                there.slots = window - first_byte
                swept.window_first, swept.window_slots = first_byte // slot_bytes, nbytes // slot_bytes
                run(entry, there, swept, n, stream)

            window_bytes = max(1, _WINDOW_BYTES // slot_bytes) * slot_bytes
            engine.sweep(self._slots.ptr, self._slots.nbytes, window_bytes, body, writes, stream)

        waiting = left(lambda: run(entry, table, swept, n, stream))
        with suppress(MemoryError):  # there is no room for windows, and no window was begun
            while waiting and self._pays(accesses * waiting):
                waiting = left(sweep)
        if waiting:
            swept.window_first, swept.window_slots = 0, table.buckets
            run(entry, table, swept, n, stream)

    def _pays(self, accesses: int) -> bool:
        """Whether a sweep is faster than so many accesses."""
        return self._access == "sweep" or accesses * _ACCESS_S > self._slots.nbytes / _COPY_BYTES_PER_S


def sweep_of(engine: Engine, spec: KernelSpec, program: Program, slots: Slots, access: str) -> SweepingProgram | None:
    """The program for slots behind a bus; None where kernels get at them without one, or are to go through the bus.

    An engine that shares the memory of the host has no bus, so it sweeps only if it is told to.
    """
    by_bus = slots.is_pinned and engine.lanes > 1 and (access == "sweep" or not engine.shares_host_memory)
    return SweepingProgram(engine, spec, program, slots.memory, access) if by_bus and access != "direct" else None
