"""The CPU engine keeps freed memory for later requests, within bounds, and gives it to nobody twice."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from warphash.runtime import _cpu  # type: ignore[attr-defined]
from warphash.runtime.cpu import engine
from warphash.runtime.memory import bytes_at

MIB = 1 << 20
SIZES = ((1 << 16) + 1, 100_000, MIB, 2 * MIB - 1, 2 * MIB, 5 * MIB + 3, 64 * MIB)


@pytest.fixture(autouse=True)
def most() -> Iterator[None]:
    """Begin without kept memory, and with a bound that the tests know."""
    engine()
    _cpu.keep_freed(0)
    _cpu.keep_freed(256 * MIB)
    yield
    _cpu.keep_freed(0)
    _cpu.keep_freed(256 * MIB)


def freed(nbytes: int) -> int:
    """Where a block was that is freed again."""
    return int(engine().allocate(nbytes).ptr)


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_request_gets_what_was_freed(nbytes: int) -> None:
    at = freed(nbytes)
    kept = _cpu.kept_bytes()
    assert nbytes <= kept < nbytes + 2 * MIB
    block = engine().allocate(nbytes)
    assert block.ptr == at and _cpu.kept_bytes() == 0
    assert block.ptr % (2 * MIB if nbytes >= 2 * MIB else 4096) == 0


def test_a_request_gets_no_more_than_it_can_use() -> None:
    at = freed(64 * MIB)
    assert engine().allocate(40 * MIB).ptr != at
    assert engine().allocate(65 * MIB).ptr != at
    small = engine().allocate(MIB)
    assert small.ptr != at
    assert engine().allocate(50 * MIB).ptr == at


def test_what_is_kept_is_bounded() -> None:
    for _ in range(3):
        blocks = [engine().allocate(32 * MIB) for _ in range(20)]
        del blocks
        assert _cpu.kept_bytes() <= 256 * MIB
    assert _cpu.kept_bytes() >= 128 * MIB
    freed(257 * MIB)
    assert engine().allocate(257 * MIB).nbytes == 257 * MIB
    blocks = [engine().allocate(1 << 17) for _ in range(1000)]
    del blocks
    assert _cpu.kept_bytes() <= 256 * MIB


def test_threads_get_different_memory() -> None:
    """Each thread finds in its blocks what it wrote there, whatever others free meanwhile."""
    broken: list[int] = []

    def work(seed: int) -> None:
        mine = np.random.default_rng(seed)
        held: list[tuple[object, np.ndarray, int]] = []
        for _ in range(300):
            block = engine().allocate(int(mine.integers(1 << 16, 3 * MIB)))
            words = bytes_at(block.ptr, block.nbytes & ~7).view(np.uint64)
            mark = seed << 32 | len(held)
            words[:: len(words) // 16] = mark
            held.append((block, words, mark))
            if len(held) > 8:
                _block, words, mark = held.pop(int(mine.integers(len(held))))
                broken.extend([mark] * bool((words[:: len(words) // 16] != mark).any()))
                del _block, words
            del block

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not broken


def test_a_child_keeps_nothing_and_changes_nothing() -> None:
    held = engine().allocate(4 * MIB)
    bytes_at(held.ptr, held.nbytes)[:] = 7
    freed(8 * MIB)
    child = os.fork()
    if child == 0:
        empty = _cpu.kept_bytes() == 0
        block = engine().allocate(8 * MIB)
        bytes_at(block.ptr, block.nbytes)[:] = 9
        bytes_at(held.ptr, held.nbytes)[:] = 9
        os._exit(0 if empty else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _cpu.kept_bytes() == 8 * MIB
    assert (bytes_at(held.ptr, held.nbytes) == 7).all()


def test_a_fork_beside_requests() -> None:
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            freed(3 * MIB)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                freed(3 * MIB)
                os._exit(0 if _cpu.kept_bytes() == 4 * MIB else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        thread.join()


def test_kept_memory_goes_back_before_a_request_is_refused() -> None:
    program = """
import resource
from warphash.runtime.cpu import engine
from warphash.runtime import _cpu
engine()
_cpu.keep_freed(1 << 40)
blocks = [engine().allocate(1 << 26) for _ in range(16)]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
del blocks
assert _cpu.kept_bytes() == 1 << 30
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), resource.RLIM_INFINITY))
block = engine().allocate(1 << 30)
assert _cpu.kept_bytes() == 0
try:
    engine().allocate(1 << 30)
except MemoryError:
    print("refused")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "refused\n", ran.stderr


@pytest.mark.parametrize(("fraction", "kept"), [("0", False), ("0.5", True)])
def test_a_process_may_keep_nothing(fraction: str, kept: bool) -> None:
    program = """
from warphash.runtime.cpu import engine
from warphash.runtime import _cpu
engine().allocate(1 << 20)
print(_cpu.kept_bytes())
"""
    environment = os.environ | {"WARPHASH_KEPT_FRACTION": fraction}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert ran.stdout.strip() == str(MIB if kept else 0), ran.stderr


def test_kept_memory_is_marked_as_free() -> None:
    """The system may take it: it counts as ``LazyFree``."""
    block = engine().allocate(64 * MIB)
    bytes_at(block.ptr, block.nbytes)[:: resource.getpagesize()] = 1
    before = lazily_freed()
    del block
    assert lazily_freed() - before >= 32 * MIB


def lazily_freed() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("LazyFree"))
