"""The estimate of new keys, beside their exact number."""

import math

import numpy as np
import pytest

from support.inside import parts_of, storage_of
from warphash import HashSet
from warphash.storage import estimate
from warphash.storage.batch import Batch
from warphash.storage.estimate import FEWEST_SKETCHED, distinct_of_sample, estimate_new_keys


def estimated(table: HashSet, keys: np.ndarray) -> int:
    """What the table's store estimates of these keys, as its engine has them."""
    engine = parts_of(table).front.engine
    held = engine.from_host(keys)
    return estimate_new_keys(storage_of(table).store, Batch(held.ptr, 0, len(keys)))


@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("dtype", ["u4", "u8"])
@pytest.mark.parametrize("distinct", [1, 100, 9_000, 40_000])
def test_new_keys_are_estimated(device: str, dtype: str, distinct: int) -> None:
    random = np.random.default_rng(distinct)
    keys = random.integers(0, distinct, 40_000).astype(dtype)
    exact = len(np.unique(keys))
    assert 0.96 * exact <= estimated(HashSet(dtype, device=device), keys) <= 1.04 * exact + 1


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_keys_of_the_table_are_not_new(device: str) -> None:
    table = HashSet("u4", device=device, capacity=30_000)
    table.insert(np.arange(20_000, dtype="u4"))
    assert estimated(table, np.arange(20_000, dtype="u4")) == 0
    new = estimated(table, np.arange(10_000, 30_000, dtype="u4"))
    assert 9_000 <= new <= 11_000


@pytest.mark.parametrize("known", [0, 30_000])
def test_behind_a_batch_of_new_keys_a_sample_does(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HashSet("u4", device="emulated", capacity=60_000)
    table.insert(np.arange(30_000, dtype="u4"))
    keys = np.append(np.arange(known), 30_000 + np.arange(30_000) // 2).astype("u4")  # 15,000 new keys, each twice
    held, sketched = parts_of(table).front.engine.from_host(keys), []
    monkeypatch.setattr(estimate, "estimate_distinct", lambda *_: sketched.append(1) or 15_000)
    new = estimate_new_keys(storage_of(table).store, Batch(held.ptr, 0, len(keys)), behind_new=True)
    assert (new, len(sketched)) == ((15_000, 1) if known else (30_000, 0))


def test_all_keys_of_a_small_batch_are_taken_for_new() -> None:
    assert estimated(HashSet("u4", device="cpu"), np.zeros(FEWEST_SKETCHED, "u4")) == FEWEST_SKETCHED


@pytest.mark.parametrize("distinct", [1, 10, 1_000, 10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("heavy", [0.0, 0.5, 0.9])
def test_a_sample_tells_how_many_keys_there_are(distinct: int, heavy: float) -> None:
    """A key in most of the rows hides the others no more than the smaller sample of these does."""
    random, sampled = np.random.default_rng(distinct), 1 << 14
    sample = random.integers(0, distinct, sampled)
    sample[random.random(sampled) < heavy] = 0
    rest = sampled * (1 - heavy)
    pairs = rest**2 / (2 * distinct)  # of equal keys that a sample of the others is expected to have
    estimate = distinct_of_sample(sample, 10**8)
    if pairs >= 16:
        assert abs(estimate - distinct) <= (0.05 + 5 / math.sqrt(pairs)) * distinct + 2
    else:
        assert estimate >= rest / 2


def test_a_sample_without_a_repeated_key_tells_nothing() -> None:
    assert distinct_of_sample(np.arange(1 << 10), 77_777) == 77_777
    assert distinct_of_sample(np.zeros(1 << 10, np.int64), 77_777) == 1
