"""What a sample of a batch tells: whether its keys repeat, and which share of them is absent.

Where keys lie in host memory, the host compares a sample of 4 sqrt(n) keys out of n. If each key is there twice, such a
sample is expected to have 8 repeated keys. A GPU compares a sample of 2^10 keys from all over the batch, and one of as
many neighbours: it tells hot keys alone. A sample of as many keys is looked up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...runtime.abi import AggregateBatch, Aggregation, SampleBatch, StoredRows
from ...runtime.engine import Answer, Buffer, Engine
from ...runtime.memory import bytes_at
from ...runtime.source import AGGREGATES, ROWS
from ..lookup import launch_find
from ..random_words import random_words
from ..slots import Slots

__all__ = ["Samples", "absent_share", "sample_rows", "seed_of", "seem_distinct", "seem_new", "words_seem_distinct"]

_SAMPLED = 1 << 10
"""Keys that are looked up, or that a block of a GPU compares: a row of ``kernels/aggregates``."""

_LEAST_REPEATED = 1 / 4
"""Of the keys that a block compares, the share that repeats another."""

_BLOCK_THREADS = 256
_ODD = 0x9E3779B97F4A7C15


def seem_distinct(store: Slots, keys: int, n: int) -> bool:
    """Whether no key repeats in a sample of a batch of ``n`` words in host memory; False if they are elsewhere."""
    return store.engine.shares_host_memory and words_seem_distinct(keys, store.spec.word_bytes, n)


def words_seem_distinct(keys: int, width: int, n: int) -> bool:
    """Whether none repeats in a sample of ``n`` words in host memory; False if they are few, or of an odd width."""
    sampled = 2 * math.isqrt(n)
    step = n // max(1, sampled)
    if width not in (1, 2, 4, 8) or step < 2:
        return False
    words = bytes_at(keys, n * width).view(f"u{width}")
    within = (random_words(sampled, n) % np.uint64(step - 1)).astype(np.int64)
    places = np.arange(sampled) * step + within
    sample = np.sort(words[np.concatenate([places, places + 1])])  # neighbours, because copies may lie side by side
    return not np.any(sample[1:] == sample[:-1])


def seem_new(store: Slots, keys: int, n: int, stream: Any = None) -> bool:
    """Whether no key repeats in a sample of a batch in host memory, and none of another sample is in the store. Waits.

    Raises
    ------
    MemoryError
        If there is no room for the sample.
    """
    return seem_distinct(store, keys, n) and absent_share(store, keys, n, stream) == 1


def absent_share(store: Slots, keys: int, n: int, stream: Any) -> float:
    """The share of absent keys in a sample of a batch."""
    engine, width, sampled = store.engine, store.spec.word_bytes, min(n, _SAMPLED)
    held = _sampled(engine, keys, width, n, sampled, stream) if sampled < n else None
    at = keys if held is None else held.ptr
    flags = engine.allocate(sampled, stream)
    launch_find(store.state.array, at, sampled, 0, flags.ptr, 0, stream)
    return 1 - np.count_nonzero(engine.to_host(flags.ptr, np.uint8, sampled, stream)) / sampled


def sample_rows(engine: Engine, rows: int, width: int, n: int, sampled: int, stream: Any = None) -> npt.NDArray[Any]:
    """So many of ``n`` rows, from random places, in host memory: words as integers, other rows as bytes. Waits."""
    held = _sampled(engine, rows, width, n, sampled, stream)
    return engine.to_host(held.ptr, f"u{width}" if width in (1, 2, 4, 8) else f"S{width}", sampled, stream)


def _sampled(engine: Engine, rows: int, width: int, n: int, sampled: int, stream: Any) -> Buffer:
    """So many of ``n`` rows, from random places."""
    held = engine.allocate(sampled * width, stream)
    batch = SampleBatch(n=sampled, rows=rows, row_bytes=width, row_count=n, out_rows=held.ptr)
    engine.program(ROWS).run("sample", StoredRows(), batch, sampled, stream)
    return held


class Samples:
    """Samples the batches of one table on a GPU. Its caller holds the table's lock alone."""

    def __init__(self) -> None:
        self._answer: Answer | None = None  # two words

    def repeat_often(self, store: Slots, keys: int, n: int, stream: Any) -> bool:
        """Whether keys of a batch of ``n`` words of 4 or 8 bytes, at least 2^10, repeat often. Waits.

        Raises
        ------
        MemoryError
            If there is no memory for the answer.
        """
        engine = store.engine
        answer = self._answer = self._answer or engine.answer(2)
        batch = AggregateBatch(n=n, keys=keys, length=answer.ptr)
        entry = f"repeats{store.spec.word_bytes}"
        engine.program(AGGREGATES).run(entry, seed_of(store), batch, _BLOCK_THREADS, stream)
        answer.follow(stream)
        answer.wait()
        return max(map(int, answer.words)) >= _LEAST_REPEATED * _SAMPLED


def seed_of(store: Slots) -> Aggregation:
    """What the kernels of ``kernels/aggregates`` hash with."""
    return Aggregation(seed=store.seed * _ODD & (1 << 64) - 1)
