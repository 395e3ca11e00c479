"""A large batch in the order of the parts of the table that it goes to (``core/gpu/partition.cuh``), and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..runtime.abi import Flag, PartitionBatch
from ..runtime.engine import Buffer, Engine
from ..runtime.source import partition
from ..settings import batch_order
from .policies import cached_parts_of, parts_of

__all__ = ["TILE_BYTES", "TILE_THREADS", "Copies", "in_parts", "parts_for"]

TILE_THREADS, TILE_BYTES = 256, 16 << 10
"""Of a block of these kernels: its threads, and its keys."""


@dataclass(frozen=True)
class Copies:
    """Copies of the elements of a batch, in another order.

    Attributes
    ----------
    keys, values, memory
        Their addresses, 0 for none, and what they are in.
    given, n, word
        Address of the keys as they came, their number and type.
    """

    engine: Engine
    keys: int
    values: int
    memory: list[Buffer]
    given: int
    n: int
    word: np.dtype[Any]

    def originals(self, which: npt.NDArray[np.int64], stream: Any) -> npt.NDArray[np.int64]:
        """Numbers of the elements that have the keys of some copies."""
        keys, copies = (self.engine.to_host(at, self.word, self.n, stream) for at in (self.given, self.keys))
        return np.flatnonzero(np.isin(keys, copies[which]))

    def flag(self, originals: int, copies: int, added: int, stream: Any) -> None:
        """Flags at the address ``originals`` from those at ``copies``, where so many elements were added."""
        if added == self.n:
            return self.engine.fill(originals, Flag.CHANGED, self.n, stream)
        # The keys were not new and unique after all: the host finds out which were.
        changed = np.flatnonzero(self.engine.to_host(copies, np.uint8, self.n, stream) == Flag.CHANGED)
        answer = np.zeros(self.n, np.uint8)
        answer[self.originals(changed, stream)] = Flag.CHANGED
        held = self.engine.from_host(answer, stream)
        self.engine.copy(originals, held.ptr, self.n, stream)


def parts_for(store: Any, n: int) -> tuple[int, int] | None:
    """Parts of a store whose order helps ``n`` elements, and the logarithm of the buckets of each; None for none."""
    engine, spec = store.engine, store.spec
    bucket_bytes = spec.slots_per_bucket * spec.slot_bytes
    apart = spec.layout.keys_apart or store.design.keeps_columns(spec.slots_per_bucket, spec.slot_bytes)
    lanes = engine.lanes // 4 if apart else engine.lanes  # each insert writes to two places, and a swap lost costs less
    parts = cached_parts_of(store.buckets, bucket_bytes, engine.window_bytes)
    if parts is None:
        return None
    order = batch_order()
    if order == "auto" or 64 * n < store.buckets * bucket_bytes:
        parts = parts_of(store.buckets, bucket_bytes, engine.window_bytes, lanes, n, engine.reach_bytes)
    words = spec.word_bytes in (4, 8) and spec.value_word_bytes in (0, spec.word_bytes)
    helps = order != "given" and words and store.design.fills_first_bucket(store.parameters)
    return parts if helps else None


def in_parts(store: Any, keys: int, values: int, n: int, stream: Any = None) -> Copies | None:
    """Copies of the words of ``n`` elements in the order of the parts of a store that they go to.

    None where that would not help, or where there is no memory for them.
    """
    engine, spec, parts = store.engine, store.spec, parts_for(store, n)
    if parts is None:
        return None
    count, shift = parts
    nbytes = n * spec.word_bytes
    try:
        memory = [engine.allocate(nbytes, stream) for _ in range(2 if values else 1)]
        counts = engine.allocate(2 * 8 * count, stream)
    except MemoryError:
        return None
    engine.fill(counts.ptr, 0, counts.nbytes, stream)
    word = np.dtype(f"u{spec.word_bytes}")
    copies = Copies(engine, memory[0].ptr, memory[1].ptr if values else 0, memory, keys, n, word)
    batch = PartitionBatch(n=n, keys=keys, values=values, out_keys=copies.keys, out_values=copies.values)
    batch.part_sizes, batch.parts, batch.part_shift = counts.ptr, count, shift
    threads = -(-nbytes // TILE_BYTES) * TILE_THREADS
    program = engine.program(partition(spec.layout.partition))
    for entry in ("count_parts", "partition"):
        program.run(f"{entry}{spec.word_bytes}", store.table, batch, threads, stream)
    return copies
