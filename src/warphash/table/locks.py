"""Many readers or one writer."""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["ReadWriteLock"]


class ReadWriteLock:
    """Lets operations that change nothing run together, and those that change a table run alone.

    Neither side starves. A writer that waits keeps new readers out; and the readers that waited for a writer go before
    the next one. Not reentrant.

    Attributes
    ----------
    reading, writing
        To hold in a ``with`` statement: the lock beside other readers, or alone.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        self._waiting = 0
        self._writers_waiting = self._readers_waiting = 0
        self._readers_due = 0  # that go before the next writer
        self._readers = 0
        self._writing = False
        self.reading = _Reading(self)
        self.writing = _Writing(self)

    def _wait(self) -> None:
        self._waiting += 1
        try:
            self._changed.wait()
        finally:
            self._waiting -= 1

    def _wait_to_read(self) -> None:
        self._readers_waiting += 1
        try:
            while (self._writing or self._writers_waiting) and not self._readers_due:
                self._wait()
        except BaseException:
            self._changed.notify_all()  # writers that waited for this reader
            raise
        finally:
            self._readers_waiting -= 1
            self._readers_due = max(0, self._readers_due - 1)


class _Side:
    # A class and not a generator, the bare mutex and not the condition, which is asked only where somebody waits: a
    # lookup of 1,000 keys takes 20 us in all, and each of these was one of them.
    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock


class _Reading(_Side):
    def __enter__(self) -> None:
        lock = self._lock
        with lock._mutex:
            if lock._writing or lock._writers_waiting or lock._readers_due:
                lock._wait_to_read()
            lock._readers += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lock = self._lock
        with lock._mutex:
            lock._readers -= 1
            if lock._waiting and not lock._readers:
                lock._changed.notify_all()


class _Writing(_Side):
    def __enter__(self) -> None:
        lock = self._lock
        with lock._mutex:
            if not (lock._writing or lock._readers or lock._readers_due):
                lock._writing = True
                return
            lock._writers_waiting += 1
            try:
                while lock._writing or lock._readers or lock._readers_due:
                    lock._wait()
                lock._writing = True
            except BaseException:
                lock._changed.notify_all()  # readers that waited for this writer
                raise
            finally:
                lock._writers_waiting -= 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lock = self._lock
        with lock._mutex:
            lock._writing = False
            if lock._waiting:
                lock._readers_due = lock._readers_waiting
                lock._changed.notify_all()
