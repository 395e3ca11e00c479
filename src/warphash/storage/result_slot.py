"""Lines of host memory in which kernels leave their outcomes: the host looks there instead of asking for a copy.

A copy of the report costs an operation of the device and a wait of the driver; together they take longer than a small
update itself. The kernels' side is ``kernels/buckets/gpu/one_block.cuh`` and ``kernels/quotient/gpu/few.cuh``.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from ..runtime.abi import BucketBatch, OneLaunchBatch
from ..runtime.engine import Engine

__all__ = ["ResultSlot"]

_WORDS = 8

_LOOKS = 400
"""About 20 us of looking, with no other thread of Python running; then the driver waits, and they run."""

_FIRST = 1 << 36

_owners = itertools.count(1)
"""Of all result slots. Another owner may have had the memory from `Engine.allocate_pinned` before. The device may still
write that owner's ticket there, or a copied count, which is smaller than any ticket. A slot waits for neither."""


class ResultSlot:
    """The result slot of one table. Its caller holds the table's lock.

    Parameters
    ----------
    engine
        Where the kernels run.
    places
        Batches that may be under way, each with a line of its own.
    """

    def __init__(self, engine: Engine, places: int = 1) -> None:
        self._engine, self.places = engine, places
        self._memory = engine.allocate_pinned(8 * _WORDS * places)
        self._words = (ctypes.c_uint64 * (_WORDS * places)).from_address(self._memory.ptr)
        self._ticket = next(_owners) * _FIRST

    def address(self, batch: BucketBatch | OneLaunchBatch) -> int:
        """Have the kernel of ``batch`` write its outcome here: the ticket of the batch. Tickets follow each other."""
        batch.answer, batch.ticket = self.next()
        return self._ticket

    def next(self) -> tuple[int, int]:
        """Where the kernel of the next batch writes its outcome, and the ticket of the batch."""
        self._ticket = ticket = self._ticket + 1
        return self._memory.ptr + 8 * _WORDS * (ticket % self.places), ticket

    def answer(self, ticket: int) -> tuple[int, int, int, int] | None:
        """Displaced, unplaced, changed and probes of a batch, one of the last `places`; None if it is under way."""
        words, at = self._words, self._line_of(ticket)
        if words[at] != ticket:
            return None
        return words[at + 1], words[at + 2], words[at + 3], words[at + 4]

    def outcome(self, stream: Any) -> tuple[int, int, int, int]:
        """As `answer`, of the last batch that was addressed. Waits for it.

        Raises
        ------
        WarphashError
            If a kernel failed; the driver's own error.
        """
        words, ticket, at = self._words, self._ticket, self._line_of(self._ticket)
        for _ in range(_LOOKS):
            if words[at] == ticket:
                break
        else:
            self._engine.synchronize(stream)
        return words[at + 1], words[at + 2], words[at + 3], words[at + 4]

    def _line_of(self, ticket: int) -> int:
        return ticket % self.places * _WORDS
