"""The lock of a table: many readers or one writer.

A verb may be interrupted at any line (`KeyboardInterrupt`), also while it takes the lock or lets go of it. So the lock
is no context manager, whose ``__exit__`` runs once and may stop half way. It runs the verb, and lets go twice: if the
first time is interrupted, the second is not. To let go twice changes nothing, as the lock notes which threads hold it,
and not how many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["ReadWriteLock"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ReadWriteLock:
    """A lock that many readers hold together, or one writer alone.

    Neither side starves. While a writer waits, new readers wait behind the writer. When a writer leaves, the readers
    that waited go before the next writer. Not reentrant.
    """

    __slots__ = (
        "_changed",
        "_due",
        "_known",
        "_mutex",
        "_reading",
        "_waiting_to_read",
        "_waiting_to_write",
        "_writing",
    )

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._changed: threading.Condition | None = None  # of a lock that nobody ever waited for
        # All of these are sets of thread identifiers.
        self._known: set[int] = set()  # threads in any of the others
        self._reading: set[int] = set()
        self._writing: set[int] = set()
        self._waiting_to_read: set[int] = set()
        self._waiting_to_write: set[int] = set()
        self._due: set[int] = set()  # readers that go before the next writer

    def read(self, verb: Callable[_P, _T], *args: _P.args, **options: _P.kwargs) -> _T:
        """Call ``verb`` beside other readers, and return what the verb returns."""
        thread = threading.get_ident()
        try:
            try:
                self._known.add(thread)
                with self._mutex:
                    if self._writing or self._waiting_to_write or self._due:
                        self._wait_to_read(thread)
                    self._reading.add(thread)
                return verb(*args, **options)
            finally:
                self._leave(thread)
        finally:
            if thread in self._known:  # the first time was interrupted
                self._leave(thread)

    def write(self, verb: Callable[_P, _T], *args: _P.args, **options: _P.kwargs) -> _T:
        """Call ``verb`` alone, and return what the verb returns."""
        thread = threading.get_ident()
        try:
            try:
                self._known.add(thread)
                with self._mutex:
                    if self._writing or self._reading or self._due:
                        self._wait_to_write(thread)
                    self._writing.add(thread)
                return verb(*args, **options)
            finally:
                self._leave(thread)
        finally:
            if thread in self._known:  # the first time was interrupted
                self._leave(thread)

    def write_within(self, seconds: float, verb: Callable[_P, object], *args: _P.args, **options: _P.kwargs) -> bool:
        """Call ``verb`` alone, unless others hold the lock for so many seconds; whether the verb was called."""
        thread = threading.get_ident()
        try:
            self._known.add(thread)
            with self._mutex:
                if self._changed is None:
                    self._changed = threading.Condition(self._mutex)
                self._waiting_to_write.add(thread)
                if not self._changed.wait_for(lambda: not (self._writing or self._reading or self._due), seconds):
                    return False
                self._waiting_to_write.discard(thread)
                self._writing.add(thread)
            verb(*args, **options)
            return True
        finally:
            self._leave(thread)

    def _wait_to_read(self, thread: int) -> None:
        """Wait until a reader may go on. The caller holds the mutex."""
        self._waiting_to_read.add(thread)
        while (self._writing or self._waiting_to_write) and thread not in self._due:
            self._wait()
        self._waiting_to_read.discard(thread)

    def _wait_to_write(self, thread: int) -> None:
        """Wait until a writer may go on. The caller holds the mutex."""
        self._waiting_to_write.add(thread)
        while self._writing or self._reading or self._due:
            self._wait()
        self._waiting_to_write.discard(thread)

    def _wait(self) -> None:
        """Let go of the mutex until another thread leaves."""
        if self._changed is None:
            self._changed = threading.Condition(self._mutex)
        self._changed.wait()

    def _leave(self, thread: int) -> None:
        """Forget a thread, whatever it was about to do, and wake those that wait."""
        with self._mutex:
            if self._changed is not None:
                if thread in self._writing:
                    self._due |= self._waiting_to_read
                self._changed.notify_all()  # who wakes looks when the mutex is free
            self._due.discard(thread)
            self._waiting_to_read.discard(thread)
            self._waiting_to_write.discard(thread)
            self._reading.discard(thread)
            self._writing.discard(thread)
            self._known.discard(thread)
