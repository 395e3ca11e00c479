"""Tests of slices of inserts and finds: what is drawn, what is counted as wrong, and finds beside bookings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulated.scenarios import emulation
from support.engines import missing, one_of_each
from support.inside import storage_of
from support.planting import planted_among
from warphash.errors import ParameterError
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data.workloads import make
from warphash.lab.figures import slices
from warphash.lab.figures.slices import GROUP, draw_operations, interleaved, measure_slices

STASH = Setting("stadium", {"lanes": "stash"})
CUCKOO = Setting("cuckoo", {})
NO_EMULATION = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")


def measured(device: str, setting: Setting, n: int, operations: int, share: float, seed: int = 1) -> slices.Slices:
    drawn = draw_operations(make(n, "u4", "u4", seed), operations, share, seed)
    return measure_slices(Lab(device, repetitions=1), drawn, setting, 0.8, seed)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_slice_asks_for_the_keys_of_the_slice_before(share: float) -> None:
    workload = make(1000, "u4", "u4", seed=1)
    drawn = draw_operations(workload, 250, share, seed=2)
    assert (drawn.each, drawn.slices, len(drawn.keys)) == (96, 10, 960)
    value_of = dict(zip(workload.keys.tolist(), workload.values.tolist(), strict=True))
    inserted, asked = drawn.woven(drawn.keys, 0 * drawn.keys), drawn.woven(0 * drawn.keys, drawn.asked)
    inserts = drawn.woven(np.ones(960, bool), np.zeros(960, bool))
    first, *others = np.split(inserts, np.cumsum([96, *[192] * 9]))
    assert first.all() and not others[-1].any()
    for kinds in others[:-1]:
        assert (kinds.reshape(-1, 2, GROUP) == [[True], [False]]).all()
    edges = [0, 96, *range(288, 1920, 192), 1920]
    for at in range(1, len(edges) - 1):
        of_before = inserted[edges[at - 1] : edges[at]][inserts[edges[at - 1] : edges[at]]]
        questions = asked[edges[at] : edges[at + 1]][~inserts[edges[at] : edges[at + 1]]]
        present = np.isin(questions, of_before)
        assert present.sum() == share * 96 and len(np.unique(questions)) == 96
        assert not np.isin(questions[~present], workload.keys).any()
    assert [value_of.get(key, 0) for key in drawn.asked.tolist()] == drawn.answers.tolist()
    assert (drawn.there == np.isin(drawn.asked, workload.keys)).all()


def test_too_few_keys_are_named() -> None:
    with pytest.raises(ParameterError, match="at least 64 keys and operations, got 63"):
        draw_operations(make(63, "u4", "u4", seed=1), 1000, 1.0, seed=1)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("ticket_bits", [1, 8, None])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_slices_are_measured_and_right(device: str, ticket_bits: int | None, share: float) -> None:
    setting = CUCKOO if ticket_bits is None else Setting("stadium", {"lanes": "stash", "ticket_bits": ticket_bits})
    made = measured(device, setting, 3000, 600, share)
    assert made.mismatches == 0
    assert min(made.rate, made.concurrency, made.mixing) > 0


@pytest.mark.parametrize("setting", [STASH, CUCKOO], ids=["stadium", "cuckoo"])
@pytest.mark.parametrize("answer", [np.uint32, np.uint8], ids=["value", "flag"])
def test_wrong_answers_are_counted(setting: Setting, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit of each column of answers is flipped."""
    back = slices._Course._back

    def flipping(self: Any, ptr: int, dtype: Any, count: int) -> Any:
        column = back(self, ptr, dtype, count).copy()
        if dtype == answer:
            column[-1] ^= 1
        return column

    monkeypatch.setattr(slices._Course, "_back", flipping)
    made = measured("cpu", setting, 1000, 500, 1.0)
    assert made.mismatches == 3 * 2  # of the slices, and of both ways apart: an answer, and a pair of the table


def test_lost_and_invented_pairs_are_counted() -> None:
    drawn = draw_operations(make(1000, "u4", "u4", seed=1), 500, 1.0, seed=1)
    lab = Lab("cpu", repetitions=1)
    table = lab.empty(make(len(drawn.keys), "u4", "u4", seed=1), STASH, 0.8)
    course = slices._Course(lab, storage_of(table).store.array, drawn, seed=1)
    assert course.run(course.together(), course.check_together)[1] == 0
    lost = len(drawn.keys) - drawn.each  # the last slice but one, of inserts and finds
    found = course.run(course.together()[:-2], course.check_together)[1]
    assert found > 2 * (len(drawn.keys) - lost)
    course.run(course.together(), None)
    course._inserts(0, 10)()  # again
    assert course.check_together() == 10


@NO_EMULATION
def test_the_hybrid_collaborates_from_the_threshold_on() -> None:
    """The kernels of a table at half of its slots: those of clStash, if a slice begins behind that."""
    drawn = draw_operations(make(2000, "u4", "u4", seed=1), 500, 1.0, seed=1)
    lab = Lab("emulated", repetitions=1)
    table = lab.empty(make(len(drawn.keys), "u4", "u4", seed=1), Setting("stadium", {}), 0.8)
    course = slices._Course(lab, storage_of(table).store.array, drawn, seed=1)
    plain, late = (course._engine.program(interleaved(course._array.spec, both)) for both in (False, True))
    used = [course._interleaved(number * drawn.each) for number in range(drawn.slices + 1)]
    before = sum(number * drawn.each < table.stats().slots / 2 for number in range(drawn.slices + 1))
    assert used == [plain] * before + [late] * (drawn.slices + 1 - before) and 1 < before < drawn.slices
    assert len(course.inserts(1)) == 2 and len(course.inserts(drawn.slices)) == drawn.slices + 1
    assert measure_slices(lab, drawn, Setting("stadium", {}), 0.8).mismatches == 0


@NO_EMULATION
@pytest.mark.parametrize(("lanes", "ticket_bits"), [("stash", 1), ("stash", 2), ("clstash", 1), ("clstash", 8)])
def test_no_schedule_shows_a_find_a_slot_under_way(lanes: str, ticket_bits: int) -> None:
    """Each key is found in the slice behind its own, whatever is booked beside."""
    setting = Setting("stadium", {"lanes": lanes, "ticket_bits": ticket_bits})
    for seed in range(1, 7):
        with emulation(str, seed):
            assert measured("emulated", setting, 1200, 400, 0.5, seed).mismatches == 0


@NO_EMULATION
def test_a_find_that_trusts_a_slot_under_way_is_noticed() -> None:
    """A planted bug: a find takes a slot of matching info bits for its own without a look at the key."""
    right, wrong = "return seen.key == key ? end(At::kFound)", "return true ? end(At::kFound)"
    with emulation(planted_among("struct Interleaved", right, wrong), 1):
        assert measured("emulated", STASH, 1200, 400, 1.0).mismatches > 0
