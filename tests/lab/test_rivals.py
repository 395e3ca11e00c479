"""Tests of rivals: every installed rival gives right answers, and the contest verifies them."""

import numpy as np
import pytest

from warphash.lab import contest, workloads
from warphash.lab.rivals import available

RIVALS = list(available())


@pytest.mark.parametrize("rival", RIVALS, ids=lambda r: r.name)
@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int64"])
def test_a_rival_finds_what_is_there(rival, dtype):
    workload = workloads.make(3_000, dtype, "uint32", seed=1)
    asked, expected = workloads.queries(workload, 0.5, 3_000, seed=2)
    found = rival.find(rival.build(workload.keys, workload.values), asked)
    assert np.array_equal(np.asarray(found), expected)


def test_a_contest_is_held_with_us_first():
    held = list(contest.hold(workloads.make(3_000, "uint32", "uint32", seed=1), 0.8))
    assert [c.name for c in held] == ["warphash", *(r.name for r in RIVALS)]
    assert all(c.mismatches == 0 and (c.build_per_s is None or c.build_per_s > 0) and c.present_per_s > 0 for c in held)


def test_a_rival_is_not_asked_for_more_than_it_bears(monkeypatch):
    shy = [rival for rival in RIVALS if rival.most_keys < 1 << 30]
    assert {"dict"} <= {rival.name for rival in shy} <= {"dict", "cereggii AtomicDict"}
