"""What a place to run must offer: memory, and the compiled kernels of a design.

A table talks to an `Engine` in raw addresses. Arrays of any library are the business of ``arrays/``;
which kernels make up an insert is the business of ``storage/buckets/store.py``. Three engines exist: `runtime.cpu`,
`runtime.cuda`, and `runtime.emulated` (the CUDA kernels on fibers, for tests).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..designs.layout import BUCKETS, Layout
from .abi import Launch

__all__ = ["Answer", "Buffer", "Engine", "KernelSpec", "Program", "WindowBody"]


@dataclass(frozen=True)
class KernelSpec:
    """Names one set of kernels: a design's header for one slot layout.

    Attributes
    ----------
    design
        Stem of the header under ``kernels/designs``; the class in it is the stem in CamelCase.
    key_bytes
        4 or 8: width of a key in the slot; in subtables and beside tickets also 16, 32, 64 or 128.
    value_bytes
        0, 4 or 8: width of a value in the slot. A slot is ``key_bytes`` wide without a value; with one, both take the
        wider of the two widths. In subtables, where values lie apart from keys, and beside tickets, any multiple of 4.
    slots_per_bucket
        1, 8, 16 or 32; of lists, slots of a node; of subtables, 128 bytes of keys.
    constants
        Fields of the table (`abi`) and the values that they will have. An engine that compiles at run time may build
        them in.
    layout
        How the design lays pairs out (`Design.layout`).
    splits
        Keys and values lie in columns, and no order of a batch would help (``kernels/buckets/gpu/split.cuh``).
    header
        Of kernels that no design changes: their header, as seen from the folder ``kernels`` of ``package``.
    package
        The Python package with that folder.
    """

    design: str
    key_bytes: int
    value_bytes: int
    slots_per_bucket: int
    constants: tuple[tuple[str, int], ...] = ()
    layout: Layout = BUCKETS
    splits: bool = False
    header: str = ""
    package: str = "warphash"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash, kept: programs are looked up by their specification."""
        known = (self.design, self.key_bytes, self.value_bytes, self.slots_per_bucket, self.constants)
        return hash((*known, self.layout, self.splits, self.header, self.package))

    @property
    def in_place(self) -> bool:
        """Keys and values of any width lie in the table itself, each in the width that it has."""
        return self.layout.in_place

    @cached_property
    def word_bytes(self) -> int:
        """Width of a key as kernels take it."""
        return self.key_bytes if self.layout.own_widths else max(self.key_bytes, self.value_bytes)

    @cached_property
    def value_word_bytes(self) -> int:
        """Width of a value as kernels take it; 0 without one."""
        return self.value_bytes if self.layout.own_widths or not self.value_bytes else self.word_bytes

    @cached_property
    def value_is_row(self) -> bool:
        """Kernels carry the address of a value, and not the value itself."""
        return self.in_place and (self.key_bytes > 8 or self.value_bytes not in (0, 4, 8))

    @cached_property
    def slot_bytes(self) -> int:
        """Bytes of a pair in its slot, those that align the next one included."""
        return self.layout.slot_bytes(self.key_bytes, self.value_bytes)


WindowBody = Callable[[int, int, int], None]
"""See `Engine.sweep`."""


class Buffer(Protocol):
    """Raw memory, freed when the last reference to it goes."""

    @property
    def ptr(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


class Answer(Protocol):
    """Words of the device that the host gets without waiting."""

    ptr: int
    """Where a kernel may write them itself."""

    def ask(self, ptr: int, stream: Any = None) -> None:
        """Begin to copy from there; what was asked for before is forgotten."""

    def follow(self, stream: Any = None) -> None:
        """They are here when the kernels launched so far are done, one of which writes them."""

    @property
    def ready(self) -> bool:
        """Whether they are here."""

    @property
    def words(self) -> npt.NDArray[np.uint64]:
        """They, once they are here."""

    def wait(self) -> None:
        """Return when they are here."""


class Program(Protocol):
    """The compiled kernels of one `KernelSpec`.

    Attributes
    ----------
    block_threads
        Most elements that ``kernels/buckets/gpu/one_block.cuh`` takes; 0 where there are no such kernels.
    """

    @property
    def block_threads(self) -> int: ...
    def run(self, entry: str, table: ctypes.Structure, batch: Launch, n: int, stream: Any) -> None:
        """Launch kernel ``entry`` over at most ``n`` elements; returns before it ends where the engine can.

        ``table`` and ``batch`` are of the types that the kernel takes (`abi`).
        """

    def run_blocks(self, entry: str, table: ctypes.Structure, batch: Launch, blocks: int, stream: Any = None) -> None:
        """As `run`, over whole blocks of as many threads as the kernel wants; on a CPU, of 256 elements."""

    def expect(self, entries: Sequence[str]) -> None:
        """Take note that kernels will soon be launched, one after another.

        Kernels that must be compiled are compiled side by side, and nobody waits for them here. If the first kernel is
        loaded, nothing is done.
        """

    def is_begun(self, entry: str) -> bool:
        """Whether a kernel is compiled, or about to be. Otherwise its first launch waits for all of that."""


class Engine(Protocol):
    """One device and how to run on it. ``stream`` is the engine's own handle, or None for its default.

    Attributes
    ----------
    asynchronous
        Kernels run while the caller goes on.
    window_bytes
        Part of a table that stays in the cache while elements go there; 0 where it does not matter.
    reach_bytes
        Largest table whose addresses stay known while all lanes go anywhere in it: beyond it, each access waits for a
        translation. 0 where it does not matter.
    lanes
        That run at once.
    stage_bytes
        Part of a table that a thread builds in its own cache (``kernels/buckets/cpu/build.cuh``); 0 for no such kernel.
    pool_blocks
        Fewest memory blocks by which a pool grows for batches that nobody waits for (`storage/chains/node_pool.py`).
    shares_host_memory
        Kernels run in the memory of the process, so they also reach a file that is mapped there.
    clocks_mhz
        Clock rates of the chip in MHz, by its parts; empty for the processors of this machine.
    lost_in_child
        Why a forked child cannot use the engine, with the mend; None if a child can.
    """

    asynchronous: bool
    window_bytes: int
    reach_bytes: int
    lanes: int
    stage_bytes: int
    pool_blocks: int
    shares_host_memory: bool
    lost_in_child: str | None

    @property
    def clocks_mhz(self) -> Mapping[str, int]: ...

    @property
    def device(self) -> str:
        """The name a table reports: ``"cpu"``, ``"cuda:0"``, ``"emulated"``."""

    def program(self, spec: KernelSpec) -> Program:
        """The kernels of ``spec``. Notes that they were asked for (`program_log`)."""

    def recall(self, spec: KernelSpec) -> float | None:
        """A number that was measured with these kernels on this device; None if nobody has (`remember`)."""

    def remember(self, spec: KernelSpec, number: float) -> None:
        """Keep a number that was measured with these kernels on this device, for this process and later ones."""

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer:
        """Uninitialised memory, aligned to 256 bytes. Raises `MemoryError` when there is none."""

    def allocate_pinned(self, nbytes: int) -> Buffer:
        """Memory of the host that kernels reach at the same address."""

    def fill(self, target: int, byte: int, nbytes: int, stream: Any = None) -> None:
        """Set ``nbytes`` bytes from an address on."""

    def copy(self, target: int, source: int, nbytes: int, stream: Any = None) -> None:
        """Copy from address to address, on the device or between it and pinned memory."""

    def to_host(self, ptr: int, dtype: npt.DTypeLike, count: int, stream: Any = None) -> npt.NDArray[Any]:
        """Read ``count`` items of ``dtype`` at ``ptr`` into a new host array; waits for ``stream``."""

    def answer(self, words: int) -> Answer:
        """Room for so many words of 64 bits."""

    def from_host(self, array: npt.NDArray[Any], stream: Any = None) -> Buffer:
        """Copy a contiguous host array into new device memory."""

    def upload(self, target: int, array: npt.NDArray[Any], stream: Any = None) -> None:
        """Copy a contiguous host array to memory that is there already. Allocates nothing on the device."""

    def sweep(self, memory: int, nbytes: int, window_bytes: int, body: WindowBody, writes: bool, stream: Any) -> None:
        """Bring pinned memory to the device a window at a time, have ``body`` launch kernels, and bring it back.

        Parameters
        ----------
        memory, nbytes
            The memory: its address and size.
        window_bytes
            Of a window.
        body
            Called as ``body(window, first_byte, nbytes)`` for each window: its address on the device, where it lies in
            the memory, and its size.
        writes
            The kernels write to the windows. Otherwise they are not brought back.

        Raises
        ------
        MemoryError
            If there is no memory for three windows. No kernel is launched.
        """

    def reserve_heap(self, nbytes: int) -> None:
        """Make room for ``malloc`` in kernels. Only before their program is loaded can the heap of a GPU change."""

    def is_captured(self, stream: Any) -> bool:
        """Whether a CUDA graph captures what ``stream`` is given."""

    def synchronize(self, stream: Any = None) -> None: ...
