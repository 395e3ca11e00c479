"""How much freed memory the pool of a GPU keeps, so that the scratch space of a batch is not mapped anew each time.

The driver has one threshold for all memory that a pool has mapped, live memory included. If a pool has mapped more,
free memory goes back to the device whenever a host waits. Under a fixed threshold, a table that is larger than it would
make the pool give back the scratch space of every batch. So the threshold moves with the live memory. Only large
buffers are counted: no other buffer needs a call for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

__all__ = ["COUNTED_BYTES", "KeptMemory"]

COUNTED_BYTES = 16 << 20
"""Least size of a buffer that is counted as live."""


class KeptMemory:
    """The threshold of a pool.

    Parameters
    ----------
    kept_bytes
        Of freed memory.
    set_threshold
        Tells the driver.
    """

    def __init__(self, kept_bytes: int, set_threshold: Callable[[int], object]) -> None:
        self._threshold, self._set = kept_bytes, set_threshold
        self._changes: deque[int] = deque()
        self._busy = threading.Lock()
        set_threshold(kept_bytes)

    def count(self, nbytes: int) -> None:
        """Count a buffer of the pool as live; or as freed, if the number of bytes is negative.

        Waits for nobody: a buffer may be freed in the middle of a call, when the collector runs there. Whoever holds
        the lock then takes the change into account.
        """
        self._changes.append(nbytes)
        while self._changes and self._busy.acquire(blocking=False):
            try:
                while self._changes:
                    self._threshold += self._changes.popleft()
                self._set(max(self._threshold, 0))  # an interrupt may have lost a change
            finally:
                self._busy.release()
