"""Tables in files that nobody closes: they are flushed when they are collected, and when the process ends.

As of an open file, there is a `ResourceWarning`, which Python shows with ``-X dev`` or ``-W default``. If the flush
fails, its error is in a `RuntimeWarning`, which Python shows, and the file holds what the last flush has confirmed.

- The process that was forked from the table's own one flushes nothing: the table is its parent's.
- What was interrupted is finished first, as before every flush.
- Nothing waits for ever: a thread that is in a call when the process ends, and stays there, keeps the table's lock.
- A table may be made or changed in an exit function of the caller that runs behind Python's one for finalizers. So a
  table is flushed when it is collected, too, if the file does not hold it. That may come so late that Python imports
  nothing more: neither may a flush.
- A process that is killed, or that ends by ``os._exit``, flushes nothing.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .locks import ReadWriteLock

__all__ = ["Ending", "flush_when_unclosed"]

_SECONDS = 10.0
"""How long a table waits for the end of calls in other threads."""


class _Unclosed(NamedTuple):
    """A table that nobody has closed, and what its flush needs."""

    table: weakref.ref[Any]
    lock: ReadWriteLock
    store: Any
    commit: Callable[[], None]
    path: Path
    process: int


_unclosed: dict[Ending, _Unclosed] = {}


class Ending:
    """Flushes a table when it is collected, and, if it is called, at once.

    A `weakref.finalize` of the table calls it at the end of the process. Behind its exit function, Python calls no
    `weakref.finalize` any more, also of what is collected. So there is a plain weak reference, too.
    """

    __slots__ = ("__weakref__", "_was_flushed")

    def __init__(self, table: object, lock: ReadWriteLock, store: Any, commit: Callable[[], None], path: Path) -> None:
        self._was_flushed = False
        _unclosed[self] = _Unclosed(weakref.ref(table, self._collected), lock, store, commit, path, os.getpid())
        weakref.finalize(table, self)

    def __call__(self) -> None:
        """Flush the table, if it is there."""
        unclosed = _unclosed.get(self)
        if unclosed is not None and unclosed.table() is not None:  # otherwise `_collected` comes
            self._was_flushed = True
            _flush(unclosed)

    def _collected(self, _: object) -> None:
        unclosed = _unclosed.pop(self, None)
        if unclosed is not None:
            _flush(unclosed, again=self._was_flushed)

    def detach(self) -> None:
        """Do nothing from now on: somebody closes the table."""
        _unclosed.pop(self, None)


def flush_when_unclosed(
    table: object, lock: ReadWriteLock, store: Any, commit: Callable[[], None], path: Path
) -> Ending:
    """Flush a table in a file when it is collected or the process ends, unless the result is detached before.

    Parameters
    ----------
    table
        Which nothing else here may lead to: it would be kept for ever.
    store
        Of the table: of a design whose slots may lie in a file.
    commit
        Has the file hold the table. Its caller holds the lock.
    """
    ending = Ending(table, lock, store, commit, path)
    _call_at_the_end_of_a_worker(ending)
    return ending


def _call_at_the_end_of_a_worker(ending: Callable[[], object]) -> None:
    """Have a worker process of `multiprocessing` call, too: such a process ends without Python's exit functions."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, ending, exitpriority=0)


def _flush(unclosed: _Unclosed, again: bool = False) -> None:
    """Flush, and warn. ``again``: there is nothing to say if nothing was changed since the last flush."""
    _, lock, store, commit, path, process = unclosed
    if os.getpid() != process or (again and store.is_committed):
        return
    lost: str | None = None

    def flush() -> None:
        store.finish(None)
        if not store.is_committed:
            commit()

    try:
        if not lock.write_within(_SECONDS, flush):
            lost = "another thread is in a call of the table"
    except BaseException as error:  # whatever it is, nobody could catch it
        lost = f"{type(error).__name__}: {error}"
    mend = "call close(), or use the table in a `with` block"
    if lost is None:
        warnings.warn(f"unclosed table in {path}, which was flushed: {mend}", ResourceWarning, stacklevel=3)
    else:
        said = f"the table in {path} was not closed, and its file has what the last flush confirmed, for it was refused"
        warnings.warn(f"{said} a flush ({lost}): {mend}", RuntimeWarning, stacklevel=3)
