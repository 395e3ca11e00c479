"""Many readers or one writer."""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["ReadWriteLock"]


class ReadWriteLock:
    """Lets operations that change nothing run together, and those that change a table run alone.

    A writer that waits keeps new readers out, so it cannot starve. Not reentrant.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0
        self._reading = _Reading(self)
        self._alone = _Writing(self)

    def reading(self) -> _Reading:
        """Hold the lock beside other readers."""
        return self._reading

    def writing(self) -> _Writing:
        """Hold the lock alone."""
        return self._alone


class _Side:
    # A class and not a generator: a lookup of 1,000 keys takes 30 us in all, and a generator's context 2 of them.
    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock


class _Reading(_Side):
    def __enter__(self) -> None:
        lock = self._lock
        with lock._changed:
            while lock._writing or lock._writers_waiting:
                lock._changed.wait()
            lock._readers += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lock = self._lock
        with lock._changed:
            lock._readers -= 1
            if not lock._readers:
                lock._changed.notify_all()


class _Writing(_Side):
    def __enter__(self) -> None:
        lock = self._lock
        with lock._changed:
            lock._writers_waiting += 1
            while lock._writing or lock._readers:
                lock._changed.wait()
            lock._writers_waiting -= 1
            lock._writing = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lock = self._lock
        with lock._changed:
            lock._writing = False
            lock._changed.notify_all()
