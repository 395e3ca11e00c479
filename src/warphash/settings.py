"""Settings of the process: the environment variables that warphash reads, and what a program may set instead.

``docs/settings.md`` lists them. Linux is the only system that warphash is made for.
"""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ParameterError

__all__ = [
    "CACHE_VARIABLE",
    "KEPT_VARIABLE",
    "ORDER_VARIABLE",
    "SEED_VARIABLE",
    "THREADS_VARIABLE",
    "batch_order",
    "cache_directory",
    "get_num_threads",
    "kept_fraction",
    "set_num_threads",
]

THREADS_VARIABLE = "WARPHASH_NUM_THREADS"
CACHE_VARIABLE = "WARPHASH_CACHE_DIR"
ORDER_VARIABLE = "WARPHASH_BATCH_ORDER"
KEPT_VARIABLE = "WARPHASH_KEPT_FRACTION"
SEED_VARIABLE = "WARPHASH_SCHEDULE_SEED"
"""The seed of the schedules of the emulated engine, which tests use."""

_KEPT_FRACTION = 0.25
"""With a sixteenth, half of the time of a build of 1 G pairs was the driver's, which mapped memory anew
(docs/performance/quotient.md)."""

_threads: int | None = None


def set_num_threads(threads: int | None) -> None:
    """Set how many threads a call on the CPU engine uses, in this process.

    A batch of less than 16,384 elements is done by the calling thread. A call that has begun keeps its number.

    Parameters
    ----------
    threads
        At least 1. None returns to the environment variable ``WARPHASH_NUM_THREADS``.

    Raises
    ------
    ParameterError
        If it is no such number.

    Examples
    --------
    >>> import warphash
    >>> warphash.set_num_threads(1)  # one core for this process
    >>> warphash.set_num_threads(None)  # back to the environment variable
    """
    global _threads
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ParameterError(f"threads must be an integer of at least 1, or None, got {threads!r}")
    _threads = threads


def get_num_threads() -> int:
    """How many threads a call on the CPU engine uses.

    That is the number given to `set_num_threads`; else ``WARPHASH_NUM_THREADS``; else the number of processors that
    the process may use. A value of the variable that is no positive number counts as none.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> import warphash
    >>> warphash.set_num_threads(2)
    >>> warphash.get_num_threads()
    2
    >>> warphash.set_num_threads(None)
    """
    if _threads is not None:
        return _threads
    given = os.environ.get(THREADS_VARIABLE, "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0))


def batch_order() -> str:
    """The order in which a GPU takes the elements of a large batch, from ``WARPHASH_BATCH_ORDER``.

    ``"given"`` is the order of the caller, and ``"parts"`` that of the parts of the table. ``"auto"``, which any other
    value counts as, leaves the choice to the table. The answers come in the order of the caller.
    """
    given = os.environ.get(ORDER_VARIABLE, "")
    return given if given in ("given", "parts") else "auto"


def kept_fraction() -> float:
    """How much freed memory of a device, CPU or GPU, the process keeps for its next batch: a part of all its memory.

    That is ``WARPHASH_KEPT_FRACTION``; else a quarter. A value of the variable that is no number from 0 to 1 counts as
    none.
    """
    try:
        given = float(os.environ.get(KEPT_VARIABLE, ""))
    except ValueError:
        return _KEPT_FRACTION
    return given if 0 <= given <= 1 else _KEPT_FRACTION


def cache_directory() -> Path:
    """The folder for compiled kernels and for data sets.

    That is ``WARPHASH_CACHE_DIR``; else ``warphash`` in ``XDG_CACHE_HOME`` or in ``~/.cache``.
    """
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache") / "warphash"
