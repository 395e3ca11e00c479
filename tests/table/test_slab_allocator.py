"""The slab allocator as its users see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.engines import ENGINES, one_of_each
from warphash import ParameterError, ShapeError, SlabAllocator


@pytest.fixture(params=one_of_each(*ENGINES))
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_slabs_are_taken_and_given_back_while_it_grows(device: str) -> None:
    slabs = SlabAllocator(device=device, blocks_per_super_block=4)
    rng = np.random.default_rng(1)
    held = np.empty(0, np.uint32)
    for n in (10, 0, 6000, 1, 30_000):  # the last is work for several threads of a CPU
        held = np.concatenate([held, slabs.allocate(n)])
        assert len(np.unique(held)) == len(held) == len(slabs) <= slabs.capacity
        leave = rng.random(len(held)) < 0.4
        slabs.deallocate(held[leave])
        held = held[~leave]
        assert len(slabs) == len(held)
    assert slabs.nbytes == slabs.capacity * 128 + slabs.capacity // 8 + 32 * 64  # slabs, bitmaps, counts
    assert repr(slabs).startswith(f"<SlabAllocator: {len(held):,} of {slabs.capacity:,} slabs taken")


def test_a_full_one_raises_and_is_as_it_was(device: str) -> None:
    slabs = SlabAllocator(device=device, blocks_per_super_block=1, on_full="raise")
    kept = slabs.allocate(1000)
    with pytest.raises(MemoryError, match="25 slabs were asked for and 24 are free; allow on_full='grow'"):
        slabs.allocate(25)
    assert len(slabs) == 1000
    assert len(np.union1d(kept, slabs.allocate(24))) == 1024


def test_what_is_given_back_wrongly_is_told(device: str) -> None:
    slabs = SlabAllocator(device=device, blocks_per_super_block=1)
    first = slabs.allocate(10)
    with pytest.raises(ParameterError, match="of 11 addresses 1 are of no slab here and 3 of slabs that were free"):
        slabs.deallocate(np.concatenate([first[:7], first[:3], [np.uint32(2**32 - 1)]]))
    assert len(slabs) == 3
    slabs.deallocate(first[7:])
    assert len(slabs) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"blocks_per_super_block": 0}, "at least 1"),
        ({"blocks_per_super_block": 16_385}, "at most 16,384"),
        ({"super_blocks": 256}, "at most 255"),
        ({"super_blocks": 1.5}, "must be an integer"),
        ({"on_full": "wait"}, "'grow' or 'raise'"),
    ],
)
def test_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        SlabAllocator(device="cpu", **options)


def test_addresses_of_another_kind() -> None:
    slabs = SlabAllocator(device="cpu", blocks_per_super_block=1)
    addresses = slabs.allocate(4)
    with pytest.raises(ShapeError):
        slabs.deallocate(addresses.reshape(2, 2))
    with pytest.raises(ParameterError, match="must be uint32"):
        slabs.deallocate(addresses.astype(np.int64))
    with pytest.raises(ParameterError, match="n must be an integer of at least 0"):
        slabs.allocate(-1)
    slabs.deallocate([])
    slabs.deallocate(addresses[::2])  # not contiguous
    assert len(slabs) == 2
    assert warphash.SlabAllocator is SlabAllocator
