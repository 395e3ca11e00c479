"""The estimate of new keys, beside their exact number."""

import numpy as np
import pytest

from support.inside import parts_of, storage_of
from warphash import HashSet
from warphash.storage.batch import Batch
from warphash.storage.estimate import FEWEST_SKETCHED, estimate_new_keys


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


def test_all_keys_of_a_small_batch_are_taken_for_new() -> None:
    assert estimated(HashSet("u4", device="cpu"), np.zeros(FEWEST_SKETCHED, "u4")) == FEWEST_SKETCHED
