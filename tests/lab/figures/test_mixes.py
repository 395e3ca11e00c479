"""Tests of mixed batches: the right results hold in any order of the operations, and a wrong answer is counted."""

from __future__ import annotations

import numpy as np
import pytest

from warphash import Operation, ParameterError
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data import workloads
from warphash.lab.figures.fill import Fill
from warphash.lab.figures.mixes import Mix, MixedBatch, draw, measure_mix

GAMMAS = ("mix 50 50 0 0", "mix 20 20 30 30", "mix 10 10 40 40")
EDGES = ("mix 100 0 0 0", "mix 0 100 0 0", "mix 0 0 100 0", "mix 0 0 0 100")
KEYS = workloads.make(3000, "uint32", "uint32", seed=4)


def obeyed(batch: MixedBatch, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[int, int]]:
    """The answers of a dict to the operations in some order, and the pairs that it holds at the end."""
    assert KEYS.values is not None
    model = dict(zip(KEYS.keys.tolist(), KEYS.values.tolist(), strict=True))
    values, flags = np.zeros(len(batch.keys), np.uint32), np.zeros(len(batch.keys), bool)
    for i in order.tolist():
        key = int(batch.keys[i])
        flags[i] = (key in model) == (batch.operations[i] != Operation.INSERT)
        if batch.operations[i] == Operation.FIND:
            values[i] = model.get(key, 0)
        elif batch.operations[i] == Operation.INSERT:
            model.setdefault(key, int(batch.values[i]))
        else:
            model.pop(key, None)
    return values, flags, model


@pytest.mark.parametrize("operation", GAMMAS + EDGES)
def test_any_order_has_the_same_results(operation: str) -> None:
    batch = draw(KEYS, 2000, Mix.of(operation), seed=7)
    rng = np.random.default_rng(1)
    for order in (np.arange(2000), np.arange(2000)[::-1], rng.permutation(2000), np.argsort(batch.operations)):
        values, flags, model = obeyed(batch, order)
        assert batch.mismatches(values, flags) == 0
        assert model == dict(zip(batch.kept_keys.tolist(), batch.kept_values.tolist(), strict=True))


def test_shares_are_those_of_the_mix_and_come_in_no_order() -> None:
    batch = draw(KEYS, 2000, Mix.of("mix 20 30 40 10"), seed=7)
    assert np.bincount(batch.operations, minlength=4).tolist() == [1000, 400, 0, 600]
    assert (batch.operations == Operation.FIND).sum() - (batch.right_flags & (batch.operations == 0)).sum() == 200
    assert (np.bincount(batch.operations[:1000], minlength=4) > 100).sum() == 3
    assert not np.array_equal(batch.keys, draw(KEYS, 2000, Mix.of("mix 20 30 40 10"), seed=8).keys)


def test_a_wrong_result_is_one_mismatch() -> None:
    batch = draw(KEYS, 500, Mix.of(GAMMAS[1]), seed=7)
    for at in range(0, 500, 50):
        values, flags = batch.right_values.copy(), batch.right_flags.copy()
        values[at] += 1
        assert batch.mismatches(values, flags) == 1
        flags[at] ^= True
        assert batch.mismatches(values, flags) == 1
    assert batch.mismatches(batch.right_values[1:], batch.right_flags[1:]) == 500


@pytest.mark.parametrize("operation", ["mix", "mix 50 50", "mix 50 50 1 0", "mix 150 -50 0 0", "find 50 50 0 0"])
def test_what_is_no_mix(operation: str) -> None:
    with pytest.raises(ParameterError, match="four shares that make 100"):
        Mix.of(operation)


@pytest.mark.parametrize("operation", ["mix 0 100 0 0", "mix 100 0 0 0", "mix 90 0 0 10"])
def test_too_many_operations_for_the_keys(operation: str) -> None:
    with pytest.raises(ParameterError, match="3,400 operations"):
        draw(KEYS, 3400, Mix.of(operation), seed=7)


@pytest.mark.parametrize("operation", GAMMAS)
@pytest.mark.parametrize(
    ("design", "fill"),
    [
        ("slab", Fill("utilisation", 0.4)),
        ("slab", Fill("utilisation", 0.8)),
        ("lock_free_chaining", Fill("buckets", 700)),
    ],
)
def test_tables_are_measured_and_verified(design: str, fill: Fill, operation: str) -> None:
    lab = Lab("cpu", repetitions=2)
    setting, load_factor = fill.applied(Setting(design, {"rebucket": False}), len(KEYS.keys), 8)
    measured = measure_mix(lab, KEYS, setting, load_factor, operation, 2500)
    assert measured.mismatches == 0
    assert (measured.operation, measured.design, measured.n) == (operation, design, 3000)
    assert measured.rate_per_s == pytest.approx(2500 / measured.seconds)


def test_several_tables_share_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the batches of its own; a wrong answer of any of them is seen."""
    lab = Lab("cpu", repetitions=2)
    setting = Setting("lock_free_chaining", {"rebucket": False, "buckets": 700})
    measured = measure_mix(lab, KEYS, setting, None, GAMMAS[1], 700, tables=3)
    assert measured.mismatches == 0
    assert measured.rate_per_s == pytest.approx(3 * 4 * 700 / measured.seconds)
    empty, made = lab.empty, []

    def with_a_lost_key(*arguments, **options):
        table = empty(*arguments, **options)
        made.append(table)
        if len(made) == 3:
            whole = table.execute
            monkeypatch.setattr(table, "execute", lambda *batch: (whole(*batch)[0], np.zeros(700, bool)), raising=False)
        return table

    monkeypatch.setattr(lab, "empty", with_a_lost_key)
    assert measure_mix(lab, KEYS, setting, None, GAMMAS[1], 700, tables=3).mismatches > 700


def test_a_table_that_loses_a_key_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab("cpu", repetitions=1)
    whole = lab.empty

    def forgetful(*arguments, **options):
        table = whole(*arguments, **options)
        monkeypatch.setattr(type(table), "to_arrays", lambda self, like=None: (self.keys()[1:], self.values()[1:]))
        monkeypatch.setattr(type(table), "values", lambda self, like=None: self.find(self.keys())[0])
        return table

    monkeypatch.setattr(lab, "empty", forgetful)
    assert measure_mix(lab, KEYS, Setting("slab", {}), 0.5, GAMMAS[1], 1000).mismatches == 1
