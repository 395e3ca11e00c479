"""Two million keys, as many absent ones, and tables of them at a given load."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from warphash import HashMap

N = 2_000_000
Keys = npt.NDArray[np.uint32]


@pytest.fixture(scope="session")
def universe() -> Keys:
    """Distinct uniform 32-bit keys: the first half goes into tables (docs/fidelity.md#bght-keys)."""
    drawn = np.random.default_rng(42).integers(0, 2**32, size=5 * N // 2, dtype=np.uint32)
    distinct = np.unique(drawn)
    return np.random.default_rng(43).permutation(distinct)[: 2 * N]


@pytest.fixture(scope="session")
def present(universe: Keys) -> Keys:
    return universe[:N]


@pytest.fixture(scope="session")
def absent(universe: Keys) -> Keys:
    return universe[N:]


def build(keys: Keys, design: str, load_factor: float, **options: Any) -> HashMap:
    """All of ``keys`` in a table of exactly that load; one attempt, and no growth."""
    options = {"on_full": "raise", "count_probes": True, "device": "cpu", "seed": 5, **options}
    return HashMap.from_arrays(keys, keys, assume_unique=True, design=design, load_factor=load_factor, **options)
