"""The lock of a table: many readers or one writer.

A verb may be interrupted at any line (`KeyboardInterrupt`), also while it takes the lock or lets go of it. So the lock
is no context manager, whose ``__exit__`` runs once and may stop half way. It runs the verb, and lets go twice: if the
first time is interrupted, the second is not. To let go twice changes nothing, as the lock notes which threads hold it,
and not how many.

A thread may come again while it is in a call: a handler of a signal, or of the log, calls the table. A reader may read
again, and holds the lock until the first call ends. Any other call would wait for itself, so it is refused
(`NestedCall`). A thread that does a part of another one's call (`storage.uninterrupted`) comes again in the same way.

Forks
-----
A child process has the thread that forked, and no other. A call that another thread was making would never end there,
and would leave its table half changed. So a fork has three steps, as in the standard library's logging:

1. Before: wait until no other thread is in a call of any table, and let no call begin. A thread that is in a call may
   enter the locks of further tables, since its first call may need them to end. The wait ends after
   `LONGEST_FORK_WAIT_S`, since a call may itself wait for the thread that forks.
2. In the parent: let calls begin.
3. In the child: forget the other threads, and let calls begin. A table whose call did not end in time refuses every
   call (`ProcessError`), and so does a table on a GPU, because CUDA does not survive a fork (`DeviceError`).

The thread that forks may be in a call itself, if a handler of a signal forks. It stays in that call, in both processes.

A fork waits as one more reader that goes before all others: `_FORK` in the set of those. The verbs look at that set in
any case, so forks cost the calls nothing.
"""

from __future__ import annotations

# Python calls what is to happen before a fork in the opposite order of registration. Calls of tables log, and use pools
# of threads. So these two modules, which take locks before a fork, come first, and take these locks after the wait.
import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import ref

from ..errors import DeviceError, NestedCall, ProcessError, WarphashError
from ..storage.uninterrupted import caller_of_work

__all__ = ["LONGEST_FORK_WAIT_S", "ReadWriteLock"]

LONGEST_FORK_WAIT_S = 5.0
"""Seconds that a fork waits for calls in progress. One call that never ends must not stop the program."""

_FIRST_PATIENCE_S = 0.05
"""Seconds that a fork first waits for a lock before it turns to the next one; then twice as long, and so on."""

_FORK = 0
"""A fork, among the identifiers of threads. No thread has this identifier."""

_HALF_CHANGED = (
    "another thread was in a call of this table when the process was forked, and the call did not end within "
    f"{LONGEST_FORK_WAIT_S:g} s, so this copy may be half changed: fork while no thread is in a long call, or send a "
    "pickle of the table to a process that was started with the method 'spawn'"
)

_NESTED = (
    "expected a call of this table outside of its other calls, got one from within a call of the same thread, as a "
    "handler of a signal or of the log makes it: note there what is to be done, and call the table later"
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ReadWriteLock:
    """A lock that many readers hold together, or one writer alone.

    Neither side starves. While a writer waits, new readers wait behind the writer. When a writer leaves, the readers
    that waited go before the next writer. Only a reader may come again.

    Parameters
    ----------
    lost_in_child
        Why a forked child cannot use what the lock protects; None if a child can.
    """

    __slots__ = (
        "__weakref__",
        "_changed",
        "_due",
        "_known",
        "_lost_in_child",
        "_mutex",
        "_reading",
        "_refusal",
        "_waiting_to_read",
        "_waiting_to_write",
        "_writing",
    )

    def __init__(self, lost_in_child: str | None = None) -> None:
        # Reentrant, as the thread that forks may have it.
        self._mutex = threading.RLock()
        self._changed: threading.Condition | None = None  # of a lock that nobody ever waited for
        # All of these are sets of thread identifiers.
        self._known: set[int] = set()  # threads in any of the others
        self._reading: set[int] = set()
        self._writing: set[int] = set()
        self._waiting_to_read: set[int] = set()
        self._waiting_to_write: set[int] = set()
        self._due: set[int] = set()  # readers that go before the next writer; and a fork
        self._lost_in_child = lost_in_child
        self._refusal: Callable[[], WarphashError] | None = None  # of all calls
        with _gate:
            _locks.add(ref(self, _locks.discard))

    def read(self, verb: Callable[_P, _T], *args: _P.args, **options: _P.kwargs) -> _T:
        """Call ``verb`` beside other readers, and return what the verb returns."""
        thread = threading.get_ident()
        if thread in self._known:
            self._expect_reader(thread)
            return verb(*args, **options)
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
        if thread in self._known:
            raise NestedCall(_NESTED)
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
        if thread in self._known:
            return False
        try:
            self._known.add(thread)
            with self._mutex:
                self._waiting_to_write.add(thread)
                self._due.add(thread)  # so that a thread which calls again and again waits, too
                if not self._condition().wait_for(lambda: self._is_free_for(thread), seconds):
                    return False
                self._waiting_to_write.discard(thread)
                self._due.discard(thread)
                self._writing.add(thread)
            verb(*args, **options)
            return True
        finally:
            self._leave(thread)

    def _expect_reader(self, thread: int) -> None:
        if thread not in self._reading:
            raise NestedCall(_NESTED)

    def _is_free_for(self, thread: int) -> bool:
        """Whether nobody is in a call, and nobody else goes first. The caller holds the mutex."""
        return not (self._writing or self._reading or self._due - {thread})

    def _wait_to_read(self, thread: int) -> None:
        """Wait until a reader may go on. The caller holds the mutex.

        Raises
        ------
        NestedCall
            If a writer waits for what this thread does.
        """
        caller = caller_of_work()
        if caller in self._known:
            return self._expect_reader(caller)
        self._waiting_to_read.add(thread)
        while (self._writing or self._waiting_to_write or _FORK in self._due) and thread not in self._due:
            if not self._writing and self._may_pass_a_fork(thread):
                break
            self._wait()
        self._waiting_to_read.discard(thread)

    def _wait_to_write(self, thread: int) -> None:
        """Wait until a writer may go on. The caller holds the mutex.

        Raises
        ------
        NestedCall
            If another call of the table waits for what this thread does.
        """
        if caller_of_work() in self._known:
            raise NestedCall(_NESTED)
        self._waiting_to_write.add(thread)
        while self._writing or self._reading or self._due:
            if not (self._writing or self._reading) and self._may_pass_a_fork(thread):
                break
            self._wait()
        self._waiting_to_write.discard(thread)

    def _may_pass_a_fork(self, thread: int) -> bool:
        """Whether a fork waits for another call of this thread, and so for this call.

        Raises
        ------
        DeviceError, ProcessError
            If what the lock protects is lost.
        """
        if self._refusal is not None:
            raise self._refusal()
        threads = {thread, caller_of_work()}
        return _FORK in self._due and any(threads & (lock._reading | lock._writing) for lock in _live())

    def _wait(self) -> None:
        """Let go of the mutex until another thread leaves."""
        self._condition().wait()

    def _condition(self) -> threading.Condition:
        if self._changed is None:
            self._changed = threading.Condition(self._mutex)
        return self._changed

    def _leave(self, thread: int) -> None:
        """Forget a thread, whatever it was about to do, and wake those that wait."""
        with self._mutex:
            if self._changed is not None:
                if thread in self._writing and _FORK not in self._due:
                    self._due |= self._waiting_to_read
                self._changed.notify_all()  # who wakes looks when the mutex is free
            self._due.discard(thread)
            self._waiting_to_read.discard(thread)
            self._waiting_to_write.discard(thread)
            self._reading.discard(thread)
            self._writing.discard(thread)
            self._known.discard(thread)

    # ---- forks
    def _stop(self, until: float) -> None:
        """Let no call begin, and wait for the calls of other threads, until a time of ``time.monotonic`` at most."""
        with self._mutex:
            self._due.add(_FORK)
            while not self._is_still() and (left := until - time.monotonic()) > 0:
                self._condition().wait(left)

    def _is_still(self) -> bool:
        """Whether the process may fork, as far as this lock is concerned. The caller holds the mutex."""
        if self._refusal is not None or self._lost_in_child is not None:
            return True
        return _FORK in self._due and not (self._others_inside() or self._due - {threading.get_ident(), _FORK})

    def _others_inside(self) -> set[int]:
        """The other threads that are in a call."""
        return (self._reading | self._writing) - {threading.get_ident()}

    def _go_on(self) -> None:
        """Let calls begin. The caller holds the mutex."""
        if self._refusal is not None:
            return
        self._due.discard(_FORK)
        if self._changed is not None:
            self._due |= self._waiting_to_read
            self._changed.notify_all()

    def _go_on_in_child(self) -> None:
        """Forget the other threads, and let calls begin, or refuse calls. The caller holds the mutex."""
        if self._refusal is None and self._lost_in_child is not None:
            self._refusal = partial(DeviceError, self._lost_in_child)
        elif self._refusal is None and self._others_inside():
            self._refusal = partial(ProcessError, _HALF_CHANGED)
        for threads in (self._known, self._reading, self._writing, self._waiting_to_read, self._waiting_to_write):
            threads &= {threading.get_ident()}
        self._due &= {threading.get_ident()}
        if self._refusal is not None:
            self._due.add(_FORK)  # so every call looks for the refusal
        if self._changed is not None:
            self._changed.notify_all()  # the thread that forked may wait here, if a handler of a signal forked

    def _renew_mutex(self) -> None:
        """Forget who had the mutex."""
        self._mutex, self._changed = threading.RLock(), None


class _Fork:
    """A fork that is under way, and the locks whose mutexes its thread holds."""

    def __init__(self) -> None:
        self._locks: list[ReadWriteLock] = []

    def stop(self, until: float) -> None:
        """Wait until all locks are still, until a time of ``time.monotonic`` at most, and take their mutexes."""
        patience = _FIRST_PATIENCE_S
        while True:
            for lock in _live():
                lock._stop(min(until, time.monotonic() + patience))
            patience *= 2
            self.take()
            if all(lock._is_still() for lock in self._locks) or time.monotonic() >= until:
                return
            self._let_go()

    def take(self) -> None:
        """Take the mutexes of all locks."""
        _gate.acquire()  # nobody makes a lock from here on
        self._locks = _live()
        for lock in self._locks:
            lock._mutex.acquire()

    def end(self, step: Callable[[ReadWriteLock], None]) -> None:
        """Take a step with each lock, and let go of the mutexes."""
        for lock in self._locks:
            step(lock)
        self._let_go()

    def _let_go(self) -> None:
        for lock in self._locks:
            lock._mutex.release()
        self._locks = []
        _gate.release()


def _live() -> list[ReadWriteLock]:
    """All locks of the process."""
    return [lock for seen in _locks.copy() if (lock := seen()) is not None]


def _before_fork() -> None:
    _turn.acquire()
    _forks.append(fork := _Fork())
    try:
        fork.stop(time.monotonic() + LONGEST_FORK_WAIT_S)
    except BaseException:  # Python reports the error, and forks all the same
        fork.take()
        raise


def _after_fork_in_parent() -> None:
    if _forks:
        _forks.pop().end(ReadWriteLock._go_on)
        _turn.release()


def _after_fork_in_child() -> None:
    global _turn, _gate
    if _forks:
        _forks.pop().end(ReadWriteLock._go_on_in_child)
        _turn.release()
        return
    # A program in C forked, and told Python afterwards.
    _turn, _gate = threading.RLock(), threading.RLock()
    for lock in _live():
        lock._renew_mutex()
        with lock._mutex:
            lock._go_on_in_child()


# Both are reentrant: a handler of a signal may fork while its thread forks, or make a table.
_turn = threading.RLock()
"""Of the one thread that forks."""

_gate = threading.RLock()
"""Held while a lock is made, and while a fork needs to know all locks."""

_locks: set[ref[ReadWriteLock]] = set()
"""All locks of the process."""

_forks: list[_Fork] = []
"""The forks that are under way, all of one thread."""

os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
