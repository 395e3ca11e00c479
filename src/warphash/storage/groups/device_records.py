"""Records that groups of elements keep of values, on a GPU (``group_records/gpu/accumulate.cuh``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...runtime.abi import GroupRecords, RecordBatch
from ...runtime.engine import Engine
from ...runtime.source import GROUP_RECORDS
from ..batch_tiles import over_tiles
from .records import WORD_BYTES, Record, RecordMemory

__all__ = ["accumulate_on_gpu"]


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
        If there is no memory for the records.
    """
    n, groups = shape
    batch = RecordBatch(numbers=numbers, number_bytes=number_bytes, expected=groups)
    memory = RecordMemory(record, batch)
    memory.write_to(outs)
    described = memory.sent(engine, batch, stream)
    records = engine.allocate(WORD_BYTES * batch.width * groups, stream)
    table = GroupRecords(records=records.ptr, count=groups)
    launch = partial(over_tiles, engine, GROUP_RECORDS)
    launch("begin_records", table, batch, groups, stream)
    launch("accumulate", table, batch, n, stream)
    launch("finish_records", table, batch, groups, stream)
    del described, records  # not before the launches
