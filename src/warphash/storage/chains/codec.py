"""Words of keys that repeat: what a `MultiMap` asks of `ElasticMultiLists`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.abi import Batch, Table
from ..codec import WordStorage

__all__ = ["MultiWordBacking"]

CHUNK = 256
"""Counts that one element of the kernels ``chunk_sums`` and ``offsets`` sums up."""


class MultiWordBacking(WordStorage):
    """Packed rows in, packed rows out, where a key may stand many times."""

    store: Any  # ElasticMultiLists

    def count(self, keys: int, n: int, out: int, stream: Any) -> None:
        """Pairs of each key: uint32[n]."""
        words = self._keys(keys, n, stream)
        self.store.count(words[0], n, out, stream)

    def erase_all(self, keys: int, n: int, out: int, stream: Any) -> None:
        """How many pairs each element erased: uint32[n]."""
        words = self._keys(keys, n, stream)
        self.store.erase_all(words[0], n, out, stream)

    def offsets(self, keys: int, n: int, out: int, stream: Any) -> int:
        """Where the values of each key begin, uint64[n + 1]; how many there are. Waits."""
        engine = self._engine
        counts = engine.allocate(4 * max(1, n), stream)
        self.count(keys, n, counts.ptr, stream)
        chunks = -(-n // CHUNK)
        sums = engine.allocate(8 * max(1, chunks), stream)
        batch = Batch(n=chunks, keys=counts.ptr, default_value=n, out_values=sums.ptr)
        self._rows.run("chunk_sums", Table(), batch, chunks, stream)
        starts = np.zeros(chunks + 1, np.uint64)
        np.cumsum(engine.to_host(sums.ptr, np.uint64, chunks, stream), out=starts[1:])
        held = engine.from_host(starts, stream)
        batch = Batch(n=chunks, keys=counts.ptr, values=held.ptr, default_value=n, out_values=out)
        self._rows.run("offsets", Table(), batch, chunks, stream)
        engine.copy(out + 8 * n, held.ptr + 8 * chunks, 8, stream)
        return int(starts[-1])

    def find_all(self, keys: int, n: int, offsets: int, total: int, values: int, stream: Any) -> None:
        """The ``total`` values of all keys, those of each from its offset on."""
        words = self._keys(keys, n, stream)
        landing, held = self._landing(values, total, self.value_bytes, self._value_word, stream)
        self.store.store.find_all(words[0], n, offsets, landing, stream)
        if held is not None:
            self._narrow(landing, total, values, self.value_bytes, self._value_word, stream)
