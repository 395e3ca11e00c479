"""Tests of timing one resize, of counting keys without a slot, and of the data sets for both."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from support.elsewhere import LabElsewhere
from support.inside import parts_of
from warphash import HashMap, ParameterError
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data import workloads
from warphash.lab.data.datasets import hashed_line
from warphash.lab.data.dynamic_sets import SETS, pairs_of
from warphash.lab.figures.dynamic import Dynamic
from warphash.lab.figures.failures import measure_failures
from warphash.lab.figures.resizes import measure_resize, measure_wait

LAB = Lab("cpu", repetitions=2)
KEYS = workloads.make(20_000, "uint32", "uint32", seed=4)


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize(
    ("design", "parameters", "share"),
    [("linear_probing", {}, 1.0), ("bucketed_cuckoo", {}, 1.0)]
    + [("dynamic_cuckoo", {"subtables": d}, 1 / d) for d in (2, 3, 4)],
)
def test_a_resize_moves_what_the_slots_tell(design: str, parameters: dict[str, int], share: float, up: bool) -> None:
    shape = Dynamic(0.4, 0.88)
    made = measure_resize(LAB, KEYS, Setting(design, parameters), shape, up=up)
    assert made is not None and made.mismatches == 0 and made.seconds > 0
    assert made.moved == pytest.approx(share * 18_000, rel=0.1)
    again = measure_resize(LAB, KEYS, Setting(design, parameters), shape, up=up, by_insert=True)
    assert again is not None and again.moved == made.moved and again.mismatches == 0


def test_a_table_that_cannot_be_so_full_has_no_resize_to_measure() -> None:
    assert measure_resize(LAB, KEYS, Setting("megakv", {}), Dynamic(0.4, 0.9), up=True) is None


def test_a_resize_that_loses_a_key_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    erase = HashMap.erase
    monkeypatch.setattr(HashMap, "erase", lambda self, keys: erase(self, np.append(keys, KEYS.keys[7]))[:-1])
    made = measure_resize(LAB, KEYS, Setting("linear_probing", {}), Dynamic(), up=False)
    assert made is not None and made.mismatches == 1


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("lab", [LAB, LabElsewhere("cpu")])
def test_lookups_beside_a_resize_wait_and_are_right(lab: Lab, up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch that resizes is held up, with the table's lock: a lookup waits as long."""
    held_s = 0.05
    verb = "insert" if up else "erase"
    update = getattr(HashMap, verb)

    def slowly(self: Any, keys: Any, *rest: Any, **options: Any) -> Any:
        if len(keys) > 1:
            return update(self, keys, *rest, **options)
        parts_of(self).guarded.lock.write(time.sleep, held_s)
        return update(self, keys, *rest, **options)

    monkeypatch.setattr(HashMap, verb, slowly)
    made = measure_wait(lab, KEYS, Setting("dynamic_cuckoo", {}), Dynamic(0.4, 0.88), up=up)
    assert made is not None and made.mismatches == 0
    assert made.usual_s < held_s / 2 < made.longest_s


def test_wrong_answers_beside_a_resize_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    find = HashMap.find

    def forgetful(self: Any, keys: Any) -> Any:
        values, found = find(self, keys)
        found[3] = False
        return values, found

    monkeypatch.setattr(HashMap, "find", forgetful)
    made = measure_wait(LAB, KEYS, Setting("dynamic_cuckoo", {}), Dynamic(0.4, 0.88), up=True)
    assert made is not None and made.mismatches >= 100  # one of each call, and 50 calls before each resize
    with pytest.raises(ZeroDivisionError):
        monkeypatch.setattr(HashMap, "find", lambda *_: 1 // 0)
        measure_wait(LAB, KEYS, Setting("dynamic_cuckoo", {}), Dynamic(0.4, 0.88), up=True)


FAILURES: list[Any] = [
    ("megakv", 0.75, 0.42, 0.14),
    ("megakv", 0.8, 0.79, 0.16),
    ("megakv", 0.85, 1.4, 0.12),
    ("megakv", 0.9, 2.4, 0.12),
    ("megakv", 0.95, 3.9, 0.12),
    ("linear_probing", 0.95, 0, 0),
    *(("cuckoo", load_factor, 0, 0) for load_factor in (0.75, 0.8, 0.85)),
    ("cuckoo", 0.9, 0, 0.002),  # a key or two: it depends on the order in which threads insert
    ("cuckoo", 0.95, 0, 0.1),
    *(("dynamic_cuckoo", load_factor, 0, 0) for load_factor in (0.75, 0.8, 0.85, 0.9, 0.95)),
]


@pytest.mark.parametrize(("design", "load_factor", "per_cent", "within"), FAILURES)
def test_keys_without_a_slot_are_those_of_the_paper(
    design: str, load_factor: float, per_cent: float, within: float
) -> None:
    """Table 7, RAND (docs/fidelity.md#dyhash-failures-megakv and the rows beside)."""
    made = measure_failures(LAB, pairs_of("rand", 400_000, seed=1), Setting(design, {}), load_factor)
    assert made.keys == 400_000 and made.mismatches == 0
    assert abs(100 * made.failed / made.keys - per_cent) <= within


@pytest.mark.parametrize("lab", [LAB, LabElsewhere("cpu")])
def test_keys_that_a_refused_batch_names_are_counted_once(lab: Lab) -> None:
    """Linear as the paper has it: about as many keys as `tests/designs/test_linear_probing.py` counts."""
    setting = Setting("linear_probing", {"slots_per_bucket": 1, "probe_limit": 512})
    made = measure_failures(lab, pairs_of("rand", 400_000, seed=1), setting, 0.95)
    assert made.mismatches == 0 and 0.03 < 100 * made.failed / made.keys < 0.5


@pytest.mark.parametrize("name", SETS)
def test_sets_are_in_proportion(name: str) -> None:
    made, full = pairs_of(name, 200_000, seed=2), SETS[name]
    copies = np.unique(made.keys, return_counts=True)[1]
    assert len(made.keys) == round(full.pairs / 500) == len(made.values)
    assert len(copies) == pytest.approx(full.unique / 500, rel=0.001) and copies.max() == full.most_copies
    assert not np.isin(made.absent, made.keys).any() and made.keys.dtype == np.uint32


def test_line_has_the_keys_of_tpch() -> None:
    made = pairs_of("line", 100_000, seed=1)
    assert len(made.keys) == 50_000 and np.isin(made.keys, hashed_line(len(np.unique(made.keys)))).all()


@pytest.mark.parametrize("per_cent", [0, 5, 100])
def test_one_key_that_comes_often(per_cent: int) -> None:
    made = pairs_of(f"hot {per_cent}", 2000, seed=2)
    copies = np.sort(np.unique(made.keys, return_counts=True)[1])
    assert len(made.keys) == 2000 and copies[-1] == max(1, 20 * per_cent) and (copies[:-1] == 1).all()


def test_there_is_no_other_set() -> None:
    with pytest.raises(ParameterError, match=r"no data set 'lime'.*line"):
        pairs_of("lime", 10, seed=1)
