"""The memory of slabs, or of smaller nodes, on one engine: super blocks, and the pool's descriptor that kernels read.

``kernels/chains/slab_allocator.cuh`` tells how lanes take slabs while a kernel runs. This module makes the pool, and
lets it grow between kernels.

Kernels that take units may be under way. So the host knows a bound: the units that were free when they were counted
last, less those that later kernels may take. The host can ask for a count behind a kernel, and go on.

An interrupted call leaves the pool usable. All of its memory is one object, which a growing pool replaces by one
assignment. The bound is lowered before a kernel is launched, and raised after memory is there: it is too low at worst.
"""

from __future__ import annotations

import copy
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ...designs.layout import SLAB_BYTES
from ...runtime.abi import ChainTable, SlabBatch
from ...runtime.engine import Answer, Buffer, Engine
from ...runtime.source import SLABS
from ..new_memory import filled
from ..scratch import Report, ReportBuffer

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

_EXHAUSTED_WORD = 3
"""Of the ``struct Pool``."""

_MOST_ASKED = 4
"""Counts on their way to the host at a time."""


def _sum(counts: npt.NDArray[np.uint64]) -> int:
    """Sum of the first word of each line; kernels count in its lower half."""
    return int(counts[::8].sum())


class PoolMemory(NamedTuple):
    """Super blocks, and the ``struct Pool`` that names them.

    Attributes
    ----------
    buffers
        What the super blocks lie in, one or several in a buffer.
    bases
        Addresses of the super blocks.
    descriptor
        The ``struct Pool``.
    """

    buffers: tuple[Buffer, ...]
    bases: tuple[int, ...]
    descriptor: Buffer


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
        At least so many units can be taken.
    memory
        Super blocks and descriptor.
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
        self._report = ReportBuffer(engine, stream)
        self._counts = filled(engine, _COUNT_BYTES, stream)
        buffers, bases = self._allocate(super_blocks, stream) if super_blocks else ((), ())
        self.memory = PoolMemory(buffers, bases, self._describe(bases, stream))
        self._withhold(stream)
        self.surely_free = self.capacity

    def copy(self, stream: Any = None) -> Self:
        """A pool of the same units, free and taken, in memory of its own."""
        engine, twin = self._engine, copy.copy(self)
        twin._asked, twin._answers = deque(), []
        twin._report = ReportBuffer(engine, stream)
        twin._counts = engine.allocate(_COUNT_BYTES, stream)
        buffers, bases = self._allocate(self.super_blocks, stream) if self.super_blocks else ((), ())
        twin.memory = PoolMemory(buffers, bases, twin._describe(bases, stream))
        for (source, nbytes), (target, _) in zip(self.regions, twin.regions, strict=True):
            engine.copy(target, source, nbytes, stream)
        return twin

    def clear(self, stream: Any = None) -> None:
        """Free all slabs, and fill them. Allocates nothing."""
        for memory in self.memory.buffers:
            self._engine.fill(memory.ptr, 0xFF, memory.nbytes, stream)
        self._withhold(stream)
        self._engine.fill(self._counts.ptr, 0, _COUNT_BYTES, stream)
        self._know(0)

    @property
    def regions(self) -> list[tuple[int, int]]:
        """Address and bytes of the counts and of each super block."""
        return [(self._counts.ptr, _COUNT_BYTES), *((base, self._super_block_bytes) for base in self.memory.bases)]

    @property
    def units(self) -> list[tuple[int, int]]:
        """Address of the units of each super block, and how many they are."""
        return [(base + self.blocks * _BITMAP_BYTES, self.blocks * BLOCK_UNITS) for base in self.memory.bases]

    @property
    def super_blocks(self) -> int:
        """How many there are now."""
        return len(self.memory.bases)

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
        return self.memory.descriptor.ptr

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
        self._engine.fill(self.descriptor + 8 * _EXHAUSTED_WORD, 0, 8, stream)

    def grow(self, units: int = 1, stream: Any = None) -> None:
        """Add super blocks of so many units, or those that there is memory for.

        Raises
        ------
        MemoryError
            If there is no room, or no number, for one; the pool is as it was.
        """
        if not self.can_grow:
            raise MemoryError(f"the pool has at most {self._most_super_blocks} super blocks: make it of larger ones")
        wanted = max(1, -(-units // (self.blocks * BLOCK_UNITS)))
        more = min(wanted, self._most_super_blocks - self.super_blocks)
        while True:
            try:
                buffers, bases = self._allocate(more, stream)
                break
            except MemoryError:
                if more == 1:
                    raise
                more //= 2
        old = self.memory
        bases = old.bases + bases
        self.memory = PoolMemory(old.buffers + buffers, bases, self._describe(bases, stream))
        self.surely_free += more * self.blocks * BLOCK_UNITS

    def take(self, addresses: int, n: int, stream: Any = None) -> int:
        """Write ``n`` addresses (uint32; `NO_SLAB` where the pool is exhausted) there; how many are of slabs. Waits."""
        return self._run("take", SlabBatch(n=n, addresses=addresses), stream).changed

    def give_back(self, addresses: int, n: int, stream: Any = None) -> tuple[int, int]:
        """Free ``n`` slabs; how many of them were taken, and how many addresses are of no slab. Waits."""
        report = self._run("give_back", SlabBatch(n=n, addresses=addresses), stream)
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
        """Note that the kernel that is launched next takes up to ``n`` units."""
        self.surely_free -= n
        self._lent += n

    @property
    def asked(self) -> bool:
        """Whether a count is on its way, or here."""
        return bool(self._asked)

    def ask(self, stream: Any = None) -> None:
        """Have the taken units counted behind the kernels so far; see `learn`.

        Does nothing if many counts are on their way, or if there is no memory for the answer.
        """
        if len(self._asked) < _MOST_ASKED:
            with suppress(MemoryError):
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

    def forget(self) -> None:
        """Take no unit for surely free before they are counted again."""
        self.surely_free = 0
        self._asked.clear()

    def _know(self, taken: int) -> None:
        """So many were taken behind all kernels so far."""
        self._taken = taken
        self.surely_free = self.counted_free
        self._answers += [answer for answer, _ in self._asked]
        self._asked.clear()

    @property
    def _super_block_bytes(self) -> int:
        return self.blocks * (_BITMAP_BYTES + BLOCK_UNITS * self._unit_bytes)

    def _allocate(self, super_blocks: int, stream: Any) -> tuple[tuple[Buffer], tuple[int, ...]]:
        """Memory of super blocks, all of whose units are free; and the address of each."""
        memory = filled(self._engine, super_blocks * self._super_block_bytes, stream, 0xFF)
        return (memory,), tuple(memory.ptr + number * self._super_block_bytes for number in range(super_blocks))

    def _withhold(self, stream: Any) -> None:
        """Mark the units of a filled first super block as taken that nobody may take: those behind the last one."""
        if self._units is not None and self.memory.bases:
            bitmaps, (whole, rest) = self.memory.bases[0], divmod(self._units, 8)
            nbytes = self.blocks * _BITMAP_BYTES
            self._engine.fill(bitmaps + whole, 0, nbytes - whole, stream)
            if rest:
                self._engine.fill(bitmaps + whole, (1 << rest) - 1, 1, stream)

    def _describe(self, bases: tuple[int, ...], stream: Any) -> Buffer:
        words = np.zeros(5 + MAX_SUPER_BLOCKS, np.uint64)
        head = [self.blocks, len(bases), self._unit_bytes, 0, self._counts.ptr, *bases]
        words[: len(head)] = head
        return self._engine.from_host(words, stream)

    def _run(self, entry: str, batch: SlabBatch, stream: Any) -> Report:
        batch.report = self._report.reset(stream)
        self._program.run(entry, ChainTable(pool=self.descriptor), batch, batch.n, stream)
        return self._report.read(stream)
