"""The elements of a batch on a GPU that have a code or a flag, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import one_of_each
from support.refusals import refusing
from warphash.runtime.abi import SEGMENT
from warphash.runtime.devices import engine_for
from warphash.storage.joins.device_hits import DeviceHits

GPUS = one_of_each("emulated", "cuda")
SIZES = (0, 1, 31, 32, SEGMENT - 1, SEGMENT, SEGMENT + 1, 9 * SEGMENT + 70)


def words_of(kind: str, share: float, n: int) -> np.ndarray:
    """Codes, negative but for a share of them, or flags, of which a share is set."""
    random = np.random.default_rng(n)
    hits = random.random(n) < share
    return np.where(hits, random.integers(0, 2**31 - 1, n), -1).astype("i4") if kind == "codes" else hits


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("out_type", ["i4", "i8"])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("kind", ["codes", "flags"])
@pytest.mark.parametrize("n", SIZES)
def test_places_of_hits(device: str, kind: str, share: float, out_type: str, n: int) -> None:
    engine, words = engine_for(device), words_of(kind, share, n)
    given = engine.from_host(np.append(words, words[:1] if n else np.ones(1, words.dtype)))
    made = DeviceHits(engine, given.ptr, kind, n, None)
    places = np.flatnonzero(words >= 0 if kind == "codes" else words)
    assert made.total == len(places)
    outs = [engine.from_host(np.full(made.total + 1, -7, out_type)) for _ in range(2)]
    made.write(*(out.ptr for out in outs), np.dtype(out_type).itemsize)
    written = [engine.to_host(out.ptr, out_type, made.total + 1).tolist() for out in outs]
    assert written[0] == [*places.tolist(), -7]
    if kind == "codes":
        assert written[1] == [*words[places].tolist(), -7]


@pytest.mark.parametrize("device", GPUS)
def test_refused_memory_is_an_error(device: str) -> None:
    engine = engine_for(device)
    given = engine.from_host(np.zeros(3 * SEGMENT, "i4"))
    for first in (1, 2):
        with refusing(engine, first), pytest.raises(MemoryError):
            DeviceHits(engine, given.ptr, "codes", 3 * SEGMENT, None)
