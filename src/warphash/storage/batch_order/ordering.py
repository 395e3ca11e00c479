"""A large batch in the order of the parts of the table that it goes to (``core/gpu/partition.cuh``), and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...runtime.abi import Flag, PartitionBatch
from ...runtime.engine import Buffer, Engine
from ...runtime.source import partition
from ...settings import batch_order
from ..batch import Batch
from ..new_memory import filled
from .parts import cached_parts_of, parts_of

__all__ = ["TILE_BYTES", "TILE_THREADS", "Copies", "in_parts", "parts_for", "tile_threads", "tiles_of"]

TILE_THREADS, TILE_BYTES = 256, 16 << 10
"""Of a block of these kernels: its threads, and its keys."""


def tiles_of(n: int, key_bytes: int) -> int:
    """Tiles of a batch of so many keys."""
    return -(-n * key_bytes // TILE_BYTES)


def tile_threads(n: int, key_bytes: int) -> int:
    """Threads of whole blocks, with a tile for each."""
    return tiles_of(n, key_bytes) * TILE_THREADS


@dataclass(frozen=True)
class Copies:
    """Copies of the elements of a batch, in another order.

    Attributes
    ----------
    given
        The batch as it came.
    batch
        The batch of the copies, without flags.
    memory
        What the copies are in.
    word
        Type of a key.
    """

    engine: Engine
    given: Batch
    batch: Batch
    memory: list[Buffer]
    word: np.dtype[Any]

    def originals(self, which: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Numbers of the elements that have the keys of some copies."""
        n, stream = self.given.n, self.given.stream
        keys, copies = (self.engine.to_host(batch.keys, self.word, n, stream) for batch in (self.given, self.batch))
        return np.flatnonzero(np.isin(keys, copies[which]))

    def flag(self, copies: int, added: int) -> None:
        """Flag the elements as they came, if anyone asks, by the flags of the copies, of which so many were added."""
        engine, n, flags, stream = self.engine, self.given.n, self.given.flags, self.given.stream
        if not flags:
            return
        if added == n:
            return engine.fill(flags, Flag.CHANGED, n, stream)
        # The keys were not new and unique after all: the host finds out which were.
        changed = np.flatnonzero(engine.to_host(copies, np.uint8, n, stream) == Flag.CHANGED)
        answer = np.zeros(n, np.uint8)
        answer[self.originals(changed)] = Flag.CHANGED
        held = engine.from_host(answer, stream)
        engine.copy(flags, held.ptr, n, stream)


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


def in_parts(store: Any, given: Batch) -> Copies | None:
    """Copies of the words of a batch in the order of the parts of a store that they go to.

    None where that would not help, or where there is no memory for them.
    """
    n, stream = given.n, given.stream
    engine, spec, parts = store.engine, store.spec, parts_for(store, n)
    if parts is None:
        return None
    count, shift = parts
    nbytes = n * spec.word_bytes
    try:
        memory = [engine.allocate(nbytes, stream) for _ in range(2 if given.values else 1)]
        counts = filled(engine, 2 * 8 * count, stream)
    except MemoryError:
        return None
    copied = given._replace(keys=memory[0].ptr, values=memory[1].ptr if given.values else 0, flags=0)
    copies = Copies(engine, given, copied, memory, np.dtype(f"u{spec.word_bytes}"))
    batch = PartitionBatch(n=n, keys=given.keys, values=given.values, out_keys=copied.keys, out_values=copied.values)
    batch.part_sizes, batch.parts, batch.part_shift = counts.ptr, count, shift
    threads = tile_threads(n, spec.word_bytes)
    program = engine.program(partition(spec.layout.partition))
    for entry in ("count_parts", "partition"):
        program.run(f"{entry}{spec.word_bytes}", store.table, batch, threads, stream)
    return copies
