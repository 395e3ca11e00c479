"""A large batch, brought to the ranges of a quotient table in passes (``kernels/quotient/gpu/partition.cuh``)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ...runtime.abi import RANGE_LISTS_BYTES, PassBatch, QuotientBatch, QuotientTable
from ...runtime.engine import Engine, KernelSpec
from ...runtime.source import partition
from ..scratch import starts_of

__all__ = ["Passes", "Plan", "plan_for"]

TILE_BYTES, MOST_BINS, MOST_RANGES, MOST_COUNTED_BINS, MOST_COUNTED = 32 << 10, 1024, 8192, 24576, 65535
"""``kPassTileBytes``, ``kMostBins``, ``kMostRanges``, ``kMostCountedBins``, ``kMostCounted``."""

_MOST_SLICES = {4: 1, 8: 2}
"""Most slices of the ranges that are counted apart, by the bytes of a key. Each slice reads all keys, mostly from the
cache. Slices gain nothing for keys of 4 bytes (docs/performance/quotient.md)."""

_COUNTING_THREADS, _ARRANGING_THREADS = 1024, 32
"""Threads of a block that counts, and for a part."""

RESTORED = 2048
"""Flags that a block restores the order of."""

_ONE_PASS_RANGES = 512
"""Most ranges that one pass brings elements to: of 4,096 pairs of 4 + 4 bytes in a tile, 8 go to each range, two
sectors of memory. More ranges take two passes."""

_FEWEST_ELEMENTS = 1 << 16
"""Of a batch that goes in passes: a smaller one takes the time of its launches, and these are up to four more. A
guess, as the next one; no device has decided."""

_FEWEST_PER_RANGE = 64
"""Elements for each range of the table that a batch in passes has at least. Each range is counted and arranged, and a
tile that goes to more ranges than it has elements for writes parts of sectors."""

_FEWEST_PER_SCATTERED_RANGE = 8
"""The same, where the second pass scatters: eight pairs of 8 + 8 bytes are four sectors. A guess, too."""

_FEWEST_COUNTED = 1 << 13
"""Elements that a block counts at least before it adds its counts to those of all ranges."""


class Plan(NamedTuple):
    """How a batch of up to ``n`` elements goes: the ranges of a part are 2 to the power of ``shift``."""

    n: int
    ranges: int
    shift: int
    element_bytes: int
    word_bytes: int

    @property
    def parts(self) -> int:
        return (self.ranges - 1 >> self.shift) + 1

    @property
    def counts_parts(self) -> bool:
        """Whether the parts are counted first: so many ranges would take too many slices."""
        return self.shift > 0 and self.ranges > _MOST_SLICES[self.word_bytes] * MOST_COUNTED_BINS

    @property
    def slices(self) -> int:
        """Slices of the ranges, each of which a block counts; 1 where the parts are counted."""
        return 1 if self.counts_parts else -(-self.ranges // MOST_COUNTED_BINS)

    @property
    def scatters(self) -> bool:
        """Whether elements go to their ranges one by one: a tile cannot be arranged by all ranges of a part."""
        return 1 << self.shift > MOST_BINS

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return TILE_BYTES // self.element_bytes

    @property
    def tiles(self) -> int:
        """Most tiles that the parts are cut into: all but one of each part are full."""
        return self.n // self.tile + self.parts if self.shift else 0


def plan_for(engine: Engine, spec: KernelSpec, ranges: int, n: int, *, valued: bool = True) -> Plan | None:
    """The plan for a batch; None if elements had better go one by one, or if there are too many ranges.

    Parameters
    ----------
    valued
        Whether values, if the table has some, go with the keys.
    """
    if not engine.window_bytes or ranges > MOST_BINS * MOST_RANGES:
        return None
    # An odd bit goes to the numbers of parts. So 1 G pairs are built 1.08 times as fast (docs/performance/quotient.md).
    shift = 0 if ranges <= _ONE_PASS_RANGES else (ranges - 1).bit_length() // 2
    if ranges > MOST_BINS * MOST_BINS:
        shift = MOST_RANGES.bit_length() - 1
    plan = Plan(n, ranges, shift, spec.slot_bytes if valued else spec.word_bytes, spec.word_bytes)
    fewest = _FEWEST_PER_SCATTERED_RANGE if plan.scatters else _FEWEST_PER_RANGE
    return plan if n >= max(_FEWEST_ELEMENTS, fewest * ranges) else None


@lru_cache(maxsize=64)
def _entries(widths: str, two: bool, counts_parts: bool, scatters: bool, flagged: bool) -> tuple[str, ...]:
    """The kernels of some passes, in order."""
    arranging = (f"arrange{'_parts' * counts_parts}{widths}", f"to_parts{widths}")
    counting = (f"count_ranges{widths}", "arrange_ranges") * counts_parts
    bringing = (f"{'scatter_' * scatters}to_ranges{widths}",) * two
    return f"count{widths[0]}", *arranging, *counting, *bringing, *("restore_flags",) * flagged


class Passes:
    """The memory of a plan, and its launches.

    Parameters
    ----------
    flagged
        Whether elements have flags.

    Raises
    ------
    MemoryError
        If there is none.
    """

    def __init__(self, engine: Engine, spec: KernelSpec, plan: Plan, flagged: bool, stream: Any = None) -> None:
        self._engine, self._plan = engine, plan
        self._program = engine.program(partition(spec.layout.partition))
        self._widths = f"{spec.word_bytes}{spec.value_word_bytes if plan.element_bytes > spec.word_bytes else 0}"
        two = plan.shift > 0
        self._program.expect(_entries(self._widths, two, plan.counts_parts, plan.scatters, flagged))
        pairs, numbers = plan.n * plan.element_bytes, 4 * plan.n * flagged
        sizes = (
            pairs,  # brought
            pairs if two else plan.n * flagged,  # parted
            numbers,  # places in parts
            numbers * two,  # places in ranges
            4 * plan.n * (flagged or not two),  # left
            RANGE_LISTS_BYTES * plan.ranges,  # touched
            4 * (plan.parts + 1) * two,  # given
            8 * plan.tiles,  # tiles
        )
        *starts, end = starts_of(sizes)
        self._memory = engine.allocate(end, stream)
        first = self._memory.ptr
        at = [first + start if size else 0 for start, size in zip(starts, sizes, strict=True)]
        self._brought, self._parted, self._part_places, self._range_places = at[:4]
        self._left, self._touched, self._given, self._tiles = at[4:]

    def bring(self, table: QuotientTable, batch: QuotientBatch, stream: Any) -> None:
        """Bring the elements of a batch to their ranges; `apply` then takes the batch.

        The batch has its own ``keys``, ``values``, ``n`` and ``report``. The lists of the report are empty.
        """
        plan, n, widths, slices = self._plan, batch.n, self._widths, self._plan.slices
        share = self._share(slices * n)
        two, counts_parts, parts, most_tiles = plan.shift > 0, plan.counts_parts, plan.parts, plan.tiles
        passes = PassBatch(n=n, report=batch.report, keys=batch.keys, values=batch.values)
        passes.touched, passes.parts, passes.part_shift = self._touched, parts, plan.shift
        passes.given, passes.tiles, passes.most_tiles = self._given or table.counters, self._tiles, most_tiles
        passes.share, passes.bin_ranges = share, 1 << plan.shift if counts_parts else 1
        if two:
            self._engine.fill(self._given, 0, self._tiles + 8 * most_tiles - self._given, stream)
        run, arrange, arranging = self._program.run_blocks, self._program.run, parts * _ARRANGING_THREADS
        run(f"count{plan.word_bytes}", table, passes, slices * -(-n // share), stream)
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
        """Copy the flags to the order of the caller, at an address."""
        steps = [(self._part_places, flags)]
        if self._plan.shift:
            steps.insert(0, (self._range_places, self._brought))  # which nobody needs any more
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
