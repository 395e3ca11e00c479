"""The kernels that rank keys, under many schedules; and with each of their guards left out, which must be noticed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from unittest import mock

import numpy as np
import pytest

from emulated.planted import KernelBug
from support.engines import missing
from support.types import Array
from warphash.errors import WarphashError
from warphash.runtime.abi import Flag, Ranks, TouchBatch
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine
from warphash.runtime.source import BOUNDED
from warphash.storage.bounded.least import keys_of_least_rank
from warphash.storage.bounded.sketch import Sketch

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

SCHEDULES = range(1, 13)

Scenario = Callable[[EmulatedEngine, np.random.Generator], None]


def accesses_in_one_line(engine: EmulatedEngine, random: np.random.Generator) -> None:
    """Keys that share words of counters are recorded at one time: no count is lost."""
    keys = random.permutation(1000)[:40].astype("u8")
    sketch, held, out = Sketch(engine, 8, 8, seed=5), engine.from_host(keys), engine.allocate(8 * 40)
    for turn in range(1, 5):
        sketch.record(held.ptr, 40, None)
        sketch.rank(held.ptr, 40, out.ptr, None)
        assert (engine.to_host(out.ptr, "u8", 40) >> np.uint64(56) >= turn).all()


def rows_touched_by_many(engine: EmulatedEngine, random: np.random.Generator) -> None:
    """Elements raise the ranks of few rows at one time: the greatest rank of each row stays."""
    rows, n = 5, 300
    numbers, given = random.integers(0, rows, n), random.integers(1, 1000, n)
    ranks = engine.from_host(np.full(rows, 10, "u8"))
    arrays = [numbers.astype("u8"), given.astype("u8"), np.full(n, Flag.CHANGED, "u1")]
    held = [engine.from_host(array) for array in arrays]
    batch = TouchBatch(n=n, numbers=held[0].ptr, given=held[1].ptr, flags=held[2].ptr, flag=Flag.CHANGED, renews=1)
    engine.program(BOUNDED).run("touch", Ranks(ranks=ranks.ptr), batch, n)
    wanted = [max(10, *given[numbers == row].tolist()) for row in range(rows)]
    assert engine.to_host(ranks.ptr, "u8", rows).tolist() == wanted


def least_of(engine: EmulatedEngine, ranks: Array, k: int) -> Array:
    """The elements that are chosen as those of the ``k`` least ranks."""
    keys, ranked = engine.from_host(np.arange(len(ranks), dtype="u8")), engine.from_host(ranks)
    chosen, _ = keys_of_least_rank(engine, keys, 8, ranked, len(ranks), k, None)
    return engine.to_host(chosen.ptr, "u8", k)


def few_of_many_equal_ranks(engine: EmulatedEngine, random: np.random.Generator) -> None:
    """Of many elements of one rank, just so many are chosen as are to leave, each once."""
    n, k = 500, int(random.integers(1, 300))
    ranks = random.integers(0, 2, n).astype("u8")
    chosen = least_of(engine, ranks, k)
    assert len(set(chosen.tolist())) == k and chosen.max() < n
    assert np.sort(ranks[chosen]).tolist() == np.sort(ranks)[:k].tolist()


def ranks_counted_by_many(engine: EmulatedEngine, random: np.random.Generator) -> None:
    """Many elements count into few bins: the rank at which k keys leave is exact."""
    n = 64 * 200
    ranks = random.integers(0, 4, n).astype("u8") << np.uint64(50)
    for k in (1, n // 2, n - 1):
        assert np.sort(ranks[least_of(engine, ranks, k)]).tolist() == np.sort(ranks)[:k].tolist()


Bug = partial(KernelBug, among="struct ByFrequency")

BUGS = [
    Bug(
        "a count overwrites the counts beside it",
        "compare_exchange_word(key.word(first), words[first], raised) != words[first]",
        "(store_relaxed(key.word(first), raised), false)",
        accesses_in_one_line,
    ),
    Bug(
        "a count that is raised overwrites the counts beside it",
        "const u32 before = compare_exchange_word(at, seen, (seen & ~(255u << shift)) | least << shift);",
        "const u32 before = seen; store_relaxed(at, (seen & ~(255u << shift)) | least << shift);",
        accesses_in_one_line,
    ),
    Bug(
        "an older use overwrites a newer one",
        "const u64 before = compare_exchange_word(at, seen, rank);",
        "const u64 before = seen; store_relaxed(at, rank);",
        rows_touched_by_many,
    ),
    Bug(
        "a ticket is looked at and taken in two steps",
        "load_relaxed(ticket) < b.ties && fetch_add(ticket, u64(1)) < b.ties",
        "load_relaxed(ticket) < b.ties && (fetch_add(ticket, u64(1)), true)",
        few_of_many_equal_ranks,
    ),
    Bug(
        "a bin is read and written in two steps",
        "atomic_add(&histogram[bin], run);\n        run = 0;",
        "store_relaxed(&histogram[bin], load_relaxed(&histogram[bin]) + run);\n        run = 0;",
        ranks_counted_by_many,
    ),
]
SCENARIOS = (accesses_in_one_line, rows_touched_by_many, few_of_many_equal_ranks, ranks_counted_by_many)


def failure(scenario: Scenario, engine: EmulatedEngine, seed: int) -> str | None:
    """Run one scenario under one schedule; what went wrong, if anything did."""
    with mock.patch.object(emulated, "schedule_seed", seed):
        try:
            scenario(engine, np.random.default_rng(seed))
        except (AssertionError, WarphashError, IndexError) as error:
            return f"{scenario.__name__}, schedule_seed {seed}: {str(error) or type(error).__name__}"
    return None


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_schedule_changes_what_ranks_promise(scenario: Scenario) -> None:
    engine = EmulatedEngine()
    assert [said for seed in (0, *SCHEDULES) if (said := failure(scenario, engine, seed))] == []


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_noticed(bug: KernelBug) -> None:
    engine = EmulatedEngine(bug.plant)
    assert any(failure(bug.scenario, engine, seed) for seed in SCHEDULES), f"nobody noticed that {bug.name}"
