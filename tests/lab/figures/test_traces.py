"""Tests of the trace of HH Hash: its pairs, the rates of a table, and the contest with tables on a CPU."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from warphash import HashMap
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.figures import traces
from warphash.lab.figures.traces import measure_contest, measure_trace, pairs
from warphash.lab.rivals import available

HH = Setting("two_level_cuckoo", {})


def test_the_pairs_are_those_of_the_authors() -> None:
    keys, values = pairs(4)
    assert keys.tolist() == [1, 2, 3, 4] and values.tolist() == [5, 8, 11, 14]
    assert keys.dtype == values.dtype == np.uint32


@pytest.mark.parametrize("setting", [HH, Setting("bucketed_cuckoo", {}), Setting("two_level_cuckoo", {"hashes": 3})])
@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
def test_a_trace_is_measured_and_right(device: str, setting: Setting) -> None:
    made = measure_trace(Lab(device, repetitions=1), setting, 0.35, 1001)
    assert made.mismatches == 0
    assert min(made.build, made.insert, made.lookup, made.erase) > 0


def test_wrong_answers_are_counted() -> None:
    class Forgetful(HashMap):
        def find(self, keys: Any, default: Any = 0) -> Any:
            values, found = super().find(keys, default)
            found[7] = False
            return values, found

    lab = Lab("cpu", repetitions=1)
    with mock.patch("warphash.lab.bench.runner.HashMap", Forgetful):
        assert measure_trace(lab, HH, 0.35, 1000).mismatches == 2  # after the build, and after the insert
    with mock.patch.object(traces, "HashMap", Forgetful):
        made = measure_contest(lab, "two_level_cuckoo", {}, 1000)
    assert made is not None and made[1] == 1


@pytest.mark.parametrize("name", ["two_level_cuckoo", "lock_free_chaining", *(rival.name for rival in available())])
def test_a_contestant_is_measured_and_right(name: str) -> None:
    made = measure_contest(Lab("cpu"), name, {}, 1000)
    assert made is not None and made[0] > 0 and made[1] == 0


def test_a_contestant_may_stay_away() -> None:
    assert measure_contest(Lab("cpu"), "NBDS", {}, 1000) is None  # not installed
    assert measure_contest(Lab("cpu"), "dict", {}, 1 << 40) is None  # too many keys
