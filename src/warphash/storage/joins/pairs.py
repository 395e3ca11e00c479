"""The pairs of a join on a CPU: counted first, and then written (``joins/cpu/pairs.cuh``)."""

from __future__ import annotations

import numpy as np

from ...arrays.adapters.numpy import address_of
from ...runtime.abi import PairBatch, RowLists
from ...runtime.engine import Engine
from ...runtime.source import JOINS

__all__ = ["Pairs"]

_CHUNKS = 512
_FEWEST_IN_CHUNK = 1 << 10


class Pairs:
    """The pairs of a batch of elements with the rows of their keys. They are counted when this is made.

    Parameters
    ----------
    engine
        Of the CPU.
    lists
        The rows of each key.
    codes, n
        Address of the codes of ``n`` elements.
    keeps_all
        An element without a row has a pair, too.

    Attributes
    ----------
    total
        How many pairs there are.

    Raises
    ------
    MemoryError
        If there is no memory for the counts.
    """

    def __init__(self, engine: Engine, lists: RowLists, codes: int, n: int, *, keeps_all: bool) -> None:
        length = max(_FEWEST_IN_CHUNK, -(-n // _CHUNKS))
        self._program, self._lists = engine.program(JOINS), lists
        self._sums = np.zeros(-(-n // length) + 1, np.uint64)  # the last one is not counted
        self._batch = PairBatch(n=n, codes=codes, keeps_all=int(keeps_all), length=length, sums=address_of(self._sums))
        self._program.run("count_pairs", lists, self._batch, n, None)
        self._sums[1:] = np.cumsum(self._sums[:-1])
        self._sums[0] = 0
        self.total = int(self._sums[-1])

    def write(self, left: int, right: int, out_bytes: int) -> None:
        """Write the pairs to arrays of integers of 4 or 8 bytes, whose addresses are given."""
        batch = self._batch
        batch.out_left, batch.out_right, batch.out_bytes = left, right, out_bytes
        self._program.run("emit_pairs", self._lists, batch, batch.n, None)
