"""A large batch, brought to the ranges of a quotient table in passes (``kernels/quotient/gpu/partition.cuh``)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...runtime.abi import RANGE_LISTS_BYTES, PassBatch, QuotientBatch, QuotientTable
from ...runtime.engine import Engine, KernelSpec
from ...runtime.source import partition
from ..scratch import starts_of
from .route import PassPlan

__all__ = ["Passes"]

MOST_COUNTED = 65535
"""``kMostCounted``."""

_COUNTING_THREADS, _ARRANGING_THREADS = 1024, 32
"""Threads of a block that counts, and for a part."""

RESTORED = 2048
"""Flags that a block restores the order of."""

_FEWEST_COUNTED = 1 << 13
"""Elements that a block counts at least before it adds its counts to those of all ranges."""


@lru_cache(maxsize=64)
def _entries(widths: str, two: bool, counts_parts: bool, scatters: bool, flagged: bool) -> tuple[str, ...]:
    """The kernels of some passes, in order."""
    arranging = (f"arrange{'_parts' * counts_parts}{widths}", f"to_parts{widths}")
    counting = (f"count_ranges{widths}", "arrange_ranges") * counts_parts
    bringing = (f"{'scatter_' * scatters}to_ranges{widths}",) * two
    return f"count{widths[0]}", *arranging, *counting, *bringing, *("restore_flags",) * flagged


def _behind(n: int) -> int:
    """Where an array begins that lies behind ``n`` flags."""
    return n + 255 & -256


@lru_cache(maxsize=64)
def _memory_of(plan: PassPlan, flagged: bool) -> tuple[tuple[int, ...], list[int]]:
    """Bytes of the arrays of some passes; where each begins, and where the last one ends."""
    two = plan.shift > 0
    pairs, numbers = plan.n * plan.element_bytes, 4 * plan.n * flagged
    sizes = (
        pairs,  # brought
        max(pairs, _behind(plan.n) + plan.n) if two else plan.n * flagged,  # parted; then flags, and flags in parts
        numbers,  # places in parts
        numbers * two,  # places in ranges
        4 * plan.n * (flagged or not two),  # left
        RANGE_LISTS_BYTES * plan.ranges,  # touched
        4 * (plan.parts + 1) * two,  # given
        8 * plan.tiles,  # tiles
    )
    return sizes, starts_of(sizes)


class Passes:
    """The memory of a `PassPlan`, and its launches.

    Parameters
    ----------
    flagged
        Whether elements have flags.

    Raises
    ------
    MemoryError
        If there is none.
    """

    def __init__(self, engine: Engine, spec: KernelSpec, plan: PassPlan, flagged: bool, stream: Any = None) -> None:
        self._engine, self._plan = engine, plan
        self._program = engine.program(partition(spec.layout.partition))
        self._widths = f"{spec.word_bytes}{spec.value_word_bytes if plan.element_bytes > spec.word_bytes else 0}"
        self._program.expect(_entries(self._widths, plan.shift > 0, plan.counts_parts, plan.scatters, flagged))
        sizes, starts = _memory_of(plan, flagged)
        self._memory = engine.allocate(starts[-1], stream)
        first = self._memory.ptr
        at = [first + start if size else 0 for start, size in zip(starts, sizes, strict=False)]
        self._brought, self._parted, self._part_places, self._range_places = at[:4]
        self._left, self._touched, self._given, self._tiles = at[4:]

    def bring(self, table: QuotientTable, batch: QuotientBatch, stream: Any) -> None:
        """Bring the elements of a batch to their ranges; `apply` then takes the batch.

        The batch has its own ``keys``, ``values``, ``n`` and ``report``. The lists of the report are empty.
        """
        plan, n, widths = self._plan, batch.n, self._widths
        share = self._share(n)
        two, counts_parts, parts, most_tiles = plan.shift > 0, plan.counts_parts, plan.parts, plan.tiles
        passes = PassBatch(n=n, report=batch.report, keys=batch.keys, values=batch.values)
        passes.touched, passes.parts, passes.part_shift = self._touched, parts, plan.shift
        passes.given, passes.tiles, passes.most_tiles = self._given or table.counters, self._tiles, most_tiles
        passes.share, passes.bin_ranges = share, 1 << plan.shift if counts_parts else 1
        if two:
            self._engine.fill(self._given, 0, self._tiles + 8 * most_tiles - self._given, stream)
        run, arrange, arranging = self._program.run_blocks, self._program.run, parts * _ARRANGING_THREADS
        run(f"count{plan.key_bytes}", table, passes, -(-n // share), stream)
        arrange(f"arrange_parts{widths}" if counts_parts else f"arrange{widths}", table, passes, arranging, stream)
        passes.target, passes.places = self._parted if two else self._brought, self._part_places
        run(f"to_parts{widths}", table, passes, -(-n // plan.tile), stream)
        passes.source, passes.target, passes.places = self._parted, self._brought, self._range_places
        tiles = n // plan.tile + parts
        if counts_parts:
            run(f"count_ranges{widths}", table, passes, tiles, stream)
            arrange("arrange_ranges", table, passes, arranging, stream)
        if two:
            run(f"{'scatter_' * plan.scatters}to_ranges{widths}", table, passes, tiles, stream)
        batch.brought, batch.touched, batch.numbers = self._brought, self._touched, 0
        batch.crowds, batch.left = self._touched + 8 * plan.ranges, self.rest

    @property
    def rest(self) -> int:
        """Address of room for a list of elements: of those left by a build, then of those left of crowded ranges."""
        return self._left or self._parted  # which only flags need then

    @property
    def flags(self) -> int:
        """Address of room for the flags, in the order in which the elements are brought."""
        return self._parted

    def restore_flags(self, table: QuotientTable, n: int, flags: int, stream: Any) -> None:
        """Copy the flags to the order of the caller, at an address. Crowded ranges still need the brought elements."""
        steps = [(self._part_places, flags)]
        if self._plan.shift:
            steps.insert(0, (self._range_places, self._parted + _behind(n)))
        source = self.flags
        for places, target in steps:
            batch = PassBatch(n=n, places=places, source=source, target=target)
            self._program.run_blocks("restore_flags", table, batch, -(-n // RESTORED), stream)
            source = target

    def _share(self, n: int) -> int:
        """Elements of a block that counts, where all blocks together count ``n``.

        Blocks of one size, in as many turns as they take: no turn has blocks for some processors alone.
        """
        at_once = max(1, self._engine.lanes // _COUNTING_THREADS)
        turns = -(-n // (at_once * MOST_COUNTED))
        return min(MOST_COUNTED, max(_FEWEST_COUNTED, -(-n // (turns * at_once))))
