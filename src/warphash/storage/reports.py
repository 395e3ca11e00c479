"""Counts that kernels write and the host reads back: ``struct Report`` of ``kernels/core/abi.cuh``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.abi import COUNT_WORDS, REPORT_WORDS, Report
from ..runtime.engine import Buffer, Engine

__all__ = ["KeptReport", "read_report", "zeroed_report"]


def zeroed_report(engine: Engine, stream: Any) -> Buffer:
    """A new report, all of whose counts are 0."""
    report = engine.allocate(8 * REPORT_WORDS, stream)
    engine.fill(report.ptr, 0, 8 * REPORT_WORDS, stream)
    return report


def read_report(engine: Engine, report: int, stream: Any) -> Report:
    """The counts of the report at an address. Waits for the kernels that were launched before."""
    return Report.of(engine.to_host(report, np.uint64, COUNT_WORDS, stream))


class KeptReport:
    """A report for many operations, one at a time: its users hold the table's lock alone.

    Attributes
    ----------
    ptr
        Its address.
    """

    def __init__(self, engine: Engine, stream: Any) -> None:
        self._engine, self._memory = engine, engine.allocate(8 * REPORT_WORDS, stream)
        self.ptr = self._memory.ptr

    def reset(self, stream: Any) -> int:
        """Set all counts to 0; the address of the report."""
        self._engine.fill(self.ptr, 0, 8 * REPORT_WORDS, stream)
        return self.ptr

    def read(self, stream: Any) -> Report:
        """The counts. Waits for the kernels that were launched before."""
        return Report.of(self._engine.to_host(self.ptr, np.uint64, COUNT_WORDS, stream))
