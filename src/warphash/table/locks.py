"""The lock of a table: many readers or one writer."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from types import TracebackType

__all__ = ["ReadWriteLock"]


class ReadWriteLock:
    """A lock that many readers hold together, or one writer alone.

    Neither side starves. While a writer waits, new readers wait behind the writer. When a writer leaves, the readers
    that waited go before the next writer. Not reentrant.

    Attributes
    ----------
    reading, writing
        Context managers that hold the lock beside other readers, or alone.
    """

    __slots__ = ("reading", "writing")

    def __init__(self) -> None:
        # Both sides share one state, and none refers to the lock: a table is freed with its last reference.
        state = _State()
        self.reading: AbstractContextManager[None] = _Reading(state)
        self.writing: AbstractContextManager[None] = _Writing(state)


class _State:
    """Who holds a lock, and who waits for it."""

    __slots__ = (
        "changed",
        "mutex",
        "readers",
        "readers_due",
        "readers_waiting",
        "waiting",
        "writers_waiting",
        "writing",
    )

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.changed: threading.Condition | None = None  # of a lock that nobody ever waited for
        self.waiting = self.writers_waiting = self.readers_waiting = 0
        self.readers_due = 0  # readers that go before the next writer
        self.readers = 0
        self.writing = False

    def wait(self) -> None:
        """Let go of the mutex until somebody calls `tell`."""
        if self.changed is None:
            self.changed = threading.Condition(self.mutex)
        self.waiting += 1
        try:
            self.changed.wait()
        finally:
            self.waiting -= 1

    def tell(self) -> None:
        """Wake all who wait."""
        if self.changed is not None:
            self.changed.notify_all()

    def wait_to_read(self) -> None:
        """Wait until a reader may go on."""
        self.readers_waiting += 1
        try:
            while (self.writing or self.writers_waiting) and not self.readers_due:
                self.wait()
        except BaseException:
            self.tell()  # writers that waited for this reader
            raise
        finally:
            self.readers_waiting -= 1
            self.readers_due = max(0, self.readers_due - 1)

    def wait_to_write(self) -> None:
        """Wait until a writer may go on, and let the writer in."""
        self.writers_waiting += 1
        try:
            while self.writing or self.readers or self.readers_due:
                self.wait()
            self.writing = True
        except BaseException:
            self.tell()  # readers that waited for this writer
            raise
        finally:
            self.writers_waiting -= 1


class _Side:
    # A class and not a generator, and the bare mutex while nobody waits: the two calls of a lookup take 0.6 us.
    __slots__ = ("_state",)

    def __init__(self, state: _State) -> None:
        self._state = state


class _Reading(_Side):
    __slots__ = ()

    def __enter__(self) -> None:
        state = self._state
        with state.mutex:
            if state.writing or state.writers_waiting or state.readers_due:
                state.wait_to_read()
            state.readers += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        state = self._state
        with state.mutex:
            state.readers -= 1
            if state.waiting and not state.readers:
                state.tell()


class _Writing(_Side):
    __slots__ = ()

    def __enter__(self) -> None:
        state = self._state
        with state.mutex:
            if state.writing or state.readers or state.readers_due:
                state.wait_to_write()
            else:
                state.writing = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        state = self._state
        with state.mutex:
            state.writing = False
            if state.waiting:
                state.readers_due = state.readers_waiting
                state.tell()
