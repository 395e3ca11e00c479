"""The memory of slabs, or of smaller nodes, on one engine: super blocks, and the pool's descriptor that kernels read.

How lanes take slabs while a kernel runs is told in ``kernels/core/slab_allocator.cuh``; here the pool is made, and
grows between kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..designs.base import SLAB_BYTES
from .abi import COUNT_WORDS, REPORT_WORDS, Batch, Report, Table
from .engine import Answer, Buffer, Engine
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
    """Units of memory, all bytes of which are 0xFF when they are first taken. Not safe from several threads.

    Parameters
    ----------
    engine
        Where the slabs are.
    blocks
        Memory blocks in a super block.
    super_blocks
        Super blocks to begin with.
    units
        Of the first super block may be taken; None for all.
    unit_bytes
        Of a unit: `SLAB_BYTES`, or a smaller power of two of at least 8.
    most_super_blocks
        Up to which it may grow.

    Attributes
    ----------
    blocks
        Memory blocks in a super block.
    """

    def __init__(
        self,
        engine: Engine,
        blocks: int,
        super_blocks: int = 1,
        units: int | None = None,
        unit_bytes: int = SLAB_BYTES,
        most_super_blocks: int = MAX_SUPER_BLOCKS,
        stream: Any = None,
    ) -> None:
        self.blocks = blocks
        self._units = units
        self._withheld = 0 if units is None else blocks * BLOCK_UNITS - units
        self._unit_bytes = unit_bytes
        self._most_super_blocks = min(most_super_blocks, MAX_SUPER_BLOCKS)
        self._taken_at_most = 0
        self._census: Answer | None = None
        self._lent_since: int | None = None  # the last count was asked for, and until it is there
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
        self._taken_at_most, self._lent_since = 0, None

    @property
    def regions(self) -> list[tuple[int, int]]:
        """Address and bytes of each super block."""
        return [(memory.ptr, self._super_block_bytes) for memory in self._super_blocks]

    @property
    def units(self) -> list[tuple[int, int]]:
        """Address of the units of each super block, and how many they are."""
        return [(memory.ptr + self.blocks * _BITMAP_BYTES, self.blocks * BLOCK_UNITS) for memory in self._super_blocks]

    @property
    def super_blocks(self) -> int:
        """How many there are now."""
        return len(self._super_blocks)

    @property
    def capacity(self) -> int:
        """Units, taken and free, without those that may not be taken."""
        return self.super_blocks * self.blocks * BLOCK_UNITS - self._withheld

    @property
    def nbytes(self) -> int:
        """Device memory, with the bitmaps."""
        return self.super_blocks * self._super_block_bytes

    @property
    def descriptor(self) -> int:
        """Address of the ``struct Pool``."""
        return self._descriptor.ptr

    @property
    def only_units(self) -> int:
        """Address of the units where there is one super block; otherwise 0."""
        return self.units[0][0] if self.super_blocks == 1 else 0

    @property
    def can_grow(self) -> bool:
        """Whether there is a number for one more super block."""
        return self.super_blocks < self._most_super_blocks

    def reopen(self, stream: Any = None) -> None:
        """Let lanes look for units again after some found the pool exhausted."""
        self._describe(stream)

    def grow(self, stream: Any = None) -> None:
        """Add a super block.

        Raises
        ------
        MemoryError
            If there is no room, or no number for it; the pool is as it was.
        """
        self.grow_by(1, stream)

    def grow_by(self, units: int, stream: Any = None) -> None:
        """Grow by so many units, or by what there is memory for; raises `MemoryError` if for no super block."""
        had = self.super_blocks
        try:
            while self.super_blocks - had < max(1, -(-units // (self.blocks * BLOCK_UNITS))):
                if not self.can_grow:
                    raise MemoryError(
                        f"the pool has at most {self._most_super_blocks} super blocks: make it of larger ones"
                    )
                self._add(stream)
        except MemoryError:
            if self.super_blocks == had:
                raise
        try:
            self._describe(stream)
        except MemoryError:
            del self._super_blocks[had:]
            raise

    def take(self, addresses: int, n: int, stream: Any = None) -> int:
        """Write ``n`` addresses (uint32; `NO_SLAB` where the pool is exhausted) there; how many are of slabs. Waits."""
        return self._run("take", Batch(n=n, out_values=addresses), stream).changed

    def give_back(self, addresses: int, n: int, stream: Any = None) -> tuple[int, int]:
        """Free ``n`` slabs; how many of them were taken, and how many addresses are of no slab. Waits."""
        report = self._run("give_back", Batch(n=n, keys=addresses), stream)
        return report.changed, report.mismatches

    def taken(self, stream: Any = None) -> int:
        """Units in use. Waits."""
        return self._run("taken", self._all_words, stream).changed - self._withheld

    @property
    def surely_free(self) -> int:
        """Units that can be taken, as far as is known without counting."""
        return self.capacity - self._taken_at_most

    def free(self, stream: Any = None) -> int:
        """Units that can be taken. Waits."""
        self._taken_at_most = self.taken(stream)
        self._lent_since = None
        return self.surely_free

    def count_beside(self, stream: Any = None) -> None:
        """Begin to count, or learn what was counted, without waiting."""
        if self._lent_since is None:
            self._census = self._census or self._engine.answer(COUNT_WORDS)
            self._census.ask(self._launch("taken", self._all_words, stream), stream)
            self._lent_since = 0
        elif self._census and self._census.ready:
            self._taken_at_most = Report.of(self._census.words).changed - self._withheld + self._lent_since
            self._lent_since = None

    def lend(self, n: int) -> None:
        """Note that a kernel may take ``n`` units."""
        self._taken_at_most += n
        if self._lent_since is not None:
            self._lent_since += n

    def slab(self, address: int) -> int:
        """Where the slab of an address is in the engine's memory."""
        units = self._super_blocks[address >> 24].ptr + self.blocks * _BITMAP_BYTES
        return units + (address & 0xFFFFFF) * self._unit_bytes

    @property
    def _super_block_bytes(self) -> int:
        return self.blocks * (_BITMAP_BYTES + BLOCK_UNITS * self._unit_bytes)

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
        words = np.zeros(4 + MAX_SUPER_BLOCKS, np.uint64)
        words[: 4 + len(bases)] = [self.blocks, len(bases), self._unit_bytes, 0, *bases]
        self._descriptor = self._engine.from_host(words, stream)

    @property
    def _all_words(self) -> Batch:
        return Batch(n=self.super_blocks * self.blocks * _BITMAP_BYTES // 4)

    def _launch(self, entry: str, batch: Batch, stream: Any) -> int:
        """Run a kernel; the address of its report."""
        self._engine.fill(self._report, 0, 8 * REPORT_WORDS, stream)
        batch.report = self._report.ptr
        self._program.run(entry, Table(pool=self.descriptor), batch, batch.n, stream)
        return self._report.ptr

    def _run(self, entry: str, batch: Batch, stream: Any) -> Report:
        return Report.of(self._engine.to_host(self._launch(entry, batch, stream), np.uint64, COUNT_WORDS, stream))
