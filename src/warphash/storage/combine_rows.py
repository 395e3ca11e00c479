"""Upserts of rows of numbers that lie in the slots: each key's row is computed beside the table, and then assigned.

A slot is written as a whole, and an atomic combines one number. So a batch is combined in a `WideRows` of its own,
which is gone when the update ends, and where each number is combined by itself. The kernels are those of all rows
(``kernels/rows/rows.cuh``). A fault before the assignment leaves the table as it was.

Cost: a table of the batch's keys, and two lookups and some copies of each element.
"""

from __future__ import annotations

import numpy as np

from ..designs import registry
from ..errors import UnsupportedVerb
from ..runtime.abi import RowBatch, StoredRows, bytes_of
from ..runtime.engine import Buffer, Engine
from ..runtime.source import ROWS
from .batch import Batch
from .new_memory import filled
from .rows import Rows
from .slots import Slots, StoreOptions, TableKind
from .stores import spec_of, store_maker
from .wide_rows import WideRows

__all__ = ["combine_rows"]


def combine_rows(storage: Rows, key_bytes: int, value_bytes: int, given: Batch) -> Buffer:
    """Compute the value that each key of a batch has to get, for each element. Elements of one key get the same value.

    Parameters
    ----------
    storage
        The table. It is looked up, and stays as it is.
    key_bytes, value_bytes
        Width of a row.
    given
        The batch. Neither its flags nor what its keys hold are answered.

    Raises
    ------
    UnsupportedVerb
        If the numbers have less than 4 bytes.
    MemoryError
        If there is no room for the batch's own table.
    """
    keys, n, op, kind, stream = given.keys, given.n, given.op, given.kind, given.stream
    if (number := bytes_of(kind)) not in (4, 8):
        raise UnsupportedVerb(
            f"upsert combines numbers of 4 or 8 bytes in rows of numbers, and these have {number} bytes: widen them"
        )
    engine = storage.store.engine

    def rows() -> Buffer:
        return engine.allocate(max(1, n * value_bytes), stream)

    if n == 0:
        return rows()
    storage.store.finish(stream)
    batch, held, result, found = rows(), rows(), rows(), engine.allocate(n, stream)
    nothing = bytes(value_bytes)
    own = _wide_rows(engine, key_bytes, value_bytes, n, storage.store.seed + 1)
    own.update(given._replace(flags=0, held=0, unique=False))
    own.store.finish(stream)
    for made in (batch, result):
        own.find(keys, n, made.ptr, 0, nothing, stream)
    storage.find(keys, n, held.ptr, found.ptr, nothing, stream)
    # Each element has a row of its own here. So the rows of a key that repeats take in the table's value once each.
    numbers = engine.from_host(np.arange(n, dtype=np.uint64), stream)
    none = filled(engine, n, stream)
    program = engine.program(ROWS)
    merge = RowBatch(n=n, rows=held.ptr, row_bytes=value_bytes, numbers=numbers.ptr, flags=none.ptr, op=op, kind=kind)
    program.run("merge", StoredRows(rows=batch.ptr, stored_bytes=value_bytes), merge, n, stream)
    scatter = RowBatch(n=n, rows=batch.ptr, row_bytes=value_bytes, numbers=numbers.ptr, flags=found.ptr)
    program.run("scatter", StoredRows(rows=result.ptr, stored_bytes=value_bytes), scatter, n, stream)
    return result


def _wide_rows(engine: Engine, key_bytes: int, value_bytes: int, capacity: int, seed: int) -> WideRows:
    """Empty `WideRows` for the work of one call."""
    design = registry.get("bucketed_cuckoo")
    parameters = design.resolve({})
    spec = spec_of(design, tuple(parameters.items()), 8, 8, "mixer")
    options = StoreOptions(True, 8, design.default_load_factor(parameters), None, False)
    kind, capacity = TableKind(engine, design, parameters, spec), max(1, capacity)
    store: Slots = store_maker(design.layout.family)(kind, capacity, seed, "mixer", options, False)
    return WideRows(store, key_bytes, value_bytes)
