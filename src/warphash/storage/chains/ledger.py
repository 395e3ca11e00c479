"""What the kernels of one `chain_array.ChainArray` have counted, and the host's knowledge of it."""

from __future__ import annotations

from typing import Any

from ...runtime.engine import Engine
from ..scratch import Report, ReportBuffer

__all__ = ["Ledger"]

_NOTHING = Report(0, 0, 0, 0, 0, 0, 0, 0)


class Ledger:
    """A ``struct Report`` to which kernels add. The host reads it when it needs the counts, and not after each kernel.

    The report in device memory is the truth about a batch that was launched, also if the call that launched the batch
    was interrupted.

    Attributes
    ----------
    report
        Its address, for kernels.
    known
        All counts, as of the last `read`.
    is_open
        Whether a kernel may have added to the report since then.
    """

    def __init__(self, engine: Engine, stream: Any = None) -> None:
        self._report = ReportBuffer(engine, stream)
        self.report = self._report.ptr
        self.known, self.is_open = _NOTHING, False
        self.restart(stream)

    def restart(self, stream: Any = None) -> None:
        """Count from zero again."""
        self._report.reset(stream)
        self.known, self.is_open = _NOTHING, False

    def open(self) -> None:
        """Note that a kernel is going to be launched that adds to the report."""
        self.is_open = True

    def read(self, stream: Any = None) -> Report:
        """All counts so far. Waits for the kernels that were launched since the last time."""
        if self.is_open:
            self.known = self._report.read(stream)
            self.is_open = False
        return self.known
