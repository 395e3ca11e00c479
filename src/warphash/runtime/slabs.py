"""The memory of slabs of 128 bytes on one engine: super blocks, and the pool's descriptor that kernels read.

How lanes take slabs while a kernel runs is told in ``kernels/core/slab_allocator.cuh``; here the pool is made, and
grows between kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..designs.base import SLAB_BYTES
from .abi import COUNT_WORDS, REPORT_WORDS, Batch, Report, Table
from .engine import Buffer, Engine
from .source import SLABS

__all__ = ["BLOCK_UNITS", "MAX_BLOCKS", "MAX_SUPER_BLOCKS", "NO_SLAB", "SLAB_BYTES", "SlabPool"]

BLOCK_UNITS = 1024
"""Slabs in a memory block."""

MAX_BLOCKS = 1 << 14
"""Memory blocks in a super block: their number in an address has 14 bits."""

MAX_SUPER_BLOCKS = 255
"""One less than 8 bits number: the address of all ones is no slab."""

NO_SLAB = (1 << 32) - 1

_BITMAP_BYTES = BLOCK_UNITS // 8


class SlabPool:
    """Slabs, all bytes of which are 0xFF when they are first taken. Not safe from several threads.

    Parameters
    ----------
    engine
        Where the slabs are.
    blocks
        Memory blocks in a super block.
    super_blocks
        Super blocks to begin with.
    units
        Slabs that may be taken of the first super block; None for all.

    Attributes
    ----------
    blocks
        Memory blocks in a super block.
    """

    def __init__(
        self, engine: Engine, blocks: int, super_blocks: int = 1, units: int | None = None, stream: Any = None
    ) -> None:
        self.blocks = blocks
        self._units = units
        self._engine = engine
        self._program = engine.program(SLABS)
        self._super_blocks: list[Buffer] = []
        self._report = engine.allocate(8 * REPORT_WORDS, stream)
        self._descriptor: Buffer
        for _ in range(super_blocks):
            self._add(stream)
        self._describe(stream)

    def clear(self, stream: Any = None) -> None:
        """Free all slabs, and fill them."""
        for number, memory in enumerate(self._super_blocks):
            self._free_all(memory, None if number else self._units, stream)

    @property
    def regions(self) -> list[tuple[int, int]]:
        """Address and bytes of each super block."""
        return [(memory.ptr, self._super_block_bytes) for memory in self._super_blocks]

    @property
    def units(self) -> list[tuple[int, int]]:
        """Address of the slabs of each super block, and how many they are."""
        return [(memory.ptr + self.blocks * _BITMAP_BYTES, self.blocks * BLOCK_UNITS) for memory in self._super_blocks]

    @property
    def super_blocks(self) -> int:
        """How many there are now."""
        return len(self._super_blocks)

    @property
    def capacity(self) -> int:
        """Slabs, taken and free."""
        return self.super_blocks * self.blocks * BLOCK_UNITS

    @property
    def nbytes(self) -> int:
        """Device memory, with the bitmaps."""
        return self.super_blocks * self._super_block_bytes

    @property
    def descriptor(self) -> int:
        """Address of the ``struct Pool``."""
        return self._descriptor.ptr

    def grow(self, stream: Any = None) -> None:
        """Add a super block.

        Raises
        ------
        MemoryError
            If there is no room, or no number for it; the pool is as it was.
        """
        if self.super_blocks >= MAX_SUPER_BLOCKS:
            raise MemoryError(f"a pool has at most {MAX_SUPER_BLOCKS} super blocks: make it of larger ones")
        self._add(stream)
        try:
            self._describe(stream)
        except MemoryError:
            self._super_blocks.pop()
            raise

    def take(self, addresses: int, n: int, stream: Any = None) -> int:
        """Write ``n`` addresses (uint32; `NO_SLAB` where the pool is exhausted) there; how many are of slabs. Waits."""
        return self._run("take", Batch(n=n, out_values=addresses), stream).changed

    def give_back(self, addresses: int, n: int, stream: Any = None) -> tuple[int, int]:
        """Free ``n`` slabs; how many of them were taken, and how many addresses are of no slab. Waits."""
        report = self._run("give_back", Batch(n=n, keys=addresses), stream)
        return report.changed, report.mismatches

    def taken(self, stream: Any = None) -> int:
        """Slabs in use. Waits."""
        return self._run("taken", Batch(n=self.super_blocks * self.blocks * _BITMAP_BYTES // 4), stream).changed

    def free(self, stream: Any = None) -> int:
        """Slabs that can be taken. Waits."""
        return self.capacity - self.taken(stream)

    def slab(self, address: int) -> int:
        """Where the slab of an address is in the engine's memory."""
        units = self._super_blocks[address >> 24].ptr + self.blocks * _BITMAP_BYTES
        return units + (address & 0xFFFFFF) * SLAB_BYTES

    @property
    def _super_block_bytes(self) -> int:
        return self.blocks * (_BITMAP_BYTES + BLOCK_UNITS * SLAB_BYTES)

    def _add(self, stream: Any) -> None:
        memory = self._engine.allocate(self._super_block_bytes, stream)
        self._free_all(memory, None if self._super_blocks else self._units, stream)
        self._super_blocks.append(memory)

    def _free_all(self, memory: Buffer, units: int | None, stream: Any) -> None:
        self._engine.fill(memory, 0xFF, self._super_block_bytes, stream)
        self._engine.fill(memory, 0, self.blocks * _BITMAP_BYTES, stream)
        if units is not None:
            taken = np.ones(self.blocks * BLOCK_UNITS, np.uint8)
            taken[:units] = 0
            bitmaps = self._engine.from_host(np.packbits(taken, bitorder="little"), stream)
            self._engine.copy(memory.ptr, bitmaps.ptr, self.blocks * _BITMAP_BYTES, stream)

    def _describe(self, stream: Any) -> None:
        bases = [memory.ptr for memory in self._super_blocks]
        words = np.zeros(2 + MAX_SUPER_BLOCKS, np.uint64)
        words[: 2 + len(bases)] = [self.blocks, len(bases), *bases]
        self._descriptor = self._engine.from_host(words, stream)

    def _run(self, entry: str, batch: Batch, stream: Any) -> Report:
        self._engine.fill(self._report, 0, 8 * REPORT_WORDS, stream)
        batch.report = self._report.ptr
        self._program.run(entry, Table(pool=self.descriptor), batch, batch.n, stream)
        return Report.of(self._engine.to_host(self._report.ptr, np.uint64, COUNT_WORDS, stream))
