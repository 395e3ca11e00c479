"""Many readers or one writer: who waits for whom."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from warphash.table.locks import ReadWriteLock

MOMENT = 0.05
"""Seconds in which a thread that may go on does; those that must wait cost the suite as much."""


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


def test_a_writer_that_is_interrupted_while_it_waits_lets_readers_in(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = ReadWriteLock()
    old = Walk(lock.reading)
    assert old.is_inside

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(lock, "_wait", interrupted)
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
