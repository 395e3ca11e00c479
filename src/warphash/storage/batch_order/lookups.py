"""A large lookup in the order of the parts of a table, with its answers in the order of the caller, or in that order.

The kernels are those of ``core/gpu/lookup_partition.cuh``, which says why this pays, and what it costs in bytes.
`parts_for` decides. Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...runtime.abi import LookupPartitionBatch, PartitionBatch
from ...runtime.engine import Buffer, KernelSpec
from ...runtime.source import partition
from ...settings import batch_order
from ..scratch import starts_of
from .ordering import tile_threads, tiles_of
from .parts import FEWEST_CACHED_PARTS, cached_parts_of, lookup_parts_of

__all__ = ["FEWEST_PARTITIONED", "PartitionedKeys", "has_parts", "partition_keys", "parts_for"]

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


def has_parts(spec: KernelSpec) -> bool:
    """Whether there are kernels that bring the keys of such a table in the order of its parts."""
    words = spec.word_bytes in (4, 8) and spec.value_word_bytes in (0, spec.word_bytes)
    return words and bool(spec.layout.lookup_partition)


def parts_for(array: Any, n: int, *, erases: bool = False) -> tuple[int, int] | None:
    """Parts of an array in whose order ``n`` keys are looked up, and the logarithm of the buckets of each.

    None where that order would not help, where there are no kernels for it, or where `settings.batch_order` says so.
    Whether the order helps in the cache was measured on this device (`calibrate`), or else on another one
    (`DesignLayout.cached_lookup_bytes`).

    Parameters
    ----------
    n
        From `FEWEST_PARTITIONED` to `lookup.LAUNCH_ELEMENTS`.
    erases
        Whether the keys are erased. Erases gain nothing by the cache (measured: docs/performance/find.md).
    """
    spec, engine = array.spec, array.engine
    order = batch_order()
    if order == "given" or not has_parts(spec):
        return None
    bucket_bytes = spec.slots_per_bucket * spec.slot_bytes
    if order == "parts":
        return cached_parts_of(array.buckets, bucket_bytes, engine.window_bytes)
    fewest = None
    if engine.window_bytes and not erases:
        fewest = engine.recall(spec)
        is_map, width = spec.value_word_bytes > 0, spec.word_bytes + spec.value_word_bytes
        if fewest is None and is_map and width <= spec.layout.cached_lookup_bytes:
            fewest = FEWEST_CACHED_PARTS
    window = 0 if fewest is None else engine.window_bytes
    return lookup_parts_of(array.buckets, bucket_bytes, engine.reach_bytes, engine.lanes, n, fewest or 0, window)


def partition_keys(
    array: Any, keys: int, n: int, parts: tuple[int, int], stream: Any, *, out: int = 0
) -> PartitionedKeys | None:
    """Copy the ``n`` keys of a large lookup in the order of the parts of an array.

    None where there is no memory for it, or where a CUDA graph captures the stream: a graph cannot own memory.

    Parameters
    ----------
    n
        At most `lookup.LAUNCH_ELEMENTS`.
    parts
        As `parts_for` answers.
    out
        Where the copies go, if no answer goes back to the caller's order; 0 for memory of the lookup's own.
    """
    engine, width = array.engine, array.spec.word_bytes
    if engine.is_captured(stream):
        return None
    count, shift = parts
    tiles = tiles_of(n, width)
    answered = 0 if out else n  # here, before the answers go back to the caller's order
    *starts, end = starts_of((answered * width, answered, 2 * n, 8 * count * tiles, 16 * count))
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
    program = array.engine.program(partition(array.spec.layout.lookup_partition))
    program.run(f"{entry}{width}", array.table, batch, tile_threads(batch.n, width), stream)
