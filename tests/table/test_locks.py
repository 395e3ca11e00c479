"""Many readers or one writer: who waits for whom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from warphash.table.locks import ReadWriteLock

MOMENT = 0.05
"""Seconds in which a thread that may go on does; those that must wait cost the suite as much."""


def state_of(lock: Any) -> Any:
    """Who holds the lock, and who waits."""
    return lock.reading._state


class Walk:
    """A thread that takes one side of a lock, and keeps it until it is told to leave."""

    def __init__(self, side: Any) -> None:
        self._side = side
        self._inside, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._side:
            self._inside.set()
            self._leave.wait(10)

    @property
    def is_inside(self) -> bool:
        return self._inside.wait(MOMENT)

    def leaves(self) -> None:
        self._leave.set()
        self._thread.join(10)


def test_readers_go_together_and_a_writer_alone() -> None:
    lock = ReadWriteLock()
    readers = [Walk(lock.reading) for _ in range(3)]
    assert all(reader.is_inside for reader in readers)
    writers = [Walk(lock.writing) for _ in range(2)]
    assert not any(writer.is_inside for writer in writers)
    for reader in readers:
        reader.leaves()
    first, second = sorted(writers, key=lambda writer: not writer.is_inside)
    assert first.is_inside and not second.is_inside
    first.leaves()
    assert second.is_inside
    second.leaves()


def test_a_writer_that_waits_keeps_new_readers_out() -> None:
    lock = ReadWriteLock()
    old, writer = Walk(lock.reading), Walk(lock.writing)
    assert old.is_inside and not writer.is_inside
    new = Walk(lock.reading)
    assert not new.is_inside
    old.leaves()
    assert writer.is_inside and not new.is_inside
    writer.leaves()
    assert new.is_inside
    new.leaves()


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
    lock, seen = ReadWriteLock(), []

    def read() -> None:
        with lock.reading:
            seen.append("reader")

    threads = [threading.Thread(target=read, daemon=True) for _ in range(n_readers)]
    with lock.writing:
        for thread in threads:
            thread.start()
        until(lambda: state_of(lock).readers_waiting == n_readers)
    with lock.writing:
        seen.append("writer")
    assert seen == ["reader"] * n_readers + ["writer"]
    for thread in threads:
        thread.join(10)


def test_a_reader_that_is_interrupted_while_it_waits_lets_writers_in(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = ReadWriteLock()
    writer = Walk(lock.writing)
    assert writer.is_inside

    def interrupted(_state: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(state_of(lock)), "wait", interrupted)
        with lock.reading:
            pass
    writer.leaves()
    for side in (lock.writing, lock.reading, lock.writing):
        walk = Walk(side)
        assert walk.is_inside
        walk.leaves()


def test_many_of_both_sides_get_through() -> None:
    lock, counts = ReadWriteLock(), [0, 0]

    def work(side: Any, which: int) -> None:
        for _ in range(400):
            with side:
                if which:
                    counts[1] += 1  # writers are alone
                assert state_of(lock).writing == bool(which)

    sides = [(lock.writing, 1)] * 3 + [(lock.reading, 0)] * 3
    threads = [threading.Thread(target=work, args=each, daemon=True) for each in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    left = state_of(lock)
    assert counts[1] == 1200 and not (left.readers or left.readers_waiting or left.readers_due or left.waiting)


def test_a_writer_that_is_interrupted_while_it_waits_lets_readers_in(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = ReadWriteLock()
    old = Walk(lock.reading)
    assert old.is_inside

    def interrupted(_state: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(state_of(lock)), "wait", interrupted)
        with lock.writing:
            pass
    new = Walk(lock.reading)
    assert new.is_inside
    old.leaves()
    new.leaves()


@pytest.mark.parametrize("side", ["reading", "writing"])
def test_an_error_inside_lets_go(side: str) -> None:
    lock = ReadWriteLock()
    with pytest.raises(KeyError), getattr(lock, side):
        raise KeyError
    writer = Walk(lock.writing)
    assert writer.is_inside
    writer.leaves()
