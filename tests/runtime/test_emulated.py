"""The emulated device itself: schedules, collectives, memory, and what it says when a kernel breaks a rule."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warphash
from support.engines import missing
from warphash.runtime.abi import Batch, ChainBatch, ChainTable, Table
from warphash.runtime.cuda.nvrtc import CompileError
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine, EmulatedProgram, EmulationError, load
from warphash.runtime.emulated.guarded import DEVICE_BYTES, QUARANTINE, GuardedMemory
from warphash.runtime.source import amalgamate

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

KERNEL = """
#define WARPHASH_EMULATED 1
#include "core/abi.cuh"
#include "platform/platform.cuh"
namespace warphash {
inline void kernel(const Table& t, const Batch& b) {
  const u64 i = thread_in_grid();
  u64* out = reinterpret_cast<u64*>(b.out_values);
  u64* counter = reinterpret_cast<u64*>(b.report);
%s
}
}
WARPHASH_BLOCK_ENTRY(kernel, warphash::kernel)
"""


@pytest.fixture
def engine() -> EmulatedEngine:
    return EmulatedEngine()


@pytest.fixture(autouse=True)
def keep_seed() -> Iterator[None]:
    kept = emulated.schedule_seed
    yield
    emulated.schedule_seed = kept


def run(engine: EmulatedEngine, body: str, n: int = 256, seed: int = 1, **fields: int) -> Any:
    """What ``body`` left in ``out``, a word a thread, and in ``counter``."""
    blocks_threads = -(-n // 256) * 256
    out = engine.from_host(np.zeros(blocks_threads, np.uint64))
    counter = engine.from_host(np.zeros(1, np.uint64))
    emulated.schedule_seed = seed
    program = EmulatedProgram(engine, load(amalgamate(KERNEL % body, "unit.cu")))
    program.run("kernel", Table(), Batch(n=n, out_values=out.ptr, report=counter.ptr, **fields), n)
    return engine.to_host(out.ptr, np.uint64, blocks_threads), int(engine.to_host(counter.ptr, np.uint64, 1)[0])


# ---- what a kernel is given
@pytest.mark.parametrize("given", [(ChainTable(), Batch(n=1)), (Table(), ChainBatch(n=1))])
def test_a_table_or_a_batch_of_another_type_is_refused(engine: EmulatedEngine, given: Any) -> None:
    program = EmulatedProgram(engine, load(amalgamate(KERNEL % "", "unit.cu")))
    with pytest.raises(EmulationError, match="of another type"):
        program.run("kernel", *given, 1)


# ---- threads and collectives
def test_every_thread_of_every_block_runs_once(engine: EmulatedEngine) -> None:
    n = 256 * 9 + 1
    out, counter = run(engine, "out[i] += thread_in_block() + 1; fetch_add(counter, u64(1));", n)
    np.testing.assert_array_equal(out, np.tile(np.arange(256) + 1, 10))
    assert counter == 2560


@pytest.mark.parametrize("seed", range(4))
def test_collectives_of_a_warp(engine: EmulatedEngine, seed: int) -> None:
    body = (
        "out[i] = shuffle(u64(ballot(lane() % 3 == 0)) << 8 | lane(), lane() + 1, 8) | (u64(any(lane() == 31)) << 60);"
    )
    out, _ = run(engine, body, seed=seed)
    lane = np.arange(256, dtype=np.uint64) % 32
    neighbour = (lane & ~np.uint64(7)) | ((lane + np.uint64(1)) & np.uint64(7))
    votes = np.uint64(sum(1 << j for j in range(0, 32, 3)))
    np.testing.assert_array_equal(out, votes << np.uint64(8) | neighbour | np.uint64(1 << 60))


@pytest.mark.parametrize("seed", range(6))
def test_a_block_shares_its_own_memory_behind_barriers(engine: EmulatedEngine, seed: int) -> None:
    body = """
      WARPHASH_BLOCK_SHARED u64 seen[256];
      seen[thread_in_block()] = i;
      block_barrier();
      load_relaxed(counter);
      out[i] = seen[255 - thread_in_block()];
    """
    out, _ = run(engine, body, 256 * 7, seed)
    i = np.arange(256 * 7)
    np.testing.assert_array_equal(out, i // 256 * 256 + 255 - i % 256)


# ---- schedules
ORDER = "out[i] = fetch_add(counter, u64(1));"


def test_a_seed_is_a_schedule(engine: EmulatedEngine) -> None:
    orders = {seed: run(engine, ORDER, 1024, seed)[0].tobytes() for seed in range(1, 9)}
    assert len(set(orders.values())) == len(orders)
    assert all(run(engine, ORDER, 1024, seed)[0].tobytes() == order for seed, order in orders.items())


def test_seed_0_runs_threads_in_order(engine: EmulatedEngine) -> None:
    np.testing.assert_array_equal(run(engine, ORDER, 512, 0)[0], np.arange(512))


def test_an_atomic_loses_nothing_and_its_imitation_does(engine: EmulatedEngine) -> None:
    assert run(engine, "atomic_add(counter, u64(1));", 1024)[1] == 1024
    assert run(engine, "store_relaxed(counter, load_relaxed(counter) + 1);", 1024)[1] < 1024


# ---- broken rules
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if (lane() != 3) ballot(true);", "deadlock: 248 lanes wait for their warp"),
        ("if (thread_in_block() < 200) block_barrier();", "200 for their block, and 56 lanes"),
        ("if (lane() == 3) ballot(true); else shuffle(0u, 0, 32);", "others of its warp wait in a"),
        ("while (load_relaxed(counter) == 0) {}", "livelock"),
        ("out = reinterpret_cast<u64*>(b.out_values + 4); atomic_add(out, u64(1));", "is not aligned"),
        ('char big[40000]; for (char& c : big) asm volatile("movb $1, %0" : "=m"(c));', "of stack|not there"),
        ("out[i + 1] = 1;", "0 bytes behind the end of memory of 2,048 bytes"),
        ("if (i == 7) atomic_add(out + 256 + 4, u64(1));", "warp 0, lane 7: .*32 bytes behind the end of"),
        ("if (i == 0) out[-1] = 1;", "wrote outside its memory: .* 8 bytes before memory of 2,048"),
        ("atomic_add(reinterpret_cast<u64*>(b.keys), u64(1));", "near no memory of the device"),
    ],
)
def test_a_broken_rule_is_told(engine: EmulatedEngine, body: str, said: str) -> None:
    with pytest.raises(EmulationError, match=said) as caught:
        run(engine, body)
    assert "kernel 'kernel' over 256 elements, schedule_seed 1" in str(caught.value)
    np.testing.assert_array_equal(run(engine, "out[i] = 1;")[0], 1)  # and the device goes on


def test_freed_memory_is_untouchable(engine: EmulatedEngine) -> None:
    gone = engine.from_host(np.arange(64, dtype=np.uint64))
    ptr = gone.ptr
    del gone
    with pytest.raises(EmulationError, match="byte 0 of freed memory of 512 bytes"):
        run(engine, "out[i] = *reinterpret_cast<u64*>(b.keys);", keys=ptr)
    with pytest.raises(ValueError, match="freed memory"):
        engine.to_host(ptr, np.uint64, 1)


def test_a_kernel_that_does_not_compile(engine: EmulatedEngine) -> None:
    with pytest.raises(CompileError, match=r"unit\.cu:.*nonsense"):
        run(engine, "nonsense();")


# ---- memory
def test_memory_is_aligned_ends_at_a_guard_and_holds_a_pattern() -> None:
    memory = GuardedMemory()
    for nbytes in (1, 15, 16, 4096, 5000):
        ptr = memory.take(nbytes)
        assert ptr % 16 == 0 and (ptr + nbytes + 15) // 16 * 16 % 4096 == 0
        assert set(ctypes.string_at(ptr, nbytes)) == {0xA5}
        memory.give_back(ptr)
    assert memory.used == 0


def test_memory_ends() -> None:
    memory = GuardedMemory()
    kept = memory.take(DEVICE_BYTES // 2)
    with pytest.raises(MemoryError, match=r"536,870,912 bytes free, and 1,073,741,824 are needed"):
        memory.take(DEVICE_BYTES)
    memory.give_back(kept)
    for _ in range(QUARANTINE + 10):
        memory.give_back(memory.take(100_000))


def test_copies_stay_inside_memory(engine: EmulatedEngine) -> None:
    held = engine.from_host(np.arange(10, dtype=np.uint8))
    with pytest.raises(ValueError, match="0 bytes behind the end"):
        engine.to_host(held.ptr + 10, np.uint8, 1)
    with pytest.raises(ValueError, match="11 bytes at"):
        engine.fill(held.ptr, 0, 11)
    with pytest.raises(ValueError, match="near no memory"):
        engine.copy(held.ptr, 4096, 4)


# ---- the cache
def test_a_library_is_compiled_once(engine: EmulatedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPHASH_CACHE_DIR", str(tmp_path))
    run(engine, ORDER)
    (library,) = (tmp_path / "emulated").iterdir()
    written = library.stat().st_mtime_ns
    run(engine, ORDER)
    assert library.stat().st_mtime_ns == written
    run(engine, ORDER + ";")
    assert len(list((tmp_path / "emulated").iterdir())) == 2


def test_the_engine_behind_the_public_name() -> None:
    table = warphash.HashMap("u4", "u4", device="emulated")
    assert table.device == "emulated"
    keys = np.arange(9, dtype=np.uint32)
    table[keys] = keys + 1
    np.testing.assert_array_equal(table[keys], keys + 1)


def test_a_rule_that_is_broken_is_named_with_the_lane(engine: EmulatedEngine) -> None:
    with pytest.raises(EmulationError, match=r"lane 8: breaks the rule i != 40 \(kernel\)"):
        run(engine, "WARPHASH_ASSERT(i != 40); out[i] = i;")
