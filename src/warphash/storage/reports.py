"""Counts that kernels write and the host reads back: ``struct Report`` of ``kernels/core/abi.cuh``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.abi import COUNT_WORDS, REPORT_WORDS, Report
from ..runtime.engine import Buffer, Engine

__all__ = ["read_report", "zeroed_report"]


def zeroed_report(engine: Engine, stream: Any) -> Buffer:
    """A new report, all of whose counts are 0."""
    report = engine.allocate(8 * REPORT_WORDS, stream)
    engine.fill(report.ptr, 0, 8 * REPORT_WORDS, stream)
    return report


def read_report(engine: Engine, report: int, stream: Any) -> Report:
    """The counts of the report at an address. Waits for the kernels that were launched before."""
    return Report.of(engine.to_host(report, np.uint64, COUNT_WORDS, stream))
