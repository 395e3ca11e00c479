"""Small device memory, which an engine hands out without a call of the driver.

Each table has a few small buffers: reports, lists, flags of a small batch. The driver takes several microseconds to
allocate a buffer, and as long to free it, which is more than a small update takes on the device. So small buffers are
cut from chunks that stay with the engine.

A buffer may be given back while a kernel still uses it. Its next owner uses it in an operation that the engine orders
behind all earlier ones, as it does with memory of the driver's pool.
"""

from __future__ import annotations

from collections.abc import Callable

from ..memory import DeviceBuffer

__all__ = ["LARGEST_BYTES", "SmallMemory"]

_SIZES_BYTES = (256, 1 << 10, 1 << 12, 1 << 14)
"""Of the pieces that chunks are cut into."""

LARGEST_BYTES = _SIZES_BYTES[-1]

_CHUNK_BYTES = 1 << 18


class SmallMemory:
    """Pieces of device memory of four sizes.

    Parameters
    ----------
    take
        Allocates a chunk for ever: bytes to an address. May raise `MemoryError`.
    """

    def __init__(self, take: Callable[[int], int]) -> None:
        self._take = take
        free: dict[int, list[int]] = {size: [] for size in _SIZES_BYTES}
        # Of each number of 256 bytes that a buffer may take: the size of its piece, and the free pieces of that size.
        self._pieces = [
            next((size, free[size]) for size in _SIZES_BYTES if size >= nbytes)
            for nbytes in range(_SIZES_BYTES[0], LARGEST_BYTES + 1, _SIZES_BYTES[0])
        ]

    def allocate(self, nbytes: int) -> DeviceBuffer:
        """Memory for up to `LARGEST_BYTES` bytes, aligned to 256 bytes.

        Raises
        ------
        MemoryError
            If there is no piece, and no memory for a chunk.
        """
        size, free = self._pieces[(nbytes - 1) // _SIZES_BYTES[0] if nbytes else 0]
        while True:
            try:
                return DeviceBuffer(free.pop(), nbytes, free.append)
            except IndexError:  # another thread may take the last piece at any time
                first = self._take(_CHUNK_BYTES)
                free.extend(range(first, first + _CHUNK_BYTES, size))
