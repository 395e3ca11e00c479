"""Many readers or one writer: who waits for whom."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.faults import LOCKS, Interrupt
from warphash import HashMap, NestedCall
from warphash.storage.uninterrupted import uninterrupted
from warphash.table.locks import ReadWriteLock

MOMENT = 0.05
"""Seconds in which a thread that may go on does; those that must wait cost the suite as much."""


def is_at_rest(lock: ReadWriteLock) -> bool:
    """Whether nobody holds the lock, and nobody waits."""
    waiting = lock._waiting_to_read | lock._waiting_to_write | lock._due
    return not (lock._known or lock._reading or lock._writing or waiting or is_taken(lock._mutex))


def is_taken(mutex: Any) -> bool:
    """Whether this or another thread has a reentrant lock."""
    if not mutex.acquire(blocking=False):
        return True
    mutex.release()
    return bool(mutex._is_owned())


class Walk:
    """A thread that takes one side of a lock, and keeps it until it is told to leave, unless it does not stay."""

    def __init__(self, side: Any, stays: bool = True) -> None:
        self._side = side
        self._inside, self._leave = threading.Event(), threading.Event()
        if not stays:
            self._leave.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._side(self._stay)

    def _stay(self) -> None:
        self._inside.set()
        self._leave.wait(10)

    @property
    def is_inside(self) -> bool:
        return self._inside.wait(MOMENT)

    def leaves(self) -> None:
        self._leave.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


def test_readers_go_together_and_a_writer_alone() -> None:
    lock = ReadWriteLock()
    readers = [Walk(lock.read) for _ in range(3)]
    assert all(reader.is_inside for reader in readers)
    writers = [Walk(lock.write) for _ in range(2)]
    assert not any(writer.is_inside for writer in writers)
    for reader in readers:
        reader.leaves()
    first, second = sorted(writers, key=lambda writer: not writer.is_inside)
    assert first.is_inside and not second.is_inside
    first.leaves()
    assert second.is_inside
    second.leaves()
    assert is_at_rest(lock)


def test_a_writer_that_waits_keeps_new_readers_out() -> None:
    lock = ReadWriteLock()
    old, writer = Walk(lock.read), Walk(lock.write)
    assert old.is_inside and not writer.is_inside
    new = Walk(lock.read)
    assert not new.is_inside
    old.leaves()
    assert writer.is_inside and not new.is_inside
    writer.leaves()
    assert new.is_inside
    new.leaves()
    assert is_at_rest(lock)


def until(holds: Callable[[], bool]) -> None:
    """Wait for other threads to bring something about."""
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.005)
    raise AssertionError("nobody brought it about")


@pytest.mark.parametrize("n_readers", [1, 3])
def test_readers_that_waited_go_before_the_next_writer(n_readers: int) -> None:
    """So a thread that does nothing but write cannot keep them out."""
    lock, seen = ReadWriteLock(), list[str]()
    threads = [threading.Thread(target=lock.read, args=(seen.append, "reader"), daemon=True) for _ in range(n_readers)]

    def let_them_wait() -> None:
        for thread in threads:
            thread.start()
        until(lambda: len(lock._waiting_to_read) == n_readers)

    lock.write(let_them_wait)
    lock.write(seen.append, "writer")
    assert seen == ["reader"] * n_readers + ["writer"]
    for thread in threads:
        thread.join(10)
    assert is_at_rest(lock)


def wait_interrupted(_lock: ReadWriteLock) -> None:
    raise KeyboardInterrupt


def test_a_reader_that_is_interrupted_while_it_waits_lets_writers_in(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, called = ReadWriteLock(), list[int]()
    writer = Walk(lock.write)
    assert writer.is_inside
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ReadWriteLock, "_wait", wait_interrupted)
        lock.read(called.append, 1)
    writer.leaves()
    assert not called
    for side in (lock.write, lock.read, lock.write):
        walk = Walk(side)
        assert walk.is_inside
        walk.leaves()
    assert is_at_rest(lock)


def test_many_of_both_sides_get_through() -> None:
    lock, counts, wrong = ReadWriteLock(), [0, 0], list[str]()

    def step(which: int) -> None:
        me = threading.get_ident()
        if which:
            counts[1] += 1  # writers are alone
        if lock._writing != ({me} if which else set()) or (me in lock._reading) == bool(which):
            wrong.append("a writer" if which else "a reader")

    def work(side: Any, which: int) -> None:
        for _ in range(400):
            side(step, which)

    sides = [(lock.write, 1)] * 3 + [(lock.read, 0)] * 3
    threads = [threading.Thread(target=work, args=each, daemon=True) for each in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert counts[1] == 1200 and not wrong and is_at_rest(lock)


def test_a_writer_that_is_interrupted_while_it_waits_lets_readers_in(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, called = ReadWriteLock(), list[int]()
    old = Walk(lock.read)
    assert old.is_inside
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ReadWriteLock, "_wait", wait_interrupted)
        lock.write(called.append, 1)
    new = Walk(lock.read)
    assert new.is_inside and not called
    old.leaves()
    new.leaves()
    assert is_at_rest(lock)


@pytest.mark.parametrize("side", ["read", "write"])
def test_an_error_inside_lets_go(side: str) -> None:
    lock = ReadWriteLock()

    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        getattr(lock, side)(fail)
    assert is_at_rest(lock)
    writer = Walk(lock.write)
    assert writer.is_inside
    writer.leaves()


@pytest.mark.parametrize("side", ["read", "write"])
def test_what_the_verb_returns_is_returned(side: str) -> None:
    assert getattr(ReadWriteLock(), side)(divmod, 17, 5) == (3, 2)
    assert getattr(ReadWriteLock(), side)(int, "ff", base=16) == 255


def test_a_lock_that_was_waited_for_is_in_no_reference_cycle() -> None:
    class Seen(ReadWriteLock):
        """A lock with room for a weak reference."""

    lock = Seen()
    seen, waiting = weakref.ref(lock), lock._waiting_to_write
    reader, writer = Walk(lock.read), Walk(lock.write, stays=False)
    until(lambda: bool(waiting))
    reader.leaves()
    writer.leaves()
    assert lock._changed is not None
    gc.disable()
    try:
        del lock, reader, writer
        assert seen() is None
    finally:
        gc.enable()


def interrupted(number: int, side: str, holder: str, others: tuple[str, ...]) -> bool:
    """Interrupt ``read`` or ``write`` at the ``number``-th line of the lock; whether it has so many.

    A ``holder`` is inside until the interrupted thread waits or has ended. The ``others`` wait: beside the interrupted
    thread if there is a holder, else for the interrupted thread to leave. They all get in.
    """
    lock, walks, over = ReadWriteLock(), list[Walk](), threading.Event()
    me = threading.get_ident()

    def others_wait() -> None:
        for other in others:
            walks.append(Walk(getattr(lock, other), stays=False))
            until(lambda: len(lock._waiting_to_read) + len(lock._waiting_to_write) == len(walks))

    def verb() -> str:
        if not holder:
            others_wait()
        return "done"

    def let_the_holder_leave() -> None:
        until(lambda: me in lock._waiting_to_read | lock._waiting_to_write or over.is_set())
        first.leaves()

    leaving = threading.Thread(target=let_the_holder_leave, daemon=True)
    if holder:
        first = Walk(getattr(lock, holder))
        assert first.is_inside
        others_wait()
        leaving.start()
    interrupt, before = Interrupt(number, LOCKS), sys.gettrace()
    call, answer = getattr(lock, side), ""
    sys.settrace(interrupt)
    try:
        answer = call(verb)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    over.set()
    assert bool(answer) != bool(interrupt.place)
    if holder:
        leaving.join(10)
        assert not leaving.is_alive()
    for walk in walks:
        walk.leaves()
        assert walk.is_inside
    assert is_at_rest(lock), interrupt.place
    for each in (lock.write, lock.read, lock.write):
        walk = Walk(each, stays=False)
        walk.leaves()
        assert walk.is_inside
    assert is_at_rest(lock), interrupt.place
    return bool(interrupt.place)


@pytest.mark.parametrize(
    ("side", "holder", "others"),
    [
        *(pytest.param(side, "", (), id=side) for side in ("read", "write")),
        *(
            pytest.param(side, "", others, id=f"{side}-awaited-by-{'-'.join(others)}")
            for side, others in (
                ("read", ("write",)),
                ("read", ("write", "read")),
                ("write", ("read",)),
                ("write", ("write",)),
                ("write", ("read", "write")),
            )
        ),
        *(
            pytest.param(side, holder, others, id=f"{side}-{'-'.join(('behind', holder, 'beside', *others))}")
            for side, holder in (("read", "write"), ("write", "write"), ("write", "read"))
            for others in ((), ("write",), ("write", "read"))
        ),
    ],
)
def test_an_interrupt_at_any_line_leaves_the_lock_free(side: str, holder: str, others: tuple[str, ...]) -> None:
    """With nobody else there, with others that wait, and of a thread that waits itself."""
    n_lines = next(number for number in itertools.count(1) if not interrupted(number, side, holder, others)) - 1
    assert n_lines > 15


def test_a_thread_that_reads_may_read_again() -> None:
    """The first call holds the lock until it ends: no writer comes between."""
    lock = ReadWriteLock()

    def outer() -> bool:
        assert lock.read(lambda: "inner") == "inner"
        return Walk(lock.write).is_inside

    assert not lock.read(outer)


def here(work: Callable[[], Any]) -> Any:
    return work()


@pytest.mark.parametrize("done", [here, uninterrupted], ids=["here", "by another thread"])
@pytest.mark.parametrize(("outer", "inner"), [("write", "read"), ("write", "write"), ("read", "write")])
def test_a_call_within_a_call_that_it_would_wait_for_is_refused(outer: str, inner: str, done: Any) -> None:
    """Also if the call comes from work that another thread does for the outer call."""
    lock = ReadWriteLock()

    def call() -> None:
        with pytest.raises(NestedCall, match="call the table later"):
            done(lambda: getattr(lock, inner)(lambda: None))
        assert lock.write_within(0.01, lambda: None) is False
        assert not Walk(lock.write).is_inside  # the outer call still holds the lock

    getattr(lock, outer)(call)


def test_work_of_a_thread_that_reads_may_read_though_a_writer_waits() -> None:
    lock, reads, done = ReadWriteLock(), threading.Event(), list[str]()

    def outer() -> None:
        reads.set()
        while not lock._waiting_to_write:
            time.sleep(0.001)
        uninterrupted(lambda: lock.read(lambda: done.append("read")))

    writer = threading.Thread(target=lambda: reads.wait() and lock.write(lambda: done.append("write")))
    writer.start()
    lock.read(outer)
    writer.join()
    assert done == ["read", "write"]


def test_a_handler_that_calls_a_table_in_the_midst_of_an_update() -> None:
    """`len` of a table, called at each line of an insert, is refused or answered, and the insert ends."""
    table, said = HashMap("int64", "int64", device="cpu"), set[str]()

    def called(frame: Any, event: str, argument: Any) -> Any:
        try:
            said.add(str(len(table)))
        except NestedCall:
            said.add("refused")
        return called

    keys = np.arange(1000)
    before = sys.gettrace()
    sys.settrace(called)
    try:
        table.insert(keys, keys)
    finally:
        sys.settrace(before)
    assert said == {"0", "1000", "refused"}
    assert table.find(keys)[1].all()
