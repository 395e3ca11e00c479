"""The threshold between Stash and clStash: how it is found, and that it is kept (Stadium Hashing, section III-C)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.engines import missing
from support.inside import storage_of
from warphash import HashMap
from warphash.runtime.cuda.cache import NUMBERS_SUFFIX, CubinCache
from warphash.storage.tickets.lanes import DEFAULT_THRESHOLD, Lanes, collaborating
from warphash.storage.tickets.threshold import ALWAYS, NEVER, FillTimes, calibrate, crossing, time_chunks

LOADS = (np.arange(50) + 0.5) / 50 * 0.95


def times(difference: Any) -> FillTimes:
    """Chunks for which Stash takes so much longer than clStash."""
    return FillTimes(LOADS, 1 + difference, np.ones(50))


@pytest.mark.parametrize("noise", [0, 1e-3])
def test_the_second_root_of_the_fit_is_the_threshold(noise: float) -> None:
    disturbance = np.random.default_rng(1).normal(0, noise, 50)
    assert crossing(times((LOADS - 0.2) * (LOADS - 0.6) + disturbance)) == pytest.approx(0.6, abs=0.02)
    assert crossing(times((LOADS + 1) * (LOADS - 0.6) + disturbance)) == pytest.approx(0.6, abs=0.02)


def test_one_way_may_be_faster_at_all_load_factors() -> None:
    assert crossing(times(LOADS * 0 + 0.1)) == ALWAYS
    assert crossing(times(LOADS * 0 - 0.1)) == NEVER
    below, above, slots = object(), object(), 1000
    for threshold, expected in ((ALWAYS, above), (NEVER, below)):
        lanes: Any = Lanes(below, above, threshold)  # type: ignore[arg-type]
        assert lanes.for_keys(1, slots) is lanes.for_keys(slots, slots) is expected
        assert (lanes.elements_below(slots // 2, slots, 0.5) > 0) == (expected is below)


def test_a_batch_is_cut_where_its_new_keys_reach_the_threshold() -> None:
    lanes = Lanes(object(), object(), 0.5)  # type: ignore[arg-type]
    assert lanes.elements_below(100, 1000, 1.0) == 400
    assert lanes.elements_below(100, 1000, 0.25) == 1600
    assert lanes.elements_below(100, 1000, 0.0) > 1 << 40
    assert lanes.elements_below(500, 1000, 0.0) == lanes.elements_below(900, 1000, 0.5) == 0


@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", "u8"), ("V24", "V40")])
def test_the_procedure_fills_tables_chunk_by_chunk(key: str, value: str) -> None:
    table = HashMap(key, value, design="stadium", device="cpu", capacity=10)
    made = time_chunks(storage_of(table).store.array, 5000, 0.9, rounds=1)
    assert len(made.load_factors) == 50 and made.load_factors[-1] == pytest.approx(0.9 * 0.99, rel=0.01)
    assert (made.stash > 0).all() and (made.clstash > 0).all()
    assert len(table) == 0


def test_a_device_without_warps_keeps_no_number() -> None:
    table = HashMap("u4", "u4", design="stadium", device="cpu", capacity=10)
    array = storage_of(table).store.array
    assert 0 <= calibrate(array, 5000) <= NEVER
    assert array.engine.recall(collaborating(array.spec)) is None
    assert array._lanes.below is array._lanes.above


def test_numbers_lie_beside_the_kernels_and_are_no_kernels(tmp_path: Path) -> None:
    kernels, numbers = CubinCache(tmp_path), CubinCache(tmp_path, suffix=NUMBERS_SUFFIX)
    assert kernels.put("key", b"kernel") and numbers.put("key", b"0.5")
    assert kernels.get("key") == b"kernel" and numbers.get("key") == b"0.5"
    assert kernels.use().entries == numbers.use().entries == 1
    kernels.clear()
    assert kernels.get("key") is None and numbers.get("key") == b"0.5"


@pytest.mark.cuda
@pytest.mark.skipif(bool(missing("cuda")), reason=missing("cuda") or "it runs")
def test_a_gpu_keeps_the_measured_threshold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPHASH_CACHE_DIR", str(tmp_path))
    table = HashMap("u8", "u8", design="stadium", device="cuda", capacity=10)
    array = storage_of(table).store.array
    threshold = calibrate(array, 1 << 22)
    array.engine._numbers.clear()
    again = HashMap("u8", "u8", design="stadium", device="cuda", capacity=10)
    assert storage_of(again).store.array._lanes.threshold == threshold
    array.engine.remember(collaborating(array.spec), DEFAULT_THRESHOLD)
