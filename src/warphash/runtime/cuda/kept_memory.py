"""How much freed memory the pool of a GPU keeps, so that the scratch space of a batch is not mapped anew each time.

The driver has one threshold for all memory that a pool has mapped, live memory included. If a pool has mapped more,
free memory goes back to the device whenever a host waits. Under a fixed threshold, a table that is larger than it would
make the pool give back the scratch space of every batch. So the threshold moves with the live memory. Only large
buffers are counted.

Kept memory is not lost for other allocators of the process. When a pool of the same device, or `cuMemAlloc`, finds no
free memory, the driver takes what is kept. Other processes do not get it.

To tell the driver takes as long as to allocate a buffer. So the threshold is a little higher than it must be, and stays
where it is while the live memory changes by little: a batch that takes scratch space and frees it need not tell.
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
        Of freed memory, at least; at most half as much again.
    set_threshold
        Tells the driver.
    """

    def __init__(self, kept_bytes: int, set_threshold: Callable[[int], object]) -> None:
        self._least, self._slack, self._set = kept_bytes, kept_bytes // 4, set_threshold
        self._changes: deque[int] = deque()
        self._busy = threading.Lock()
        self._threshold = -1
        self._tell()

    def count(self, nbytes: int) -> None:
        """Count a buffer of the pool as live; or as freed, if the number of bytes is negative.

        Waits for nobody: a buffer may be freed in the middle of a call, when the collector runs there. Whoever holds
        the lock then takes the change into account.
        """
        self._changes.append(nbytes)
        while self._changes and self._busy.acquire(blocking=False):
            try:
                while self._changes:
                    self._least += self._changes.popleft()
                self._tell()
            finally:
                self._busy.release()

    def _tell(self) -> None:
        """Move the threshold, if it is too low or much too high."""
        least = max(self._least, 0)  # an interrupt may have lost a change
        if not least <= self._threshold <= least + 2 * self._slack:
            self._set(least + self._slack)
            self._threshold = least + self._slack
