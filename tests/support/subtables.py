"""Make and inspect tables of subtables, for the tests of DyHash."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.inside import storage_of
from warphash import HashMap
from warphash.storage.subtables.array import SubtableArray


def table_of(device: str, key: Any = "u8", value: Any = "u8", **options: Any) -> Any:
    return HashMap(key, value, device=device, design="dynamic_cuckoo", **{"seed": 3, "capacity": 64, **options})


def store_of(table: Any) -> SubtableArray:
    storage_of(table).store.finish()
    store = storage_of(table).store.array
    assert isinstance(store, SubtableArray)
    return store


def sizes_of(table: Any) -> list[int]:
    return store_of(table).sizes


def scale(device: str, n: int) -> int:
    return n // 20 if device == "emulated" else n


def numbers(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.arange(1, n + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
