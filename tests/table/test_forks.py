"""Forks while threads are in calls of tables: the child works, or is told why it cannot."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from support.inside import parts_of
from warphash import HashMap, HashSet, MultiMap, ProcessError
from warphash.storage.uninterrupted import uninterrupted
from warphash.table import locks
from warphash.table.locks import ReadWriteLock

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

KEYS = np.random.default_rng(0).permutation(50_000)
NEW = np.array([-1])


def in_child(work: Callable[[], Any], patience: float = 60) -> Any:
    """What ``work`` returns, or the text of its error, in a forked child; "hangs" if the child does not end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, repr(work()).encode())
        except BaseException as error:
            os.write(writer, repr(f"{type(error).__name__}: {error}").encode())
        os._exit(0)
    os.close(writer)
    end = time.monotonic() + patience
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reader)
            return "hangs"
        time.sleep(0.001)
    with os.fdopen(reader) as answer:
        return eval(answer.read())


@pytest.fixture
def busy() -> Iterator[Callable[[Callable[[], Any]], None]]:
    """Starts threads that repeat a call until the test ends."""
    end, threads = threading.Event(), list[threading.Thread]()

    def start(call: Callable[[], Any]) -> None:
        def work() -> None:
            while not end.is_set():
                call()

        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()

    yield start
    end.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def works(table: Any) -> bool:
    """Whether all verbs of a table work, and no key is lost."""
    table.check()
    size = len(table)
    found = table.contains(KEYS)
    table.insert(NEW) if isinstance(table, HashSet) else table.insert(NEW, NEW)
    return bool(found.all()) and len(table) == size + 1 and bool(table.contains(NEW)[0])


@pytest.mark.parametrize(
    ("design", "verb"),
    [
        *(
            (design, "assign")
            for design in ("cuckoo", "slab", "dynamic_cuckoo", "stadium", "quotient_cuckoo", "tiered")
        ),
        *((design, "find") for design in ("iceberg", "tiered")),
    ],
)
def test_a_fork_while_threads_are_in_calls(design: str, verb: str, busy: Any) -> None:
    table = HashMap.from_arrays(KEYS, KEYS, design=design, device="cpu")
    busy(lambda: table.assign(KEYS, KEYS) if verb == "assign" else table.find(KEYS))
    busy(lambda: table.contains(KEYS[:100]))
    for _ in range(2):
        assert in_child(lambda: works(table)) is True
    assert works(table)


@pytest.mark.parametrize("kind", [HashSet, MultiMap, "str", "bounded"])
def test_a_fork_beside_updates_of_other_kinds(kind: Any, busy: Any) -> None:
    keys = KEYS[:20_000]
    if kind == "str":
        table: Any = HashMap("str", "int64")
        names = keys.astype(str)
        busy(lambda: table.assign(names, keys))
        assert in_child(lambda: (table.check(), len(table) in (0, len(keys)))[1]) is True
    elif kind == "bounded":
        table = HashMap("int64", "int64", max_size=5000, evict="lru", device="cpu")
        busy(lambda: table.assign(keys, keys))
        time.sleep(0.02)
        assert in_child(lambda: (table.check(), len(table) <= 5000)[1]) is True
    else:
        table = kind("int64", **({} if kind is HashSet else {"value": "int64"}), device="cpu")
        args = (keys,) if kind is HashSet else (keys, keys)
        busy(lambda: (table.insert(*args), table.erase(keys)))
        time.sleep(0.02)
        assert in_child(lambda: (table.check(), len(table) in (0, len(keys)))[1]) is True


def test_forks_in_several_threads_and_children_that_fork(busy: Any) -> None:
    table = HashMap.from_arrays(KEYS, KEYS, device="cpu")
    busy(lambda: table.assign(KEYS, KEYS))
    answers = list[Any]()
    threads = [
        threading.Thread(target=lambda: answers.append(in_child(lambda: in_child(lambda: works(table)))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [True] * 3


def test_tables_that_are_made_beside_forks(busy: Any) -> None:
    """The call of a table may make others, and enter their locks: a check makes a set."""
    table = HashMap.from_arrays(KEYS, KEYS, device="cpu")
    busy(lambda: HashMap.from_arrays(KEYS[:100], KEYS[:100], device="cpu").copy().find(KEYS))
    busy(table.check)
    start = time.monotonic()
    for _ in range(5):
        assert in_child(lambda: works(table)) is True
    assert time.monotonic() - start < 5 * locks.LONGEST_FORK_WAIT_S, "a fork waits for a thread that waits for the fork"


class Inside:
    """A thread that is inside of a call of a lock until it is told to leave."""

    def __init__(self, side: Any, then: Callable[[], Any] = lambda: None) -> None:
        self._entered, self._leave, self._then = threading.Event(), threading.Event(), then
        self._thread = threading.Thread(target=side, args=(self._stay,), daemon=True)
        self._thread.start()
        assert self._entered.wait(10)

    def _stay(self) -> None:
        self._entered.set()
        self._leave.wait(60)
        self._then()

    def leaves(self) -> None:
        self._leave.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("side", ["read", "write"])
def test_a_call_that_does_not_end(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fork does not wait for ever. The child refuses that table for good, also in its own children."""
    monkeypatch.setattr(locks, "LONGEST_FORK_WAIT_S", 0.1)
    table = HashMap.from_arrays(KEYS, KEYS, device="cpu")
    other = HashMap.from_arrays(KEYS, KEYS, device="cpu")
    inside = Inside(getattr(parts_of(table).guarded.lock, side))

    def refusals() -> list[bool]:
        calls = (lambda: table.find(KEYS), lambda: table.insert(NEW, NEW), lambda: len(table), table.keys, table.check)
        said = []
        for call in calls:
            try:
                call()
            except ProcessError as error:
                said.append("another thread was in a call" in str(error) and "spawn" in str(error))
        return said

    assert in_child(refusals) == [True] * 5
    assert in_child(lambda: in_child(refusals)) == [True] * 5
    assert in_child(lambda: works(other)) is True
    inside.leaves()
    assert works(table) and in_child(lambda: len(table)) == len(KEYS) + 1


def test_a_thread_in_a_call_enters_further_locks_while_a_fork_waits() -> None:
    outer, inner, left = ReadWriteLock(), ReadWriteLock(), list[str]()
    inside = Inside(outer.write, lambda: (inner.read(left.append, "read"), inner.write(left.append, "written")))
    threading.Timer(0.2, inside.leaves).start()
    start = time.monotonic()
    assert in_child(lambda: (outer.write(int), inner.write(int), left)[2]) == ["read", "written"]
    assert time.monotonic() - start < locks.LONGEST_FORK_WAIT_S


def test_threads_that_wait_for_a_lock_go_on_in_the_parent() -> None:
    """And the child forgets them."""
    lock, done = ReadWriteLock(), list[str]()
    inside = Inside(lock.write)
    waiting = [
        threading.Thread(target=side, args=(done.append, name), daemon=True)
        for side, name in ((lock.read, "read"), (lock.write, "written"), (lock.read, "read"))
    ]
    for thread in waiting:
        thread.start()
    threading.Timer(0.1, inside.leaves).start()
    assert in_child(lambda: [lock.write(lambda: 1), lock.read(lambda: 2), lock.write(lambda: 3)]) == [1, 2, 3]
    for thread in waiting:
        thread.join(10)
    assert sorted(done) == ["read", "read", "written"]
    assert not (lock._known or lock._due or lock._reading or lock._writing)


IN_A_HANDLER = """
import os, signal, sys, threading, time
import numpy as np
from warphash import HashMap
from warphash.table.locks import ReadWriteLock
from warphash.storage.uninterrupted import uninterrupted

where, forked = sys.argv[1], []
def handler(*_):
    if not forked:
        forked.append(os.fork())
signal.signal(signal.SIGUSR1, handler)
def forks_soon(seconds=0.05):
    threading.Timer(seconds, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1)).start()

lock = ReadWriteLock()
if where == "inside":
    lock.write(lambda: handler())
elif where in ("wait to read", "wait to write"):
    inside, leave = threading.Event(), threading.Event()
    def stay():
        inside.set()
        leave.wait()
    other = threading.Thread(target=lock.write, args=(stay,), daemon=True)
    other.start()
    inside.wait()
    forks_soon()
    threading.Timer(0.3, leave.set).start()
    (lock.read if where == "wait to read" else lock.write)(int)
elif where == "uninterrupted":
    forks_soon()
    assert uninterrupted(lambda: (time.sleep(0.3), 7)[1]) == 7
else:
    keys = np.arange(300_000)
    table = HashMap("int64", "int64", device="cpu", design=where)
    forks_soon()
    while not forked:
        table.upsert(keys, keys, "max")
    table.check()
    assert (table.find(keys)[0] == keys).all()
lock.write(int)
assert lock.read(lambda: 5) == 5
assert not (lock._known or lock._due or lock._reading or lock._writing)
if forked[0]:
    end = time.monotonic() + 30
    while not (status := os.waitpid(forked[0], os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(forked[0], signal.SIGKILL)
            sys.exit("the child hangs")
        time.sleep(0.01)
    sys.exit(status[1])
os._exit(0)
"""


@pytest.mark.parametrize(
    "where", ["inside", "wait to read", "wait to write", "uninterrupted", "cuckoo", "quotient_cuckoo"]
)
def test_a_handler_of_a_signal_forks(where: str) -> None:
    """In the middle of a call of its own thread, which goes on in both processes."""
    command = [sys.executable, "-W", "ignore", "-c", IN_A_HANDLER, where]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_work_that_was_forked_half_way_is_refused_in_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler of a signal forks, and the work does not end before."""
    monkeypatch.setattr(sys.modules["warphash.storage.uninterrupted"], "_LONGEST_FORK_WAIT_S", 0.05)
    begun, answers = threading.Event(), list[Any]()

    def work() -> int:
        begun.set()
        time.sleep(0.5)
        return 7

    def handler(*_: Any) -> None:
        answers.append(os.fork())

    before = signal.signal(signal.SIGUSR1, handler)
    threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1)).start()
    try:
        made = uninterrupted(work)
    except BaseException as error:
        if answers == [0]:
            os._exit(isinstance(error, ProcessError) and 3)
        raise
    finally:
        signal.signal(signal.SIGUSR1, before)
    if answers == [0]:
        os._exit(1)
    assert made == 7 and os.waitstatus_to_exitcode(os.waitpid(answers[0], 0)[1]) == 3


IN_C = """
import ctypes, os, threading
from warphash import HashSet, ProcessError
from warphash.table.locks import ReadWriteLock

free, taken, inside = ReadWriteLock(), ReadWriteLock(), threading.Event()
threading.Thread(target=taken.write, args=(lambda: (inside.set(), threading.Event().wait()),), daemon=True).start()
inside.wait()
child = ctypes.PyDLL(None).fork()
if not child:
    ctypes.pythonapi.PyOS_AfterFork_Child()
    assert free.write(lambda: 1) and HashSet("int64", device="cpu").insert([5])[0]
    try:
        taken.read(int)
    except ProcessError:
        os._exit(3)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_a_program_in_c_forks() -> None:
    """It tells Python afterwards alone."""
    run = subprocess.run([sys.executable, "-c", IN_C], capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout, run.stderr) == ("3\n", "")


def test_a_pool_of_processes(busy: Any) -> None:
    table = HashMap.from_arrays(KEYS, KEYS, device="cpu")
    busy(lambda: table.assign(KEYS, KEYS))
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        assert pool.map(abs, range(-6, 0), chunksize=1) == [6, 5, 4, 3, 2, 1]


def test_locks_are_forgotten_with_their_tables() -> None:
    before = len(locks._live())
    made = [ReadWriteLock() for _ in range(10)]
    assert len(locks._live()) == before + 10
    del made
    assert len(locks._live()) == before


IN_A_POOL = """
import logging, os, threading, time
from warphash.table.locks import ReadWriteLock
from warphash.storage.uninterrupted import uninterrupted
lock, end = ReadWriteLock(), threading.Event()
def call():
    for _ in range(3):
        uninterrupted(lambda: time.sleep(0.001))
    logging.Handler()
def work():
    while not end.is_set():
        lock.write(call)
thread = threading.Thread(target=work)
thread.start()
slowest = 0
for _ in range(5):
    start = time.monotonic()
    if not (child := os.fork()):
        os._exit(lock.read(lambda: 0))
    slowest = max(slowest, time.monotonic() - start)
    assert os.waitpid(child, 0)[1] == 0
end.set()
thread.join()
print(slowest < 4)
"""


def test_a_call_in_progress_logs_and_uses_a_pool_of_threads() -> None:
    """The standard library takes locks before a fork, and the call needs these locks in order to end."""
    command = [sys.executable, "-W", "ignore", "-c", IN_A_POOL]
    run = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert (run.stdout, run.stderr) == ("True\n", "")
