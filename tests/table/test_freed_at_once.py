"""The memory of a table goes with the last reference to it, and not when the garbage collector runs next."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from warphash import HashMap, HashSet, Index, MultiMap
from warphash.designs import registry
from warphash.runtime import _cpu  # type: ignore[attr-defined]
from warphash.runtime.cpu import engine

N = 50_000
MOST = 1 << 30
KEYS = np.arange(N, dtype=np.uint64)


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    engine()
    gc.collect()
    gc.disable()
    _cpu.keep_freed(0)
    _cpu.keep_freed(MOST)
    yield
    gc.enable()


MADE: dict[str, Callable[[], Any]] = {
    **{name: partial(HashMap.from_arrays, KEYS, KEYS, design=name, device="cpu") for name in registry.names()},
    "set": lambda: HashSet.from_arrays(KEYS, device="cpu"),
    "groups": lambda: MultiMap.from_arrays(KEYS // 2, KEYS, device="cpu"),
    "lists": lambda: MultiMap.from_arrays(KEYS // 2, KEYS, design="slab", device="cpu"),
    "strings": lambda: HashMap.from_arrays(KEYS.astype("U"), KEYS, device="cpu"),
    "wide rows": lambda: HashMap.from_arrays(KEYS.astype("S24"), KEYS, device="cpu"),
    "bounded": lambda: HashMap.from_arrays(KEYS, KEYS, max_size=N, evict="lru", device="cpu"),
    "index": lambda: Index(KEYS // 2 * np.uint64(0x9E3779B97F4A7C15)),  # of a span that no array of places has
}


@pytest.mark.parametrize("kind", MADE)
def test_memory_goes_with_the_last_reference(kind: str) -> None:
    made = MADE[kind]()
    held, before = (12 * N if kind == "index" else made.nbytes), _cpu.kept_bytes()
    del made
    assert _cpu.kept_bytes() - before > held / 2
