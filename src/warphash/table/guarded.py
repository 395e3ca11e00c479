"""The storage of a table, and the lock that guards the storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..storage.rows import Rows
from .locks import ReadWriteLock

__all__ = ["Guarded"]

T = TypeVar("T")


class Guarded:
    """A storage and its lock, which is not reentrant: the caller of any function ``*_locked`` holds it.

    Parameters
    ----------
    storage
        Replaced when the table is closed. So only who holds the lock may read the attribute.
    lost_in_child
        As for `ReadWriteLock`.
    """

    __slots__ = ("lock", "storage")

    def __init__(self, storage: Rows, lost_in_child: str | None) -> None:
        self.storage = storage
        self.lock = ReadWriteLock(lost_in_child)

    def settled(self, verb: Callable[..., T], *args: object) -> T:
        """Call ``verb`` while no batch is under way: beside readers, or alone, to end a batch first."""
        done = self.lock.read(lambda: None if self.storage.store.pending else (verb(*args),))
        return self.alone(verb, *args) if done is None else done[0]

    def alone(self, verb: Callable[..., T], *args: object) -> T:
        """Call ``verb`` alone, behind the end of the batch that is under way."""
        return self.lock.write(self._finish_and_call, verb, *args)

    def _finish_and_call(self, verb: Callable[..., T], *args: object) -> T:
        self.storage.store.finish(None)
        return verb(*args)
