"""Each race that a kernel guards against, without the guard: the scenarios must notice, or they prove nothing."""

from __future__ import annotations

import pytest

from emulated import (
    bugs_of_buckets,
    bugs_of_lists,
    bugs_of_quotients,
    bugs_of_ranges,
    bugs_of_subtables,
    bugs_of_tickets,
)
from emulated.planted import Bug
from emulated.scenarios import failure
from support.engines import missing

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

SCHEDULES = 30
"""To find a bug in; most show in the first three."""

BUGS = [
    *bugs_of_buckets.BUGS,
    *bugs_of_lists.BUGS,
    *bugs_of_quotients.BUGS,
    *bugs_of_ranges.BUGS,
    *bugs_of_subtables.BUGS,
    *bugs_of_tickets.BUGS,
]


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, id=str(bug), marks=[pytest.mark.slow] * bool(i % 8)) for i, bug in enumerate(BUGS)]
)
def test_a_planted_bug_is_noticed(bug: Bug) -> None:
    seeds = range(1, 1 + SCHEDULES)
    found = next((said for seed in seeds if (said := failure(bug.scenario, bug.races, seed))), None)
    assert found, f"{SCHEDULES} schedules, and nobody noticed that {bug.name}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    {(b.scenario.__name__, str(b.races), b.locks): b.without() for b in BUGS}.values(),
    ids=str,
)
def test_without_a_bug_nothing_is_noticed(bug: Bug) -> None:
    """What is noticed above is the bug, and not that the device of these tests has little patience."""
    assert [failure(bug.scenario, bug.races, seed) for seed in (1, 2)] == [None, None]
