"""A line of host memory in which a kernel leaves its outcome: the host looks there instead of asking for a copy.

A copy of the report costs an operation of the device and a wait of the driver; together they take longer than a small
update itself. The kernels' side is ``kernels/buckets/gpu/one_block.cuh`` and ``kernels/quotient/gpu/few.cuh``.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from ..runtime.abi import BucketBatch, FewBatch
from ..runtime.engine import Engine

__all__ = ["ResultSlot"]

_WORDS = 8

_LOOKS = 400
"""About 20 us of looking, with no other thread of Python running; then the driver waits, and they run."""

_tickets = itertools.count(1 << 32)
"""Of all result slots. Another owner may have had the memory from `Engine.allocate_pinned` before. The device may still
write that owner's ticket there, or a copied count, which is smaller than any ticket. A slot waits for neither."""


class ResultSlot:
    """The result slot of one table. Its caller holds the table's lock.

    Parameters
    ----------
    engine
        Where the kernels run.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._memory = engine.allocate_pinned(8 * _WORDS)
        self._words = (ctypes.c_uint64 * _WORDS).from_address(self._memory.ptr)

    def address(self, batch: BucketBatch | FewBatch) -> None:
        """Have the kernel of ``batch`` write its outcome here."""
        self._ticket = next(_tickets)
        batch.answer, batch.ticket = self._memory.ptr, self._ticket

    def outcome(self, stream: Any) -> tuple[int, int, int, int]:
        """Displaced, unplaced, changed and probes of the last batch that was addressed. Waits for it.

        Raises
        ------
        WarphashError
            If a kernel failed; the driver's own error.
        """
        words, ticket = self._words, self._ticket
        for _ in range(_LOOKS):
            if words[0] == ticket:
                break
        else:
            self._engine.synchronize(stream)
        return words[1], words[2], words[3], words[4]
