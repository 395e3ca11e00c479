"""Page-locked memory of a GPU's host."""

from __future__ import annotations

from ..memory import PinnedBuffer
from .device import Device

__all__ = ["PinnedPages"]

PAGE_BYTES, PAGES_AT_ONCE = 4096, 16
"""Of small memory, a page each; and how many of them are pinned together."""


class PinnedPages:
    """Pinned memory, of which up to a page is taken from pages that stay pinned.

    The driver takes 0.1 ms to pin memory, and waits for the device to unpin it. The device may still write to a page
    whose owner is gone. It does so before it writes there for the next one, since work on one engine is in order; so
    the next one reads what it has seen to come after its own.
    """

    def __init__(self, engine: Device) -> None:
        self._engine = engine
        self._driver = engine._driver
        self._free: list[int] = []  # pages of nobody's

    def allocate(self, nbytes: int) -> PinnedBuffer:
        """New memory, or a page that was given back.

        Raises
        ------
        MemoryError
            If the driver refuses.
        """
        if nbytes > PAGE_BYTES:
            return PinnedBuffer(self._pin(nbytes), nbytes, self._unpin)
        free = self._free
        while True:
            try:
                return PinnedBuffer(free.pop(), nbytes, free.append)
            except IndexError:  # another thread may take the last page at any time
                first = self._pin(PAGES_AT_ONCE * PAGE_BYTES)
                free.extend(range(first, first + PAGES_AT_ONCE * PAGE_BYTES, PAGE_BYTES))

    def _pin(self, nbytes: int) -> int:
        status, ptr = self._engine.call(self._driver.cuMemHostAlloc, nbytes, 0)
        if status:
            raise MemoryError(f"cannot pin {nbytes:,} bytes of host memory ({status.name})")
        return int(ptr)

    def _unpin(self, ptr: int) -> None:
        self._engine.discard(self._driver.cuMemFreeHost, ptr)
