"""Elements that flags select are listed in their order, on every engine."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import one_of_each
from warphash.runtime.abi import Flag
from warphash.runtime.devices import engine_for
from warphash.storage import selection

CHUNK = 256


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("share", [0.0, 0.02, 0.6, 1.0])
@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 7, CHUNK * CHUNK + 1])
def test_numbers_of_a_flag_ascend(n: int, share: float, device: str, rng: np.random.Generator) -> None:
    others = rng.choice([Flag.PRESENT, Flag.CHANGED], n)
    flags = np.where(rng.random(n) < share, Flag.UNPLACED, others).astype("u1")
    engine = engine_for(device)
    held = engine.from_host(flags)
    numbers, count = selection.numbers_of(engine, held.ptr, n, Flag.UNPLACED)
    expected = [number for number, flag in enumerate(flags.tolist()) if flag == 2]
    assert count == len(expected)
    assert engine.to_host(numbers.ptr, np.uint32, count).tolist() == expected
