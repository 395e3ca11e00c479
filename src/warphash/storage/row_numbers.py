"""Numbers of the rows of a row store: which are free, and which are taken first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["RowNumbers"]

Numbers = npt.NDArray[np.uint64]


class RowNumbers:
    """Free rows are a stack, on the host; a row that was given back is taken again before a new one.

    Takes and gives back in constant time for each row, and keeps 8 bytes for each free one.

    Attributes
    ----------
    end
        No row of this number, or of a greater one, was taken since the start.
    """

    def __init__(self, end: int = 0) -> None:
        self.end = end
        self._stack: Numbers = np.empty(0, np.uint64)
        self._free = 0

    @property
    def taken(self) -> int:
        """Rows that were taken and not given back."""
        return self.end - self._free

    def end_with(self, n: int) -> int:
        """What `end` will be when ``n`` more rows are taken."""
        return self.end + max(0, n - self._free)

    def take(self, n: int) -> Numbers:
        """Take ``n`` rows."""
        again = min(n, self._free)
        new = np.arange(self.end, self.end + n - again, dtype=np.uint64)
        numbers = np.concatenate([self._stack[self._free - again : self._free], new])
        self._free, self.end = self._free - again, self.end + n - again
        return numbers

    def give_back(self, numbers: Numbers) -> None:
        """Free rows that were taken."""
        free = self._free + len(numbers)
        if free > len(self._stack):
            stack = np.empty(max(free, 2 * len(self._stack)), np.uint64)
            stack[: self._free] = self._stack[: self._free]
            self._stack = stack
        self._stack[self._free : free] = numbers
        self._free = free
