"""The slab allocator: every slab is handed out once, all of them are, and a pool that is exhausted says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from support.engines import ENGINES, missing, one_of_each
from support.planting import planted
from warphash.runtime.devices import engine_for
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine
from warphash.storage.chains import node_pool as slabs
from warphash.storage.chains.node_pool import BLOCK_UNITS, NO_SLAB, SLAB_BYTES, SlabPool

ONE_OF_EACH = one_of_each(*ENGINES)


@pytest.fixture(params=ONE_OF_EACH)
def engine(request: pytest.FixtureRequest) -> Any:
    return engine_for(request.param)


@pytest.fixture
def keep_seed() -> Iterator[None]:
    kept = emulated.schedule_seed
    yield
    emulated.schedule_seed = kept


def taken_from(pool: SlabPool, engine: Any, n: int) -> np.ndarray:
    """The addresses of ``n`` slabs, or of as many as there were."""
    room = engine.allocate(4 * n)
    got = pool.take(room.ptr, n)
    addresses = engine.to_host(room.ptr, np.uint32, n)
    there = addresses[addresses != NO_SLAB]
    assert len(there) == got
    return there


def place_of(pool: SlabPool, address: int) -> int:
    """Where the slab of an address is in the engine's memory."""
    return pool.units[address >> 24][0] + (address & 0xFFFFFF) * SLAB_BYTES


def in_use(pool: SlabPool, engine: Any) -> int:
    """Units in use as the pool counts them, and as its bitmaps have them."""
    bitmaps = [engine.to_host(base, np.uint8, pool.blocks * BLOCK_UNITS // 8) for base, _ in pool.regions[1:]]
    assert pool.taken() == (np.unpackbits(np.concatenate(bitmaps)) == 0).sum()
    return pool.taken()


def given_back(pool: SlabPool, engine: Any, addresses: np.ndarray) -> tuple[int, int]:
    held = engine.from_host(addresses)
    return pool.give_back(held.ptr, len(addresses))


def test_every_slab_is_taken_once(engine: Any) -> None:
    pool = SlabPool(engine, blocks=3, super_blocks=2)
    first = taken_from(pool, engine, 1000)
    rest = taken_from(pool, engine, pool.capacity)
    both = np.concatenate([first, rest])
    assert (len(first), len(both), pool.capacity) == (1000, 6 * BLOCK_UNITS, 6 * BLOCK_UNITS)
    assert len(np.unique(both)) == len(both) == in_use(pool, engine)
    assert np.unique(both >> 24).tolist() == [0, 1]  # super block, memory block, unit
    assert np.unique(both >> 10 & 0x3FFF).tolist() == [0, 1, 2]
    places = np.sort([place_of(pool, int(a)) for a in both])
    assert (np.diff(places) >= SLAB_BYTES).all()
    assert (places % SLAB_BYTES == places[0] % SLAB_BYTES).all()


def test_an_exhausted_pool_gives_what_it_has_and_ends(engine: Any) -> None:
    pool = SlabPool(engine, blocks=1)
    assert len(taken_from(pool, engine, 3000)) == BLOCK_UNITS
    assert len(taken_from(pool, engine, 70)) == 0
    pool.grow()
    assert len(taken_from(pool, engine, 70)) == 70


def test_slabs_given_back_are_taken_again(engine: Any) -> None:
    pool = SlabPool(engine, blocks=2)
    everything = taken_from(pool, engine, pool.capacity)
    back = everything[::3].copy()
    assert given_back(pool, engine, back) == (len(back), 0)
    assert given_back(pool, engine, back) == (0, 0)  # twice
    assert in_use(pool, engine) == pool.capacity - len(back)
    assert np.array_equal(np.sort(taken_from(pool, engine, pool.capacity)), np.sort(back))


def test_slabs_are_all_ones(engine: Any) -> None:
    pool = SlabPool(engine, blocks=1)
    written = engine.from_host(np.arange(16, dtype=np.uint64))
    for _ in range(2):
        everything = taken_from(pool, engine, pool.capacity)
        for address in everything[:5].tolist():
            assert engine.to_host(place_of(pool, address), np.uint64, SLAB_BYTES // 8).tolist() == [2**64 - 1] * 16
            engine.copy(place_of(pool, address), written.ptr, SLAB_BYTES)
        given_back(pool, engine, everything)


def test_what_is_no_slab_is_not_given_back(engine: Any) -> None:
    pool = SlabPool(engine, blocks=2)
    mine = taken_from(pool, engine, 3)
    others = np.array([NO_SLAB, 1 << 24, 2 << 10], np.uint32)  # none, another super block, another memory block
    assert given_back(pool, engine, np.concatenate([others, mine[:1]])) == (1, 3)
    assert in_use(pool, engine) == 2


def test_growing_ends_where_addresses_do(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slabs, "MAX_SUPER_BLOCKS", 2)
    pool = SlabPool(engine, blocks=1)
    pool.grow()
    with pytest.raises(MemoryError, match="at most 2 super blocks"):
        pool.grow()
    assert (pool.super_blocks, pool.capacity) == (2, 2 * BLOCK_UNITS)


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
def test_growing_without_memory_changes_nothing() -> None:
    engine = EmulatedEngine()
    pool = SlabPool(engine, blocks=4096)  # half of the emulated device
    with pytest.raises(MemoryError):
        pool.grow()
    assert (pool.super_blocks, pool.taken()) == (1, 0)


def test_what_is_surely_free(engine: Any) -> None:
    """What was lent before a count is in it; what was lent since, and what nobody counted, may be gone."""
    pool = SlabPool(engine, blocks=3)
    pool.lend(1000)
    kept = taken_from(pool, engine, 700)
    assert (pool.surely_free, pool.counted_free) == (2072, 3072)
    pool.ask()
    pool.lend(100)
    assert pool.learn(wait=True) and not pool.learn(wait=True)
    assert (pool.surely_free, pool.counted_free) == (2272, 2372)
    for _ in range(9):  # more than are on their way at a time
        pool.ask()
        pool.lend(10)
    given_back(pool, engine, kept[:50])
    assert pool.free() == pool.surely_free == pool.counted_free == 2422
    assert not pool.learn(wait=True)  # the count that was waited for is later than those that were asked for
    pool.lend(5)
    pool.clear()
    assert pool.surely_free == 3072


def test_the_last_address_of_the_largest_pool_is_not_none() -> None:
    last = (slabs.MAX_SUPER_BLOCKS - 1) << 24 | (slabs.MAX_BLOCKS - 1) << 10 | (BLOCK_UNITS - 1)
    assert last < NO_SLAB
    # So many slabs of 128 bytes, a super block being less than the 2^32 bytes that the paper's offsets reach.
    assert (slabs.MAX_BLOCKS * BLOCK_UNITS * SLAB_BYTES).bit_length() - 1 == 31


def races(engine: EmulatedEngine, seed: int) -> str:
    """What was wrong with a pool that several warps emptied at once; empty if nothing."""
    emulated.schedule_seed = seed
    pool = SlabPool(engine, blocks=2)
    first = taken_from(pool, engine, 1900)
    given_back(pool, engine, first[:1000].copy())
    kept, again = first[1000:], taken_from(pool, engine, 1300)  # of 1,148 that are free
    both = np.concatenate([kept, again])
    if len(np.unique(both)) < len(both):
        return "a slab was handed out twice"
    return "" if len(both) == pool.capacity else "a free slab was not found"


@pytest.mark.usefixtures("keep_seed")
@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestSchedules:
    def test_all_of_many(self) -> None:
        engine = EmulatedEngine()
        assert {races(engine, seed) for seed in range(60)} == {""}

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("got = asked & before;", "got = asked;"),
            ("const u32 before = fetch_and(bitmap_ + k * kWarpLanes + lane(), ~asked);",
             "const u32 before = load_relaxed(bitmap_ + k * kWarpLanes + lane()); "
             "store_relaxed(bitmap_ + k * kWarpLanes + lane(), before & ~asked);"),
            ("if (barren_ >= kHashedMoves + blocks) {", "if (barren_ >= 1) {"),
        ],
        ids=["what others took is not left out", "a word is read, then written", "it gives up too early"],
    )  # fmt: skip
    def test_a_planted_bug_shows(self, right: str, wrong: str) -> None:
        engine = EmulatedEngine(lambda source: planted(source, right, wrong))
        assert any(races(engine, seed) for seed in range(30))
