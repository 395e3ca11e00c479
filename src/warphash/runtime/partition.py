"""A large batch in the order of the parts of the table that it goes to (``kernels/partition.cuh``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..policies import parts_of
from .abi import Batch
from .engine import Buffer
from .source import PARTITION
from .store import Store

__all__ = ["Copies", "in_parts"]

_TILE_THREADS, _TILE_BYTES = 256, 16 << 10
"""Of a block of these kernels: its threads, and its keys."""


@dataclass(frozen=True)
class Copies:
    """Addresses of keys and values, 0 for none, and the memory that they are in."""

    keys: int
    values: int
    memory: list[Buffer]


def in_parts(store: Store, keys: int, values: int, n: int, stream: Any = None) -> Copies | None:
    """Copies of the words of ``n`` elements in the order of the parts of a store that they go to.

    None where that would not help, or where there is no memory for them.
    """
    engine, spec = store.engine, store.spec
    bucket_bytes = spec.slots_per_bucket * spec.slot_bytes
    parts = parts_of(store.buckets, bucket_bytes, engine.window_bytes, engine.lanes, n)
    if parts is None or not store.design.fills_first_bucket(store.parameters):
        return None
    count, shift = parts
    nbytes = n * spec.word_bytes
    try:
        memory = [engine.allocate(nbytes, stream) for _ in range(2 if values else 1)]
        counts = engine.allocate(2 * 8 * count, stream)
    except MemoryError:
        return None
    engine.fill(counts.ptr, 0, counts.nbytes, stream)
    copies = Copies(memory[0].ptr, memory[1].ptr if values else 0, memory)
    batch = Batch(n=n, keys=keys, values=values, out_keys=copies.keys, out_values=copies.values)
    batch.out_counts, batch.parts, batch.part_shift = counts.ptr, count, shift
    threads = -(-nbytes // _TILE_BYTES) * _TILE_THREADS
    for entry in ("count_parts", "partition"):
        engine.program(PARTITION).run(f"{entry}{spec.word_bytes}", store.table, batch, threads, stream)
    return copies
