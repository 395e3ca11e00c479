"""Turns at a GPU: several processes of the laboratory share one GPU, and one at a time works on it.

A rate is right only if nothing else runs on the GPU at that moment. But most of a measurement is the host's work: keys
are drawn, answers are checked. So a process has its turn from its first clock of a GPU on (`take`). While only its host
works, it is `away`, and another process has its turn.

The processes share a file, which the environment variable `TURNS_VARIABLE` names. The process whose turn it is holds
the lock of the file. The system releases the lock when the process ends, however it ends. Without the variable, no
process waits.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["TURNS_VARIABLE", "away", "take", "without"]

TURNS_VARIABLE = "WARPHASH_TURNS"

_file: int | None = None
_has_turn = False
_finish: Callable[[], None] | None = None


def take(finish: Callable[[], None]) -> None:
    """Wait for the turn of this process, which then lasts until the process ends or is `away`.

    Parameters
    ----------
    finish
        Waits until the GPU has done what this process asked for.
    """
    global _file, _has_turn, _finish
    path = os.environ.get(TURNS_VARIABLE)
    if path is None or _file is not None:
        return
    _file, _finish = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), finish
    fcntl.flock(_file, fcntl.LOCK_EX)
    _has_turn = True


@contextmanager
def away() -> Iterator[None]:
    """Let other processes work on the GPU during this block. The block itself must not."""
    global _has_turn
    if _file is None or not _has_turn:
        yield
        return
    assert _finish is not None
    _finish()
    _has_turn = False
    fcntl.flock(_file, fcntl.LOCK_UN)
    try:
        yield
    finally:
        fcntl.flock(_file, fcntl.LOCK_EX)
        _has_turn = True


def without() -> dict[str, str]:
    """The environment of a child that works in the turn of this process."""
    return {name: value for name, value in os.environ.items() if name != TURNS_VARIABLE}
