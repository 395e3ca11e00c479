"""The build of all lines of a quotient table on a CPU: its memory and launches (``kernels/quotient/cpu/build.cuh``)."""

from __future__ import annotations

from ...designs.layout import LINE_BYTES
from ...runtime.abi import PART_ELEMENTS, REPORT_WORDS, BuildByGroupsBatch, QuotientTable
from ...runtime.engine import Engine, KernelSpec, Program
from ...runtime.host_memory import available_bytes
from ...settings import get_num_threads
from ..batch import Batch
from ..scratch import Report, read_report, starts_of
from . import route

__all__ = ["GroupBuild"]


class GroupBuild:
    """One build from the batch ``given``. Its steps are `place`, `scatter` and `write_lines`, each of them once.

    Parameters
    ----------
    report
        Address of a report whose counts are 0.

    Raises
    ------
    MemoryError
        If there is no memory for lists.
    """

    def __init__(
        self, engine: Engine, program: Program, spec: KernelSpec, table: QuotientTable, report: int, given: Batch
    ) -> None:
        self._engine, self._program, self._table, self._stream = engine, program, table, given.stream
        self._pair_bytes = spec.slot_bytes
        n, ranges = given.n, table.ranges
        (self._parts, length), each = route.parts_of(n, get_num_threads()), route.group_ranges(ranges)
        groups = ranges // each
        capacity = each * table.range_buckets * LINE_BYTES // self._pair_bytes
        self._places = engine.allocate(4 * (self._parts + 1) * groups, given.stream)
        self._numbers = engine.allocate(4 * groups * capacity, given.stream) if given.flags else None
        self._batch = batch = BuildByGroupsBatch(n=n, keys=given.keys, values=given.values, out_flags=given.flags)
        batch.op, batch.kind, batch.unique, batch.report = given.op, given.kind, given.unique, report
        batch.parts, batch.part_length, batch.places = self._parts, length, self._places.ptr
        batch.groups, batch.group_ranges, batch.capacity = groups, each, capacity
        batch.brought, batch.numbers = table.slots, self._numbers.ptr if self._numbers else 0

    def place(self) -> None:
        """Find a place for each element: mostly in the memory of the lines. Writes nothing there.

        Raises
        ------
        MemoryError
            If the elements of a group need memory of their own, and many would take more than half of what is free.
        """
        self._run("count_parts", self._parts * PART_ELEMENTS)
        self._run("place_parts", 1)
        if self._read().mismatches:
            self._leave_lines()
            self._engine.fill(self._batch.report, 0, 8 * REPORT_WORDS, self._stream)
            self._run("place_parts", 1)

    def _leave_lines(self) -> None:
        """Give the elements memory of their own."""
        n: int = self._batch.n
        sizes = n * self._pair_bytes, 4 * n if self._numbers else 0, 4 * n
        *starts, end = starts_of(sizes)
        free = available_bytes() if n > route.LAUNCH_ELEMENTS else None
        if free is not None and 2 * end > free:
            raise MemoryError(f"there is no memory for copies of {n:,} elements")
        self._apart = self._engine.allocate(end, self._stream)
        batch = self._batch
        batch.brought, batch.numbers, batch.left = (self._apart.ptr + at for at in starts)
        batch.capacity = 0

    def scatter(self) -> bool:
        """Copy the elements to their places, and flag them.

        False if a place has none: others have written to a key, or there was no memory for lines that wait.
        """
        self._run("scatter_parts", self._parts * PART_ELEMENTS)
        return not self._read().mismatches

    def write_lines(self) -> Report:
        """Write all lines. If there was no memory for lines to work in, the report has mismatches."""
        self._program.run_blocks("build_groups", self._table, self._batch, self._batch.groups, self._stream)
        return self._read()

    def _run(self, entry: str, n: int) -> None:
        self._program.run(entry, self._table, self._batch, n, self._stream)

    def _read(self) -> Report:
        return read_report(self._engine, self._batch.report, self._stream)
