"""Tests of look-alikes: they have the counts of the paper's Table 2, whole and scaled."""

from __future__ import annotations

import numpy as np
import pytest

from warphash import ParameterError
from warphash.lab.data.look_alikes import LOOK_ALIKES, LookAlike, keys_of, normal_keys


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_counts_of_the_whole_sets(name: str) -> None:
    wanted = LOOK_ALIKES[name]
    counts = wanted.copies()
    copies = np.arange(1, wanted.most_copies + 1)
    assert len(counts) == wanted.most_copies and (counts >= 0).all() and counts[-1] >= 1
    assert (counts.sum(), (counts * copies).sum()) == (wanted.unique, wanted.pairs)
    assert (np.diff(counts) <= 0).all() or name == "com"  # keys with more copies are rarer


@pytest.mark.parametrize("name", LOOK_ALIKES)
@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_keys_repeat_as_they_should(name: str, dtype: str) -> None:
    keys = keys_of(name, 100_000, dtype, seed=2)
    full = LOOK_ALIKES[name]
    found, times = np.unique(keys, return_counts=True)
    assert keys.dtype == dtype and len(keys) == 100_000 and times.max() == full.most_copies
    assert abs(len(found) / len(keys) - full.unique / full.pairs) < 1e-4
    assert (keys_of(name, 100_000, dtype, seed=2) == keys).all()
    assert (keys_of(name, 100_000, dtype, seed=3) != keys).any()


@pytest.mark.parametrize("pairs", [1, 2, 3, 7, 50, 1001])
@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_few_pairs(name: str, pairs: int) -> None:
    keys = keys_of(name, pairs, "uint32", seed=1)
    assert len(keys) == pairs
    assert np.unique(keys, return_counts=True)[1].max() <= LOOK_ALIKES[name].most_copies


@pytest.mark.parametrize(
    "impossible", [LookAlike(10, 11, 4), LookAlike(10, 2, 4), LookAlike(10, 9, 1), LookAlike(5, 1, 4)]
)
def test_what_cannot_be(impossible: LookAlike) -> None:
    with pytest.raises(ParameterError, match="pairs"):
        impossible.copies()


@pytest.mark.parametrize(("unique", "most"), [(3, 4), (7, 4), (12, 4), (5, 14), (11, 14), (6, 2), (9, 1)])
def test_every_number_of_copies_up_to_the_most(unique: int, most: int) -> None:
    for pairs in range(unique, most * unique + 1):
        counts = LookAlike(pairs, unique, most).copies()
        assert (counts >= 0).all()
        assert (counts.sum(), (counts * np.arange(1, most + 1)).sum()) == (unique, pairs)


@pytest.mark.parametrize(
    ("dtype", "middle"), [("uint32", 2.0**31), ("int32", 0.0), ("uint64", 2.0**63), ("int64", 0.0)]
)
def test_normal_keys(dtype: str, middle: float) -> None:
    keys = normal_keys(50_000, dtype, seed=4)
    assert keys.dtype == dtype and len(np.unique(keys)) == 50_000
    deviation = 2.0 ** (8 * keys.itemsize - 3)
    as_floats = keys.astype(np.float64) - middle
    assert abs(as_floats.mean()) < 0.02 * deviation
    assert abs(as_floats.std() / deviation - 0.8796) < 0.01  # the distribution is cut at two deviations
    assert (normal_keys(50_000, dtype, seed=4) == keys).all()


def test_too_many_normal_keys() -> None:
    with pytest.raises(ParameterError, match="too many"):
        normal_keys(1 << 30, "uint32", seed=1)
    with pytest.raises(ParameterError, match="4 or 8 bytes"):
        normal_keys(10, "int16", seed=1)
