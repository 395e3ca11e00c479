"""Flags as bits and back, beside NumPy's packing of bits."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import one_of_each
from support.owners import Held, room
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import Engine
from warphash.storage.owners.flag_bits import FLAG_RUN, pack_flags, unpack_flags

SHAPES = [
    (0, []),
    (8, []),
    (1_024, []),
    (0, [0]),
    (0, [1, 0, 127]),
    (128, [127] * 3),
    (640, [0, 3, 8, 64, 0]),
    (384, [5] * 256),
]
"""Rows of whole parts, and of the tails behind them."""


@pytest.fixture(params=one_of_each("cpu", "emulated", "cuda"))
def engine(request: pytest.FixtureRequest) -> Engine:
    return engine_for(request.param)


def flags_of(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 2, n, np.uint8)


@pytest.mark.parametrize(("whole", "tails"), SHAPES)
def test_bits_of_each_tail_begin_at_a_run(engine: Engine, whole: int, tails: list[int]) -> None:
    flags = flags_of(whole + sum(tails))
    expected = np.zeros(whole + FLAG_RUN * len(tails), np.uint8)
    expected[:whole] = flags[:whole]
    begins = whole + np.cumsum([0, *tails])
    for number, (begin, rows) in enumerate(zip(begins, tails, strict=False)):
        expected[whole + FLAG_RUN * number :][:rows] = flags[begin : begin + rows]
    given, bits = Held(engine, flags.reshape(-1, 1)), room(engine, len(expected) // 8, 1)
    pack_flags(engine, given.ptr, bits.ptr, whole, tails, None)
    assert (bits.read()[:, 0] == np.packbits(expected, bitorder="little")).all()
    back = room(engine, len(expected), 1)
    unpack_flags(engine, bits.ptr, back.ptr, len(expected), None)
    assert (back.read()[:, 0] == expected).all()


def test_each_byte_of_bits(engine: Engine) -> None:
    """All flags of 8 rows that there are, both ways."""
    bits = np.arange(256, dtype=np.uint8)
    given, flags, back = Held(engine, bits.reshape(-1, 1)), room(engine, 8 * 256, 1), room(engine, 256, 1)
    unpack_flags(engine, given.ptr, flags.ptr, 8 * 256, None)
    assert (flags.read()[:, 0] == np.unpackbits(bits, bitorder="little")).all()
    pack_flags(engine, flags.ptr, back.ptr, 8 * 256, [], None)
    assert (back.read()[:, 0] == bits).all()
