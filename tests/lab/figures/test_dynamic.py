"""Tests of the dynamic workload: the paper's batches, an oracle that sees every error, load factors within bounds."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.elsewhere import ELSEWHERE, LabElsewhere, bare, there
from support.engines import one_of_each
from warphash import HashMap
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data.dynamic_sets import pairs_of
from warphash.lab.figures import dynamic_run
from warphash.lab.figures.dynamic import CallSequence, Dynamic, Held, draw
from warphash.lab.figures.dynamic_run import bounded, measure_dynamic
from warphash.storage.subtables.array import SubtableArray

LAB = Lab("cpu", repetitions=1)
COM = pairs_of("com", 30_000, seed=3)
SHAPE = Dynamic(erases_per_insert=0.3, finds_per_insert=0.5)


def sequence(shape: Dynamic = SHAPE, batch: int = 700) -> CallSequence:
    return draw(LAB, COM, shape, batch, seed=5)


def answers(drawn: CallSequence) -> list[tuple[np.ndarray, ...]]:
    """The answers of a dict to a sequence. If a batch inserts a key several times, the last value counts."""
    model: dict[int, int] = {}
    found = []
    for step in drawn.steps:
        flags = np.zeros(len(step.ids), bool)
        if step.verb == "find":
            values = np.array([model.get(key, 0) for key in step.ids.tolist()], np.uint32)
            found.append((values, np.array([key in model for key in step.ids.tolist()])))
            continue
        for i in range(len(flags) - 1, -1, -1):
            key = int(step.ids[i])
            flags[i] = (key in model) == (step.verb == "erase")
            if step.verb == "erase":
                model.pop(key, None)
            elif flags[i]:
                assert step.values is not None
                model[key] = int(step.values[i])
        found.append((flags,))
    return found


def test_batches_are_those_of_the_paper() -> None:
    steps = sequence().steps
    assert [step.verb for step in steps[:3]] == ["insert", "find", "erase"]
    assert [len(step.ids) for step in steps[:3]] == [700, 350, 210]
    once, again = ([step for step in steps if step.again == which] for which in (False, True))
    assert len(once) == len(again) == 3 * -(-len(COM.keys) // 700)
    assert (np.concatenate([step.arguments[0] for step in once if step.verb == "insert"]) == COM.keys).all()
    for first, second in zip(once, again, strict=True):
        assert (second.verb, first.verb) in (("erase", "insert"), ("find", "find"), ("insert", "erase"))
        assert (first.ids == second.ids).all() and (first.arguments[0] == second.arguments[0]).all()
    assert not any(step.again for step in sequence(Dynamic(again=False)).steps)
    inserts = sequence(Dynamic(erases_per_insert=0, finds_per_insert=0, again=False)).steps
    assert {step.verb for step in inserts} == {"insert"}


@pytest.mark.parametrize("r", [0.1, 0.5, 1.0])
def test_each_erase_is_of_a_key_that_is_there(r: float) -> None:
    drawn = sequence(Dynamic(erases_per_insert=r))
    told = answers(drawn)
    for step, answer in zip(drawn.steps, told, strict=True):
        assert step.again or step.verb != "erase" or answer[0].all()
    if r < 1:
        assert any(not answer[1].all() for step, answer in zip(drawn.steps, told, strict=True) if step.verb == "find")


def test_right_answers_are_right_whichever_copy_wins() -> None:
    drawn = sequence()
    held = Held(drawn.distinct, np.dtype(np.uint32))
    assert sum(held.mismatches(*both) for both in zip(drawn.steps, answers(drawn), strict=True)) == 0
    keys, values = held.to_arrays()
    assert len(keys) == len(values) == held.size > 0


def test_every_wrong_answer_is_counted() -> None:
    drawn, rng = sequence(), np.random.default_rng(1)
    right = answers(drawn)
    for number in rng.integers(0, len(right), 60).tolist():
        step, answer = drawn.steps[number], tuple(column.copy() for column in right[number])
        at = int(rng.integers(0, len(step.ids)))
        answer[-1][at] ^= True
        held = Held(drawn.distinct, np.dtype(np.uint32))
        wrong = [held.mismatches(*both) for both in zip(drawn.steps[:number], right, strict=False)]
        assert sum(wrong) == 0
        assert held.mismatches(step, answer) == 1
    found = next(i for i, step in enumerate(drawn.steps) if step.verb == "find" and right[i][1].any())
    held = Held(drawn.distinct, np.dtype(np.uint32))
    for both in zip(drawn.steps[:found], right, strict=False):
        held.mismatches(*both)
    values, there = right[found]
    assert held.mismatches(drawn.steps[found], (values + there, there)) == there.sum()
    assert held.mismatches(drawn.steps[found], (values[1:], there[1:])) == len(there)


@pytest.mark.parametrize("r", [0.0, 0.3, 1.0])
def test_a_plan_is_the_same_wherever_it_is_drawn(r: float) -> None:
    shape = Dynamic(erases_per_insert=r)
    here, elsewhere = sequence(shape), draw(LabElsewhere("cpu"), COM, shape, 700, seed=5)
    assert (bare(elsewhere.distinct) == here.distinct).all() and elsewhere.largest == here.largest
    for one, other in zip(here.steps, elsewhere.steps, strict=True):
        assert (one.batch, one.again, one.verb) == (other.batch, other.again, other.verb)
        columns = [[step.ids, *([] if step.values is None else [step.values])] for step in (one, other)]
        for mine, its in zip(*columns, strict=True):
            assert type(its) is type(there(its)) and its.dtype == mine.dtype and (bare(its) == mine).all()
        for mine, its in zip(one.arguments, other.arguments, strict=True):
            assert its.dtype == mine.dtype and (its == mine).all()


def test_answers_are_checked_where_they_are() -> None:
    drawn, right = draw(LabElsewhere("cpu"), COM, SHAPE, 700, seed=5), answers(sequence())
    for wrong in (None, 0, 13, 14, len(right) - 1):
        held = Held(drawn.distinct, np.dtype(np.uint32), ELSEWHERE)
        found = 0
        for number, (step, answer) in enumerate(zip(drawn.steps, right, strict=True)):
            *values, flags = (there(column.copy()) for column in answer)
            flags[:3] ^= number == wrong
            found += held.mismatches(step, (*values, flags))
        assert found == (0 if wrong is None else 3)


@pytest.mark.parametrize("design", ["linear_probing", "megakv", "slab", "bucketed_cuckoo", "dynamic_cuckoo"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.4, 0.9), (0.4, 0.75)])
def test_tables_are_measured_and_verified(design: str, alpha: float, beta: float) -> None:
    drawn = sequence()
    run = measure_dynamic(LAB, COM, drawn, Setting(design, {}), Dynamic(alpha, beta))
    assert run.mismatches == 0 and len(run.laps) == len(drawn.steps)
    assert any(lap.resizing_s for lap in run.laps) and not any(lap.resizing_s for lap in run.of("find"))
    assert sum(len(batch) for batch in run.batches()) == len(run.laps) and len(run.batches()) == 2 * 5
    assert sum(sum(lap.seconds for lap in run.of(verb)) for verb in ("insert", "find", "erase")) == pytest.approx(
        run.seconds
    )
    if design in ("linear_probing", "dynamic_cuckoo"):  # these two keep the requested bounds
        erased = [lap.load_factor for lap in run.of("erase") if lap.size > 500]
        assert min(erased) >= min(alpha, beta / 2) and max(lap.load_factor for lap in run.laps) <= beta + 0.01


@pytest.mark.parametrize("device", one_of_each("cuda"))
def test_a_gpu_draws_the_same_batches_and_sees_a_wrong_answer(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(device, repetitions=1)
    drawn, here = draw(lab, COM, SHAPE, 700, seed=5), sequence()
    for its, step in zip(drawn.steps, here.steps, strict=True):
        assert its.verb == step.verb
        for one, other in zip([its.ids, *its.arguments], [step.ids, *step.arguments], strict=True):
            assert one.dtype == other.dtype and (lab.back(one) == other).all()
    assert measure_dynamic(lab, COM, drawn, Setting("dynamic_cuckoo", {}), SHAPE).mismatches == 0
    insert, lost = HashMap.insert, lab.here(COM.keys[1000:1001])

    def forget_one(self: Any, *columns: Any, **options: Any) -> Any:
        flags = insert(self, *columns, **options)
        self.erase(lost)
        return flags

    monkeypatch.setattr(HashMap, "insert", forget_one)
    assert measure_dynamic(lab, COM, drawn, Setting("dynamic_cuckoo", {}), SHAPE).mismatches >= 1


def test_a_table_that_loses_a_key_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    insert, lost = HashMap.insert, COM.keys[1000]

    def forget_one(self: Any, keys: Any, values: Any, **options: Any) -> Any:
        flags = insert(self, keys, values, **options)
        self.erase(keys[keys == lost])
        return flags

    monkeypatch.setattr(HashMap, "insert", forget_one)
    assert measure_dynamic(LAB, COM, sequence(), Setting("linear_probing", {}), SHAPE).mismatches >= 1


def test_a_table_that_tells_a_wrong_size_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    stats, drawn = HashMap.stats, sequence()
    monkeypatch.setattr(HashMap, "stats", lambda self: replace(stats(self), size=len(self) + 1))
    assert measure_dynamic(LAB, COM, drawn, Setting("linear_probing", {}), SHAPE).mismatches == len(drawn.steps)


def test_bounds_are_parameters_or_load_bounds() -> None:
    assert bounded(Setting("dyhash", {"subtables": 4}), 0.4, 0.9).parameters == {
        "subtables": 4,
        "alpha": 0.4,
        "beta": 0.9,
    }
    assert bounded(Setting("megakv", {}), 0.4, 0.75).parameters == {"load_bounds": (0.375, 0.75), "attempts": 1}


def test_what_resizing_took_is_measured_from_its_begin_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each resize of the subtables takes 3 ms longer here, and each other step as long as it does."""
    enlarge = SubtableArray.enlarge
    calls: list[int] = []

    def slow(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        time.sleep(3e-3)
        return enlarge(self, *arguments)

    monkeypatch.setattr(SubtableArray, "enlarge", slow)
    monkeypatch.setattr(dynamic_run, "_ENOUGH_S", math.inf)
    shape = replace(SHAPE, erases_per_insert=0.0, again=False)
    workload = pairs_of("random", 20_000, 1)
    drawn = draw(LAB, workload, shape, 1000, 1)
    run = measure_dynamic(LAB, workload, drawn, Setting("dynamic_cuckoo", {}), shape)
    resizes = len(calls) // 4  # a pass that waits, and three that are timed
    inserts = run.of("insert")
    assert run.mismatches == 0 and resizes > 3
    assert 3e-3 * resizes <= run.resizing("insert") <= sum(lap.seconds for lap in inserts)
    assert run.resizing("find") == 0
    assert sum(lap.resizing_s > 0 for lap in inserts) <= resizes < len(inserts)
