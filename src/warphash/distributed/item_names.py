"""Names of the items of rows, of which all ranks of a sharded table know the same.

A table learns the names of its rows, which frames and records have, from the first rows that it keeps, and takes later
ones in that order. Ranks that learn different orders would take rows for equal that are not. So each header has a
digest of the names that its rank knows (`channel.Heard`). If these differ, the ranks tell each other the names. A rank
that knows none learns those of the others. If two ranks know different ones, all ranks raise, and those that have
learned theirs in this call forget them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..arrays.row_type import Column, known_names
from ..errors import CollectiveError
from .channel import Call

__all__ = ["ItemNames"]


class ItemNames:
    """The names of one rank, as a call hears them.

    Parameters
    ----------
    columns
        Of the keys of the local table, and of the values if it has values.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def digest(self) -> int:
        """A number for the names that this rank knows; 0 for none."""
        known = known_names(self._columns)
        return zlib.crc32(repr(known).encode()) + 1 if any(known) else 0

    def compare(self, call: Call, digests: Sequence[int]) -> None:
        """Learn what other ranks know. Raises `CollectiveError` on all ranks if two know different names."""
        if len(set(digests)) == 1:
            return
        told = call.told(known_names(self._columns))
        for number, column in enumerate(self._columns):
            names = {rank: known[number] for rank, known in enumerate(told) if known[number] is not None}
            if len(set(names.values())) > 1:
                texts = {rank: ", ".join(map(str, known)) for rank, known in names.items()}
                shown = "; ".join(f"rank {rank}: {text}" for rank, text in texts.items())
                raise CollectiveError(
                    f"the first rows of all ranks must have their columns in one order, got {shown}: give all ranks "
                    "frames with the same columns in one order",
                    texts,
                )
            column.names.learn(next(iter(names.values()), None))

    @contextmanager
    def learned_in(self, call: Call) -> Iterator[None]:
        """Compare names in a call. If it fails ahead of all work, what this rank has learned in it is forgotten."""
        before = known_names(self._columns)
        call.heard = self
        try:
            yield
        except CollectiveError as error:
            if not error.has_begun:
                self._forget(before)
            raise
        except Exception:
            self._forget(before)
            raise

    def _forget(self, before: Sequence[object]) -> None:
        for column, known in zip(self._columns, before, strict=True):
            if known is None:
                column.names.forget()
