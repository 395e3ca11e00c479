"""How many elements of a batch need a slot: by a sample of the batch, or by what is known of an earlier batch.

A kernel walks for a few elements over the tickets, and counts those that need a slot (``kernels/tickets/sweep.cuh``).
The host has to wait for the count, which takes as long as the lookup of a hundred thousand absent keys. So only large
batches wait. A small batch is taken to be like the one before it, of which two things can tell: the rounds of a batch
that went by windows count all elements that need a slot; and a sample that was launched for that batch, whose count is
read when the next batch comes.
"""

from __future__ import annotations

import threading
from typing import Any

from ...runtime.abi import SweepBatch, TicketBatch, TicketTable
from ...runtime.engine import Engine, Program
from ..new_memory import filled

__all__ = ["SlotNeed"]

_SAMPLE = 1 << 14
"""Elements of a sample. The share is right to 0.4 % in the mean, or better."""

_AWAITED_ELEMENTS = 1 << 22
"""Elements from which on a batch is worth a wait for its own sample."""


class SlotNeed:
    """The share of elements that need a slot, of the launches of one kernel. Safe from several threads.

    Parameters
    ----------
    program
        Kernels with a ``sample``.
    """

    def __init__(self, engine: Engine, program: Program) -> None:
        self._engine, self._program = engine, program
        self._lock = threading.Lock()
        self._share: float | None = None
        self._counter, self._answer = filled(engine, 8), engine.answer(1)
        self._counted = 0  # of all samples that were read
        self._sampled = 0  # elements of the sample that is under way
        self._passed_over = True  # whether the last small batch had no sample

    def of(self, table: TicketTable, batch: TicketBatch, n: int, stream: Any) -> int:
        """How many of ``n`` elements need a slot. Waits for a large batch, and for the first one."""
        with self._lock:
            waits = self._share is None or n >= _AWAITED_ELEMENTS
            if self._sampled and (waits or self._answer.ready):
                self._read()
            if waits:
                self._ask(table, batch, n, stream)
                self._read()
            return int((self._share or 0.0) * n)

    def sample(self, table: TicketTable, batch: TicketBatch, n: int, stream: Any) -> None:
        """Launch a sample of every other batch for batches to come, if none is under way. Waits for nothing.

        A launch costs the host a tenth to a fifth of what a small batch takes.
        """
        with self._lock:
            if self._sampled or n >= _AWAITED_ELEMENTS:
                return
            self._passed_over = not self._passed_over
            if not self._passed_over:
                self._ask(table, batch, n, stream)

    def note(self, needed: int, n: int) -> None:
        """Keep that ``needed`` of ``n`` elements needed a slot."""
        with self._lock:
            self._share = needed / n

    def _ask(self, table: TicketTable, batch: TicketBatch, n: int, stream: Any) -> None:
        """Launch a sample."""
        sample = SweepBatch.of(batch, waiting=self._counter.ptr, sampled=n)
        sample.n = min(n, _SAMPLE)
        self._program.run("sample", table, sample, sample.n, stream)
        self._answer.ask(self._counter.ptr, stream)
        self._sampled = sample.n

    def _read(self) -> None:
        """Wait for the sample that is under way."""
        self._answer.wait()
        counted = int(self._answer.words[0])
        # An interrupt may have left a sample that nobody reads, whose count is in the next one.
        self._share = min(1.0, (counted - self._counted) / self._sampled)
        self._counted, self._sampled = counted, 0
