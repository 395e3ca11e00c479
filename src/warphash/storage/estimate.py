"""How many new keys a batch brings, before the first of its kernels runs.

A batch that is larger than the free part of a table may bring as many keys as it has elements, or the same few keys
over and over, or no new key at all. All three are common: a table is filled, rows are grouped, values are assigned. A
table that is sized for the elements wastes memory; one that is not sized at all is filled up, fails, grows and starts
again.

Two measurements bound the number. A sample of the batch is looked up, which tells the share of elements whose keys are
absent. If that share could be too large, all keys are entered into a sketch of 2^13 registers (Flajolet et al.,
HyperLogLog, 2007), which tells how many of them differ, with a standard error of 1.15 percent; it reads each key once.

If no key repeats in another sample (`sample.seem_distinct`), nearly all keys of the batch differ. Then the sketch is
left out. So it is behind a batch that brought new keys alone, if no key of the first sample is known.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..runtime.abi import FingerprintBatch, StoredRows
from ..runtime.engine import Engine
from ..runtime.source import ROWS, SKETCH
from .batch import Batch
from .batch_order.sample import absent_share, seem_distinct
from .new_memory import filled
from .slots import Slots

__all__ = ["FEWEST_SKETCHED", "distinct_of_sample", "estimate_distinct", "estimate_new_keys"]

FEWEST_SKETCHED = 1 << 13
"""Elements up to which all absent ones are taken for different keys: room for them costs less than the sketch."""

_BLOCK_ROWS, _BLOCK_THREADS = 1 << 14, 1 << 10
"""Fewest rows of a block of a GPU that sketches, whose own registers take as long as so many; and its threads."""

_REGISTERS = 1 << 13
"""Of a sketch; ``kSketchBits`` in ``kernels/rows``."""


def estimate_new_keys(store: Slots, batch: Batch, room: int = 0, *, behind_new: bool = False) -> int:
    """Estimate how many different keys of a batch are not in the store. Waits, unless the keys are unique.

    Parameters
    ----------
    room
        New keys that change nothing: if there are no more, the estimate need not be near.
    behind_new
        All elements of the batch before brought new keys. Then those of this one are taken for such, if the sample has
        no known key.

    Raises
    ------
    MemoryError
        If there is no room for the sample or the sketch. The store is as it was.
    """
    keys, n, stream = batch.keys, batch.n, batch.stream
    if batch.unique:
        return n
    absent = n
    if store.size:
        absent = math.ceil(absent_share(store, keys, n, stream) * n)
    if absent <= max(room, FEWEST_SKETCHED) or (behind_new and absent == n) or seem_distinct(store, keys, n):
        return absent
    return min(absent, estimate_distinct(store.engine, keys, store.spec.word_bytes, n, stream))


def estimate_distinct(engine: Engine, rows: int, row_bytes: int, n: int, stream: Any) -> int:
    """Estimate how many different rows there are among ``n``. Waits.

    Raises
    ------
    MemoryError
        If there is no room for the sketch.
    """
    return min(n, math.ceil(_distinct(_sketch(engine, rows, row_bytes, n, stream))))


def distinct_of_sample(sample: npt.NDArray[Any], n: int) -> int:
    """Estimate how many different words there are among ``n``, of which ``sample`` has some from random places.

    By the words that are once and those that are twice in the sample (Chao, Scandinavian Journal of Statistics 11,
    1984, in the form without bias). If words are equally frequent, that is their number; if not, it is less. A word
    with a large share of the sample changes nothing.
    """
    counts = np.unique(sample, return_counts=True)[1]
    if len(counts) == len(sample):
        return n
    once, twice = (int(np.count_nonzero(counts == often)) for often in (1, 2))
    unseen = once * (once - 1) / (2 * (twice + 1))
    return min(n, len(counts) + math.ceil(unseen))


def _sketch(engine: Engine, rows: int, row_bytes: int, n: int, stream: Any) -> npt.NDArray[np.uint32]:
    """The registers of a sketch of all rows."""
    registers = filled(engine, 4 * _REGISTERS, stream)
    batch = FingerprintBatch(n=n, rows=rows, row_bytes=row_bytes, registers=registers.ptr)
    if engine.lanes == 1:
        engine.program(ROWS).run("sketch", StoredRows(), batch, n, stream)
    else:
        blocks = min(-(-n // _BLOCK_ROWS), max(1, engine.lanes // _BLOCK_THREADS))
        engine.program(SKETCH).run_blocks("sketch", StoredRows(), batch, blocks, stream)
    return engine.to_host(registers.ptr, np.uint32, _REGISTERS, stream)


def _distinct(ranks: npt.NDArray[np.uint32]) -> float:
    """How many different keys were entered into a sketch with these registers."""
    registers = len(ranks)
    with_rank = np.bincount(ranks)
    estimate = 0.7213 / (1 + 1.079 / registers) * registers**2 / float(with_rank @ np.exp2(-np.arange(len(with_rank))))
    empty = int(with_rank[0])
    if estimate <= 2.5 * registers and empty:  # many registers have seen no key: their number tells more
        return registers * math.log(registers / empty)
    return estimate
