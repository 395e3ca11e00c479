"""Streams by their handles of the driver."""

from __future__ import annotations

__all__ = ["LEGACY_STREAM", "PER_THREAD_STREAM", "StreamHandle"]

LEGACY_STREAM, PER_THREAD_STREAM = 1, 2
"""The driver's handles of its two default streams. The second is another stream in every thread."""


class StreamHandle(int):
    """The driver's handle of a stream, which other libraries take by ``__cuda_stream__``, too."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self)
