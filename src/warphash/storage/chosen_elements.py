"""Some elements of a batch: their rows packed into memory of their own, and answers put back to their places.

All work is in the engine's memory. The elements of a part are in no particular order. On a CPU, NumPy does the work on
parts of small batches: its calls take 3 us, and launches of kernels 10.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..runtime.abi import REPORT_WORDS, WINNERS, Flag, Op, RowBatch, StoredRows, WordBatch, kind_of
from ..runtime.engine import Answer, Buffer, Engine
from ..runtime.memory import bytes_at
from ..runtime.source import ROWS
from .new_memory import filled

__all__ = ["Listing", "Part", "flagged", "listing"]

_FEWEST_FOR_KERNELS = 1 << 14
"""Elements of a batch whose part kernels choose, on a CPU."""


class Part(NamedTuple):
    """Some elements of a batch.

    Attributes
    ----------
    n
        How many they are.
    numbers
        Of the elements in the batch: uint64[n]. None of a part that NumPy works on.
    places
        The same in host memory, ascending. None of a part that kernels work on.
    """

    engine: Engine
    n: int
    numbers: Buffer | None
    places: npt.NDArray[np.intp] | None = None

    def elements(self, stream: Any) -> npt.NDArray[np.intp]:
        """The numbers of the elements in the batch, in host memory. Waits."""
        if self.numbers is None:
            return self._places
        return self.engine.to_host(self.numbers.ptr, np.uint64, self.n, stream).astype(np.intp)

    def packed(self, rows: int, width: int, stream: Any) -> Buffer:
        """Copy the elements' rows, of ``width`` bytes each, from those of the batch at the address ``rows``."""
        out = self.engine.allocate(max(1, self.n * width), stream)
        if self.numbers is None:
            np.take(self._rows(rows, width), self._places, 0, _rows_at(out.ptr, self.n, width), mode="clip")
        elif self.n and width:
            batch = RowBatch(n=self.n, row_bytes=width, numbers=self.numbers.ptr, out_rows=out.ptr)
            self.engine.program(ROWS).run("gather", StoredRows(rows=rows, stored_bytes=width), batch, self.n, stream)
        return out

    def put(self, packed: Buffer, rows: int, width: int, stream: Any) -> None:
        """Copy the elements' rows from ``packed`` to their places among those of the batch at the address ``rows``."""
        if self.numbers is None:
            self._rows(rows, width)[self._places] = _rows_at(packed.ptr, self.n, width)
        elif self.n and width:
            batch = RowBatch(n=self.n, rows=packed.ptr, row_bytes=width, numbers=self.numbers.ptr)
            self.engine.program(ROWS).run("scatter", StoredRows(rows=rows, stored_bytes=width), batch, self.n, stream)

    def _rows(self, rows: int, width: int) -> npt.NDArray[Any]:
        """The rows of the batch at an address, up to the last one of the part."""
        return _rows_at(rows, int(self._places[-1]) + 1 if self.n else 0, width)

    @property
    def _places(self) -> npt.NDArray[np.intp]:
        assert self.places is not None, "kernels work on the part"
        return self.places

    def add(self, counts: Buffer, out: int, stream: Any) -> None:
        """Add the elements' counts, uint32, to those of the batch at the address ``out``."""
        if self.n:
            flags = filled(self.engine, self.n, stream, Flag.PRESENT)
            numbers = self.numbers or self.engine.from_host(self._places.astype(np.uint64), stream)
            batch = RowBatch(n=self.n, rows=counts.ptr, row_bytes=4, numbers=numbers.ptr, flags=flags.ptr)
            batch.op, batch.kind = Op.ADD, kind_of(np.dtype(np.uint32))
            self.engine.program(ROWS).run("merge", StoredRows(rows=out, stored_bytes=4), batch, self.n, stream)


class Listing(NamedTuple):
    """Elements of a batch that a kernel is listing.

    Attributes
    ----------
    listed
        Receives their numbers, uint32.
    answer
        Receives how many they are.
    report
        Keeps the kernel's counters.
    """

    engine: Engine
    listed: Buffer
    answer: Answer | None
    report: Buffer | None

    def counted(self) -> int:
        """How many elements are listed. Waits for the kernel, and for nothing behind it."""
        if self.answer is None:
            return 0
        self.answer.wait()
        return int(self.answer.words[0])

    def part(self, stream: Any) -> Part:
        """Return the elements. Waits as `counted`."""
        n = self.counted()
        numbers = self.engine.allocate(max(1, 8 * n), stream)
        if n:
            widen = WordBatch(n=n, rows=self.listed.ptr, row_bytes=4, words=numbers.ptr, word_bytes=8)
            self.engine.program(ROWS).run("widen", StoredRows(), widen, n, stream)
        return Part(self.engine, n, numbers)


def listing(engine: Engine, flags: int, n: int, flag: Flag, stream: Any) -> Listing:
    """List those of ``n`` elements that have a flag; ``flags`` is the address of their bytes."""
    if n == 0:
        return Listing(engine, engine.allocate(1, stream), None, None)
    report, listed = filled(engine, 8 * REPORT_WORDS, stream), engine.allocate(4 * n, stream)
    answer = engine.answer(1)
    batch = RowBatch(n=n, flags=flags, listed_flag=flag, list=listed.ptr, report=report.ptr)
    engine.program(ROWS).run("list_flagged", StoredRows(), batch, n, stream)
    answer.ask(report.ptr + WINNERS, stream)
    return Listing(engine, listed, answer, report)


def flagged(engine: Engine, flags: int, n: int, flag: Flag, stream: Any) -> Part:
    """Those of ``n`` elements that have a flag; ``flags`` is the address of their bytes. Waits."""
    if engine.lanes == 1 and n < _FEWEST_FOR_KERNELS:
        places = np.flatnonzero(bytes_at(flags, n) == flag)
        return Part(engine, len(places), None, places)
    return listing(engine, flags, n, flag, stream).part(stream)


def _rows_at(address: int, n: int, width: int) -> npt.NDArray[Any]:
    """Rows in host memory: words if there are such of their width, and else bytes."""
    rows = bytes_at(address, n * width)
    return rows.view(f"u{width}") if width in (1, 2, 4, 8) else rows.reshape(n, width)
