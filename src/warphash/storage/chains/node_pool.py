"""The memory of slabs, or of smaller nodes, on one engine: super blocks, and the pool's descriptor that kernels read.

How lanes take slabs while a kernel runs is told in ``kernels/chains/slab_allocator.cuh``; here the pool is made, and
grows between kernels.

Kernels may be under way that take units. So the host knows how many were taken when it asked last, and how many it lent
since then: the most that kernels launched later can have taken. It may ask behind each kernel, and go on.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from ...designs.base import SLAB_BYTES
from ...runtime.abi import COUNT_WORDS, REPORT_WORDS, Batch, Report, Table
from ...runtime.engine import Answer, Buffer, Engine
from ...runtime.source import SLABS

__all__ = ["BLOCK_UNITS", "MAX_BLOCKS", "MAX_SUPER_BLOCKS", "NO_SLAB", "SLAB_BYTES", "SlabPool"]

BLOCK_UNITS = 1024
"""Slabs in a memory block."""

MAX_BLOCKS = 1 << 14
"""Memory blocks in a super block: their number in an address has 14 bits."""

MAX_SUPER_BLOCKS = 255
"""One less than 8 bits number: the address of all ones is no slab."""

NO_SLAB = (1 << 32) - 1

_BITMAP_BYTES = BLOCK_UNITS // 8

_COUNT_BYTES = 32 * 64
"""Lines of counts, as `kernels/chains/slab_allocator.cuh` has them."""

_MOST_ASKED = 4
"""Counts on their way to the host at a time."""


def _sum(counts: npt.NDArray[np.uint64]) -> int:
    """Sum of the first word of each line; kernels count in its lower half."""
    return int(counts[::8].sum())


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
    surely_free
        Units that can be taken, as far as is known without counting.
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
        self._taken = 0  # when last counted
        self._lent = 0  # units in all
        self._asked: deque[tuple[Answer, int]] = deque()  # counts on their way, and what was lent before each of them
        self._answers: list[Answer] = []  # to be asked again
        self._engine = engine
        self._program = engine.program(SLABS)
        self._memory: list[Buffer] = []
        self._bases: list[int] = []
        self._report = engine.allocate(8 * REPORT_WORDS, stream)
        self._counts = engine.allocate(_COUNT_BYTES, stream)
        self._engine.fill(self._counts.ptr, 0, _COUNT_BYTES, stream)
        self._descriptor: Buffer
        if super_blocks:
            self._add(super_blocks, stream)
        self.surely_free = self.capacity
        self._describe(stream)

    def clear(self, stream: Any = None) -> None:
        """Free all slabs, and fill them."""
        for memory in self._memory:
            self._engine.fill(memory.ptr, 0xFF, memory.nbytes, stream)
        self._withhold(stream)
        self._engine.fill(self._counts.ptr, 0, _COUNT_BYTES, stream)
        self._know(0)

    @property
    def regions(self) -> list[tuple[int, int]]:
        """Address and bytes of the counts and of each super block."""
        return [(self._counts.ptr, _COUNT_BYTES), *((base, self._super_block_bytes) for base in self._bases)]

    @property
    def units(self) -> list[tuple[int, int]]:
        """Address of the units of each super block, and how many they are."""
        return [(base + self.blocks * _BITMAP_BYTES, self.blocks * BLOCK_UNITS) for base in self._bases]

    @property
    def super_blocks(self) -> int:
        """How many there are now."""
        return len(self._bases)

    @property
    def capacity(self) -> int:
        """Units, taken and free, without those that may not be taken."""
        return self.super_blocks * self.blocks * BLOCK_UNITS - self._withheld

    @property
    def nbytes(self) -> int:
        """Device memory, with the bitmaps and counts."""
        return _COUNT_BYTES + self.super_blocks * self._super_block_bytes

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
        if not self.can_grow:
            raise MemoryError(f"the pool has at most {self._most_super_blocks} super blocks: make it of larger ones")
        wanted = max(1, -(-units // (self.blocks * BLOCK_UNITS)))
        had, more = len(self._memory), min(wanted, self._most_super_blocks - self.super_blocks)
        while True:
            try:
                self._add(more, stream)
                break
            except MemoryError:
                if more == 1:
                    raise
                more //= 2
        try:
            self._describe(stream)
        except MemoryError:
            del self._memory[had:], self._bases[-more:]
            raise
        self.surely_free += more * self.blocks * BLOCK_UNITS

    def take(self, addresses: int, n: int, stream: Any = None) -> int:
        """Write ``n`` addresses (uint32; `NO_SLAB` where the pool is exhausted) there; how many are of slabs. Waits."""
        return self._run("take", Batch(n=n, out_values=addresses), stream).changed

    def give_back(self, addresses: int, n: int, stream: Any = None) -> tuple[int, int]:
        """Free ``n`` slabs; how many of them were taken, and how many addresses are of no slab. Waits."""
        report = self._run("give_back", Batch(n=n, keys=addresses), stream)
        return report.changed, report.mismatches

    def taken(self, stream: Any = None) -> int:
        """Units in use. Waits."""
        return _sum(self._engine.to_host(self._counts.ptr, np.uint64, _COUNT_BYTES // 8, stream))

    def taken_and_free(self, stream: Any = None) -> tuple[int, int]:
        """Units in use, and the others, those included that may not be taken. Waits."""
        taken = self.taken(stream)
        return taken, self.super_blocks * self.blocks * BLOCK_UNITS - taken

    @property
    def counted_free(self) -> int:
        """Units that could be taken when they were counted last."""
        return self.capacity - self._taken

    def free(self, stream: Any = None) -> int:
        """Units that can be taken. Waits."""
        self._know(self.taken(stream))
        return self.surely_free

    def lend(self, n: int) -> None:
        """Note that a kernel may take ``n`` units."""
        self._lent += n
        self.surely_free -= n

    @property
    def asked(self) -> bool:
        """Whether a count is on its way, or here."""
        return bool(self._asked)

    def ask(self, stream: Any = None) -> None:
        """Have the taken units counted behind the kernels so far, unless that is under way often; see `learn`."""
        if len(self._asked) < _MOST_ASKED:
            answer = self._answers.pop() if self._answers else self._engine.answer(_COUNT_BYTES // 8)
            answer.ask(self._counts.ptr, stream)
            self._asked.append((answer, self._lent))

    def learn(self, wait: bool = False) -> bool:
        """Take in what was counted by now, or ``wait`` for what was asked first; whether there was an answer."""
        learned = False
        while self._asked:
            answer, lent_before = self._asked[0]
            if not answer.ready:
                if learned or not wait:
                    break
                answer.wait()
            self._asked.popleft()
            self._taken = _sum(answer.words)
            self.surely_free = self.counted_free - (self._lent - lent_before)
            self._answers.append(answer)
            learned = True
        return learned

    def _know(self, taken: int) -> None:
        """So many were taken behind all kernels so far."""
        self._taken = taken
        self.surely_free = self.counted_free
        self._answers += [answer for answer, _ in self._asked]
        self._asked.clear()

    def slab(self, address: int) -> int:
        """Where the slab of an address is in the engine's memory."""
        units = self._bases[address >> 24] + self.blocks * _BITMAP_BYTES
        return units + (address & 0xFFFFFF) * self._unit_bytes

    @property
    def _super_block_bytes(self) -> int:
        return self.blocks * (_BITMAP_BYTES + BLOCK_UNITS * self._unit_bytes)

    def _add(self, super_blocks: int, stream: Any) -> None:
        memory = self._engine.allocate(super_blocks * self._super_block_bytes, stream)
        self._engine.fill(memory.ptr, 0xFF, memory.nbytes, stream)
        self._memory.append(memory)
        self._bases += [memory.ptr + number * self._super_block_bytes for number in range(super_blocks)]
        if len(self._memory) == 1:
            self._withhold(stream)

    def _withhold(self, stream: Any) -> None:
        """Mark the units as taken that nobody may take."""
        if self._units is not None and self._bases:
            free = np.arange(self.blocks * BLOCK_UNITS) < self._units
            bitmaps = self._engine.from_host(np.packbits(free, bitorder="little"), stream)
            self._engine.copy(self._bases[0], bitmaps.ptr, self.blocks * _BITMAP_BYTES, stream)

    def _describe(self, stream: Any) -> None:
        words = np.zeros(5 + MAX_SUPER_BLOCKS, np.uint64)
        head = [self.blocks, self.super_blocks, self._unit_bytes, 0, self._counts.ptr, *self._bases]
        words[: len(head)] = head
        self._descriptor = self._engine.from_host(words, stream)

    def _run(self, entry: str, batch: Batch, stream: Any) -> Report:
        self._engine.fill(self._report.ptr, 0, 8 * REPORT_WORDS, stream)
        batch.report = self._report.ptr
        self._program.run(entry, Table(pool=self.descriptor), batch, batch.n, stream)
        return Report.of(self._engine.to_host(self._report.ptr, np.uint64, COUNT_WORDS, stream))
