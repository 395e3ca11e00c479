"""Which words of a batch may be among others, on a CPU: bits of the others (``joins/cpu/filter.cuh``)."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays.adapters.numpy import address_of
from ...runtime.abi import Chunks, FilterBatch
from ...runtime.engine import Engine
from ...runtime.source import JOINS
from ...settings import get_num_threads
from ..groups.spans import cut
from ..groups.ways import chunks_of
from ..new_memory import filled

__all__ = ["Likely", "WordFilter"]

_CELL_BYTES = 8
_WORDS_OF_CELL = 4


class Likely(NamedTuple):
    """Words of a batch that may be among others: all that are, and one in 50 of those that are not.

    Attributes
    ----------
    elements
        Their places in the batch, ascending.
    words
        The words.
    """

    elements: npt.NDArray[np.uint32]
    words: npt.NDArray[Any]


class WordFilter:
    """Bits of some words.

    Parameters
    ----------
    engine
        Of the CPU.
    words, width, n
        Address of ``n`` packed words of ``width`` bytes, 4 or 8; at least one word.

    Raises
    ------
    MemoryError
        If there is no memory for the bits.
    """

    def __init__(self, engine: Engine, words: int, width: int, n: int) -> None:
        self._engine, self._width, self._salt = engine, width, random.getrandbits(64)
        self._size = 1 + n // _WORDS_OF_CELL
        self._cells = filled(engine, _CELL_BYTES * self._size)
        self._run("add_to_filter", _chunks(n), self._batch(words, n))

    def likely(self, words: int, n: int) -> Likely:
        """Those of ``n`` packed words of the same width, from 1 to 2**31, that may be among the others.

        Raises
        ------
        MemoryError
            If there is no memory for the lists.
        """
        chunks = _chunks(n)
        sums = np.zeros(chunks.count + 1, np.uint64)
        listed, listed_words = self._engine.allocate(4 * n), self._engine.allocate(self._width * n)
        batch = self._batch(words, n)
        batch.listed, batch.listed_words, batch.sums = listed.ptr, listed_words.ptr, address_of(sums)
        self._run("list_likely", chunks, batch)
        sums[1:] = np.cumsum(sums[:-1])
        sums[0] = 0
        elements, likely = np.empty(int(sums[-1]), np.uint32), np.empty(int(sums[-1]), f"u{self._width}")
        batch.out_elements, batch.out_words = address_of(elements), address_of(likely)
        self._run("gather_likely", chunks, batch)
        return Likely(elements, likely)

    def _batch(self, words: int, n: int) -> FilterBatch:
        cells = {"cells": self._cells.ptr, "size": self._size, "salt": self._salt}
        return FilterBatch(n=n, keys=words, key_bytes=self._width, **cells)

    def _run(self, entry: str, chunks: Chunks, batch: FilterBatch) -> None:
        self._engine.program(JOINS).run(entry, chunks, batch, batch.n, None)


def _chunks(n: int) -> Chunks:
    """One for each thread that may work."""
    return cut(n, chunks_of(n, get_num_threads()))
