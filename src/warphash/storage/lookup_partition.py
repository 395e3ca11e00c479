"""A large lookup in the order of the parts of a table, with its answers in the order of the caller, or in that order.

The kernels are those of ``core/gpu/lookup_partition.cuh``, which says why this pays, and what it costs in bytes.
`policies.lookup_parts_of` decides. Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..runtime.abi import LookupPartitionBatch, PartitionBatch
from ..runtime.engine import Buffer
from ..runtime.source import partition
from .partition import TILE_BYTES, TILE_THREADS
from .policies import lookup_parts_of
from .scratch import starts_of

__all__ = ["FEWEST_PARTITIONED", "PartitionedKeys", "partition_keys"]

FEWEST_PARTITIONED = 1 << 21
"""Elements below which no lookup is partitioned. Small calls do not pay for the question whether it would help."""


@dataclass(frozen=True)
class PartitionedKeys:
    """Copies of the keys of a lookup, in the order of the parts of a table.

    Attributes
    ----------
    keys
        Address of the copies. Where the answers come back to the caller's order, the lookup may write values there: a
        lane reads its key before it answers.
    flags
        Address for a byte of each element, in the same order.
    """

    keys: int
    flags: int
    _array: Any
    _batch: LookupPartitionBatch
    _memory: Buffer

    def restore(self, values: int, flags: int, stream: Any) -> None:
        """Bring the answers at ``keys`` and ``flags`` to words and bytes in the caller's order; 0 for none."""
        batch = self._batch
        batch.values, batch.flags, batch.out_values, batch.out_flags = self.keys, self.flags, values, flags
        _launch(self._array, "restore_order", batch, stream)


def partition_keys(
    array: Any, keys: int, n: int, stream: Any, *, valued: bool = False, out: int = 0
) -> PartitionedKeys | None:
    """Copy the ``n`` keys of a large lookup in the order of the parts of an array.

    There are from `FEWEST_PARTITIONED` to `lookup.LAUNCH_ELEMENTS` keys.

    None where that would not help, where keys or values have widths of their own, where there is no memory for it, or
    where a CUDA graph captures the stream: a graph cannot own memory.

    Parameters
    ----------
    valued
        Whether the lookup is for values, for which it reads more of a bucket than for flags.
    out
        Where the copies go; 0 for memory of the lookup's own.
    """
    spec = array.spec
    words = spec.word_bytes in (4, 8) and spec.value_word_bytes in (0, spec.word_bytes)
    if not words or not spec.layout.lookup_partition:
        return None
    engine, width = array.engine, spec.word_bytes
    bucket_bytes = spec.slots_per_bucket * spec.slot_bytes
    gains = valued and spec.word_bytes + spec.value_word_bytes <= spec.layout.cached_lookup_bytes
    window = engine.window_bytes if gains else 0
    parts = lookup_parts_of(array.buckets, bucket_bytes, engine.reach_bytes, engine.lanes, n, window)
    if parts is None or engine.is_captured(stream):
        return None
    count, shift = parts
    tiles = -(-n * width // TILE_BYTES)
    *starts, end = starts_of((0 if out else n * width, n, 2 * n, 8 * count * tiles, 16 * count))
    try:
        memory = engine.allocate(end, stream)
    except MemoryError:
        return None
    own, flags, places, runs, sizes = (memory.ptr + at for at in starts)
    copies = out or own
    engine.fill(sizes, 0, 16 * count, stream)
    batch = LookupPartitionBatch(n=n, keys=keys, out_keys=copies, places=places, runs=runs)
    batch.part_sizes, batch.parts, batch.part_shift = sizes, count, shift
    _launch(array, "count_parts", PartitionBatch.from_buffer_copy(batch), stream)
    _launch(array, "partition_keys", batch, stream)
    return PartitionedKeys(copies, flags, array, batch, memory)


def _launch(array: Any, entry: str, batch: PartitionBatch, stream: Any) -> None:
    """Launch a kernel for keys of the array's width: whole tiles."""
    width = array.spec.word_bytes
    threads = -(-int(batch.n) * width // TILE_BYTES) * TILE_THREADS
    program = array.engine.program(partition(array.spec.layout.lookup_partition))
    program.run(f"{entry}{width}", array.table, batch, threads, stream)
