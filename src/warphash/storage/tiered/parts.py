"""Some elements of a batch: their rows packed into memory of their own, and answers put back to their places.

All work is in the engine's memory. The elements of a part are in no particular order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.abi import REPORT_WORDS, WINNERS, Flag, Op, RowBatch, StoredRows, WordBatch, kind_of
from ...runtime.engine import Buffer, Engine
from ...runtime.source import ROWS

__all__ = ["Part", "flagged"]


class Part(NamedTuple):
    """Some elements of a batch.

    Attributes
    ----------
    n
        How many they are.
    numbers
        Of the elements in the batch: uint64[n].
    """

    engine: Engine
    n: int
    numbers: Buffer

    def packed(self, rows: int, width: int, stream: Any) -> Buffer:
        """Copy the elements' rows, of ``width`` bytes each, from those of the batch at the address ``rows``."""
        out = self.engine.allocate(max(1, self.n * width), stream)
        if self.n and width:
            batch = RowBatch(n=self.n, row_bytes=width, numbers=self.numbers.ptr, out_rows=out.ptr)
            self.engine.program(ROWS).run("gather", StoredRows(rows=rows, stored_bytes=width), batch, self.n, stream)
        return out

    def put(self, packed: Buffer, rows: int, width: int, stream: Any) -> None:
        """Copy the elements' rows from ``packed`` to their places among those of the batch at the address ``rows``."""
        if self.n and width:
            batch = RowBatch(n=self.n, rows=packed.ptr, row_bytes=width, numbers=self.numbers.ptr)
            self.engine.program(ROWS).run("scatter", StoredRows(rows=rows, stored_bytes=width), batch, self.n, stream)

    def add(self, counts: Buffer, out: int, stream: Any) -> None:
        """Add the elements' counts, uint32, to those of the batch at the address ``out``."""
        if self.n:
            flags = self.engine.allocate(self.n, stream)
            self.engine.fill(flags.ptr, Flag.PRESENT, self.n, stream)
            batch = RowBatch(n=self.n, rows=counts.ptr, row_bytes=4, numbers=self.numbers.ptr, flags=flags.ptr)
            batch.op, batch.kind = Op.ADD, kind_of(np.dtype(np.uint32))
            self.engine.program(ROWS).run("merge", StoredRows(rows=out, stored_bytes=4), batch, self.n, stream)


def flagged(engine: Engine, flags: int, n: int, flag: Flag, stream: Any) -> Part:
    """Those of ``n`` elements that have a flag; ``flags`` is the address of their bytes. Waits."""
    if n == 0:
        return Part(engine, 0, engine.allocate(1, stream))
    rows = engine.program(ROWS)
    report, listed = engine.allocate(8 * REPORT_WORDS, stream), engine.allocate(4 * n, stream)
    engine.fill(report.ptr, 0, report.nbytes, stream)
    batch = RowBatch(n=n, flags=flags, listed_flag=flag, list=listed.ptr, report=report.ptr)
    rows.run("list_flagged", StoredRows(), batch, n, stream)
    count = int(engine.to_host(report.ptr + WINNERS, np.uint64, 1, stream)[0])
    numbers = engine.allocate(max(1, 8 * count), stream)
    if count:
        widen = WordBatch(n=count, rows=listed.ptr, row_bytes=4, words=numbers.ptr, word_bytes=8)
        rows.run("widen", StoredRows(), widen, count, stream)
    return Part(engine, count, numbers)
