"""The threads of the CPU engine: kept from call to call, and right at forks, at exit, and when threads call at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warphash

N = 100_000
KEYS = np.arange(N, dtype="u4")


@pytest.fixture
def table() -> Iterator[Any]:
    assert in_child(lambda: True), "a fork ends the workers that other tests have started"
    warphash.set_num_threads(4)
    yield warphash.HashMap.from_arrays(KEYS, KEYS * 3, device="cpu")
    warphash.set_num_threads(None)


def workers() -> dict[str, str]:
    """State of each thread of the pool, by its number."""
    states = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            status = (task / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended since it was listed
            continue
        if status.startswith("Name:\twarphash\n"):
            states[task.name] = status
    return states


def look_up(table: Any) -> bool:
    """True if the table finds all of its pairs, and no other key."""
    values, found = table.find(KEYS)
    return bool(found.all() and (values == KEYS * 3).all() and not table.contains(KEYS + N).any())


def in_child(work: Callable[[], bool]) -> bool:
    """Run ``work`` in a forked child, and return what it returns."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def alone(program: str, stack_bytes: int = 8 << 20) -> None:
    """Run a program in a process of its own. It must end with code 0 and write nothing to its error stream."""
    start = f"import numpy as np, warphash\nKEYS = np.arange({N}, dtype='u4')\nwarphash.set_num_threads(4)\n"
    limit = ["prlimit", f"--stack={stack_bytes}"]
    done = subprocess.run([*limit, sys.executable, "-c", start + program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_are_kept(table: Any) -> None:
    assert look_up(table)
    first = workers()
    assert len(first) == 3
    for _ in range(20):
        assert look_up(table)
    assert workers().keys() == first.keys()


def test_fewer_threads_leave_the_others_asleep(table: Any) -> None:
    assert look_up(table)
    assert len(workers()) == 3

    def run_times() -> list[str]:
        while any("State:\tR" in status for status in workers().values()):
            time.sleep(0.001)
        return [Path(f"/proc/self/task/{tid}/schedstat").read_text() for tid in sorted(workers())]

    before = run_times()
    warphash.set_num_threads(1)
    assert look_up(table)
    assert run_times() == before
    warphash.set_num_threads(6)
    assert look_up(table)
    assert len(workers()) == 5


def test_a_forked_child_has_threads_of_its_own(table: Any) -> None:
    assert look_up(table)
    assert in_child(lambda: not workers() and look_up(table) and len(workers()) == 3)
    assert not workers(), "a process is forked with the threads of its program alone"
    assert look_up(table)
    assert len(workers()) == 3


def test_a_fork_beside_a_call(table: Any) -> None:
    other = warphash.HashMap.from_arrays(KEYS, KEYS, device="cpu")
    end = threading.Event()

    def call() -> bool:
        right = True
        while not end.is_set():
            right = right and bool(other.contains(KEYS).all())
        return right

    with ThreadPoolExecutor(1) as pool:
        calls = pool.submit(call)
        try:
            for _ in range(20):
                assert in_child(lambda: look_up(table) and len(workers()) == 3)
                assert look_up(table)
        finally:
            end.set()
        assert calls.result()


def test_python_threads_share_the_workers(table: Any) -> None:
    def call(seed: int) -> bool:
        own = warphash.HashMap("u4", "u4", device="cpu", capacity=N)
        right = True
        for _ in range(5):
            right = right and bool(own.insert(KEYS, KEYS + seed).all()) and look_up(table)
            right = right and bool((own.find(KEYS)[0] == KEYS + seed).all() and own.erase(KEYS).all())
        return right

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(call, range(6)))
    assert len(workers()) == 3


def test_the_number_of_threads_changes_while_calls_run(table: Any) -> None:
    end = threading.Event()

    def change() -> None:
        rng = np.random.default_rng(5)
        while not end.is_set():
            warphash.set_num_threads(int(rng.integers(1, 9)))

    changes = threading.Thread(target=change)
    changes.start()
    try:
        assert all(look_up(table) for _ in range(100))
    finally:
        end.set()
        changes.join()
    assert len(workers()) <= 7


def test_a_signal_interrupts_the_program_and_no_worker(table: Any) -> None:
    assert look_up(table)
    for status in workers().values():
        blocked = int(status.partition("SigBlk:")[2].split()[0], 16)
        assert blocked & (1 << (signal.SIGINT - 1)) and blocked & (1 << (signal.SIGALRM - 1))
        assert not blocked & (1 << (signal.SIGSEGV - 1)), "faulthandler shows where a worker faults"

    came = list[bool]()

    def interrupt(*_: Any) -> None:
        came.append(True)
        raise KeyboardInterrupt

    # Not the timer of pytest-timeout, which would be off from here on.
    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        for calls in range(1, 21):
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.003)
                while len(came) < calls:  # Python drops what a handler raises inside of a `__del__`
                    table.contains(KEYS)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert look_up(table)


def test_a_process_ends_beside_a_call() -> None:
    alone("""
import threading, time
table = warphash.HashMap.from_arrays(KEYS, KEYS, device="cpu")
def call():
    while True:
        table.contains(KEYS)
for _ in range(3):
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.1)
""")


def test_without_threads_the_caller_does_the_work() -> None:
    alone(
        """
import os, resource
table = warphash.HashMap("u4", "u4", device="cpu", capacity=len(KEYS))
threads = len(os.listdir("/proc/self/task"))
used = 4096 * int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
assert table.insert(KEYS, KEYS).all() and table.contains(KEYS).all()
assert len(os.listdir("/proc/self/task")) == threads, "a thread was started: its stack must be larger than the limit"
""",
        stack_bytes=4 << 30,
    )
