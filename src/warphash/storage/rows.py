"""The caller's rows of keys and values, by their addresses (`Rows`).

There is one class for each way from rows to the words of slots: ``word_rows.py`` for keys and values of up to 8 bytes,
``wide_rows.py`` for wider ones. Others are made of these: ``bounded/``, ``strings/``, ``tiered/``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .batch import Batch, MixedBatch
from .slots import MemoryUse, Slots

__all__ = ["AllValues", "Rows"]


class AllValues(NamedTuple):
    """All values of the keys of a batch, of a `MultiMap`.

    Attributes
    ----------
    total
        How many there are.
    write
        Writes them to an address. The table has not changed since.
    """

    total: int
    write: Callable[[int], None]


class Rows(Protocol):
    """Operations on packed rows, by address. ``flags`` are bytes, `abi.Flag`; addresses of 0 are not written.

    Nobody else writes to the arrays of a batch during a call, but for lookups of a storage without ``rereads``.

    Attributes
    ----------
    rereads
        A lookup reads its keys, or the flags that it has written, more than once.
    """

    rereads: bool

    @property
    def store(self) -> Slots: ...
    @property
    def nbytes(self) -> int: ...
    def memory_use(self) -> MemoryUse: ...
    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None: ...
    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        """Which keys are there, as of `find`. This is no use of a key, and changes no rank and no figure."""

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None: ...
    def update(self, batch: Batch) -> None: ...
    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None: ...
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int: ...
    def clear(self, stream: Any) -> None: ...
    def rebuild(self, keys: int, stream: Any) -> None: ...
    def copy(self, stream: Any) -> Rows:
        """A storage with the same pairs in memory of its own; pairs are copied on the device."""

    def execute(self, batch: MixedBatch, default: bytes, stream: Any) -> None:
        """Do a mixed batch. All operations but finds that found their key answer the value ``default``.

        Raises
        ------
        UnsupportedVerb
            If keys or values do not lie in the slots.
        """
