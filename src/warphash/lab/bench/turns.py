"""Turns at a GPU: several processes of the laboratory share one GPU, and one at a time works on it.

A rate is right only if nothing else runs on the GPU at that moment. But most of a measurement is the host's work: keys
are drawn, answers are checked. So a process has its turn from its first clock of a GPU on (`take`). While only its host
works, it is `away`, and another process has its turn.

The processes share a file, which the environment variable `TURNS_VARIABLE` names. The process whose turn it is holds
the lock of the file. The system releases the lock when the process ends, however it ends. Without the variable, no
process waits.

Each process has a rank, by `RANK_VARIABLE`: the lowest goes first. So in limited time the first processes end, where
equal shares of the GPU would end none. A process that wants its turn, or has it, holds the lock of the file of its
rank, and a process of a higher rank waits for that lock first.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["RANK_VARIABLE", "TURNS_VARIABLE", "away", "away_with", "take", "without"]

TURNS_VARIABLE = "WARPHASH_TURNS"
RANK_VARIABLE = "WARPHASH_TURN_RANK"

_file: int | None = None
_path: Path = Path()
_rank, _rank_file = 0, -1
_has_turn = False
_finish: Callable[[], None] | None = None


def take(finish: Callable[[], None]) -> None:
    """Wait for the turn of this process, which then lasts until the process ends or is `away`.

    Parameters
    ----------
    finish
        Waits until the GPU has done what this process asked for.
    """
    global _file, _path, _rank, _rank_file, _finish
    path = os.environ.get(TURNS_VARIABLE)
    if path is None or _file is not None:
        return
    _path, _rank, _finish = Path(path), int(os.environ.get(RANK_VARIABLE, "0")), finish
    _file, _rank_file = _opened(_path), _opened(_file_of(_rank))
    _begin()


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _file_of(rank: int) -> Path:
    return _path.with_name(f"{_path.name}.{rank}")


def _begin() -> None:
    """Wait until no process of a lower rank wants its turn, and nobody has it."""
    global _has_turn
    assert _file is not None
    fcntl.flock(_rank_file, fcntl.LOCK_EX)
    while True:
        for lower in _lower_ranks():
            _wait_for(lower)
        fcntl.flock(_file, fcntl.LOCK_EX)
        if not any(_is_locked(lower) for lower in _lower_ranks()):
            break
        fcntl.flock(_file, fcntl.LOCK_UN)  # one of them has come to want its turn
    _has_turn = True


def _lower_ranks() -> Iterator[Path]:
    """The files of the processes that go first."""
    for other in _path.parent.glob(f"{_path.name}.*"):
        if int(other.name.rpartition(".")[2]) < _rank:
            yield other


def _wait_for(path: Path) -> None:
    """Return once nobody holds the lock of a file."""
    file = _opened(path)
    fcntl.flock(file, fcntl.LOCK_SH)
    os.close(file)


def _is_locked(path: Path) -> bool:
    """Whether a process wants its turn, or has it."""
    file = _opened(path)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _end() -> None:
    global _has_turn
    assert _file is not None
    _has_turn = False
    fcntl.flock(_file, fcntl.LOCK_UN)
    fcntl.flock(_rank_file, fcntl.LOCK_UN)


@contextmanager
def away() -> Iterator[None]:
    """Let other processes work on the GPU during this block. The block itself must not."""
    if _file is None or not _has_turn:
        yield
        return
    assert _finish is not None
    _finish()
    _end()
    try:
        yield
    finally:
        _begin()


def away_with(arrays: Any) -> AbstractContextManager[None]:
    """`away` while NumPy works. Another array module works on the GPU, in the turn of this process."""
    return away() if arrays is np else nullcontext()


def without() -> dict[str, str]:
    """The environment of a child that works in the turn of this process."""
    return {name: value for name, value in os.environ.items() if name != TURNS_VARIABLE}
