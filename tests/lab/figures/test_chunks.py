"""Tests of the chunks of Figure 13 of Stadium Hashing: the fit, and the pairs of the tables that are filled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from warphash import HashMap
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.figures import chunks
from warphash.lab.figures.chunks import CHUNKS, measure_chunks
from warphash.storage.tickets.threshold import ALWAYS, NEVER, FillTimes

SETTING = Setting("stadium", {})


def measured(device: str = "cpu", n: int = 2000) -> chunks.Chunks:
    return measure_chunks(Lab(device, repetitions=1), SETTING, 0.95, n)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
def test_chunks_are_timed_up_to_the_load_factor(device: str) -> None:
    made = measured(device)
    assert made.mismatches == 0
    assert len(made.load_factors) == len(made.stash) == len(made.clstash) == len(made.fit) == CHUNKS
    assert made.load_factors[0] == pytest.approx(0.0095, rel=0.05) and 0.9 < made.load_factors[-1] < 0.95
    assert min(made.stash.min(), made.clstash.min()) > 0
    assert made.threshold in (ALWAYS, NEVER) or 0 < made.threshold < 0.95


def test_the_fit_is_that_of_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    x = (np.arange(CHUNKS) + 0.5) / CHUNKS
    gain = (x - 0.2) * (x - 0.6)  # clStash is faster from 0.6 on
    monkeypatch.setattr(chunks, "time_chunks", lambda *_, **__: FillTimes(x, 3 + gain, np.full(CHUNKS, 3.0)))
    made = measured()
    assert made.threshold == pytest.approx(0.6) and made.fit == pytest.approx(gain)


def test_wrong_pairs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    find = HashMap.find

    def off_by_one(self: Any, keys: Any) -> Any:
        values, found = find(self, keys)
        values[3] += 1
        found[5] = False
        return values, found

    monkeypatch.setattr(HashMap, "find", off_by_one)
    monkeypatch.setattr(HashMap, "__len__", lambda _: 1999)
    assert measured().mismatches == 2 * 3  # in both tables a value, a key, and the number of pairs
