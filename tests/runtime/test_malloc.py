"""The platform's own heap as kernels use it: every unit is somebody's alone, on every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.engines import ENGINES, one_of_each
from warphash.lab.figures.allocators import MALLOC
from warphash.runtime.abi import ChainTable, SlabBatch
from warphash.runtime.devices import engine_for
from warphash.storage.chains.node_pool import SLAB_BYTES

N = {"cpu": 40_000, "emulated": 500, "cuda": 40_000}  # the first is work for several threads


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
def test_units_of_the_heap_do_not_overlap(device: str) -> None:
    engine: Any = engine_for(device)
    n = N[device]
    engine.reserve_heap(64 << 20)
    program, room = engine.program(MALLOC), engine.allocate(8 * n)
    for _ in range(2):
        program.run("take", ChainTable(), SlabBatch(n=n, addresses=room.ptr), n, None)
        addresses = np.sort(engine.to_host(room.ptr, np.uint64, n))
        assert addresses[0] > 0
        assert (np.diff(addresses) >= SLAB_BYTES).all()
        program.run("give_back", ChainTable(), SlabBatch(n=n, addresses=room.ptr), n, None)
    engine.synchronize()
