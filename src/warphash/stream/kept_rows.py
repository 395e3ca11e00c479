"""Which rows of a source are in an answer: a bit for each, found in any order, read in the order of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .sources import Source, passes
from .workspace import Workspace

__all__ = ["KeptRows"]

_ROWS_AT_ONCE = 1 << 16


class KeptRows:
    """Bits for the rows of a source, none of them set."""

    def __init__(self) -> None:
        self._bits = np.zeros(0, np.uint8)

    def keep(self, rows: npt.NDArray[np.int64]) -> None:
        """Set the bits of some rows. Takes time in proportion to their number."""
        if len(rows) and (needed := int(rows.max()) // 8 + 1) > len(self._bits):
            grown = np.zeros(max(needed, 2 * len(self._bits)), np.uint8)
            grown[: len(self._bits)] = self._bits
            self._bits = grown
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[begin : begin + _ROWS_AT_ONCE]
            np.bitwise_or.at(self._bits, some >> 3, np.left_shift(1, some & 7).astype(np.uint8))

    def of(self, source: Source, work: Workspace, *, kept: bool = True) -> Iterator[Any]:
        """The rows whose bit is set, with all columns, in their order; or those whose bit is not set."""
        begin = 0
        for table in passes(source, source.schema.names, "rows", work):
            flags = self._flags(begin, len(table))
            begin += len(table)
            if not kept:
                flags = ~flags
            if flags.all():
                yield table
            elif flags.any():
                yield table.filter(flags)

    def _flags(self, begin: int, n: int) -> npt.NDArray[np.bool_]:
        """Whether the bits of ``n`` rows are set."""
        some = self._bits[begin >> 3 : (begin + n + 7) >> 3]
        flags = np.unpackbits(some, bitorder="little")[begin & 7 :][:n].astype(np.bool_)
        return flags if len(flags) == n else np.pad(flags, (0, n - len(flags)))
