"""Tests of the inserts that drop pairs: how many, and that every other pair is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.elsewhere import LabElsewhere
from support.engines import one_of_each
from warphash import ParameterError
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data import workloads
from warphash.lab.data.dynamic_sets import pairs_of
from warphash.lab.figures.lossy import measure_lossy

HERE = one_of_each("cpu", "emulated", "cuda")

SHARES: list[Any] = [
    ("megakv", 0.3, (0, 0)),
    ("megakv", 0.75, (0.25, 0.5)),
    ("megakv", 0.9, (2.1, 2.7)),
    ("megakv", 0.95, (3.5, 4.3)),
    ("cuckoo", 0.85, (0, 0)),
    ("cuckoo", 0.9, (0, 0.01)),
    ("cuckoo", 0.95, (0.01, 0.1)),
]
"""Per cent of random keys that find no slot: docs/fidelity.md#dyhash-failures-megakv and the rows behind."""


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize(("design", "load_factor", "per_cent"), SHARES)
def test_shares_that_are_dropped(device: str, design: str, load_factor: float, per_cent: tuple[float, float]) -> None:
    pairs = workloads.make(20_000 if device == "emulated" else 500_000, "uint32", "uint32", seed=3)
    made = measure_lossy(Lab(device, repetitions=1), pairs, Setting(design, {}), load_factor)
    assert made.mismatches == 0 and made.keys == len(pairs.keys)
    least, most = per_cent
    if device == "emulated":  # few keys, of which most are under way at once and in no slot: more chains find one
        least, most = least / 10, most + 0.25
    assert least <= 100 * made.dropped / made.keys <= most
    assert made.build_per_s > 0 and made.find_per_s > 0


@pytest.mark.parametrize("lab", [Lab, LabElsewhere])
def test_keys_that_repeat_count_once(lab: type[Lab]) -> None:
    pairs = pairs_of("com", 200_000, seed=1)
    made = measure_lossy(lab("cpu", repetitions=1), pairs, Setting("megakv", {}), 0.9)
    assert made.keys == len(np.unique(pairs.keys)) < len(pairs.keys) and made.mismatches == 0


def test_a_pair_that_is_lost_unseen_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from warphash.storage.buckets.array import BucketArray

    scan = BucketArray.scan
    monkeypatch.setattr(BucketArray, "scan", lambda self, *given: scan(self, *given) - 3)
    pairs = workloads.make(5_000, "uint32", "uint32", seed=3)
    assert measure_lossy(Lab("cpu", repetitions=1), pairs, Setting("megakv", {}), 0.5).mismatches >= 3


@pytest.mark.parametrize(("design", "key"), [("dynamic_cuckoo", "uint32"), ("megakv", "uint64")])
def test_other_tables_drop_nothing(design: str, key: str) -> None:
    pairs = workloads.make(100, key, "uint32", seed=3)
    with pytest.raises(ParameterError, match="drop pairs of 4"):
        measure_lossy(Lab("cpu"), pairs, Setting(design, {}), 0.5)
