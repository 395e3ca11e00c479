"""Buckets that a find reads, in tables that a device has filled with large batches in an order of its own.

No design may pay for that order: the tables are compared with those of the same batches in the order of the caller, or
with those of a CPU where no setting changes the order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.engines import narrow, one_of_each
from warphash import HashMap
from warphash.settings import ORDER_VARIABLE

Make = Callable[[np.ndarray, dict[str, Any]], HashMap]

SIZES = {"emulated": 60_000, "cuda": 16_000_000}
TOLERANCES = {"emulated": 0.013, "cuda": 0.005}
"""Of means over so many keys."""

MORE_OF_SMALL_BUCKETS = 0.007
"""What iceberg with 8 slots, which does not fill all first buckets first, reads more."""

SETTINGS: list[dict[str, Any]] = [
    {"design": "iceberg", "slots_per_bucket": 16, "load_factor": 0.8},
    {"design": "iceberg", "slots_per_bucket": 16, "load_factor": 0.8, "threshold": 0.4},
    {"design": "iceberg", "slots_per_bucket": 16, "load_factor": 0.9, "threshold": 0.85, "hashes": 4},
    {"design": "iceberg", "slots_per_bucket": 8, "load_factor": 0.6},
    {"design": "iceberg", "slots_per_bucket": 32, "load_factor": 0.9, "early_exit": False},
    {"design": "cuckoo", "load_factor": 0.8},
    {"design": "bucketed_cuckoo", "slots_per_bucket": 8, "load_factor": 0.9},
    {"design": "bucketed_cuckoo", "slots_per_bucket": 16, "load_factor": 0.95},
    {"design": "bucketed_cuckoo", "slots_per_bucket": 32, "load_factor": 0.9},
    {"design": "power_of_two", "load_factor": 0.8},
    {"design": "linear_probing", "load_factor": 0.7},
    {"design": "megakv"},
    {"design": "megakv", "load_factor": 0.3},
    {"design": "dynamic_cuckoo"},
    {"design": "dynamic_cuckoo", "load_factor": 0.9},
    {"design": "two_level_cuckoo"},
]

WITHOUT_PARTS: list[dict[str, Any]] = [
    {"design": "quotient_cuckoo"},
    {"design": "quotient_cuckoo", "load_factor": 0.8},
    {"design": "slab"},
    {"design": "lock_free_chaining"},
    {"design": "stadium"},
]
"""Designs whose batches are never copied in the order of parts (`batch_order.ordering`)."""


def built(keys: np.ndarray, options: dict[str, Any]) -> HashMap:
    return HashMap.from_arrays(keys, keys, assume_unique=True, capacity=len(keys), **options)


def built_of_any(keys: np.ndarray, options: dict[str, Any]) -> HashMap:
    return HashMap.from_arrays(keys, keys, capacity=len(keys), **options)


def inserted(keys: np.ndarray, options: dict[str, Any]) -> HashMap:
    table = HashMap("u4", "u4", capacity=len(keys), **options)
    for part in np.split(keys, [len(keys) // 2]):
        assert table.insert(part, part, assume_unique=True).all()
    return table


def grown(keys: np.ndarray, options: dict[str, Any]) -> HashMap:
    table = HashMap("u4", "u4", capacity=len(keys) // 8, **options)
    for part in np.array_split(keys, 3):
        assert table.insert(part, part, assume_unique=True).all()
    return table


def distinct(n: int) -> np.ndarray:
    """Different keys, spread over all numbers by Knuth's multiplier."""
    return np.arange(n, dtype=np.uint32) * np.uint32(2_654_435_761)


def reads(table: HashMap, present: np.ndarray, absent: np.ndarray) -> tuple[float, float]:
    """Buckets that a find of a present and of an absent key reads, means."""
    table.check()
    assert len(table) == len(present)
    return float(table.probe_counts(present).mean()), float(table.probe_counts(absent).mean())


@pytest.mark.parametrize("make", [built, built_of_any, inserted, grown])
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "-".join(map(str, setting.values())))
@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_no_design_pays_for_the_order_of_a_large_batch(
    device: str, setting: dict[str, Any], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device == "emulated":
        narrow(monkeypatch, device, 1 << 14, 64)
    both = distinct(2 * SIZES[device])
    present, absent = np.split(both, 2)
    options = {"device": device, "seed": 5, **setting}
    in_parts = reads(make(present, options), present, absent)
    monkeypatch.setenv(ORDER_VARIABLE, "given")
    in_order = reads(make(present, options), present, absent)
    more = MORE_OF_SMALL_BUCKETS * (setting.get("slots_per_bucket") == 8 and setting["design"] == "iceberg")
    for read, expected in zip(in_parts, in_order, strict=True):
        assert read <= expected * (1 + TOLERANCES[device] + more)


@pytest.mark.parametrize("make", [built, built_of_any, inserted])
@pytest.mark.parametrize("setting", WITHOUT_PARTS, ids=lambda setting: "-".join(map(str, setting.values())))
@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_other_designs_read_as_many_as_on_a_cpu(device: str, setting: dict[str, Any], make: Make) -> None:
    """A key of ``slab`` and ``lock_free_chaining`` has one list: the order decides who is in front, not how long it is.

    In ``stadium``, a key stays in the first free slot of its own walk, so all orders of random keys have one mean. In
    ``quotient_cuckoo``, the elements of a large batch first come to their ranges; a range places them in rounds, and in
    each round in their home buckets first, on a CPU, too.
    """
    present, absent = np.split(distinct(2 * SIZES[device]), 2)
    ours, of_cpu = (
        reads(make(present, {"device": each, "seed": 5, **setting}), present, absent) for each in (device, "cpu")
    )
    assert ours == pytest.approx(of_cpu, rel=TOLERANCES[device])


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("threshold", [0.4, 0.8])
@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_keys_of_a_large_batch_fill_their_primary_buckets_first(
    device: str, threshold: float, unique: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So iceberg reads as few buckets as after a build on a CPU, which does the same: less than in the paper."""
    if device == "emulated":
        narrow(monkeypatch, device, 1 << 14, 64)
    keys = distinct(SIZES[device])
    setting: dict[str, Any] = {"design": "iceberg", "load_factor": 0.8, "threshold": threshold, "seed": 5}
    on_cpu = built_of_any(keys, {"device": "cpu", **setting})
    parted = HashMap.from_arrays(keys, keys, capacity=len(keys), assume_unique=unique, device=device, **setting)
    assert parted.probe_counts(keys).mean() == pytest.approx(on_cpu.probe_counts(keys).mean(), rel=0.005)
