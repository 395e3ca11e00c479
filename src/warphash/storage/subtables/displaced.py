"""Displaced pairs on the host, and the memory in which they find slots again when the device has none left."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.engine import Buffer

__all__ = ["Arena", "DisplacedPairs"]

_ALIGNMENT_BYTES = 256


class DisplacedPairs(NamedTuple):
    """Pairs that were evicted from their buckets and have no slot: rows of bytes."""

    keys: npt.NDArray[np.uint8]
    values: npt.NDArray[np.uint8]

    @classmethod
    def none(cls, key_bytes: int, value_bytes: int) -> DisplacedPairs:
        """No pairs, of these widths."""
        return cls(np.empty((0, key_bytes), np.uint8), np.empty((0, value_bytes), np.uint8))

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return len(self.keys)

    @property
    def words(self) -> npt.NDArray[Any]:
        """The keys as one item each, for comparisons."""
        return np.ascontiguousarray(self.keys).view(f"V{self.keys.shape[1]}").ravel()

    def and_others(self, others: DisplacedPairs) -> DisplacedPairs:
        """These pairs and the others."""
        return DisplacedPairs(*(np.concatenate(rows) for rows in zip(self, others, strict=True))) if others.n else self

    def which(self, some: Any) -> DisplacedPairs:
        """The pairs that a mask, a slice or an array of numbers takes."""
        return DisplacedPairs(self.keys[some], self.values[some])


class Arena:
    """Hands out one piece of memory part by part."""

    def __init__(self, memory: Buffer) -> None:
        self._memory, self._used = memory, 0

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer:
        """As `Engine.allocate`."""
        at, self._used = self._used, self._used + -(-nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        if self._used > self._memory.nbytes:
            raise MemoryError(f"an arena of {self._memory.nbytes:,} bytes has no {nbytes:,} left")
        return _Part(self._memory.ptr + at, nbytes, self._memory)


class _Part(NamedTuple):
    """A part of a piece of memory, which it keeps."""

    ptr: int
    nbytes: int
    memory: Buffer
