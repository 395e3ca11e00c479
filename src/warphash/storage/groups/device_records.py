"""Words that groups of elements keep of values, on a GPU (``group_records/gpu/accumulate.cuh``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.abi import Chunks, RecordBatch
from ...runtime.engine import Engine
from ...runtime.source import GROUP_RECORDS
from .records import Record, RecordMemory

__all__ = ["accumulate_on_gpu"]

_BLOCK_THREADS, _TILE = 512, 8192
"""Threads of a block that accumulates, and elements that it takes at a time (``groups/gpu/tiles.cuh``)."""


def accumulate_on_gpu(
    engine: Engine,
    numbers: int,
    number_bytes: int,
    shape: tuple[int, int],
    record: Record,
    outs: Sequence[int],
    stream: Any,
) -> None:
    """Accumulate values by the numbers of their elements. Returns without waiting.

    Parameters
    ----------
    engine
        Of a GPU.
    numbers, number_bytes
        As of `records.accumulated`.
    shape
        How many elements and groups there are, at least one of each.
    record
        Of columns on the same GPU, without nulls.
    outs
        Address of 64 bits for each group, for each word of the record.

    Raises
    ------
    MemoryError
        If there is no memory for the description of the record.
    """
    n, groups = shape
    batch = RecordBatch(numbers=numbers, number_bytes=number_bytes, expected=groups)
    memory = RecordMemory(record, batch)
    memory.write_to(outs)
    held = memory.sent(engine, batch, stream)
    program = engine.program(GROUP_RECORDS)
    batch.n = groups
    program.run("begin_words", Chunks(), batch, groups, stream)
    batch.n = n
    blocks = min(-(-n // _TILE), max(1, engine.lanes // _BLOCK_THREADS))  # each block has words of its own
    program.run_blocks("accumulate", Chunks(), batch, blocks, stream)
    batch.n = groups
    program.run("finish_words", Chunks(), batch, groups, stream)
    del held  # not before the launches
