"""The kernels of owners under many schedules; and with each of their guards left out, which must be noticed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from unittest import mock

import numpy as np
import pytest

from emulated.planted import KernelBug
from support.engines import missing
from support.owners import check_order, random_rows
from warphash.errors import WarphashError
from warphash.runtime.abi import OwnerBatch, OwnerSegments
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine
from warphash.runtime.source import OWNERS

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

SCHEDULES = range(1, 13)

Scenario = Callable[[EmulatedEngine], None]


def few_ranks(engine: EmulatedEngine) -> None:
    check_order(engine, random_rows(1_500, 8), 7, [random_rows(1_500, 4)])


def many_ranks(engine: EmulatedEngine) -> None:
    """Many lanes of a warp have elements of one rank: half of the keys are equal."""
    keys = random_rows(3_000, 8)
    keys[::2] = keys[0]
    check_order(engine, keys, 200, [random_rows(3_000, 24)])


def keys_apart_of_few_ranks(engine: EmulatedEngine) -> None:
    keys = random_rows(1_500, 8)
    keys[::2], keys[1::4] = keys[0], keys[1]
    check_order(engine, keys, 3, [random_rows(1_500, 4), random_rows(1_500, 24)], apart=keys[:2])


def keys_apart_of_many_ranks(engine: EmulatedEngine) -> None:
    keys = random_rows(1_500, 4)
    keys[::2], keys[1::4] = keys[0], keys[1]
    check_order(engine, keys, 100, [random_rows(1_500, 4)], apart=np.concatenate([keys[:2], random_rows(3, 4)]))


def sums_of_several_tiles(engine: EmulatedEngine) -> None:
    """A block sums up the counts of more segments than its threads have at a time."""
    ranks, segments = 3, 5_000
    counts = np.random.default_rng(1).integers(0, 100, (ranks, segments), np.uint32)
    starts, sizes, out = engine.from_host(counts), engine.allocate(4 * ranks), engine.allocate(8 * ranks)
    table = OwnerSegments(run_rows=1, ranks=ranks, segments=segments, starts=starts.ptr, sizes=sizes.ptr)
    engine.program(OWNERS).run_blocks("sum_owners", table, OwnerBatch(n=ranks, counts=out.ptr), ranks)
    sums, before = counts.sum(axis=1), np.cumsum(counts, axis=1) - counts
    assert (engine.to_host(starts.ptr, np.uint32, counts.size).reshape(counts.shape) == before).all()
    assert engine.to_host(sizes.ptr, np.uint32, ranks).tolist() == sums.tolist()
    assert engine.to_host(out.ptr, np.int64, ranks).tolist() == sums.tolist()


Bug = partial(KernelBug, among="class ManyCounters")

BUGS = [
    Bug(
        "a peer reads a counter behind the first one's addition",
        "before = bit_count(peers & lanes_before());\n    warp_barrier();",
        "before = bit_count(peers & lanes_before());",
        many_ranks,
    ),
    Bug(
        "a counter is read and written in two steps",
        "atomic_add(counters_ + owner, 1u)",
        "store_relaxed(counters_ + owner, load_relaxed(counters_ + owner) + 1)",
        many_ranks,
    ),
    Bug(
        "lanes that have no element are counted",
        "u32 of_mine = lanes;",
        "u32 of_mine = ~0u;",
        few_ranks,
    ),
    Bug(
        "peers behind a lane count as before it",
        "bit_count(peers & lanes_before());\n    mine_ +=",
        "bit_count(peers & ~(2 * lanes_before() + 1));\n    mine_ +=",
        few_ranks,
    ),
    Bug(
        "the elements of a key apart behind the first one have a place, too",
        "return before == 0 || (kRestores && !once) ? place_of_key : kNoPlace;",
        "return place_of_key + (kRestores ? 0 : before);",
        keys_apart_of_few_ranks,
    ),
    Bug(
        "keys apart of later ranks have places in the run of an earlier one",
        "if (rank / kWarpLanes == of_first / kWarpLanes) mine_ =",
        "if (of_first == 0) mine_ =",
        keys_apart_of_many_ranks,
    ),
    Bug(
        "a key apart without elements has a row",
        "const bool has_elements = pointer<const u32>(t.sizes)[t.ranks + key];",
        "const bool has_elements = true;",
        keys_apart_of_many_ranks,
    ),
    Bug(
        "the sums of the next tile overwrite those of this one",
        "    block_barrier();  // before the sums of the next tile are written\n",
        "",
        sums_of_several_tiles,
    ),
    Bug(
        "sums are read ahead of their writing",
        "if (lane() == 0) sums[warp] = sum;\n      block_barrier();",
        "if (lane() == 0) sums[warp] = sum;",
        sums_of_several_tiles,
    ),
]
SCENARIOS = (few_ranks, many_ranks, keys_apart_of_few_ranks, keys_apart_of_many_ranks, sums_of_several_tiles)


def failure(scenario: Scenario, engine: EmulatedEngine, seed: int) -> str | None:
    """Run one scenario under one schedule; what went wrong, if anything did."""
    with mock.patch.object(emulated, "schedule_seed", seed):
        try:
            scenario(engine)
        except (AssertionError, WarphashError) as error:
            return f"{scenario.__name__}, schedule_seed {seed}: {str(error) or type(error).__name__}"
    return None


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_schedule_changes_an_order(scenario: Scenario) -> None:
    engine = EmulatedEngine()
    assert [said for seed in (0, *SCHEDULES) if (said := failure(scenario, engine, seed))] == []


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_noticed(bug: KernelBug) -> None:
    engine = EmulatedEngine(bug.plant)
    assert any(failure(bug.scenario, engine, seed) for seed in SCHEDULES), f"nobody noticed that {bug.name}"
