"""The elements of a batch on a GPU that have one row each, or a flag (``joins/gpu/hits.cuh``)."""

from __future__ import annotations

from typing import Any

from ...runtime.abi import SEGMENT, PairBatch, RowLists
from ...runtime.engine import Engine
from ...runtime.source import JOINS
from ..selection import words_to_starts

__all__ = ["DeviceHits"]

_LANES = 32
"""Of a warp, which takes a segment."""


class DeviceHits:
    """Elements with a code, or with a flag. Making it waits.

    Parameters
    ----------
    engine
        Of a GPU.
    words, of, n
        Address of ``n`` elements: ``"codes"``, of 4 bytes, negative for one that is no hit, or ``"flags"``, a byte of 0
        or 1 each.

    Attributes
    ----------
    total
        How many hits there are.

    Raises
    ------
    MemoryError
        If there is no memory for the counts.
    """

    def __init__(self, engine: Engine, words: int, of: str, n: int, stream: Any) -> None:
        self._program, self._of, self._stream = engine.program(JOINS), of, stream
        segments = -(-n // SEGMENT)
        self._lanes = segments * _LANES
        self._sums = engine.allocate(max(1, 8 * segments), stream)
        self._batch = PairBatch(n=n, codes=words, sums=self._sums.ptr)
        self.total = 0
        if n:
            self._launch(f"count_{of}")
            self.total = words_to_starts(engine, self._sums, segments, stream)

    def _launch(self, entry: str) -> None:
        self._program.run(entry, RowLists(), self._batch, self._lanes, self._stream)

    def write(self, elements: int, codes: int, out_bytes: int) -> None:
        """Write the elements of the hits, ascending, and their codes, to integers of 4 or 8 bytes. Does not wait.

        Parameters
        ----------
        elements, codes
            Addresses; there are no codes of ``"flags"``.
        """
        self._batch.out_left, self._batch.out_right = elements, codes
        if self.total:
            self._launch(f"emit_{self._of}{out_bytes}")
