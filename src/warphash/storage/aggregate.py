"""Hot keys of an update that combines values: summed up ahead of the table (``kernels/aggregates/aggregates.cuh``).

All copies of a key end in an atomic on one word. On a GPU these atomics are a queue, so a batch with a hot key takes as
long as its queue. A sample tells whether a batch repeats its keys often enough, and few of them often enough: of 2^10
keys from all over the batch, and of as many neighbours. Different keys cost the sample alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..runtime.abi import AggregateBatch, Aggregation, Flag, Op, SampleBatch, SpreadBatch, StoredRows
from ..runtime.engine import Buffer, Engine
from ..runtime.source import AGGREGATES, ROWS
from .storage import Store

__all__ = ["FEWEST_AGGREGATED", "Aggregated", "aggregated"]

FEWEST_AGGREGATED = 1 << 19
"""Elements from which on a batch is sampled: the table takes longer for so many than the sample does."""

_SAMPLE = 1 << 10
_LEAST_REPEATED = 1 / 4
"""Of the keys of a sample, the share that repeat an earlier one."""

_LANES_OF_BLOCK, _BLOCK_THREADS = 512, 256
"""A block for so many lanes of the device, and its threads."""


@dataclass(frozen=True)
class Aggregated:
    """What is left of a batch: its hot keys few times each.

    Attributes
    ----------
    n
        Elements.
    keys, values, flags
        Addresses of their words, and of room for their flags; 0 if nobody asks for flags.
    elements
        Address of the number, uint32, of one element of the batch that has the key.
    memory
        What all these are in.
    """

    engine: Engine
    n: int
    keys: int
    values: int
    flags: int
    elements: int
    memory: list[Buffer]

    def spread(self, flags: int, n: int, stream: Any) -> None:
        """Flag the ``n`` elements of the batch: of those with one key, one has the flag of what was left."""
        self.engine.fill(flags, Flag.PRESENT, n, stream)
        batch = SpreadBatch(n=self.n, elements=self.elements, flags=self.flags, out_flags=flags)
        self.engine.program(AGGREGATES).run("spread", Aggregation(), batch, self.n, stream)

    def originals(self, left: npt.NDArray[np.int64], stream: Any) -> npt.NDArray[np.int64]:
        """Numbers of elements of the batch that have the keys of some that were left."""
        return self.engine.to_host(self.elements, np.uint32, self.n, stream)[left].astype(np.int64)


def aggregated(
    store: Store, keys: int, values: int, n: int, *, op: Op, kind: int, flags: bool, stream: Any
) -> Aggregated | None:
    """Combine what repeats in a batch of ``n`` words. Waits, if the batch is large.

    None where that would not help, or where there is no memory for it.
    """
    engine, spec = store.engine, store.spec
    widths = spec.word_bytes, spec.value_word_bytes
    if op in (Op.KEEP, Op.REPLACE) or n < FEWEST_AGGREGATED or engine.lanes == 1 or not set(widths) <= {4, 8}:
        return None
    try:
        if not _repeats(engine, keys, widths[0], n, stream):
            return None
        memory = [engine.allocate(max(1, width) * n, stream) for width in (*widths, 4, int(flags))]
        length = engine.allocate(8, stream)
    except MemoryError:
        return None
    engine.fill(length.ptr, 0, 8, stream)
    out_keys, out_values, elements, out_flags = (buffer.ptr for buffer in memory)
    batch = AggregateBatch(n=n, keys=keys, values=values, op=op, kind=kind, length=length.ptr)
    batch.out_keys, batch.out_values, batch.elements = out_keys, out_values, elements
    threads = max(2, engine.lanes // _LANES_OF_BLOCK) * _BLOCK_THREADS
    seed = Aggregation(seed=store.seed * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    engine.program(AGGREGATES).run("aggregate" + "".join(map(str, widths)), seed, batch, threads, stream)
    left = int(engine.to_host(length.ptr, np.uint64, 1, stream)[0])
    return Aggregated(engine, left, out_keys, out_values, out_flags if flags else 0, elements, memory)


def _repeats(engine: Engine, keys: int, width: int, n: int, stream: Any) -> bool:
    """Whether keys repeat in one of two samples of a batch."""
    held = engine.allocate(_SAMPLE * width, stream)
    batch = SampleBatch(n=_SAMPLE, rows=keys, row_bytes=width, row_count=n, out_rows=held.ptr)
    engine.program(ROWS).run("sample", StoredRows(), batch, _SAMPLE, stream)
    neighbours = keys + (n - _SAMPLE) // 2 * width
    return any(
        len(np.unique(engine.to_host(at, f"u{width}", _SAMPLE, stream))) <= (1 - _LEAST_REPEATED) * _SAMPLE
        for at in (held.ptr, neighbours)
    )
