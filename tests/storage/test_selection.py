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


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("n", [1, 31, 33, CHUNK, CHUNK + 1, CHUNK * CHUNK + 1])
def test_sums_before_counts_and_bits(n: int, device: str, rng: np.random.Generator) -> None:
    engine = engine_for(device)
    counts = rng.integers(0, 1 << 15, n, dtype=np.uint32)
    expected = [sum(counts[:at].tolist()) for at in sorted({0, 1, n // 2, n - 1, n})]
    held, out = engine.from_host(counts), engine.allocate(8 * (n + 1))
    assert selection.offsets_of_counts(engine, held.ptr, n, out.ptr, None) == expected[-1]
    offsets = engine.to_host(out.ptr, np.uint64, n + 1)
    assert [int(offsets[at]) for at in sorted({0, 1, n // 2, n - 1, n})] == expected
    starts, ones = selection.starts_of_bits(engine, held, n, None)
    bits = [count.bit_count() for count in counts.tolist()]
    assert (engine.to_host(starts.ptr, np.uint32, n)[-1], ones) == (sum(bits[:-1]), sum(bits))
    starts = selection.starts_of_counts(engine, held, n, None)
    np.testing.assert_array_equal(engine.to_host(starts.ptr, np.uint64, n), offsets[:-1])
    words = engine.from_host(counts.astype(np.uint64) << 32 | 1)
    copy = engine.from_host(counts.astype(np.uint64))
    assert selection.words_to_starts(engine, copy, n, None, needed=lambda total: total != expected[-1]) == expected[-1]
    assert n == 1 or engine.to_host(copy.ptr, np.uint64, n).tolist() == counts.tolist()
    needed = [expected[-1] << 32 | n]
    assert selection.words_to_starts(engine, words, n, None, needed=needed.__contains__) == needed[0]
    sums = engine.to_host(words.ptr, np.uint64, n)
    np.testing.assert_array_equal(sums, offsets[:-1] << np.uint64(32) | np.arange(n, dtype=np.uint64))
    selection.to_starts(engine, held.ptr, n, None)
    np.testing.assert_array_equal(engine.to_host(held.ptr, np.uint32, n), offsets[:-1])


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_sums_are_longer_than_counts(device: str) -> None:
    engine, n = engine_for(device), 3 * CHUNK
    held, out = engine.from_host(np.full(n, 0xFFFF_FFFF, np.uint32)), engine.allocate(8 * (n + 1))
    assert selection.offsets_of_counts(engine, held.ptr, n, out.ptr, None) == n * 0xFFFF_FFFF
    assert engine.to_host(out.ptr, np.uint64, n + 1)[-2] == (n - 1) * 0xFFFF_FFFF


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("n", [1, 33, CHUNK * CHUNK + 1])
def test_set_flags_are_counted(n: int, device: str, rng: np.random.Generator) -> None:
    engine, flags = engine_for(device), rng.integers(0, 2, n, dtype=np.uint8)
    assert selection.count(engine, engine.from_host(flags), n) == sum(flags.tolist())
