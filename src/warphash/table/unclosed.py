"""Tables in files that nobody closes: they are flushed when they are collected, and when the process ends.

As of an open file, there is a `ResourceWarning`, which Python shows with ``-X dev`` or ``-W default``. If the flush
fails, its error is in a `RuntimeWarning`, which Python shows, and the file holds what the last flush has confirmed.

- The process that was forked from the table's own one flushes nothing: the table is its parent's.
- What was interrupted is finished first, as before every flush.
- Nothing waits for ever: a thread that is in a call when the process ends, and stays there, keeps the table's lock.
- A process that is killed, or that ends by ``os._exit``, flushes nothing.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .locks import ReadWriteLock

__all__ = ["flush_when_unclosed"]

_SECONDS = 10.0
"""How long a table waits for the end of calls in other threads."""


def flush_when_unclosed(
    table: object, lock: ReadWriteLock, store: Any, commit: Callable[[], None], path: Path
) -> weakref.finalize[..., Any]:
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
    ending = weakref.finalize(table, _flush, lock, store, commit, path, os.getpid())
    _call_at_the_end_of_a_worker(ending)
    return ending


def _call_at_the_end_of_a_worker(ending: Callable[[], object]) -> None:
    """Have a worker process of `multiprocessing` call, too: such a process ends without Python's exit functions."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, ending, exitpriority=0)


def _flush(lock: ReadWriteLock, store: Any, commit: Callable[[], None], path: Path, process: int) -> None:
    if os.getpid() != process:
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
