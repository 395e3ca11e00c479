"""Sorted runs, and their merge: what parts answer comes in the order of rows again.

A run is a sequence of tables in ascending order of one or two columns of int64, in memory or in a file. A block of
each is in memory. All rows up to the least of the blocks' last rows can be sorted and given out, because no later block
has a lower one. If there are more runs than blocks fit into memory, some are merged into one run first (Knuth, The Art
of Computer Programming, volume 3, section 5.4.1).

A step of a merge looks at each of its runs, and gives out about as many rows as a block has. So blocks are as large as
memory allows for the runs that are merged, and passes merge about as many runs each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .partition import joined_tables, larger_tables
from .spill import SpillFile
from .workspace import Workspace

__all__ = ["Runs"]

_MOST_MERGED = 48
"""Runs that are merged at one time: their blocks take less than the share of memory for rows."""


class Runs:
    """Tables to be merged.

    Parameters
    ----------
    order
        Names of one or two columns of int64, without nulls. No two rows are equal in all of them.
    """

    def __init__(self, order: Sequence[str], work: Workspace) -> None:
        self._order, self._work = list(order), work
        self._files: list[SpillFile] = []
        self._held: list[Any] = []

    def add(self, tables: Iterable[Any], *, is_sorted: bool = True) -> None:
        """Add a run: tables in ascending order, or each in any order if there is one alone.

        The first run stays in memory if it is one table and the last one, too.
        """
        if not is_sorted:
            tables = [self._in_order(table) for table in tables]
        for held in self._held:
            self._write([held])
        self._held = []
        if isinstance(tables, list) and len(tables) == 1 and not self._files:
            self._held = tables
        else:
            self._write(tables)

    def merged(self) -> Iterator[Any]:
        """The rows of all runs, in order. Raises as `SpillFile.read`."""
        if self._held:
            yield from self._held
            return
        width = _width(len(self._files))
        while len(self._files) > width:
            some, self._files = self._files[:width], self._files[width:]
            self._write(self._merge(some))
        yield from self._merge(self._files)

    def _write(self, tables: Iterable[Any]) -> None:
        file = self._work.spill.file()
        for table in tables:
            rows = max(1, len(table) * self._work.block // max(1, table.nbytes))
            for begin in range(0, len(table), rows):
                file.write(table.slice(begin, rows))
        file.finish()
        if file.rows:
            self._files.append(file)

    def _merge(self, files: Sequence[SpillFile]) -> Iterator[Any]:
        nbytes = self._work.block * _MOST_MERGED // max(1, len(files))
        runs = [_Run(larger_tables(file.read(), nbytes), self._order) for file in files]
        while runs:
            least = min(run.last for run in runs)
            yield from self._sorted([table for run in runs if (table := run.taken(least)) is not None])
            runs = [run for run in runs if not run.is_over]
        for file in files:
            file.remove()

    def _sorted(self, tables: list[Any]) -> Iterator[Any]:
        table = joined_tables(tables)
        yield table if len(tables) == 1 else table.combine_chunks().take(_places(table, self._order))

    def _in_order(self, table: Any) -> Any:
        first = table[self._order[0]].to_numpy()
        if bool(np.all(first[:-1] < first[1:])):
            return table
        return table.take(_places(table, self._order))


def _places(table: Any, order: Sequence[str]) -> npt.NDArray[np.int64]:
    """The places of rows in ascending order.

    Two columns become one where their ranges allow that. A stable sort of one column merges sorted stretches: 4 M pairs
    of 32 runs took 0.9 s by two columns, and less than 0.2 by one.
    """
    columns = [table[name].to_numpy() for name in order]
    if len(columns) == 1 or not len(table):
        return np.argsort(columns[0], kind="stable")
    least, ranges = [int(column.min()) for column in columns], [int(column.max()) + 1 for column in columns]
    first, second = (end - begin for begin, end in zip(least, ranges, strict=True))
    if first * second > np.iinfo(np.int64).max:
        return np.lexsort(columns[::-1])
    return np.argsort((columns[0] - least[0]) * second + (columns[1] - least[1]), kind="stable")


def _width(n: int) -> int:
    """How many of so many runs are merged at one time: the fewest that take no pass more than the most do."""
    passes = 1
    while _MOST_MERGED**passes < n:
        passes += 1
    return next(width for width in range(1, _MOST_MERGED + 1) if width**passes >= n)


class _Run:
    """What is left of a run: of a block of it, and blocks behind.

    Attributes
    ----------
    last
        The last row of the block, in the columns of the order.
    is_over
        No rows are left.
    """

    def __init__(self, blocks: Iterator[Any], order: Sequence[str]) -> None:
        self._blocks, self._order = blocks, order
        self.is_over = False
        self._next_block()

    def _next_block(self) -> None:
        block = next(self._blocks, None)
        if block is None:
            self.is_over = True
            return
        self._block, self._begin = block, 0
        self._columns = [block[name].to_numpy() for name in self._order]
        self.last = tuple(int(column[-1]) for column in self._columns)

    def taken(self, last: tuple[int, ...]) -> Any:
        """The rows up to some row, which is not behind the last one of the block; None: there are none."""
        begin, end = self._begin, self._end(last)
        if begin == end:
            return None
        table = self._block.slice(begin, end - begin)
        self._begin = end
        if end == len(self._block):
            self._next_block()
        return table

    def _end(self, last: tuple[int, ...]) -> int:
        """How many rows of the block come up to some row."""
        first = self._columns[0]
        end = int(first.searchsorted(last[0], "right"))
        if len(last) == 1:
            return end
        begin = int(first.searchsorted(last[0]))
        return begin + int(self._columns[1][begin:end].searchsorted(last[1], "right"))
