"""Which kernels a batch of a quotient table takes: decided from numbers alone.

1. An update of few elements is one launch of one block, under locks of buckets (``kernels/quotient/gpu/few.cuh``).
2. A batch of few elements for a table with pairs has a lane for each element (``kernels/quotient/gpu/put.cuh``,
   ``stuck.cuh``, ``locked.cuh``, ``erase.cuh``). The elements that an update leaves take the first way. An erase leaves
   none.
3. All other elements are brought to the ranges of their keys, a launch of many of them at a time: in passes
   (``kernels/quotient/gpu/partition.cuh``), or one by one. Then the elements of each range are applied.

A CPU has no locks and no passes, so it takes the third way alone.

The kernels of the first way and of a build take a compiler longest. The first updates of a process that would wait for
them have a way of their own (`is_for_first`), if the cache has no such kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from ...designs.layout import LINE_BYTES
from ...runtime.abi import Op
from ..update.transaction import LISTED_BYTES

__all__ = [
    "LAUNCH_ELEMENTS",
    "MOST_BINS",
    "MOST_COUNTED_BINS",
    "MOST_ELEMENTS",
    "MOST_KEPT",
    "MOST_RANGES",
    "MOVED_BUCKETS",
    "SPARE_ELEMENTS",
    "TILE_BYTES",
    "Facts",
    "PassPlan",
    "Way",
    "applies",
    "builds_by_groups",
    "group_ranges",
    "is_for_first",
    "lanes_for",
    "may_build",
    "most_few",
    "parts_of",
    "pass_plan_for",
    "plan_to_grow",
    "puts_alone",
    "renewing_blocks",
    "shares_to_take_over",
    "way_of_erase",
    "way_of_update",
    "ways_to_ranges",
]

SPARE_ELEMENTS = LISTED_BYTES // 4
"""Of a batch for which an array always has memory: to undo a batch where the device has none left."""

FEW_FOR_A_BUCKET = 1
"""Elements for each bucket of a table up to which a batch may begin with one launch under locks, on a GPU."""

MOST_FOR_A_BUCKET = 6
"""Elements for each bucket of a table up to which an update of up to `SPARE_ELEMENTS` is one launch, on a GPU. With
more of them, most are not done under locks."""

FEWEST_ALONE = 50_000
"""Elements of an update from which on it begins without locks, and the keys whose two buckets are full have a launch of
their own."""

GROWN_FOR_A_BUCKET = 0.5
"""Elements for each bucket of a larger table from which on a batch comes in with the old pairs, though it could have a
lane for each element. A smaller one is left, and nobody waits for it."""

KNOWN_SHARE = 0.25
"""Of the elements of the last batch, the share that brought new keys up to which a smaller update begins without locks,
too. What that leaves goes to one block at once."""

MOST_FIRST = 1 << 22
"""Elements of a first update that does without a build. A guess: what takes locks takes a GPU longer than a build, but
the compiler takes longer than both."""

MOST_KEPT = 1 << 22
"""Elements of a build that nobody waits for: the memory of its passes stays until its outcome is known. A larger build
takes a GPU so much longer than the host that the wait does not matter."""

LANES_STUCK = 2
"""Elements of an update without locks for each lane of the launch for those that are left. Eight lanes take up an
element together (``kernels/quotient/gpu/stuck.cuh``), and then another one."""

IN_PLACE_SHARE = 128
"""Elements for each range of a batch up to which ranges may be left in place."""

LAUNCH_ELEMENTS = 1 << 26
"""Most elements of a launch on a CPU, which has memory for a copy of each. A build takes more of them at once, if much
memory is free (`QuotientArray`)."""

MOST_ELEMENTS = 1 << 30
"""Most elements of a launch on a GPU, where each launch goes over all ranges of the table that the elements go to. If
the device has no memory for copies of so many, half as many go in a launch, down to `LAUNCH_ELEMENTS`."""

FEW_GROUPS, MOST_GROUP_RANGES = 1 << 12, 16
"""Groups that the second-level cache of a CPU's thread has lines for, and most ranges of a group, whose lines it also
holds. A table with more ranges than that consists of whole groups of the largest size."""

PARTS_OF_THREAD, FEWEST_OF_PART = 2, 1 << 14
"""Parts of a batch that a CPU builds a table from, for each of several threads, and the fewest elements of a part. More
parts share more lines of memory, and fewer leave less for others to take from a slow thread."""

MOVED_BUCKETS = 1 << 20
"""Buckets that a scan reads at a time. Where memory is short, the pairs of no more buckets go to another array at a
time."""

TILE_BYTES, MOST_BINS, MOST_RANGES = 32 << 10, 1024, 8192
"""``kPassTileBytes``, ``kMostBins``, ``kMostRanges``."""

MOST_COUNTED_BINS = {4: 24576, 8: 49136}
"""Ranges that a block counts, by the bytes of a key: ``kMostCountedBins`` and ``kMostNarrowBins``. More ranges are
counted part by part, behind the first pass."""

ONE_PASS_RANGES = 512
"""Most ranges that one pass brings elements to: of 4,096 pairs of 4 + 4 bytes in a tile, 8 go to each range, two
sectors of memory. More ranges take two passes."""

WIDE_BYTES, MOST_WIDE_PARTS, MOST_WIDE_SHIFT = 16, 128, 8
"""Elements of 16 bytes go to more parts than 128 only if a part would have more than 2^8 ranges: with 177 parts, the
first pass takes longer by more than the second one takes for twice as many ranges (docs/performance/quotient.md)."""

FEWEST_ELEMENTS = 1 << 16
"""Of a batch that goes in passes: a smaller one takes the time of its launches, and these are up to four more. A
guess, as the next one; no device has decided."""

FEWEST_PER_RANGE = 64
"""Elements for each range of the table that a batch in passes has at least. Each range is counted and arranged, and a
tile that goes to more ranges than it has elements for writes parts of sectors."""

FEWEST_PER_SCATTERED_RANGE = 8
"""The same, where the second pass scatters: eight pairs of 8 + 8 bytes are four sectors. A guess, too."""


class Facts(NamedTuple):
    """What the way of a batch depends on, besides the batch and whether the table has pairs.

    Attributes
    ----------
    on_gpu
        Whether the engine is a GPU.
    buckets, ranges
        Of the table.
    key_bytes, pair_bytes
        Words of a key, and of a slot.
    puts_alone
        Whether a swap of one word fills a slot (``kernels/quotient/gpu/put.cuh``).
    in_reach
        Whether the addresses of the lines stay known while lanes go anywhere in them (`Engine.reach_bytes`).
    """

    on_gpu: bool
    buckets: int
    ranges: int
    key_bytes: int
    pair_bytes: int
    puts_alone: bool = False
    in_reach: bool = True


class Way(Enum):
    """The ways of a batch, as this module's head numbers them; last, that of first updates."""

    FEW = auto()
    ONE_LAUNCH = auto()
    RANGES = auto()
    FIRST = auto()


class PassPlan(NamedTuple):
    """How a batch of up to ``n`` elements goes in passes: the ranges of a part are 2 to the power of ``shift``."""

    n: int
    ranges: int
    shift: int
    element_bytes: int
    key_bytes: int

    @property
    def parts(self) -> int:
        return (self.ranges - 1 >> self.shift) + 1

    @property
    def counts_parts(self) -> bool:
        """Whether the parts are counted first: a block has no room for the counters of so many ranges."""
        return self.shift > 0 and self.ranges > MOST_COUNTED_BINS[self.key_bytes]

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


def way_of_update(facts: Facts, n: int, op: int, *, is_blank: bool) -> Way:
    """The way of an update of ``n`` elements of a batch. A blank table has no trace of a key."""
    if facts.on_gpu and 0 < n <= most_few(facts):
        return Way.FEW
    goes_alone = puts_alone(facts, op) and facts.in_reach
    one = _begins_with_one_launch(facts, n, is_blank=is_blank, goes_alone=goes_alone)
    return Way.ONE_LAUNCH if one else Way.RANGES


def is_for_first(facts: Facts, way: Way, n: int, *, is_blank: bool, is_begun: Callable[[str], bool]) -> bool:
    """Whether an update of ``n`` elements does without the kernel of its way, for which a compiler would take longest.

    Parameters
    ----------
    is_begun
        As of `Program`.
    """
    if not facts.on_gpu:
        return False
    if way is Way.RANGES:
        return is_blank and n <= MOST_FIRST and not is_begun("build")
    return not is_begun("update_few")


def way_of_erase(facts: Facts, n: int, *, is_blank: bool, in_order: bool) -> Way:
    """The way of an erase of ``n`` elements: of all elements of a batch ``in_order``, or of listed ones."""
    is_few = facts.on_gpu and not is_blank and n <= most_few(facts)
    one = is_few or _begins_with_one_launch(facts, n, is_blank=is_blank, goes_alone=facts.in_reach)
    return Way.ONE_LAUNCH if in_order and one else Way.RANGES


def most_few(facts: Facts) -> int:
    """Most elements of a batch of few."""
    return min(SPARE_ELEMENTS, MOST_FOR_A_BUCKET * facts.buckets)


def renewing_blocks(facts: Facts, n: int) -> int:
    """Blocks that make filters anew behind an erase of ``n`` elements: one of 1,024 keys asks for it, or none does."""
    return max(1, min(facts.ranges, n // 512))


def lanes_for(facts: Facts, n: int, op: int, new_share: float) -> tuple[int, int]:
    """Lanes without locks for an update of ``n`` elements, and lanes for those that are left. 0 and 0: all take locks.

    The host does not know how many are left. Of a table that is as full as one is that leaves batches, a sixteenth is
    left at most, if keys are spread evenly.
    """
    if not puts_alone(facts, op) or (n < FEWEST_ALONE and new_share > KNOWN_SHARE):
        return 0, 0
    return n, -(-n // LANES_STUCK) if n >= FEWEST_ALONE else 0


def puts_alone(facts: Facts, op: int) -> bool:
    """Whether an update that has a lane for each element begins without locks."""
    return facts.puts_alone and op in (Op.KEEP, Op.REPLACE)


def _begins_with_one_launch(facts: Facts, n: int, *, is_blank: bool, goes_alone: bool = False) -> bool:
    few = facts.on_gpu and not is_blank and n <= FEW_FOR_A_BUCKET * facts.buckets
    return few and (goes_alone or pass_plan_for(facts, n) is None)


def pass_plan_for(facts: Facts, n: int, *, valued: bool = True) -> PassPlan | None:
    """Plan the passes of a batch; None if elements had better go one by one, or if there are too many ranges.

    Parameters
    ----------
    valued
        Whether values, if the table has some, go with the keys.
    """
    ranges = facts.ranges
    if not facts.on_gpu or ranges > MOST_BINS * MOST_RANGES:
        return None
    element_bytes = facts.pair_bytes if valued else facts.key_bytes
    # An odd bit goes to the numbers of parts. So 1 G pairs are built 1.08 times as fast (docs/performance/quotient.md).
    shift = 0 if ranges <= ONE_PASS_RANGES else (ranges - 1).bit_length() // 2
    if element_bytes == WIDE_BYTES and 0 < shift < MOST_WIDE_SHIFT and ranges > MOST_WIDE_PARTS << shift:
        shift += 1
    if ranges > MOST_BINS * MOST_BINS:
        shift = MOST_RANGES.bit_length() - 1
    plan = PassPlan(n, ranges, shift, element_bytes, facts.key_bytes)
    fewest = FEWEST_PER_SCATTERED_RANGE if plan.scatters else FEWEST_PER_RANGE
    return plan if n >= max(FEWEST_ELEMENTS, fewest * ranges) else None


def plan_to_grow(facts: Facts, n: int, op: int) -> PassPlan | None:
    """Plan the passes of a batch that a larger table gets with the old pairs; None if it gets the pairs alone."""
    if n > MOST_ELEMENTS:
        return None
    has_lanes = way_of_update(facts, n, op, is_blank=False) is Way.ONE_LAUNCH
    return None if has_lanes and n < GROWN_FOR_A_BUCKET * facts.buckets else pass_plan_for(facts, n)


def ways_to_ranges(
    facts: Facts, n: int, *, in_order: bool, valued: bool, whole: bool = False
) -> Iterator[tuple[int, PassPlan | None]]:
    """Elements of a launch, and their plan if they go in passes: the best way first, then those with less memory.

    Parameters
    ----------
    in_order
        All elements of the batch take part, and not only listed ones.
    valued
        Whether they may have values.
    whole
        One launch has all elements.
    """
    plan = None
    for size in [n] if whole else _halves(min(n, _most_elements(facts)), LAUNCH_ELEMENTS):
        plan = pass_plan_for(facts, size, valued=valued) if in_order else None
        yield size, plan
    if plan:
        yield size, None


def _most_elements(facts: Facts) -> int:
    """Most elements of a launch."""
    return MOST_ELEMENTS if facts.on_gpu else LAUNCH_ELEMENTS


def builds_by_groups(facts: Facts, n: int) -> bool:
    """Whether a CPU builds all lines of a table from ``n`` elements. Fewer are applied to lines that were cleared.

    Places of elements in the memory of the lines are numbers of 32 bits.
    """
    places = facts.buckets * (LINE_BYTES // facts.pair_bytes)
    return not facts.on_gpu and facts.buckets <= 2 * n and n <= MOST_ELEMENTS and places < 1 << 32


def group_ranges(ranges: int) -> int:
    """Ranges of a group of a CPU's build (``kernels/quotient/cpu/build.cuh``), in a table of so many ranges."""
    each = 1
    while each < MOST_GROUP_RANGES and ranges > each * FEW_GROUPS:
        each *= 2
    return each


def parts_of(n: int, threads: int) -> tuple[int, int]:
    """Parts of a batch of ``n`` elements that a CPU builds a table from, and elements of a part."""
    count = max(1, min(PARTS_OF_THREAD * threads if threads > 1 else 1, n // FEWEST_OF_PART))
    length = -(-n // count) + LINE_BYTES - 1 & -LINE_BYTES
    return -(-n // length), length


def may_build(erases: int, counts_probes: int) -> bool:
    """Whether a launch for lines that have no trace of a key may build the lines, and need not read them."""
    return not (erases or counts_probes)


def applies(facts: Facts, n: int) -> str:
    """The kernel that applies the ``n`` elements of a launch, which are at their ranges, to lines with pairs."""
    few = facts.on_gpu and n <= IN_PLACE_SHARE * min(n, facts.ranges)
    return "apply_in_place" if few else "apply"


def shares_to_take_over(facts: Facts, size: int, buckets: int, slots_per_bucket: int) -> Iterator[int]:
    """Buckets of another array, whose ``size`` pairs are taken over so many buckets at a time: the best number first.

    All at once, so that a block has a range once; or in pieces, where one launch is not enough, or where there is no
    memory for it.
    """
    most = _most_elements(facts)
    return _halves(buckets if size <= most else min(buckets, most // slots_per_bucket), MOVED_BUCKETS)


def _halves(n: int, enough: int) -> Iterator[int]:
    """``n``, half of it, and so on: the last is no more than ``enough``."""
    yield n
    while n > enough:
        n = -(-n // 2)
        yield n
