"""What the kernels of one store have counted since it was made, and the host's knowledge of it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ...runtime.abi import COUNT_WORDS, REPORT_WORDS, Report
from ...runtime.engine import Engine

__all__ = ["Ledger"]


_NOTHING = Report(0, 0, 0, 0, 0, 0, 0, 0)


class Ledger:
    """A ``struct Report`` that is never zeroed again: kernels add to it, and nobody waits before somebody asks.

    Readers of the table may `read` at once; who launches kernels, or restarts, holds the table's lock alone.
    """

    def __init__(self, engine: Engine, stream: Any = None) -> None:
        self._engine = engine
        self._report = engine.allocate(8 * REPORT_WORDS, stream)
        self._reading = threading.Lock()
        self.restart(stream)

    def restart(self, stream: Any = None) -> None:
        """Count from zero again."""
        self._engine.fill(self._report.ptr, 0, 8 * REPORT_WORDS, stream)
        self._known, self._open = _NOTHING, False

    @property
    def report(self) -> int:
        """Address of the report, for kernels."""
        return self._report.ptr

    def reopen(self) -> None:
        """Say that a kernel has been launched which adds to it."""
        self._open = True

    def read(self, stream: Any = None) -> Report:
        """All counts so far. Waits for the kernels that were launched since the last time."""
        with self._reading:
            if self._open:
                self._open = False
                words = self._engine.to_host(self._report.ptr, np.uint64, COUNT_WORDS, stream)
                self._known = Report.of(words)
            return self._known
