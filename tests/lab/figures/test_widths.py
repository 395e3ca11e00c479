"""Tests of rows that are computed from numbers, and of the tables that are measured with such rows."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import missing
from warphash import HashMap
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.figures.widths import MEASURES, VALUE_BYTES, measure_widths, rows_of

SETTING = Setting("dynamic_cuckoo", {})


@pytest.mark.parametrize("nbytes", [4, 8, 32, 128])
def test_no_two_rows_are_equal(nbytes: int) -> None:
    numbers = np.concatenate([np.arange(5000), (1 << 32) - 1 - np.arange(5000)]).astype(np.uint64)
    rows = rows_of(numbers, nbytes, seed=3)
    assert rows.shape == (10_000, nbytes // 4) and rows.dtype == np.uint32
    assert len(np.unique(rows, axis=0)) == 10_000
    assert (rows_of(numbers[7:9], nbytes, seed=3) == rows[7:9]).all()


@pytest.mark.parametrize("key_bytes", VALUE_BYTES)
def test_every_width_is_measured_and_right(key_bytes: int) -> None:
    wanted = [name for name in MEASURES if name != "erase"]
    made = measure_widths(Lab("cpu", repetitions=1), SETTING, 0.8, 3000, key_bytes, wanted)
    assert made.mismatches == 0
    assert set(made.measured) == set(wanted) and min(made.measured.values()) > 0
    assert made.measured["present_share"] < 1.2 and made.measured["absent_share"] < 1.2


@pytest.mark.parametrize(("key_bytes", "value_bytes"), [(4, 8), (8, 4), (32, 8), (8, 64)])
@pytest.mark.parametrize("memory", ["device", "host"])
@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
def test_rows_of_stadium_are_measured_and_erased(key_bytes: int, value_bytes: int, memory: str) -> None:
    setting = Setting("stadium", {"memory": memory})
    lab = Lab("emulated", repetitions=1)
    made = measure_widths(lab, setting, 0.85, 600, key_bytes, ["present", "absent", "erase"], value_bytes=value_bytes)
    assert made.mismatches == 0
    assert set(made.measured) == {"insert", "present", "absent", "erase"} and min(made.measured.values()) > 0


def test_keys_that_are_not_erased_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    erase = HashMap.erase
    monkeypatch.setattr(HashMap, "erase", lambda self, keys: np.append(erase(self, keys[:-2]), [False, True]))
    setting = Setting("stadium", {})
    made = measure_widths(Lab("cpu", repetitions=1), setting, 0.85, 500, 8, ["erase"], value_bytes=8)
    assert made.mismatches == 1 + 2  # an answer, and two pairs that are left


def test_wrong_answers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    find = HashMap.find

    def off_by_one(self, keys):  # type: ignore[no-untyped-def]
        values, found = find(self, keys)
        values[3, 1] += 1
        found[5] = not found[5]
        return values, found

    monkeypatch.setattr(HashMap, "find", off_by_one)
    made = measure_widths(Lab("cpu", repetitions=1), SETTING, 0.8, 1000, 16, ["present", "absent"])
    assert made.mismatches == 3  # a wrong value, and a wrong flag in each of the two finds
