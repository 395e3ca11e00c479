"""Which kernels a batch of a quotient table takes: a table of decisions, from numbers alone."""

from __future__ import annotations

from itertools import islice

import pytest

from warphash.runtime.abi import Op
from warphash.storage.quotient.route import (
    FEWEST_ALONE,
    FEWEST_ELEMENTS,
    FEWEST_PER_RANGE,
    FEWEST_PER_SCATTERED_RANGE,
    IN_PLACE_SHARE,
    KNOWN_SHARE,
    LANES_STUCK,
    LAUNCH_ELEMENTS,
    MOST_BINS,
    MOST_ELEMENTS,
    MOST_FOR_A_BUCKET,
    MOST_RANGES,
    MOVED_BUCKETS,
    ONE_PASS_RANGES,
    SPARE_ELEMENTS,
    Facts,
    Way,
    applies,
    lanes_for,
    may_build,
    pass_plan_for,
    shares_to_take_over,
    way_of_erase,
    way_of_update,
    ways_to_ranges,
)

GPU = Facts(True, 100_000, 196, 4, 8)
SMALL_GPU = Facts(True, 20, 1, 4, 8)
WIDE_GPU = Facts(True, 2_000_000, 3_907, 8, 16)
CPU = GPU._replace(on_gpu=False)

FEW, ONE, RANGES = Way.FEW, Way.ONE_LAUNCH, Way.RANGES


def with_ranges(ranges: int, pair_bytes: int = 8) -> Facts:
    return Facts(True, 512 * ranges, ranges, pair_bytes // 2, pair_bytes)


UPDATES = [
    (GPU, 0, False, ONE),
    (GPU, 1, True, FEW),
    (GPU, SPARE_ELEMENTS, True, FEW),
    (GPU, SPARE_ELEMENTS, False, FEW),
    (GPU, SPARE_ELEMENTS + 1, False, ONE),
    (GPU, SPARE_ELEMENTS + 1, True, RANGES),  # a build reads no line
    (SMALL_GPU, 20 * MOST_FOR_A_BUCKET, False, FEW),
    (SMALL_GPU, 20 * MOST_FOR_A_BUCKET + 1, False, RANGES),
    (WIDE_GPU, FEWEST_PER_RANGE * 3_907 - 1, False, ONE),
    (WIDE_GPU, FEWEST_PER_RANGE * 3_907, False, RANGES),  # in passes
    (GPU, FEWEST_ELEMENTS - 1, False, ONE),
    (GPU, FEWEST_ELEMENTS, False, RANGES),
    (Facts(True, 1_500, 3, 4, 8), 1_500, False, ONE),
    (Facts(True, 1_500, 3, 4, 8), 1_501, False, RANGES),  # the buckets are too few
    (CPU, 1, False, RANGES),
    (CPU, SPARE_ELEMENTS + 1, False, RANGES),
]

ERASES = [
    (GPU, 1, False, True, ONE),
    (SMALL_GPU, 20 * MOST_FOR_A_BUCKET, False, True, ONE),
    (SMALL_GPU, 20 * MOST_FOR_A_BUCKET + 1, False, True, RANGES),
    (GPU, 100_000, False, True, ONE),
    (GPU, 100_001, False, True, RANGES),  # the buckets are too few
    (GPU._replace(in_reach=False), FEWEST_ELEMENTS - 1, False, True, ONE),
    (GPU._replace(in_reach=False), FEWEST_ELEMENTS, False, True, RANGES),  # in passes
    (GPU, 10, False, False, RANGES),  # of listed elements
    (GPU, 10, True, True, RANGES),
    (CPU, 10, False, True, RANGES),
]


@pytest.mark.parametrize(("facts", "n", "is_blank", "way"), UPDATES)
def test_the_way_of_an_update(facts: Facts, n: int, is_blank: bool, way: Way) -> None:
    assert way_of_update(facts, n, Op.ADD, is_blank=is_blank) is way


@pytest.mark.parametrize("op", [Op.KEEP, Op.REPLACE])
def test_an_update_without_locks_goes_in_lanes_before_it_goes_in_passes(op: Op) -> None:
    alone = GPU._replace(puts_alone=True)
    for n, way in ((FEWEST_ELEMENTS, ONE), (100_000, ONE), (100_001, RANGES)):
        assert way_of_update(alone, n, op, is_blank=False) is way
    assert way_of_update(alone, FEWEST_ELEMENTS, op, is_blank=True) is RANGES
    assert way_of_update(alone, FEWEST_ELEMENTS, Op.ADD, is_blank=False) is RANGES
    assert way_of_update(alone._replace(in_reach=False), FEWEST_ELEMENTS, op, is_blank=False) is RANGES


@pytest.mark.parametrize(
    ("n", "op", "new_share", "lanes"),
    [
        (FEWEST_ALONE - 1, Op.KEEP, 1.0, (0, 0)),
        (FEWEST_ALONE - 1, Op.KEEP, KNOWN_SHARE, (FEWEST_ALONE - 1, 0)),
        (FEWEST_ALONE, Op.KEEP, 1.0, (FEWEST_ALONE, FEWEST_ALONE // LANES_STUCK)),
        (FEWEST_ALONE, Op.REPLACE, 0.0, (FEWEST_ALONE, FEWEST_ALONE // LANES_STUCK)),
        (FEWEST_ALONE, Op.ADD, 0.0, (0, 0)),
    ],
)
def test_lanes_with_locks_and_without(n: int, op: Op, new_share: float, lanes: tuple[int, int]) -> None:
    alone = GPU._replace(puts_alone=True)
    assert lanes_for(alone, n, op, new_share) == lanes and lanes_for(GPU, n, op, new_share) == (0, 0)


@pytest.mark.parametrize(("facts", "n", "is_blank", "in_order", "way"), ERASES)
def test_the_way_of_an_erase(facts: Facts, n: int, is_blank: bool, in_order: bool, way: Way) -> None:
    assert way_of_erase(facts, n, is_blank=is_blank, in_order=in_order) is way


def test_which_batches_go_in_passes() -> None:
    plan = pass_plan_for(with_ranges(13_564), 50_000_000)
    assert plan and (plan.shift, plan.parts, plan.tile, plan.tiles) == (7, 106, 4096, 12207 + 106)
    plan = pass_plan_for(with_ranges(512), 1 << 16)
    assert plan and (plan.shift, plan.parts, plan.tiles) == (0, 512, 0)
    plan = pass_plan_for(with_ranges(513), 1 << 16)
    assert plan and (plan.shift, plan.parts) == (5, 17)
    plan = pass_plan_for(with_ranges(271_268), 1_000_000_000)
    assert plan and (plan.shift, plan.parts) == (9, 530) and plan.counts_parts
    plan = pass_plan_for(with_ranges(1 << 19), 1 << 26)
    assert plan and (plan.shift, plan.parts) == (9, MOST_BINS)
    plan = pass_plan_for(with_ranges(1 << 20), 1 << 26)
    assert plan and (1 << plan.shift, plan.parts) == (MOST_BINS, MOST_BINS)
    assert not plan.scatters and pass_plan_for(with_ranges(1 << 20), (1 << 26) - 1) is None
    plan = pass_plan_for(with_ranges(3_041_114), 1 << 25)  # a table of 100 GB
    assert plan and plan.scatters and plan.counts_parts and (plan.shift, plan.parts) == (13, 372)
    plan = pass_plan_for(with_ranges(1 << 23), 1 << 26)
    assert plan and plan.scatters and plan.parts == MOST_BINS
    assert (
        pass_plan_for(with_ranges(MOST_BINS * MOST_RANGES + 1), 1 << 28) is None
    )  # more ranges than all parts can have
    assert pass_plan_for(with_ranges(3_041_114), FEWEST_PER_SCATTERED_RANGE * 3_041_114 - 1) is None
    assert pass_plan_for(with_ranges(1), (1 << 16) - 1) is None and pass_plan_for(with_ranges(13_564), 800_000) is None
    assert pass_plan_for(with_ranges(ONE_PASS_RANGES)._replace(on_gpu=False), 1 << 20) is None


@pytest.mark.parametrize(
    ("ranges", "shift", "wide_shift"),
    [(513, 5, 5), (8192, 6, 6), (16_384, 7, 7), (16_385, 7, 8), (32_768, 7, 8), (32_769, 8, 8), (65_537, 8, 8)],
)
def test_wide_pairs_go_to_fewer_parts(ranges: int, shift: int, wide_shift: int) -> None:
    plans = [pass_plan_for(with_ranges(ranges, pair_bytes), 1 << 26) for pair_bytes in (8, 16)]
    assert [plan and plan.shift for plan in plans] == [shift, wide_shift]
    keys_alone = pass_plan_for(with_ranges(ranges, 16), 1 << 26, valued=False)
    assert keys_alone and keys_alone.shift == shift


def test_keys_alone_make_larger_tiles() -> None:
    plan = pass_plan_for(WIDE_GPU, 1 << 20, valued=False)
    assert plan and (plan.element_bytes, plan.tile) == (8, 4096)
    plan = pass_plan_for(WIDE_GPU, 1 << 20)
    assert plan and (plan.element_bytes, plan.tile) == (16, 2048)


def test_a_batch_in_passes_has_a_way_without_their_memory() -> None:
    *passes, last = ways_to_ranges(GPU, 1 << 20, in_order=True, valued=True)
    assert passes == [(1 << 20, pass_plan_for(GPU, 1 << 20))] and last == (1 << 20, None)


def test_large_batches_are_halved_where_memory_is_short() -> None:
    ways = list(ways_to_ranges(GPU, 5 * LAUNCH_ELEMENTS, in_order=True, valued=True))
    sizes = [5 * LAUNCH_ELEMENTS >> halved for halved in range(4)]
    assert [size for size, _ in ways] == [*sizes, sizes[-1]] and sizes[-1] <= LAUNCH_ELEMENTS
    assert all(plan == pass_plan_for(GPU, size) for size, plan in ways[:-1]) and ways[-1][1] is None
    assert next(ways_to_ranges(GPU, 3 * MOST_ELEMENTS, in_order=True, valued=True))[0] == MOST_ELEMENTS


def test_listed_elements_go_one_by_one() -> None:
    ways = list(ways_to_ranges(GPU, 2 * LAUNCH_ELEMENTS, in_order=False, valued=True))
    assert ways == [(2 * LAUNCH_ELEMENTS, None), (LAUNCH_ELEMENTS, None)]
    ways = list(ways_to_ranges(GPU, 2 * LAUNCH_ELEMENTS, in_order=False, valued=True, whole=True))
    assert ways == [(2 * LAUNCH_ELEMENTS, None)]


def test_a_launch_of_a_cpu_has_fewer_elements() -> None:
    assert list(ways_to_ranges(CPU, 9 * LAUNCH_ELEMENTS, in_order=True, valued=True)) == [(LAUNCH_ELEMENTS, None)]


def test_what_erases_or_counts_reads_the_lines() -> None:
    assert may_build(0, 0) and not may_build(8, 0) and not may_build(0, 1)


@pytest.mark.parametrize(
    ("facts", "n", "entry"),
    [
        (GPU, 100, "apply_in_place"),
        (GPU, IN_PLACE_SHARE * 196, "apply_in_place"),
        (GPU, IN_PLACE_SHARE * 196 + 1, "apply"),
        (CPU, 100, "apply"),
    ],
)
def test_ranges_with_few_elements_are_left_in_place_on_a_gpu(facts: Facts, n: int, entry: str) -> None:
    assert applies(facts, n) == entry


def test_another_array_is_taken_over_at_once_or_in_halves() -> None:
    assert list(shares_to_take_over(GPU, 1000, 5 * MOVED_BUCKETS, 7)) == [5 * MOVED_BUCKETS >> i for i in range(4)]
    assert list(shares_to_take_over(GPU, 1000, 200, 7)) == [200]
    most = list(islice(shares_to_take_over(CPU, LAUNCH_ELEMENTS + 1, 1 << 40, 7), 1))
    assert most == [LAUNCH_ELEMENTS // 7]
